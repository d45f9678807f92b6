//! Transfers on their way, and their receipts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::StoreError;
use crate::transfer::TransferList;
use multigrain_trace::Tick;

/// How a transfer stands, shared by its ticket and the disk.
#[derive(Default)]
pub(crate) struct TicketState {
    done: AtomicBool,
    /// Set before `done`.
    result: OnceLock<Result<(), StoreError>>,
    /// Set before `done`, for transfers whose times were asked for.
    times: OnceLock<[Tick; 2]>,
}

impl TicketState {
    pub(crate) fn finished(result: Result<(), StoreError>) -> TicketState {
        TicketState { done: AtomicBool::new(true), result: OnceLock::from(result), times: OnceLock::new() }
    }

    pub(crate) fn is_done(&self) -> bool {
        // Acquire: whoever sees the flag sees the bytes that the transfer brought.
        self.done.load(Ordering::Acquire)
    }

    /// What became of a transfer that is done.
    pub(crate) fn result(&self) -> Result<(), StoreError> {
        self.result.get().cloned().unwrap_or(Ok(()))
    }

    /// When the first operation was started and when the last ended.
    pub(crate) fn times(&self) -> Option<[Tick; 2]> {
        self.times.get().copied()
    }

    pub(crate) fn took(&self, started: Tick, ended: Tick) {
        // Set once: a transfer completes once.
        let _ = self.times.set([started, ended]);
    }

    /// Called once, under the lock of the desk.
    pub(crate) fn complete(&self, result: Result<(), StoreError>) {
        let _ = self.result.set(result);
        self.done.store(true, Ordering::Release);
    }
}

/// A transfer list on its way.
pub(crate) struct Job {
    pub(crate) list: TransferList,
    pub(crate) ticket: Arc<TicketState>,
    /// Whether the ticket is to tell when the transfer started and ended.
    pub(crate) timed: bool,
}
