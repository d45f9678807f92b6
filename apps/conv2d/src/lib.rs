//! Two-dimensional correlation with a small dense array of weights, in single precision: task, kernel, pictures,
//! command.
//!
//! In come an array or a picture and weights, by name or in a file; out goes the filtered array or picture, the same to
//! the last bit on one thread or many, in any memory budget, on any machine. This room never decides where blocks lie.

pub mod app;
pub mod border;
mod check;
mod chunks;
pub mod kernel;
pub mod padded;
pub mod picture;
mod scratch;
pub mod task;
