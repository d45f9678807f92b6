//! Faults on purpose: a hook that is asked before every operation which touches the file system.
//!
//! Tests use it to fail every operation once and to kill a run at every moment between two operations.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an operation does to the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Open an existing file.
    Open,
    /// Create a file, or open one to continue it.
    Create,
    /// Reserve the bytes of a file on the disk.
    Allocate,
    /// Read bytes at an offset.
    Read,
    /// Write bytes at an offset.
    Write,
    /// Set the length of a file.
    Truncate,
    /// Make the data of a file durable.
    Sync,
    /// Give a file its final name.
    Rename,
    /// Make a rename or a removal durable.
    SyncDirectory,
    /// Remove a file.
    Remove,
    /// Append records to a journal.
    Append,
}

impl OperationKind {
    /// The operation as a verb for messages.
    pub const fn verb(self) -> &'static str {
        match self {
            OperationKind::Open => "open",
            OperationKind::Create => "create",
            OperationKind::Allocate => "reserve space for",
            OperationKind::Read => "read",
            OperationKind::Write => "write",
            OperationKind::Truncate => "set the length of",
            OperationKind::Sync => "flush",
            OperationKind::Rename => "rename",
            OperationKind::SyncDirectory => "flush the directory of",
            OperationKind::Remove => "remove",
            OperationKind::Append => "append to",
        }
    }
}

/// One operation that is about to touch the file system.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// What it does.
    pub kind: OperationKind,
    /// The file.
    pub path: &'a Path,
    /// First byte, where the operation has one; otherwise 0.
    pub offset_bytes: u64,
    /// Bytes, where the operation has a length; otherwise 0.
    pub len_bytes: u64,
    /// Running number of the operation in this `Disk`, from 0.
    pub number: u64,
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Go,
    /// It is not done, and reports this `errno` value.
    Fail(i32),
    /// The process is as good as killed: neither this nor any later operation is done, clean-up included, and each
    /// reports [`StoreError::Dead`](crate::StoreError::Dead).
    Dead,
}

/// Decides about operations. Called from whichever thread submits, waits or attends.
pub trait Faults: Send + Sync {
    /// Called before every operation.
    fn before(&self, operation: &Operation<'_>) -> Verdict;
}

/// Lets everything go and counts the operations.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// A counter at 0.
    pub fn new() -> Count {
        Count::default()
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Faults for Count {
    fn before(&self, _: &Operation<'_>) -> Verdict {
        self.0.fetch_add(1, Ordering::Relaxed);
        Verdict::Go
    }
}

/// Fails the operation with running number `n`, once.
#[derive(Debug, Clone, Copy)]
pub struct FailAt {
    /// Running number, from 0.
    pub n: u64,
    /// The `errno` value that it reports, for instance `libc::EIO`.
    pub errno: i32,
}

impl Faults for FailAt {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        if operation.number == self.n { Verdict::Fail(self.errno) } else { Verdict::Go }
    }
}

/// Kills the run before the operation with running number `n`.
#[derive(Debug, Clone, Copy)]
pub struct DieAt {
    /// Running number, from 0.
    pub n: u64,
}

impl Faults for DieAt {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        if operation.number >= self.n { Verdict::Dead } else { Verdict::Go }
    }
}

/// Fails every operation of one kind from the `from`-th of that kind on (a disk that fills, a device that is gone).
#[derive(Debug)]
pub struct FailKind {
    kind: OperationKind,
    from: u64,
    errno: i32,
    seen: AtomicU64,
}

impl FailKind {
    /// Operations of `kind` with number `from` (counted from 0 within the kind) and later report `errno`.
    pub fn new(kind: OperationKind, from: u64, errno: i32) -> FailKind {
        FailKind { kind, from, errno, seen: AtomicU64::new(0) }
    }
}

impl Faults for FailKind {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        if operation.kind == self.kind && self.seen.fetch_add(1, Ordering::Relaxed) >= self.from {
            Verdict::Fail(self.errno)
        } else {
            Verdict::Go
        }
    }
}
