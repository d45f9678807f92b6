//! Two ways to run positional reads and writes asynchronously: io_uring, and a pool of threads.

use std::os::fd::RawFd;

use crate::error::Errno;
use crate::transfer::Direction;

mod pool;
mod uring;

pub(crate) use pool::{POOL_THREADS, Pool};
pub(crate) use uring::Uring;

/// One positional read or write, as the operating system sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawOperation {
    /// Comes back with the completion.
    pub(crate) key: u64,
    pub(crate) direction: Direction,
    pub(crate) fd: RawFd,
    pub(crate) offset_bytes: u64,
    pub(crate) memory: *mut u8,
    pub(crate) len_bytes: u32,
}

// SAFETY: the pointer is only handed to the operating system; the scheduler keeps the memory alive and untouched until
// the completion has come back.
unsafe impl Send for RawOperation {}

/// How an operation ended: bytes moved, or what the system said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) key: u64,
    pub(crate) result: Result<u32, Errno>,
}

/// Runs raw operations; driven by the I/O thread alone.
pub(crate) trait Backend {
    /// Takes an operation; it may begin at once or at the next [`reap`](Self::reap).
    ///
    /// # Safety
    /// The memory of the operation stays valid, and is not otherwise used, until its completion has been reaped; the
    /// descriptor stays open as long.
    unsafe fn start(&mut self, operation: RawOperation);

    /// Blocks until there is at least one completion or the waker has been used, and appends what is complete.
    fn reap(&mut self, completions: &mut Vec<Completion>);
}

/// Rouses the I/O thread from [`Backend::reap`].
pub(crate) enum Waker {
    Uring(uring::Event),
    Pool(pool::PoolWaker),
}

impl Waker {
    pub(crate) fn wake(&self) {
        match self {
            Waker::Uring(event) => event.signal(),
            Waker::Pool(pool) => pool.wake(),
        }
    }
}
