//! Likelihood kernels: what is computed from site patterns, as lists of steps on chunks of patterns.
//!
//! The patterns of a partition are cut into chunks ([`chunk_patterns`]), each with all its memory: codes of tips, one
//! conditional likelihood vector a slot, scratch. A [`Batch`] is a list of [`Step`]s with the matrices that they need; a
//! chunk executes all of them before the next chunk begins, so that what one step leaves in the cache the next one finds
//! there, and chunks are independent of each other: any worker may run any of them.
//!
//! Within a chunk eight patterns lie side by side, `[block][category][state][pattern of 8]`: products with transition
//! matrices are multiplications of vectors with broadcast numbers, in the same order with each instruction set. Sums over
//! patterns end at chunks, and the sums of chunks are added by a fixed tree ([`tree_sum`]).

mod batch;
mod chunk;
mod combine;
mod dispatch;
mod layout;
mod matrices;
mod operand;
mod ready;
mod reduce;

pub use batch::{Batch, Operand, Source, Step};
pub use chunk::{Chunk, chunk_patterns};
pub use dispatch::execute;
pub use matrices::Constants;
pub(crate) use ready::KEPT as MATRICES_KEPT;

/// States that kernels compute with: they take four at a time, and binary data has two that nothing ever reaches.
pub fn kernel_states(states: usize) -> usize {
    states.max(4)
}

/// The threshold of scaling, 2^-256: where all entries of a pattern are below it they are multiplied by its inverse, and
/// the pattern's count rises by one.
pub const SCALE_THRESHOLD: f64 = f64::from_bits((1023 - 256) << 52);
/// 2^256.
pub const SCALE_FACTOR: f64 = f64::from_bits((1023 + 256) << 52);
/// ln 2^-256, what each count adds to a log-likelihood.
pub const SCALE_LN: f64 = -256.0 * std::f64::consts::LN_2;

/// The sum of partial sums by a fixed binary tree: neighbours, pairs of neighbours, and so on.
pub fn tree_sum(values: &mut Vec<f64>) -> f64 {
    while values.len() > 1 {
        let pairs = values.len().div_ceil(2);
        for i in 0..pairs {
            values[i] = values[2 * i] + values.get(2 * i + 1).copied().unwrap_or(0.0);
        }
        values.truncate(pairs);
    }
    values.first().copied().unwrap_or(0.0)
}
