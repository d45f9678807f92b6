//! A profile in whole numbers, as the filters add them up.

use crate::profile::LogOdds;
use crate::profile::alphabet::CODES;
use std::f64::consts::LN_2;

/// MSV's unit: a third of a bit.
pub(super) const BYTE_SCALE: f32 = (3.0 / LN_2) as f32;
/// What N begins with in MSV.
pub(super) const BYTE_BASE: i32 = 190;
/// An emission that cannot be. MSV's numbers reach no higher than this is below zero.
pub(super) const NEVER_BYTE: i8 = -127;
/// The Viterbi filter's unit.
pub(super) const WORD_SCALE: f32 = (500.0 / LN_2) as f32;
/// What N begins with in the Viterbi filter.
pub(super) const WORD_BASE: i32 = 12_000;
/// Minus infinity in the Viterbi filter.
pub(super) const NEVER: i16 = i16::MIN;
/// The states outside of the nodes pass residues on at no price in MSV and Viterbi; this is what it should be, in nats:
/// L ln(L / (L + 3)).
pub(super) const OUTSIDE_NATS: f32 = 3.0;
/// Transitions of a node in the Viterbi filter: B to M, and M, I, D of the node before to M; M to D, M to I, I to I; D to D.
pub(super) const TRANSITIONS: usize = 8;

/// A price in units of MSV, as it is subtracted.
pub(super) fn price(nats: f32) -> i32 {
    -(BYTE_SCALE * nats).round().max(-255.0) as i32
}

/// A score in units of the Viterbi filter.
pub(super) fn word(nats: f32) -> i16 {
    // Conversion stops at the ends of the range.
    (WORD_SCALE * nats).round() as i16
}

/// A profile's numbers, for nodes 1 to M in order.
pub(super) struct Quantised {
    /// The best emission in units of MSV: what its numbers are kept below the end of their range by.
    pub(super) bias: i32,
    /// The price of B to any M in MSV, whose entries are uniform.
    pub(super) entry: i32,
    /// Emissions of every code in MSV.
    pub(super) bytes: Vec<[i8; CODES]>,
    /// Emissions of every code in the Viterbi filter.
    pub(super) words: Vec<[i16; CODES]>,
    /// Transitions of the Viterbi filter.
    pub(super) transitions: Vec<[i16; TRANSITIONS]>,
    /// What a way along delete states, from where one is entered to the next match state, can gain over entering that
    /// match state from B, but for the first price of the way.
    pub(super) delete_gain: i32,
}

impl Quantised {
    pub(super) fn new(scores: &LogOdds) -> Quantised {
        let nodes = scores.matches.len();
        let best = scores.matches.iter().flatten().fold(0.0f32, |best, &score| best.max(score));
        let byte = |score: f32| (BYTE_SCALE * score).round().max(NEVER_BYTE.into()) as i8;
        let each = |k: usize| {
            // What leaves node k; nothing leaves node 0 and the last one.
            let leave = |k: usize, which: usize| match (1..nodes).contains(&k) {
                true => word(scores.transitions[k][which]),
                false => NEVER,
            };
            let [mm, im, dm] = [0, 3, 5].map(|which| leave(k - 1, which).min(0));
            let [md, mi, dd] = [2, 1, 6].map(|which| leave(k, which).min(0));
            // Insert states that cost nothing would make a sequence of any length free.
            let ii = leave(k, 4).min(-1);
            [word(scores.entry[k - 1]).min(0), mm, im, dm, md, mi, ii, dd]
        };
        let transitions: Vec<[i16; TRANSITIONS]> = (1..=nodes).map(each).collect();
        // D of node k to that of k + 1, to M of k + 2.
        let gain = |next: &[[i16; TRANSITIONS]]| i32::from(next[0][7]) + i32::from(next[2][3]) - i32::from(next[2][0]);
        Quantised {
            bias: -price(best).min(0),
            entry: price((2.0f32 / (nodes as f32 * (nodes + 1) as f32)).ln()),
            bytes: scores.matches.iter().map(|scores| scores.map(byte)).collect(),
            words: scores.matches.iter().map(|scores| scores.map(word)).collect(),
            delete_gain: transitions.windows(3).map(gain).max().unwrap_or(NEVER.into()),
            transitions,
        }
    }
}
