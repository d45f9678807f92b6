//! The command `sim loops`: more tasks than processors, on a machine whose file says how these are shared.

use crate::args::SimArgs;
use crate::json;
use crate::run::check_trace_target;
use multigrain::Machine as Described;
use multigrain::rooms::machine::{UnitError, approximate_time, parse_time};
use multigrain::rooms::sim::contexts::{Load, Machine, Outcome, Policy, Work, run, trace};
use multigrain::rooms::sim::{Fair, Time};
use multigrain_console::{Failure, print, table};
use serde_json::json;
use std::fmt::Write as _;

/// The word behind `sim`.
pub(crate) const NAME: &str = "loops";

/// Tasks that only compute, more of them than processors: who has which when, under two schedulers that know nothing of each other
#[derive(clap::Args, Debug)]
pub(crate) struct LoopsArgs {
    /// Tasks
    #[arg(long, value_name = "N", default_value_t = 12)]
    tasks: usize,
    /// How they share processors: fifo, normal (as the machine's scheduler does), hand-off, real-time, gang
    #[arg(long, default_value_t = Policy::Normal)]
    policy: Policy,
    /// What each task computes, alone on a processor; with --frames all tasks together
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "15.57 s")]
    work: Time,
    /// Divides the work into frames, each of which all tasks compute together and wait for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    frames: Option<u32>,
    /// What the host does for each frame
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "100 us", requires = "frames")]
    frame_host: Time,
    /// Programs, among which the tasks are divided
    #[arg(long, value_name = "N", default_value_t = 1)]
    programs: usize,
    /// Nice level of the control threads, -20 to 19
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-20..=19), default_value_t = 0)]
    nice: i8,
    /// Another thread of the host computes for so long every 10 ms
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0 s")]
    background: Time,
    /// A busy loop of each control thread when it looks for a processor
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0 s")]
    spin: Time,
    /// The time that a task has a processor counts as its control thread's
    #[arg(long)]
    charged: bool,
    /// The latency of the host's scheduler, instead of its own
    #[arg(long, value_name = "TIME", value_parser = time)]
    latency: Option<Time>,
    /// Features of the host's scheduler to be switched on or off: +approx_avg, -start_debit, -new_fair_sleepers, ...
    #[arg(long, value_name = "+|-FEATURE,..", allow_hyphen_values = true, value_delimiter = ',')]
    features: Vec<String>,
    /// Of the times that things take, which are drawn at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

fn time(text: &str) -> Result<Time, UnitError> {
    parse_time(text).map(Time::from_ns)
}

/// Executes the tasks in virtual time and reports.
pub(crate) fn loops(args: &SimArgs, of: &LoopsArgs) -> Result<(), Failure> {
    let common = &args.common;
    let refused = [
        (common.memory.is_some(), "--memory"),
        (common.threads.is_some(), "--threads"),
        (common.mapping.is_some(), "--mapping"),
        (args.compare.is_some(), "--compare"),
    ];
    if let Some((_, option)) = refused.into_iter().find(|(given, _)| *given) {
        return Err(Failure::Request(format!("loops move no data and have no plan; leave out {option}")));
    }
    let described = match &common.machine {
        Some(name) => Described::named(name)?,
        None => {
            return Err(Failure::Request("loops need a machine that is described; name one, as --machine ps3".into()));
        }
    };
    args.trace.as_deref().map(check_trace_target).transpose()?;
    let request = |error: &dyn std::fmt::Display| Failure::Request(error.to_string());
    let mut machine = Machine::of(&described).map_err(|e| request(&e))?;
    let mut wrong = None;
    machine = machine.with_fair(|fair| {
        fair.latency = of.latency.unwrap_or(fair.latency);
        wrong = of.features.iter().find(|feature| !switch(fair, feature)).cloned();
    });
    if let Some(feature) = wrong {
        let known =
            "new_fair_sleepers, wakeup_preempt, start_debit, tree_avg, approx_avg, child_runs_first, wakes_idle";
        return Err(Failure::Request(format!("--features {feature}: give + or - and one of {known}")));
    }
    let work = match of.frames {
        None => Work::Loop(of.work),
        Some(count) => {
            Work::Frames { count, frame: Time::from_ps(of.work.ps() / u64::from(count)), host: of.frame_host }
        }
    };
    let load = Load {
        tasks: of.tasks,
        programs: of.programs,
        work,
        policy: of.policy,
        nice: of.nice,
        spin: of.spin,
        charged: of.charged,
        background: of.background,
        seed: of.seed,
    };
    let outcome = run(&machine, &load).map_err(|e| request(&e))?;
    if let Some(path) = &args.trace {
        trace(&described, &load, &outcome).save(path).map_err(|e| Failure::Run(e.to_string()))?;
    }
    print(&if common.json { object(&described, &load, &outcome) } else { text(&described, &machine, &load, &outcome) })
}

/// Switches a feature on or off; whether there is one of that name.
fn switch(fair: &mut Fair, feature: &str) -> bool {
    let (on, name) = match (feature.strip_prefix('+'), feature.strip_prefix('-')) {
        (Some(name), _) => (true, name),
        (_, Some(name)) => (false, name),
        (None, None) => return false,
    };
    let features = &mut fair.features;
    let known = [
        ("new_fair_sleepers", &mut features.new_fair_sleepers),
        ("wakeup_preempt", &mut features.wakeup_preempt),
        ("start_debit", &mut features.start_debit),
        ("tree_avg", &mut features.tree_avg),
        ("approx_avg", &mut features.approx_avg),
        ("child_runs_first", &mut fair.child_runs_first),
        ("wakes_idle", &mut fair.wakes_idle),
    ];
    let found = known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, flag)| *flag = on).is_some()
}

fn object(described: &Described, load: &Load, outcome: &Outcome) -> String {
    let tasks: Vec<_> = (1..)
        .zip(&outcome.tasks)
        .map(|(task, of)| {
            json!({
                "task": task,
                "first_start_seconds": of.first.seconds(),
                "end_seconds": of.end.seconds(),
                "processor_seconds": of.ran.seconds(),
                "longest_wait_seconds": of.starved.seconds(),
            })
        })
        .collect();
    json::line(&json!({
        "machine": described.name,
        "policy": load.policy.name(),
        "wall_seconds": outcome.wall.seconds(),
        "switches": outcome.switches,
        "switch_seconds": outcome.switching.seconds(),
        "host_seconds": outcome.host.seconds(),
        "fairness": outcome.fairness(),
        "tasks": tasks,
    }))
}

fn text(described: &Described, machine: &Machine, load: &Load, outcome: &Outcome) -> String {
    let time = |time: Time| approximate_time(time.ns());
    let (tasks, policy, processors) = (load.tasks, load.policy, machine.processors);
    let mut text = format!("{tasks} tasks on {processors} processors of {}, {policy}, simulated\n\n", described.name);
    let share = 100.0 * outcome.switching.seconds() / outcome.wall.seconds();
    let rows = [
        ("wall time", time(outcome.wall)),
        ("switches", outcome.switches.to_string()),
        ("switching", format!("{} ({share:.3} % of the wall time)", time(outcome.switching))),
        ("host", time(outcome.host)),
        ("fairness", format!("{:.3} (Jain's index; 1 is even)", outcome.fairness())),
    ];
    text += &table::render(&rows.map(|(name, value)| vec![name.to_owned(), value]), 2);
    text.push('\n');
    let mut lines = vec![["task", "first start", "end", "on a processor", "longest wait"].map(str::to_owned).to_vec()];
    lines.extend((1..).zip(&outcome.tasks).map(|(task, of): (usize, _)| {
        vec![task.to_string(), time(of.first), time(of.end), time(of.ran), time(of.starved)]
    }));
    text += &table::render(&lines, 2);
    if let Some((task, of)) = (1..).zip(&outcome.tasks).max_by_key(|(_, of): &(usize, _)| of.starved)
        && of.starved.seconds() > 0.1 * outcome.wall.seconds()
    {
        let _ = writeln!(text, "\ntask {task} waited {} for a processor at a stretch", time(of.starved));
    }
    text
}
