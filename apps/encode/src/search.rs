//! Motion search without predictors: a field of vectors and costs, row by row.
//!
//! What a vector costs in bits is known only when the macroblock before it has been decided. Here it is estimated from the
//! neighbour that was searched before and the vectors of the picture before, so a row of macroblocks waits for no other
//! row of its picture. The coder weighs again what was found, with the true predictors.

use crate::bits::se_bits;
use crate::kernel::Samples;
use crate::motion::{Part, Reference};
use crate::picture::Vector;

/// How thoroughly motion is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Steps of the hexagon at most.
    pub steps: u32,
    /// Steps of half and of quarter samples.
    pub fine: [u32; 2],
    /// Bits that are worth as much as what may be left after a likely vector without any search.
    pub enough: u32,
    /// Whether halves and quarters of macroblocks have vectors of their own.
    pub has_parts: bool,
}

/// A vector and what is left after it: half of the sum of transformed differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// The vector.
    pub vector: Vector,
    /// What is left.
    pub satd: u32,
}

/// What was found for a macroblock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// As a whole.
    pub whole: Match,
    /// Its parts, if they were looked at: halves above each other, beside each other, quarters.
    pub wide: Option<[Match; 2]>,
    /// As above.
    pub tall: Option<[Match; 2]>,
    /// As above.
    pub quarters: Option<[Match; 4]>,
}

/// Bits of a vector, given what it is predicted to be.
#[inline]
pub fn vector_bits(vector: Vector, predicted: Vector) -> u32 {
    se_bits(i32::from(vector.x) - i32::from(predicted.x)) + se_bits(i32::from(vector.y) - i32::from(predicted.y))
}

fn moved(vector: Vector, dx: i16, dy: i16) -> Vector {
    Vector { x: vector.x.saturating_add(dx), y: vector.y.saturating_add(dy) }
}

/// The best of what has been looked at, for the macroblock and for each of its parts: whole, wide, tall, quarters.
struct Best {
    costs: [u32; 9],
    vectors: [Vector; 9],
}

const HEXAGON: [(i16, i16); 6] = [(-8, 0), (-4, 8), (4, 8), (8, 0), (4, -8), (-4, -8)];
const CROSS: [(i16, i16); 4] = [(0, -1), (-1, 0), (1, 0), (0, 1)];
const SQUARE: [(i16, i16); 8] = [(0, -4), (-4, 0), (4, 0), (0, 4), (-4, -4), (4, -4), (-4, 4), (4, 4)];

/// The parts in the order of [`Best`].
const PARTS: [Part; 9] = [
    Part::WHOLE,
    Part::wide(0),
    Part::wide(1),
    Part::tall(0),
    Part::tall(1),
    Part::quarter(0),
    Part::quarter(1),
    Part::quarter(2),
    Part::quarter(3),
];

/// Searches for one macroblock.
pub struct Search<'a> {
    /// What is looked for.
    pub source: &'a Samples,
    /// Where.
    pub reference: Reference<'a>,
    /// What a bit is worth.
    pub lambda: u32,
    /// How thoroughly.
    pub effort: Effort,
}

impl Search<'_> {
    fn look(&self, vector: Vector, predicted: Vector, best: &mut Best) -> bool {
        let [a, b, c, d] = self.reference.sad(self.source, vector);
        let bits = self.lambda * vector_bits(vector, predicted);
        let sums = [a + b + c + d, a + b, c + d, a + c, b + d, a, b, c, d];
        let better = sums[0] + bits < best.costs[0];
        for (i, sum) in sums.into_iter().enumerate() {
            if sum + bits < best.costs[i] {
                (best.costs[i], best.vectors[i]) = (sum + bits, vector);
            }
        }
        better
    }

    /// From vectors that are likely, the first of which estimates the predictor.
    pub fn run(&self, likely: &[Vector]) -> Found {
        let predicted = likely.first().copied().unwrap_or_default();
        let mut best = Best { costs: [u32::MAX; 9], vectors: [Vector::default(); 9] };
        let mut seen = [Vector::default(); 8];
        let mut count = 0;
        for &vector in likely.iter().chain(&[Vector::default()]) {
            let vector = self.reference.clamped(vector);
            if !seen[..count].contains(&vector) && count < seen.len() {
                seen[count] = vector;
                count += 1;
                self.look(vector, predicted, &mut best);
            }
        }
        // Where next to nothing is left, nothing better is worth its bits.
        if best.costs[0] < self.effort.enough * self.lambda {
            let whole = self.refine(Part::WHOLE, best.vectors[0], predicted, [0, 1]).0;
            return Found { whole, ..Found::default() };
        }
        for _ in 0..self.effort.steps {
            let center = best.vectors[0];
            let mut moves = false;
            for (dx, dy) in HEXAGON {
                let vector = moved(center, dx, dy);
                if self.reference.is_near(vector) {
                    moves |= self.look(vector, predicted, &mut best);
                }
            }
            if !moves {
                break;
            }
        }
        let center = best.vectors[0];
        for (dx, dy) in SQUARE {
            let vector = moved(center, dx, dy);
            if self.reference.is_near(vector) {
                self.look(vector, predicted, &mut best);
            }
        }
        let (whole, cost) = self.refine(Part::WHOLE, best.vectors[0], predicted, self.effort.fine);
        let mut found = Found { whole, ..Found::default() };
        // What is nearly nothing does not become less in parts.
        if !self.effort.has_parts || cost < 24 * self.lambda {
            return found;
        }
        // What more vectors cost is at least a few bits each.
        let gains = |parts: std::ops::Range<usize>, bits: u32| {
            let differs = best.vectors[parts.clone()].iter().any(|vector| *vector != best.vectors[0]);
            differs && best.costs[parts].iter().sum::<u32>() + self.lambda * bits < best.costs[0] + best.costs[0] / 16
        };
        let refined = |i: usize| self.refine(PARTS[i], best.vectors[i], whole.vector, self.effort.fine).0;
        found.wide = gains(1..3, 2).then(|| [refined(1), refined(2)]);
        found.tall = gains(3..5, 2).then(|| [refined(3), refined(4)]);
        found.quarters = gains(5..9, 6).then(|| [refined(5), refined(6), refined(7), refined(8)]);
        found
    }

    /// From a whole vector to quarters; what is left after it, and that with its bits.
    fn refine(&self, part: Part, from: Vector, predicted: Vector, rounds: [u32; 2]) -> (Match, u32) {
        let cost = |vector: Vector| {
            let satd = self.reference.satd(self.source, part, vector);
            (Match { vector, satd }, satd + self.lambda * vector_bits(vector, predicted))
        };
        let mut best = cost(from);
        for (step, rounds) in [2, 1].into_iter().zip(rounds) {
            let mut came = None;
            for _ in 0..rounds {
                let center = best.0.vector;
                for (i, (dx, dy)) in CROSS.into_iter().enumerate() {
                    let vector = moved(center, step * dx, step * dy);
                    // Not back to where it came from.
                    if came == Some(3 - i) || !self.reference.is_near(vector) {
                        continue;
                    }
                    let now = cost(vector);
                    if now.1 < best.1 {
                        best = now;
                    }
                }
                if best.0.vector == center {
                    break;
                }
                came = CROSS.iter().position(|&(dx, dy)| moved(center, step * dx, step * dy) == best.0.vector);
            }
        }
        best
    }
}
