//! One node at a time, in depth; a child is entered only if the row after the next has a place, too.

use crate::board::{Board, Node, bits};
use multigrain::Abort;

/// Between two looks at the abort.
const LOOK_NODES: u64 = 1 << 16;

/// The ways to fill two rows or more below `node`.
pub(super) fn count(board: &Board, node: &Node, abort: &Abort) -> Option<u64> {
    let mut search = Search { board, last: board.rows().len() - 1, abort, nodes: 0 };
    search.below(node)
}

struct Search<'a> {
    board: &'a Board,
    last: usize,
    abort: &'a Abort,
    nodes: u64,
}

impl Search<'_> {
    fn below(&mut self, node: &Node) -> Option<u64> {
        self.nodes += 1;
        if self.nodes.is_multiple_of(LOOK_NODES) && self.abort.is_raised() {
            return None;
        }
        let mut found = 0;
        for bit in bits(self.board.places(node)) {
            let child = self.board.place(node, bit);
            let places = self.board.places(&child);
            if child.depth as usize == self.last {
                found += u64::from(places.count_ones());
                continue;
            }
            let next = self.board.row(child.depth as usize);
            let after = self.board.row(child.depth as usize + 1);
            let left = child.left.checked_shl(next.step).unwrap_or(0);
            let right = child.right.checked_shr(next.step).unwrap_or(0);
            if places != 0 && after.open & !(child.placed | left | right) != 0 {
                found += self.below(&child)?;
            }
        }
        Some(found)
    }
}
