//! The discrete Fourier transform of a volume of complex numbers in single precision: tasks, kernels, command.
//!
//! In comes a volume of complex64 in a file or generated from a seed, whose lengths have the factors 2, 3, 5 and 7; out
//! goes its transform, forward or inverse, the same to the last bit on one thread or many, in any memory budget, on any
//! machine. This room never decides where blocks lie, nor how often the volume is read and written.

pub mod app;
mod check;
pub mod kernel;
pub mod task;
