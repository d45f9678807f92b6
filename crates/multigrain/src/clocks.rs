//! How the clocks of ranks stand to each other, so that what each has recorded lies on the first one's line.
//!
//! All send what their clock shows several times, and note what it shows when they have heard of all others. Who has heard of a moment
//! was later: so every round bounds the difference of two clocks from both sides, and the tightest bounds of all count (F. Cristian,
//! Probabilistic clock synchronization, Distributed Computing 3, 1989). Before the run and after it, which also gives their rates.

use multigrain_driver::ranks::{Ended, Ranks};
use multigrain_trace::{ClockInfo, Shift, now};

/// Messages by chance are slow, seldom all of several.
const ROUNDS: usize = 16;
/// What two rates that are known before a run may be wrong by, of each one part in 80,000 (`trace/src/clock.rs`).
const RATE_DOUBT: f64 = 2.0 / 80_000.0;

/// What a rank's clock showed.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// When it told the others.
    told: u64,
    /// When it had heard of all.
    heard: u64,
}

/// Of each rank the rate of its clock, in ticks a second, and the rounds.
#[derive(Clone, Debug)]
pub(crate) struct Readings(Vec<(f64, Vec<Round>)>);

/// Reads the clocks of all ranks. All call it.
pub(crate) fn read(ranks: &Ranks) -> Result<Readings, Ended> {
    let rate = ClockInfo::measured().ticks_per_second;
    let mut own = Vec::new();
    for _ in 0..ROUNDS {
        let told = now().0;
        ranks.gather(&[])?;
        own.push(Round { told, heard: now().0 });
    }
    let words = own.iter().flat_map(|round| [round.told, round.heard]);
    let bytes: Vec<u8> = [rate.to_bits()].into_iter().chain(words).flat_map(u64::to_le_bytes).collect();
    let all = ranks.gather(&bytes)?;
    Ok(Readings(all.iter().map(|bytes| of_bytes(bytes)).collect()))
}

fn of_bytes(bytes: &[u8]) -> (f64, Vec<Round>) {
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (rate, rounds) = words.split_first().unwrap_or((&0, &[]));
    let rounds = rounds.as_chunks().0.iter().map(|&[told, heard]| Round { told, heard }).collect();
    (f64::from_bits(*rate), rounds)
}

/// A tick of another clock, the same moment by the first rank's, and the seconds that it may be wrong by.
struct Anchor {
    from: u64,
    to: f64,
    doubt: f64,
}

impl Readings {
    /// Whether a clock may be the first rank's: no moment was heard of before it was.
    fn may_be_one(&self, rank: usize) -> bool {
        let [first, other] = [&self.0[0].1, &self.0[rank].1];
        first.iter().zip(other).all(|(first, other)| first.told <= other.heard && other.told <= first.heard)
    }

    fn anchor(&self, rank: usize) -> Anchor {
        let [(first_rate, first), (rate, other)] = [&self.0[0], &self.0[rank]];
        let [first_base, base] = [first, other].map(|rounds| rounds.first().map_or(0, |round| round.told));
        let seconds = |tick: u64, base: u64, rate: f64| (tick - base) as f64 / rate;
        // What the other shows more than the first, both counted from their bases on.
        let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
        for (one, another) in first.iter().zip(other) {
            least = least.max(seconds(another.told, base, *rate) - seconds(one.heard, first_base, *first_rate));
            most = most.min(seconds(another.heard, base, *rate) - seconds(one.told, first_base, *first_rate));
        }
        let more = (least + most) / 2.0;
        Anchor { from: base, to: first_base as f64 - more * first_rate, doubt: (most - least) / 2.0 }
    }
}

/// A rank's ticks as those of the first, by what was read before the run and after it.
pub(crate) fn shift(before: &Readings, after: &Readings, rank: usize) -> Shift {
    if before.may_be_one(rank) && after.may_be_one(rank) {
        return Shift::NONE;
    }
    let [begin, end] = [before, after].map(|readings| readings.anchor(rank));
    let ticks = end.from.saturating_sub(begin.from) as f64;
    let known = before.0[0].0 / before.0[rank].0;
    let doubt = (begin.doubt + end.doubt) * before.0[rank].0 / ticks.max(1.0);
    let rate = if doubt < RATE_DOUBT { (end.to - begin.to) / ticks } else { known };
    let best = if end.doubt < begin.doubt { end } else { begin };
    Shift { from: best.from, to: best.to.max(0.0).round() as u64, rate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A clock: ticks a second, in truth and as known, and what it shows at second 0.
    #[derive(Clone, Copy, Debug)]
    struct Clock {
        rate: f64,
        known: f64,
        at_zero: f64,
    }

    impl Clock {
        fn tick(&self, second: f64) -> u64 {
            (self.at_zero + second * self.rate) as u64
        }
    }

    /// What two ranks read from a second on, who all hear of all after some delays.
    fn readings(clocks: [Clock; 2], from: f64, delays: &[[f64; 2]]) -> Readings {
        let mut of = clocks.map(|clock| (clock.known, Vec::new()));
        let mut told = [from; 2];
        for delays in delays {
            // Nobody has heard of all before all have told.
            let all = told[0].max(told[1]);
            for rank in 0..2 {
                let heard = all + delays[rank];
                of[rank].1.push(Round { told: clocks[rank].tick(told[rank]), heard: clocks[rank].tick(heard) });
                told[rank] = heard;
            }
        }
        Readings(of.to_vec())
    }

    proptest! {
        /// A moment of the run is found on the first clock as exactly as the fastest messages say, whatever the clocks.
        #[test]
        fn moments_are_found_as_exactly_as_messages_are_fast(
            rates in prop::array::uniform2(1e8..5e9),
            wrong in prop::array::uniform2(-1e-5..1e-5),
            at_zero in prop::array::uniform2(1e9..1e16),
            delays in prop::collection::vec(prop::array::uniform2(2e-6..2e-3), 2 * ROUNDS),
            seconds in 1e-3..1e4,
            part in 0.0..1.0,
        ) {
            let clock = |i: usize| Clock { rate: rates[i], known: rates[i] * (1.0 + wrong[i]), at_zero: at_zero[i] };
            let clocks = [clock(0), clock(1)];
            let before = readings(clocks, 1.0, &delays[..ROUNDS]);
            let after = readings(clocks, 2.0 + seconds, &delays[ROUNDS..]);
            let shift = shift(&before, &after, 1);
            let second = 1.5 + part * seconds;
            let found = shift.tick(clocks[1].tick(second));
            let wrong = (found as f64 - clocks[0].tick(second) as f64) / rates[0];
            let doubt = before.anchor(1).doubt + after.anchor(1).doubt;
            // Once for the moments that rates are found by; once more where the run is too short for that, and known ones are used.
            let allowed = 2.0 * doubt + 1e-6;
            prop_assert!(wrong.abs() <= allowed, "{} s wrong, {} allowed", wrong, allowed);
        }
    }

    #[test]
    fn one_clock_is_found_to_be_one() {
        let clock = Clock { rate: 2e9, known: 2.00001e9, at_zero: 1e15 };
        let delays = [[1e-5, 3e-4]; ROUNDS];
        let [before, after] = [1.0, 5.0].map(|from| readings([clock; 2], from, &delays));
        assert_eq!(shift(&before, &after, 1), Shift::NONE);
        // A second beside it is another.
        let later = Clock { at_zero: clock.at_zero + 2e9, ..clock };
        let [before, after] = [1.0, 5.0].map(|from| readings([clock, later], from, &delays));
        assert_ne!(shift(&before, &after, 1), Shift::NONE);
    }
}
