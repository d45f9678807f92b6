//! The log of a run, and who is told how far it is.

use super::files;
use super::prepare::Prepared;
use crate::checkpoint::{self, Saved};
use crate::error::Error;
use crate::job::Job;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Searches that have ended, and all of them.
    pub searches: (usize, usize),
    /// Replicates that have ended, and all of them.
    pub replicates: (usize, usize),
    /// The log-likelihood that a search has reached last.
    pub log_likelihood: Option<f64>,
    /// Which job that was, and how many rounds it has made in this run.
    pub round: Option<(Job, usize)>,
    /// How far jobs are that have not ended, added up; an ended one would be 1.
    pub begun: f64,
}

/// Who is told what happens during a run, from any thread.
pub trait Watcher: Sync {
    /// A line of the log.
    fn line(&self, line: &str);
    /// How far the run is.
    fn progress(&self, progress: Progress);
}

/// The log: kept for its file, and told as it grows.
pub(crate) struct Log<'a> {
    text: Mutex<String>,
    pub(super) watcher: &'a dyn Watcher,
    begun: Instant,
    /// When the last line was said.
    last: Mutex<Instant>,
}

impl<'a> Log<'a> {
    /// A log that goes on after what is there already.
    pub(super) fn new(text: String, watcher: &'a dyn Watcher) -> Log<'a> {
        Log { text: Mutex::new(text), watcher, begun: Instant::now(), last: Mutex::new(Instant::now()) }
    }

    /// How long nothing was said.
    pub(super) fn silence(&self) -> Duration {
        lock(&self.last).elapsed()
    }
}

impl Log<'_> {
    pub(crate) fn line(&self, line: &str) {
        let mut text = lock(&self.text);
        text.push_str(line);
        text.push('\n');
        *lock(&self.last) = Instant::now();
        self.watcher.line(line);
    }

    /// A line with the time since the beginning.
    pub(crate) fn timed(&self, line: &str) {
        let seconds = self.begun.elapsed().as_secs();
        self.line(&format!("[{:02}:{:02}:{:02}] {line}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub(crate) fn text(&self) -> String {
        lock(&self.text).clone()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Is told and does nothing.
pub(super) struct Nobody;

impl Watcher for Nobody {
    fn line(&self, _line: &str) {}
    fn progress(&self, _progress: Progress) {}
}

/// Writes a checkpoint, and the log as it is by then.
pub(super) fn save(prepared: &Prepared, saved: &mut Saved, log: &Log<'_>) -> Result<(), Error> {
    // In the order of the jobs, so that equal states are equal files.
    saved.found.sort_by_key(|f| f.job);
    prepared.outputs.write(files::LOG, &log.text())?;
    prepared.outputs.write(files::CHECKPOINT, &checkpoint::write(&prepared.request, saved)).map(drop)
}
