//! The matrix-vector product y = A x in single precision: tasks, kernel, command.
//!
//! In come a matrix and a vector in files or generated from a seed; out goes their product, the same to the last bit
//! on one thread or many, in any memory budget, on any machine. This room never decides where blocks lie.

pub mod app;
mod check;
pub mod kernel;
pub mod task;
