//! The I/O thread's mailbox and its loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::promptness::run_soon_after_waking;
use super::run::Runner;
use crate::disk::Context;
use crate::error::StoreError;
use crate::transfer::TransferList;
use multigrain_trace::Tick;

/// How a transfer stands, shared by its ticket and the I/O thread.
#[derive(Default)]
pub(crate) struct TicketState {
    done: AtomicBool,
    result: Mutex<Option<Result<(), StoreError>>>,
    changed: Condvar,
    /// Set before `done`, for transfers whose times were asked for.
    times: OnceLock<[Tick; 2]>,
}

impl TicketState {
    pub(crate) fn finished(result: Result<(), StoreError>) -> TicketState {
        TicketState { done: AtomicBool::new(true), result: Mutex::new(Some(result)), ..TicketState::default() }
    }

    pub(crate) fn is_done(&self) -> bool {
        // Acquire: whoever sees the flag sees the bytes that the transfer brought.
        self.done.load(Ordering::Acquire)
    }

    /// When the first operation was started and when the last ended.
    pub(crate) fn times(&self) -> Option<[Tick; 2]> {
        self.times.get().copied()
    }

    pub(crate) fn took(&self, started: Tick, ended: Tick) {
        // Set once: a transfer completes once.
        let _ = self.times.set([started, ended]);
    }

    pub(crate) fn complete(&self, result: Result<(), StoreError>) {
        *self.lock() = Some(result);
        self.done.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    pub(crate) fn wait(&self) -> Result<(), StoreError> {
        let mut guard = self.lock();
        loop {
            if let Some(result) = guard.as_ref() {
                return result.clone();
            }
            guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<(), StoreError>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transfer list on its way.
pub(crate) struct Job {
    pub(crate) list: TransferList,
    pub(crate) ticket: Arc<TicketState>,
    /// Whether the ticket is to tell when the transfer started and ended.
    pub(crate) timed: bool,
}

/// What the I/O thread is told.
pub(crate) enum Message {
    Transfer(Job),
    /// Finish what is under way, then end.
    Stop,
}

/// Where messages wait for the I/O thread.
#[derive(Default)]
pub(crate) struct Inbox(Mutex<Vec<Message>>);

impl Inbox {
    /// Leaves a message; whether the I/O thread must be woken for it (it takes all at once, so for the first only).
    pub(crate) fn put(&self, message: Message) -> bool {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(message);
        messages.len() == 1
    }

    fn take(&self, into: &mut Vec<Message>) {
        into.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The loop of the I/O thread: ends after `Stop` once nothing is under way.
pub(crate) fn serve(mut runner: Runner, inbox: &Inbox, context: &Context) {
    run_soon_after_waking();
    let mut messages = Vec::new();
    let mut stop = false;
    loop {
        inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Transfer(job) => runner.accept(job),
                Message::Stop => stop = true,
            }
        }
        runner.issue(context);
        if stop && runner.is_idle() {
            return;
        }
        runner.reap(context);
    }
}
