//! One track whose numbers never jump, whatever its sender does.
//!
//! A sender that restarts, or a source that is pulled anew, begins at other sequence numbers, timestamps and with another
//! identifier (SSRC). Viewers see the first ones go on: the offsets are chosen once a beginning, so that the first packet follows
//! the last one sent, later by the time that has passed. Some numbers are left out between: the picture before was cut, and what
//! comes may be the rest of another. Sender reports are changed alike, so players that go by them stay
//! in step.

use crate::rtp::Header;
use std::time::{Duration, Instant};

/// What is added to the numbers of one sender.
#[derive(Clone, Copy, Debug)]
struct Offsets {
    source: u32,
    sequence: u16,
    timestamp: u32,
}

/// The numbers of one track.
#[derive(Debug)]
pub struct Continuity {
    clock_rate: u32,
    /// The identifier that viewers see.
    source: Option<u32>,
    offsets: Option<Offsets>,
    last: Option<(u16, u32, Instant)>,
}

/// Numbers that are left out before another beginning: more than one, which could have been the end of the picture before.
const LEFT_OUT: u16 = 2;

/// Packet types of RTCP (RFC 3550, section 12.1).
const SENDER_REPORT: u8 = 200;
/// The sender leaves (section 6.6).
const BYE: u8 = 203;

impl Continuity {
    /// A track whose timestamps have so many ticks a second.
    pub fn new(clock_rate: u32) -> Continuity {
        Continuity { clock_rate, source: None, offsets: None, last: None }
    }

    /// What comes next is another beginning.
    pub fn restart(&mut self) {
        self.offsets = None;
    }

    /// Whether a packet is the first of another beginning.
    pub fn begins(&self, header: &Header) -> bool {
        self.offsets.is_none_or(|offsets| offsets.source != header.source)
    }

    /// A packet is not passed on: those behind it close up, so that viewers do not wait for it.
    pub fn leave_out(&mut self) {
        if let Some(offsets) = &mut self.offsets {
            offsets.sequence = offsets.sequence.wrapping_sub(1);
        }
    }

    /// Sequence number, timestamp and identifier with which a packet is passed on. Packets come in order.
    pub fn translate(&mut self, header: &Header, now: Instant) -> (u16, u32, u32) {
        let source = *self.source.get_or_insert(header.source);
        let offsets = match self.offsets.filter(|_| !self.begins(header)) {
            Some(offsets) => offsets,
            None => {
                let (sequence, timestamp) = self.last.map_or((0, 0), |(sequence, timestamp, at)| {
                    let passed = now.saturating_duration_since(at).max(Duration::from_millis(1));
                    let ticks = (passed.as_nanos() * u128::from(self.clock_rate) / 1_000_000_000) as u32;
                    let (next, then) = (sequence.wrapping_add(1 + LEFT_OUT), timestamp.wrapping_add(ticks));
                    (next.wrapping_sub(header.sequence), then.wrapping_sub(header.timestamp))
                });
                *self.offsets.insert(Offsets { source: header.source, sequence, timestamp })
            }
        };
        let sequence = header.sequence.wrapping_add(offsets.sequence);
        let timestamp = header.timestamp.wrapping_add(offsets.timestamp);
        self.last = Some((sequence, timestamp, now));
        (sequence, timestamp, source)
    }

    /// Changes the reports of this track's sender in a compound packet of RTCP; false if there is none, or the packet is
    /// malformed, and then it is not passed on. That the sender leaves is left out: for viewers its stream goes on.
    pub fn translate_reports(&self, packet: &mut Vec<u8>) -> bool {
        let (Some(offsets), Some(source)) = (self.offsets, self.source) else { return false };
        let (mut at, mut kept, mut is_ours) = (0, 0, false);
        while at < packet.len() {
            let Some(&[first, kind, high, low, ..]) = packet.get(at..) else { return false };
            let length = 4 * (usize::from(u16::from_be_bytes([high, low])) + 1);
            let Some(part) = packet.get_mut(at..at + length).filter(|_| first >> 6 == 2) else { return false };
            if kind == BYE {
                at += length;
                continue;
            }
            if let Some(identifier) = part.get_mut(4..8).filter(|id| **id == offsets.source.to_be_bytes()) {
                identifier.copy_from_slice(&source.to_be_bytes());
                if let Some(ticks) = part.get_mut(16..20).filter(|_| kind == SENDER_REPORT) {
                    let told = u32::from_be_bytes([ticks[0], ticks[1], ticks[2], ticks[3]]);
                    ticks.copy_from_slice(&told.wrapping_add(offsets.timestamp).to_be_bytes());
                    is_ours = true;
                }
            }
            packet.copy_within(at..at + length, kept);
            (at, kept) = (at + length, kept + length);
        }
        packet.truncate(kept);
        is_ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(source: u32, sequence: u16, timestamp: u32) -> Header {
        Header { sequence, timestamp, source, payload_type: 96, marker: false }
    }

    #[test]
    fn another_beginning_goes_on_where_the_last_ended() {
        let (mut track, start) = (Continuity::new(90_000), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(track.translate(&header(7, 65535, 100), at(0)), (65535, 100, 7));
        assert_eq!(track.translate(&header(7, 0, 3700), at(40)), (0, 3700, 7));
        // Pulled again after two seconds, with other numbers.
        track.restart();
        assert_eq!(track.translate(&header(9, 500, 1_000_000), at(2040)), (1 + LEFT_OUT, 183_700, 7));
        assert_eq!(track.translate(&header(9, 501, 1_003_600), at(2080)), (2 + LEFT_OUT, 187_300, 7));
        // The sender changes without a word.
        assert_eq!(track.translate(&header(11, 4, 5), at(2180)).0, 3 + 2 * LEFT_OUT);
        let mut report = vec![0x80, 200, 0, 6, 0, 0, 0, 11, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2];
        report.extend([0x80, 203, 0, 0, 0x81, 203, 0, 1, 0, 0, 0, 11, 0x81, 202, 0, 1, 0, 0, 0, 11, 0x80, 203, 0, 0]);
        assert!(track.translate_reports(&mut report));
        assert_eq!((report.len(), report[29]), (36, 202), "it leaves, and its stream goes on");
        assert_eq!((&report[4..8], &report[32..36]), (&[0, 0, 0, 7][..], &[0, 0, 0, 7][..]));
        assert_eq!(report[16..20], (187_300_u32 + 9000).to_be_bytes());
        assert!(!track.translate_reports(&mut vec![0x80, 200, 0, 9, 0, 0, 0, 11]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        #[test]
        fn random_reports_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..64), v in any::<bool>()) {
            let mut track = Continuity::new(48_000);
            track.translate(&header(1, 2, 3), Instant::now());
            if let Some(first) = bytes.first_mut().filter(|_| v) {
                *first = 0x80;
            }
            let length = bytes.len();
            let _ = track.translate_reports(&mut bytes);
            prop_assert!(bytes.len() <= length);
        }

        /// Numbers go on by one from packet to packet, by some more where another sender begins, and never change back.
        #[test]
        fn numbers_go_on(beginnings in prop::collection::vec((any::<u32>(), any::<u16>(), any::<u32>(), 1..5_u16), 1..20)) {
            let (mut track, now) = (Continuity::new(90_000), Instant::now());
            let mut expected = None;
            for (source, sequence, timestamp, count) in beginnings {
                track.restart();
                for i in 0..count {
                    let (out, _, _) = track.translate(&header(source, sequence.wrapping_add(i), timestamp), now);
                    prop_assert_eq!(out, expected.unwrap_or(out));
                    expected = Some(out.wrapping_add(1));
                }
                expected = expected.map(|next| next.wrapping_add(LEFT_OUT));
            }
        }
    }
}
