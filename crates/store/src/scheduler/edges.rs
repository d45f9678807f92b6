//! Blocks at the edges of unaligned writes, each in the hands of one operation at a time.
//!
//! Two writes that share a block each read it, change their own bytes and write it back. Done at once, one would undo
//! the other. So an operation takes its edge blocks together, all or none, before it reads them, and gives them back
//! when its write is complete. Blocks that a write covers wholly need no entry: a second write to them would change
//! the same bytes, which the contract of submitting forbids.

use std::collections::HashSet;

/// The blocks of a write that hold bytes which are not its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edges {
    /// None: the write covers whole blocks, or the operation is a read.
    None,
    /// The first, the last, or one block that is both; each by its first byte.
    Ends { head: Option<u64>, tail: Option<u64> },
    /// Gaps all along: the whole range is read, changed and written back.
    All { first: u64, len_bytes: u64, block_bytes: u64 },
}

impl Edges {
    pub(crate) fn ends(head: Option<u64>, tail: Option<u64>) -> Edges {
        match (head, tail) {
            (None, None) => Edges::None,
            (Some(_), Some(_)) if head == tail => Edges::Ends { head, tail: None },
            _ => Edges::Ends { head, tail },
        }
    }

    /// The first bytes of the blocks.
    fn blocks(self) -> impl Iterator<Item = u64> {
        let (ends, range, step) = match self {
            Edges::None => ([None, None], 0..0, 1),
            Edges::Ends { head, tail } => ([head, tail], 0..0, 1),
            Edges::All { first, len_bytes, block_bytes } => ([None, None], first..first + len_bytes, block_bytes),
        };
        ends.into_iter().flatten().chain(range.step_by(step as usize))
    }
}

/// The edge blocks that are taken: (file, first byte of the block).
#[derive(Debug, Default)]
pub(crate) struct EdgeBlocks(HashSet<(u64, u64)>);

impl EdgeBlocks {
    /// Takes all edges of an operation, or none.
    pub(crate) fn take(&mut self, file: u64, edges: Edges) -> bool {
        if edges.blocks().any(|block| self.0.contains(&(file, block))) {
            return false;
        }
        self.0.extend(edges.blocks().map(|block| (file, block)));
        true
    }

    /// Gives them back.
    pub(crate) fn give_back(&mut self, file: u64, edges: Edges) {
        for block in edges.blocks() {
            self.0.remove(&(file, block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_or_none() {
        let mut blocks = EdgeBlocks::default();
        let both = |head, tail| Edges::ends(Some(head), Some(tail));
        assert!(blocks.take(0, both(0, 4096)));
        assert!(!blocks.take(0, both(4096, 8192)), "4096 is taken");
        assert!(blocks.take(0, both(8192, 8192)), "8192 was not taken by the refused one");
        assert!(blocks.take(1, both(0, 4096)), "another file");
        blocks.give_back(0, both(0, 4096));
        assert!(!blocks.take(0, both(4096, 8192)));
        blocks.give_back(0, both(8192, 8192));
        assert!(blocks.take(0, both(4096, 8192)));
        assert!(blocks.take(0, Edges::None));
        assert!(!blocks.take(0, Edges::All { first: 0, len_bytes: 8192, block_bytes: 4096 }));
        assert!(blocks.take(0, Edges::All { first: 12288, len_bytes: 8192, block_bytes: 4096 }));
        assert!(!blocks.take(0, both(16384, 20480)));
    }
}
