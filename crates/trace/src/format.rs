//! What a trace file is made of.

use crate::observed::Observed;
use crate::totals::Totals;

pub(crate) const MAGIC: [u8; 7] = *b"MGTRACE";
pub(crate) const VERSION: u8 = 4;
/// The oldest version that is read: it has neither what the operating system did nor its kinds of records; version 3 has not
/// where strands began, ended and off-loaded.
pub(crate) const VERSION_READ: u8 = 2;
/// Longest payload of a section; writers cut longer tables into several.
pub(crate) const PAYLOAD_BYTES_MAX: u64 = 64 << 20;
/// About how long a section of a table becomes before the next is begun.
pub(crate) const PAYLOAD_BYTES_SOFT: usize = 1 << 20;
/// Most workers, edges and so on of a header: far more than any machine has, and few enough to make room for each.
pub(crate) const COUNT_MAX: u64 = 1 << 20;

/// What a section holds. The name is its tag in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Head,
    Slot,
    Uses,
    Recs,
    Krnl,
    Sums,
    Done,
}

impl Tag {
    pub(crate) const ALL: [Tag; 7] = [Tag::Head, Tag::Slot, Tag::Uses, Tag::Recs, Tag::Krnl, Tag::Sums, Tag::Done];

    pub(crate) fn bytes(self) -> [u8; 4] {
        match self {
            Tag::Head => *b"HEAD",
            Tag::Slot => *b"SLOT",
            Tag::Uses => *b"USES",
            Tag::Recs => *b"RECS",
            Tag::Krnl => *b"KRNL",
            Tag::Sums => *b"SUMS",
            Tag::Done => *b"DONE",
        }
    }

    pub(crate) fn what(self) -> &'static str {
        match self {
            Tag::Head => "the header",
            Tag::Slot => "the table of blocks",
            Tag::Uses => "the table of uses",
            Tag::Recs => "the records",
            Tag::Krnl => "the names of other threads",
            Tag::Sums => "the sums",
            Tag::Done => "the end",
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The first tick of the run.
    pub start: u64,
    /// The last tick of the run.
    pub tick: u64,
    /// Nanoseconds from the first tick to the last by the operating system's clock; 0 if the header's rate is exact.
    pub elapsed_ns: u64,
    /// Records that there was no room for.
    pub dropped: u64,
    /// Sums of each worker, which include dropped records. May be empty.
    pub totals: Vec<Totals>,
    /// What is told of the operating system at the end, if it was observed.
    pub observed: Observed,
}

impl End {
    /// The run has also been from one tick to another.
    pub(crate) fn extend(&mut self, start: u64, tick: u64) {
        let before = self.tick.saturating_sub(self.start);
        (self.start, self.tick) = (self.start.min(start), self.tick.max(tick));
        // By the same two clocks as so far.
        if before > 0 {
            self.elapsed_ns = (self.elapsed_ns as f64 * (self.tick - self.start) as f64 / before as f64) as u64;
        }
    }
}
