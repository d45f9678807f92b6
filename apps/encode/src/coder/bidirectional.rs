//! Macroblocks of pictures with two lists: from a picture before, one behind, the mean of both, or as neighbours and the
//! picture behind say (direct prediction in space, 8.4.1.2.2 of the standard).

use super::inter::{Decision, parts_of};
use super::syntax::{Cut, From};
use super::vectors::Vectors;
use super::{Here, RowCoder};
use crate::motion::{Part, Reference};
use crate::picture::{Block, Found, Macroblock, Match, Motion, Vector};
use crate::samples::Samples;
use crate::search::vector_bits;

/// Bits of types, about what arithmetic codes make of them: of whole macroblocks and of quarters, direct, from one picture,
/// from both; and of a cut.
const WHOLE_BITS: [u32; 3] = [1, 3, 5];
const QUARTER_BITS: [u32; 3] = [1, 3, 4];
const CUT_BITS: u32 = 6;

/// One macroblock that is being weighed.
struct Weighing<'a> {
    source: &'a Samples,
    references: [Reference<'a>; 2],
    found: [&'a Found; 2],
    lambda: u32,
    kernels: &'a crate::kernel::Kernels,
}

impl Weighing<'_> {
    /// What is left of a part after the mean of what two vectors lead to.
    fn left_of_both(&self, part: Part, vectors: [Vector; 2]) -> u32 {
        let mut samples = [Samples::of(0); 2];
        for ((to, reference), vector) in samples.iter_mut().zip(&self.references).zip(vectors) {
            reference.luma(part, vector, to);
        }
        let mut sum = 0;
        for quarter in part.quarters() {
            let Part { x, y, .. } = Part::quarter(quarter);
            let at = y * 16 + x;
            let with = samples.each_ref().map(|samples| samples.0[at..].as_ptr());
            // SAFETY: 8 rows of 8, 16 apart; `Kernels::new` has seen to the instruction set.
            sum += unsafe { (self.kernels.satd_8)(self.source.0[at..].as_ptr(), with, 16) };
        }
        sum
    }

    /// The best vector for a part in a list: what was found for it or for the whole.
    fn single(&self, list: usize, cut: Cut, i: usize, part: Part) -> Match {
        let found = self.found[list];
        let of_part = match cut {
            Cut::Whole => Some(found.whole),
            Cut::Wide => found.wide.map(|parts| parts[i]),
            Cut::Tall => found.tall.map(|parts| parts[i]),
            Cut::Quarters => found.quarters.map(|parts| parts[i]),
        };
        of_part.unwrap_or_else(|| {
            let vector = found.whole.vector;
            Match { vector, satd: self.references[list].satd(self.source, part, vector) }
        })
    }

    /// The best for all parts of a cut; `direct` is what nothing needs to be said of, with what is left by quarter.
    fn weighed(&self, cut: Cut, mut vectors: [Vectors; 2], direct: &([Motion; 4], [u32; 4])) -> Decision {
        let lambda = self.lambda;
        let is_whole = cut == Cut::Whole;
        let mut decision = Decision {
            cut,
            from: [From::First; 4],
            motion: [Motion::NONE; 4],
            cost: if is_whole { 0 } else { lambda * CUT_BITS },
        };
        let bits = match cut {
            Cut::Whole => WHOLE_BITS,
            Cut::Wide | Cut::Tall => [0, 0, 1],
            Cut::Quarters => QUARTER_BITS,
        };
        for (i, part) in cut.parts().iter().enumerate() {
            let mut best = (u32::MAX, From::First, Motion::NONE);
            let mut consider = |other: (u32, From, Motion)| {
                if other.0 < best.0 {
                    best = other;
                }
            };
            if cut == Cut::Quarters {
                consider((direct.1[i] + lambda * bits[0], From::Direct, direct.0[i]));
            }
            let mut singles = [(Match::default(), 0); 2];
            for (list, single) in singles.iter_mut().enumerate() {
                let predicted = vectors[list].predicted(*part, 0);
                let cost = |found: Match| (found, lambda * vector_bits(found.vector, predicted));
                *single = cost(self.single(list, cut, i, *part));
                if is_whole && single.0.vector != predicted && self.references[list].allows(predicted) {
                    let satd = self.references[list].satd(self.source, *part, predicted);
                    let other = cost(Match { vector: predicted, satd });
                    if satd + other.1 < single.0.satd + single.1 {
                        *single = other;
                    }
                }
                let from = [From::First, From::Second][list];
                let motion = Motion::of(list, single.0.vector, 0);
                consider((single.0.satd + single.1 + lambda * bits[1], from, motion));
            }
            let both = singles.map(|single| single.0.vector);
            let cost = self.left_of_both(*part, both) + singles[0].1 + singles[1].1 + lambda * bits[2];
            consider((cost, From::Both, Motion { vectors: both, references: [0; 2] }));
            let (cost, from, motion) = best;
            decision.cost += cost;
            decision.from[i] = from;
            part.quarters().for_each(|quarter| decision.motion[quarter] = motion);
            vectors.iter_mut().for_each(|vectors| vectors.set(*part, &motion));
        }
        decision
    }
}

impl RowCoder<'_> {
    /// What a macroblock is predicted from of which nothing is said, by quarter.
    ///
    /// # Safety
    /// As [`RowCoder::code`].
    unsafe fn direct(&self, here: &Here<'_>, vectors: &[Vectors; 2]) -> [Motion; 4] {
        let nearest = vectors.map(|vectors| {
            let references = vectors.around(Part::WHOLE).map(|neighbour| neighbour.reference());
            references.into_iter().flatten().min()
        });
        if nearest == [None; 2] {
            return [Motion { vectors: [Vector::default(); 2], references: [0; 2] }; 4];
        }
        let mut whole = Motion::NONE;
        for (list, reference) in nearest.into_iter().enumerate() {
            if let Some(reference) = reference {
                whole.vectors[list] = vectors[list].predicted(Part::WHOLE, reference);
                whole.references[list] = reference;
            }
        }
        let index = here.y * self.shot.columns() + here.x;
        // SAFETY: by the caller, its rows are complete.
        let behind = unsafe { self.shot.lists[1][0].picture.macroblocks.get(index) };
        behind.motion.map(|there| {
            let Vector { x, y } = there.vectors[0];
            let is_still = there.references[0] == 0 && (-1..=1).contains(&x) && (-1..=1).contains(&y);
            let mut motion = whole;
            for list in 0..2 {
                if is_still && motion.references[list] == 0 {
                    motion.vectors[list] = Vector::default();
                }
            }
            motion
        })
    }

    /// Codes a macroblock of a picture with two lists.
    ///
    /// # Safety
    /// As [`RowCoder::code`].
    pub(super) unsafe fn code_bidirectional(
        &mut self,
        here: &Here<'_>,
        source: &Block,
        now: &mut Macroblock,
        made: &mut Block,
    ) {
        let (shot, settings) = (self.shot, &self.shot.settings);
        let index = here.y * shot.columns() + here.x;
        let vectors = [0, 1].map(|list| Vectors::new(here, list));
        // SAFETY: of all, by the caller.
        let (references, found, direct) = unsafe {
            (
                [0, 1].map(|list| shot.reference(list, 0, here.x, here.y)),
                [0, 1].map(|list| shot.picture.fields[list].get(index)),
                self.direct(here, &vectors),
            )
        };
        let lambda = settings.lambda;
        self.tried.motion = None;
        let mut predicted = Samples::of(0);
        // SAFETY: by the caller.
        unsafe { shot.predict_luma(here, parts_of(&direct), &direct, &mut predicted) };
        // SAFETY: a macroblock of 16 rows; `Kernels::new` has seen to the instruction set.
        let left = unsafe { (settings.kernels.satd)(&source.luma, [predicted.0.as_ptr(); 2], 16) };
        let left_whole: u32 = left.iter().sum();
        let found_least = found[0].whole.satd.min(found[1].whole.satd);
        if left_whole <= found_least + 8 * lambda {
            // SAFETY: by the caller.
            if unsafe { self.leaves_nothing(here, source, &direct) } {
                return self.skip(direct, now);
            }
        }

        let weighing = Weighing { source: &source.luma, references, found, lambda, kernels: settings.kernels };
        let direct = (direct, left);
        let mut best = Decision {
            cut: Cut::Whole,
            from: [From::Direct; 4],
            motion: direct.0,
            cost: left_whole + lambda * WHOLE_BITS[0],
        };
        let has = |cut: Cut| match cut {
            Cut::Whole => true,
            Cut::Wide => found.iter().any(|found| found.wide.is_some()),
            Cut::Tall => found.iter().any(|found| found.tall.is_some()),
            Cut::Quarters => found.iter().any(|found| found.quarters.is_some()),
        };
        for cut in [Cut::Whole, Cut::Wide, Cut::Tall, Cut::Quarters].into_iter().filter(|cut| has(*cut)) {
            let decision = weighing.weighed(cut, vectors, &direct);
            if decision.cost < best.cost {
                best = decision;
            }
        }
        if !self.is_better_intra(here, source, best.cost, now, made) {
            // SAFETY: by the caller.
            unsafe { self.write_inter(here, source, best, Some(direct.0), now, made) };
        }
    }
}
