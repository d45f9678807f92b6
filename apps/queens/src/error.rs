//! What can go wrong, in words.

use multigrain::jobs::WorkerPanic;
use std::path::PathBuf;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such board here.
    #[error(
        "a board of {n} x {n} cannot be searched: N is a whole number from 1 to {}, since a row of the board is one word of \
             32 bits (the largest count that anybody has computed is that of 27)",
        crate::board::QUEENS_MAX
    )]
    Board {
        /// What was asked for.
        n: u32,
    },
    /// The instruction set is not that of this processor.
    #[error("this processor does not execute {isa}; leave --isa away")]
    Isa {
        /// Its name.
        isa: &'static str,
    },
    /// A checkpoint that is not there to be written.
    #[error(transparent)]
    Target(#[from] multigrain::whole::TargetError),
    /// The checkpoint cannot be used.
    #[error("{}: {why}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The checkpoint cannot be written.
    #[error("cannot write the checkpoint {}: {source}; what was counted since the last one that could be written, if any, is lost; with room for it, --resume goes on from there", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Threads could not be started.
    #[error("cannot start {threads} threads: {source}; use fewer (--threads)")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system says.
        source: std::io::Error,
    },
    /// The run was ended from outside.
    #[error("interrupted; {}", match kept { Some(path) => format!("what was counted is in {}: --resume goes on from there", path.display()),
             None => "nothing was kept (--checkpoint FILE keeps what was counted)".to_owned() })]
    Interrupted {
        /// The checkpoint that holds what was counted.
        kept: Option<PathBuf>,
    },
    /// The classes of symmetry do not fit each other.
    #[error(
        "internal error: {solutions} solutions, {point} of them point-symmetric and {rotation} symmetric under a quarter \
             turn, cannot be: {what}; the result is wrong, please report it with the output of `multigrain machine`"
    )]
    Classes {
        /// All solutions.
        solutions: u128,
        /// Those that are their own image under half a turn.
        point: u128,
        /// Those that are their own image under a quarter turn.
        rotation: u128,
        /// What does not come out even.
        what: &'static str,
    },
    /// A job panicked.
    #[error("internal error: {0}")]
    Panic(#[from] WorkerPanic),
}

impl Error {
    /// 2 where the request is wrong, 1 where the run failed.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Board { .. } | Error::Isa { .. } | Error::Target(_) | Error::Checkpoint { .. } => 2,
            _ => 1,
        }
    }
}
