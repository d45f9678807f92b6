//! Files that appear whole under their names or not at all.
//!
//! In comes what a file is to hold, bytes that are made one after the other: pictures, tables, traces, machine files.
//! Out comes the file under its name, complete and flushed to its disk, in the place of what was there; or an error,
//! and then what was there is still there and nothing is left beside it. Meanwhile the bytes lie in a file of the same
//! directory that has no name, so that a process that is killed leaves nothing; where a file system has no such files, under
//! the name `NAME.PROCESS.part`. Whether a file can
//! be written at all is told before the work that makes its content ([`check_target`]). This room knows nothing of what
//! it writes and never reads it back. Arrays, which are written at many places at once and can be continued, are the
//! store's.
//!
//! ```
//! use std::io::Write;
//! let path = std::env::temp_dir().join(format!("whole-{}.txt", std::process::id()));
//! multigrain_whole::check_target(&path)?;
//! multigrain_whole::write(&path, |out| writeln!(out, "all of it"))?;
//! assert_eq!(std::fs::read_to_string(&path)?, "all of it\n");
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod target;

pub use target::{TargetError, check_keeps, check_target, followed, is_same_file, open_input, target};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// What is gathered before it goes to the system.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes written in order after which their way to the disk begins.
const WRITEBACK_BYTES: u64 = 8 << 20;

/// Parts that this process is writing: two writers of one file at the same time do not write into one part.
static PARTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn parts() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is being written. [`publish`](Self::publish) gives it its name, and the permissions of the file whose place it
/// takes; without that, nothing of it stays.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    path: PathBuf,
    part: PathBuf,
    /// Whether the file has the name of its part already.
    named: bool,
    /// Bytes written in order, and how many of them are on their way to the disk.
    written: u64,
    begun: u64,
}

impl WholeFile {
    /// Begins the file `path`, which a file of that name stays until [`publish`](Self::publish). A symbolic link stays: what
    /// it leads to is written.
    ///
    /// # Errors
    /// What the system says, and [`io::ErrorKind::InvalidInput`] where `path` is something other than a file.
    pub fn create(path: &Path) -> io::Result<WholeFile> {
        let path = &followed(path);
        if let Some(found) = target::other_than_a_file(path) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {found}")));
        }
        let part = reserve(path);
        // A file without a name can be made where one of that name cannot.
        for name in [path, &part] {
            if let Err(error) = std::fs::symlink_metadata(name)
                && error.kind() != io::ErrorKind::NotFound
            {
                parts().remove(&part);
                return Err(error);
            }
        }
        let (file, named) = match unnamed(directory_of(path)) {
            // Its name is given by way of this entry.
            Ok(file) if entry_of(&file).exists() => (Ok(file), false),
            _ => {
                remove_left(&part);
                // What has this name all the same is somebody else's, and a link could lead anywhere.
                (File::options().write(true).create_new(true).mode(first_mode(path)).open(&part), true)
            }
        };
        match file {
            Ok(file) => Ok(WholeFile { file, path: path.to_owned(), part, named, written: 0, begun: 0 }),
            Err(error) => {
                parts().remove(&part);
                Err(error)
            }
        }
    }

    /// The name that the file will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself, for those who write at places of it: what is written in order begins behind what was.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Waits until all bytes are on the disk and gives the file its name, in the place of what has it, also on the disk.
    ///
    /// # Errors
    /// What the system says; then what has the name keeps it, or is the whole new file.
    pub fn publish(self) -> io::Result<()> {
        keep_access(&self.file, &self.path)?;
        self.file.sync_all()?;
        // Held to the end, so that no part gets a name after all have been discarded.
        let parts = parts();
        if !parts.contains(&self.part) {
            return Err(io::Error::other("it was given up"));
        }
        if !self.named {
            remove_left(&self.part);
            linkat(CWD, entry_of(&self.file), CWD, &self.part, AtFlags::SYMLINK_FOLLOW)?;
        }
        // Opened before, so that an error afterwards is one of the disk.
        let directory = directory_to_flush(&self.path)?;
        std::fs::rename(&self.part, &self.path)?;
        directory.map_or(Ok(()), |directory| directory.sync_all())
    }
}

/// The directory of `path`, to make durable what happens to names in it. One that may be written but not read cannot be flushed
/// by those who write into it.
///
/// # Errors
/// What the system says.
pub fn directory_to_flush(path: &Path) -> io::Result<Option<File>> {
    match File::open(directory_of(path)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        opened => opened.map(Some),
    }
}

/// The permissions with which a file is made that is to take the place of `path`, until [`keep_access`] gives it those that it
/// keeps: nobody reads it meanwhile who could not read what it replaces.
pub fn first_mode(path: &Path) -> u32 {
    std::fs::metadata(path).map_or(0o666, |there| there.mode() & 0o700)
}

/// Before `file` takes the place of `path`: who could read or write what is there can do so with what comes in its place, and
/// nobody else. A file that its owner has closed to others stays closed.
///
/// # Errors
/// What the system says.
pub fn keep_access(file: impl AsFd, path: &Path) -> io::Result<()> {
    let Ok(there) = std::fs::metadata(path) else { return Ok(()) };
    let own = rustix::fs::fstat(&file)?;
    let mut mode = there.mode() & 0o7777;
    let give = |uid, gid| fchown(&file, uid, Some(gid));
    // Only some may give files away; for the others the file becomes their own, as every new one. One of another group
    // is closed to the group.
    if (there.uid(), there.gid()) != (own.st_uid, own.st_gid)
        && give(Some(there.uid()), there.gid()).is_err()
        && there.gid() != own.st_gid
        && give(None, there.gid()).is_err()
    {
        mode &= !0o070;
    }
    Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        if self.written - self.begun >= WRITEBACK_BYTES {
            begin_writeback(&self.file, self.begun, self.written - self.begun);
            self.begun = self.written;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // Where it has been published there is no part. An error is of no use here: the one that led here is reported,
        // and what cannot be removed stays a part by its name.
        let _ = std::fs::remove_file(&self.part);
        parts().remove(&self.part);
    }
}

/// Begins to bring bytes of a file from the system's memory to its disk, and does not wait for it: what is written while
/// its successors are still being made need not be waited for when the file is published. That is also what tells errors.
pub fn begin_writeback(file: &File, place: u64, bytes: u64) {
    let (Ok(place), Ok(bytes)) = (libc::off64_t::try_from(place), libc::off64_t::try_from(bytes)) else { return };
    // SAFETY: the descriptor is open as long as the file is borrowed, and no memory is handed over.
    unsafe { libc::sync_file_range(file.as_raw_fd(), place, bytes, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Removes what is under way, for a process that ends without returning (a second Ctrl-C): nothing of it would stay
/// anyway. Files that other threads still write vanish with it.
pub fn discard_all() {
    // Whoever holds the list holds it for a moment; unless it ends the process itself, since it got no memory for a name.
    for _ in 0..100 {
        let mut parts = match PARTS.try_lock() {
            Ok(parts) => parts,
            Err(TryLockError::Poisoned(parts)) => parts.into_inner(),
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
        };
        for part in std::mem::take(&mut *parts) {
            // As for one that is dropped.
            let _ = std::fs::remove_file(part);
        }
        return;
    }
}

/// The directory that a file lies in.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The system's entry for an open file.
fn entry_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// A file without a name (`O_TMPFILE`, open(2)).
fn unnamed(directory: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    Ok(File::from(open(directory, OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC, mode)?))
}

/// Removes the part that a killed process of the same number may have left.
fn remove_left(part: &Path) {
    // Mostly there is none; what cannot be removed is told by whoever makes the next.
    let _ = std::fs::remove_file(part);
}

/// Bytes of a name, as nearly all file systems have it.
const NAME_MAX: usize = 255;

/// A name for the part of `path` that no other writer in this process has, and that is not too long if that of `path` is not.
fn reserve(path: &Path) -> PathBuf {
    let process = std::process::id();
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut parts = parts();
    for number in 0_u64.. {
        let end = match number {
            0 => format!(".{process}.part"),
            _ => format!(".{process}-{number}.part"),
        };
        let mut kept = name.len().min(NAME_MAX - end.len());
        // Not within a character.
        while kept > 0 && name.get(kept).is_some_and(|byte| byte & 0xc0 == 0x80) {
            kept -= 1;
        }
        let part = path.with_file_name(OsStr::from_bytes(&[&name[..kept], end.as_bytes()].concat()));
        if parts.insert(part.clone()) {
            return part;
        }
    }
    unreachable!("fewer than 2^64 files are open")
}

/// Writes the file `path`: `content` puts its bytes into a buffered writer.
///
/// # Errors
/// What the system says, as [`WholeFile::create`] and [`WholeFile::publish`], or what `content` returns.
pub fn write<E: From<io::Error>>(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<WholeFile>) -> Result<(), E>,
) -> Result<(), E> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, WholeFile::create(path)?);
    content(&mut out)?;
    let file = out.into_inner().map_err(IntoInnerError::into_error)?;
    Ok(file.publish()?)
}
