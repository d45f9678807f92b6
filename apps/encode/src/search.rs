//! Motion search without predictors: a field of vectors and costs, row by row.
//!
//! What a vector costs in bits is known only when the macroblock before it has been decided. Here it is estimated from the
//! neighbour that was searched before and the vectors of the picture before, so a row of macroblocks waits for no other
//! row of its picture. The coder weighs again what was found, with the true predictors.

use crate::bits::se_bits;
use crate::kernel::{KEY_UNIT, Keys};
use crate::motion::{Part, Reference};
use crate::picture::{Found, Match, Vector};
use crate::samples::Samples;

/// How thoroughly motion is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Steps of the hexagon at most.
    pub steps: u32,
    /// Steps of quarter samples at most.
    pub fine: u32,
    /// Bits that are worth as much as what may be left after a likely vector without any search.
    pub enough: u32,
    /// Quarters of what other pictures leave that the picture itself may leave, predicted as a whole, for it to be tried block by
    /// block.
    pub intra: u32,
    /// Whether halves and quarters of macroblocks have vectors of their own.
    pub has_parts: bool,
    /// Whether a macroblock that leaves nothing to be coded where it is skipped is skipped, and its motion not searched: in pictures
    /// that are predicted from those before only. Others may be predicted better, for more bits.
    pub skips_first: bool,
}

/// Bits of a vector, given what it is predicted to be.
#[inline]
pub fn vector_bits(vector: Vector, predicted: Vector) -> u32 {
    se_bits(i32::from(vector.x) - i32::from(predicted.x)) + se_bits(i32::from(vector.y) - i32::from(predicted.y))
}

fn moved(vector: Vector, dx: i16, dy: i16) -> Vector {
    Vector { x: vector.x.saturating_add(dx), y: vector.y.saturating_add(dy) }
}

/// Vectors that are looked at for one macroblock, at most: 6 likely ones, 6 of a hexagon and 3 more for each of its steps, and
/// 6 around it twice.
const LOOKS_MAX: usize = KEY_UNIT as usize;

/// The best of what has been looked at, for the macroblock and, if they are asked for, for each of its parts.
struct Best {
    /// The vector of the whole, and its cost.
    whole: (Vector, u32),
    /// Cost and, in the low bits, which vector, so that the less of two is the better, or the earlier.
    keys: Keys,
    vectors: [Vector; LOOKS_MAX],
    count: usize,
}

impl Best {
    fn vector(&self, part: usize) -> Vector {
        self.vectors[self.keys.0[part] as usize % LOOKS_MAX]
    }

    fn cost(&self, part: usize) -> u32 {
        self.keys.0[part] / LOOKS_MAX as u32
    }
}

/// In the order of their directions, so that those beside each other are neighbours.
const HEXAGON: [(i16, i16); 6] = [(-8, 0), (-4, 8), (4, 8), (8, 0), (4, -8), (-4, -8)];
const CROSS: [(i16, i16); 4] = [(0, -1), (-1, 0), (1, 0), (0, 1)];

/// The parts in the order of [`Keys`].
const PARTS: [Part; 9] = [
    Part::quarter(0),
    Part::quarter(1),
    Part::quarter(2),
    Part::quarter(3),
    Part::wide(0),
    Part::wide(1),
    Part::tall(0),
    Part::tall(1),
    Part::WHOLE,
];
const WHOLE: usize = 8;

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
    /// Whether it is better for the whole.
    #[inline(always)]
    fn look<const IN_PARTS: bool>(&self, vector: Vector, predicted: Vector, best: &mut Best) -> bool {
        let bits = self.lambda * vector_bits(vector, predicted);
        let cost = match IN_PARTS {
            true => {
                best.vectors[best.count] = vector;
                let before = best.keys.0[WHOLE];
                let addend = bits * KEY_UNIT + best.count as u32;
                self.reference.look(self.source, vector, addend, &mut best.keys);
                best.count += 1;
                if best.keys.0[WHOLE] < before { best.cost(WHOLE) } else { u32::MAX }
            }
            false => bits + self.reference.sad(self.source, vector),
        };
        let is_better = cost < best.whole.1;
        if is_better {
            best.whole = (vector, cost);
        }
        is_better
    }

    /// Looks at the neighbours of the best, and where one of them is better, on both of its sides.
    fn around<const IN_PARTS: bool>(&self, step: i16, predicted: Vector, best: &mut Best) {
        let center = best.whole.0;
        let mut to = None;
        let mut look = |dx: i16, dy: i16| {
            let vector = moved(center, step * dx, step * dy);
            self.reference.is_near(vector) && self.look::<IN_PARTS>(vector, predicted, best)
        };
        for (dx, dy) in CROSS {
            if look(dx, dy) {
                to = Some((dx, dy));
            }
        }
        if let Some((dx, dy)) = to {
            look(dx + dy, dx + dy);
            look(dx - dy, dy - dx);
        }
    }

    /// From vectors that are likely, the first of which estimates the predictor.
    pub fn run(&self, likely: &[Vector]) -> Found {
        if self.effort.has_parts { self.found::<true>(likely) } else { self.found::<false>(likely) }
    }

    fn found<const IN_PARTS: bool>(&self, likely: &[Vector]) -> Found {
        let predicted = likely.first().copied().unwrap_or_default();
        let mut best = Best {
            whole: (Vector::default(), u32::MAX),
            keys: Keys::NONE,
            vectors: [Vector::default(); LOOKS_MAX],
            count: 0,
        };
        for (i, vector) in likely.iter().chain(&[Vector::default()]).enumerate() {
            let clamped = self.reference.clamped(*vector);
            if !likely.iter().take(i).any(|before| self.reference.clamped(*before) == clamped) {
                self.look::<IN_PARTS>(clamped, predicted, &mut best);
            }
        }
        // Where next to nothing is left, nothing better is worth its bits.
        if best.whole.1 < self.effort.enough * self.lambda {
            let whole = self.refine(Part::WHOLE, best.whole.0, predicted, 1).0;
            return Found { whole, ..Found::default() };
        }
        let mut directions = 0..6;
        for _ in 0..self.effort.steps {
            let center = best.whole.0;
            let mut to = None;
            for direction in directions {
                let (dx, dy) = HEXAGON[direction % 6];
                let vector = moved(center, dx, dy);
                if self.reference.is_near(vector) && self.look::<IN_PARTS>(vector, predicted, &mut best) {
                    to = Some(direction % 6);
                }
            }
            // What lies behind has been looked at.
            let Some(to) = to else { break };
            directions = to + 5..to + 8;
        }
        self.around::<IN_PARTS>(4, predicted, &mut best);
        self.around::<IN_PARTS>(2, predicted, &mut best);
        let (whole, cost) = self.refine(Part::WHOLE, best.whole.0, predicted, self.effort.fine);
        let mut found = Found { whole, ..Found::default() };
        // What is nearly nothing does not become less in parts.
        if !IN_PARTS || cost < 24 * self.lambda {
            return found;
        }
        // What more vectors cost is at least a few bits each.
        let gains = |parts: std::ops::Range<usize>, bits: u32| {
            let (vector, cost) = best.whole;
            let differs = parts.clone().any(|part| best.vector(part) != vector);
            differs && parts.map(|part| best.cost(part)).sum::<u32>() + self.lambda * bits < cost + cost / 16
        };
        let refined = |i: usize| self.refine(PARTS[i], best.vector(i), whole.vector, self.effort.fine).0;
        found.wide = gains(4..6, 2).then(|| [4, 5].map(refined));
        found.tall = gains(6..8, 2).then(|| [6, 7].map(refined));
        found.quarters = gains(0..4, 6).then(|| [0, 1, 2, 3].map(refined));
        found
    }

    /// From a vector near the picture to quarters of samples; what is left after it, and that with its bits.
    fn refine(&self, part: Part, from: Vector, predicted: Vector, rounds: u32) -> (Match, u32) {
        let cost = |vector: Vector| {
            let satd = self.reference.satd(self.source, part, vector);
            (Match { vector, satd }, satd + self.lambda * vector_bits(vector, predicted))
        };
        let mut best = cost(from);
        let mut came = None;
        for _ in 0..rounds {
            let center = best.0.vector;
            let mut to = None;
            for (i, (dx, dy)) in CROSS.into_iter().enumerate() {
                let vector = moved(center, dx, dy);
                // Not back to where it came from.
                if came == Some(3 - i) || !self.reference.is_near(vector) {
                    continue;
                }
                let now = cost(vector);
                if now.1 < best.1 {
                    (best, to) = (now, Some(i));
                }
            }
            if to.is_none() {
                break;
            }
            came = to;
        }
        best
    }
}
