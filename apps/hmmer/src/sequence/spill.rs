//! Bytes that grow in memory, and go on in a scratch file beyond a limit.

use super::{Limit, SequenceError};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Bytes that are written to the scratch file at once.
const WRITE_BYTES: usize = 1 << 18;

/// Bytes being gathered.
pub(super) struct Spill {
    memory_bytes: u64,
    directory: PathBuf,
    buffer: Vec<u8>,
    file: Option<File>,
    written_bytes: u64,
}

/// Bytes that have been gathered.
#[derive(Debug)]
pub(super) enum Stored {
    /// In memory.
    Memory(Vec<u8>),
    /// In a file without a name.
    File {
        /// The file.
        file: File,
        /// Where it lies, for messages.
        directory: PathBuf,
    },
    /// Nowhere, as they are not made.
    Unmade {
        /// So many they would be.
        bytes: u64,
        /// Where their file would lie, if they were in one.
        directory: Option<PathBuf>,
    },
}

impl Spill {
    pub(super) fn new(limit: Limit<'_>) -> Spill {
        Spill {
            memory_bytes: limit.memory_bytes,
            directory: limit.directory.to_owned(),
            buffer: Vec::new(),
            file: None,
            written_bytes: 0,
        }
    }

    /// Bytes that stay in memory, however many, in this room.
    pub(super) fn of(buffer: Vec<u8>) -> Spill {
        Spill { memory_bytes: u64::MAX, directory: PathBuf::new(), buffer, file: None, written_bytes: 0 }
    }

    /// The bytes that were not written yet; more are appended here.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Bytes so far, after those were written that have to be.
    pub(super) fn settle(&mut self) -> Result<u64, SequenceError> {
        let waiting = self.buffer.len();
        if self.file.is_none() && waiting as u64 > self.memory_bytes {
            self.file = Some(tempfile::tempfile_in(&self.directory).map_err(|e| self.failed(e))?);
        }
        if self.file.is_some() && waiting >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(self.written_bytes + self.buffer.len() as u64)
    }

    fn flush(&mut self) -> Result<(), SequenceError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(source) = file.write_all(&self.buffer) {
            return Err(self.failed(source));
        }
        self.written_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        // What the first write left behind is as large as the limit.
        self.buffer.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Stored, SequenceError> {
        self.flush()?;
        Ok(match self.file {
            None => Stored::Memory(self.buffer),
            Some(file) => Stored::File { file, directory: self.directory },
        })
    }

    fn failed(&self, source: std::io::Error) -> SequenceError {
        SequenceError::Scratch { directory: self.directory.clone(), source }
    }
}

impl Stored {
    /// So many bytes that are not made.
    pub(super) fn unmade(bytes: u64, limit: Limit<'_>) -> Stored {
        let is_file = bytes > limit.memory_bytes;
        Stored::Unmade { bytes, directory: is_file.then(|| limit.directory.to_owned()) }
    }

    /// So many of the bytes are in memory.
    pub(super) fn kept_bytes(&self) -> u64 {
        match self {
            Stored::Memory(bytes) => bytes.capacity() as u64,
            Stored::File { .. } | Stored::Unmade { directory: Some(_), .. } => 0,
            Stored::Unmade { bytes, directory: None } => *bytes,
        }
    }

    /// The bytes from `start` to `end`.
    pub(super) fn read(&self, start: u64, end: u64) -> Result<Vec<u8>, SequenceError> {
        match self {
            Stored::Memory(bytes) => Ok(bytes[start as usize..end as usize].to_vec()),
            Stored::File { file, directory } => {
                let mut bytes = vec![0; (end - start) as usize];
                let read = file.read_exact_at(&mut bytes, start);
                read.map_err(|source| SequenceError::Scratch { directory: directory.clone(), source })?;
                Ok(bytes)
            }
            Stored::Unmade { .. } => Err(SequenceError::Unmade),
        }
    }

    /// A path under which this process, while the file is open, can open it again; of one that is not made, where it would lie.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match self {
            Stored::Memory(_) => None,
            Stored::Unmade { directory, .. } => directory.clone(),
            Stored::File { file, .. } => Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))),
        }
    }
}
