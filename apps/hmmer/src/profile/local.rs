//! The model of local alignments: entry anywhere, exit anywhere, several times in one sequence.
//!
//! ```text
//!      +--------------- J <---------------+        S -> N -> B -> (M, I, D) -> E -> C -> T
//!      v                                  |
//! N -> B -> M_k ... M_m (I, D between) -> E -> C
//! ```
//!
//! - B -> M_k: occ_k / sum_j occ_j (M - j + 1), where occ_k is the probability that a path through the core model uses
//!   M_k. All fragments of a path are then equally probable (Eddy 2008, the reference in `statistics.rs`).
//! - M_k -> E and D_k -> E: probability 1, on top of the other transitions; E -> J and E -> C: 1/2 each.
//! - N, J and C: loop L / (L + 3), move 3 / (L + 3) for a sequence of L residues.
//! - Match states emit with odds p(residue) / background; insert, N, J and C states with odds 1.
//! - A degenerate residue has the mean log odds of its members, weighted by their background frequencies.

use super::alphabet::{BACKGROUND, CODES, RESIDUES, members};
use super::{Profile, Transitions};

/// One node of the model of local alignments: what enters its match state from outside, what its match state emits, and
/// what leaves its states. Probabilities and odds ratios. Nothing leaves the states of the last node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalNode {
    /// Odds ratio of every residue code at the match state; 0 for the gap, `*` and missing data.
    pub odds: [f64; CODES],
    /// B to M of this node.
    pub entry: f64,
    /// What leaves its states.
    pub leave: Transitions,
}

impl Profile {
    /// The model of local alignments, one entry a node. What depends on the sequence's length (N, J, C) is the caller's.
    pub fn local(&self) -> Vec<LocalNode> {
        let nodes = self.nodes();
        let occupancy = self.occupancy();
        let total: f64 = occupancy.iter().enumerate().map(|(k, occ)| occ * (nodes - k) as f64).sum();
        let node = |k: usize| {
            let leave = if k + 1 < nodes { self.transitions[k + 1] } else { Transitions::default() };
            LocalNode { odds: odds(&self.matches[k]), entry: occupancy[k] / total, leave }
        };
        (0..nodes).map(node).collect()
    }

    /// The probability that a path through the core model uses each match state.
    fn occupancy(&self) -> Vec<f64> {
        let mut occupancy = Vec::with_capacity(self.nodes());
        let begin = self.transitions[0];
        let mut occ = begin.mi + begin.mm;
        for leave in &self.transitions[1..] {
            occupancy.push(occ);
            occ = occ * (leave.mm + leave.mi) + (1.0 - occ) * leave.dm;
        }
        occupancy
    }
}

/// Odds ratios of all codes, given a match state's probabilities.
fn odds(probabilities: &[f64; RESIDUES]) -> [f64; CODES] {
    let mut odds = [0.0; CODES];
    for (x, odd) in odds.iter_mut().enumerate() {
        let set = members(x as u8);
        let (mut weighted, mut weight) = (0.0, 0.0);
        for i in (0..RESIDUES).filter(|i| set >> i & 1 == 1) {
            let background = f64::from(BACKGROUND[i]);
            weighted += (probabilities[i] / background).ln() * background;
            weight += background;
        }
        if weight > 0.0 {
            *odd = (weighted / weight).exp();
        }
    }
    odds
}

/// Log probability of a sequence of `length` residues under null1, relative to the background's emissions, in nats:
/// `length` times L / (L + 1) and once 1 / (L + 1).
pub fn null1(length: usize) -> f64 {
    let length = length as f64;
    if length == 0.0 { 0.0 } else { length * (length / (length + 1.0)).ln() - (length + 1.0).ln() }
}
