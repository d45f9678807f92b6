//! RAxML on a Cell, after Blagojevic, Nikolopoulos, Stamatakis and Antonopoulos (PPoPP 2007), in virtual time.

use super::published::{Row, lines, number, usage};
use crate::Time;
use crate::offload::{Load, Machine, OffloadError, Outcome, Program, Waiting, run};
use multigrain_schedule::jobs::Dispatch;
use multigrain_schedule::policy::Policy;

/// Mean time of a task on an SPE, section 5.2.
const TASK_NS: f64 = 96_000.0;
/// Mean time on the PPE between two off-loads, section 5.2.
const BURST_NS: f64 = 11_000.0;
/// A message between PPE and SPE: half a signal's round trip on a chip, Abellan et al. 2008 through Gaona et al. 2009.
const MESSAGE_NS: f64 = 160.1 / 2.0;
/// Section 5.2.
const SWITCH_NS: f64 = 1500.0;
/// What a switch costs besides, "implicit costs following context-switching across address spaces, such as cache and TLB
/// pollution" (section 5.2): fitted on three bootstraps, of which two share a hardware thread, table 1.
const FIT_POLLUTION_NS: f64 = 7500.0;
/// "A multiple of 10 ms", section 5.2.
const QUANTUM_NS: f64 = 10e6;
/// The shorter and the longer off-loaded function of figure 2 are about one to three.
const SPREAD: f64 = 0.5;
/// Section 5.3.
const ITERATIONS: u32 = 228;

/// Seconds of one bootstrap alone, table 1: with [`TASK_NS`] and [`BURST_NS`] it says how many off-loads there are.
const FIT_ALONE_SECONDS: f64 = 28.46;
/// Two bootstraps, table 1: on a hardware thread each, they lose what they take from
/// each other's caches.
const FIT_TWO_SECONDS: f64 = 29.36;
/// One bootstrap with loops that can be shared, on one SPE and on two, table 2.
const FIT_LOOP_SECONDS: [f64; 2] = [28.71, 20.83];
/// "Using five or more SPE threads decreases efficiency", section 5.3: L / k + (fork + join) k is least at k = 4.
const BEST_TEAM: f64 = 4.0;

/// Off-loads that are simulated of each bootstrap; times are scaled to all of them.
const TASKS: u64 = 3000;

/// Nanoseconds from one off-load to the next, alone.
const CYCLE_NS: f64 = TASK_NS + BURST_NS + 2.0 * MESSAGE_NS;

/// Nanoseconds of an off-load when a bootstrap takes so many seconds.
const fn cycle_ns(seconds: f64) -> f64 {
    CYCLE_NS * seconds / FIT_ALONE_SECONDS
}

/// The loops of a mean task on one SPE, nanoseconds, and what one more worker costs: from the two fitted times, half of the
/// loops less one worker is what two save, and from the best team.
const fn loops_ns() -> (f64, f64) {
    let saved_ns = cycle_ns(FIT_LOOP_SECONDS[0]) - cycle_ns(FIT_LOOP_SECONDS[1]);
    let per_loop = 1.0 / (BEST_TEAM * BEST_TEAM);
    let loop_ns = saved_ns / (0.5 - per_loop);
    (loop_ns, loop_ns * per_loop)
}

/// One or several Cells with 8 SPEs each.
pub fn machine(cells: u32) -> Machine {
    let (_, worker_ns) = loops_ns();
    Machine {
        cores: cells,
        threads_per_core: 2,
        workers: 8 * cells,
        switch: Time::from_ns(SWITCH_NS + FIT_POLLUTION_NS),
        refill: Time::from_ns(cycle_ns(FIT_TWO_SECONDS) - CYCLE_NS),
        message: Time::from_ns(MESSAGE_NS),
        fork: Time::from_ns(worker_ns / 2.0),
        join: Time::from_ns(worker_ns / 2.0),
        sharing: Time::from_ns(cycle_ns(FIT_LOOP_SECONDS[0]) - CYCLE_NS),
    }
}

/// A bootstrap, with loops that can be shared or without.
fn program(loops: bool) -> Program {
    Program {
        tasks: TASKS,
        burst: Time::from_ns(BURST_NS),
        task: Time::from_ns(TASK_NS),
        spread: SPREAD,
        loop_share: if loops { loops_ns().0 / TASK_NS } else { 0.0 },
        iterations: ITERATIONS,
    }
}

/// What schedules the bootstraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// A policy; hardware threads turn to another bootstrap at each off-load.
    Policy(Policy),
    /// Linux: a bootstrap keeps its hardware thread while its task is off-loaded.
    Linux,
}

/// Seconds that so many bootstraps take.
///
/// # Errors
/// [`OffloadError`].
pub fn seconds(cells: u32, bootstraps: u32, scheduling: Scheduling) -> Result<f64, OffloadError> {
    let outcome = simulate(cells, bootstraps, scheduling)?;
    let off_loads = FIT_ALONE_SECONDS * 1e9 / CYCLE_NS;
    Ok(outcome.end.seconds() * off_loads / TASKS as f64)
}

/// The simulation behind [`seconds`]: fewer off-loads than a bootstrap has.
///
/// # Errors
/// [`OffloadError`].
pub fn simulate(cells: u32, bootstraps: u32, scheduling: Scheduling) -> Result<Outcome, OffloadError> {
    let quantum = Time::from_ns(QUANTUM_NS);
    let (policy, waiting) = match scheduling {
        Scheduling::Policy(policy) => (policy, Waiting::Switches),
        Scheduling::Linux => (Policy::Edtlp, Waiting::Polls { quantum }),
    };
    // The copy of a function whose loops can be shared is used by policies that share loops.
    let loops = !matches!(policy, Policy::Edtlp | Policy::Static);
    let load =
        Load { program: program(loops), programs: bootstraps, policy, dispatch: Dispatch::Queue, waiting, seed: 1 };
    run(&machine(cells), &load)
}

/// Seconds that so many bootstraps take on cores of today, each of which executes programs and off-loaded tasks alike.
///
/// Tasks take 5 us, a twentieth of what they take on an SPE, and so does the time between; starting and taking in a worker
/// costs as much as an off-load of today, half a microsecond each: assumed.
///
/// # Errors
/// [`OffloadError`].
pub fn on_cores(cores: u32, bootstraps: u32, policy: Policy) -> Result<f64, OffloadError> {
    const FASTER: f64 = TASK_NS / 5_000.0;
    const TASKS_SIMULATED: u64 = 300;
    let today_ns = |ns: f64| Time::from_ns(ns / FASTER);
    let program =
        Program { tasks: TASKS_SIMULATED, burst: today_ns(BURST_NS), task: today_ns(TASK_NS), ..program(true) };
    let machine = Machine {
        cores,
        threads_per_core: 1,
        workers: cores,
        switch: Time::from_ns(100.0),
        refill: Time::ZERO,
        message: Time::from_ns(250.0),
        fork: Time::from_ns(250.0),
        join: Time::from_ns(250.0),
        sharing: Time::ZERO,
    };
    let load =
        Load { program, programs: bootstraps, policy, dispatch: Dispatch::Queue, waiting: Waiting::Switches, seed: 1 };
    let off_loads = FIT_ALONE_SECONDS * 1e9 / CYCLE_NS;
    Ok(run(&machine, &load)?.end.seconds() * off_loads / TASKS_SIMULATED as f64)
}

/// The published figures and the simulated ones.
///
/// # Errors
/// [`OffloadError`].
pub fn rows() -> Result<Vec<Row>, OffloadError> {
    let mut rows = Vec::new();
    for line in lines(include_str!("raxml.csv")) {
        let &[table, workers, policy, team, published, used] = &line[..] else { continue };
        let team_number = number(team) as u32;
        let scheduling = match policy {
            "linux" => Scheduling::Linux,
            "edtlp" => Scheduling::Policy(Policy::Edtlp),
            _ => Scheduling::Policy(Policy::Llp { workers_per_loop: team_number }),
        };
        let row = match policy {
            "llp" => format!("1 bootstrap, llp:{team}"),
            _ => format!("{workers} bootstraps, {policy}"),
        };
        rows.push(Row {
            table: format!("Blagojevic 2007, table {table}"),
            row,
            unit: "s",
            published: number(published),
            simulated: Some(seconds(1, number(workers) as u32, scheduling)?),
            usage: usage(used),
            follows: true,
            note: None,
        });
    }
    Ok(rows)
}
