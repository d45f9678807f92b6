//! What a file was at a moment, so that another file in its place, or other content, is noticed later.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Advice, fadvise};
use xxhash_rust::xxh3::Xxh3Default;

use crate::disk::Disk;
use crate::error::StoreError;
use crate::faults::OperationKind;
use crate::file::ArrayFile;

/// A file of up to so many bytes is looked at as a whole.
const WHOLE_BYTES_MAX: u64 = 1 << 20;
/// Of a longer one so many pieces are, of so many bytes each.
const PIECES: u64 = 64;
const PIECE_BYTES: u64 = 4096;

/// Length, times and a sample of the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Length.
    pub bytes: u64,
    /// When the content was last modified: seconds and nanoseconds since 1970. `None` of a file without a name, which is
    /// somebody's copy: when that was made says nothing.
    pub modified: Option<(i64, i64)>,
    /// When content, attributes or names were last changed, likewise. Nobody can put this time back, as `touch` and `rsync`
    /// do with the other; but a new name or another owner alter it as well, which [`holds_what`](Self::holds_what) forgives.
    pub changed: Option<(i64, i64)>,
    /// Hash (XXH3) of a sample: all of a file of up to 1 MiB; of a longer one its first 4 KiB, its last, and 4 KiB at a
    /// fixed place in each of 62 equal parts between. So content that was made anew is noticed; of one altered byte in a
    /// long file, the times have to tell; so of a file without a name it is all.
    pub sample: u64,
}

impl FileState {
    /// Whether the file holds what it held before, as far as length, time of modification and sample tell.
    pub fn holds_what(&self, before: &FileState) -> bool {
        FileState { changed: before.changed, ..*self } == *before
    }
}

impl Disk {
    /// The state of a file.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn state_of(&self, path: &Path) -> Result<FileState, StoreError> {
        self.context().attempt(OperationKind::Read, path, || {
            let file = File::open(path)?;
            let is_named = file.metadata()?.nlink() > 0;
            state(&file, is_named)
        })
    }

    /// Whether a file that had a name and is open holds what it did, whatever has its name by now.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn is_still(&self, file: &ArrayFile, before: &FileState) -> Result<bool, StoreError> {
        let now = self.context().attempt(OperationKind::Read, file.path(), || state(&again(file)?, true))?;
        Ok(now.holds_what(before))
    }

    /// Hash of a sample of an open file's header and data, as of [`FileState::sample`]; what a file that is not published
    /// has behind them does not count.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn sample_of(&self, file: &ArrayFile) -> Result<u64, StoreError> {
        let bytes = file.data_offset_bytes() + file.0.data_bytes;
        self.context().attempt(OperationKind::Read, file.path(), || sample(&again(file)?, bytes))
    }

    /// Hash (XXH3) of so many elements of an open file, from one on, of which at most 4 KiB are looked at.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn sample_of_row(&self, file: &ArrayFile, first: u64, elements: u64) -> Result<u64, StoreError> {
        let each = file.element().size_bytes();
        let mut piece = [0; PIECE_BYTES as usize];
        let len = elements.saturating_mul(each).min(PIECE_BYTES) as usize;
        let mut hash = Xxh3Default::new();
        self.context().attempt(OperationKind::Read, file.path(), || {
            read(&again(file)?, &mut piece[..len], file.data_offset_bytes() + first * each, &mut hash)
        })?;
        Ok(hash.digest())
    }
}

/// An open file, with a description of its own: that of the array may demand aligned reads.
fn again(file: &ArrayFile) -> std::io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.0.fd.as_raw_fd()))
}

fn state(file: &File, is_named: bool) -> std::io::Result<FileState> {
    let found = file.metadata()?;
    let bytes = found.len();
    Ok(match is_named {
        true => FileState {
            bytes,
            modified: Some((found.mtime(), found.mtime_nsec())),
            changed: Some((found.ctime(), found.ctime_nsec())),
            sample: sample(file, bytes)?,
        },
        false => FileState { bytes, modified: None, changed: None, sample: whole(file, bytes)? },
    })
}

/// Hashes a file as a whole.
fn whole(file: &File, bytes: u64) -> std::io::Result<u64> {
    let mut hash = Xxh3Default::new();
    let mut buffer = vec![0; WHOLE_BYTES_MAX.min(bytes) as usize];
    let mut at = 0;
    while at < bytes {
        let len = buffer.len().min((bytes - at) as usize);
        read(file, &mut buffer[..len], at, &mut hash)?;
        at += len as u64;
    }
    Ok(hash.digest())
}

fn sample(file: &File, bytes: u64) -> std::io::Result<u64> {
    if bytes <= WHOLE_BYTES_MAX {
        return whole(file, bytes);
    }
    let each = (bytes - 2 * PIECE_BYTES) / (PIECES - 2);
    let at = |number| match number {
        0 => 0,
        n if n == PIECES - 1 => bytes - PIECE_BYTES,
        // Somewhere in its part, so that what repeats at regular distances is not missed every time.
        n => PIECE_BYTES + (n - 1) * each + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (each - PIECE_BYTES),
    };
    // The disk finds all pieces at once; a file system that takes no advice reads them one by one.
    for number in 0..PIECES {
        let _ = fadvise(file, at(number), NonZeroU64::new(PIECE_BYTES), Advice::WillNeed);
    }
    let mut hash = Xxh3Default::new();
    let mut piece = [0; PIECE_BYTES as usize];
    for number in 0..PIECES {
        read(file, &mut piece, at(number), &mut hash)?;
    }
    Ok(hash.digest())
}

/// Hashes a part of a file, as far as it is there.
fn read(file: &File, buffer: &mut [u8], at: u64, hash: &mut Xxh3Default) -> std::io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], at + done as u64) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    hash.update(&buffer[..done]);
    Ok(())
}

/// A hash (XXH3) of the program that runs: its executable file, looked at once. `None` where it cannot be read.
pub fn program_hash() -> Option<u64> {
    static HASH: std::sync::OnceLock<Option<u64>> = std::sync::OnceLock::new();
    *HASH.get_or_init(|| {
        let file = File::open("/proc/self/exe").ok()?;
        whole(&file, file.metadata().ok()?.len()).ok()
    })
}
