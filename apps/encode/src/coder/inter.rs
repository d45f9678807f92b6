//! Macroblocks that are predicted from another picture.
//!
//! Search found vectors for the whole and its parts without knowing what they cost. Here they are weighed again with the
//! true predictors (8.4.1.3 of the standard), beside the vector that comes for nothing and what the picture itself predicts.

use super::residual::{Residual, luma_pattern};
use super::syntax::{Luma, Syntax, Type};
use super::{Here, RowCoder, median};
use crate::motion::{Part, Reference};
use crate::picture::{Block, Kind, Macroblock, Picture, Vector};
use crate::search::{Match, vector_bits};

/// A quarter of a macroblock beside the one that is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    /// Outside, or not coded yet.
    Missing,
    /// Predicted from its own picture.
    Intra,
    /// With a vector.
    Moved(Vector),
}

/// Quarters of this macroblock and those around: two rows of quarters below one of others, one column on each side.
#[derive(Clone, Copy, Debug)]
struct Vectors([Neighbour; 12]);

impl Vectors {
    fn new(here: &Here<'_>) -> Vectors {
        let of = |other: Option<&Macroblock>, quarter: usize| match other {
            None => Neighbour::Missing,
            Some(other) if other.kind.is_intra() => Neighbour::Intra,
            Some(other) => Neighbour::Moved(other.vectors[quarter]),
        };
        let mut all = [Neighbour::Missing; 12];
        all[0] = of(here.above_left, 3);
        all[1] = of(here.above, 2);
        all[2] = of(here.above, 3);
        all[3] = of(here.above_right, 2);
        all[4] = of(here.left, 1);
        all[8] = of(here.left, 3);
        Vectors(all)
    }

    /// Enters the vector of a part.
    fn set(&mut self, part: Part, vector: Vector) {
        for quarter in part.quarters() {
            self.0[5 + quarter % 2 + 4 * (quarter / 2)] = Neighbour::Moved(vector);
        }
    }

    /// On the left, above, and above on the right (else on the left) of a part.
    fn around(&self, part: Part) -> [Neighbour; 3] {
        let at = 5 + part.x / 8 + 4 * (part.y / 8);
        let right = match self.0[at - 4 + part.width / 8] {
            Neighbour::Missing => self.0[at - 5],
            other => other,
        };
        [self.0[at - 1], self.0[at - 4], right]
    }

    /// What a part's vector is predicted to be.
    fn predicted(&self, part: Part) -> Vector {
        let [left, above, right] = self.around(part);
        let preferred = match (part.width, part.height) {
            (16, 8) => Some(if part.y == 0 { above } else { left }),
            (8, 16) => Some(if part.x == 0 { left } else { right }),
            _ => None,
        };
        if let Some(Neighbour::Moved(vector)) = preferred {
            return vector;
        }
        if above == Neighbour::Missing
            && right == Neighbour::Missing
            && let Neighbour::Moved(vector) = left
        {
            return vector;
        }
        let vector = |neighbour| match neighbour {
            Neighbour::Moved(vector) => vector,
            _ => Vector::default(),
        };
        let mut moved = [left, above, right].into_iter().filter(|n| matches!(n, Neighbour::Moved(_)));
        if let (Some(only), None) = (moved.next(), moved.next()) {
            return vector(only);
        }
        median(vector(left), vector(above), vector(right))
    }

    /// The vector of a macroblock that is skipped (8.4.1.1).
    fn skipped(&self) -> Vector {
        let [left, above, _] = self.around(Part::WHOLE);
        let still = Neighbour::Moved(Vector::default());
        match left == Neighbour::Missing || above == Neighbour::Missing || left == still || above == still {
            true => Vector::default(),
            false => self.predicted(Part::WHOLE),
        }
    }
}

/// How a macroblock is cut, with the number of its type (Table 7-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Whole = 0,
    Wide = 1,
    Tall = 2,
    Quarters = 3,
}

impl Cut {
    pub(super) fn parts(self) -> &'static [Part] {
        const WHOLE: [Part; 1] = [Part::WHOLE];
        const WIDE: [Part; 2] = [Part::wide(0), Part::wide(1)];
        const TALL: [Part; 2] = [Part::tall(0), Part::tall(1)];
        const QUARTERS: [Part; 4] = [Part::quarter(0), Part::quarter(1), Part::quarter(2), Part::quarter(3)];
        match self {
            Cut::Whole => &WHOLE,
            Cut::Wide => &WIDE,
            Cut::Tall => &TALL,
            Cut::Quarters => &QUARTERS,
        }
    }

    /// Bits of its type, and of those of its quarters.
    fn bits(self) -> u32 {
        match self {
            Cut::Whole => 1,
            Cut::Wide | Cut::Tall => 3,
            Cut::Quarters => 5 + 4,
        }
    }
}

/// A cut with its vectors, by quarter.
#[derive(Clone, Copy, Debug)]
struct Decision {
    cut: Cut,
    vectors: [Vector; 4],
    cost: u32,
}

impl RowCoder<'_> {
    /// Codes a macroblock from another picture, or from its own where that is better.
    ///
    /// # Safety
    /// As [`RowCoder::code`].
    pub(super) unsafe fn code_inter(
        &mut self,
        here: &Here<'_>,
        source: &Block,
        reference: &Picture,
        now: &mut Macroblock,
        made: &mut Block,
    ) -> bool {
        let (shot, settings) = (self.shot, &self.shot.settings);
        // SAFETY: by the caller.
        let (reference, found) = unsafe {
            let found = shot.picture.field.get(here.y * shot.columns() + here.x);
            (Reference::new(reference, settings.kernels, here.x, here.y), found)
        };
        let vectors = Vectors::new(here);
        let lambda = settings.lambda;

        // Nothing at all, if nothing is left.
        let skipped = vectors.skipped();
        let may_be_skipped = reference.allows(skipped);
        if may_be_skipped {
            let satd = match skipped == found.whole.vector {
                true => found.whole.satd,
                false => reference.satd(&source.luma, Part::WHOLE, skipped),
            };
            if satd <= found.whole.satd + 8 * lambda && self.skip_if_empty(&reference, source, skipped, now, made) {
                return true;
            }
        }

        let weighed = |cut: Cut, matches: &[Match]| {
            let mut vectors = vectors;
            let mut decision = Decision { cut, vectors: [Vector::default(); 4], cost: lambda * cut.bits() };
            for (part, found) in cut.parts().iter().zip(matches) {
                let bits = vector_bits(found.vector, vectors.predicted(*part));
                decision.cost += found.satd + lambda * bits;
                vectors.set(*part, found.vector);
                part.quarters().for_each(|quarter| decision.vectors[quarter] = found.vector);
            }
            decision
        };
        let mut best = weighed(Cut::Whole, &[found.whole]);
        let mut consider = |other: Decision| {
            if other.cost < best.cost {
                best = other;
            }
        };
        let predicted = vectors.predicted(Part::WHOLE);
        for vector in [predicted, skipped] {
            if vector != found.whole.vector && reference.allows(vector) {
                let satd = reference.satd(&source.luma, Part::WHOLE, vector);
                consider(weighed(Cut::Whole, &[Match { vector, satd }]));
            }
        }
        if let Some(matches) = &found.wide {
            consider(weighed(Cut::Wide, matches));
        }
        if let Some(matches) = &found.tall {
            consider(weighed(Cut::Tall, matches));
        }
        if let Some(matches) = &found.quarters {
            consider(weighed(Cut::Quarters, matches));
        }

        // What its own picture predicts, where the other does not do well.
        if best.cost > 32 * lambda {
            let whole = self.best_whole(here, &source.luma);
            // Longer types, and modes of chroma.
            let extra = 6 * lambda;
            let blocks = match whole.1 < 2 * best.cost {
                true => self.blocks(here, &source.luma, whole.1.min(best.cost.saturating_sub(extra))),
                false => None,
            };
            let cost = blocks.as_ref().map_or(whole.1, |blocks| blocks.cost) + extra;
            if cost < best.cost {
                self.write_intra(here, source, whole, blocks, now, made);
                return true;
            }
        }
        self.write_inter(here, &reference, source, vectors, best, may_be_skipped.then_some(skipped), now, made);
        true
    }

    fn predict(&self, reference: &Reference<'_>, cut: Cut, vectors: &[Vector; 4]) -> Block {
        let mut block = Block::EMPTY;
        for part in cut.parts() {
            let vector = vectors[part.y / 8 * 2 + part.x / 8];
            reference.luma(*part, vector, &mut block.luma);
            reference.chroma(*part, vector, &mut block.chroma);
        }
        block
    }

    /// Skips the macroblock if nothing worth coding is left after the vector that comes for nothing.
    fn skip_if_empty(
        &mut self,
        reference: &Reference<'_>,
        source: &Block,
        skipped: Vector,
        now: &mut Macroblock,
        made: &mut Block,
    ) -> bool {
        let settings = &self.shot.settings;
        let mut prediction = Block::EMPTY;
        reference.luma(Part::WHOLE, skipped, &mut prediction.luma);
        if settings.luma_inter(&source.luma, &prediction.luma).1 != 0 {
            return false;
        }
        reference.chroma(Part::WHOLE, skipped, &mut prediction.chroma);
        if settings.chroma_levels(&source.chroma, &prediction.chroma, false).pattern() != 0 {
            return false;
        }
        *made = prediction;
        self.skip(skipped, now);
        true
    }

    fn skip(&mut self, vector: Vector, now: &mut Macroblock) {
        now.kind = Kind::Skip;
        now.vectors = [vector; 4];
        self.row.skip(now);
    }

    #[allow(clippy::too_many_arguments)]
    fn write_inter(
        &mut self,
        here: &Here<'_>,
        reference: &Reference<'_>,
        source: &Block,
        mut vectors: Vectors,
        decision: Decision,
        skipped: Option<Vector>,
        now: &mut Macroblock,
        made: &mut Block,
    ) {
        let settings = &self.shot.settings;
        let prediction = self.predict(reference, decision.cut, &decision.vectors);
        let (luma, coded) = settings.luma_inter(&source.luma, &prediction.luma);
        let chroma = settings.chroma_levels(&source.chroma, &prediction.chroma, false);
        let pattern = luma_pattern(coded) | chroma.pattern() << 4;
        let residual = Residual { luma, coded, luma_dc: None, chroma };
        *made = settings.made(&residual, &prediction);
        if pattern == 0 && decision.cut == Cut::Whole && skipped == Some(decision.vectors[0]) {
            return self.skip(decision.vectors[0], now);
        }
        now.kind = Kind::Inter;
        now.vectors = decision.vectors;
        let mut moved = [[0; 2]; 4];
        for (part, moved) in decision.cut.parts().iter().zip(&mut moved) {
            let vector = decision.vectors[part.y / 8 * 2 + part.x / 8];
            let predicted = vectors.predicted(*part);
            *moved = [i32::from(vector.x) - i32::from(predicted.x), i32::from(vector.y) - i32::from(predicted.y)];
            vectors.set(*part, vector);
        }
        let Residual { luma, chroma, .. } = residual;
        let kind = Type::Inter(decision.cut, moved);
        let syntax = Syntax { kind, chroma_mode: 0, pattern, luma: Luma::Lanes(luma), luma_dc: None, chroma };
        self.write(here, source, syntax, now, made);
    }
}
