//! Where the stream goes: bytes with start codes (Annex B), or an MP4 file.

use crate::encoder::{Encoded, START_CODE, with_start_codes};
use crate::error::Error;
use crate::headers::{Colour, LEVEL_PLACE, Properties};
use crate::levels::Taken;
use mp4_atom::{
    Avc1, Avcc, Co64, Codec, Colr, Ctts, CttsEntry, Dinf, Dref, DrefEntry, Edts, Elst, ElstEntry, Encode, FixedPoint,
    Ftyp, Hdlr, Mdhd, Mdia, Minf, Moov, Mvhd, Pasp, Stbl, Stsc, StscEntry, Stsd, Stss, Stsz, StszSamples, Stts,
    SttsEntry, Tkhd, Trak, Url, Visual, Vmhd,
};
use multigrain::whole::WholeFile;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What a file of a name holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Units with start codes.
    Bytes,
    /// MP4.
    Mp4,
}

impl Container {
    /// By the end of the name.
    pub fn of(name: &str) -> Option<Container> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "mp4" | "m4v" => Some(Container::Mp4),
            "h264" | "264" | "avc" => Some(Container::Bytes),
            _ => None,
        }
    }
}

/// An output that is being written.
pub struct Output {
    to: To,
    name: String,
    container: Container,
    /// For an index: bytes of each picture, and which can be decoded without others, counted from 1.
    sizes: Vec<u32>,
    keys: Vec<u32>,
    /// When each is shown, counted from 0.
    numbers: Vec<u64>,
    bytes: u64,
    /// Bytes of an MP4 file that are left before the pictures for the header, which players over a network read first.
    room: usize,
    /// Of pictures, with parameter sets, without what lies around them.
    picture_bytes: u64,
    /// Where the number of the level is in parameter sets that were written to a file of bytes.
    levels: Vec<u64>,
    taken: Taken,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes of all.
    pub bytes: u64,
    /// Bytes of the pictures, with parameter sets, whatever they lie in: what a rate is of.
    pub picture_bytes: u64,
    /// The number of the level that holds it.
    pub level: u8,
    /// The number of the level that is told. Only a stream, which is gone when that is known, tells another.
    pub level_told: u8,
}

enum To {
    File(BufWriter<WholeFile>),
    Standard(std::io::Stdout),
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} as {:?}", self.name, self.container)
    }
}

/// Bytes of the box that holds the pictures, before them: its size in 64 bits.
const BOX_BYTES: usize = 16;

/// The size and the name of any other box.
const HEAD_BYTES: usize = 8;

/// What the header of an MP4 file takes, at most, without what it says of each picture.
const HEADER_BYTES: u64 = 1 << 10;

/// A longer header lies behind the pictures: of four million it takes this.
const ROOM_MAX: u64 = 16 << 20;

/// So many pictures to one of another scene, on average, have room in a header before the pictures.
const SCENE_PICTURES: u64 = 8;

/// What a header before the pictures has room for, where it is known how many come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// How many, at most.
    pub pictures: u64,
    /// From one at which decoding can begin to the next, at most.
    pub keyint: u32,
    /// Whether they are decoded in another order than shown.
    pub is_reordered: bool,
}

impl Expected {
    /// Bytes of the header, at most: of each picture its size, and when it is shown if that is told; which ones are keys. None if it is
    /// too long to lie before the pictures.
    fn room(&self) -> usize {
        let Expected { pictures, keyint, is_reordered } = *self;
        let keys = pictures / u64::from(keyint) + pictures / SCENE_PICTURES;
        let of_pictures =
            pictures.saturating_mul(if is_reordered { 12 } else { 4 }).saturating_add(keys.saturating_mul(4));
        if of_pictures > ROOM_MAX { 0 } else { (HEADER_BYTES + of_pictures) as usize }
    }
}

/// A box of so many bytes that says nothing.
fn free(bytes: usize) -> Vec<u8> {
    let mut atom = [&(bytes as u32).to_be_bytes(), &b"free"[..]].concat();
    atom.resize(bytes, 0);
    atom
}

fn file_type() -> Vec<u8> {
    let brands = [b"isom", b"iso2", b"avc1", b"mp41"].map(mp4_atom::FourCC::new);
    let atom = Ftyp { major_brand: brands[0], minor_version: 0x200, compatible_brands: brands.to_vec() };
    encoded(&atom)
}

fn encoded(atom: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    atom.encode(&mut bytes).unwrap_or_else(|e| panic!("a box of an MP4 file: {e}"));
    bytes
}

impl Output {
    /// Begins a file; nothing has its name until it is complete. The header of an MP4 file lies before the pictures if so many come as
    /// are expected, else behind them.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(path: &Path, container: Container, taken: Taken, expected: Option<Expected>) -> Result<Output, Error> {
        let name = path.display().to_string();
        let file = WholeFile::create(path).map_err(|source| Error::Write { name: name.clone(), source })?;
        let mut output = Output::new(To::File(BufWriter::with_capacity(256 << 10, file)), name, container, taken);
        if container == Container::Mp4 {
            output.room = expected.map_or(0, |expected| expected.room());
            let mut begin = file_type();
            if output.room > 0 {
                begin.extend(free(output.room));
            }
            begin.resize(begin.len() + BOX_BYTES, 0);
            output.put(&begin)?;
        }
        Ok(output)
    }

    /// Standard output, bytes with start codes.
    pub fn standard(taken: Taken) -> Output {
        Output::new(To::Standard(std::io::stdout()), "standard output".to_owned(), Container::Bytes, taken)
    }

    fn new(to: To, name: String, container: Container, taken: Taken) -> Output {
        let (sizes, keys, numbers, levels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (bytes, room, picture_bytes) = (0, 0, 0);
        Output { to, name, container, sizes, keys, numbers, bytes, room, picture_bytes, levels, taken }
    }

    fn refused(&self, source: std::io::Error) -> Error {
        match (&self.to, source.kind()) {
            (To::Standard(_), ErrorKind::BrokenPipe) => Error::ReaderGone,
            (To::Standard(_), _) => Error::Stream(source),
            _ => Error::Write { name: self.name.clone(), source },
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = match &mut self.to {
            To::File(file) => file.write_all(bytes),
            To::Standard(out) => out.lock().write_all(bytes),
        };
        written.map_err(|e| self.refused(e))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes a picture.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, picture: &Encoded) -> Result<(), Error> {
        let bytes = match self.container {
            Container::Bytes => with_start_codes(&picture.units),
            // Parameter sets lie in the header of the file.
            Container::Mp4 => picture
                .units
                .last()
                .map(|unit| [&(unit.len() as u32).to_be_bytes(), &unit[..]].concat())
                .unwrap_or_default(),
        };
        let taken = picture.units.iter().map(Vec::len).sum();
        self.picture_bytes += taken as u64;
        self.taken.add(taken);
        if let (To::File(_), Container::Bytes, true) = (&self.to, self.container, picture.is_key) {
            // The unit of the sequence comes first.
            self.levels.push(self.bytes + (START_CODE.len() + LEVEL_PLACE) as u64);
        }
        // A stream has no index, and may go on without end.
        if self.container == Container::Mp4 {
            self.sizes.push(bytes.len() as u32);
            self.numbers.push(picture.number);
            if picture.is_key {
                self.keys.push(self.sizes.len() as u32);
            }
        }
        self.put(&bytes)
    }

    /// Ends the output; a file then has its name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self, properties: &Properties, sets: &[Vec<u8>; 2]) -> Result<Written, Error> {
        let (level, mut level_told) = (self.taken.level(), sets[0][LEVEL_PLACE]);
        let mut patches = Vec::new();
        if self.container == Container::Mp4 {
            let (header, begin) = (file_type().len(), file_type().len() + self.room);
            let length = self.bytes - begin as u64;
            let mut sets = sets.clone();
            sets[0][LEVEL_PLACE] = level;
            let movie = encoded(&movie(properties, &sets, &self, (begin + BOX_BYTES) as u64));
            match self.room.checked_sub(movie.len() + HEAD_BYTES) {
                Some(left) => patches.push((header as u64, [movie, free(left + HEAD_BYTES)].concat())),
                None => self.put(&movie)?,
            }
            let mut head = [1_u32.to_be_bytes(), *b"mdat"].concat();
            head.extend(length.to_be_bytes());
            patches.push((begin as u64, head));
        }
        if level != level_told {
            patches.extend(self.levels.iter().map(|place| (*place, vec![level])));
        }
        if let To::File(file) = &mut self.to {
            level_told = level;
            let written = file.flush();
            let patched = written.and_then(|()| {
                let file = file.get_ref().file();
                patches.iter().try_for_each(|(place, bytes)| file.write_all_at(bytes, *place))
            });
            patched.map_err(|e| self.refused(e))?;
        }
        let (bytes, picture_bytes, name) = (self.bytes, self.picture_bytes, self.name);
        let unwritable = |source| Error::Write { name, source };
        match self.to {
            To::Standard(mut out) => match out.flush() {
                Err(e) if e.kind() == ErrorKind::BrokenPipe => return Err(Error::ReaderGone),
                ended => ended.map_err(Error::Stream)?,
            },
            To::File(file) => {
                file.into_inner().map_err(|e| e.into_error()).and_then(WholeFile::publish).map_err(unwritable)?;
            }
        }
        Ok(Written { bytes, picture_bytes, level, level_told })
    }
}

/// The header of an MP4 file whose pictures lie one after the other from `offset` on.
fn movie(properties: &Properties, sets: &[Vec<u8>; 2], output: &Output, offset: u64) -> Moov {
    let Output { sizes, keys, numbers, .. } = output;
    let Properties { size, rate, aspect, is_full_range, colour, .. } = *properties;
    let count = sizes.len() as u32;
    // A picture lasts `under` ticks of which there are `over` in a second.
    let duration = u64::from(count) * u64::from(rate.under);
    // Widths are shown as wide as they are meant to be.
    let wide = match aspect {
        Some(aspect) => (size.width as f64 * f64::from(aspect.over) / f64::from(aspect.under)).round(),
        None => size.width as f64,
    };
    let sequence = &sets[0];
    let entry = Avc1 {
        visual: Visual {
            data_reference_index: 1,
            width: size.width as u16,
            height: size.height as u16,
            ..Visual::default()
        },
        avcc: Avcc {
            configuration_version: 1,
            avc_profile_indication: sequence[1],
            profile_compatibility: sequence[2],
            avc_level_indication: sequence[3],
            length_size: 4,
            sequence_parameter_sets: vec![sequence.clone()],
            picture_parameter_sets: vec![sets[1].clone()],
            ext: None,
        },
        pasp: aspect.map(|ratio| Pasp { h_spacing: ratio.over, v_spacing: ratio.under }),
        colr: (is_full_range.is_some() || colour != Colour::UNKNOWN).then_some(Colr::Nclx {
            colour_primaries: colour.primaries.into(),
            transfer_characteristics: colour.transfer.into(),
            matrix_coefficients: colour.matrix.into(),
            full_range_flag: is_full_range == Some(true),
        }),
        ..Avc1::default()
    };
    // Pictures that are not shown in the order of decoding are shown later than they are decoded, all by as much as the latest
    // needs; what is shown begins there.
    let early = |(i, number): (usize, &u64)| (i as u64).saturating_sub(*number);
    let delay = numbers.iter().enumerate().map(early).max().unwrap_or(0);
    let mut offsets: Vec<CttsEntry> = Vec::new();
    for (i, number) in numbers.iter().enumerate() {
        let sample_offset = (number + delay - i as u64) as i64 * i64::from(rate.under);
        match offsets.last_mut() {
            Some(last) if last.sample_offset == sample_offset => last.sample_count += 1,
            _ => offsets.push(CttsEntry { sample_count: 1, sample_offset }),
        }
    }
    let edit =
        ElstEntry { segment_duration: duration, media_time: Some(delay * u64::from(rate.under)), media_rate: 1.into() };
    let edits = Edts { elst: Some(Elst { entries: vec![edit] }) };
    let table = Stbl {
        ctts: (delay > 0).then_some(Ctts { entries: offsets }),
        stsd: Stsd { codecs: vec![Codec::Avc1(entry)] },
        stts: Stts { entries: vec![SttsEntry { sample_count: count, sample_delta: rate.under }] },
        stss: Some(Stss { entries: keys.to_vec() }),
        stsc: Stsc {
            entries: vec![StscEntry { first_chunk: 1, samples_per_chunk: count, sample_description_index: 1 }],
        },
        stsz: Stsz { samples: StszSamples::Different { sizes: sizes.to_vec() } },
        co64: Some(Co64 { entries: vec![offset] }),
        ..Stbl::default()
    };
    let media = Minf {
        vmhd: Some(Vmhd::default()),
        dinf: Dinf { dref: Dref { entries: vec![DrefEntry::Url(Url::default())] } },
        stbl: table,
        ..Minf::default()
    };
    let track = Trak {
        tkhd: Tkhd {
            track_id: 1,
            duration,
            enabled: true,
            in_movie: true,
            width: FixedPoint::from(wide.clamp(1.0, 65535.0) as u16),
            height: FixedPoint::from(size.height as u16),
            ..Tkhd::default()
        },
        edts: (delay > 0).then_some(edits),
        mdia: Mdia {
            mdhd: Mdhd { timescale: rate.over, duration, language: "und".into(), ..Mdhd::default() },
            hdlr: Hdlr { handler: mp4_atom::FourCC::new(b"vide"), name: "video".into() },
            minf: media,
        },
        ..Trak::default()
    };
    Moov {
        mvhd: Mvhd {
            creation_time: 0,
            modification_time: 0,
            timescale: rate.over,
            duration,
            rate: 1.into(),
            volume: 1.into(),
            matrix: Default::default(),
            next_track_id: 2,
        },
        trak: vec![track],
        ..Moov::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{Profile, Ratio, Structure, parameter_sets};
    use crate::picture::Size;

    /// A header that has become longer than was expected lies behind the pictures.
    #[test]
    fn a_header_without_room_lies_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let properties = Properties::plain(Size { width: 16, height: 16 }, Ratio { over: 25, under: 1 });
        let sets = parameter_sets(&properties, Profile::Baseline, Structure::PLAIN, 11);
        for (pictures, name) in [(9, b"moov"), (400, b"free")] {
            let expected = Expected { pictures: 9, keyint: 250, is_reordered: false };
            let taken = Taken::new(&properties, 1);
            let mut output = Output::file(&path, Container::Mp4, taken, Some(expected)).unwrap();
            let room = output.room;
            for number in 0..pictures {
                output.write(&Encoded { units: vec![vec![1, 2, 3]], is_key: number == 0, number }).unwrap();
            }
            let written = output.finish(&properties, &sets).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let begin = file_type().len();
            assert_eq!(bytes[begin + 4..][..4], *name, "{pictures}");
            assert_eq!(bytes[begin + room + 4..][..4], *b"mdat");
            assert_eq!(bytes.len() as u64, written.bytes);
        }
    }

    /// What goes on without end keeps nothing of each picture; a file with an index keeps all of them.
    #[test]
    fn only_what_has_an_index_grows() {
        let folder = tempfile::tempdir().unwrap();
        for (container, kept, keys) in [(Container::Bytes, 0, 0), (Container::Mp4, 9, 3)] {
            let properties = Properties::plain(Size { width: 16, height: 16 }, Ratio { over: 25, under: 1 });
            let taken = Taken::new(&properties, 1);
            let mut output = Output::file(&folder.path().join("out"), container, taken, None).unwrap();
            for number in 0..9 {
                output.write(&Encoded { units: vec![vec![1, 2, 3]], is_key: number % 3 == 0, number }).unwrap();
            }
            let found = [output.sizes.capacity() > 0, output.numbers.capacity() > 0, output.keys.capacity() > 0];
            assert_eq!(found, [kept > 0; 3], "{container:?}");
            assert_eq!([output.sizes.len(), output.numbers.len(), output.keys.len()], [kept, kept, keys]);
        }
    }
}
