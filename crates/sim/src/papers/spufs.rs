//! More tasks than SPEs under Linux 2.6.24, after Merino-Vidal, Gelado and Navarro, in virtual time: figures of their table I and of
//! the text, the cures that they tried, and how all of it depends on what is assumed.
//!
//! Machine, schedulers and what is fitted are those of `machines/ps3.toml`; [`crate::contexts`] interprets them. Times are drawn at
//! random around their means, so a figure is the median over several seeds.

use super::published::{Row, Use, lines, number, usage};
use crate::Time;
use crate::contexts::{Load, Machine, Outcome, Policy, Problem, Work, run};
use multigrain_machine as described;

/// Seconds of a task of 500 million iterations that has an SPE for itself: table I, first row (fit).
const FIT_TASK_SECONDS: f64 = 15.57;
/// Iterations of that task, and of one of figure 3.
const TABLE_ITERATIONS: f64 = 500e6;
const FIGURE_ITERATIONS: f64 = 1e9;
/// Seconds of Julia's set with six tasks: section IV C (fit).
const FIT_JULIA_SECONDS: f64 = 10.0;
/// SPEs of a PlayStation 3 under Linux.
const SPES: usize = 6;
/// Frames that these are taken to be, and the time of the host for each; neither is published.
const JULIA_FRAMES: u32 = 300;
const JULIA_HOST: Time = Time::from_ps(100_000_000);
/// Runs of which a figure is the median.
const SEEDS: u64 = 5;

/// The PlayStation 3 as it is shipped.
///
/// # Errors
/// The shipped file does not describe it, which a test excludes.
pub fn machine() -> Result<Machine, Problem> {
    let ps3 = described::Machine::shipped("ps3").map_err(|_| Problem::NoContexts { machine: "ps3".into() })?;
    Machine::of(&ps3)
}

/// So many tasks of loop-bench, of so many iterations each.
pub fn loop_bench(tasks: usize, iterations: f64, policy: Policy) -> Load {
    Load::loops(tasks, Time::from_seconds(FIT_TASK_SECONDS * iterations / TABLE_ITERATIONS), policy)
}

/// Julia's set with so many tasks, in so many frames.
pub fn julia(tasks: usize, frames: u32, policy: Policy) -> Load {
    let frame = Time::from_seconds(FIT_JULIA_SECONDS * SPES as f64 / f64::from(frames));
    Load { work: Work::Frames { count: frames, frame, host: JULIA_HOST }, ..Load::loops(tasks, Time::ZERO, policy) }
}

/// What is told of a run, as medians over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Seconds.
    pub wall: f64,
    /// Contexts bound.
    pub switches: f64,
    /// Percent of the wall time that this took.
    pub switching_percent: f64,
    /// When the last of the tasks to have an SPE had one first, seconds.
    pub last_start: f64,
}

/// The figures of a load.
///
/// # Errors
/// [`Problem`].
pub fn figures(machine: &Machine, load: &Load) -> Result<Figures, Problem> {
    let runs: Result<Vec<Outcome>, Problem> = (1..=SEEDS).map(|seed| run(machine, &Load { seed, ..*load })).collect();
    let runs = runs?;
    let median = |of: &dyn Fn(&Outcome) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Ok(Figures {
        wall: median(&|run| run.wall.seconds()),
        switches: median(&|run| run.switches as f64),
        switching_percent: median(&|run| 100.0 * run.switching.seconds() / run.wall.seconds()),
        last_start: median(&|run| run.tasks.iter().map(|task| task.first.seconds()).fold(0.0, f64::max)),
    })
}

/// One thing changed about twelve tasks in turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// What.
    pub name: String,
    /// What comes of it.
    pub figures: Figures,
}

fn varied(cases: Vec<(String, Machine, Load)>) -> Result<Vec<Variation>, Problem> {
    cases.into_iter().map(|(name, machine, load)| Ok(Variation { figures: figures(&machine, &load)?, name })).collect()
}

/// Twelve tasks in turns with each assumed constant at both ends of its range.
///
/// # Errors
/// [`Problem`].
pub fn spread() -> Result<Vec<Variation>, Problem> {
    let (usual, load) = (machine()?, loop_bench(2 * SPES, TABLE_ITERATIONS, Policy::Normal));
    let mut cases = vec![("as assumed".to_owned(), usual.clone(), load)];
    let mut with = |name: &str, seconds: [f64; 2], change: &dyn Fn(&mut Machine, &mut Load, Time)| {
        for seconds in seconds {
            let (mut machine, mut load) = (usual.clone(), load);
            let time = Time::from_seconds(seconds);
            change(&mut machine, &mut load, time);
            cases.push((format!("{name} {time}"), machine, load));
        }
    };
    with("look", [1e-6, 20e-6], &|machine, _, time| machine.costs.look = time);
    with("spawn", [0.1e-3, 5e-3], &|machine, _, time| machine.costs.spawn = time);
    // What 0.001 % may be before it is rounded.
    with("switch", [13e-6, 39e-6], &|machine, _, time| machine.costs.switch = time);
    with("idle hardware threads look for work every", [1e-3, 4e-3], &|machine, _, time| {
        *machine = machine.with_fair(|fair| fair.balance = time);
    });
    with("other work of the PPE, every 10 ms", [3e-6, 30e-6], &|_, load, time| load.background = time);
    for spread in [0.01, 0.5] {
        let mut machine = usual.clone();
        machine.costs.spread = spread;
        cases.push((format!("times spread by {:.0} %", 100.0 * spread), machine, load));
    }
    varied(cases)
}

/// Twelve tasks in turns with each cure that the paper tries or proposes, and with the hand-off of Linux 2.6.25.
///
/// # Errors
/// [`Problem`].
pub fn cures() -> Result<Vec<Variation>, Problem> {
    let (usual, load) = (machine()?, loop_bench(2 * SPES, TABLE_ITERATIONS, Policy::Normal));
    let spin = |seconds: f64| Load { spin: Time::from_seconds(seconds), ..load };
    let case = |name: &str, machine: Machine, load: Load| (name.to_owned(), machine, load);
    varied(vec![
        case("none", usual.clone(), load),
        case("latency divided by 40", usual.with_fair(|f| f.latency = Time::from_ps(f.latency.ps() / 40)), load),
        case("without NEW_FAIR_SLEEPERS", usual.with_fair(|f| f.features.new_fair_sleepers = false), load),
        case("without START_DEBIT", usual.with_fair(|f| f.features.start_debit = false), load),
        case("with APPROX_AVG", usual.with_fair(|f| f.features.approx_avg = true), load),
        case("SPE time charged to the control thread", usual.clone(), Load { charged: true, ..load }),
        case("busy loop of 100 us in activation", usual.clone(), spin(100e-6)),
        case("busy loop of 1 ms in activation", usual.clone(), spin(1e-3)),
        case("direct hand-off", usual, Load { policy: Policy::HandOff, ..load }),
    ])
}

/// Figure 3: seconds of so many tasks of a billion iterations, under a policy.
///
/// # Errors
/// [`Problem`].
pub fn figure_3(tasks: usize, policy: Policy) -> Result<f64, Problem> {
    Ok(figures(&machine()?, &loop_bench(tasks, FIGURE_ITERATIONS, policy))?.wall)
}

/// Least and most of what variations give, for a note.
fn range(variations: &[Variation], of: fn(&Figures) -> f64, unit: &str) -> String {
    let values = || variations.iter().map(|variation| of(&variation.figures));
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    format!("with each assumed constant at both ends of its range: {least:.3} to {most:.3} {unit}")
}

/// The published figures and the simulated ones.
///
/// # Errors
/// [`Problem`].
pub fn rows() -> Result<Vec<Row>, Problem> {
    let row = |table: &str, row: String, unit, published, simulated, usage, note: Option<String>| Row {
        table: format!("Merino-Vidal et al., {table}"),
        row,
        unit,
        published,
        simulated: Some(simulated),
        usage,
        follows: true,
        note,
    };
    let machine = machine()?;
    let spread = spread()?;
    let mut rows = Vec::new();
    for fields in lines(include_str!("spufs.csv")) {
        let &[policy, tasks, seconds, switches, percent, used] = &fields[..] else { continue };
        let (sharing, used) = (if policy == "fifo" { Policy::Fifo } else { Policy::Normal }, usage(used));
        let found = figures(&machine, &loop_bench(number(tasks) as usize, TABLE_ITERATIONS, sharing))?;
        let starved = (policy, tasks) == ("normal", "12");
        let name = |what: &str| format!("{policy}, {tasks} tasks: {what}");
        let note = |of: fn(&Figures) -> f64, unit: &str| starved.then(|| range(&spread, of, unit));
        let time = note(|f| f.wall, "s");
        rows.push(row("table I", name("time"), "s", number(seconds), found.wall, used, time));
        let count = note(|f| f.switches, "switches");
        rows.push(row("table I", name("switches"), "switches", number(switches), found.switches, used, count));
        let share = note(|f| f.switching_percent, "%");
        let shown = number(percent);
        rows.push(row("table I", name("switching"), "%", shown, found.switching_percent, used, share));
        if starved {
            let start = note(|f| f.last_start, "s");
            let name = name("the starved task begins");
            rows.push(row("text", name, "s", 26.0, found.last_start, Use::Predict, start));
        }
    }
    for (tasks, published, used) in [(SPES, FIT_JULIA_SECONDS, Use::Fit), (2 * SPES, 480.0, Use::Predict)] {
        let frames = |count| figures(&machine, &julia(tasks, count, Policy::Normal));
        let note = match used {
            Use::Fit => None,
            Use::Predict => {
                let [few, many] = [frames(100)?.wall, frames(600)?.wall];
                Some(format!(
                    "{JULIA_FRAMES} frames are assumed; 100 give {few:.0} s, 600 give {many:.0} s; no task of it ends early, so the last waits \
                     until the virtual times of the others have caught up, {:.0} s",
                    frames(JULIA_FRAMES)?.last_start
                ))
            }
        };
        let found = frames(JULIA_FRAMES)?.wall;
        rows.push(row("text", format!("Julia's set, {tasks} tasks"), "s", published, found, used, note));
    }
    Ok(rows)
}
