//! How many nodes a search will visit, predicted from what is open.

use crate::board::{Board, Node};

/// How strongly two queens on different rows are taken to attack the same row: 1 would be queens at random. What is
/// searched is thinner than that, since dead ends are seen two and three rows ahead. Chosen so that predictions for
/// rings of boards of 12 to 16 are within a factor of two of the nodes visited, and each within a third of the others
/// after scaling; it decides about speed only.
const ATTACK: f64 = 1.3;

/// Predictions for boards of one width.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// The part of fields that a queen so many rows above leaves free of its diagonals.
    spared: Vec<f64>,
}

impl Model {
    /// For boards with so many columns, 1 at least.
    pub(crate) fn new(width: u32) -> Model {
        let w = f64::from(width);
        let spared = |distance: u32| 1.0 - 2.0 * ATTACK * (1.0 - f64::from(distance) / w).max(0.0) / w;
        Model { spared: (0..=2 * width + 2).map(|distance| spared(distance).max(0.0)).collect() }
    }

    /// Nodes below `node`, about: level by level, the fields open in a row times the chance that one of them is still open
    /// when queens stand in the rows between. Those take one column each, and diagonals by their distance.
    pub(crate) fn nodes(&self, board: &Board, node: &Node) -> f64 {
        let rows = &board.rows()[node.depth as usize..];
        let count = rows.len() as f64;
        let (mut left, mut right) = (node.left, node.right);
        let (mut level, mut all) = (1.0, 0.0);
        for (i, row) in rows.iter().enumerate() {
            let open = (row.open & !(node.placed | left | right)).count_ones();
            let mut free = f64::from(open) * (count - i as f64) / count;
            let mut distance = 0;
            for above in rows[..i].iter().rev() {
                distance += above.step as usize;
                free *= self.spared.get(distance).copied().unwrap_or(1.0);
            }
            level *= free;
            all += level;
            left = left.checked_shl(row.step).unwrap_or(0);
            right = right.checked_shr(row.step).unwrap_or(0);
        }
        all
    }
}
