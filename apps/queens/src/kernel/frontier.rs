//! Search on whole registers of nodes.
//!
//! Every depth has a stack of nodes, each with the places that are still to be tried. A turn takes a batch from one stack;
//! lane by lane the lowest place becomes a queen, children without a place in one of the next rows are dropped, the
//! others are packed onto the next depth's stack, and nodes that have places left are packed for the next round of the
//! same batch. So all lanes work, but for the last register of a round.
//!
//! A batch comes from the deepest stack that has a full one: this keeps stacks short. Where none has, the shallowest
//! that is not empty goes, batch or not: it fills those below, and at the end each depth has one turn that is not full.
//!
//! A batch is several registers because what is read must have been written long before: a load that spans two stores
//! which are still on their way to the cache waits for both.

use crate::board::{Board, Node};
use multigrain::Abort;

/// Registers in a batch: measured, 8 to 32 do not differ by more than the noise.
const BATCH_REGISTERS: usize = 16;

/// A word that holds the columns of a board.
pub(super) trait Cell: Copy + Default {
    /// The lowest bits.
    fn of(word: u32) -> Self;
}

impl Cell for u32 {
    fn of(word: u32) -> u32 {
        word
    }
}

impl Cell for u16 {
    fn of(word: u32) -> u16 {
        word as u16
    }
}

/// The next rows, as one turn sees them.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// Steps from the row of the queens to the next, and so on.
    pub(super) steps: [u32; 3],
    /// What is open in the row after that of the queens, and so on.
    pub(super) open: [u32; 3],
    /// A node has no more children than this: the fields that are open in the row of the queens.
    pub(super) children: usize,
    /// Whether the next row is the last: then its places are solutions.
    pub(super) last: bool,
}

/// Nodes of one depth.
#[derive(Debug, Default)]
pub(super) struct Stack<C> {
    /// Four arrays of `room` cells: placed, left, right, places to be tried.
    cells: Vec<C>,
    room: usize,
    /// Nodes that are there.
    pub(super) len: usize,
}

impl<C: Cell> Stack<C> {
    /// Empties it, and gives it room for so many nodes at least.
    fn reserve(&mut self, nodes: usize) {
        self.len = 0;
        if self.room < nodes {
            self.room = nodes;
            self.cells = vec![C::default(); 4 * nodes];
        }
    }

    /// Where the four arrays begin, and how many cells each has.
    pub(super) fn arrays(&mut self) -> ([*mut C; 4], usize) {
        let begin = self.cells.as_mut_ptr();
        // Within the vector, which has four times `room` cells.
        ([0, 1, 2, 3].map(|i| begin.wrapping_add(i * self.room)), self.room)
    }

    fn push(&mut self, node: &Node, places: u32) {
        for (i, word) in [node.placed, node.left, node.right, places].into_iter().enumerate() {
            self.cells[i * self.room + self.len] = C::of(word);
        }
        self.len += 1;
    }
}

/// The stacks of a search; they are kept for the next one.
#[derive(Debug, Default)]
pub(super) struct Frontier<C> {
    stacks: Vec<Stack<C>>,
}

impl<C: Cell> Frontier<C> {
    /// The ways to fill two rows or more below `node`. `turn(from, to, take, rows)` takes the last `take` nodes of
    /// `from` off it, puts their children onto `to`, and returns the solutions that it found; it may write
    /// [`LANES_MAX`] cells beyond the last node of either.
    pub(super) fn count(
        &mut self,
        board: &Board,
        node: &Node,
        abort: &Abort,
        turn: impl Fn(&mut Stack<C>, &mut Stack<C>, usize, Rows) -> u64,
    ) -> Option<u64> {
        let first = node.depth as usize;
        // Depths at which nodes wait; those one above the last row are counted by the turn that would make them.
        let depths = board.rows().len() - first;
        let batch = BATCH_REGISTERS * LANES_MAX * size_of::<u16>() / size_of::<C>();
        self.stacks.resize_with(self.stacks.len().max(depths), Stack::default);
        self.stacks[0].reserve(1 + LANES_MAX);
        for depth in 1..depths {
            // Less than a batch waits whenever a turn of the depth above begins.
            let children = board.row(first + depth - 1).open.count_ones() as usize;
            self.stacks[depth].reserve(batch * (1 + children) + LANES_MAX);
        }
        match board.places(node) {
            0 => return Some(0),
            places => self.stacks[0].push(node, places),
        }
        let mut found = 0;
        let waiting = |stacks: &[Stack<C>]| {
            let depths = &stacks[..depths - 1];
            depths.iter().rposition(|s| s.len >= batch).or_else(|| depths.iter().position(|s| s.len > 0))
        };
        while let Some(depth) = waiting(&self.stacks) {
            let (above, below) = self.stacks.split_at_mut(depth + 1);
            let (from, to) = (&mut above[depth], &mut below[0]);
            let row = |ahead: usize| board.row(first + depth + ahead);
            let rows = Rows {
                steps: [row(0).step, row(1).step, row(2).step],
                open: [row(1).open, row(2).open, row(3).open],
                children: row(0).open.count_ones() as usize,
                last: depth + 2 == depths,
            };
            found += turn(from, to, from.len.min(batch), rows);
            if abort.is_raised() {
                return None;
            }
        }
        Some(found)
    }
}

/// Lanes of the widest register.
pub(super) const LANES_MAX: usize = 32;
