//! The Viterbi filter: the best alignment with gaps, in words, striped as in [`crate::domain`]'s model (Farrar 2007).

use super::quantised::{NEVER, TRANSITIONS, WORD_BASE};
use multigrain_simd::Saturating;

/// Match, insert and delete states of one vector of nodes.
pub(super) const STATES: usize = 3;

/// What a profile's Viterbi filter reads.
#[derive(Clone, Copy)]
pub(super) struct Tables {
    /// Emissions: for each code as many vectors as a row has.
    pub(super) emissions: *const i16,
    /// [`TRANSITIONS`] vectors for each vector of a row.
    pub(super) transitions: *const i16,
    /// As in [`Quantised`](super::quantised::Quantised).
    pub(super) delete_gain: i32,
}

/// What C has in the end, without the way to T: infinite where the numbers overflow, None where nothing leads there.
/// `end` is the score of E to J and E to C, `leave` that of N to B and J to B.
///
/// # Safety
/// The processor supports the instruction set of `V`; the tables are those of `row.len()` vectors, and every residue is a
/// code.
#[inline(always)]
pub(super) unsafe fn best<V: Saturating<i16>>(
    tables: Tables,
    (end, leave): (i16, i16),
    residues: &[u8],
    row: &mut [[V; STATES]],
) -> Option<f32> {
    // SAFETY: of all blocks: as this function's.
    unsafe {
        let never = V::splat(NEVER);
        row.fill([never; STATES]);
        let quads = row.len();
        let (end, leave) = (i32::from(end), i32::from(leave));
        let (mut again, mut last) = (i32::from(NEVER), i32::from(NEVER));
        let mut begin = WORD_BASE + leave;
        for &x in residues {
            let emissions = tables.emissions.add(usize::from(x) * quads * V::LANES);
            let from = V::splat(begin as i16);
            let (mut best, mut deletes, mut delete) = (never, never, never);
            let [mut m, mut i, mut d] = row[quads - 1].map(|states| states.up(never));
            for (q, states) in row.iter_mut().enumerate() {
                let transition = |t: usize| V::load(tables.transitions.add((q * TRANSITIONS + t) * V::LANES));
                let into = from.add(transition(0)).max(m.add(transition(1)));
                let into = into.max(i.add(transition(2)).max(d.add(transition(3))));
                let new = into.add(V::load(emissions.add(q * V::LANES)));
                best = best.max(new);
                [m, i, d] = *states;
                let insert = m.add(transition(5)).max(i.add(transition(6)));
                *states = [new, insert, delete];
                delete = new.add(transition(4));
                deletes = deletes.max(delete);
            }
            let found = i32::from(best.top());
            if found == i32::from(i16::MAX) {
                return Some(f32::INFINITY);
            }
            last = last.max(found + end);
            again = again.max(found + end);
            begin = (again + leave).max(WORD_BASE + leave);

            let mut into = delete.up(never);
            row[0][2] = into;
            // Ways along more than one delete state, unless entering anew is as good as the best of them.
            if i32::from(deletes.top()) + tables.delete_gain <= begin {
                continue;
            }
            'passes: for pass in 0..V::LANES {
                for (q, [_, _, delete]) in row.iter_mut().enumerate() {
                    // The first pass goes through; a later one ends where it finds nothing better.
                    if pass > 0 && !into.any_above(*delete) {
                        break 'passes;
                    }
                    *delete = delete.max(into);
                    into = delete.add(V::load(tables.transitions.add((q * TRANSITIONS + 7) * V::LANES)));
                }
                into = into.up(never);
            }
        }
        (last > i32::from(NEVER)).then_some((last - WORD_BASE) as f32)
    }
}
