//! The sgemm application: its task, its kernels, its reference.

pub mod kernel;
pub mod task;
