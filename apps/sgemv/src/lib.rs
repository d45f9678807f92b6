//! The sgemv application: its task, its kernels, its reference.

pub mod kernel;
