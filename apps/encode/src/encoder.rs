//! Pictures in, units of a stream out.

use crate::bits::{Unit, unit};
use crate::coder::{Link, Settings, Shot};
use crate::headers::{Header, Profile, Properties, Ratio, SliceType, Structure, parameter_sets, slice_header};
use crate::kernel::Kernels;
use crate::picture::{Picture, Source};
use crate::rate::{Control, Keys, Look, Rate};
use crate::search::Effort;
use crate::wave::Wave;
use std::collections::VecDeque;

/// What an encoder is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What quantisers follow.
    pub rate: Rate,
    /// When decoding can begin.
    pub keys: Keys,
    /// How thoroughly motion is searched.
    pub effort: Effort,
    /// What a decoder has to be able to do. Pictures that are predicted from two sides need [`Profile::Main`].
    pub profile: Profile,
    /// What pictures may be predicted from.
    pub structure: Structure,
}

/// A picture of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Its units, without start codes or lengths: of one at which decoding can begin, the parameter sets first.
    pub units: Vec<Vec<u8>>,
    /// Whether decoding can begin at it.
    pub is_key: bool,
    /// Which picture it is of those that are shown, from 0.
    pub number: u64,
}

/// A picture that has come.
#[derive(Debug)]
struct Waiting {
    source: Source,
    look: Look,
    number: u64,
}

/// Memory for a picture.
#[derive(Debug)]
struct Slot {
    picture: Picture,
    /// Which picture is or was there.
    number: u64,
    /// How far before it the nearest picture is that it may be predicted from.
    span: i64,
    /// When it was taken last.
    taken: u64,
}

/// A picture that is to be encoded.
#[derive(Debug)]
struct Planned {
    header: Header,
    number: u64,
    slot: usize,
    /// Slots of both lists, with whose field tells where to look, and its scale.
    lists: [Vec<(usize, usize, i32)>; 2],
}

/// Encodes pictures as they are shown; they come out in the order in which they are decoded.
#[derive(Debug)]
pub struct Encoder {
    properties: Properties,
    options: Options,
    kernels: Kernels,
    slots: Vec<Slot>,
    /// Slots of pictures that others may be predicted from, as a decoder keeps them, the last one first.
    kept: Vec<usize>,
    /// Pictures that have come, and those of them that wait for one behind them.
    come: u64,
    waiting: VecDeque<Waiting>,
    /// Pictures planned so far.
    planned: u64,
    /// Which of those that are shown the last key picture was, how many others may be predicted from came since, and how many
    /// keys there were.
    key: u64,
    since_key: u64,
    keys: u64,
    control: Control,
    spare: Vec<Source>,
}

impl Encoder {
    /// For pictures that have these properties.
    pub fn new(properties: Properties, options: Options, kernels: Kernels) -> Encoder {
        let Structure { references, bidirectional } = options.structure;
        let Ratio { over, under } = properties.rate;
        // Those that others are predicted from, and those under way.
        let count = options.structure.kept() + 3 + bidirectional;
        let fields = references.max(if bidirectional > 0 { 2 } else { 1 });
        let slot = || Slot { picture: Picture::new(properties.size, fields), number: 0, span: 1, taken: 0 };
        Encoder {
            properties,
            options,
            kernels,
            slots: std::iter::repeat_with(slot).take(count).collect(),
            kept: Vec::new(),
            come: 0,
            waiting: VecDeque::new(),
            planned: 0,
            key: 0,
            since_key: 0,
            keys: 0,
            control: Control::new(options.rate, options.keys, properties.size, f64::from(over) / f64::from(under)),
            spare: Vec::new(),
        }
    }

    /// The parameter sets: of the sequence, of pictures.
    pub fn parameter_sets(&self) -> [Vec<u8>; 2] {
        parameter_sets(&self.properties, self.options.profile, self.options.structure)
    }

    /// Encodes pictures, but those that wait for others behind them, unless none come. `execute` is given a wave of jobs and
    /// does them all. What it makes does not depend on how, nor, but for rates of bits, on how many pictures are given at once.
    pub fn encode(&mut self, sources: Vec<Source>, is_end: bool, execute: impl FnOnce(&Wave<'_>)) -> Vec<Encoded> {
        for source in sources {
            let look = self.control.look(&source.glance);
            self.waiting.push_back(Waiting { source, look, number: self.come });
            self.come += 1;
        }
        let mut typed = Vec::new();
        while let Some(count) = self.group(is_end) {
            let mut group: VecDeque<Waiting> = self.waiting.drain(..count).collect();
            // The last one is what those before it are predicted from.
            let Some(last) = group.pop_back() else { break };
            let slice_type = if last.look.is_key { SliceType::I } else { SliceType::P };
            typed.push((last, slice_type));
            typed.extend(group.into_iter().map(|waiting| (waiting, SliceType::B)));
        }
        let looks: Vec<(Look, SliceType)> = typed.iter().map(|(waiting, of)| (waiting.look, *of)).collect();
        let quantisers = self.control.decide(&looks);
        let all = typed.iter().zip(quantisers);
        let planned: Vec<Planned> =
            all.map(|((waiting, slice_type), qp)| self.plan(waiting.number, *slice_type, qp)).collect();
        let is_arithmetic = self.options.profile == Profile::Main;
        let picture = |slot: usize| &self.slots[slot].picture;
        let link = |&(slot, likely, scale): &(usize, usize, i32)| Link {
            picture: picture(slot),
            likely: picture(likely),
            scale,
        };
        let shots = planned.iter().zip(&typed).map(|(planned, (waiting, _))| Shot {
            source: &waiting.source,
            picture: picture(planned.slot),
            lists: planned.lists.each_ref().map(|list| list.iter().map(link).collect()),
            is_reference: planned.header.slice_type != SliceType::B,
            settings: Settings::new(&self.kernels, planned.header.qp, self.options.effort, is_arithmetic),
        });
        let wave = Wave::new(shots.collect());
        execute(&wave);
        let Options { profile, structure, .. } = self.options;
        let header = |planned: &Planned| slice_header(&planned.header, profile, structure);
        let slices = wave.finish(planned.iter().map(header).collect());
        let encoded: Vec<Encoded> =
            planned.iter().zip(slices).map(|(planned, slice)| self.units(planned, &slice)).collect();
        let length = |picture: &Encoded| picture.units.iter().map(|unit| 8 * unit.len() as u64).sum();
        self.control.learn(encoded.iter().map(length));
        self.spare.extend(typed.into_iter().map(|(waiting, _)| waiting.source));
        encoded
    }

    /// Memory of pictures that have been encoded, to be filled again.
    pub fn spare(&mut self) -> Vec<Source> {
        std::mem::take(&mut self.spare)
    }

    /// How many of the pictures that wait are to be encoded: one, which all before it are predicted from, too.
    fn group(&self, is_end: bool) -> Option<usize> {
        let first = self.waiting.front()?;
        if first.look.is_key {
            return Some(1);
        }
        let most = self.options.structure.bidirectional + 1;
        // None is predicted from a key picture behind it.
        match self.waiting.iter().take(most).position(|waiting| waiting.look.is_key) {
            Some(key) => Some(key),
            None if self.waiting.len() >= most => Some(most),
            None => is_end.then_some(self.waiting.len()),
        }
    }

    /// The next picture in the order of decoding: where it goes and what it is predicted from.
    fn plan(&mut self, number: u64, slice_type: SliceType, qp: u8) -> Planned {
        self.planned += 1;
        if slice_type == SliceType::I {
            (self.key, self.since_key, self.keys) = (number, 0, self.keys + 1);
            self.kept.clear();
        }
        let away = |slot: usize| number as i64 - self.slots[slot].number as i64;
        let ratio = |over: i64, under: i64| if under == 0 { 256 } else { (256 * over / under) as i32 };
        let lists = match slice_type {
            SliceType::I => [Vec::new(), Vec::new()],
            SliceType::P => {
                let kept = self.kept.iter().take(self.options.structure.references).copied();
                let nearest = self.kept[0];
                let link = |(i, slot): (usize, usize)| match i {
                    0 => (slot, slot, ratio(away(slot), self.slots[slot].span)),
                    // What was found in the nearest, as far as this one is.
                    _ => (slot, nearest, ratio(away(slot), away(nearest))),
                };
                [kept.enumerate().map(link).collect(), Vec::new()]
            }
            SliceType::B => {
                let (behind, before) = (self.kept[0], self.kept[1]);
                let link = |slot: usize| vec![(slot, behind, ratio(away(slot), self.slots[behind].span))];
                [link(before), link(behind)]
            }
        };
        let span = lists[0].first().map_or(1, |link| away(link.0));
        let references = lists[0].len();
        let free = (0..self.slots.len()).filter(|slot| !self.kept.contains(slot));
        let slot = free.min_by_key(|slot| self.slots[*slot].taken).unwrap_or(0);
        let taken = self.planned;
        (self.slots[slot].number, self.slots[slot].span, self.slots[slot].taken) = (number, span, taken);
        let header =
            Header { slice_type, number: self.since_key, order: number - self.key, key: self.keys, references, qp };
        if slice_type != SliceType::B {
            self.since_key += 1;
            self.kept.insert(0, slot);
            self.kept.truncate(self.options.structure.kept());
        }
        Planned { header, number, slot, lists }
    }

    fn units(&self, planned: &Planned, slice: &[u8]) -> Encoded {
        let slice_type = planned.header.slice_type;
        let is_key = slice_type == SliceType::I;
        let kind = match slice_type {
            SliceType::I => Unit::IdrSlice,
            SliceType::P => Unit::Slice,
            SliceType::B => Unit::DisposableSlice,
        };
        let mut units = if is_key { self.parameter_sets().to_vec() } else { Vec::new() };
        units.push(unit(kind, slice));
        Encoded { units, is_key, number: planned.number }
    }

    /// One of the last pictures as a decoder shows it: its planes one after the other. All are there that were encoded at once,
    /// if these were no more than are predicted from two sides in a row, and one.
    pub fn shown(&mut self, number: u64) -> Option<Vec<u8>> {
        let slot = self.slots.iter().filter(|slot| slot.number == number).max_by_key(|slot| slot.taken)?;
        // SAFETY: nobody else uses the encoder, so no wave is under way.
        (slot.taken > 0).then(|| unsafe { slot.picture.shown() })
    }
}

/// Units as they follow one another in a stream of bytes (Annex B).
pub fn with_start_codes(units: &[Vec<u8>]) -> Vec<u8> {
    units.iter().flat_map(|unit| [&[0, 0, 0, 1], &unit[..]].concat()).collect()
}
