//! What can go wrong.

use crate::cipher::{Damage, Kind};
use multigrain::jobs::{JobsError, WorkerPanic};
use std::io;
use thiserror::Error;

/// Why nothing was encrypted or decrypted.
#[derive(Debug, Error)]
pub enum Error {
    /// The request is wrong; the text says what was asked, what was found and what to do.
    #[error("{0}")]
    Request(String),
    /// The input does not begin as an encrypted file does.
    #[error("{name} is no encrypted file: it begins neither with {} nor with {}; check the name", crate::mode::AGE_INTRO.escape_ascii(), crate::mode::AES_INTRO.escape_ascii())]
    NoEncryptedFile {
        /// The input.
        name: String,
    },
    /// The header of the input is not what it must be.
    #[error("the header of {name} {why}; get the file again from where it came from")]
    Header {
        /// The input.
        name: String,
        /// What is wrong with it, beginning with a verb.
        why: String,
    },
    /// No identity is one of the recipients.
    #[error(
        "{name} is not encrypted to any of the identities given with -i; give the identity of one of its recipients"
    )]
    NoIdentity {
        /// The input.
        name: String,
    },
    /// Another passphrase, or a changed header.
    #[error("this is not the passphrase of {name}; try again")]
    Passphrase {
        /// The input.
        name: String,
    },
    /// The content of the input is not what was encrypted.
    #[error("{}", damaged(name, *damage, *chunk_bytes))]
    Damaged {
        /// The input.
        name: String,
        /// Where and how.
        damage: Damage,
        /// Plaintext bytes of a chunk.
        chunk_bytes: u64,
    },
    /// More than the mode can hold.
    #[error("{name} has more than 4 PiB, which is what {mode} can hold; split it, or use --mode age")]
    TooLong {
        /// The input.
        name: String,
        /// The mode.
        mode: &'static str,
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
    #[error("cannot write {name}: {source}; nothing of it is complete")]
    Write {
        /// The output.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// The user ended it.
    #[error("interrupted; nothing half written is left behind")]
    Interrupted,
    /// A fault of this program.
    #[error("internal error: {0}")]
    Panic(WorkerPanic),
}

fn damaged(name: &str, damage: Damage, chunk_bytes: u64) -> String {
    let Damage { chunk, kind } = damage;
    let offset = chunk.saturating_mul(chunk_bytes);
    match kind {
        Kind::Changed => format!(
            "{name} was changed or damaged after it was encrypted: chunk {chunk}, from byte {offset} of its content, is not \
             authentic; get the file again"
        ),
        Kind::Ending => format!(
            "{name} was cut off, changed or damaged after it was encrypted: chunk {chunk}, with which it ends, from byte \
             {offset} of its content, is not authentic; get the whole file again"
        ),
        Kind::Truncated => format!(
            "{name} is truncated: it ends within or before chunk {chunk}, after {offset} bytes of its content, and that is \
             not its end; get the whole file"
        ),
        Kind::Extended => format!(
            "{name} goes on after its end: its content ends with chunk {chunk}, from byte {offset}, and something was \
             appended; cut it off"
        ),
    }
}

impl Error {
    /// 2 if the request is wrong, 1 if the work failed.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Request(_) => 2,
            _ => 1,
        }
    }
}

impl From<JobsError<Error>> for Error {
    fn from(error: JobsError<Error>) -> Error {
        match error {
            JobsError::Failed(error) => error,
            JobsError::Panic(panic) => Error::Panic(panic),
        }
    }
}
