//! Creating outputs and scratch files.

use super::*;
use crate::buffer::AlignedBuffer;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// How long a lock of another process is waited for. A process that was killed may hold its files a moment longer than
/// it lives: the kernel takes an io_uring apart after the process is gone.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
/// How often a lock is tried meanwhile.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Tells the scratch files of one process apart.
static SCRATCH_FILES: AtomicU64 = AtomicU64::new(0);

/// How often creating a `.part` starts again when another run removes or renames it at the same moment.
const RACES_MAX: u32 = 16;

impl Disk {
    /// Creates the output `final_path`, a .npy file whose data starts at byte 4096. It is written as
    /// `<final_path>.part`; [`publish`](Self::publish) gives it its name. All its bytes are reserved at once. With
    /// `resume`, a matching `.part` of an earlier run is continued (see [`ArrayFile::is_resumed`]).
    ///
    /// # Errors
    /// [`StoreError`]: the path cannot be written, another run writes it, the disk has not enough room.
    pub fn create_npy(
        &self,
        final_path: impl AsRef<Path>,
        element: ElementType,
        shape: &[u64],
        resume: bool,
    ) -> Result<ArrayFile, StoreError> {
        let path = final_path.as_ref();
        let header = npy::write(element, shape).map_err(|problem| match problem {
            HeaderError::TooLarge { element, shape } => StoreError::TooLarge { path: path.to_owned(), element, shape },
            problem => StoreError::Header { path: path.to_owned(), problem },
        })?;
        self.create(path, element, shape, &header, resume)
    }

    /// Creates the output `final_path` of bare elements; otherwise as [`create_npy`](Self::create_npy).
    ///
    /// # Errors
    /// As [`create_npy`](Self::create_npy).
    pub fn create_raw(
        &self,
        final_path: impl AsRef<Path>,
        element: ElementType,
        shape: &[u64],
        resume: bool,
    ) -> Result<ArrayFile, StoreError> {
        self.create(final_path.as_ref(), element, shape, &[], resume)
    }

    /// Creates a scratch file without a name in `directory`: it is gone when it is closed, however the run ends.
    ///
    /// # Errors
    /// [`StoreError`]: the directory cannot be written, the disk has not enough room.
    pub fn create_temporary(
        &self,
        directory: impl AsRef<Path>,
        element: ElementType,
        shape: &[u64],
    ) -> Result<ArrayFile, StoreError> {
        // Errors name the place, also where it is the working directory.
        let directory = &std::path::absolute(directory.as_ref()).unwrap_or_else(|_| directory.as_ref().to_path_buf());
        let path = directory.join("(temporary)");
        let data_bytes = data_bytes(&path, element, shape)?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let unnamed = open_direct(self.context(), OperationKind::Create, directory, flags | OFlags::TMPFILE, mode);
        let (fd, alignment) = match unnamed {
            Err(StoreError::File { errno: Errno(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL), .. }) => {
                // No unnamed files here: a named one that is removed at once. It is opened a second time for direct I/O,
                // by its descriptor: its name must be new, and where direct I/O is refused it would exist by then.
                let name =
                    format!(".multigrain-{}-{}.tmp", std::process::id(), SCRATCH_FILES.fetch_add(1, Ordering::Relaxed));
                let named = directory.join(name);
                let made = self.context().attempt(OperationKind::Create, &named, || {
                    rustix::fs::open(&named, flags | OFlags::CREATE | OFlags::EXCL, mode)
                });
                self.remove(&named);
                let made = made?;
                let same = PathBuf::from(format!("/proc/self/fd/{}", made.as_raw_fd()));
                open_direct(self.context(), OperationKind::Create, &same, flags, mode)
                    .unwrap_or((made, Alignment::BUFFERED))
            }
            Err(StoreError::File { operation, errno, .. }) => return Err(file_error(operation, &path, errno)),
            opened => opened?,
        };
        let allocated = allocated_bytes(data_bytes);
        self.reserve(&fd, &path, allocated)?;
        Ok(output(fd, alignment, path, None, element, shape, 0, data_bytes, false))
    }

    /// Opens an output that another process has created and holds the lock of, and writes to it too: a .npy file, or else bare
    /// elements. Whoever created it publishes or discards it.
    ///
    /// # Errors
    /// [`StoreError`]: it is not there, cannot be written or has another length.
    pub fn join(
        &self,
        final_path: impl AsRef<Path>,
        element: ElementType,
        shape: &[u64],
        npy: bool,
    ) -> Result<ArrayFile, StoreError> {
        let final_path = final_path.as_ref();
        let data_bytes = data_bytes(final_path, element, shape)?;
        let offset = if npy { npy::DATA_OFFSET_BYTES } else { 0 };
        let part = part_path(final_path);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let (fd, alignment) = open_direct(self.context(), OperationKind::Open, &part, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&fd).map_err(|e| file_error(OperationKind::Open, &part, e))?;
        check_length(&part, allocated_bytes(offset + data_bytes), found.st_size as u64)?;
        // Neither its name nor its end are this process's.
        Ok(output(fd, alignment, part, None, element, shape, offset, data_bytes, false))
    }

    fn create(
        &self,
        final_path: &Path,
        element: ElementType,
        shape: &[u64],
        header: &[u8],
        resume: bool,
    ) -> Result<ArrayFile, StoreError> {
        let data_bytes = data_bytes(final_path, element, shape)?;
        // A result takes the place of a file only: not even a privileged process may put one in that of a device.
        let found = match std::fs::metadata(final_path) {
            Ok(found) if found.is_dir() => Some("a directory"),
            Ok(found) if !found.is_file() => Some("a device or a pipe"),
            _ => final_path.file_name().is_none().then_some("a directory"),
        };
        if let Some(found) = found {
            return Err(StoreError::NotAFile { path: final_path.to_owned(), found });
        }
        let part = part_path(final_path);
        let offset = header.len() as u64;
        let exact = offset + data_bytes;
        let first_mode = multigrain_whole::first_mode(final_path);
        let (fd, alignment, resumed) = self.open_locked(&part, first_mode, header, resume.then_some(exact))?;
        match self.fill(&fd, alignment, &part, header, exact, resumed) {
            Ok(()) => {
                let final_path = Some(final_path.to_owned());
                Ok(output(fd, alignment, part, final_path, element, shape, offset, data_bytes, resumed))
            }
            Err(error) => {
                // A `.part` that is resumed is left alone: only what this call made is removed.
                if !resumed {
                    self.remove(&part);
                }
                Err(error)
            }
        }
    }

    /// Opens or creates the `.part` and takes its lock, which ends with the last descriptor: two runs never write one
    /// output. Whether it is an earlier one, which has this header and the length `resumable`, or as long as a whole one is
    /// while it is written. Any other makes way: its bytes may be those of another name too, and are not written to.
    fn open_locked(
        &self,
        part: &Path,
        first_mode: u32,
        header: &[u8],
        resumable: Option<u64>,
    ) -> Result<(OwnedFd, Alignment, bool), StoreError> {
        for _ in 0..RACES_MAX {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let mode = Mode::from_raw_mode(first_mode);
            let (fd, alignment) = open_direct(self.context(), OperationKind::Create, part, flags, mode)?;
            match lock_patiently(&fd) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(StoreError::Busy { path: part.to_owned() }),
                // A file system without locks: go on without, as it did before locks were taken.
                Err(rustix::io::Errno::NOLCK | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
                Err(errno) => return Err(file_error(OperationKind::Create, part, errno)),
            }
            // The holder of the lock may have published or discarded the file between the opening and the lock.
            let opened = rustix::fs::fstat(&fd).map_err(|e| file_error(OperationKind::Create, part, e))?;
            if !FileType::from_raw_mode(opened.st_mode).is_file() {
                return Err(StoreError::NotAFile { path: part.to_owned(), found: "a device or a pipe" });
            }
            let named = rustix::fs::stat(part);
            if !named.is_ok_and(|n| n.st_ino == opened.st_ino && n.st_dev == opened.st_dev) {
                continue;
            }
            let (bytes, links) = (opened.st_size as u64, opened.st_nlink as u64);
            let resumed = resumable.is_some_and(|exact| bytes == exact || bytes == allocated_bytes(exact))
                && self.context().attempt(OperationKind::Read, part, || read_start(part, header.len() as u64))?
                    == header;
            match (resumed, links) {
                (true, 2..) => return Err(StoreError::Linked { path: part.to_owned(), links }),
                (true, _) => return Ok((fd, alignment, true)),
                (false, ..2) if bytes == 0 => return Ok((fd, alignment, false)),
                (false, _) => self.context().attempt(OperationKind::Remove, part, || std::fs::remove_file(part))?,
            }
        }
        Err(StoreError::Busy { path: part.to_owned() })
    }

    /// Makes the `.part` as long as it must be, with its header.
    fn fill(
        &self,
        fd: &OwnedFd,
        alignment: Alignment,
        part: &Path,
        header: &[u8],
        exact: u64,
        resumed: bool,
    ) -> Result<(), StoreError> {
        self.reserve(fd, part, allocated_bytes(exact))?;
        match resumed || header.is_empty() {
            true => Ok(()),
            false => self.write_header(fd, alignment, part, header),
        }
    }

    /// Reserves all bytes of a file, so that a full disk is noticed before any work is done.
    fn reserve(&self, fd: &OwnedFd, path: &Path, bytes: u64) -> Result<(), StoreError> {
        if bytes == 0 {
            return Ok(());
        }
        let free_bytes = rustix::fs::fstatvfs(fd).map_or(0, |s| s.f_bavail.saturating_mul(s.f_frsize));
        let reserved = self.context().attempt(OperationKind::Allocate, path, || {
            match rustix::fs::fallocate(fd, FallocateFlags::empty(), 0, bytes) {
                // Not every file system can reserve: then the length is set, and a full disk shows at a write.
                Err(rustix::io::Errno::OPNOTSUPP) if bytes > free_bytes => Err(rustix::io::Errno::NOSPC),
                Err(rustix::io::Errno::OPNOTSUPP) => rustix::fs::ftruncate(fd, bytes),
                other => other,
            }
        });
        reserved.map_err(|error| match error {
            StoreError::File { path, errno: Errno(libc::ENOSPC), .. } => {
                StoreError::NoSpace { path, needed_bytes: bytes, free_bytes }
            }
            other => other,
        })
    }

    /// Writes the header as one aligned operation: it fills the first page.
    fn write_header(&self, fd: &OwnedFd, alignment: Alignment, part: &Path, header: &[u8]) -> Result<(), StoreError> {
        let block = alignment.memory.max(alignment.write).max(1);
        let len = (header.len() as u64).next_multiple_of(block) as usize;
        let mut page = AlignedBuffer::new(len)?;
        // SAFETY: the buffer was made here and no pointer to it has been given out.
        let bytes = unsafe { page.as_mut_slice() };
        bytes[..header.len()].copy_from_slice(header);
        self.context().attempt(OperationKind::Write, part, || {
            let mut done = 0;
            while done < len {
                match rustix::io::pwrite(fd, &bytes[done..], done as u64) {
                    Ok(0) => return Err(rustix::io::Errno::IO),
                    Ok(written) => done += written,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(errno) => return Err(errno),
                }
            }
            Ok(())
        })
    }
}

/// Takes the lock of a file, waiting a moment for another holder.
fn lock_patiently(fd: &OwnedFd) -> rustix::io::Result<()> {
    let began = Instant::now();
    loop {
        match rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_PAUSE),
            other => return other,
        }
    }
}

impl Disk {
    /// Whether another process writes the output `final_path` at this moment: it holds the lock of its `.part`.
    pub fn is_busy(&self, final_path: &Path) -> bool {
        self.is_locked(&part_path(final_path))
    }

    /// Whether another process holds the lock of a file.
    pub fn is_locked(&self, path: &Path) -> bool {
        let held = |file: std::fs::File| matches!(lock_patiently(&file.into()), Err(rustix::io::Errno::WOULDBLOCK));
        // The lock ends with the file. A file system without locks has no holders either, and a pipe is not waited for.
        let mut options = std::fs::OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK).open(path).is_ok_and(held)
    }
}

/// Length of a file while it is written: whole blocks, so that its last block can be read and written directly.
fn allocated_bytes(exact: u64) -> u64 {
    exact.next_multiple_of(ALIGNMENT_BYTES_MAX)
}

#[allow(clippy::too_many_arguments)]
fn output(
    fd: OwnedFd,
    alignment: Alignment,
    path: PathBuf,
    final_path: Option<PathBuf>,
    element: ElementType,
    shape: &[u64],
    data_offset_bytes: u64,
    data_bytes: u64,
    resumed: bool,
) -> ArrayFile {
    let (cached, alignment) = match alignment {
        Alignment::BUFFERED => (None, alignment),
        _ => match reopen_cached(&fd) {
            Some(cached) => (Some(cached), alignment),
            None => (None, Alignment::BUFFERED),
        },
    };
    ArrayFile(Arc::new(OpenFile {
        fd,
        cached,
        path,
        final_path,
        element,
        shape: shape.to_vec(),
        data_offset_bytes,
        data_bytes,
        direct: alignment != Alignment::BUFFERED,
        alignment,
        writable: true,
        resumed,
        settled: AtomicBool::new(false),
    }))
}

/// Opens a file with direct I/O a second time, through the page cache. `None` where that is impossible: then direct I/O
/// is switched off for the file.
fn reopen_cached(fd: &OwnedFd) -> Option<OwnedFd> {
    let same = format!("/proc/self/fd/{}", fd.as_raw_fd());
    if let Ok(cached) = rustix::fs::open(same, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        return Some(cached);
    }
    // Fails for no descriptor that is open.
    let flags = rustix::fs::fcntl_getfl(fd).unwrap_or(OFlags::empty());
    let _ = rustix::fs::fcntl_setfl(fd, flags - OFlags::DIRECT);
    None
}
