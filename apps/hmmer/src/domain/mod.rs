//! Domains: what becomes of a sequence's Forward score until it is reported.
//!
//! ```text
//! Forward, Backward of the sequence -> where domains lie -> regions -> envelopes -> each rescored alone
//!                                                            |                       |
//!                                      several domains: sampled alignments,       null2: how much of the
//!                                      clustered (Cluster)                        score is composition
//! scores of envelopes and sequence -> bias, P-values -> Hit
//! ```
//!
//! The rules are those of HMMER 3.3.2's search with all filters off, so that scores, biases and counts are its own. That
//! takes the same bits: regions with several domains are resolved by 200 alignments sampled with random numbers from a
//! fixed seed, and a probability that differs in its last bit may sample another alignment. So sums run in the order of
//! HMMER's vectors of four (see `matrix.rs`), on every processor.
//!
//! S. R. Eddy, "Accelerated profile HMM searches", PLoS Computational Biology 7:e1002195 (2011), describes the
//! heuristics; constants that are not in the paper are HMMER's defaults.
//!
//! # Which sequences need this
//!
//! All this costs some ten times as much as a Forward score, so it is done only where the result can be reported; see
//! [`Bound`].

mod accuracy;
mod bound;
mod cluster;
mod define;
mod matrix;
mod model;
mod null2;
mod sample;
mod score;

#[cfg(test)]
mod tests;

pub use accuracy::{Aligned, Column, Step};
pub use bound::Bound;
pub use define::{Finder, Short};
pub(crate) use score::forward_bits;
pub use score::{Domain, Hit};
