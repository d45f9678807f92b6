//! What is told of a panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use std::cell::Cell;

use thiserror::Error;

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Says that whatever panics on this thread is caught, and told by whoever waits for the thread's work. A hook for panics that ends
/// the process of one that nobody would hear of asks [`are_panics_caught`].
pub fn catches_panics() {
    CAUGHT.set(true);
}

/// Whether somebody tells of what panics on this thread: see [`catches_panics`].
pub fn are_panics_caught() -> bool {
    CAUGHT.try_with(Cell::get).unwrap_or(false)
}

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
