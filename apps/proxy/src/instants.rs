//! Which timestamps of a stream's tracks are of one instant: what its sender's reports tell (RFC 3550, section 6.4.1).
//!
//! Packets of one instant come at different times, so nothing else tells which sound goes with which picture. Reports are seconds
//! apart: who begins to view is told at once what the last ones said, reckoned for the instant at which it begins.

use crate::sdp::{Description, TRACKS_MAX};

/// Seconds that lie between the beginnings of two tracks at most, if one clock is told of both.
const APART_MAX_S: i64 = 10;
/// A sender's clock that goes by more than a second otherwise than the timestamps was set.
const SET: u64 = 1 << 32;

/// What time it was on the sender's clock (seconds of NTP and 32 bits of their parts) when something was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    time: u64,
    stamp: u32,
    rate: u32,
}

impl Told {
    /// What a report tells of a track with so many ticks a second; nothing if it is none, or its sender has no clock.
    pub fn of(report: &[u8], rate: u32) -> Option<Told> {
        let word = |at: usize| Some(u32::from_be_bytes(report.get(at..at + 4)?.try_into().ok()?));
        let time = u64::from(word(8)?) << 32 | u64::from(word(12)?);
        (report[1] == 200 && time > 0 && rate > 0).then_some(Told { time, stamp: word(16)?, rate })
    }

    /// The sender's time of a timestamp.
    pub fn time(&self, stamp: u32) -> u64 {
        let ticks = i128::from(stamp.wrapping_sub(self.stamp).cast_signed());
        self.time.wrapping_add(((ticks << 32) / i128::from(self.rate)) as u64)
    }

    /// The timestamp of a time of the sender's.
    fn stamp(&self, time: u64) -> u32 {
        let passed = i128::from(time.wrapping_sub(self.time).cast_signed());
        self.stamp.wrapping_add(((passed * i128::from(self.rate) + (1 << 31)) >> 32) as u32)
    }
}

/// The last report of each track.
#[derive(Debug, Default)]
pub struct Instants {
    tracks: [Option<(Told, Box<[u8]>)>; TRACKS_MAX],
}

impl Instants {
    /// A report of a track has come.
    pub fn hear(&mut self, track: usize, description: &Description, report: &[u8]) {
        let rate = description.tracks.get(track).map(|track| track.clock_rate);
        let Some(told) = rate.and_then(|rate| Told::of(report, rate)) else { return };
        let Some(before) = self.tracks.get(track) else { return };
        let was_set = before.as_ref().is_some_and(|(before, _)| told.time.abs_diff(before.time(told.stamp)) > SET);
        if was_set {
            // What was told of others was told by the clock as it was.
            self.tracks = Default::default();
        }
        self.tracks[track] = Some((told, report.into()));
    }

    /// What is known of a track.
    pub fn told(&self, track: usize) -> Option<Told> {
        Some(self.tracks.get(track)?.as_ref()?.0)
    }

    /// The earliest instant, by the sender's clock, of those at which the tracks begin that are told of; `first` gives the timestamps. Nothing
    /// if they cannot be of one clock.
    pub fn earliest(&self, first: impl Fn(usize) -> Option<u32>) -> Option<u64> {
        let times: Vec<u64> = (0..TRACKS_MAX).filter_map(|track| Some(self.told(track)?.time(first(track)?))).collect();
        let base = *times.first()?;
        let apart = times.iter().map(|time| time.wrapping_sub(base).cast_signed());
        let (least, most) = (apart.clone().min()?, apart.max()?);
        (most.abs_diff(least) < (APART_MAX_S as u64) << 32).then_some(base.wrapping_add(least as u64))
    }

    /// A track's timestamp of an instant.
    pub fn stamp(&self, track: usize, instant: u64) -> Option<u32> {
        Some(self.told(track)?.stamp(instant))
    }

    /// The last report of a track, as if it were made at an instant, if one is given.
    pub fn report(&self, track: usize, instant: Option<u64>) -> Option<Vec<u8>> {
        let (told, report) = self.tracks.get(track)?.as_ref()?;
        let mut report = report.to_vec();
        if let Some(instant) = instant {
            report[8..16].copy_from_slice(&instant.to_be_bytes());
            report[16..20].copy_from_slice(&told.stamp(instant).to_be_bytes());
        }
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn described() -> Description {
        let text = "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\nm=audio 0 RTP/AVP 97\na=rtpmap:97 opus/48000/2\n";
        Description::parse(text.as_bytes()).unwrap()
    }

    fn report(time: u64, stamp: u32) -> Vec<u8> {
        [&[0x80, 200, 0, 6, 0, 0, 0, 7][..], &time.to_be_bytes(), &stamp.to_be_bytes(), &[0; 8]].concat()
    }

    #[test]
    fn a_clock_that_is_set_says_nothing_of_what_was_told_before() {
        let (mut instants, described) = (Instants::default(), described());
        let at = |seconds: u64| seconds << 32;
        instants.hear(0, &described, &report(at(100), u32::MAX - 89_999));
        instants.hear(1, &described, &report(at(102), 4800));
        // A second later, across the end of the timestamps.
        assert_eq!((instants.told(0).unwrap().time(0), instants.stamp(0, at(102))), (at(101), Some(90_000)));
        assert_eq!(instants.earliest(|track| [Some(0), Some(4800_u32.wrapping_sub(96_000))][track % 2]), Some(at(100)));
        // It goes on, half a second off; then it is set by an hour.
        instants.hear(0, &described, &report(at(105) + (1 << 31), 360_000));
        assert!(instants.told(1).is_some());
        instants.hear(0, &described, &report(at(3710), 720_000));
        assert!(instants.told(0).is_some() && instants.told(1).is_none());
        // Tracks that say that they begin at quite other times have no clock in common.
        instants.hear(1, &described, &report(at(9), 0));
        assert_eq!(instants.earliest(|_| Some(0)), None);
        // Who has no clock, or tells of no track that there is, tells nothing.
        instants.hear(1, &described, &report(0, 0));
        instants.hear(2, &described, &report(at(1), 0));
        assert_eq!((instants.told(1).unwrap().time(0), instants.told(2)), (at(9), None));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        /// Whatever is told, times and timestamps are each other's; what is no report does no harm.
        #[test]
        fn times_and_timestamps_are_each_others(
            time in any::<u64>(), stamp in any::<u32>(), rate in 1..10_000_000_u32, other in any::<u32>(),
            random in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let told = Told::of(&report(time.max(1), stamp), rate).unwrap();
            prop_assert_eq!(told.stamp(told.time(other)), other);
            let mut instants = Instants::default();
            instants.hear(0, &described(), &random);
            let _ = (instants.earliest(|_| Some(other)), instants.report(0, Some(time)));
        }
    }
}
