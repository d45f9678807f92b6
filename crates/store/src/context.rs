//! What every operation on the file system passes: the fault hook and the counters.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Errno, StoreError};
use crate::faults::{Faults, Operation, OperationKind, Verdict};
use crate::transfer::Direction;

/// What went through a disk so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that completed reads brought.
    pub bytes_read: u64,
    /// Bytes that completed writes took.
    pub bytes_written: u64,
    /// Bytes asked of the device by reads: whole blocks, crossed gaps and edge blocks included.
    pub device_bytes_read: u64,
    /// Bytes given to the device by writes: whole blocks.
    pub device_bytes_written: u64,
    /// Operations on the file system of every kind.
    pub operations: u64,
}

/// What the fault hook (or a death before) made of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    Fail(Errno),
    Dead,
}

/// The hook and the counters of one disk.
#[derive(Default)]
pub(crate) struct Context {
    faults: Option<Arc<dyn Faults>>,
    dead: AtomicBool,
    operations: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    device_bytes_read: AtomicU64,
    device_bytes_written: AtomicU64,
}

impl Context {
    pub(crate) fn new(faults: Option<Arc<dyn Faults>>) -> Context {
        Context { faults, ..Context::default() }
    }

    /// To be asked before an operation that touches the file system.
    pub(crate) fn ask(
        &self,
        kind: OperationKind,
        path: &Path,
        offset_bytes: u64,
        len_bytes: u64,
    ) -> Result<(), Refusal> {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        let Some(faults) = &self.faults else { return Ok(()) };
        if self.is_dead() {
            return Err(Refusal::Dead);
        }
        match faults.before(&Operation { kind, path, offset_bytes, len_bytes, number }) {
            Verdict::Go => Ok(()),
            Verdict::Fail(errno) => Err(Refusal::Fail(Errno(errno))),
            Verdict::Dead => {
                self.dead.store(true, Ordering::Release);
                Err(Refusal::Dead)
            }
        }
    }

    /// Does an operation on a whole file, if the hook lets it, and tells its fault with the file's name.
    pub(crate) fn attempt<T, E: Into<Errno>>(
        &self,
        kind: OperationKind,
        path: &Path,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, StoreError> {
        match self.ask(kind, path, 0, 0) {
            Ok(()) => operation().map_err(|error| self.failed(kind, path, error)),
            Err(Refusal::Fail(errno)) => Err(self.failed(kind, path, errno)),
            Err(Refusal::Dead) => Err(StoreError::Dead),
        }
    }

    /// The error of an operation that was asked for and has failed.
    pub(crate) fn failed(&self, kind: OperationKind, path: &Path, error: impl Into<Errno>) -> StoreError {
        StoreError::File { operation: kind, path: path.to_owned(), errno: error.into() }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    pub(crate) fn count_device(&self, direction: Direction, bytes: u64) {
        let counter = match direction {
            Direction::Read => &self.device_bytes_read,
            Direction::Write => &self.device_bytes_written,
        };
        counter.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_payload(&self, direction: Direction, bytes: u64) {
        let counter = match direction {
            Direction::Read => &self.bytes_read,
            Direction::Write => &self.bytes_written,
        };
        counter.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn counters(&self) -> Counters {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            bytes_read: value(&self.bytes_read),
            bytes_written: value(&self.bytes_written),
            device_bytes_read: value(&self.device_bytes_read),
            device_bytes_written: value(&self.device_bytes_written),
            operations: value(&self.operations),
        }
    }
}
