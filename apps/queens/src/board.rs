//! What is left of a board to be filled: rows from the top down, each with the columns that are open in it.

/// A row that wants a queen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    /// Bit `c` is set where column `c` is attacked by none of the queens that were placed before the search.
    pub open: u32,
    /// Rows of the whole board from this one to the next that wants a queen: at least 1, and of no meaning in the last.
    pub step: u32,
}

/// What lies below the last row, for those who look ahead: never without a place, whatever was placed above.
const BEYOND: Row = Row { open: u32::MAX, step: u32::BITS };

/// Rows that want a queen each, and as many columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Board {
    columns: u32,
    rows: Vec<Row>,
}

/// Queens in the first rows of a [`Board`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    /// How many rows have their queen.
    pub depth: u32,
    /// Columns of these queens.
    pub placed: u32,
    /// What they attack in the next row (in row `depth`) towards higher columns.
    pub left: u32,
    /// The same towards lower columns.
    pub right: u32,
}

impl Node {
    /// No queen yet.
    pub const ROOT: Node = Node { depth: 0, placed: 0, left: 0, right: 0 };
}

impl Board {
    /// A board whose queens stand in `columns`, one in each of `rows` and one in each column.
    ///
    /// # Panics
    /// Where there are not as many rows as columns, or a step is 0: then it is no such board.
    #[must_use]
    pub fn new(columns: u32, mut rows: Vec<Row>) -> Board {
        assert_eq!(columns.count_ones() as usize, rows.len(), "as many rows as columns");
        assert!(rows.iter().all(|row| row.step > 0), "rows lie below each other");
        rows.iter_mut().for_each(|row| row.open &= columns);
        // Nothing that was placed above is attacked beyond the last row: there everybody finds a place.
        rows.iter_mut().rev().take(1).for_each(|row| row.step = BEYOND.step);
        Board { columns, rows }
    }

    /// The columns.
    #[must_use]
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Row `k`, or one with room for everybody below the last.
    pub(crate) fn row(&self, k: usize) -> Row {
        self.rows.get(k).copied().unwrap_or(BEYOND)
    }

    /// The places of the next queen, one bit each; none where all rows are full.
    #[must_use]
    pub fn places(&self, node: &Node) -> u32 {
        let open = self.rows.get(node.depth as usize).map_or(0, |row| row.open);
        open & !(node.placed | node.left | node.right)
    }

    /// With one more queen, at the column of `bit`, which is one of [`Board::places`].
    #[must_use]
    pub fn place(&self, node: &Node, bit: u32) -> Node {
        let step = self.row(node.depth as usize).step;
        Node {
            depth: node.depth + 1,
            placed: node.placed | bit,
            left: (node.left | bit).checked_shl(step).unwrap_or(0),
            right: (node.right | bit).checked_shr(step).unwrap_or(0),
        }
    }
}

/// The bits of a word that are set, each alone, the lowest first.
pub(crate) fn bits(mut word: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word & word.wrapping_neg();
        word ^= bit;
        (bit != 0).then_some(bit)
    })
}

/// The largest board: its inner columns, 30 of them, and room to shift are one word; so are diagonals of the whole board in
/// the searches for symmetric solutions, in 64 bits.
pub const QUEENS_MAX: u32 = 32;
