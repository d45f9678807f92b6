//! What can be wrong with a file of profiles.

use std::path::PathBuf;

/// A file of profiles that could not be read; every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The operating system refused.
    #[error("cannot read the profiles in {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason given.
        source: std::io::Error,
    },
    /// There is no room for another profile.
    #[error("{}: there is no memory left for profile {number}; give more with --memory", path.display())]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// The profile, counted from 1.
        number: usize,
    },
    /// The binary file is none of profiles, or one of them is not whole.
    #[error("{}, profile {number}: {reason}", path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// The profile, counted from 1.
        number: usize,
        /// What was expected, what was found, and what to do.
        reason: String,
    },
    /// The text is no profile, or not a whole one.
    #[error("{}:{line}: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What was expected, what was found, and what to do.
        reason: String,
    },
}
