//! The outermost rows and columns: three or four queens stand there (one in each line, a corner is in two), and who
//! places them first has all the symmetry of the board in a table, and a smaller one to search.
//!
//! The idea of placing queens from the border inwards and searching one of each class of images is that of the
//! "coronal" decomposition (Preusser, Nägel, Spallek: Putting Queens in Carry Chains, 2009); here one ring is placed
//! instead of two, since registers of boards are worth more rows.
//!
//! A solution's ring is the ring of the solution, so every image of a ring begins as many solutions as the ring
//! itself: of each class one is searched, and counts as often as the class has members. Which member is free, and the
//! trees of members differ by a factor of two: the one that is searched has the smallest prediction, seen from the top.

use crate::Error;
use crate::board::{Board, Node, QUEENS_MAX, Row};
use crate::predict::Model;

/// Columns of the queens in the top and the bottom row, rows of those in the right and the left column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sides {
    top: u32,
    right: u32,
    bottom: u32,
    left: u32,
}

impl Sides {
    /// Left and right changed.
    fn mirrored(self, n: u32) -> Sides {
        Sides { top: n - 1 - self.top, right: self.left, bottom: n - 1 - self.bottom, left: self.right }
    }

    /// Rows and columns changed.
    fn transposed(self) -> Sides {
        Sides { top: self.left, right: self.bottom, bottom: self.right, left: self.top }
    }

    /// The images that do not differ by `mirrored`, then their mirror images.
    fn images(self, n: u32) -> [Sides; 8] {
        let across = self.transposed();
        let (turned, back) = (across.mirrored(n), self.mirrored(n).transposed());
        let half = [self, across, turned.transposed(), back];
        let mut images = [self; 8];
        for (i, image) in half.into_iter().enumerate() {
            (images[i], images[i + 4]) = (image, image.mirrored(n));
        }
        images
    }

    fn queens(self, n: u32) -> [(u32, u32); 4] {
        [(0, self.top), (self.right, n - 1), (n - 1, self.bottom), (self.left, 0)]
    }

    /// Whether these can be the queens of a border: a corner's queen is that of both its lines, and nobody attacks another.
    fn stand(self, n: u32) -> bool {
        let last = n - 1;
        let corners = [
            (self.top == 0, self.left == 0),
            (self.top == last, self.right == 0),
            (self.bottom == last, self.right == last),
            (self.bottom == 0, self.left == last),
        ];
        let queens = self.queens(n);
        let attack = |a: (u32, u32), b: (u32, u32)| {
            a != b && (a.0 == b.0 || a.1 == b.1 || a.0 + a.1 == b.0 + b.1 || a.0 + b.1 == b.0 + a.1)
        };
        corners.iter().all(|(a, b)| a == b) && (0..4).all(|i| (0..i).all(|j| !attack(queens[i], queens[j])))
    }

    /// The board inside of the border.
    fn inside(self, n: u32) -> Board {
        // n = 1 has a border and nothing inside; n = 2 as well.
        let inner = 1..n.saturating_sub(1).max(1);
        let queens = self.queens(n);
        let bit = |c: u32| if inner.contains(&c) { 1_u32 << (c - 1) } else { 0 };
        let columns = inner.clone().filter(|c| queens.iter().all(|queen| queen.1 != *c)).map(bit).sum();
        let rows: Vec<u32> = inner.clone().filter(|r| queens.iter().all(|queen| queen.0 != *r)).collect();
        let row = |i: usize| {
            let r = rows[i];
            let attacked = queens.iter().fold(0, |attacked, &(row, column)| {
                let distance = r.abs_diff(row);
                attacked | bit(column + distance) | column.checked_sub(distance).map_or(0, bit)
            });
            Row { open: columns & !attacked, step: rows.get(i + 1).map_or(1, |next| next - r) }
        };
        Board::new(columns, (0..rows.len()).map(row).collect())
    }
}

/// The queens of a border, for all their images, and what is left inside.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    /// Row and column of the queens; a corner's queen is there twice.
    pub queens: [(u32, u32); 4],
    /// How many images it has, itself included: as many times its solutions count.
    pub images: u32,
    /// What is left to be filled.
    pub board: Board,
    /// Nodes that its search is predicted to visit.
    pub nodes: f64,
}

/// One ring of each class of images, in a fixed order.
///
/// # Errors
/// [`Error::Board`] where n is not from 1 to [`QUEENS_MAX`].
pub fn rings(n: u32) -> Result<Vec<Ring>, Error> {
    if n == 0 || n > QUEENS_MAX {
        return Err(Error::Board { n });
    }
    let model = Model::new(n.saturating_sub(2).max(1));
    let mut rings = Vec::new();
    for top in 0..n.div_ceil(2) {
        // The image with the smallest numbers stands for its class: no side of it is nearer to a corner than the top.
        for right in top..n - top {
            for bottom in top..n - top {
                for left in top..n - top {
                    let sides = Sides { top, right, bottom, left };
                    let mut images = sides.images(n);
                    if !sides.stand(n) || images.iter().any(|image| *image < sides) {
                        continue;
                    }
                    // Mirror images have the same trees.
                    let boards = images[..4].iter().map(|image| {
                        let board = image.inside(n);
                        (model.nodes(&board, &Node::ROOT), *image, board)
                    });
                    // The first of equal ones, so always the same.
                    let best = boards.min_by(|a, b| a.0.total_cmp(&b.0));
                    images.sort_unstable();
                    let members = 1 + images.windows(2).filter(|pair| pair[0] != pair[1]).count();
                    rings.extend(best.map(|(nodes, image, board)| Ring {
                        queens: image.queens(n),
                        images: members as u32,
                        board,
                        nodes,
                    }));
                }
            }
        }
    }
    Ok(rings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Queens as a set, turned and mirrored on the board itself.
    fn image(queens: &[(u32, u32); 4], n: u32, which: u32) -> Vec<(u32, u32)> {
        let place = |&(mut r, mut c): &(u32, u32)| {
            if which & 1 > 0 {
                c = n - 1 - c;
            }
            if which & 2 > 0 {
                r = n - 1 - r;
            }
            if which & 4 > 0 { (c, r) } else { (r, c) }
        };
        queens.iter().map(place).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// All rings, by trying every field of every side.
    fn all(n: u32) -> BTreeSet<Vec<(u32, u32)>> {
        let mut all = BTreeSet::new();
        for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
            for (c, d) in (0..n).flat_map(|c| (0..n).map(move |d| (c, d))) {
                let queens: BTreeSet<(u32, u32)> = [(0, a), (b, n - 1), (n - 1, c), (d, 0)].into();
                let free = queens.iter().all(|x| {
                    queens.iter().all(|y| {
                        let (dr, dc) = (x.0.abs_diff(y.0), x.1.abs_diff(y.1));
                        x == y || dr > 0 && dc > 0 && dr != dc
                    })
                });
                if free {
                    all.insert(queens.into_iter().collect());
                }
            }
        }
        all
    }

    #[test]
    fn every_ring_is_the_image_of_exactly_one() {
        for n in 1..13 {
            let mut seen = BTreeSet::new();
            for ring in rings(n).unwrap() {
                let images: BTreeSet<_> = (0..8).map(|which| image(&ring.queens, n, which)).collect();
                assert_eq!(images.len(), ring.images as usize, "n = {n}: {ring:?}");
                for image in images {
                    assert!(seen.insert(image), "n = {n}: {ring:?} is the image of another");
                }
            }
            assert_eq!(seen, all(n), "n = {n}");
        }
    }

    #[test]
    fn inside_of_a_ring_is_open_what_no_queen_attacks() {
        for n in 4..12 {
            for ring in rings(n).unwrap() {
                let lines: Vec<u32> = (0..n).filter(|r| ring.queens.iter().all(|queen| queen.0 != *r)).collect();
                assert_eq!(lines.len(), ring.board.rows().len());
                for (row, r) in ring.board.rows().iter().zip(&lines) {
                    for c in 1..n - 1 {
                        let free = ring.queens.iter().all(|q| q.1 != c && q.0.abs_diff(*r) != q.1.abs_diff(c));
                        assert_eq!(row.open >> (c - 1) & 1 == 1, free, "n = {n}: {ring:?}, row {r}, column {c}");
                    }
                }
                for (i, pair) in lines.windows(2).enumerate() {
                    assert_eq!(ring.board.rows()[i].step, pair[1] - pair[0]);
                }
            }
        }
    }

    #[test]
    fn boards_that_cannot_be_are_refused() {
        for n in [0, 33, u32::MAX] {
            let error = rings(n).unwrap_err();
            assert_eq!(error.exit_status(), 2);
            assert!(error.to_string().contains("from 1 to 32"), "{error}");
        }
    }
}
