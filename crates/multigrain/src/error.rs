//! What can go wrong, for people and for exit statuses.

use multigrain_driver::ranks::Ended;
use multigrain_engine::EngineError;
use multigrain_machine::{MachineError, UnitError};
use multigrain_plan::{Enough, PlanError};
use multigrain_program::ProgramError;
use multigrain_store::StoreError;
use multigrain_whole::TargetError;
use std::path::PathBuf;

/// Why something was refused or ended. Its `Debug` is its `Display`, so that a `main` that returns it tells people.
#[derive(thiserror::Error)]
pub enum Error {
    /// The request is wrong, in words of the application.
    #[error("{0}")]
    Request(String),
    /// What a run keeps does not fit into the main memory.
    #[error("{what}; give {memory} at least {enough}{instead}")]
    DoesNotFit {
        /// What takes how much.
        what: String,
        /// The main memory.
        memory: String,
        /// How much of it is enough.
        enough: Enough,
        /// What else can be done.
        instead: &'static str,
    },
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
        "the run that {} is about cannot go on here: {source}; give --memory and --machine as they were, or throw its \
         work away with --discard", journal.display()
    )]
    CannotResume {
        /// Its journal.
        journal: PathBuf,
        /// Why there is no plan with its blocks.
        source: Box<Error>,
    },
    /// What an interrupted run has left is of another run.
    #[error(
        "{} is about a run that this one cannot continue: {why}; give what was given then to continue it with \
         --resume, or throw its work away with --discard", journal.display()
    )]
    OtherRun {
        /// Its journal.
        journal: PathBuf,
        /// In what it differs.
        why: String,
    },
    /// What an interrupted run has left would be overwritten.
    #[error(
        "the work of an interrupted run is kept beside {} ({stores} blocks): continue it with --resume, or throw it away \
         with --discard", result.display()
    )]
    Unfinished {
        /// Its first result.
        result: PathBuf,
        /// How many blocks were stored.
        stores: u64,
    },
    /// The run failed, and what it has done is kept.
    #[error(
        "{source}; what is done is kept beside {}: the same command with --resume continues, with --discard throws it \
         away", result.display()
    )]
    Kept {
        /// Why it failed.
        source: Box<Error>,
        /// Its first result.
        result: PathBuf,
    },
    /// Every result is complete, and not all of them have their names for certain.
    #[error("{source}; {}", named(published, waiting))]
    Unpublished {
        /// Why.
        source: StoreError,
        /// Results that have their names.
        published: Vec<String>,
        /// Results that have not.
        waiting: Vec<String>,
    },
    /// An input is no longer what it was when the run began.
    #[error(
        "{} changed while the run read it, so its results are not to be used and were thrown away; start once more when \
         nobody writes it", path.display()
    )]
    InputChanged {
        /// The input.
        path: PathBuf,
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
    /// The run ended on another rank, and so on all.
    #[error("{name}: {}", ended.text)]
    OnRank {
        /// The rank and its node.
        name: String,
        /// What happened there.
        ended: Ended,
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
    /// Of a refusal for want of memory: which memory, and how much of it is said to be enough, to be altered by whoever has
    /// seen how much is.
    pub fn enough(&mut self) -> Option<(&str, &mut Enough)> {
        match self {
            Error::DoesNotFit { memory, enough, .. }
            | Error::Plan(
                PlanError::DoesNotFit { memory, enough, .. }
                | PlanError::TooManyCalls { enough: Some((memory, enough)), .. }
                | PlanError::TooLong { enough: Some((memory, enough)), .. },
            ) => Some((memory, enough)),
            _ => None,
        }
    }

    /// Exit status: 2 when nothing was started, 1 when the run failed.
    pub fn exit_status(&self) -> i32 {
        match self {
            Error::Run(_) | Error::Store(_) | Error::After(_) | Error::Interrupted { .. } => 1,
            Error::OnRank { ended, .. } => i32::from(ended.status),
            Error::Kept { .. } | Error::Unpublished { .. } | Error::InputChanged { .. } => 1,
            _ => 2,
        }
    }
}

/// Which results have their names, and what to do about the others.
fn named(published: &[String], waiting: &[String]) -> String {
    let list = |names: &[String]| (names.join(", "), if names.len() == 1 { "its name" } else { "their names" });
    let ((has, its), (has_not, theirs)) = (list(published), list(waiting));
    match (published, waiting) {
        (_, []) => {
            format!("{has} got {its}, but a loss of power might take that back: run the same command with --resume")
        }
        ([], _) => format!(
            "{has_not} could not get {theirs}; what was computed is complete: the same command with --resume gives \
             {theirs}, with --discard throws it away"
        ),
        _ => format!(
            "{has} got {its}, {has_not} did not; what was computed is complete: the same command with --resume gives \
             {theirs} too, with --discard throws it away"
        ),
    }
}
