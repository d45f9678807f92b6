//! Pictures in, units of a stream out.

use crate::bits::{Unit, unit};
use crate::coder::{Settings, Shot};
use crate::headers::{Header, Profile, Properties, Ratio, parameter_sets, slice_header};
use crate::kernel::Kernels;
use crate::picture::{Picture, Source};
use crate::rate::{Control, Decision, Keys, Rate};
use crate::search::Effort;
use crate::wave::{PICTURES, Wave};

/// What an encoder is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What quantisers follow.
    pub rate: Rate,
    /// When decoding can begin.
    pub keys: Keys,
    /// How thoroughly motion is searched.
    pub effort: Effort,
    /// What a decoder has to be able to do.
    pub profile: Profile,
}

/// A picture of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Its units, without start codes or lengths: of one at which decoding can begin, the parameter sets first.
    pub units: Vec<Vec<u8>>,
    /// Whether decoding can begin at it.
    pub is_key: bool,
}

/// Encodes pictures in their order.
#[derive(Debug)]
pub struct Encoder {
    properties: Properties,
    options: Options,
    kernels: Kernels,
    pictures: Vec<Picture>,
    /// Pictures encoded so far.
    count: u64,
    since_key: u64,
    keys: u64,
    control: Control,
}

impl Encoder {
    /// For pictures that have these properties.
    pub fn new(properties: Properties, options: Options, kernels: Kernels) -> Encoder {
        let pictures = (0..PICTURES).map(|_| Picture::new(properties.size)).collect();
        let Ratio { over, under } = properties.rate;
        let control = Control::new(options.rate, options.keys, properties.size, f64::from(over) / f64::from(under));
        Encoder { properties, options, kernels, pictures, count: 0, since_key: 0, keys: 0, control }
    }

    /// The parameter sets: of the sequence, of pictures.
    pub fn parameter_sets(&self) -> [Vec<u8>; 2] {
        parameter_sets(&self.properties, self.options.profile)
    }

    /// Encodes pictures. `execute` is given a wave of jobs and does them all. What it makes does not depend on how, nor on how
    /// many pictures are given at once.
    pub fn encode(&mut self, sources: &[Source], execute: impl FnOnce(&Wave<'_>)) -> Vec<Encoded> {
        let mut headers = Vec::new();
        for Decision { is_key, qp } in self.control.decide(sources.iter().map(|source| &source.glance)) {
            (self.since_key, self.keys) = if is_key { (0, self.keys + 1) } else { (self.since_key + 1, self.keys) };
            headers.push(Header { is_key, since_key: self.since_key, key: self.keys, qp });
            self.count += 1;
        }
        let first = self.count as usize - sources.len();
        let picture = |number: usize| &self.pictures[number % PICTURES];
        let is_arithmetic = self.options.profile == Profile::Main;
        let shot = |(i, (header, source)): (usize, (&Header, _))| Shot {
            source,
            picture: picture(first + i),
            reference: (!header.is_key).then(|| picture(first + i - 1)),
            settings: Settings::new(&self.kernels, header.qp, self.options.effort, is_arithmetic),
        };
        let wave = Wave::new(headers.iter().zip(sources).enumerate().map(shot).collect());
        execute(&wave);
        let slices = wave.finish(headers.iter().map(|header| slice_header(header, self.options.profile)).collect());
        let encoded: Vec<Encoded> =
            headers.iter().zip(slices).map(|(header, slice)| self.units(header, &slice)).collect();
        let length = |picture: &Encoded| picture.units.iter().map(|unit| 8 * unit.len() as u64).sum();
        self.control.learn(encoded.iter().map(length));
        encoded
    }

    fn units(&self, header: &Header, slice: &[u8]) -> Encoded {
        let kind = if header.is_key { Unit::IdrSlice } else { Unit::Slice };
        let mut units = if header.is_key { self.parameter_sets().to_vec() } else { Vec::new() };
        units.push(unit(kind, slice));
        Encoded { units, is_key: header.is_key }
    }

    /// The last picture as a decoder shows it: its planes one after the other.
    pub fn shown(&mut self) -> Vec<u8> {
        let last = (self.count as usize + PICTURES - 1) % PICTURES;
        // SAFETY: nobody else uses the encoder, so no wave is under way.
        unsafe { self.pictures[last].shown() }
    }
}

/// Units as they follow one another in a stream of bytes (Annex B).
pub fn with_start_codes(units: &[Vec<u8>]) -> Vec<u8> {
    units.iter().flat_map(|unit| [&[0, 0, 0, 1], &unit[..]].concat()).collect()
}
