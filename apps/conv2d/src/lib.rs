//! The conv2d application: its task, its kernels, its reference.

pub mod kernel;
pub mod picture;
