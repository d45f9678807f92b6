//! Loops of a list of calls: how often they turn, and how they are taken apart into those of parts and those inside of one.

use crate::facts::TaskRef;
use crate::scope::Lying;
use multigrain_program::{CallShape, Tunable, Tunables};

/// What is known of a call that is a part before it is planned.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    /// The loops inside of the part; `None` where they are looked for as those of any call are, which may be in parts itself.
    pub(crate) loops: Option<Tunables>,
    /// Whether it is a part of full size, for which better blocks are looked for; the others take its.
    pub(crate) leads: bool,
    /// Where its arguments lie: those of the first of its shape.
    pub(crate) lying: Lying,
}

/// So many calls a list of these loops has: as many as the loops turn.
pub(crate) fn turns(task: &TaskRef, shape: &CallShape, loops: &Tunables) -> u64 {
    counts(&task.tunables(shape), loops).iter().fold(1, |all, (_, _, count)| all.saturating_mul(*count))
}

/// For each loop, from the outermost: its axis, the length of its blocks, and how often it turns.
fn counts(axes: &[Tunable], loops: &Tunables) -> Vec<(&'static str, u64, u64)> {
    let mut left: Vec<(&'static str, u64)> = axes.iter().map(|axis| (axis.name, axis.extent)).collect();
    let one = |(name, length): (&'static str, u64)| {
        let (_, outer) = left.iter_mut().find(|(axis, _)| *axis == name)?;
        let length = length.clamp(1, (*outer).max(1));
        let count = outer.div_ceil(length).max(1);
        *outer = length;
        Some((name, length, count))
    };
    loops.iter().filter_map(one).collect()
}

/// So many chains of calls for each child keep all of them busy to the end of a part, but for an eighth.
const CHAINS_EACH: u64 = 8;

/// The loops of the parts of a call with these axes: the outermost of its loops, of which the last takes several turns at once, so that a
/// part has at most `listed` calls; more where there would be more parts than that. Calls along a folded axis are a chain that
/// one child does: where few chains are a part already, and there are several children, parts take pieces of all chains.
pub(crate) fn outer(task: &TaskRef, axes: &[Tunable], loops: &Tunables, listed: u64, children: u64) -> Tunables {
    let mut loops = counts(axes, loops);
    let all = loops.iter().fold(1u64, |all, (_, _, count)| all.saturating_mul(*count));
    let most = all.div_ceil(listed).max(listed);
    let folded = task.notation().map(|notation| notation.folded(task.params())).unwrap_or_default();
    let is_folded = |(name, ..): &(&'static str, u64, u64)| folded.iter().any(|&axis| axes[axis].name == *name);
    let chain = loops.iter().filter(|found| is_folded(found)).fold(1u64, |all, found| all.saturating_mul(found.2));
    let chains = (all / chain).min(CHAINS_EACH.saturating_mul(children)).max(1);
    let longest = (most / chains).max(1);
    if children > 1
        && chain > longest
        && let Some(at) = loops.iter().position(is_folded)
    {
        let (name, length, count) = loops[at];
        let turns = count.div_ceil(chain.div_ceil(longest));
        loops[at].2 = turns;
        loops.insert(0, (name, length.saturating_mul(turns), count.div_ceil(turns)));
    }
    let mut inside = 1u64;
    for (at, &(name, length, count)) in loops.iter().enumerate().rev() {
        if inside.saturating_mul(count) <= most {
            inside *= count;
            continue;
        }
        // Parts of one size rather than a short one at the end.
        let pieces = count.div_ceil((most / inside).max(1));
        let mut parts: Tunables = loops[..at].iter().map(|&(name, length, _)| (name, length)).collect();
        parts.push(name, length.saturating_mul(count.div_ceil(pieces)));
        return parts;
    }
    Tunables::new()
}

/// The same loops over the axes of a call that has shorter ones.
pub(crate) fn clipped(task: &TaskRef, shape: &CallShape, loops: &Tunables) -> Tunables {
    counts(&task.tunables(shape), loops).into_iter().map(|(name, length, _)| (name, length)).collect()
}

/// Calls with shorter lists are no parts: what stays from one to the next is worth more.
pub(crate) const PART_LISTED_MIN: u64 = 32;
