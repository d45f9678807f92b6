//! Plans in virtual time: what the engine does with a plan on this computer, done on any machine that can be described.
//!
//! The interpreter executes the same steps as the engine, in the same order, and writes the same records; only the time
//! that each takes comes from the machine's constants. `docs/model.md` beside this crate says what every driver's edge and
//! every leaf is taken to cost, and what the root of a cluster stands for.

mod hardware;
mod interpreter;
mod leaves;
mod record;

use hardware::Hardware;
use interpreter::Interpreter;
use multigrain_machine::{Layout, Machine};
use multigrain_plan::check::{CheckError, check, edge_rules};
use multigrain_plan::names::Names;
use multigrain_plan::{Body, Plan};
use multigrain_trace::{Breakdown, ClockInfo, End, Mode, Recorder, Spill, Totals, Trace, TraceError};
use std::collections::HashSet;
use std::sync::Arc;

/// Ticks of the clock of simulated records: picoseconds.
pub const TICKS_PER_SECOND: f64 = 1e12;

/// What a simulated run may be given besides plan and machine.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// What is recorded. In [`Mode::Full`] the records are in the report, unless they go to a file.
    pub mode: Mode,
    /// Takes every record, whatever the mode; the caller publishes it.
    pub spill: Option<&'a Arc<Spill>>,
    /// What is run, for the trace.
    pub program: &'a str,
    /// Called now and then; the simulation ends early when it returns false.
    pub go_on: Option<&'a dyn Fn() -> bool>,
}

/// What a run would be.
#[derive(Clone, Debug)]
pub struct Report {
    /// From the first step to the last, in seconds of virtual time.
    pub seconds: f64,
    /// Where the time went.
    pub breakdown: Breakdown,
    /// All records, if [`Mode::Full`] was asked for and they did not go to a file.
    pub trace: Option<Trace>,
    /// What happened in the simulation, counted.
    pub events: u64,
    /// For each edge from the root down, the bytes of blocks that crossed its wires, down and up: of a cluster's aggregate
    /// memory less than was fetched and stored, since some of it lies where it is used.
    pub crossed_bytes: Vec<[u64; 2]>,
}

/// Why a plan cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan is of another machine.
    #[error("the plan has {planned} children in memory {memory}, the machine has {found}: plan for this machine")]
    OtherMachine {
        /// The parent memory.
        memory: String,
        /// Children in the plan.
        planned: usize,
        /// Children in the machine.
        found: usize,
    },
    /// The plan breaks a rule of an edge that enforces its rules.
    #[error("the plan would break a rule of machine {machine}: {source}")]
    Rule {
        /// The machine.
        machine: String,
        /// The rule, with the operation.
        source: CheckError,
    },
    /// Children wait for each other for ever. Plans that pass their checker never do.
    #[error("the plan never ends: its children wait for each other for ever; prove it with `multigrain plan --verify`")]
    Stuck,
    /// The trace cannot be written.
    #[error("{0}")]
    Trace(TraceError),
    /// The caller wanted no more.
    #[error("interrupted")]
    Interrupted,
}

/// Runs a plan in virtual time. Equal plans, machines and options give equal reports and traces, to the bit.
///
/// Where an edge enforces its rules as the Cell's hardware does, the plan is first proved to obey them.
///
/// # Errors
/// See [`RunError`].
pub fn run(plan: &Plan, machine: &Machine, options: RunOptions<'_>) -> Result<Report, RunError> {
    let layout = Layout::of(machine);
    let rules = edge_rules(machine);
    if rules.iter().any(|rules| rules.strict) {
        check(plan, &rules).map_err(|source| RunError::Rule { machine: machine.name.clone(), source })?;
    }
    same_machine(plan, &layout)?;
    let workers = machine.workers();
    let edges: Vec<String> = layout.branches().iter().map(|branch| branch.name(machine)).collect();
    let full = options.mode == Mode::Full || options.spill.is_some();
    let names = full.then(|| Names::of(options.program, machine, &layout, plan));
    let recorder = |worker: usize| match options.spill {
        Some(spill) => Recorder::spilling(worker as u32, edges.len(), spill.clone()),
        None => Recorder::new(options.mode, worker as u32, edges.len()),
    };
    let clock = ClockInfo { name: "virtual".into(), ticks_per_second: TICKS_PER_SECOND, tick: 0, unix_ns: 0 };
    let header = names.as_ref().map(|names| names.header(clock));
    if let (Some(spill), Some(header), Some(names)) = (options.spill, &header, &names) {
        spill.begin(header, names.slots(), names.uses()).map_err(RunError::Trace)?;
    }
    let mut sim = crate::simulation::Simulation::new();
    let hardware = Hardware::build(&mut sim, machine, &layout);
    let recorders = (0..workers).map(recorder).collect();
    let mut interpreter = Interpreter::new(sim, hardware, (machine, &layout), recorders, names.as_ref());
    interpreter.run(plan, options.go_on)?;
    let (mut recorders, last, events, crossed_bytes) = interpreter.finish();
    let totals: Totals = Recorder::merge_totals(&recorders);
    let seconds = last.seconds();
    let breakdown = Breakdown::with_rate(seconds, workers, &totals, &edges, TICKS_PER_SECOND);
    let mut trace = None;
    if let (Some(header), Some(names)) = (header, names) {
        let end = End {
            tick: last.ps(),
            dropped: recorders.iter().map(Recorder::dropped).sum(),
            totals: recorders.iter().map(|r| r.totals().clone()).collect(),
            // It starts at 0, and the rate of the header is exact.
            ..End::default()
        };
        match options.spill {
            Some(spill) => {
                recorders.iter_mut().for_each(Recorder::flush);
                spill.end(&end);
            }
            None => {
                let records = Recorder::merge_records(&recorders);
                let (slots, uses) = (names.slots().to_vec(), names.uses().to_vec());
                trace = Some(Trace { header, slots, uses, end, records });
            }
        }
    }
    Ok(Report { seconds, breakdown, trace, events, crossed_bytes })
}

/// Whether a plan and the plans in it have as many children as the machine has.
fn same_machine(plan: &Plan, layout: &Layout) -> Result<(), RunError> {
    let (mut plans, mut seen) = (vec![plan], HashSet::new());
    while let Some(plan) = plans.pop() {
        if !seen.insert(std::ptr::from_ref(plan)) {
            continue;
        }
        let found = layout.branches().get(plan.edge).map_or(0, |branch| branch.children);
        if found != plan.children.len() && !plan.is_in_parts() {
            let (memory, planned) = (plan.parent.clone(), plan.children.len());
            return Err(RunError::OtherMachine { memory, planned, found });
        }
        plans.extend(plan.classes.iter().filter_map(|class| match &class.body {
            Body::Inner(inner) => Some(&**inner),
            Body::Leaf { .. } => None,
        }));
    }
    Ok(())
}
