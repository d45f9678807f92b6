//! Opening, creating, publishing and discarding array files.
//!
//! An output is written as `<final>.part`, as long as its last whole block, and takes its final name only when it is
//! complete and durable:
//! ```text
//! create:  open .part, lock it, reserve its bytes, write the header          (a full disk is noticed here)
//! publish: cut .part to its exact length, flush it, rename it, flush the directory
//! ```

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags};

use crate::context::Context;
use crate::disk::Disk;
use crate::error::{Errno, StoreError};
use crate::faults::OperationKind;
use crate::file::{Alignment, ArrayFile, OpenFile};
use crate::naming::part_path;
use crate::npy::{self, HeaderError};
use multigrain_program::ElementType;

mod create;

/// Largest alignment for which direct I/O is used; the staging buffers hold whole blocks of this size.
const ALIGNMENT_BYTES_MAX: u64 = 32 << 10;
/// Unaligned writes are rounded to blocks of the file system, which is never smaller than this: ext4 serialises direct
/// writes to parts of its blocks.
const WRITE_BLOCK_BYTES: u64 = 4096;

type ParsedHeader = Result<npy::ArrayHeader, npy::HeaderError>;

impl Disk {
    /// Opens a .npy file for reading; its header is checked against the length of the file.
    ///
    /// # Errors
    /// [`StoreError`]: the file is missing, no regular file, not readable, its header is not accepted, or the data is
    /// truncated or followed by other bytes.
    pub fn open_npy(&self, path: impl AsRef<Path>) -> Result<ArrayFile, StoreError> {
        self.open_header(path.as_ref(), npy::parse)
    }

    /// As [`open_npy`](Self::open_npy), where the elements may also be of this type, which need not be
    /// [known](ElementType::KNOWN).
    ///
    /// # Errors
    /// As [`open_npy`](Self::open_npy).
    pub fn open_npy_as(&self, path: impl AsRef<Path>, element: ElementType) -> Result<ArrayFile, StoreError> {
        self.open_header(path.as_ref(), |bytes| npy::parse_as(bytes, element))
    }

    fn open_header(&self, path: &Path, parse: impl Fn(&[u8]) -> ParsedHeader) -> Result<ArrayFile, StoreError> {
        let input = self.open_input(path)?;
        let header = self.read_header(path, parse)?;
        let data_bytes = data_bytes(path, header.element, &header.shape)?;
        check_length(path, header.data_offset_bytes + data_bytes, input.len_bytes)?;
        Ok(input.into_file(path, header.element, header.shape, header.data_offset_bytes, data_bytes))
    }

    /// Opens a file of bare elements for reading; its length must be that of the shape.
    ///
    /// # Errors
    /// As [`open_npy`](Self::open_npy), without the header.
    pub fn open_raw(
        &self,
        path: impl AsRef<Path>,
        element: ElementType,
        shape: &[u64],
    ) -> Result<ArrayFile, StoreError> {
        let path = path.as_ref();
        let data_bytes = data_bytes(path, element, shape)?;
        let input = self.open_input(path)?;
        check_length(path, data_bytes, input.len_bytes)?;
        Ok(input.into_file(path, element, shape.to_vec(), 0, data_bytes))
    }

    /// Refuses what cannot be an input, whatever is in it: no file, or one that cannot be read at any place.
    ///
    /// # Errors
    /// [`StoreError::NotAFile`], and what the system says.
    pub fn check_input(&self, path: &Path) -> Result<(), StoreError> {
        let metadata = self.context().attempt(OperationKind::Open, path, || std::fs::metadata(path))?;
        if metadata.is_file() {
            return Ok(());
        }
        let found = if metadata.is_dir() { "a directory" } else { "a device or a pipe" };
        Err(StoreError::NotAFile { path: path.to_owned(), found })
    }

    fn open_input(&self, path: &Path) -> Result<Input, StoreError> {
        // Asked before opening: opening a pipe would wait for its other end.
        self.check_input(path)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let (fd, alignment) = open_direct(self.context(), OperationKind::Open, path, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&fd).map_err(|e| file_error(OperationKind::Open, path, e))?;
        Ok(Input { fd, alignment, len_bytes: found.st_size as u64 })
    }

    /// Reads the header through the page cache: two short reads of unaligned length.
    fn read_header(&self, path: &Path, parse: impl Fn(&[u8]) -> ParsedHeader) -> Result<npy::ArrayHeader, StoreError> {
        let refused = |problem| StoreError::Header { path: path.to_owned(), problem };
        let read = |len: u64| self.context().attempt(OperationKind::Read, path, || read_start(path, len));
        let start = read(12)?;
        let header = read(npy::header_bytes(&start).map_err(refused)?)?;
        parse(&header).map_err(refused)
    }

    /// Makes what was written to a file durable (`fdatasync`). Transfers that are not yet done are not included.
    ///
    /// # Errors
    /// [`StoreError::File`]; after it nothing is known about the bytes written since the last success. [`StoreError::Gone`]: nobody
    /// will find them.
    pub fn sync(&self, file: &ArrayFile) -> Result<(), StoreError> {
        self.context().attempt(OperationKind::Sync, file.path(), || rustix::fs::fdatasync(&file.0.fd))?;
        match file.is_gone() {
            true => Err(StoreError::Gone { path: file.path().to_owned() }),
            false => Ok(()),
        }
    }

    /// Gives a complete output its final name: cuts it to its length, gives it the permissions of the file whose place it
    /// takes, flushes it, renames it, flushes the directory. All its transfers must be done. Afterwards it can no longer be
    /// written.
    ///
    /// # Errors
    /// [`StoreError::File`]; the final name then shows the old file or the whole new one. [`StoreError::ReadOnly`] for
    /// a file that is no output.
    pub fn publish(&self, file: &ArrayFile) -> Result<(), StoreError> {
        let open = &*file.0;
        let Some(final_path) = &open.final_path else {
            return Err(StoreError::ReadOnly { path: open.path.clone() });
        };
        if open.settled.load(Ordering::Acquire) {
            return Ok(());
        }
        let context = self.context();
        let exact = open.data_offset_bytes + open.data_bytes;
        context.attempt(OperationKind::Truncate, &open.path, || {
            rustix::fs::ftruncate(&open.fd, exact)?;
            multigrain_whole::keep_access(&open.fd, final_path)
        })?;
        context.attempt(OperationKind::Sync, &open.path, || rustix::fs::fsync(&open.fd))?;
        context.attempt(OperationKind::Rename, final_path, || std::fs::rename(&open.path, final_path))?;
        open.settled.store(true, Ordering::Release);
        self.sync_directory(final_path)
    }

    /// Removes the `.part` of an output that is not published. All its transfers must be done. Errors are of no use
    /// here: what cannot be removed stays under its `.part` name.
    pub fn discard(&self, file: &ArrayFile) {
        let open = &*file.0;
        if open.final_path.is_some() && !open.settled.swap(true, Ordering::AcqRel) {
            self.remove(&open.path);
        }
    }

    /// Makes what happened to names in the directory of `path` durable.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn sync_directory(&self, path: &Path) -> Result<(), StoreError> {
        self.context().attempt(OperationKind::SyncDirectory, path, || {
            multigrain_whole::directory_to_flush(path)?.map_or(Ok(()), |directory| directory.sync_all())
        })
    }

    /// Removes a file that is of no use any more. What cannot be removed stays.
    pub fn remove(&self, path: &Path) {
        let _ = self.context().attempt(OperationKind::Remove, path, || std::fs::remove_file(path));
    }
}

/// An opened input, before its array is known.
struct Input {
    fd: OwnedFd,
    alignment: Alignment,
    len_bytes: u64,
}

impl Input {
    fn into_file(
        self,
        path: &Path,
        element: ElementType,
        shape: Vec<u64>,
        data_offset_bytes: u64,
        data_bytes: u64,
    ) -> ArrayFile {
        ArrayFile(Arc::new(OpenFile {
            fd: self.fd,
            cached: None,
            path: path.to_owned(),
            final_path: None,
            element,
            shape,
            data_offset_bytes,
            data_bytes,
            direct: self.alignment != Alignment::BUFFERED,
            alignment: self.alignment,
            writable: false,
            resumed: false,
            settled: AtomicBool::new(false),
        }))
    }
}

/// Opens a file for direct I/O; where the file system refuses that, through the page cache.
fn open_direct(
    context: &Context,
    kind: OperationKind,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<(OwnedFd, Alignment), StoreError> {
    context.attempt(kind, path, || match rustix::fs::open(path, flags | OFlags::DIRECT, mode) {
        Ok(fd) => match direct_alignment(&fd) {
            Some(alignment) => Ok((fd, alignment)),
            None => rustix::fs::open(path, flags, mode).map(|fd| (fd, Alignment::BUFFERED)),
        },
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => {
            rustix::fs::open(path, flags, mode).map(|fd| (fd, Alignment::BUFFERED))
        }
        Err(errno) => Err(errno),
    })
}

/// What direct I/O on this file demands: asked of the kernel (6.1 and later), else assumed from the block size. `None`
/// when the file is better moved through the page cache.
fn direct_alignment(fd: &OwnedFd) -> Option<Alignment> {
    let wanted = StatxFlags::DIOALIGN | StatxFlags::BASIC_STATS;
    let found = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    // The block size of huge-page and network file systems is a hint for long reads, not a block.
    let block = u64::from(found.stx_blksize).clamp(WRITE_BLOCK_BYTES, ALIGNMENT_BYTES_MAX);
    let known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::DIOALIGN);
    let (memory, file) = if known {
        (u64::from(found.stx_dio_mem_align), u64::from(found.stx_dio_offset_align))
    } else {
        (WRITE_BLOCK_BYTES, WRITE_BLOCK_BYTES)
    };
    let usable = |n: u64| n.is_power_of_two() && n <= ALIGNMENT_BYTES_MAX;
    (usable(memory) && usable(file)).then(|| Alignment {
        read: file,
        write: file.max(if block.is_power_of_two() { block } else { WRITE_BLOCK_BYTES }),
        memory: memory.min(WRITE_BLOCK_BYTES),
    })
}

/// The first `len` bytes of a file, fewer only at its end.
fn read_start(path: &Path, len: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn data_bytes(path: &Path, element: ElementType, shape: &[u64]) -> Result<u64, StoreError> {
    let too_large = || StoreError::TooLarge { path: path.to_owned(), element, shape: shape.to_vec() };
    npy::data_bytes(element, shape).ok_or_else(too_large)
}

fn check_length(path: &Path, needed_bytes: u64, found_bytes: u64) -> Result<(), StoreError> {
    let path = || path.to_owned();
    match found_bytes.cmp(&needed_bytes) {
        std::cmp::Ordering::Less => Err(StoreError::Truncated { path: path(), needed_bytes, found_bytes }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(StoreError::TrailingBytes { path: path(), needed_bytes, found_bytes }),
    }
}

fn file_error(operation: OperationKind, path: &Path, errno: impl Into<Errno>) -> StoreError {
    StoreError::File { operation, path: path.to_owned(), errno: errno.into() }
}
