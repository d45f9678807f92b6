//! What can go wrong, said for people: what was asked, what was found, what to do.

use std::path::{Path, PathBuf};

/// An error of the phylo program.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A file or an argument is wrong: exit status 2. The message says where (file, line, column) and what to do.
    #[error("{0}")]
    Request(String),
    /// A file could not be read or written, or the run failed: exit status 1.
    #[error("{0}")]
    Run(String),
    /// The run was interrupted; what is in the checkpoint can be resumed.
    #[error("interrupted; continue with --resume")]
    Interrupted,
}

impl Error {
    /// A wrong request.
    pub fn request(message: impl Into<String>) -> Error {
        Error::Request(message.into())
    }

    /// A failed run.
    pub fn run(message: impl Into<String>) -> Error {
        Error::Run(message.into())
    }

    /// 1 for a failed run, 2 for a wrong request.
    pub fn exit_status(&self) -> i32 {
        match self {
            Error::Request(_) => 2,
            Error::Run(_) | Error::Interrupted => 1,
        }
    }
}

/// A place in a text file, as messages give it: `FILE:line:column`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Place {
    /// A place in `file`.
    pub fn new(file: &Path, line: usize, column: usize) -> Place {
        Place { file: file.to_owned(), line, column }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}
