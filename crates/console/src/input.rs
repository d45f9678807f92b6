//! Reading what somebody else writes: files, pipes and devices, with an eye on signals.

use crate::failure::Failure;
use multigrain::Abort;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// A file, pipe or device that is read.
#[derive(Debug)]
pub struct Opened {
    /// As messages call it.
    pub name: String,
    /// The file.
    pub file: File,
    /// How many bytes it has, where it can be read at any place.
    pub bytes: Option<u64>,
}

/// Opens an input: standard input where it has no path.
///
/// # Errors
/// It cannot be read.
pub fn open(path: Option<&Path>) -> Result<Opened, Failure> {
    let name = path.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
    let refused = |e: &dyn std::fmt::Display| Failure::Request(format!("cannot read {name}: {e}; check the path"));
    let file = match path {
        Some(path) => File::open(path),
        None => io::stdin().as_fd().try_clone_to_owned().map(File::from),
    };
    let file = file.map_err(|e| refused(&e))?;
    let found = file.metadata().map_err(|e| refused(&e))?;
    if found.is_dir() {
        return Err(refused(&"it is a directory"));
    }
    // Files of the system say that they are empty and are not. Of standard input a part may have been read.
    let bytes = (path.is_some() && found.is_file() && found.len() > 0).then_some(found.len());
    Ok(Opened { name, file, bytes })
}

/// Reads a file, a pipe or a device and sees a signal meanwhile: whoever feeds it may never come. Where a signal was seen, all
/// reads fail.
#[derive(Debug)]
pub struct Watched<'a> {
    /// What is read.
    pub file: &'a File,
    /// Raised by a signal.
    pub abort: &'a Abort,
}

/// How long a signal may wait to be seen.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Read for Watched<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while !self.abort.is_raised() {
            match poll(&mut [PollFd::new(self.file, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.file.read(bytes),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("interrupted"))
    }
}
