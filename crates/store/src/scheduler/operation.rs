//! One operation and its states: waiting for its edge blocks, reading them, moving its bytes, complete.

use super::cut::{Cut, Via};
use super::edges::Edges;
use crate::transfer::Direction;

/// Which raw operation of an operation a completion belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The bytes themselves.
    Main = 0,
    /// The first edge block (or the whole range) that is read before an unaligned write.
    Head = 1,
    /// The last edge block.
    Tail = 2,
}

impl Part {
    /// Operation index and part as the key of a raw operation.
    pub(crate) fn key(self, operation: usize) -> u64 {
        (operation as u64) << 2 | self as u64
    }

    pub(crate) fn from_key(key: u64) -> (usize, Part) {
        let part = match key & 3 {
            0 => Part::Main,
            1 => Part::Head,
            _ => Part::Tail,
        };
        ((key >> 2) as usize, part)
    }
}

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
    /// Raw operations under way.
    pub(crate) pending: u32,
    /// Edge reads that came short and were repeated.
    pub(crate) retries: u32,
    /// Raw operations that the system put off and that were started again.
    pub(crate) put_off: u32,
    /// A part failed: nothing more is started.
    pub(crate) failed: bool,
}

impl Operation {
    pub(crate) fn edges(&self) -> Edges {
        self.cut.edges()
    }

    /// What must be read before the write: (part, first byte, bytes).
    pub(crate) fn edge_reads(&self, block_bytes: u64) -> [Option<(Part, u64, u64)>; 2] {
        match self.edges() {
            Edges::None => [None, None],
            Edges::All { first, len_bytes, .. } => [Some((Part::Head, first, len_bytes)), None],
            Edges::Ends { head, tail } => {
                [head.map(|block| (Part::Head, block, block_bytes)), tail.map(|block| (Part::Tail, block, block_bytes))]
            }
        }
    }
}

impl Cut {
    pub(crate) fn edges(&self) -> Edges {
        match self.via {
            Via::Memory(_) => Edges::None,
            Via::Staging { edges, .. } => edges,
        }
    }

    pub(crate) fn needs_staging(&self) -> bool {
        matches!(self.via, Via::Staging { .. })
    }
}
