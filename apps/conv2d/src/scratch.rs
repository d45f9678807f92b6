//! The samples of one channel of a picture: in memory, or in a file without a name that goes with the process.

use crate::picture::PictureError;
use multigrain::prelude::{Error, Source};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The samples, row by row, as bytes.
pub(crate) struct Channel {
    picture: PathBuf,
    place: Place,
}

enum Place {
    Memory(Vec<u8>),
    Writing { file: BufWriter<File>, directory: PathBuf },
    File { file: File, directory: PathBuf },
}

/// What ends the decoding of a picture.
pub(crate) enum Failed {
    Picture(PictureError),
    Other(Box<Error>),
}

impl From<PictureError> for Failed {
    fn from(error: PictureError) -> Failed {
        Failed::Picture(error)
    }
}

/// Before the run.
impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        match failed {
            Failed::Picture(error) => Error::Request(error.to_string()),
            Failed::Other(error) => *error,
        }
    }
}

impl Failed {
    /// After the run.
    pub(crate) fn after(self) -> Error {
        match self {
            Failed::Picture(error) => Error::After(error.to_string()),
            Failed::Other(error) => *error,
        }
    }
}

fn refused(directory: &Path, error: &std::io::Error) -> Failed {
    Failed::Other(Box::new(Error::Request(format!(
        "the samples of the picture cannot be kept in {}: {error}; free space there, or give more --memory",
        directory.display()
    ))))
}

impl Channel {
    /// An empty channel of a picture: in memory, or in a scratch file in a directory.
    pub(crate) fn new(picture: &Path, directory: Option<&Path>) -> Result<Channel, Failed> {
        let place = match directory {
            None => Place::Memory(Vec::new()),
            Some(directory) => {
                let file = tempfile::tempfile_in(directory).map_err(|e| refused(directory, &e))?;
                Place::Writing { file: BufWriter::new(file), directory: directory.to_owned() }
            }
        };
        Ok(Channel { picture: picture.to_owned(), place })
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, samples: &[f32]) -> Result<(), Failed> {
        let mut bytes = samples.iter().map(|sample| sample.to_le_bytes());
        match &mut self.place {
            Place::Memory(all) => all.extend(bytes.flatten()),
            Place::Writing { file, directory } => {
                bytes.try_for_each(|bytes| file.write_all(&bytes)).map_err(|e| refused(directory, &e))?;
            }
            Place::File { .. } => {}
        }
        Ok(())
    }

    /// Ends the channel: from now on it can be read.
    pub(crate) fn finish(&mut self) -> Result<(), Failed> {
        let place = std::mem::replace(&mut self.place, Place::Memory(Vec::new()));
        self.place = match place {
            Place::Writing { file, directory } => {
                let file = file.into_inner().map_err(|e| refused(&directory, e.error()))?;
                // An interrupted run knows its inputs by their times.
                let picture = std::fs::metadata(&self.picture).and_then(|meta| meta.modified());
                picture.and_then(|time| file.set_modified(time)).map_err(|e| refused(&directory, &e))?;
                Place::File { file, directory }
            }
            other => other,
        };
        Ok(())
    }

    /// What an array is filled from. What lies in memory goes with it.
    pub(crate) fn source(&mut self) -> Source {
        match &mut self.place {
            Place::Memory(bytes) => Source::Bytes(std::mem::take(bytes)),
            Place::Writing { file, .. } => Source::Raw(path(file.get_ref())),
            Place::File { file, .. } => Source::Raw(path(file)),
        }
    }

    /// Samples from number `first` on.
    pub(crate) fn read(&self, first: u64, samples: &mut [f32]) -> Result<(), Failed> {
        let mut bytes = vec![0; 4 * samples.len()];
        match &self.place {
            Place::Memory(all) => bytes.copy_from_slice(&all[4 * first as usize..][..4 * samples.len()]),
            Place::File { file, directory } => {
                file.read_exact_at(&mut bytes, 4 * first).map_err(|e| refused(directory, &e))?;
            }
            Place::Writing { directory, .. } => {
                return Err(refused(directory, &std::io::Error::other("it is still being written")));
            }
        }
        let numbers = bytes.as_chunks::<4>().0;
        samples.iter_mut().zip(numbers).for_each(|(to, bytes)| *to = f32::from_le_bytes(*bytes));
        Ok(())
    }
}

/// A path under which this process, while the file is open, can open it again.
fn path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
