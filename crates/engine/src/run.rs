//! The entry: checks, reservation, execution, report.

use crate::child::Interpreter;
use crate::error::EngineError;
use crate::home::{Home, Place, StoreLog};
use crate::memory::Memories;
use multigrain_machine::{Driver, Machine, MachineError};
use multigrain_plan::Plan;
use multigrain_store::Disk;
use multigrain_team::{Abort, Team};
use multigrain_trace::{Breakdown, Mode, Record, Recorder, Totals};
use std::sync::Mutex;
use std::time::Instant;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Floating-point operations (or calls, for a program without any) that are done.
    pub done: f64,
    /// All of them.
    pub total: f64,
}

/// What a run may be given besides plan and homes.
pub struct RunOptions<'a, 'l> {
    /// Ends the run early when raised.
    pub abort: &'a Abort,
    /// What is recorded.
    pub mode: Mode,
    /// Files go through this; needed for a plan whose root edge is a disk.
    pub disk: Option<&'a Disk>,
    /// Told about stores to files.
    pub log: Option<&'l mut (dyn StoreLog + 'l)>,
    /// Called after every call of the root edge by its leader.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

/// What a run was.
#[derive(Clone, Debug)]
pub struct Report {
    /// From the first step to the last, in seconds; reserving memory is not included.
    pub seconds: f64,
    /// Where the time went.
    pub breakdown: Breakdown,
    /// All records, if [`Mode::Full`] was asked for.
    pub records: Vec<Record>,
}

/// Runs a plan. The homes are in the order of the program's arrays.
///
/// # Errors
/// [`EngineError`]: the first fault. When it returns, no transfer is under way and no worker is busy.
///
/// # Safety
/// Memory homes are valid for reads and writes, initialised, and used by nobody else until the call returns; two
/// arrays do not overlap.
pub unsafe fn run(
    plan: &Plan,
    machine: &Machine,
    team: &Team,
    homes: &[Home],
    options: RunOptions<'_, '_>,
) -> Result<Report, EngineError> {
    let levels = machine
        .levels()
        .map_err(|e: MachineError| EngineError::Home { array: String::new(), problem: e.to_string() })?;
    let workers = machine.workers();
    if workers > team.workers() {
        return Err(EngineError::Workers { planned: workers, given: team.workers() });
    }
    if homes.len() != plan.arrays.len() {
        let problem = format!("{} arrays were given, the program has {}", homes.len(), plan.arrays.len());
        return Err(EngineError::Home { array: "all".into(), problem });
    }
    let mut places: Vec<Place<'_>> = Vec::with_capacity(homes.len());
    for (home, decl) in homes.iter().zip(&plan.arrays) {
        let place = home.place(decl).and_then(|place| match (&place, plan.driver) {
            (Place::File(_), Driver::Disk) | (Place::Memory(_), Driver::Shared | Driver::Local) => Ok(place),
            (Place::File(_), _) => Err("it lies in a file, but the machine's root is no disk".to_owned()),
            (Place::Memory(_), _) => Err("it lies in memory, but the machine's root is a disk".to_owned()),
        });
        places.push(place.map_err(|problem| EngineError::Home { array: decl.name.clone(), problem })?);
    }
    let memories = Memories::reserve(machine, &levels, plan)?;
    let names: Vec<String> =
        levels.windows(2).map(|w| format!("{} - {}", machine.memory(w[0]).name, machine.memory(w[1]).name)).collect();
    let recorders = (0..workers).map(|w| Recorder::new(options.mode, w as u32, names.len()).into()).collect();
    let log = options.log.map(Mutex::new);
    let interpreter = Interpreter {
        team,
        memories: &memories,
        abort: options.abort,
        disk: options.disk,
        log,
        recorders,
        fault: Mutex::new(None),
        progress: options.progress,
        flops_total: plan.flops().max(plan.calls.len() as f64),
    };
    let begin = Instant::now();
    let done = team.run(|| interpreter.execute(plan, 0, 0, &places));
    let seconds = begin.elapsed().as_secs_f64();
    let (recorders, fault) = interpreter.finish();
    if let Some(fault) = fault {
        return Err(fault);
    }
    if done.is_err() {
        return Err(EngineError::Interrupted);
    }
    let totals: Totals = Recorder::merge_totals(&recorders);
    let records = if options.mode == Mode::Full { Recorder::merge_records(&recorders) } else { Vec::new() };
    Ok(Report { seconds, breakdown: Breakdown::new(seconds, workers, &totals, &names), records })
}
