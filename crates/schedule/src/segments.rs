//! Payloads in pieces that fit the areas of a buffer.

use std::ops::Range;

/// How a payload is cut: into rounds of at most a segment each. Every round is executed as a whole, in the other half
/// of the registers than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    bytes: u64,
    segment_bytes: u64,
}

impl Segments {
    pub(crate) const fn new(bytes: u64, segment_bytes: u64) -> Segments {
        Segments { bytes, segment_bytes }
    }

    /// Bytes of the whole payload.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of a full segment; 0 if there is nothing to move.
    pub const fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// How many rounds there are: one at least, because an operation on nothing synchronises too.
    pub const fn rounds(&self) -> u64 {
        if self.bytes == 0 { 1 } else { self.bytes.div_ceil(self.segment_bytes) }
    }

    /// Bytes of the payload that round `round` moves.
    pub fn round(&self, round: u64) -> Range<u64> {
        let begin = round.saturating_mul(self.segment_bytes).min(self.bytes);
        begin..begin.saturating_add(self.segment_bytes).min(self.bytes)
    }
}
