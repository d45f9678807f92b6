//! The primitives that the desk is written in: those of `std`, or, under `--cfg loom`, those of the model checker. The
//! protocol code is the same under both.

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
