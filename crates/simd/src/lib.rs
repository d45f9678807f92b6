//! Instruction sets for leaf kernels: which of them this processor executes, and vectors of `f32` for each.
//!
//! In comes nothing but the processor; out go [`Isa`], the choice at run time, and [`Lanes`], in terms of which a
//! kernel is written once for all of them, so that its order of arithmetic cannot differ. This room holds no kernel,
//! allocates nothing and knows nothing of machines, tasks or blocks.

mod isa;
mod lanes;

pub use isa::Isa;
pub use lanes::{Lanes, NAN_BITS};
