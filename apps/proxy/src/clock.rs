//! When units are shown and decoded: timestamps of packets on the clock of what is made of them.
//!
//! The clock is that of arrival: tracks begin at the time at which they came, and go on by their own timestamps as long as these are
//! believable. Packets tell when a picture is shown; when it is decoded is reckoned from the order in which they come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Seconds by which a track may be off the time of arrival before that counts again.
const OFF_MAX_S: u64 = 10;
/// The time at which clocks begin, seconds: pictures may be shown before the first that came.
const BEGIN_S: u64 = 10;

/// The times of one track, in its own ticks.
#[derive(Debug)]
pub struct Clock {
    /// Ticks a second.
    pub rate: u32,
    begun: Instant,
    last: Option<(u32, u64)>,
}

impl Clock {
    /// A clock that begins now, as that of others of the same stream.
    pub fn new(rate: u32, begun: Instant) -> Clock {
        Clock { rate, begun, last: None }
    }

    /// What time it is.
    pub fn passed(&self, now: Instant) -> u64 {
        ticks(now.saturating_duration_since(self.begun), self.rate) + BEGIN_S * u64::from(self.rate)
    }

    /// The time of a timestamp that has come now.
    pub fn time(&mut self, timestamp: u32, now: Instant) -> u64 {
        let passed = self.passed(now);
        let goes_on = self.last.and_then(|(before, at)| {
            let step = i64::from(timestamp.wrapping_sub(before) as i32);
            at.checked_add_signed(step).filter(|time| time.abs_diff(passed) < OFF_MAX_S * u64::from(self.rate))
        });
        let time = goes_on.unwrap_or(passed);
        self.last = Some((timestamp, time));
        time
    }
}

fn ticks(time: Duration, rate: u32) -> u64 {
    time.as_secs() * u64::from(rate) + u64::from(time.subsec_nanos()) * u64::from(rate) / 1_000_000_000
}

/// How old what is there may be by its timestamps, seconds.
const AGO_MAX_S: f64 = 60.0;

/// When batches came that are there, by the timestamps that some of them have: the last just now, others with the one before them, none
/// before another.
pub fn came(stamps: &[Option<u32>], rate: u32, now: Instant) -> Vec<Instant> {
    let last = stamps.iter().rev().find_map(|stamp| *stamp);
    let by_stamp = |stamp: u32| {
        let ticks = last.map_or(0, |last| last.wrapping_sub(stamp).cast_signed().max(0));
        let ago = f64::from(ticks) / f64::from(rate.max(1));
        if ago > AGO_MAX_S { now } else { now.checked_sub(Duration::from_secs_f64(ago)).unwrap_or(now) }
    };
    let first = stamps.iter().find_map(|stamp| *stamp).map_or(now, by_stamp);
    let times = stamps.iter().scan(first, |at, stamp| {
        *at = stamp.map_or(*at, |stamp| by_stamp(stamp).max(*at));
        Some(*at)
    });
    times.collect()
}

/// Pictures that come before ones that are shown earlier, at most (H.264, annex A.3.1; H.265, A.4.2).
const DEPTH_MAX: usize = 16;

/// When pictures are decoded that come in the order of decoding and tell when they are shown.
///
/// Where at most `depth` pictures come before one that is shown earlier, all but the last `depth` times of show are known to be
/// final, so the n-th picture is decoded when the (n - depth)-th is shown: nothing waits, and nobody is shown before it is
/// decoded. Where the depth is not told, it is learned.
#[derive(Debug)]
pub struct DecodeOrder {
    depth: usize,
    /// Less than this lies between two pictures, ticks.
    step: u64,
    waiting: BinaryHeap<Reverse<u64>>,
    last: Option<u64>,
}

impl DecodeOrder {
    /// Of pictures with a clock of so many ticks a second.
    pub fn new(rate: u32) -> DecodeOrder {
        DecodeOrder { depth: 0, step: u64::from(rate / 250).max(1), waiting: BinaryHeap::new(), last: None }
    }

    /// The depth, where the stream tells it.
    pub fn deepen(&mut self, depth: usize) {
        self.depth = self.depth.max(depth.min(DEPTH_MAX));
    }

    /// When a picture is decoded that is shown then; later for each than for the one before.
    pub fn time(&mut self, shown: u64) -> u64 {
        self.waiting.push(Reverse(shown));
        // Before the first, room for pictures that are shown before it although they come later: an eighth of a second each.
        let room = self.depth as u64 * 250 / 8 * self.step;
        let early = self.last.map_or(shown.saturating_sub(room), |last| last + self.step);
        let ripe = if self.waiting.len() > self.depth { self.waiting.pop() } else { None };
        let time = ripe.map_or(early.min(shown), |Reverse(time)| time);
        let time = self.last.map_or(time, |last| time.max(last + 1));
        if time > shown {
            // It came later than the depth allows, unless the clock was set back: then its time is not to be waited for.
            self.depth = (self.depth + 1).min(DEPTH_MAX);
            if time - shown > 250 * 8 * self.step {
                self.waiting.clear();
                self.last = None;
                return self.time(shown);
            }
        }
        self.last = Some(time);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sound between pictures comes when these do, not now.
    #[test]
    fn what_is_there_came_when_its_pictures_did() {
        let now = Instant::now() + Duration::from_secs(1000);
        let ago = |stamps: &[Option<u32>]| -> Vec<u128> {
            came(stamps, 90_000, now).iter().map(|at| (now - *at).as_millis()).collect()
        };
        let start = u32::MAX - 3599;
        assert_eq!(
            ago(&[None, Some(start), None, Some(0), None, None, Some(3600), None]),
            [80, 80, 80, 40, 40, 40, 0, 0]
        );
        // Pictures that are shown later come before others.
        assert_eq!(ago(&[Some(0), Some(7200), Some(3600), None, Some(9000)]), [100, 20, 20, 20, 0]);
        // No pictures, or timestamps that have jumped.
        assert_eq!(ago(&[None, None]), [0, 0]);
        assert_eq!(ago(&[Some(0), None, Some(90_000_000), Some(90_009_000)]), [0, 0, 0, 0]);
    }

    #[test]
    fn a_track_goes_on_by_its_timestamps() {
        let begun = Instant::now();
        let mut clock = Clock::new(90_000, begun);
        let at = |ms| begun + Duration::from_millis(ms);
        assert_eq!(clock.time(u32::MAX - 100, at(0)), 900_000);
        assert_eq!(clock.time(3500, at(7)), 900_000 + 3601);
        // Earlier pictures of the same.
        assert_eq!(clock.time(3400, at(9)), 900_000 + 3501);
        // What nobody believes is when it came.
        assert_eq!(clock.time(2_000_000_000, at(1000)), 990_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        /// With the depth told, times of decoding grow and are never behind those of show, whatever the order within the depth.
        #[test]
        fn nobody_is_shown_before_it_is_decoded(swaps in prop::collection::vec(0..4_usize, 1..60), depth in 1..4_usize) {
            // Groups as encoders make them: the last of up to `depth` + 1 comes first.
            let mut shown = Vec::new();
            let mut next = 100_000_u64;
            for group in swaps {
                let size = group.min(depth) + 1;
                let times: Vec<u64> = (0..size as u64).map(|i| next + i * 3600).collect();
                next += size as u64 * 3600;
                shown.push(times[size - 1]);
                shown.extend(&times[..size - 1]);
            }
            let mut order = DecodeOrder::new(90_000);
            order.deepen(depth);
            let mut last = None;
            for time in &shown {
                let decoded = order.time(*time);
                prop_assert!(decoded <= *time && last.is_none_or(|last| decoded > last), "{decoded} of {time} behind {last:?}");
                last = Some(decoded);
            }
            // Untold, it is learned within some groups.
            let (mut order, mut late) = (DecodeOrder::new(90_000), 0);
            for time in &shown {
                late += u32::from(order.time(*time) > *time);
            }
            prop_assert!(late <= 8, "{late} of {}", shown.len());
        }
    }
}
