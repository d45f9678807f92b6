//! What is told of the operating system beside the records of what it did with workers' threads: how it was observed, and
//! the names of others that had to do with them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How the operating system was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelSource {
    /// Every switch of every processor, and who wakes workers: who took a worker's processor is known, and for how long it was
    /// ready before it ran.
    ProcessorsAndWakings,
    /// Every switch of every processor: who took a worker's processor is known.
    Processors,
    /// Every switch of the workers' own threads: when they were set aside is known, not for whom.
    Threads,
    /// Sums of the workers' threads, read now and then: how long they were set aside is known, neither when nor for whom.
    Sums,
}

impl fmt::Display for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KernelSource::ProcessorsAndWakings => {
                "perf events of all processors and tracepoints: when workers were set aside and for whom, and who woke them"
            }
            KernelSource::Processors => {
                "perf events of all processors: when workers were set aside and for whom, without what woken ones waited for a processor"
            }
            KernelSource::Threads => {
                "perf events of the workers' own threads: when they were set aside, not for whom, without what woken ones waited for a processor"
            }
            KernelSource::Sums => {
                "sums in /proc, read every 20 ms: how long workers were set aside, neither when exactly nor for whom"
            }
        })
    }
}

/// How the operating system was observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// By what.
    pub source: KernelSource,
    /// What would have told more and was refused: each with the reason and a way out, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// A thread that is no worker, or one that is, as far as it had to do with a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Other {
    /// Its number; 0 for a processor with nothing to do.
    pub thread: u32,
    /// The name that the operating system has for it.
    pub name: String,
    /// Whether it belongs to the run itself.
    #[serde(default)]
    pub own: bool,
}

impl Other {
    /// Whether the processor had nothing to do.
    pub fn is_idle(&self) -> bool {
        self.thread == 0
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_idle(), self.own) {
            (true, _) => f.write_str("nobody"),
            (false, true) => write!(f, "{} of this program", self.name),
            (false, false) => write!(f, "{} ({})", self.name, self.thread),
        }
    }
}

/// What is known of the operating system once the run is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// How it was observed, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<KernelInfo>,
    /// Who had to do with workers; the subject of records is an index.
    pub others: Vec<Other>,
    /// Events that the operating system had no room for.
    pub lost: u64,
    /// By so many nanoseconds at most a moment of the operating system's clock may be another on the clock of the records.
    pub clock_error_ns: u64,
}

impl Observed {
    /// One of the others, in words.
    pub(crate) fn name(&self, other: Option<u32>) -> String {
        let known = other.and_then(|other| self.others.get(other as usize));
        known.map_or_else(|| "others".to_owned(), ToString::to_string)
    }
}
