//! When units are shown and decoded: timestamps of packets on the clock of what is made of them.
//!
//! The clock is that of arrival: the lead begins at the time at which it came, and goes on by its own timestamps as long as these are
//! believable. Other tracks go by the sender's reports ([`Instants`]) where there are such, else as the lead does. Packets tell when a
//! picture is shown; when it is decoded is reckoned from the order in which they come.

use crate::instants::{Instants, Told};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Seconds by which a track may be off the time of arrival before that counts again.
const OFF_MAX_S: u64 = 10;
/// The time at which clocks begin, seconds: pictures may be shown before the first that came.
const BEGIN_S: u64 = 10;
/// A track is moved to where reports say by one part in so many, which nobody hears, unless it is off by a second: senders reckon
/// their reports carelessly. What is less than the other part of a second stays.
const SLOWLY: u64 = 200;
const EXACT: u64 = 1000;

/// The times of one track, in its own ticks.
#[derive(Debug)]
pub struct Clock {
    /// Ticks a second.
    pub rate: u32,
    begun: Instant,
    last: Option<(u32, u64)>,
    /// It has gone by reports since it began.
    is_aligned: bool,
}

/// How a track goes beside the lead.
#[derive(Clone, Copy, Debug)]
pub enum Beside {
    /// Nothing is told of that, or it is the lead.
    Untold,
    /// By what its reports tell, and by what is to be added to the sender's times for the time here, 1/2^32 s.
    Told(Told, u64),
    /// As is told when the lead has begun.
    Later,
}

impl Beside {
    /// As reports tell of both tracks.
    pub fn of(instants: &Instants, track: usize, (lead, clock): (usize, &Clock)) -> Beside {
        match (instants.told(track).zip(instants.told(lead)), clock.last) {
            (Some((own, other)), Some((stamp, at))) if track != lead => {
                Beside::Told(own, fixed(at, clock.rate).wrapping_sub(other.time(stamp)))
            }
            (Some(_), None) if track != lead => Beside::Later,
            _ => Beside::Untold,
        }
    }
}

impl Clock {
    /// A clock that begins now, as that of others of the same stream.
    pub fn new(rate: u32, begun: Instant) -> Clock {
        Clock { rate, begun, last: None, is_aligned: false }
    }

    /// What time it is.
    pub fn passed(&self, now: Instant) -> u64 {
        ticks(now.saturating_duration_since(self.begun), self.rate) + BEGIN_S * u64::from(self.rate)
    }

    /// The time of a timestamp that has come now; nothing if it is not known yet.
    pub fn time(&mut self, timestamp: u32, now: Instant, beside: Beside) -> Option<u64> {
        if matches!(beside, Beside::Later) {
            return None;
        }
        let (passed, rate) = (self.passed(now), u64::from(self.rate));
        let step = self.last.map_or(0, |(before, _)| i64::from(timestamp.wrapping_sub(before).cast_signed()));
        let goes_on = self
            .last
            .and_then(|(_, at)| at.checked_add_signed(step).filter(|time| time.abs_diff(passed) < OFF_MAX_S * rate));
        self.is_aligned &= goes_on.is_some();
        let mut time = goes_on.unwrap_or(passed);
        if let Beside::Told(told, shift) = beside {
            let off = told.time(timestamp).wrapping_add(shift).wrapping_sub(fixed(time, self.rate)).cast_signed();
            let off = ((i128::from(off) * i128::from(self.rate)) >> 32) as i64;
            let slowly = (step.unsigned_abs() / SLOWLY) as i64;
            let is_believed = off.unsigned_abs() < OFF_MAX_S * rate;
            let moved = match off.unsigned_abs() {
                _ if !is_believed => 0,
                size if !self.is_aligned || size > rate => off,
                size if size <= rate / EXACT => 0,
                _ => off.clamp(-slowly, slowly),
            };
            self.is_aligned |= is_believed;
            time = time.saturating_add_signed(moved);
        }
        self.last = Some((timestamp, time));
        Some(time)
    }
}

/// Ticks as seconds and 32 bits of their parts.
fn fixed(time: u64, rate: u32) -> u64 {
    ((u128::from(time) << 32) / u128::from(rate)) as u64
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
        assert_eq!(clock.time(u32::MAX - 100, at(0), Beside::Untold), Some(900_000));
        assert_eq!(clock.time(3500, at(7), Beside::Untold), Some(900_000 + 3601));
        // Earlier pictures of the same.
        assert_eq!(clock.time(3400, at(9), Beside::Untold), Some(900_000 + 3501));
        // What nobody believes is when it came.
        assert_eq!(clock.time(2_000_000_000, at(1000), Beside::Untold), Some(990_000));
    }

    /// Sound that comes 0.7 s after its pictures, of a camera whose clocks drift apart, and whose reports are careless.
    #[test]
    fn sound_goes_by_reports() {
        let text = "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\nm=audio 0 RTP/AVP 97\na=rtpmap:97 opus/48000/2\n";
        let described = crate::sdp::Description::parse(text.as_bytes()).unwrap();
        let (begun, mut instants) = (Instant::now(), Instants::default());
        let (mut lead, mut sound) = (Clock::new(90_000, begun), Clock::new(48_000, begun));
        let mut offs = Vec::new();
        for ms in (0..400_000_u64).step_by(20) {
            let now = begun + Duration::from_millis(ms);
            if ms % 5000 == 1000 {
                let careless = if ms % 10_000 == 1000 { 20 } else { 0 };
                for (track, stamp) in [(0, (ms - careless) as u32 * 90), (1, (ms * 48 + ms / 500) as u32)] {
                    let time = (7_000 + ms / 1000) << 32;
                    let head = [&[0x80, 200, 0, 6, 0, 0, 0, 7][..], &time.to_be_bytes()].concat();
                    instants.hear(track, &described, &[&head[..], &stamp.to_be_bytes(), &[0; 8]].concat());
                }
            }
            lead.time((ms * 90) as u32, now, Beside::Untold);
            let heard = ms as i64 - 700;
            let stamp = (heard * 48 + heard / 500) as u32;
            let before = sound.last.map(|(_, at)| at);
            let time = sound.time(stamp, now, Beside::of(&instants, 1, (0, &lead))).unwrap();
            let off = time as i64 * 90 / 48 - (900_000 + heard * 90);
            if let Some(before) = before.filter(|_| offs.len() > 50) {
                assert!((955..=967).contains(&(time - before)), "it jumps by {} at {ms}", time - before);
            }
            offs.push(off / 90);
        }
        // When it came, until there are reports; then when it was heard, give or take half of how careless these are.
        assert_eq!(offs[..50], [700; 50]);
        assert!(
            offs[50..].iter().all(|off| (-21..=1).contains(off)),
            "{:?} {:?}",
            offs[50..].iter().min(),
            offs[50..].iter().max()
        );
        // What nobody believes is as if it had not been told.
        let Beside::Told(told, shift) = Beside::of(&instants, 1, (0, &lead)) else { panic!("nothing is told") };
        let (_, at) = sound.last.unwrap();
        let stamp = sound.last.unwrap().0.wrapping_add(960);
        let now = begun + Duration::from_secs(400);
        assert_eq!(sound.time(stamp, now, Beside::Told(told, shift.wrapping_add(3600 << 32))), Some(at + 960));
        // What comes before the first picture has to wait for that.
        let none = Clock::new(90_000, begun);
        assert_eq!(sound.time(stamp, now, Beside::of(&instants, 1, (0, &none))), None);
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
