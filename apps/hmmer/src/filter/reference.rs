//! The filters node by node, as a textbook has their recurrences: what the kernel is held against.

use super::quantised::{BYTE_BASE, NEVER, NEVER_BYTE, Quantised, WORD_BASE, word};
use super::{Filters, Judge, Scores, half, leave, msv_nats, prices, viterbi_nats};
use crate::profile::{LogOdds, Profile};

/// The filters of one profile.
pub struct Reference {
    judge: Judge,
    scores: Plain,
}

impl Reference {
    /// The filters of a profile.
    pub fn new(profile: &Profile, filters: &Filters) -> Reference {
        Reference { judge: Judge::new(profile, filters), scores: Plain::new(profile) }
    }

    /// How many filters a sequence of residue codes passes.
    ///
    /// # Panics
    /// When a residue is no code.
    pub fn passed(&mut self, residues: &[u8]) -> u8 {
        if residues.is_empty() { 0 } else { self.judge.passed(&mut self.scores, residues) }
    }
}

/// Scores in plain numbers.
pub(super) struct Plain(Quantised);

impl Plain {
    pub(super) fn new(profile: &Profile) -> Plain {
        Plain(Quantised::new(&LogOdds::new(profile)))
    }
}

impl Scores for Plain {
    fn msv(&mut self, residues: &[u8]) -> f32 {
        let q = &self.0;
        let prices = prices(q.entry, q.bias, residues.len());
        let (mut row, mut rejoined) = (vec![0i32; q.bytes.len()], 0);
        let mut begin = prices.begin();
        for &x in residues {
            let mut before = 0;
            let mut end = 0;
            for (cell, emissions) in row.iter_mut().zip(&q.bytes) {
                let emission = emissions[usize::from(x)];
                // What cannot be leads to nothing.
                let new = if emission == NEVER_BYTE { 0 } else { (begin.max(before) + i32::from(emission)).max(0) };
                (before, *cell) = (*cell, new);
                end = end.max(new);
            }
            if end + q.bias >= 255 {
                return msv_nats(None, prices.leave);
            }
            rejoined = rejoined.max(end - prices.end);
            begin = (BYTE_BASE.max(rejoined) - prices.leave - prices.entry).max(0);
        }
        // Nothing below what any single residue can have from B counts.
        msv_nats(Some(rejoined.max(prices.begin() - prices.end).max(0)), prices.leave)
    }

    fn viterbi(&mut self, residues: &[u8]) -> f32 {
        let q = &self.0;
        let nodes = q.words.len();
        let (end, leave) = (i32::from(word(half())), word(leave(residues.len())));
        let mut row = vec![[NEVER; 3]; nodes];
        let (mut again, mut last) = (i32::from(NEVER), i32::from(NEVER));
        for &x in residues {
            let begin = (again.max(WORD_BASE) + i32::from(leave)) as i16;
            let old = row.clone();
            let mut best = NEVER;
            for k in 0..nodes {
                let t = |i: usize| q.transitions[k][i];
                let [m, i, d] = if k > 0 { old[k - 1] } else { [NEVER; 3] };
                let ways = [
                    begin.saturating_add(t(0)),
                    m.saturating_add(t(1)),
                    i.saturating_add(t(2)),
                    d.saturating_add(t(3)),
                ];
                let new = ways.into_iter().fold(NEVER, Ord::max).saturating_add(q.words[k][usize::from(x)]);
                let insert = old[k][0].saturating_add(t(5)).max(old[k][1].saturating_add(t(6)));
                let delete = match k {
                    0 => NEVER,
                    _ => {
                        let t = |i: usize| q.transitions[k - 1][i];
                        row[k - 1][0].saturating_add(t(4)).max(row[k - 1][2].saturating_add(t(7)))
                    }
                };
                row[k] = [new, insert, delete];
                best = best.max(new);
            }
            if best == i16::MAX {
                return f32::INFINITY;
            }
            last = last.max(i32::from(best) + end);
            again = again.max(i32::from(best) + end);
        }
        viterbi_nats((last > i32::from(NEVER)).then_some((last - WORD_BASE) as f32), leave)
    }
}
