//! Published machines as models, and their published figures: what the simulator is held against.
//!
//! `PAPERS.md` beside this crate says for each what is modelled, which constants it has and where each comes from.

pub mod blade;
mod published;
pub mod raxml;
pub mod spufs;

pub use published::{Row, Use, errors};
