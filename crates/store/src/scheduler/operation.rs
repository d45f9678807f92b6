//! One operation: an aligned range of a file on its way.

use super::cut::Cut;
use crate::transfer::Direction;

/// How often one operation is started again that the system put off, before that counts as its fault.
pub(crate) const PUT_OFF_MAX: u32 = 10_000;

/// An operation under way.
pub(crate) struct Operation {
    /// The transfer that it belongs to.
    pub(crate) transfer: usize,
    pub(crate) direction: Direction,
    pub(crate) cut: Cut,
    /// The staging buffer that it holds.
    pub(crate) staging: Option<usize>,
    /// Where the range's bytes are in memory.
    pub(crate) memory: *mut u8,
    /// Bytes that are moved already.
    pub(crate) done_bytes: u64,
    /// How often the system put it off and it was started again.
    pub(crate) put_off: u32,
    /// How often the system could not carry it on since its thread had ended.
    pub(crate) orphaned: u32,
    /// Its completion must be seen soon, although nobody may wait for it.
    pub(crate) to_be_seen: bool,
}

impl Operation {
    /// What is still to be moved: first byte in the file, bytes.
    pub(crate) fn rest(&self) -> (u64, u64) {
        (self.cut.offset_bytes + self.done_bytes, self.cut.len_bytes - self.done_bytes)
    }
}
