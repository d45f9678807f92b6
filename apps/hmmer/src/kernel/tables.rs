//! A profile as the kernels read it: odds ratios of emissions and probabilities of transitions, in single precision.
//!
//! ```text
//! node 1: 32 odds ratios | node 2: 32 odds ratios | ... | node M | node 1: 8 transitions | ... | node M
//! ```

use crate::profile::{LocalNode, alphabet::CODES};

/// Odds ratios of a node: the codes of the alphabet, and zeros up to what a lookup by five bits reaches.
pub const CODES_PADDED: usize = 32;
/// A code that no state emits and no sequence holds: what idle lanes read.
pub(super) const IDLE: u32 = 31;
/// Transitions of a node: B to M, M to M, I to M, D to M, M to I, I to I, M to D, D to D.
pub(super) const TRANSITIONS: usize = 8;
/// Numbers of a node.
pub const NODE_FLOATS: usize = CODES_PADDED + TRANSITIONS;

/// The tables of a model: `nodes.len() *` [`NODE_FLOATS`] numbers.
pub fn pack(nodes: &[LocalNode]) -> Vec<f32> {
    let padding = [0.0; CODES_PADDED - CODES];
    let odds = nodes.iter().flat_map(|n| n.odds.into_iter().chain(padding));
    let transitions = nodes.iter().flat_map(|n| {
        let t = n.leave;
        [n.entry, t.mm, t.im, t.dm, t.mi, t.ii, t.md, t.dd]
    });
    odds.chain(transitions).map(|x| x as f32).collect()
}
