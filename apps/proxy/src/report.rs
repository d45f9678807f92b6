//! What a source is told of a track that it sends: how much came, and how late.

use crate::rtp;
use std::time::Instant;

/// What the source is told of a track (RFC 3550, section 6.4.1).
#[derive(Default)]
pub struct Report {
    source: u32,
    first: Option<u16>,
    highest: u16,
    cycles: u32,
    received: u32,
    told_expected: u32,
    told_received: u32,
    /// The middle of the last sender report's time, and when it came.
    pub sender: Option<(u32, Instant)>,
}

impl Report {
    /// How many numbers are missing between the highest so far and a packet that comes next.
    pub fn missing_before(&self, header: &rtp::Header) -> u64 {
        let step = header.sequence.wrapping_sub(self.highest);
        let goes_on = self.first.is_some() && self.source == header.source && (1..1 << 15).contains(&step);
        if goes_on { u64::from(step - 1) } else { 0 }
    }

    /// A packet has come.
    pub fn received(&mut self, header: &rtp::Header) {
        if self.source != header.source {
            *self = Report { source: header.source, first: None, ..Report::default() };
        }
        self.received = self.received.wrapping_add(1);
        if self.first.is_none() {
            (self.first, self.highest) = (Some(header.sequence), header.sequence);
        } else if header.sequence.wrapping_sub(self.highest) < 1 << 15 {
            self.cycles += u32::from(header.sequence < self.highest);
            self.highest = header.sequence;
        }
    }

    /// A receiver report.
    pub fn write(&mut self, now: Instant) -> Option<[u8; 32]> {
        let highest = self.cycles << 16 | u32::from(self.highest);
        let expected = highest.wrapping_sub(u32::from(self.first?)).wrapping_add(1);
        let lost = expected.saturating_sub(self.received).min(0x7f_ffff);
        let (new, came) = (expected.wrapping_sub(self.told_expected), self.received.wrapping_sub(self.told_received));
        let fraction = if new > came && new > 0 { (u64::from(new - came) * 256 / u64::from(new)).min(255) } else { 0 };
        (self.told_expected, self.told_received) = (expected, self.received);
        let (middle, delay) = self.sender.map_or((0, 0), |(middle, at)| {
            let passed = now.saturating_duration_since(at);
            (middle, (passed.as_nanos() * 65_536 / 1_000_000_000) as u32)
        });
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&[0x81, 201, 0, 7]);
        let words = [0x6d67_7278, self.source, lost | (fraction as u32) << 24, highest, 0, middle, delay];
        for (place, word) in bytes[4..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told goes on where the 16 bits of a packet's number end.
    #[test]
    fn rounds_of_numbers_are_counted() {
        let (mut report, now) = (Report::default(), Instant::now());
        for sequence in [65_534, 65_535, 1, 0, 2] {
            let header = rtp::Header { sequence, timestamp: 0, source: 7, payload_type: 96, marker: false };
            report.received(&header);
        }
        let told = report.write(now).unwrap();
        assert_eq!((&told[8..12], &told[16..20]), (&[0, 0, 0, 7][..], &[0, 1, 0, 2][..]));
        assert_eq!(told[12..16], [0; 4], "nothing is lost");
    }
}
