//! An open array file.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use multigrain_program::ElementType;

/// An array in an open file; clones are the same open file.
///
/// The file is closed when the last clone and the last transfer that uses it are gone. An output that was neither
/// published nor discarded stays as `<final>.part` (for a later resume).
#[derive(Clone)]
pub struct ArrayFile(pub(crate) Arc<OpenFile>);

/// How operations on the file must be aligned, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// File offsets and lengths of reads.
    pub(crate) read: u64,
    /// File offsets and lengths of writes.
    pub(crate) write: u64,
    /// Addresses.
    pub(crate) memory: u64,
}

impl Alignment {
    /// Through the page cache: no demands.
    pub(crate) const BUFFERED: Alignment = Alignment { read: 1, write: 1, memory: 1 };
}

pub(crate) struct OpenFile {
    pub(crate) fd: OwnedFd,
    /// A writable file with direct I/O, opened a second time through the page cache.
    pub(crate) cached: Option<OwnedFd>,
    /// Where the file lies now (an output: `<final>.part`).
    pub(crate) path: PathBuf,
    /// The final name of an output.
    pub(crate) final_path: Option<PathBuf>,
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<u64>,
    pub(crate) data_offset_bytes: u64,
    pub(crate) data_bytes: u64,
    pub(crate) direct: bool,
    pub(crate) alignment: Alignment,
    pub(crate) writable: bool,
    /// An output that was continued from an earlier run.
    pub(crate) resumed: bool,
    /// Published or discarded: there is nothing left to clean up.
    pub(crate) settled: AtomicBool,
}

impl ArrayFile {
    /// Where the file lies; for an unpublished output this ends in `.part`.
    pub fn path(&self) -> &Path {
        if self.0.settled.load(Ordering::Acquire) {
            return self.0.final_path.as_deref().unwrap_or(&self.0.path);
        }
        &self.0.path
    }

    /// For an output, the name that it has or will have when it is published.
    pub fn final_path(&self) -> Option<&Path> {
        self.0.final_path.as_deref()
    }

    /// Type of the elements.
    pub fn element(&self) -> ElementType {
        self.0.element
    }

    /// Extent in each dimension, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.0.shape
    }

    /// First byte of the data in the file.
    pub fn data_offset_bytes(&self) -> u64 {
        self.0.data_offset_bytes
    }

    /// Bytes of the data.
    pub fn data_bytes(&self) -> u64 {
        self.0.data_bytes
    }

    /// Whether transfers bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.0.direct
    }

    /// Whether the file can be written.
    pub fn is_writable(&self) -> bool {
        self.0.writable
    }

    /// Whether an output continues a `.part` file that was found.
    pub fn is_resumed(&self) -> bool {
        self.0.resumed
    }

    /// Whether a file that had a name has none any more: when it is closed, nobody finds what is in it.
    pub fn is_gone(&self) -> bool {
        self.0.final_path.is_some() && rustix::fs::fstat(&self.0.fd).is_ok_and(|found| found.st_nlink == 0)
    }

    /// Whether writes may still be submitted: not to inputs, and not to an output that is published or discarded.
    pub(crate) fn accepts_writes(&self) -> bool {
        self.0.writable && !self.0.settled.load(Ordering::Acquire)
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.0.fd.as_raw_fd()
    }

    /// For bytes that do not fill a block.
    pub(crate) fn cached_fd(&self) -> RawFd {
        self.0.cached.as_ref().unwrap_or(&self.0.fd).as_raw_fd()
    }
}

impl std::fmt::Debug for ArrayFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ArrayFile({}, {} {:?})", self.0.path.display(), self.0.element, self.0.shape)
    }
}
