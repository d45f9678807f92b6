//! Two ways to run positional reads and writes asynchronously: io_uring, and a pool of threads.

use crate::error::Errno;
use crate::transfer::Direction;
use std::os::fd::RawFd;

mod pool;
mod uring;

pub(crate) use pool::Pool;
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

/// Runs raw operations; all of it is called under one lock.
pub(crate) trait Backend: Send {
    /// What it is, for people.
    fn name(&self) -> String;

    /// Takes an operation; it may begin at once or at the next [`submit`](Self::submit).
    ///
    /// # Safety
    /// The memory of the operation stays valid, and is not otherwise used, until its completion has been taken; the
    /// descriptor stays open as long.
    unsafe fn start(&mut self, operation: RawOperation);

    /// Hands over what was started.
    fn submit(&mut self);

    /// Appends what is complete; does not block.
    fn take(&mut self, completions: &mut Vec<Completion>);

    /// Writes at once and returns how many bytes were written; blocks as long as that takes.
    ///
    /// # Safety
    /// The memory of the operation is valid and the descriptor open.
    unsafe fn write_now(&mut self, operation: &RawOperation) -> Result<u32, Errno> {
        let RawOperation { fd, memory, len_bytes, offset_bytes, .. } = *operation;
        // SAFETY: the contract of this function.
        let written = unsafe { libc::pwrite64(fd, memory.cast(), len_bytes as usize, offset_bytes as i64) };
        u32::try_from(written).map_err(|_| Errno::last())
    }
}

/// Where to block until an operation is complete; see [`crate::scheduler::News`].
pub(crate) enum BackendNews {
    Uring(uring::UringNews),
    Pool(pool::PoolNews),
}

impl crate::scheduler::News for BackendNews {
    fn wait(&self) {
        match self {
            BackendNews::Uring(ring) => ring.wait(),
            BackendNews::Pool(pool) => pool.wait(),
        }
    }
}
