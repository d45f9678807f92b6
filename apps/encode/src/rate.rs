//! Which quantiser pictures get, and at which of them decoding can begin: decided before they are encoded, from what they look
//! like and from how many bits those before took. Neither knows of threads, so no bit depends on them.

use crate::headers::SliceType;
use crate::picture::{Block, Size};
use crate::source::{Change, Glance, Source};
use std::collections::VecDeque;

/// What the quantisers follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// The same for all pictures.
    Constant(u8),
    /// A quantiser for pictures of usual change, more where there is more change, since there less is seen (0 to 51).
    Quality(f64),
    /// So many bits a second, over some seconds.
    Bits(f64),
}

/// Key pictures have a quantiser of so much less, since all that follows is predicted from them (x264's ratio of 1.4).
const KEY_LESS: f64 = 3.0;

/// Pictures that none is predicted from have so much more (x264's ratio of 1.3).
const DISPOSABLE_MORE: f64 = 2.0;

/// How much of a difference in change between pictures their bits follow (x264's `qcomp`); the rest is taken by the quantiser.
const FOLLOWED: f64 = 0.6;

/// Change of a macroblock at which [`Rate::Quality`] is the quantiser itself: that of a film's usual scenes.
const USUAL_CHANGE: f64 = 40.0;

/// Bits that a unit of change takes in a film, at a step of one.
const USUAL_BITS: f64 = 4.0;

/// Seconds over which a deviation from the rate is made up for; and of so many what was not taken is kept, for a player buffers
/// no more of a quiet stretch for the busy one behind it.
const PATIENCE_SECONDS: f64 = 1.0;

/// Seconds of the rate that are made up for at most where more was taken: what no quantiser could have met is let go.
const DEBT_SECONDS: f64 = 5.0;

/// The quantiser may go down by so much from one decision to the next. Up it goes at once: what takes too much is soon far
/// above the rate.
const STEP_MAX: f64 = 4.0;

/// Differences within blocks of a key picture that take as many bits as a unit of change between pictures.
const DETAIL: f64 = 8.0;

/// A flash is so many pictures long, at most.
const FLASH_PICTURES: usize = 8;

/// Differences of samples to the mean of their block of 4 x 4 of luma, a macroblock: what coefficients are made of.
fn detail(blocks: &[Block]) -> f64 {
    let of = |block: &Block| -> u32 {
        let rows = block.luma.0.as_chunks::<16>().0;
        let four = |x: usize, y: usize| std::array::from_fn::<_, 16, _>(|at| rows[y + at / 4][x + at % 4]);
        let differences = |samples: [u8; 16]| -> u32 {
            let mean = (samples.iter().map(|sample| u16::from(*sample)).sum::<u16>() / 16) as u8;
            samples.iter().map(|sample| u32::from(sample.abs_diff(mean))).sum()
        };
        (0..16).map(|i| differences(four(i % 4 * 4, i / 4 * 4))).sum()
    };
    blocks.iter().map(|block| u64::from(of(block))).sum::<u64>() as f64 / blocks.len().max(1) as f64
}

/// A picture in the order in which pictures are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Whether decoding can begin there.
    pub is_key: bool,
    /// Whether another scene begins there.
    pub is_cut: bool,
    change: Change,
}

/// When decoding can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Pictures from one at which decoding can begin to the next, at most.
    pub interval: u32,
    /// Whether it can begin where something else is shown.
    pub at_cuts: bool,
}

/// Decides.
#[derive(Debug)]
pub struct Control {
    rate: Rate,
    keys: Keys,
    macroblocks: f64,
    pictures_per_second: f64,
    /// Those of late, the last one first.
    before: VecDeque<Glance>,
    since_key: u64,
    /// Change of late, a macroblock.
    change: f64,
    /// For a rate of bits: how many fewer were taken than it has, within bounds, and sums, of which older ones count less, of
    /// change and of bits times step of the quantiser.
    credit: f64,
    seen: [f64; 2],
    quantiser: Option<f64>,
    /// For a rate of bits: what was decided about pictures that are being encoded: expected change, and step.
    pending: VecDeque<(f64, f64)>,
}

/// The step of a quantiser, and back.
fn step(qp: f64) -> f64 {
    ((qp - 12.0) / 6.0).exp2()
}

fn qp_of(step: f64) -> f64 {
    12.0 + 6.0 * step.log2()
}

impl Control {
    /// For pictures of a size, so many a second.
    pub fn new(rate: Rate, keys: Keys, size: Size, pictures_per_second: f64) -> Control {
        Control {
            rate,
            keys,
            macroblocks: size.macroblocks() as f64,
            pictures_per_second,
            before: VecDeque::new(),
            since_key: 0,
            change: USUAL_CHANGE,
            credit: 0.0,
            seen: [0.0; 2],
            quantiser: None,
            pending: VecDeque::new(),
        }
    }

    /// Looks at the next picture that is shown.
    pub fn look(&mut self, source: &Source) -> Look {
        let glance = &source.glance;
        let mut change = match self.before.front() {
            Some(before) => glance.change(before),
            None => Change { is_cut: true, ..glance.change(glance) },
        };
        // What comes back behind a flash is no other scene.
        let is_cut = change.is_cut && self.before.iter().skip(1).all(|before| glance.change(before).is_cut);
        let is_key =
            self.before.is_empty() || is_cut && self.keys.at_cuts || self.since_key + 1 >= self.keys.interval.into();
        self.since_key = if is_key { 0 } else { self.since_key + 1 };
        self.before.push_front(glance.clone());
        self.before.truncate(FLASH_PICTURES);
        if is_key && matches!(self.rate, Rate::Bits(_)) {
            change.detail = detail(&source.blocks) / DETAIL;
        }
        Look { is_key, is_cut, change }
    }

    /// The quantisers of the first `count` of pictures that will be encoded next, in this order, all at once.
    pub fn decide(&mut self, pictures: &[(Look, SliceType)], count: usize) -> Vec<u8> {
        // What a picture is expected to take, in proportion.
        let expected = |(look, slice_type): &(Look, SliceType)| match slice_type {
            SliceType::I => look.change.detail + 4.0,
            SliceType::P => look.change.between + 1.0,
            SliceType::B => (look.change.between + 1.0) / 2.0,
        };
        let base = match self.rate {
            Rate::Constant(qp) => f64::from(qp),
            Rate::Quality(qp) => qp,
            Rate::Bits(rate) => self.for_bits(rate, pictures.iter().map(expected).sum(), pictures.len()),
        };
        let decided = pictures[..count].iter().map(|picture| {
            self.change += (picture.0.change.between + 1.0 - self.change) / 8.0;
            let more = match self.rate {
                Rate::Quality(_) => 6.0 * (1.0 - FOLLOWED) * (self.change / USUAL_CHANGE).log2(),
                _ => 0.0,
            };
            let more = more.clamp(-6.0, 6.0)
                + match picture.1 {
                    SliceType::I => -KEY_LESS,
                    SliceType::P => 0.0,
                    SliceType::B => DISPOSABLE_MORE,
                };
            let qp = (base + more).round().clamp(0.0, 51.0) as u8;
            if let Rate::Bits(_) = self.rate {
                self.pending.push_back((expected(picture), step(qp.into())));
            }
            qp
        });
        decided.collect()
    }

    /// The quantiser by which the next pictures meet a rate, by how many bits change has taken so far.
    fn for_bits(&mut self, rate: f64, expected: f64, pictures: usize) -> f64 {
        let a_picture = rate / self.pictures_per_second;
        // What is quiet tells little of what is busy, so what was seen is taken together with a picture of a film.
        let usual = USUAL_CHANGE * self.macroblocks;
        let bits_per_change = (self.seen[1] + USUAL_BITS * usual) / (self.seen[0] + usual);
        // Of pictures that are under way it is not known what they take, but it can be expected.
        let under_way: f64 = self.pending.iter().map(|(expected, step)| expected / step).sum();
        let late = self.credit + a_picture * self.pending.len() as f64 - bits_per_change * self.macroblocks * under_way;
        let wanted = a_picture * pictures as f64;
        let share = pictures as f64 / (PATIENCE_SECONDS * self.pictures_per_second).max(pictures as f64);
        let wanted = (wanted + late * share).max(wanted / 4.0);
        let found = qp_of((bits_per_change * expected * self.macroblocks / wanted).max(1e-3)).clamp(0.0, 51.0);
        let found = self.quantiser.map_or(found, |before| found.max(before - STEP_MAX));
        self.quantiser = Some(found);
        found
    }

    /// Told what the next picture took that was decided about, in that order.
    pub fn learn(&mut self, bits: u64) {
        let Some((expected, step)) = self.pending.pop_front() else { return };
        let bits = bits as f64;
        if let Rate::Bits(rate) = self.rate {
            let credit = self.credit + rate / self.pictures_per_second - bits;
            self.credit = credit.clamp(-rate * DEBT_SECONDS, rate * PATIENCE_SECONDS);
        }
        // A second is forgotten to a third.
        let kept = (-1.0 / self.pictures_per_second.max(1.0)).exp();
        self.seen = [self.seen[0] * kept + expected * self.macroblocks, self.seen[1] * kept + bits * step];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 64, height: 64 };

    fn source(sample: impl Fn(usize, usize) -> u8) -> Source {
        let luma = (0..64 * 64).map(|at| sample(at % 64, at / 64));
        let bytes: Vec<u8> = luma.chain(std::iter::repeat_n(128, 64 * 32)).collect();
        let mut source = Source::default();
        source.fill(SIZE, &bytes);
        source
    }

    /// Whether each is a key, and its quantiser; those that are none are predicted from the one before.
    fn decided<'a>(control: &mut Control, glances: impl Iterator<Item = &'a Source>) -> Vec<(bool, u8)> {
        let typed = |look: Look| (look, if look.is_key { SliceType::I } else { SliceType::P });
        let pictures: Vec<_> = glances.map(|source| typed(control.look(source))).collect();
        let quantisers = control.decide(&pictures, pictures.len());
        pictures.iter().map(|(look, _)| look.is_key).zip(quantisers).collect()
    }

    #[test]
    fn what_is_busy_behind_what_is_quiet_has_its_quantiser_at_once() {
        let (quiet, busy) = (source(|_, _| 128), source(|x, y| ((x * 7 + y * 13) * 5 % 256) as u8));
        let keys = Keys { interval: 1000, at_cuts: false };
        let mut control = Control::new(Rate::Bits(20e3), keys, SIZE, 25.0);
        for _ in 0..100 {
            decided(&mut control, std::iter::once(&quiet));
            control.learn(50);
        }
        let found = decided(&mut control, std::iter::once(&busy))[0];
        assert!(!found.0 && found.1 >= 20, "{found:?}");
    }

    #[test]
    fn another_scene_is_seen_and_movement_is_none() {
        let one = |shift: usize| source(move |x, y| ((x + shift) / 9 * 17 + y / 7 * 29) as u8 % 120);
        let other = source(|x, y| 140 + ((x * 5 + y * 3) % 97) as u8);
        let keys = Keys { interval: 100, at_cuts: true };
        let mut control = Control::new(Rate::Constant(20), keys, SIZE, 25.0);
        let all: Vec<Source> = (0..10).map(one).chain((0..10).map(|_| other.clone())).collect();
        let found = decided(&mut control, all.iter());
        let at: Vec<usize> = (0..20).filter(|i| found[*i].0).collect();
        assert_eq!(at, [0, 10]);
        assert!(found.iter().all(|(is_key, qp)| *qp == if *is_key { 17 } else { 20 }));
        let mut control = Control::new(Rate::Constant(20), Keys { at_cuts: false, ..keys }, SIZE, 25.0);
        assert_eq!(decided(&mut control, all.iter()).iter().filter(|(is_key, _)| *is_key).count(), 1);
    }

    /// A key picture by the interval hides no cut behind it, and scenes may be short; what flashes is none.
    #[test]
    fn cuts_beside_key_pictures_are_seen_and_flashes_are_not() {
        let scene = |number: usize| source(move |x, y| (60 * number + ((x * 5 + y * (3 + number)) % 41)) as u8);
        let keys_of = |numbers: &[usize]| -> Vec<usize> {
            let keys = Keys { interval: 10, at_cuts: true };
            let mut control = Control::new(Rate::Constant(20), keys, SIZE, 25.0);
            let all: Vec<Source> = numbers.iter().map(|number| scene(*number)).collect();
            let found = decided(&mut control, all.iter());
            (0..found.len()).filter(|i| found[*i].0).collect()
        };
        let runs = |runs: &[(usize, usize)]| -> Vec<usize> {
            runs.iter().flat_map(|(number, count)| std::iter::repeat_n(*number, *count)).collect()
        };
        assert_eq!(keys_of(&runs(&[(0, 12), (1, 9)])), [0, 10, 12]);
        assert_eq!(keys_of(&runs(&[(0, 3), (1, 2), (2, 3), (3, 4)])), [0, 3, 5, 8]);
        assert_eq!(keys_of(&runs(&[(0, 3), (3, 1), (0, 5)])), [0, 3]);
        assert_eq!(keys_of(&[0, 3, 0, 3, 0, 3, 0]), [0, 1]);
    }

    /// Pictures that take bits in inverse proportion to the step, with a factor that nobody told: the rate is met.
    #[test]
    fn a_rate_of_bits_is_met() {
        for (rate, factor) in [(1e4, 1.0), (1e5, 30.0), (3e5, 200.0)] {
            let all: Vec<Source> = (0..2).map(|i| source(move |x, y| ((x + i) * 5 + y * 3) as u8)).collect();
            let keys = Keys { interval: 250, at_cuts: true };
            let mut control = Control::new(Rate::Bits(rate), keys, SIZE, 25.0);
            let mut total = 0.0;
            for _ in 0..125 {
                let found = decided(&mut control, all.iter().chain(&all));
                let bits =
                    |(is_key, qp): (bool, u8)| (factor * 1000.0 / step(qp.into())) as u64 * if is_key { 5 } else { 1 };
                let bits: Vec<u64> = found.into_iter().map(bits).collect();
                total += bits.iter().sum::<u64>() as f64;
                bits.into_iter().for_each(|bits| control.learn(bits));
            }
            let found = total / 20.0;
            assert!((found / rate - 1.0).abs() < 0.1, "{rate}: {found}");
        }
    }

    /// A minute that takes next to nothing leaves no more than the rate's patience to what follows.
    #[test]
    fn a_quiet_stretch_is_not_spent_behind_it() {
        let rate = 3e5;
        let quiet = vec![source(|_, _| 16); 4];
        let busy: Vec<Source> = (0..4).map(|i| source(move |x, y| ((x + i * 9) * 37 + y * 11) as u8)).collect();
        let mut control = Control::new(Rate::Bits(rate), Keys { interval: 250, at_cuts: true }, SIZE, 25.0);
        let mut spent = |sources: &[Source], bits: &dyn Fn(u8) -> f64| {
            let found = decided(&mut control, sources.iter());
            let bits: Vec<f64> = found.into_iter().map(|(_, qp)| bits(qp)).collect();
            bits.iter().for_each(|bits| control.learn(*bits as u64));
            bits.iter().sum::<f64>()
        };
        for _ in 0..375 {
            spent(&quiet, &|_| 60.0);
        }
        let groups: Vec<f64> = (0..125).map(|_| spent(&busy, &|qp| 50_000.0 / step(qp.into()))).collect();
        let total: f64 = groups.iter().sum();
        assert!((total / (20.0 * rate) - 1.0).abs() < 0.1, "{total}");
        // Once the first pictures have told what such take: within any two seconds.
        let most = groups[2..].windows(12).map(|some| some.iter().sum::<f64>() * 25.0 / 48.0).fold(0.0, f64::max);
        assert!(most < 1.6 * rate, "{most}");
    }

    #[test]
    fn quality_spends_less_on_what_changes_much() {
        let keys = Keys { interval: 250, at_cuts: false };
        let last = |shift: usize| {
            let mut control = Control::new(Rate::Quality(25.0), keys, SIZE, 25.0);
            let all: Vec<Source> = (0..40).map(|i| source(move |x, y| ((x + i * shift) / 4 * 37 + y) as u8)).collect();
            decided(&mut control, all.iter()).last().map(|(_, qp)| *qp)
        };
        assert!(last(0) < last(4), "{:?} {:?}", last(0), last(4));
    }
}
