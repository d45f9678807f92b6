//! The program as it is called.

use clap::Parser;
use multigrain::Abort;
use multigrain::rooms::team::strands::{Policy, Scheduler, SchedulerOptions};
use multigrain_phylo::Error;
use multigrain_phylo::app::{Args, Progress, Report, Watcher, prepare, run};
use multigrain_phylo::random::{Purpose, Random};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The arguments as they would be typed.
#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: Args,
}

/// Nobody wants to know.
pub(crate) struct Silent;

impl Watcher for Silent {
    fn line(&self, _line: &str) {}
    fn progress(&self, _progress: Progress) {}
}

/// Raises the abort at the n-th progress of a search.
pub(crate) struct Interrupting {
    left: AtomicUsize,
    abort: Arc<Abort>,
}

impl Interrupting {
    pub(crate) fn after(left: usize, abort: &Arc<Abort>) -> Interrupting {
        Interrupting { left: AtomicUsize::new(left), abort: abort.clone() }
    }
}

impl Watcher for Interrupting {
    fn line(&self, _line: &str) {}
    fn progress(&self, progress: Progress) {
        if progress.log_likelihood.is_some() && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.abort.raise();
        }
    }
}

pub(crate) fn args(typed: &[&str]) -> Args {
    Typed::try_parse_from(["phylo"].iter().chain(typed)).unwrap_or_else(|e| panic!("{e}")).args
}

pub(crate) fn scheduler(workers: usize, policy: Policy) -> Scheduler {
    Scheduler::new(SchedulerOptions { workers, policy, ..SchedulerOptions::default() }).unwrap()
}

pub(crate) fn phylo(typed: &[&str]) -> Result<Report, Error> {
    run(&prepare(&args(typed))?, &scheduler(2, Policy::Marginal), Arc::new(Abort::new()), &Silent)
}

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

pub(crate) fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// Random sequences that evolved along a random tree, the last one a copy of the first.
pub(crate) fn evolved(taxa: usize, sites: usize) -> String {
    let mut random = Random::new(7, Purpose::Search, 0);
    let mut rows: Vec<Vec<u8>> = vec![(0..sites).map(|_| b"ACGT"[random.below(4) as usize]).collect()];
    while rows.len() + 1 < taxa {
        let mut row = rows[random.below(rows.len() as u64) as usize].clone();
        for letter in &mut row {
            if random.below(10) == 0 {
                *letter = b"ACGT"[random.below(4) as usize];
            }
        }
        rows.push(row);
    }
    rows.push(rows[0].clone());
    let lines = rows.iter().enumerate().map(|(i, row)| format!("t{i} {}\n", std::str::from_utf8(row).unwrap()));
    format!("{taxa} {sites}\n{}", lines.collect::<String>())
}
