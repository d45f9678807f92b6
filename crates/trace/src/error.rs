//! Why a trace could not be read or written.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::format::{VERSION, VERSION_READ};

/// Why a trace could not be read or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file could not be created, written or named.
    #[error("cannot write the trace {}: {source}; choose another file", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No file can be written there.
    #[error(transparent)]
    Target(#[from] multigrain_whole::TargetError),
    /// What is there is no trace.
    #[error(
        "the trace would replace {}, which is there and is no trace; give the trace another name, or remove the file", path.display()
    )]
    Replaces {
        /// The file.
        path: PathBuf,
    },
    /// The system refused a read or a write.
    #[error("the trace could not be read or written: {0}")]
    Io(#[from] io::Error),
    /// What another process has recorded of the same run is not there.
    #[error(
        "what another rank has traced is not in {}: {source}; give a trace a name in a folder that all ranks reach", path.display()
    )]
    Part {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: Box<TraceError>,
    },
    /// The first bytes are not those of a trace.
    #[error(
        "this is not a trace file: it begins with {found:02x?}, a trace with \"MGTRACE\"; was it written by a run with --trace?"
    )]
    NotATrace {
        /// The bytes that were found.
        found: Vec<u8>,
    },
    /// Written by another version.
    #[error(
        "the trace has version {found}, this program reads versions {VERSION_READ} to {VERSION}; read it with the program that wrote it, or write it again"
    )]
    Version {
        /// The version that was found.
        found: u8,
    },
    /// The file ends too early.
    #[error("the trace ends in the middle of {part}, at byte {at}: it was cut off, so write it again")]
    Truncated {
        /// What was being read.
        part: &'static str,
        /// How many bytes there are.
        at: u64,
    },
    /// A field has a value that no writer gives it.
    #[error(
        "the trace is damaged in {part}, which begins at byte {at}: found {found}, expected {expected}; copy or write it again"
    )]
    Damaged {
        /// What was being read.
        part: &'static str,
        /// Where it begins in the file.
        at: u64,
        /// What was found.
        found: String,
        /// What a valid file has there.
        expected: String,
    },
    /// More of something than the format holds.
    #[error("{what} do not fit into a trace: {found}, at most {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        found: u64,
        /// What would fit.
        limit: u64,
    },
}
