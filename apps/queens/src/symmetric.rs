//! Solutions that are their own images: under half a turn, under a quarter turn. All queens of an orbit are placed at once, so
//! these searches have the square root (the fourth root) of the tree of all solutions, and nothing in common with it.

use multigrain::Abort;
use smallvec::{SmallVec, smallvec};
use std::cell::Cell;

/// Between two looks at the abort.
const LOOK_NODES: u64 = 1 << 16;

/// For every so many rows of the board the queens of one more are placed in all ways before the search is handed out: the
/// parts of larger boards are more, and not much longer.
const ROWS_A_DIVISION: u32 = 8;

/// Rows, columns and both directions of diagonals that are taken: bit `r`, `c`, `r + c`, `r + n - 1 - c`.
#[derive(Clone, Copy, Default)]
struct Taken {
    rows: u64,
    columns: u64,
    sums: u64,
    differences: u64,
}

/// A search: the board's size, and who may end it.
struct Search<'a> {
    n: u32,
    abort: &'a Abort,
    nodes: Cell<u64>,
}

impl Search<'_> {
    /// With a queen at row `r` and column `c`, if nobody attacks it.
    fn with(&self, taken: Taken, r: u32, c: u32) -> Option<Taken> {
        let [row, column, sum, difference] = [r, c, r + c, r + self.n - 1 - c].map(|place| 1_u64 << place);
        let attacked = taken.rows & row | taken.columns & column | taken.sums & sum | taken.differences & difference;
        (attacked == 0).then_some(Taken {
            rows: taken.rows | row,
            columns: taken.columns | column,
            sums: taken.sums | sum,
            differences: taken.differences | difference,
        })
    }

    /// The columns of the first row that is free, with their orbits placed; `None` where all rows are taken.
    fn next(&self, taken: Taken, symmetry: Symmetry) -> Option<impl Iterator<Item = Taken>> {
        let row = taken.rows.trailing_ones();
        let placed = move |column| {
            // Queens of one orbit that would stand in one line, or on one field, attack each other.
            symmetry.orbit(self.n, row, column).iter().try_fold(taken, |taken, &(r, c)| self.with(taken, r, c))
        };
        let free = move |column: &u32| taken.columns >> column & 1 == 0;
        (row < self.n).then(|| (0..self.n).filter(free).filter_map(placed))
    }

    fn count(&self, taken: Taken, symmetry: Symmetry) -> Option<u64> {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get().is_multiple_of(LOOK_NODES) && self.abort.is_raised() {
            return None;
        }
        let Some(next) = self.next(taken, symmetry) else { return Some(1) };
        let mut found = 0;
        for placed in next {
            found += self.count(placed, symmetry)?;
        }
        Some(found)
    }
}

/// What leaves a solution as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// Half a turn.
    Point,
    /// A quarter turn.
    Rotation,
}

impl Symmetry {
    /// Where queens stand if one stands at row `r` and column `c`.
    fn orbit(self, n: u32, r: u32, c: u32) -> SmallVec<[(u32, u32); 4]> {
        let opposite = (n - 1 - r, n - 1 - c);
        match self {
            Symmetry::Point => smallvec![(r, c), opposite],
            Symmetry::Rotation => smallvec![(r, c), (c, n - 1 - r), opposite, (n - 1 - c, r)],
        }
    }

    /// The search for all such solutions of n x n, n from 1 to 32, in parts.
    #[must_use]
    pub fn parts(self, n: u32) -> Vec<Symmetric> {
        let search = Search { n, abort: &Abort::new(), nodes: Cell::new(0) };
        let centre = match n % 2 {
            0 => Some(Taken::default()),
            // The middle row's queen is its own image: it stands in the centre.
            _ => search.with(Taken::default(), n / 2, n / 2),
        };
        let mut parts: Vec<Taken> = centre.into_iter().collect();
        for _ in 0..n / ROWS_A_DIVISION {
            let below = |taken: &Taken| match search.next(*taken, self) {
                None => vec![*taken],
                Some(next) => next.collect(),
            };
            parts = parts.iter().flat_map(below).collect();
        }
        parts.into_iter().map(|taken| Symmetric { n, symmetry: self, taken }).collect()
    }
}

/// A part of a search for symmetric solutions.
#[derive(Clone, Copy)]
pub struct Symmetric {
    n: u32,
    symmetry: Symmetry,
    taken: Taken,
}

impl Symmetric {
    /// Which search it is a part of.
    #[must_use]
    pub fn symmetry(&self) -> Symmetry {
        self.symmetry
    }

    /// Solutions of this part; `None` if `abort` was raised meanwhile.
    #[must_use]
    pub fn count(&self, abort: &Abort) -> Option<u64> {
        Search { n: self.n, abort, nodes: Cell::new(0) }.count(self.taken, self.symmetry)
    }
}
