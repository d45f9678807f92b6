//! A profile as the kernels read it: odds ratios of emissions and probabilities of transitions, in single precision.
//!
//! ```text
//! node 1: 32 odds ratios | node 2: 32 odds ratios | ... | node M | node 1: 8 transitions | ... | node M
//! ```

/// Odds ratios of a node: the codes of the alphabet, and zeros up to what a lookup by five bits reaches.
pub const CODES_PADDED: usize = 32;
/// A code that no state emits and no sequence holds: what idle lanes read.
pub(super) const IDLE: u32 = 31;
/// Transitions of a node, in the order of [`Node`].
pub(super) const TRANSITIONS: usize = 8;
/// Numbers of a node.
pub const NODE_FLOATS: usize = CODES_PADDED + TRANSITIONS;

/// One node of a profile: what goes into its match state from outside, and what leaves its states for the next node or
/// its own insert state. Probabilities; those of the last node but `entry` are 0, for nothing follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Node {
    /// Odds ratio of every residue code at the match state, 0 where it cannot be emitted.
    pub odds: [f32; CODES_PADDED],
    /// B to M of this node.
    pub entry: f32,
    /// M to M of the next node.
    pub mm: f32,
    /// I to M of the next node.
    pub im: f32,
    /// D to M of the next node.
    pub dm: f32,
    /// M to I.
    pub mi: f32,
    /// I to I.
    pub ii: f32,
    /// M to D of the next node.
    pub md: f32,
    /// D to D of the next node.
    pub dd: f32,
}

/// The tables of a profile of these nodes: `nodes.len() *` [`NODE_FLOATS`] numbers.
pub fn pack(nodes: &[Node]) -> Vec<f32> {
    let odds = nodes.iter().flat_map(|n| n.odds);
    let transitions = nodes.iter().flat_map(|n| [n.entry, n.mm, n.im, n.dm, n.mi, n.ii, n.md, n.dd]);
    odds.chain(transitions).collect()
}
