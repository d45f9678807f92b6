//! y = alpha x + y in single precision: tasks, kernel, command.
//!
//! In come two vectors in files or generated from a seed; out goes alpha x + y, the same to the last bit on one thread
//! or many, in any memory budget, on any machine. Files are never changed: from files the sum goes to a file of its
//! own. This room never decides where blocks lie.

pub mod app;
mod check;
pub mod kernel;
pub mod task;
