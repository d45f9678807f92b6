//! What can be chosen: for all jobs of a runtime, and for one run.

use multigrain_driver::Driver;
use multigrain_driver::ranks::Ranks;
use multigrain_engine::Progress;
use multigrain_machine::Machine;
use multigrain_plan::Mapping;
use multigrain_store::{BackendChoice, Faults};
use multigrain_team::Abort;
use multigrain_trace::Spill;
use std::sync::Arc;
use std::time::Duration;

/// The machine to run on.
#[derive(Clone, Default)]
pub enum MachineChoice {
    /// This computer as detected; arrays that are not in files start in memory where they fit.
    #[default]
    Detected,
    /// This machine; arrays start in its root memory.
    Given(Box<Machine>),
}

/// What can be chosen for all jobs of a runtime.
#[derive(Clone, Default)]
pub struct Options {
    /// The machine.
    pub machine: MachineChoice,
    /// Capacity of the main memory in bytes, instead of the machine's. All that runs keep is counted in it
    /// (arrays that lie in memory, blocks, scratch memory of all workers, partial results, transfer buffers, plans beyond
    /// 4 MiB); a process takes up to 16 MiB besides.
    pub memory_bytes: Option<u64>,
    /// Number of workers, instead of the machine's.
    pub threads: Option<usize>,
    /// Tunables that are not left to the planner.
    pub mapping: Mapping,
    /// How files are reached.
    pub backend: BackendChoice,
    /// Bytes of transfer buffers for files, counted in the memory budget. `None`: 8 MiB, or 1/128
    /// of the budget, at least 1 MiB.
    pub disk_buffer_bytes: Option<u64>,
    /// How long a plan's lists of calls are, where calls can be parts instead. `None`: as long as fits beside the memory.
    pub listed_max: Option<u64>,
    /// The ranks that execute runs together, of which this process is one, instead of those that were joined
    /// ([`crate::ranks::join`]).
    pub ranks: Option<Arc<Ranks>>,
    /// Plans are those of so many ranks, each with this memory and these workers, of which none is there: for planning alone.
    pub planned_ranks: Option<usize>,
    /// Jobs are planned and not run: what an application makes for them to be run on may stay unmade.
    pub only_plans: bool,
    /// Instead of the registered drivers of their names.
    pub drivers: Vec<Arc<dyn Driver>>,
    /// Asked before every file operation; for tests.
    pub faults: Option<Arc<dyn Faults>>,
}

/// What can be chosen for one run.
#[derive(Default)]
pub struct Settings<'a> {
    /// Continue an interrupted run, if there is one.
    pub resume: bool,
    /// Throw away what an interrupted run has left. Without this and `resume`, a run that would overwrite such work is
    /// refused.
    pub discard: bool,
    /// Every leaf, wait and transfer is recorded, and not only their sums.
    pub full_trace: bool,
    /// Takes these records as the run goes on; the outcome has none then. The caller publishes the file.
    pub trace: Option<Arc<Spill>>,
    /// What the operating system did with the workers is recorded there as well, if it goes to a file.
    pub kernel: bool,
    /// Ends the run early when raised; looked at from the moment on that `on_start` tells.
    pub abort: Option<&'a Abort>,
    /// Called once when the plan is made, before any file is.
    pub on_start: Option<&'a (dyn Fn() + Sync)>,
    /// Called as the run goes on.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// How often completed stores are made durable and recorded. `None`: every two seconds.
    pub journal_interval: Option<Duration>,
}

impl Settings<'_> {
    /// How often completed stores are recorded.
    pub(crate) fn interval(&self) -> Duration {
        self.journal_interval.unwrap_or(Duration::from_secs(2))
    }
}
