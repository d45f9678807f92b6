//! What can go wrong.

#[cfg(not(loom))]
use multigrain::strands::RunError;
use std::io;
use thiserror::Error;

/// Why nothing was encoded.
#[derive(Debug, Error)]
pub enum Error {
    /// The request is wrong; the text says what was asked, what was found and what to do.
    #[error("{0}")]
    Request(String),
    /// The input is no video that can be encoded.
    #[error("{name} {why}")]
    Input {
        /// The input.
        name: String,
        /// What is wrong with it, beginning with a verb, and what to do.
        why: String,
    },
    /// The input ends within a picture.
    #[error("{name} is cut off: picture {picture} has {found} of {expected} bytes; {advice}")]
    CutOff {
        /// What to do.
        advice: String,
        /// The input.
        name: String,
        /// The picture, counted from 1.
        picture: u64,
        /// Bytes that are there.
        found: usize,
        /// Bytes that a picture has.
        expected: usize,
    },
    /// The input cannot be read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// The input.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// The output cannot be written.
    #[error("cannot write {name}: {source}; nothing half written is left, free space or choose another file")]
    Write {
        /// The output.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write standard output: {0}; the stream is not complete, free space or choose another place")]
    Stream(io::Error),
    /// Whoever reads standard output has gone.
    #[error("cannot write standard output: nobody reads it any more; the stream is not complete")]
    ReaderGone,
    /// The user ended it.
    #[error("interrupted; nothing half written is left behind")]
    Interrupted,
    /// A fault of this program.
    #[cfg(not(loom))]
    #[error("internal error: {0}")]
    Panic(#[from] RunError),
}

impl Error {
    /// 2 if the request is wrong, 1 if the work failed.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Request(_) | Error::Input { .. } => 2,
            _ => 1,
        }
    }
}
