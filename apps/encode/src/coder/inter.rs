//! Macroblocks that are predicted from another picture.
//!
//! Search found vectors for the whole and its parts without knowing what they cost. Here they are weighed again with the
//! true predictors (8.4.1.3 of the standard), beside the vector that comes for nothing and what the picture itself predicts.

use super::residual::luma_pattern;
use super::syntax::{Cut, From, Moved, Syntax, Type};
use super::vectors::Vectors;
use super::{Here, RowCoder, Shot};
use crate::bits::te_bits;
use crate::kernel::{Lanes, Levels};
use crate::motion::{Part, Reference};
use crate::picture::{Block, Found, Kind, Macroblock, Match, Motion, Vector};
use crate::samples::Samples;
use crate::search::vector_bits;

/// A cut with what its quarters are predicted from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    pub(super) cut: Cut,
    /// By part.
    pub(super) from: [From; 4],
    pub(super) motion: [Motion; 4],
    pub(super) cost: u32,
}

/// Luma as it is predicted from other pictures, and what is left of it.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    /// By what; none if this is of another macroblock.
    pub(super) motion: Option<[Motion; 4]>,
    pub(super) prediction: Block,
    lanes: Lanes,
    levels: Levels,
    coded: u16,
}

impl Tried {
    /// Nothing.
    pub(super) const NONE: Tried =
        Tried { motion: None, prediction: Block::EMPTY, lanes: Lanes([[0; 16]; 16]), levels: Levels::NONE, coded: 0 };
}

/// The quarter that a part begins with.
pub(super) fn first_quarter(part: &Part) -> usize {
    part.y / 8 * 2 + part.x / 8
}

impl Shot<'_> {
    /// What other pictures predict, plane by plane: `sample` takes a part from a picture to its place, and there
    /// are so many rows.
    ///
    /// # Safety
    /// As [`RowCoder::code`].
    unsafe fn predict(
        &self,
        here: &Here<'_>,
        parts: &[Part],
        motion: &[Motion; 4],
        sample: impl Fn(&Reference<'_>, Part, Vector, &mut Samples),
        rows: usize,
        out: &mut Samples,
    ) {
        // Where two are to be weighed, all parts are predicted twice.
        let is_both = motion.iter().any(|motion| motion.uses(0) && motion.uses(1));
        let by = |i: usize, samples: &mut Samples| {
            for part in parts {
                let motion = motion[first_quarter(part)];
                let list = if motion.uses(i) { i } else { 1 - i };
                // SAFETY: by the caller.
                let reference = unsafe { self.reference(list, motion.references[list] as usize, here.x, here.y) };
                sample(&reference, *part, motion.vectors[list], samples);
            }
        };
        by(0, out);
        if is_both {
            let mut second = Samples::of(0);
            by(1, &mut second);
            let (to, other) = (out.0.as_mut_ptr(), second.0.as_ptr());
            // SAFETY: so many rows of 16; `Kernels::new` has seen to the instruction set.
            unsafe { (self.settings.kernels.average)(to, other, rows) };
        }
    }

    /// The luma that other pictures predict.
    ///
    /// # Safety
    /// As [`RowCoder::code`].
    pub(super) unsafe fn predict_luma(&self, here: &Here<'_>, parts: &[Part], motion: &[Motion; 4], out: &mut Samples) {
        // SAFETY: by the caller.
        unsafe { self.predict(here, parts, motion, |from, part, vector, to| from.luma(part, vector, to), 16, out) }
    }

    /// And the chroma.
    ///
    /// # Safety
    /// As [`RowCoder::code`].
    unsafe fn predict_chroma(&self, here: &Here<'_>, parts: &[Part], motion: &[Motion; 4], out: &mut Samples) {
        // SAFETY: by the caller.
        unsafe { self.predict(here, parts, motion, |from, part, vector, to| from.chroma(part, vector, to), 8, out) }
    }
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
        now: &mut Macroblock,
        made: &mut Block,
    ) {
        let (shot, settings) = (self.shot, &self.shot.settings);
        // SAFETY: by the caller.
        let reference = |index: usize| unsafe { shot.reference(0, index, here.x, here.y) };
        // SAFETY: by the caller.
        let found = |index: usize| -> &Found {
            // SAFETY: by the caller.
            unsafe { shot.picture.fields[index].get(here.y * shot.columns() + here.x) }
        };
        let nearest = reference(0);
        let count = shot.lists[0].len();
        let vectors = Vectors::new(here, 0);
        let lambda = settings.lambda;

        // Nothing at all, if nothing is left.
        let skipped = vectors.skipped();
        let may_be_skipped = nearest.allows(skipped);
        let skip = [Motion::of(0, skipped, 0); 4];
        self.tried.motion = None;
        let skips_first = shot.skips_first();
        if skips_first {
            // SAFETY: by the caller.
            if may_be_skipped && unsafe { self.leaves_nothing(here, source, &skip) } {
                for index in 0..count {
                    let whole = Match { vector: if index == 0 { skipped } else { Vector::default() }, satd: 0 };
                    let at = here.y * shot.columns() + here.x;
                    // SAFETY: by the caller.
                    unsafe { *shot.picture.fields[index].get_mut(at) = Found { whole, ..Found::NONE } };
                }
                return self.skip(skip, now);
            }
            if self.searches {
                // SAFETY: by the caller; what lies before in the row has been searched, or has got what it is skipped by.
                unsafe { shot.search(here.y, here.x..here.x + 1) };
            }
        }
        let best_found = found(0);
        if may_be_skipped && !skips_first {
            let satd = match skipped == best_found.whole.vector {
                true => best_found.whole.satd,
                false => nearest.satd(&source.luma, Part::WHOLE, skipped),
            };
            if satd <= best_found.whole.satd + 8 * lambda {
                // SAFETY: by the caller.
                if unsafe { self.leaves_nothing(here, source, &skip) } {
                    return self.skip(skip, now);
                }
            }
        }

        // As a whole: what was found, and what comes for few bits.
        let te = |index: usize| te_bits(index as u32, count as u32 - 1);
        let predicted = vectors.predicted(Part::WHOLE, 0);
        let whole = |index: usize, found: Match, predicted: Vector| {
            let bits = Cut::Whole.bits() + vector_bits(found.vector, predicted) + te(index);
            (found.satd + lambda * bits, Motion::of(0, found.vector, index as i8))
        };
        let mut best = whole(0, best_found.whole, predicted);
        for index in 1..count {
            let other = whole(index, found(index).whole, vectors.predicted(Part::WHOLE, index as i8));
            best = if other.0 < best.0 { other } else { best };
        }
        for (i, vector) in [predicted, skipped].into_iter().enumerate() {
            let is_known = vector == best_found.whole.vector || i > 0 && vector == predicted;
            if !is_known && nearest.allows(vector) {
                let satd = nearest.satd(&source.luma, Part::WHOLE, vector);
                let other = whole(0, Match { vector, satd }, predicted);
                best = if other.0 < best.0 { other } else { best };
            }
        }
        let (cost, motion) = best;
        let mut best = Decision { cut: Cut::Whole, from: [From::First; 4], motion: [motion; 4], cost };

        // In parts: the best picture for each.
        let mut weigh = |cut: Cut, matches: &dyn Fn(usize, usize) -> Option<Match>| -> Option<()> {
            let mut vectors = vectors;
            let mut decision =
                Decision { cut, from: [From::First; 4], motion: [Motion::NONE; 4], cost: lambda * cut.bits() };
            for (i, part) in cut.parts().iter().enumerate() {
                let costs = (0..count).filter_map(|index| {
                    let found = matches(index, i)?;
                    let bits = vector_bits(found.vector, vectors.predicted(*part, index as i8)) + te(index);
                    Some((found.satd + lambda * bits, Motion::of(0, found.vector, index as i8)))
                });
                let (cost, motion) = costs.min_by_key(|cost| cost.0)?;
                decision.cost += cost;
                vectors.set(*part, &motion);
                part.quarters().for_each(|quarter| decision.motion[quarter] = motion);
            }
            if decision.cost < best.cost {
                best = decision;
            }
            Some(())
        };
        if settings.effort.has_parts {
            weigh(Cut::Wide, &|index, part| Some(found(index).wide?[part]));
            weigh(Cut::Tall, &|index, part| Some(found(index).tall?[part]));
            weigh(Cut::Quarters, &|index, part| Some(found(index).quarters?[part]));
        }

        if !self.is_better_intra(here, source, best.cost, now, made) {
            // SAFETY: by the caller.
            unsafe { self.write_inter(here, source, best, may_be_skipped.then_some(skip), now, made) };
        }
    }

    /// Codes what its own picture predicts, where other pictures do not do well: whether that was better.
    pub(super) fn is_better_intra(
        &mut self,
        here: &Here<'_>,
        source: &Block,
        cost: u32,
        now: &mut Macroblock,
        made: &mut Block,
    ) -> bool {
        let lambda = self.shot.settings.lambda;
        if cost <= 32 * lambda {
            return false;
        }
        let whole = self.best_whole(here, &source.luma);
        // Longer types, and modes of chroma.
        let extra = 6 * lambda;
        let blocks = match 4 * whole.1 < self.shot.settings.effort.intra * cost {
            true => self.blocks(here, &source.luma, whole.1.min(cost.saturating_sub(extra))),
            false => None,
        };
        let is_better = blocks.as_ref().map_or(whole.1, |blocks| blocks.cost) + extra < cost;
        if is_better {
            self.write_intra(here, source, whole.0, blocks, now, made);
        }
        is_better
    }

    /// Predicts luma, and transforms what is left of it, unless that has been done.
    ///
    /// # Safety
    /// As [`RowCoder::code`].
    unsafe fn try_luma(&mut self, here: &Here<'_>, source: &Block, parts: &[Part], motion: &[Motion; 4]) {
        if self.tried.motion.as_ref() == Some(motion) {
            return;
        }
        // SAFETY: by the caller.
        unsafe { self.shot.predict_luma(here, parts, motion, &mut self.tried.prediction.luma) };
        let Tried { prediction, lanes, levels, .. } = &mut self.tried;
        self.tried.coded = self.shot.settings.luma_inter(&source.luma, &prediction.luma, lanes, levels);
        self.tried.motion = Some(*motion);
    }

    /// Whether nothing worth coding is left of what is predicted, which has been tried then.
    ///
    /// # Safety
    /// As [`RowCoder::code`].
    pub(super) unsafe fn leaves_nothing(&mut self, here: &Here<'_>, source: &Block, motion: &[Motion; 4]) -> bool {
        let parts = parts_of(motion);
        // SAFETY: by the caller.
        unsafe { self.try_luma(here, source, parts, motion) };
        if self.tried.coded != 0 {
            return false;
        }
        let chroma = &mut self.tried.prediction.chroma;
        // SAFETY: by the caller.
        unsafe { self.shot.predict_chroma(here, parts, motion, chroma) };
        self.shot.settings.chroma_levels(&source.chroma, chroma, false, &mut self.lanes).pattern() == 0
    }

    /// Makes it what was tried last.
    pub(super) fn skip(&mut self, motion: [Motion; 4], now: &mut Macroblock) {
        now.kind = Kind::Skip;
        now.motion = motion;
        self.row.skip(now);
    }

    /// Writes it as it was decided to be; if nothing is left of it, as skipped, where it is what is predicted then.
    ///
    /// # Safety
    /// As [`RowCoder::code`].
    pub(super) unsafe fn write_inter(
        &mut self,
        here: &Here<'_>,
        source: &Block,
        decision: Decision,
        skipped: Option<[Motion; 4]>,
        now: &mut Macroblock,
        made: &mut Block,
    ) {
        let shot = self.shot;
        let settings = &shot.settings;
        let is_direct = decision.from.contains(&From::Direct);
        let parts = if is_direct { parts_of(&decision.motion) } else { decision.cut.parts() };
        // SAFETY: of both, by the caller.
        unsafe {
            self.try_luma(here, source, parts, &decision.motion);
            shot.predict_chroma(here, parts, &decision.motion, &mut self.tried.prediction.chroma);
        }
        let Tried { prediction, lanes, levels, coded, .. } = &self.tried;
        let chroma = settings.chroma_levels(&source.chroma, &prediction.chroma, false, &mut self.lanes);
        let pattern = luma_pattern(*coded) | chroma.pattern() << 4;
        if pattern == 0 && decision.cut == Cut::Whole && skipped == Some(decision.motion) {
            return self.skip(decision.motion, now);
        }
        settings.made_luma((lanes, *coded), None, &prediction.luma, &mut made.luma);
        settings.made_chroma((&self.lanes, &chroma), &prediction.chroma, &mut made.chroma);
        now.kind = Kind::Inter;
        now.motion = decision.motion;
        let mut moved = Moved { cut: decision.cut, from: decision.from, ..Moved::DIRECT };
        for list in 0..2 {
            let mut vectors = Vectors::new(here, list);
            for (i, part) in decision.cut.parts().iter().enumerate() {
                let motion = decision.motion[first_quarter(part)];
                if decision.from[i].writes(list) {
                    let vector = motion.vectors[list];
                    let predicted = vectors.predicted(*part, motion.references[list]);
                    moved.differences[list][i] = [vector.x - predicted.x, vector.y - predicted.y].map(i32::from);
                    if list == 0 {
                        moved.references[i] = motion.references[0] as u8;
                    }
                }
                vectors.set(*part, &motion);
            }
        }
        let (kind, luma) = (Type::Inter(moved), *levels);
        let syntax = Syntax { kind, chroma_mode: 0, pattern, luma, luma_dc: None, chroma };
        self.write(here, source, syntax, now, made);
    }
}

/// As few parts as these quarters are.
pub(super) fn parts_of(motion: &[Motion; 4]) -> &'static [Part] {
    if Motion::is_one(motion) { Cut::Whole.parts() } else { Cut::Quarters.parts() }
}
