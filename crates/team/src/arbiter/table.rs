//! The table that programs share: a file in memory, of this user, for the programs that may use the same processors. One of the modules of
//! this crate with `unsafe` in it.
//!
//! ```text
//! bytes 0 to 63     magic, version, bytes in all, a number of the system's start, the name space of process numbers and the processors
//! from 64 on        a seat of 64 bytes for each process: its number, its weight, the cores that it wants; the rest is 0
//! ```
//!
//! A process holds its seat by a lock on these bytes, which the system takes back when the process ends, however it ends. The file is
//! read and written, not mapped: where it is cut short a read says so, and a process that touched the mapping would be ended.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use multigrain_schedule::cores::Member;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

/// Processes that know of each other at most; one more shares nothing.
const SEATS: usize = 127;
const SEAT_BYTES: usize = 64;
const BYTES: usize = (SEATS + 1) * SEAT_BYTES;

const MAGIC: [u8; 8] = *b"mgcores\n";
const VERSION: u32 = 1;

/// Why there is no table: what was found, and what to do.
pub(super) type Refusal = String;

/// A table in which this process has a seat.
#[derive(Debug)]
pub(super) struct Table {
    file: File,
    path: PathBuf,
    header: [u8; SEAT_BYTES],
    mine: usize,
}

/// What a seat says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Says {
    pub(super) process: u32,
    pub(super) member: Member,
    pub(super) is_mine: bool,
}

impl Table {
    /// Takes a seat in the table of the programs of this user that may use just these processors; it is made if there is none.
    pub(super) fn join(processors: &[usize]) -> Result<Table, Refusal> {
        let (folder, whose) = (folder()?, whose(processors)?);
        let path = folder.join(format!("cores-{whose:016x}"));
        let header = header(whose);
        let refused =
            |what: &str, error: io::Error| format!("cannot {what} {}: {error}; check its folder", path.display());
        let file = match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&folder, &path, &header).map_err(|error| refused("make", error))?;
                open(&path)
            }
            other => other,
        };
        let file = file.map_err(|error| refused("open", error))?;
        let found = file.metadata().map_err(|error| refused("look at", error))?;
        if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 || !found.is_file() {
            let (uid, mode) = (found.uid(), found.mode() & 0o7777);
            let path = path.display();
            return Err(format!("{path} is of user {uid} with mode {mode:o}, not this user's alone; {REMEDY}"));
        }
        if found.len() != BYTES as u64 {
            return Err(format!("{} has {} bytes instead of {BYTES}; {REMEDY}", path.display(), found.len()));
        }
        let mut table = Table { file, path, header, mine: 0 };
        table.read()?;
        let free = (0..SEATS).find(|&seat| table.lock(seat, libc::F_OFD_SETLK).is_some());
        table.mine = free.ok_or_else(|| format!("all {SEATS} seats of {} are taken", table.path.display()))?;
        Ok(table)
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Says what this process wants, and by that tells all that have the file open that something has changed.
    pub(super) fn say(&self, member: Member) -> Result<(), Refusal> {
        let mut seat = [0; 12];
        for (at, word) in [std::process::id(), member.weight, member.wanted].into_iter().enumerate() {
            seat[4 * at..][..4].copy_from_slice(&word.to_le_bytes());
        }
        self.file
            .write_all_at(&seat, (SEAT_BYTES * (1 + self.mine)) as u64)
            .map_err(|error| format!("cannot write {}: {error}; {REMEDY}", self.path.display()))
    }

    /// What all say that hold seats, in the order of the seats.
    pub(super) fn says(&self) -> Result<Vec<Says>, Refusal> {
        let bytes = self.read()?;
        let mut all = Vec::new();
        for (number, seat) in bytes.chunks_exact(SEAT_BYTES).skip(1).enumerate() {
            let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| seat[4 * at + byte]));
            let is_mine = number == self.mine;
            if word(0) != 0 && (is_mine || self.is_held(number)) {
                all.push(Says { process: word(0), member: Member { weight: word(1), wanted: word(2) }, is_mine });
            }
        }
        Ok(all)
    }

    /// All of the file, if it is as it should be.
    fn read(&self) -> Result<[u8; BYTES], Refusal> {
        let mut bytes = [0; BYTES];
        let why = match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) if bytes[..SEAT_BYTES] == self.header => return Ok(bytes),
            Ok(()) => "is of another version, or damaged".to_owned(),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => "was cut short".to_owned(),
            Err(error) => format!("cannot be read: {error}"),
        };
        Err(format!("{} {why}; {REMEDY}", self.path.display()))
    }

    /// Whether another process holds a seat.
    fn is_held(&self, seat: usize) -> bool {
        self.lock(seat, libc::F_OFD_GETLK).is_some_and(|kind| kind != libc::F_UNLCK)
    }

    /// Asks for the lock on a seat, or what is in the way of it; none if the system refuses.
    fn lock(&self, seat: usize, how: i32) -> Option<i32> {
        // SAFETY: all of its fields are numbers.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        (lock.l_type, lock.l_whence) = (libc::F_WRLCK as i16, libc::SEEK_SET as i16);
        (lock.l_start, lock.l_len) = ((SEAT_BYTES * (1 + seat)) as libc::off_t, SEAT_BYTES as libc::off_t);
        // SAFETY: the file is open, and the lock lives until the call returns; the system writes at most that.
        let done = unsafe { libc::fcntl(self.file.as_raw_fd(), how, &raw mut lock) };
        (done == 0).then_some(i32::from(lock.l_type))
    }
}

const REMEDY: &str = "it is left as it is; remove it once no program uses it";

fn header(whose: u64) -> [u8; SEAT_BYTES] {
    let mut header = [0; SEAT_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&(BYTES as u32).to_le_bytes());
    header[16..24].copy_from_slice(&whose.to_le_bytes());
    header
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Makes the file whole before it has a name, so that nobody finds half of it; where another was quicker, that one's stays.
fn make(folder: &Path, path: &Path, header: &[u8]) -> io::Result<()> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file: File = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?.into();
    // All of it is there, so that no later write finds the memory full.
    file.write_all(header)?;
    file.write_all(&[0; BYTES - SEAT_BYTES])?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        Err(rustix::io::Errno::EXIST) => Ok(()),
        other => Ok(other?),
    }
}

/// The folder of this user that lasts as long as the system runs.
fn folder() -> Result<PathBuf, Refusal> {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|given| given.is_absolute());
    let user = rustix::process::geteuid().as_raw();
    let folder = match given {
        Some(given) => given.join("multigrain"),
        None => PathBuf::from(format!("/dev/shm/multigrain-{user}")),
    };
    let refused = |why: String| format!("{} {why}; give another by XDG_RUNTIME_DIR", folder.display());
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(refused(format!("cannot be made: {error}")));
        }
        _ => {}
    }
    let found = folder.symlink_metadata().map_err(|error| refused(format!("cannot be looked at: {error}")))?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(refused("is not a folder that only this user writes".into()));
    }
    Ok(folder)
}

/// A number for what programs must have in common to share: the start of the system, the name space in which processes have their numbers,
/// and the processors.
fn whose(processors: &[usize]) -> Result<u64, Refusal> {
    let told =
        |path: &str, error: io::Error| format!("cannot read {path}: {error}; programs share where /proc is there");
    let (boot, space) = ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid");
    let mut hasher = DefaultHasher::new();
    std::fs::read(boot).map_err(|error| told(boot, error))?.hash(&mut hasher);
    std::fs::read_link(space).map_err(|error| told(space, error))?.hash(&mut hasher);
    processors.hash(&mut hasher);
    Ok(hasher.finish())
}
