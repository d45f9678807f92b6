//! The entry: checks, reservation, execution, report.

use crate::error::EngineError;
use crate::home::{Home, Place, Sides, StoreLog};
use crate::interpreter::Interpreter;
use crate::meetings::Meetings;
use crate::memory::{Memories, Part};
use crate::ranks::OnRanks;
use multigrain_driver::ranks::{Progress, Ranks};
use multigrain_kernel::Watch;
use multigrain_machine::Machine;
use multigrain_plan::names::Names;
use multigrain_plan::{Body, Plan};
use multigrain_team::{Abort, Team};
use multigrain_trace::{Breakdown, ClockInfo, End, Mode, Recorder, Spill, Tick, Totals, Trace, rate};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What a run may be given besides plan and homes.
pub struct RunOptions<'a, 'l> {
    /// Ends the run early when raised.
    pub abort: &'a Abort,
    /// What is recorded. In [`Mode::Full`] the records are in the report, unless they go to a file.
    pub mode: Mode,
    /// Takes every record, whatever the mode, also where the run fails; the caller publishes it.
    pub spill: Option<&'a Arc<Spill>>,
    /// The trace that goes to a file also has what the operating system did with the workers.
    pub kernel: bool,
    /// What is run, for the trace.
    pub program: &'a str,
    /// Names of tasks that are no part of the plan: work on the results, which the caller may add to the trace.
    pub afterwards: &'a [&'static str],
    /// The ranks that execute the plan together, of which each executes the steps of the root's child of its number.
    pub ranks: Option<&'a Ranks>,
    /// Told about what is stored where arrays have no addresses.
    pub log: Option<&'l mut (dyn StoreLog + 'l)>,
    /// Which places the calls read and write; needed where an array lies in two.
    pub sides: Option<&'a dyn Sides>,
    /// Called after every call of the root edge, by the worker that leads its child.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

/// What a run was.
#[derive(Clone, Debug)]
pub struct Report {
    /// From the first step to the last, in seconds; reserving memory is not included.
    pub seconds: f64,
    /// Where the time went.
    pub breakdown: Breakdown,
    /// All records, if [`Mode::Full`] was asked for and they did not go to a file.
    pub trace: Option<Trace>,
}

/// Runs a plan in memories that were reserved for it. The homes are in the order of the plan's arrays: the program's, and
/// behind them temporary ones.
///
/// # Errors
/// [`EngineError`]: the first fault. When it returns, no transfer is under way and no worker is busy.
///
/// # Safety
/// Memory homes are valid for reads and writes, initialised, and used by nobody else until the call returns; two
/// arrays do not overlap.
///
/// The plan is what a [`Planner`](multigrain_plan::Planner) made for this machine, unaltered, or
/// [`check`](multigrain_plan::check::check) has found nothing in it. A plan's fields are open, so that it can be looked at,
/// drawn and altered by tests; that whoever executes one vouches for it is what keeps safe code from executing another.
/// What is relied on: calls that use the same bytes, of which one writes, have an order, in memory and in slots; slots,
/// scratch memory and partial results do not overlap while they are used. That every block lies inside its array, slot or
/// memory, with the type and rank of its parameter, is seen to in the run.
pub unsafe fn run(
    plan: &Plan,
    machine: &Machine,
    team: &Team,
    memories: &mut Memories,
    homes: &[Home],
    options: RunOptions<'_, '_>,
) -> Result<Report, EngineError> {
    let part = options.ranks.map_or(Part::WHOLE, |ranks| Part { rank: ranks.rank(), ranks: ranks.count() });
    if !memories.serve(machine, plan, part) {
        return Err(EngineError::Reserved);
    }
    let workers = machine.workers() / part.ranks;
    if workers > team.workers() {
        return Err(EngineError::Workers { planned: workers, given: team.workers() });
    }
    if homes.len() != plan.arrays.len() {
        let problem = format!("{} arrays were given, the plan has {}", homes.len(), plan.arrays.len());
        return Err(EngineError::Home { array: "all".into(), problem });
    }
    let mut places: Vec<Place<'_>> = Vec::with_capacity(homes.len());
    for (home, decl) in homes.iter().zip(&plan.arrays) {
        let place = home.place(decl).and_then(|place| match (&place, plan.driver.files) {
            (Place::Twins(_), _) if options.sides.is_none() => {
                Err("it lies in two places, and nothing says in which when".to_owned())
            }
            (Place::Opaque(_) | Place::Twins(_), true) | (Place::Memory(_), false) => Ok(place),
            (Place::Opaque(_) | Place::Twins(_) | Place::Part(..), false) => {
                Err("it lies in a file, but the machine's root is no disk".to_owned())
            }
            (Place::Memory(_) | Place::Part(..), true) => {
                Err("it lies in memory, but the machine's root is a disk".to_owned())
            }
        });
        places.push(place.map_err(|problem| EngineError::Home { array: decl.name.clone(), problem })?);
    }
    let run = || run_placed(plan, machine, team, memories, &places, options);
    if plan.seconds < BOUND_FROM_SECONDS && !wakes_workers(plan) {
        return run();
    }
    // Bound to its processor from here on: memory is touched first where it will be used.
    team.run(run)
}

/// What is predicted to take less and wakes nobody is executed by a thread that is not bound: to bind it and let it go again takes
/// five microseconds (measured), and binding keeps a thread in its place over longer times than this.
const BOUND_FROM_SECONDS: f64 = 1e-3;

/// What [`run`] does once everything is checked, on the team's first worker.
fn run_placed(
    plan: &Plan,
    machine: &Machine,
    team: &Team,
    memories: &Memories,
    places: &[Place<'_>],
    options: RunOptions<'_, '_>,
) -> Result<Report, EngineError> {
    let ranks = options.ranks.map_or(1, Ranks::count);
    let (workers, layout) = (machine.workers() / ranks, &memories.layout);
    let first_worker = options.ranks.map_or(0, Ranks::rank) * workers;
    let meetings = Meetings::reserve(plan, layout, team.spin())?;
    let names: Vec<String> = layout.branches().iter().map(|branch| branch.name(machine)).collect();
    let full = options.mode == Mode::Full || options.spill.is_some();
    let tables = full.then(|| Names::of(options.program, machine, layout, plan));
    let recorder = |worker: usize| match options.spill {
        Some(spill) => Recorder::spilling(worker as u32, names.len(), spill.clone()),
        None => Recorder::new(options.mode, worker as u32, names.len()),
    };
    let recorders = (0..workers).map(|worker| recorder(worker).into()).collect();
    let log = options.log.map(Mutex::new);
    let interpreter = Interpreter {
        team,
        root: plan,
        memories,
        meetings: &meetings,
        abort: options.abort,
        ranks: options.ranks.map(OnRanks::new),
        log,
        sides: options.sides,
        recorders,
        names: tables,
        fault: Mutex::new(None),
        progress: options.progress,
        flops_done: AtomicU64::new(0),
        // Of several ranks each tells how far its own share is.
        flops_total: plan.flops().max(plan.calls.len() as f64) / ranks as f64,
    };
    let timed = options.mode != Mode::Off || full;
    let tick = || if timed { multigrain_trace::now() } else { Tick::default() };
    let header = interpreter.names.as_ref().map(|names| {
        let mut header = names.header(ClockInfo::measured());
        header.tasks.extend(options.afterwards.iter().map(ToString::to_string));
        if ranks > 1 {
            let name = |worker| format!("rank {} worker {}", worker / workers, worker % workers);
            header.workers = (0..machine.workers()).map(name).collect();
        }
        header
    });
    if let (Some(spill), Some(header), Some(names)) = (options.spill, &header, &interpreter.names) {
        spill.begin(header, names.slots(), names.uses()).map_err(EngineError::Trace)?;
    }
    // Its records follow the names.
    let watch = match options.spill.filter(|_| options.kernel) {
        Some(spill) => Some(observe(team, workers, spill)?),
        None => None,
    };
    // The last of what is reserved, and the moment from which every worker is awake. A single call that stays where it
    // is wakes nobody.
    if wakes_workers(plan) {
        memories.touch_scratch(team, workers);
    }
    if let Some(ranks) = options.ranks {
        // All have seen how many signals there were before the first is given.
        ranks.meet(options.abort).map_err(|_| EngineError::Interrupted)?;
    }
    let (begin, first) = (Instant::now(), tick());
    let done = interpreter.execute(plan, 0, 0, places);
    let (elapsed, last) = (begin.elapsed(), tick());
    let observed = watch.map(Watch::end).unwrap_or_default();
    let (mut recorders, tables, fault) = interpreter.finish();
    // Those of other ranks are theirs to tell.
    let sums = |worker: usize| match recorders.get(worker.wrapping_sub(first_worker)) {
        Some(recorder) => recorder.totals().clone(),
        None => Totals::new(names.len()),
    };
    let end = || End {
        start: first.0,
        tick: last.0,
        elapsed_ns: elapsed.as_nanos() as u64,
        dropped: recorders.iter().map(Recorder::dropped).sum(),
        totals: (0..machine.workers()).map(sums).collect(),
        observed,
    };
    let end = tables.is_some().then(end);
    // Whatever happened: the trace of a run that has failed may say why.
    if let (Some(spill), Some(end)) = (options.spill, &end) {
        recorders.iter_mut().for_each(Recorder::flush);
        spill.end(end);
    }
    if let Some(fault) = fault {
        return Err(fault);
    }
    if done.is_err() {
        return Err(EngineError::Interrupted);
    }
    let totals: Totals = Recorder::merge_totals(&recorders);
    let ticks_per_second = match timed {
        true => rate(multigrain_trace::ticks_per_second(), last.since(first), elapsed.as_nanos() as u64),
        false => 1e9,
    };
    // One clock for the whole and its parts.
    let seconds = if timed { last.since(first) as f64 / ticks_per_second } else { elapsed.as_secs_f64() };
    let breakdown = Breakdown::with_rate(seconds, workers, &totals, &names, ticks_per_second);
    let trace = match (header, tables, end) {
        (Some(header), Some(tables), Some(end)) if options.spill.is_none() => {
            let records = Recorder::merge_records(&recorders);
            let (slots, uses) = (tables.slots().to_vec(), tables.uses().to_vec());
            Some(Trace { header, slots, uses, end, records })
        }
        _ => None,
    };
    Ok(Report { seconds, breakdown, trace })
}

/// Begins to observe the workers' threads; what is seen goes to the trace.
fn observe(team: &Team, workers: usize, spill: &Arc<Spill>) -> Result<Watch, EngineError> {
    let mut threads = team.threads();
    threads.truncate(workers);
    let spill = Arc::clone(spill);
    Watch::begin(threads, Box::new(move |full| spill.exchange(full))).map_err(EngineError::Kernel)
}

/// Whether executing the plan, or one below it, takes more than the worker that begins.
fn wakes_workers(plan: &Plan) -> bool {
    let below = |inner: &Body| matches!(inner, Body::Inner(inner) if wakes_workers(inner));
    plan.forks() || plan.classes.iter().any(|class| below(&class.body))
}
