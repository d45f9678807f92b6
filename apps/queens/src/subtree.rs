//! What a job is: some queens inside of a ring, and everything below.

use crate::board::{Node, bits};
use crate::predict::Model;
use crate::ring::Ring;
use multigrain::division::Divisible;

/// With fewer rows to be filled a node is not split.
const ROWS_MIN: usize = 4;

/// Rings that are searched, with what predicts the work.
#[derive(Debug, Clone)]
pub(crate) struct Forest {
    rings: Vec<Ring>,
    model: Model,
}

impl Forest {
    pub(crate) fn new(n: u32, rings: Vec<Ring>) -> Forest {
        Forest { rings, model: Model::new(n.saturating_sub(2).max(1)) }
    }

    /// All columns that any of the boards has.
    pub(crate) fn columns(&self) -> u32 {
        self.rings.iter().fold(0, |columns, ring| columns | ring.board.columns())
    }

    /// All rings, whole.
    pub(crate) fn trees(&self) -> impl Iterator<Item = Subtree<'_>> {
        self.rings.iter().map(|ring| Subtree { ring, node: Node::ROOT, nodes: ring.nodes, model: &self.model })
    }
}

/// A node of the search inside of a ring, with everything below.
#[derive(Debug, Clone)]
pub struct Subtree<'a> {
    /// The ring.
    pub ring: &'a Ring,
    /// The queens inside of it.
    pub node: Node,
    /// Nodes that are predicted to be visited.
    pub nodes: f64,
    model: &'a Model,
}

impl Divisible for Subtree<'_> {
    fn work(&self) -> f64 {
        self.nodes
    }

    fn divide(self) -> Result<Vec<Self>, Self> {
        let board = &self.ring.board;
        if board.rows().len() < self.node.depth as usize + ROWS_MIN {
            return Err(self);
        }
        let child = |bit| {
            let node = board.place(&self.node, bit);
            Subtree { node, nodes: self.model.nodes(board, &node), ..self }
        };
        Ok(bits(board.places(&self.node)).map(child).collect())
    }
}
