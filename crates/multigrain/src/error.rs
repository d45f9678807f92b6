//! What can go wrong, for people and for exit statuses.

use multigrain_engine::EngineError;
use multigrain_machine::{MachineError, UnitError};
use multigrain_plan::PlanError;
use multigrain_program::ProgramError;
use multigrain_store::StoreError;
use multigrain_whole::TargetError;

/// Why something was refused or ended. Its `Debug` is its `Display`, so that a `main` that returns it tells people.
#[derive(thiserror::Error)]
pub enum Error {
    /// The request is wrong, in words of the application.
    #[error("{0}")]
    Request(String),
    /// A program was refused.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A machine was refused.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A quantity could not be read.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What an interrupted run has left cannot be continued within the limits that are given.
    #[error(
        "the run of {} cannot be continued here: {source}; give --memory and --machine as they were, or start without \
         --resume", journal.display()
    )]
    CannotResume {
        /// Its journal.
        journal: std::path::PathBuf,
        /// Why there is no plan with its tile.
        source: PlanError,
    },
    /// A file was refused before anything was started.
    #[error(transparent)]
    File(StoreError),
    /// A file that is written after the run could not be written.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The threads of the team could not be started.
    #[error("cannot start {workers} worker threads: {source}; ask for fewer with --threads")]
    Team {
        /// Threads asked for.
        workers: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The run ended before its time.
    #[error(transparent)]
    Run(#[from] EngineError),
    /// There is no run in virtual time.
    #[error(transparent)]
    Simulation(multigrain_sim::run::RunError),
    /// A file operation failed after the run had started.
    #[error(transparent)]
    Store(StoreError),
    /// What an application does after its run failed, in its words.
    #[error("{0}")]
    After(String),
    /// The run was interrupted; what is stored can be continued.
    #[error("interrupted; {}", match resume { true => "what is done is kept: the same command with --resume continues", false => "nothing is left behind" })]
    Interrupted {
        /// Whether a journal was kept.
        resume: bool,
    },
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Exit status: 2 when nothing was started, 1 when the run failed.
    pub fn exit_status(&self) -> i32 {
        match self {
            Error::Run(_) | Error::Store(_) | Error::After(_) | Error::Interrupted { .. } => 1,
            _ => 2,
        }
    }
}
