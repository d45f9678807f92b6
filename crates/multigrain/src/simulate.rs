//! Jobs in virtual time.

use crate::choose::not_aligned;
use crate::error::Error;
use crate::job::Job;
use crate::options::Settings;
use crate::planning::Planned;
use crate::runtime::Runtime;
use multigrain_machine::{LeafRate, Machine};
use multigrain_plan::{EdgeTraffic, Plan};
use multigrain_sim::calibrate;
use multigrain_sim::run::{RunError, RunOptions};
use multigrain_team::Abort;
use multigrain_trace::{Breakdown, Mode, Spill, Trace};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So long a job is run before its leaves are measured.
const WARM: Duration = Duration::from_millis(700);

/// What can be chosen for one simulation.
#[derive(Default)]
pub struct Simulation<'a> {
    /// Every leaf, wait and transfer is recorded, and not only their sums.
    pub full_trace: bool,
    /// Takes these records as the simulation goes on; the result has none then. The caller publishes the file.
    pub trace: Option<Arc<Spill>>,
    /// Ends the simulation early when raised.
    pub abort: Option<&'a Abort>,
}

/// What a run would be.
pub struct Simulated {
    /// The plan, which a run would execute.
    pub plan: Arc<Plan>,
    /// The machine, from the memory down in which the arrays would lie.
    pub machine: Machine,
    /// Seconds of virtual time from the first step to the last.
    pub seconds: f64,
    /// Where they would go.
    pub breakdown: Breakdown,
    /// All records, if they were asked for and did not go to a file.
    pub trace: Option<Trace>,
    /// Bytes over every edge, with lower bounds.
    pub edges: Vec<EdgeTraffic>,
    /// Floating-point operations of the program.
    pub flops: f64,
    /// The most bytes of the main memory that would be in use: of the memory below a disk what the plan takes there, of
    /// the root where there is no disk the arrays.
    pub memory_bytes: u64,
    /// What happened in the simulation, counted.
    pub events: u64,
    /// For each edge from the root down, the bytes of blocks that crossed its wires, down and up
    /// ([`multigrain_sim::run::Report::crossed_bytes`]).
    pub crossed_bytes: Vec<[u64; 2]>,
}

impl Runtime {
    /// Plans a job as a run would, and executes the plan in virtual time. Nothing is read, computed or written.
    ///
    /// The machine may have edges that no build can execute: GPUs, clusters.
    ///
    /// # Errors
    /// As [`Runtime::plan`]; [`Error::Request`] when the plan breaks a rule of the machine.
    pub fn simulate(&self, job: &Job, settings: Simulation<'_>) -> Result<Simulated, Error> {
        let Planned { machine, plan, edges, .. } = self.plan_simulated(job)?;
        let go_on = || !settings.abort.is_some_and(Abort::is_raised);
        let options = RunOptions {
            mode: if settings.full_trace { Mode::Full } else { Mode::Totals },
            spill: settings.trace.as_ref(),
            program: &job.app,
            go_on: Some(&go_on),
        };
        let report = multigrain_sim::run::run(&plan, &machine, options).map_err(|error| match error {
            RunError::Interrupted => Error::Interrupted { resume: false },
            RunError::Rule { source, .. } => not_aligned(&machine, job, &source),
            error => Error::Simulation(error),
        })?;
        let tasks = job.program.tasks();
        let flops = job.program.calls().iter().map(|c| tasks[c.task as usize].work(&c.shape()).flops).sum();
        let memory_bytes = match plan.driver.files {
            true => plan.memory_use().first().map_or(0, |m| m.staging_bytes + m.scratch_bytes + m.fixed_bytes),
            false => plan.arrays.iter().map(|array| array.bytes()).sum::<u64>() + plan.scratch_bytes,
        };
        Ok(Simulated {
            plan,
            machine,
            seconds: report.seconds,
            breakdown: report.breakdown,
            trace: report.trace,
            edges,
            flops,
            memory_bytes,
            events: report.events,
            crossed_bytes: report.crossed_bytes,
        })
    }

    /// Runs a job, whose arrays lie in memory, `times` times, and measures how fast its leaves are: samples for
    /// [`fit_leaf_rates`].
    ///
    /// # Errors
    /// As [`Runtime::prepare`] and [`crate::Prepared::run`].
    pub fn measure_leaves(&self, job: &Job, times: usize) -> Result<Vec<calibrate::Sample>, Error> {
        let mut prepared = self.prepare(job)?;
        let mut runs = Vec::new();
        // The first runs find caches, pages and clocks as they happen to be, and a processor that was idle is faster for some
        // tenths of a second than it can be for long.
        let begun = Instant::now();
        prepared.run(Settings::default())?;
        while begun.elapsed() < WARM {
            prepared.run(Settings::default())?;
        }
        for _ in 0..times {
            let report = prepared.run(Settings { full_trace: true, ..Settings::default() })?;
            if let Some(trace) = &report.trace {
                runs.push(calibrate::samples(&prepared.planned().plan, trace));
            }
        }
        Ok(calibrate::typical(runs))
    }
}

/// The leaf rates that explain measured samples best; for [`Machine::with`] and [`multigrain_machine::Memory::leaves`].
pub fn fit_leaf_rates(samples: &[calibrate::Sample], source: &str) -> Vec<LeafRate> {
    calibrate::fit(samples, source)
}
