//! What is told of a panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use thiserror::Error;

/// A job panicked on a worker. The other workers finished theirs; the team can be used again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("worker {worker} panicked: {message}")]
pub struct WorkerPanic {
    /// The worker whose job panicked, the first if several did.
    pub worker: usize,
    /// The text of the panic.
    pub message: String,
}

/// The text of a panic, which this is the end of.
#[cold]
#[inline(never)]
pub fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let message = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a text".to_string()
    };
    // Dropping a payload may itself panic, and that must not end the worker. What that second panic throws is leaked:
    // only a program that throws values of its own, whose end throws again, gets here.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    message
}
