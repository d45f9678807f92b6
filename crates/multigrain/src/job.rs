//! A program with its inputs and outputs.

use multigrain_program::{Arg, ArrayDecl, ArrayNumber, Call, Program};
use std::path::{Path, PathBuf};

/// Where the initial content of an array comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A .npy file.
    Npy(PathBuf),
    /// A file of bare elements, row-major, little endian.
    Raw(PathBuf),
    /// Numbers uniform in [-1, 1) from a seed; see [`crate::generate`].
    Generated {
        /// Seed.
        seed: u64,
    },
    /// These bytes.
    Bytes(Vec<u8>),
}

/// Where the final content of an array goes.
#[derive(Clone, Debug)]
pub enum Sink {
    /// A .npy file.
    Npy(PathBuf),
    /// A file of bare elements.
    Raw(PathBuf),
}

impl Sink {
    /// The file.
    pub fn path(&self) -> &PathBuf {
        match self {
            Sink::Npy(path) | Sink::Raw(path) => path,
        }
    }
}

/// So often are a program's calls kept while it is run, beside the plan: by the job, by what is planned of it and what was left
/// undone, and by their numbers and places in the journal. Measured: 2.4 KB a call of five arguments.
const CALL_COPIES: u64 = 4;
/// What an allocator takes for itself with each list.
const ALLOCATED_BYTES: usize = 16;

/// What a call of so many arguments takes of the main memory while its program is run, its plan aside.
pub(crate) fn call_bytes(arguments: usize) -> u64 {
    CALL_COPIES * (size_of::<Call>() + arguments * size_of::<Arg>() + ALLOCATED_BYTES) as u64
}

/// What an array takes of it: the files, their names in journals, and what the passes of a planner and the memories know of it.
/// Measured with 100 to 800 results in one memory of 1 MiB: 4.5 to 9.8 KB.
const ARRAY_BYTES: u64 = 10 << 10;

/// A program, where its arrays come from and where its results go. Results without a sink can be read from the
/// outcome.
#[derive(Clone)]
pub struct Job {
    /// Name of the application, for reports.
    pub app: String,
    pub(crate) program: Program,
    pub(crate) sources: Vec<Option<Source>>,
    pub(crate) sinks: Vec<Option<Sink>>,
    pub(crate) afterwards: Vec<&'static str>,
    pub(crate) files_read: Vec<PathBuf>,
    pub(crate) files_written: Vec<PathBuf>,
    kept_bytes: u64,
    observer_bytes: u64,
    work: Option<Work>,
    check: Option<Work>,
}

/// Work on the results after a run.
#[derive(Clone)]
pub(crate) struct Work {
    /// What is done, in words.
    pub(crate) what: String,
    /// What it takes of the main memory at least.
    pub(crate) bytes: u64,
}

impl Job {
    /// A job whose inputs are zeros and whose results go nowhere.
    pub fn new(app: &str, program: Program) -> Job {
        let arrays = program.arrays().len();
        Job {
            app: app.to_owned(),
            program,
            sources: vec![None; arrays],
            sinks: vec![None; arrays],
            afterwards: Vec::new(),
            files_read: Vec::new(),
            files_written: Vec::new(),
            kept_bytes: 0,
            observer_bytes: 0,
            work: None,
            check: None,
        }
    }

    /// Enters bytes that the application keeps beside the arrays as long as the job, such as tables of its tasks or an index
    /// of its inputs: they are part of what a run takes of the main memory.
    #[must_use]
    pub fn with_kept_bytes(mut self, bytes: u64) -> Job {
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
        self
    }

    /// Enters work on the results, in words, that takes at least so many bytes of the main memory: of what
    /// [`Outcome::work_bytes`](crate::Outcome::work_bytes) will be. A run that would leave fewer is refused.
    #[must_use]
    pub fn with_work_bytes(mut self, what: String, bytes: u64) -> Job {
        self.work = Some(Work { what, bytes });
        self
    }

    /// Enters what checking the results takes at least, as other work, for when they are checked ([`Job::with_check`]).
    #[must_use]
    pub fn with_check_bytes(mut self, what: String, bytes: u64) -> Job {
        self.check = Some(Work { what, bytes });
        self
    }

    /// Says that the results will be checked.
    #[must_use]
    pub fn with_check(mut self) -> Job {
        self.work = self.check.take().into_iter().chain(self.work).max_by_key(|work| work.bytes);
        self
    }

    /// The work on the results that takes most.
    pub(crate) fn work(&self) -> Option<&Work> {
        self.work.as_ref()
    }

    /// What it takes.
    pub(crate) fn work_bytes(&self) -> u64 {
        self.work.as_ref().map_or(0, |work| work.bytes)
    }

    /// Enters bytes that observing the operating system takes, beside the others.
    #[must_use]
    pub fn with_observer_bytes(mut self, bytes: u64) -> Job {
        self.observer_bytes = bytes;
        self
    }

    /// Those bytes, those of sources that are given as bytes, and those of the program's calls, of which a planner has its own,
    /// and of its arrays.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let calls = self.program.calls().iter().map(|call| call_bytes(call.args.len()));
        let arrays = ARRAY_BYTES * self.arrays().len() as u64;
        let all = [self.kept_bytes, self.observer_bytes, self.given_bytes(), calls.sum::<u64>(), arrays];
        all.into_iter().fold(0, u64::saturating_add)
    }

    fn given_bytes(&self) -> u64 {
        let given = |source: &Option<Source>| match source {
            Some(Source::Bytes(bytes)) => bytes.len() as u64,
            _ => 0,
        };
        self.sources.iter().map(given).fold(0, u64::saturating_add)
    }

    /// What takes [`Job::kept_bytes`], in words.
    pub(crate) fn kept(&self) -> String {
        let beside = [
            (self.program.calls().len() > 1, "its calls and arrays"),
            (self.given_bytes() > 0, "the sources that are given as bytes"),
            (self.observer_bytes > 0, "what --observe keeps"),
        ];
        let beside: Vec<&str> = beside.iter().filter(|(is_there, _)| *is_there).map(|(_, what)| *what).collect();
        match beside.split_last() {
            None => "its tables".to_owned(),
            Some((last, others)) => format!("{} and {last}", [&["its tables"], others].concat().join(", ")),
        }
    }

    fn number(&self, array: &impl ArrayNumber) -> usize {
        array.number(self.program.declared()).expect("the array is one of the program's")
    }

    /// Sets where an array of the program comes from.
    ///
    /// # Panics
    /// When the program has no such array, or the handle is another program's.
    #[must_use]
    pub fn with_source(mut self, array: impl ArrayNumber, source: Source) -> Job {
        let array = self.number(&array);
        self.sources[array] = Some(source);
        self
    }

    /// Sets where an array of the program goes.
    ///
    /// # Panics
    /// When the program has no such array, or the handle is another program's.
    #[must_use]
    pub fn with_sink(mut self, array: impl ArrayNumber, sink: Sink) -> Job {
        let array = self.number(&array);
        self.sinks[array] = Some(sink);
        self
    }

    /// Names a file that was read to make this job, other than as a source: no result may replace it either.
    #[must_use]
    pub fn with_file_read(mut self, path: &Path) -> Job {
        self.files_read.push(path.to_owned());
        self
    }

    /// Names a file that will be made from the results, other than a sink: it may not replace what the job reads, nor
    /// another result. Until the [`Outcome`](crate::Outcome) is dropped, what it is made from is kept beside it, for a
    /// run that is killed before or fails ([`Outcome::keep`](crate::Outcome::keep)).
    #[must_use]
    pub fn with_file_written(mut self, path: &Path) -> Job {
        self.files_written.push(path.to_owned());
        self
    }

    /// Names work on the results that comes after the run, so that it can be told in a trace: see
    /// [`Outcome::afterwards`](crate::Outcome::afterwards).
    #[must_use]
    pub fn with_afterwards(mut self, task: &'static str) -> Job {
        self.afterwards.push(task);
        self
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The declared arrays.
    pub fn arrays(&self) -> &[ArrayDecl] {
        self.program.arrays()
    }

    /// Bytes of all arrays.
    pub fn bytes(&self) -> u64 {
        self.arrays().iter().map(ArrayDecl::bytes).fold(0, u64::saturating_add)
    }

    /// The files that the job is made from: sources of arrays, and what was read to make it.
    pub fn files_read(&self) -> impl Iterator<Item = &Path> {
        let sources = self.sources.iter().flatten().filter_map(|source| match source {
            Source::Npy(path) | Source::Raw(path) => Some(path),
            Source::Generated { .. } | Source::Bytes(_) => None,
        });
        sources.chain(&self.files_read).map(PathBuf::as_path)
    }

    /// The files that results go to: sinks of arrays, and what is made from the results.
    pub fn files_written(&self) -> impl Iterator<Item = &Path> {
        self.sinks.iter().flatten().map(Sink::path).chain(&self.files_written).map(PathBuf::as_path)
    }

    /// Whether some array comes from a file.
    pub(crate) fn reads_files(&self) -> bool {
        self.sources.iter().any(|s| matches!(s, Some(Source::Npy(_) | Source::Raw(_))))
    }

    /// Whether some array comes from a file or goes to one.
    pub(crate) fn is_in_files(&self) -> bool {
        self.reads_files() || self.sinks.iter().any(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_named() {
        let job = Job::new("nothing", Program::default());
        let kept = job.kept_bytes();
        assert_eq!(job.kept(), "its tables");
        let job = job.with_observer_bytes(5);
        assert_eq!((job.kept().as_str(), job.kept_bytes()), ("its tables and what --observe keeps", kept + 5));
    }
}
