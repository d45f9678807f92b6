//! Solutions that are their own images: under half a turn, under a quarter turn. All queens of an orbit are placed at once, so
//! these searches have the square root (the fourth root) of the tree of all solutions, and nothing in common with it.

use multigrain::Abort;

/// Between two looks at the abort.
const LOOK_NODES: u64 = 1 << 16;

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
    nodes: u64,
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

    /// Solutions whose queens come in orbits, the one of (r, c) being `orbit(n, r, c)`.
    fn count<const K: usize>(&mut self, taken: Taken, orbit: fn(u32, u32, u32) -> [(u32, u32); K]) -> Option<u64> {
        let row = taken.rows.trailing_ones();
        if row >= self.n {
            return Some(1);
        }
        self.nodes += 1;
        if self.nodes.is_multiple_of(LOOK_NODES) && self.abort.is_raised() {
            return None;
        }
        let mut found = 0;
        for column in (0..self.n).filter(|c| taken.columns >> c & 1 == 0) {
            // Queens of one orbit that would stand in one line, or on one field, attack each other.
            let placed = orbit(self.n, row, column).iter().try_fold(taken, |taken, &(r, c)| self.with(taken, r, c));
            if let Some(placed) = placed {
                found += self.count(placed, orbit)?;
            }
        }
        Some(found)
    }

    fn all<const K: usize>(mut self, orbit: fn(u32, u32, u32) -> [(u32, u32); K]) -> Option<u64> {
        let mut taken = Taken::default();
        if self.n % 2 == 1 {
            // The middle row's queen is its own image: it stands in the centre.
            taken = self.with(taken, self.n / 2, self.n / 2)?;
        }
        self.count(taken, orbit)
    }
}

/// Solutions of n x n, n from 1 to 32, that half a turn leaves as they are; `None` if `abort` was raised meanwhile.
#[must_use]
pub fn point(n: u32, abort: &Abort) -> Option<u64> {
    Search { n, abort, nodes: 0 }.all(|n, r, c| [(r, c), (n - 1 - r, n - 1 - c)])
}

/// Solutions of n x n, n from 1 to 32, that a quarter turn leaves as they are; `None` if `abort` was raised meanwhile.
#[must_use]
pub fn rotation(n: u32, abort: &Abort) -> Option<u64> {
    Search { n, abort, nodes: 0 }.all(|n, r, c| [(r, c), (c, n - 1 - r), (n - 1 - r, n - 1 - c), (n - 1 - c, r)])
}
