//! The matrix product C = A B in single precision: task, kernels, command.
//!
//! In come two matrices in files or generated from a seed; out goes their product, the same to the last bit on one
//! thread or many, in any memory budget, on any machine. This room never decides where blocks lie.

pub mod app;
mod check;
pub mod kernel;
pub mod task;
