//! What can go wrong, told to people: what was asked, what was found, what to do.

use std::path::PathBuf;
use std::sync::Arc;

use crate::faults::OperationKind;
use crate::npy::HeaderError;
use multigrain_program::ElementType;

/// An operating system's error number; its text is the system's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(
    /// The value of `errno`.
    pub i32,
);

impl Errno {
    /// The calling thread's last error.
    pub fn last() -> Errno {
        Errno::from(std::io::Error::last_os_error())
    }

    /// What a person can do about it.
    pub fn advice(self) -> &'static str {
        match self.0 {
            libc::ENOENT => "check the path; the file or its directory does not exist",
            libc::EACCES | libc::EPERM => "check the permissions of the file and of its directory",
            libc::ENOSPC => "free space on that file system, or put the file on another one",
            libc::EDQUOT => "the disk quota is used up: free space or put the file on another file system",
            libc::EROFS => "the file system is read-only: choose another directory",
            libc::EIO => "the device reports a fault: look at the kernel's log, and copy the file to another disk",
            libc::EISDIR => "a file is needed, this is a directory",
            libc::ENOTDIR => "a part of the path is not a directory",
            libc::EMFILE | libc::ENFILE => "too many files are open: raise the limit (ulimit -n)",
            libc::EFBIG => "the file system or a limit (ulimit -f) does not allow so large a file",
            libc::ELOOP => "links lead in a circle, or a link stands where a file is to be made: name the file itself",
            libc::ENAMETOOLONG => "a part of the path is longer than the file system allows: choose a shorter name",
            libc::ENODEV | libc::ENXIO => "the device is gone: mount it again and start once more",
            _ => "start once more; if it stays, look at the kernel's log",
        }
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(error: rustix::io::Errno) -> Errno {
        Errno(error.raw_os_error())
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", std::io::Error::from_raw_os_error(self.0))
    }
}

impl std::fmt::Debug for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

/// A rule of a local store that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Rule "capacity": the arena does not fit beside the code.
    #[error(
        "capacity: an arena of {asked_bytes} bytes and {code_bytes} bytes of code do not fit {capacity_bytes} bytes; \
        choose smaller tiles"
    )]
    Capacity {
        /// Bytes of the arena.
        asked_bytes: u64,
        /// Bytes of the code.
        code_bytes: u64,
        /// Bytes of the store.
        capacity_bytes: u64,
    },
    /// Rule "bounds": a copy reaches outside the arena.
    #[error(
        "bounds: {rows} rows of {row_bytes} bytes at offset {offset_bytes} with a pitch of {pitch_bytes} bytes do not lie in \
        an arena of {capacity_bytes} bytes"
    )]
    Bounds {
        /// First byte in the arena.
        offset_bytes: u64,
        /// From row to row in the arena.
        pitch_bytes: u64,
        /// Rows.
        rows: u64,
        /// Bytes of a row.
        row_bytes: u64,
        /// Bytes of the arena.
        capacity_bytes: u64,
    },
    /// Rule "alignment": source and destination differ in their position within a unit, so no command can move the row.
    #[error(
        "alignment: a row of {row_bytes} bytes starts {parent_skew_bytes} bytes into a unit of {alignment_bytes} bytes in the \
        parent and {local_skew_bytes} bytes in the local store; they must be alike: align the tile's first column and \
        its pitch to {alignment_bytes} bytes"
    )]
    Alignment {
        /// Bytes of the row.
        row_bytes: u64,
        /// The parent's address modulo the alignment.
        parent_skew_bytes: u64,
        /// The arena's address modulo the alignment.
        local_skew_bytes: u64,
        /// The alignment.
        alignment_bytes: u64,
    },
    /// Rule "rules": the rules themselves make no sense.
    #[error(
        "rules: the alignment ({alignment_bytes} bytes) must be a power of two, the longest command \
        ({transfer_bytes_max} bytes) a positive multiple of it, and a list needs at least one entry ({list_entries_max})"
    )]
    Rules {
        /// The alignment.
        alignment_bytes: u64,
        /// The longest command.
        transfer_bytes_max: u64,
        /// The longest list.
        list_entries_max: u64,
    },
}

/// A fault of this room.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// What a driver says that is none of this room's.
    #[error("driver {driver}: {what}")]
    Driver {
        /// Its name.
        driver: String,
        /// What was asked, what was found and what to do.
        what: String,
    },
    /// The operating system refused an operation on a file as a whole.
    #[error("cannot {} {}: {errno}; {}", operation.verb(), path.display(), errno.advice())]
    File {
        /// What was tried.
        operation: OperationKind,
        /// The file.
        path: PathBuf,
        /// What the system said.
        errno: Errno,
    },
    /// A read or write of a transfer failed.
    #[error("cannot {} {len_bytes} bytes at byte {offset_bytes} of {} (transfer \"{label}\"): {errno}; {}",
        operation.verb(), path.display(), errno.advice())]
    Transfer {
        /// `Read` or `Write`.
        operation: OperationKind,
        /// The file.
        path: PathBuf,
        /// First byte of the failed operation.
        offset_bytes: u64,
        /// Bytes of the failed operation.
        len_bytes: u64,
        /// The label of the transfer list.
        label: Arc<str>,
        /// What the system said.
        errno: Errno,
    },
    /// The file system has not enough room for a file.
    #[error("cannot reserve {needed_bytes} bytes for {}: the file system has {free_bytes} bytes free, {} are missing; \
        free space or put the file on another file system", path.display(), needed_bytes.saturating_sub(*free_bytes))]
    NoSpace {
        /// The file that does not fit.
        path: PathBuf,
        /// Bytes that the whole file needs.
        needed_bytes: u64,
        /// Bytes that the file system has free for this user.
        free_bytes: u64,
    },
    /// A file ends before its data does.
    #[error("{} is truncated: its data needs {needed_bytes} bytes, the file has {found_bytes}; copy or make it again",
        path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Length that the data needs.
        needed_bytes: u64,
        /// Length that was found.
        found_bytes: u64,
    },
    /// A file has bytes after its data.
    #[error("{} has {} bytes after its data: the shape needs {needed_bytes} bytes, the file has {found_bytes}; \
        check the shape and the element type", path.display(), found_bytes - needed_bytes)]
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// Length that the data needs.
        needed_bytes: u64,
        /// Length that was found.
        found_bytes: u64,
    },
    /// A .npy header cannot be read or is of a kind that is not read.
    #[error("{}: {problem}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: HeaderError,
    },
    /// The path names something that is no regular file.
    #[error("{} is {found}, and a regular file is needed, which has all its bytes at any time; give the path of one", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// Another run writes the same file.
    #[error("{} is being written by another run; wait for it to end or choose another output", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A part of an array was asked for that is not there.
    #[error("{}: the block at {start:?} of extent {len:?} does not lie in the array of shape {shape:?}", path.display())]
    OutOfBounds {
        /// The file.
        path: PathBuf,
        /// First index in each dimension.
        start: Vec<u64>,
        /// Extent in each dimension.
        len: Vec<u64>,
        /// Shape of the array.
        shape: Vec<u64>,
    },
    /// A transfer reaches outside the data of its file.
    #[error("{}: bytes {offset_bytes} to {end_bytes} lie outside the array's data (bytes {data_start_bytes} to \
        {data_end_bytes})", path.display())]
    OutsideData {
        /// The file.
        path: PathBuf,
        /// First byte asked for.
        offset_bytes: u64,
        /// One past the last byte asked for.
        end_bytes: u64,
        /// First byte of the data.
        data_start_bytes: u64,
        /// One past the last byte of the data.
        data_end_bytes: u64,
    },
    /// A file opened as input was to be written.
    #[error("{} was opened for reading only and cannot be written; create an output file instead", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The bytes of an array cannot be counted in 64 bits.
    #[error("{}: an array of shape {shape:?} of {element} has more bytes than 64 bits can count; check the shape",
        path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The element type.
        element: ElementType,
        /// The shape.
        shape: Vec<u64>,
    },
    /// A file under the journal's name is no journal of this version.
    #[error("{} is in the way: {found}; move it away, {}or choose another output", path.display(),
        if *ours { "throw it away with --discard, " } else { "" })]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// Whether it was begun as a journal, of another version or not whole any more.
        ours: bool,
    },
    /// What an interrupted run has left is known by other names too.
    #[error("{} has {links} names (hard links), and to go on would change what the others show; give it bytes of its own \
        (cp -p to another name, then mv it back), or begin again with --discard, which removes this name alone", path.display())]
    Linked {
        /// The file.
        path: PathBuf,
        /// Its names.
        links: u64,
    },
    /// A file that was being written has no name any more.
    #[error("{} is gone: somebody has removed it, or its directory, while it was written, and what was computed with it; \
        run the same command once more", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// No memory.
    #[error("cannot reserve {asked_bytes} bytes of memory: {errno}; ask for less")]
    Memory {
        /// Bytes asked for.
        asked_bytes: u64,
        /// What the system said.
        errno: Errno,
    },
    /// io_uring was asked for and cannot be had.
    #[error("io_uring cannot be used here: {errno}; choose the thread pool, or let the choice be automatic")]
    NoUring {
        /// What the system said.
        errno: Errno,
    },
    /// The thread that attends to the disk could not be started.
    #[error("cannot start the thread that attends to the disk: {errno}; check the limit of threads (ulimit -u)")]
    NoThread {
        /// What the system said.
        errno: Errno,
    },
    /// A rule of a local store was broken.
    #[error("local store: {0}")]
    Local(#[from] RuleError),
    /// A fault hook has declared the process dead (only in tests).
    #[error("the run was killed by a fault hook")]
    Dead,
}
