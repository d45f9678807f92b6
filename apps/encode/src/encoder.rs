//! Pictures in, units of a stream out.

use crate::bits::{Bits, Unit, unit};
use crate::coder::{Link, Settings, Shot};
use crate::headers::{Header, Marking, Profile, Properties, Ratio, SliceType, Structure, parameter_sets, slice_header};
use crate::kernel::Kernels;
use crate::levels;
use crate::picture::{Frame, Picture};
use crate::rate::{Control, Keys, Look, Rate};
use crate::search::Effort;
use crate::source::{Glance, Source};
use crate::wave::Wave;
use multigrain::rooms::team::Steps;
use std::collections::VecDeque;
use std::sync::Arc;

/// Pictures whose quantisers are decided at once where they follow a rate of bits, at most, and their samples of luma.
const BATCH: usize = 4;
const BATCH_SAMPLES: usize = 16 << 20;

/// So many pictures tell what bits they take before the next ones are begun, where a rate of bits is followed: what a first guess
/// spends too much, a short video does not make up for.
const FIRST: u64 = 4;

/// Bins that a slice may have for each macroblock, beside 32 for each 3 of its bytes (7.4.2.10: a 32nd of 384 samples' bits).
const BINS_A_MACROBLOCK: u64 = 96;

/// A `cabac_zero_word`, as it is written.
const ZERO_WORD: [u8; 3] = [0, 0, 3];

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

/// What has to happen next.
#[derive(Debug)]
pub enum Next<'k> {
    /// A picture is to be encoded; those behind it can be asked for at once.
    Picture(Box<Flight<'k>>),
    /// One more picture has to come, or to be said not to.
    Source,
    /// So many pictures, in the order of decoding, have to be encoded, and what they took to be told.
    Bits(u64),
    /// Nothing: all that came have been begun.
    End,
}

/// A picture on its way through the encoder.
#[derive(Debug)]
pub struct Flight<'k> {
    /// Its rows.
    pub wave: Wave<'k>,
    /// Its place in the order of decoding, from 0.
    pub place: u64,
    header: Bits,
    slice_type: SliceType,
    /// The parameter sets that come before it.
    sets: Vec<Vec<u8>>,
}

impl Flight<'_> {
    /// Its units; once, when all of its rows are done.
    pub fn encoded(&self) -> Encoded {
        let kind = match self.slice_type {
            SliceType::I => Unit::IdrSlice,
            SliceType::P => Unit::Slice,
            SliceType::B => Unit::DisposableSlice,
        };
        let mut units = self.sets.clone();
        let (payload, bins) = self.wave.finish(self.header.clone());
        let mut slice = unit(kind, &payload);
        // So many bins are too fast for a decoder, unless words without meaning are read beside them (7.4.2.10).
        let free = BINS_A_MACROBLOCK * self.wave.shot().picture.size.macroblocks() as u64;
        let bytes = (3 * bins.saturating_sub(free)).div_ceil(32) as usize;
        let words = bytes.saturating_sub(slice.len()).div_ceil(ZERO_WORD.len());
        slice.extend(ZERO_WORD.repeat(words));
        units.push(slice);
        Encoded { units, is_key: self.slice_type == SliceType::I, number: self.wave.shot().picture.number }
    }

    /// The picture as a decoder shows it: its planes one after the other.
    ///
    /// # Panics
    /// If not all of its rows are done.
    pub fn shown(&self) -> Vec<u8> {
        let picture = &self.wave.shot().picture;
        assert!(picture.complete.count() >= self.wave.jobs() as u64, "picture {} is not complete", picture.number);
        // SAFETY: nobody writes a picture that is complete, and its memory is nobody else's while it lives.
        unsafe { picture.shown() }
    }
}

/// A picture that has come.
#[derive(Debug)]
struct Waiting {
    source: Source,
    look: Look,
    number: u64,
}

/// A picture that is to be encoded next.
#[derive(Debug)]
struct Decided {
    waiting: Waiting,
    slice_type: SliceType,
    qp: u8,
    /// Whether another scene began since the picture that it is predicted from.
    is_behind_cut: bool,
}

/// A picture that others may be predicted from.
#[derive(Debug)]
struct Kept {
    frame: Arc<Frame>,
    /// What it looks like, where pictures that stay are chosen by that.
    glance: Option<Glance>,
    /// Whether it is the last of its scene.
    is_last: bool,
}

/// Encodes pictures that come as they are shown; they go out in the order in which they are decoded. What is made of them
/// depends on nothing but the pictures.
#[derive(Debug)]
pub struct Encoder<'k> {
    properties: Properties,
    options: Options,
    kernels: &'k Kernels,
    /// Memory of pictures; nobody else's where nobody else has it.
    memory: Vec<Arc<Picture>>,
    /// Pictures that others may be predicted from, as a decoder keeps them, the last one first.
    kept: Vec<Kept>,
    /// Those of them that stay, by their numbers, and how many there were so far.
    long: Vec<Kept>,
    stayed: usize,
    /// Pictures that have come, those of them about which nothing was decided yet, and whether none will come.
    come: u64,
    waiting: VecDeque<Waiting>,
    has_ended: bool,
    /// Pictures that have types and quantisers, in the order of decoding, and how many there were so far, and until the last
    /// decision.
    decided: VecDeque<Decided>,
    decisions: [u64; 2],
    /// What pictures took about which the control has not been told.
    taken: VecDeque<u64>,
    told: u64,
    /// Pictures begun so far.
    begun: u64,
    /// Which of those that are shown the last key picture was, how many others may be predicted from came since, and how many
    /// keys there were.
    key: u64,
    since_key: u64,
    keys: u64,
    control: Control,
    level: u8,
}

impl<'k> Encoder<'k> {
    /// For pictures that have these properties.
    pub fn new(properties: Properties, options: Options, kernels: &'k Kernels) -> Encoder<'k> {
        let Ratio { over, under } = properties.rate;
        let bits = if let Rate::Bits(bits) = options.rate { Some(bits) } else { None };
        let level = levels::expected(&properties, options.structure.kept(), bits);
        Encoder {
            properties,
            options,
            kernels,
            memory: Vec::new(),
            kept: Vec::new(),
            long: Vec::new(),
            stayed: 0,
            come: 0,
            waiting: VecDeque::new(),
            has_ended: false,
            decided: VecDeque::new(),
            decisions: [0; 2],
            taken: VecDeque::new(),
            told: 0,
            begun: 0,
            key: 0,
            since_key: 0,
            keys: 0,
            control: Control::new(options.rate, options.keys, properties.size, f64::from(over) / f64::from(under)),
            level,
        }
    }

    /// The parameter sets: of the sequence, of pictures.
    pub fn parameter_sets(&self) -> [Vec<u8>; 2] {
        parameter_sets(&self.properties, self.options.profile, self.options.structure, self.level)
    }

    /// The next picture comes.
    pub fn push(&mut self, source: Source) {
        let look = self.control.look(&source);
        self.waiting.push_back(Waiting { source, look, number: self.come });
        self.come += 1;
    }

    /// No more pictures come.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Told how many bits the next picture took, in the order of decoding.
    pub fn learn(&mut self, bits: u64) {
        self.taken.push_back(bits);
    }

    /// Pictures about which something is decided at once, at least.
    fn batch(&self) -> usize {
        match self.options.rate {
            Rate::Bits(_) => {
                (BATCH_SAMPLES / (self.properties.size.width * self.properties.size.height)).clamp(1, BATCH)
            }
            Rate::Constant(_) | Rate::Quality(_) => 1,
        }
    }

    /// How many pictures that have come may wait, at most.
    pub fn waiting_at_once(&self) -> usize {
        self.batch().max(self.options.structure.bidirectional + 1)
    }

    /// The next picture in the order of decoding, or what it waits for.
    pub fn advance(&mut self) -> Next<'k> {
        if self.decided.is_empty() {
            let batch = self.batch();
            if self.has_ended && self.waiting.is_empty() {
                return Next::End;
            }
            if !self.has_ended && self.waiting.len() < batch || self.group(0).is_none() {
                return Next::Source;
            }
            if let Rate::Bits(_) = self.options.rate {
                // All but those of the last decision, which may be under way: the same however fast they are.
                let [all, before] = self.decisions;
                let known = if all <= FIRST { all } else { before };
                if self.told + (self.taken.len() as u64) < known {
                    return Next::Bits(known);
                }
                while self.told < known {
                    self.taken.pop_front().into_iter().for_each(|bits| self.control.learn(bits));
                    self.told += 1;
                }
            }
            self.decide();
        }
        match self.decided.pop_front() {
            Some(decided) => Next::Picture(Box::new(self.begin(decided))),
            None => Next::End,
        }
    }

    /// Types and quantisers of all pictures that wait for none behind them; of the first ones where these are to tell what they take.
    fn decide(&mut self) {
        let is_first = matches!(self.options.rate, Rate::Bits(_)) && self.decisions[0] < FIRST;
        let (mut places, mut first) = (Vec::new(), 0);
        while let Some(count) = self.group(places.len()) {
            let begin = places.len();
            // The last one is what those before it are predicted from.
            let last = begin + count - 1;
            let slice_type = if self.waiting[last].look.is_key { SliceType::I } else { SliceType::P };
            let is_behind_cut = self.waiting.range(begin..=last).any(|waiting| waiting.look.is_cut);
            places.push((last, slice_type, is_behind_cut));
            places.extend((begin..last).map(|place| (place, SliceType::B, false)));
            first = if begin == 0 { count } else { first };
        }
        let looks: Vec<(Look, SliceType)> = places.iter().map(|(at, of, _)| (self.waiting[*at].look, *of)).collect();
        let count = if is_first { first } else { looks.len() };
        let quantisers = self.control.decide(&looks, count);
        self.decisions = [self.decisions[0] + count as u64, self.decisions[0]];
        let mut taken: Vec<Option<Waiting>> = self.waiting.drain(..count).map(Some).collect();
        for ((place, slice_type, is_behind_cut), qp) in places.into_iter().zip(quantisers) {
            let decided = |waiting| Decided { waiting, slice_type, qp, is_behind_cut };
            self.decided.extend(taken[place].take().map(decided));
        }
    }

    /// How many of the pictures that wait, without so many of the first, are to be encoded: one, which all before it are predicted
    /// from, too.
    fn group(&self, begin: usize) -> Option<usize> {
        let first = self.waiting.get(begin)?;
        if first.look.is_key {
            return Some(1);
        }
        let most = self.options.structure.bidirectional + 1;
        let left = self.waiting.len() - begin;
        // None is predicted from a key picture behind it.
        match self.waiting.range(begin..).take(most).position(|waiting| waiting.look.is_key) {
            Some(key) => Some(key),
            None if left >= most => Some(most),
            None => self.has_ended.then_some(left),
        }
    }

    /// Memory that nobody uses.
    fn free_memory(&mut self) -> Arc<Picture> {
        if let Some(free) = self.memory.iter_mut().position(|memory| Arc::get_mut(memory).is_some()) {
            return self.memory[free].clone();
        }
        let memory = Arc::new(Picture::new(self.properties.size, self.options.structure.kept()));
        self.memory.push(memory.clone());
        memory
    }

    /// Which of the pictures that stay is the first that one behind a cut is predicted from: one that looks more like it than the
    /// picture before.
    fn first(&self, glance: &Glance) -> Option<usize> {
        let distance = |kept: &Kept| kept.glance.as_ref().map_or(u64::MAX, |other| glance.distance(other));
        let (index, nearest) = self.long.iter().map(distance).enumerate().min_by_key(|(_, distance)| *distance)?;
        (nearest < distance(&self.kept[0])).then_some(index)
    }

    /// What a picture before others may be predicted from, as a decoder lists them: the last one first, then those that stay,
    /// but the one that is to be the first.
    fn list(&self, number: u64, first: Option<usize>) -> Vec<Link> {
        let away = |frame: &Frame| number as i64 - frame.number as i64;
        let nearest = &self.kept[0].frame;
        let last = |(i, kept): (usize, &Kept)| match (i, &kept.frame) {
            (0, frame) => Link::new(frame, frame, away(frame), frame.span),
            // What was found in the nearest, as far as this one is.
            (_, frame) => Link::new(frame, nearest, away(frame), away(nearest)),
        };
        // What moved since another scene says nothing.
        let old = |kept: &Kept| Link::new(&kept.frame, nearest, 0, 1);
        let count = if self.long.is_empty() { self.options.structure.references } else { self.kept.len() };
        let long = self.long.iter().enumerate().filter(|(i, _)| Some(*i) != first).map(|(_, kept)| old(kept));
        let lasts = self.kept.iter().take(count).enumerate().map(last);
        first.map(|first| old(&self.long[first])).into_iter().chain(lasts).chain(long).collect()
    }

    /// Makes room for one more picture that others are predicted from, and says what a decoder has to do for that.
    fn make_room(&mut self) -> Marking {
        let structure = self.options.structure;
        if self.kept.len() + self.long.len() < structure.kept() {
            return Marking::Sliding;
        }
        match self.kept.pop() {
            Some(oldest) if oldest.is_last && structure.long > 0 => {
                let (back, index) = (self.kept.len(), self.stayed % structure.long);
                let most = self.long.is_empty().then_some(structure.long);
                self.stayed += 1;
                let gone = match self.long.get_mut(index) {
                    Some(older) => {
                        *older = oldest;
                        None
                    }
                    None => {
                        self.long.push(oldest);
                        self.kept.pop().map(|_| self.kept.len())
                    }
                };
                Marking::Long { back, index, most, gone }
            }
            _ => Marking::Sliding,
        }
    }

    /// The next picture in the order of decoding: where it goes and what it is predicted from.
    fn begin(&mut self, Decided { waiting, slice_type, qp, is_behind_cut }: Decided) -> Flight<'k> {
        let number = waiting.number;
        if slice_type == SliceType::I {
            (self.key, self.since_key, self.keys) = (number, 0, self.keys + 1);
            self.kept.clear();
            self.long.clear();
            self.stayed = 0;
        }
        let first = if is_behind_cut && slice_type == SliceType::P { self.first(&waiting.source.glance) } else { None };
        let lists = match slice_type {
            SliceType::I => [Vec::new(), Vec::new()],
            SliceType::P => [self.list(number, first), Vec::new()],
            SliceType::B => {
                let [behind, before] = [0, 1].map(|i| &self.kept[i].frame);
                let away = |frame: &Frame| number as i64 - frame.number as i64;
                [before, behind].map(|frame| vec![Link::new(frame, behind, away(frame), behind.span)])
            }
        };
        let span = lists[0].first().map_or(1, |link| number as i64 - link.picture.number as i64);
        let memory = self.free_memory();
        let picture = Arc::new(Frame { memory, number, span, complete: Steps::default() });
        let is_reference = slice_type != SliceType::B;
        let mut marking = Marking::Sliding;
        let since_key = self.since_key;
        if is_reference {
            self.since_key += 1;
            if let Some(before) = self.kept.first_mut() {
                before.is_last = is_behind_cut;
            }
            marking = self.make_room();
            let glance = (self.options.structure.long > 0).then(|| waiting.source.glance.clone());
            self.kept.insert(0, Kept { frame: picture.clone(), glance, is_last: false });
        }
        let references = lists[0].len();
        let (order, key) = (number - self.key, self.keys);
        let header = Header { slice_type, number: since_key, order, key, references, first, marking, qp };
        let Options { profile, structure, effort, .. } = self.options;
        let settings = Settings::new(self.kernels, qp, effort, profile == Profile::Main);
        let shot = Shot { source: waiting.source, picture, lists, is_reference, settings };
        self.begun += 1;
        Flight {
            // SAFETY: the memory was nobody's, and what is in the lists was begun before; all have the encoder's size.
            wave: unsafe { Wave::new(shot) },
            place: self.begun - 1,
            header: slice_header(&header, profile, structure),
            slice_type,
            sets: if slice_type == SliceType::I { self.parameter_sets().to_vec() } else { Vec::new() },
        }
    }
}

/// What each unit of a stream of bytes begins with.
pub const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// Units as they follow one another in a stream of bytes (Annex B).
pub fn with_start_codes(units: &[Vec<u8>]) -> Vec<u8> {
    units.iter().flat_map(|unit| [&START_CODE, &unit[..]].concat()).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::picture::Size;
    use multigrain::Abort;
    use multigrain_simd::Isa;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// All of an encoder, by threads that share rows and borders: for Miri, which sees every access of the plain kernels.
    fn stream(profile: Profile, structure: Structure, threads: usize) -> Vec<u8> {
        // Seven rows: the next picture begins before the last row of the one before. Miri sees that once.
        let rows = if cfg!(miri) && profile == Profile::Baseline { 2 } else { 7 };
        let size = Size { width: 16, height: 16 * (rows - 1) + 2 };
        let properties = Properties::plain(size, Ratio { over: 25, under: 1 });
        // Without parts, what can be skipped is skipped first.
        let has_parts = profile == Profile::Main;
        let effort = Effort { steps: 2, fine: 1, enough: 8, intra: 8, has_parts, skips_first: !has_parts };
        let (keys, rate) = (Keys { interval: 9, at_cuts: false }, Rate::Constant(24));
        let (kernels, abort) = (Kernels::new(Isa::Scalar), Abort::new());
        let mut encoder = Encoder::new(properties, Options { rate, keys, effort, profile, structure }, &kernels);
        for number in 0..2 + structure.bidirectional {
            // Under Miri there is little to do in rows but the first, which is under way beside the last one of the picture before.
            let sample = |at: usize| match cfg!(miri) && at >= 256 {
                true => 128,
                false => ((at % 16 + 3 * number) * (at / 16 + number) % 97 + at * at % 5 * 20) as u8,
            };
            let mut source = Source::default();
            source.fill(size, &(0..size.bytes()).map(sample).collect::<Vec<u8>>());
            encoder.push(source);
        }
        encoder.end();
        let mut flights = Vec::new();
        while let Next::Picture(flight) = encoder.advance() {
            flights.push(flight);
        }
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(flight) = flights.get(next.fetch_add(1, Ordering::Relaxed) / rows) {
                        flight.wave.step(&abort);
                    }
                });
            }
        });
        flights.iter().flat_map(|flight| with_start_codes(&flight.encoded().units)).collect()
    }

    #[test]
    fn whole_encodes_stay_within_their_memory() {
        let both = Structure { bidirectional: 1, ..Structure::PLAIN };
        for (profile, structure) in [(Profile::Baseline, Structure::PLAIN), (Profile::Main, both)] {
            let found = stream(profile, structure, 2);
            assert_eq!(found[..5], [0, 0, 0, 1, 0x67]);
            // Miri takes minutes for one.
            assert!(cfg!(miri) || stream(profile, structure, 1) == found, "{profile:?}");
        }
    }
}
