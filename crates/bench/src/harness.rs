//! What every row is measured with: turns, peers, files of its own, figures and verdicts, and how they are shown.

pub(crate) mod alignments;
pub(crate) mod driver;
pub(crate) mod files;
pub(crate) mod from_files;
pub(crate) mod how;
pub(crate) mod in_memory;
pub(crate) mod peers;
pub(crate) mod rounds;
pub(crate) mod row;
pub(crate) mod show;

use how::How;
use multigrain::app::AppJob;
use multigrain::{Abort, Error, Options, Outcome, Report, Runtime, Settings};
use multigrain_console::Failure;
use multigrain_front::fresh_seed;
use peers::Catalogue;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What every row needs.
pub(crate) struct Bench<'a> {
    pub(crate) args: &'a How,
    /// The one row that is asked for, if it is one.
    pub(crate) alone: Option<&'static str>,
    pub(crate) catalogue: Catalogue,
    pub(crate) abort: Arc<Abort>,
}

impl Bench<'_> {
    pub(crate) fn threads(&self) -> usize {
        self.args.threads as usize
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.args.peer_timeout)
    }

    /// The full size, or the small one.
    pub(crate) fn size(&self, full: u64, quick: u64) -> u64 {
        if self.args.quick { quick } else { full }
    }

    /// Whether this row alone is asked for.
    pub(crate) fn is_alone(&self, name: &str) -> bool {
        self.alone == Some(name)
    }

    /// The directory of figures, where none is named the current one.
    pub(crate) fn figures(&self) -> &Path {
        self.args.figures.as_deref().unwrap_or(Path::new("."))
    }

    /// A runtime with the bench's threads or others, and a memory budget for rows from files.
    pub(crate) fn runtime(&self, threads: usize, memory_bytes: Option<u64>) -> Result<Runtime, Error> {
        Runtime::new(Options { threads: Some(threads), memory_bytes, ..Options::default() })
    }

    pub(crate) fn settings(&self) -> Settings<'_> {
        Settings { abort: Some(&self.abort), ..Settings::default() }
    }
}

/// What is measured must be right: a result of the row's own job is checked before its turns.
pub(crate) fn right(app: &AppJob, outcome: &Outcome) -> Result<String, Failure> {
    let checked = (app.check)(outcome, fresh_seed())?;
    match checked.holds() && checked.uncovered.is_none() {
        true => Ok(format!("checked: {}", checked.covered)),
        false => Err(Failure::Run(format!(
            "the result of {} is not shown to be right{}; multigrain run {} --check says more",
            app.job.app,
            checked.wrong.or(checked.uncovered).map(|wrong| format!(" ({wrong})")).unwrap_or_default(),
            app.job.app
        ))),
    }
}

/// Seconds of a run, from its first step to its last.
pub(crate) fn run_seconds(report: &Report) -> f64 {
    report.seconds
}

/// A failure in words.
pub(crate) fn reason(failure: Failure) -> String {
    match failure {
        Failure::Facade(error) => error.to_string(),
        Failure::Request(why) | Failure::Run(why) | Failure::Undecided(why) => why,
        Failure::ReaderGone => "standard output was closed".into(),
    }
}
