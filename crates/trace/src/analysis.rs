//! What a trace says: where the time of each worker went, which chain of events made the run as long as it was, and
//! what its longest stalls waited for. All of it is computed from the records alone, so it holds for simulated runs as
//! well.

mod aside;
mod cause;
mod kernel;
mod path;
mod stalls;
mod timeline;
mod workers;

pub use aside::Aside;
pub use cause::{Cause, Explanation, StallTransfer};
pub use kernel::KernelTimes;
pub use path::{Path, Step, StepKind};
pub use stalls::Stall;
pub use timeline::{EdgeBusy, Moved, Span, Timeline};
pub use workers::{EdgeShare, WorkerTimes};

use crate::file::Trace;

/// Part of the workers' time from which on the runtime's work is told: the most that a run is meant to spend on it.
const RUNTIME_WORTH_NAMING: f64 = 0.05;

/// Everything that can be said about a run at once.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The times of each worker, by worker.
    pub workers: Vec<WorkerTimes>,
    /// The chain of events that ends with the run.
    pub path: Path,
    /// The longest stalls, longest first.
    pub stalls: Vec<Stall>,
    /// Each edge.
    pub edges: Vec<EdgeShare>,
    /// Leaf calls.
    pub leaves: u64,
    /// What the operating system did with each worker; empty where it was not observed.
    pub kernel: Vec<KernelTimes>,
}

impl Analysis {
    /// If the runtime takes so long for each leaf that larger leaves are worth having: a sentence with the numbers.
    pub fn advice(&self, trace: &Trace) -> Option<String> {
        let sum = |part: fn(&WorkerTimes) -> u64| self.workers.iter().map(part).fold(0, u64::saturating_add);
        let (leaf, runtime) = (sum(|w| w.leaf), sum(|w| w.runtime));
        let all = sum(WorkerTimes::total);
        if self.leaves == 0 || (runtime as f64) < RUNTIME_WORTH_NAMING * all as f64 {
            return None;
        }
        let each = |ticks: u64| crate::units::time(trace.seconds(ticks) / self.leaves as f64);
        Some(format!(
            "for each leaf of {} the runtime took {}, {:.0} % of the workers' time: larger blocks",
            each(leaf),
            each(runtime),
            100.0 * runtime as f64 / all as f64
        ))
    }

    /// Looks at a whole trace; keeps at most `stalls_max` stalls.
    pub fn of(trace: &Trace, stalls_max: usize) -> Analysis {
        let timeline = Timeline::new(trace);
        Analysis {
            workers: workers::of(&timeline),
            path: Path::of(&timeline),
            stalls: stalls::longest(&timeline, stalls_max),
            edges: workers::edges(&timeline),
            kernel: kernel::of(&timeline),
            leaves: trace.records.iter().filter(|r| r.kind == crate::Kind::Leaf).count() as u64,
        }
    }
}
