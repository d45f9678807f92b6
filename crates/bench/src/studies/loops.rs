//! `multigrain bench loops`: more tasks than workers, under direct hand-off and otherwise, beside the system's own threads.
//!
//! After Merino-Vidal et al. on more tasks than SPEs, on this computer: each task computes as long as every other and sees by itself when it was set aside,
//! so the same is seen of contexts of ours and of plain threads, which are bound to the same processors. In a turn every policy runs once, each turn
//! beginning with another one.

mod load;
mod programs;

use super::check_folder;
use crate::entry::Page;
use crate::figures::lanes::{self, Group};
use crate::harness::how::{Member, Policy};
use crate::harness::row::median;
use crate::harness::{Bench, rounds};
use load::{Done, Load, time};
use multigrain::readable_bytes;
use multigrain::rooms::machine::approximate_time;
use multigrain::rooms::team::contexts::{Did, Sharing};
use multigrain_console::{Failure, table, write_whole};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What was measured under one policy.
struct Measured {
    policy: Policy,
    /// A turn each.
    turns: Vec<Done>,
}

impl Measured {
    fn median_of(&self, figure: impl Fn(&Done) -> f64) -> f64 {
        median(&self.turns.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    }

    fn wall(&self) -> f64 {
        self.median_of(|done| done.wall)
    }

    /// Of all turns together: median and worst of times that contexts measured, in nanoseconds.
    fn spread(&self, of: impl Fn(&Did) -> &[u64]) -> Option<(f64, f64)> {
        let all: Vec<f64> = self.turns.iter().flat_map(|done| &done.did).flat_map(of).map(|ns| *ns as f64).collect();
        Some((median(&all)?, all.iter().copied().fold(0.0, f64::max)))
    }

    /// Our times over those of plain threads of the same turn.
    fn ratio_to(&self, other: &Measured) -> Option<f64> {
        let ratios: Vec<f64> = self.turns.iter().zip(&other.turns).map(|(own, other)| own.wall / other.wall).collect();
        median(&ratios)
    }

    fn timer(&self) -> bool {
        self.turns.iter().flat_map(|done| &done.did).all(|did| did.timer)
    }
}

/// Measures, draws the figure, and gives text and JSON.
pub(super) fn loops(bench: &Bench<'_>) -> Result<Page, Failure> {
    let asked = &bench.args.loops;
    match asked.member {
        Some(Member::Greedy) => return programs::spin().map(|()| Page::default()),
        Some(Member::Tasks) => return programs::member(bench).map(|()| Page::default()),
        None => {}
    }
    let every = if asked.policy.is_empty() { &Policy::ALL[..] } else { &asked.policy };
    if asked.greedy >= asked.programs && asked.greedy > 0 {
        return Err(Failure::Request(format!(
            "{} of {} programs are greedy: one at least must have tasks, ask for more programs (--programs {})",
            asked.greedy,
            asked.programs,
            asked.greedy + 1
        )));
    }
    check_folder(bench.args.figures.as_deref())?;
    let load = Load::new(bench)?;
    if asked.programs > 1 {
        return programs::programs(bench, &load, every);
    }
    let mut all: Vec<Measured> = every.iter().map(|&policy| Measured { policy, turns: Vec::new() }).collect();
    let count = all.len();
    for round in 0..bench.args.rounds as usize {
        for turn in 0..count {
            let measured = &mut all[(round + turn) % count];
            rounds::status(&format!("{}: turn {} of {}", measured.policy.name(), round + 1, bench.args.rounds));
            measured.turns.push(load.turn(measured.policy)?);
        }
    }
    rounds::status("");
    let saving = load.saving()?;
    page(bench, text(&load, &all, saving), object(&load, &all, saving), "loops.svg", || drawn(&load, &all))
}

/// Text and JSON, with the figure of that name if figures are asked for.
fn page(
    bench: &Bench<'_>,
    mut text: String,
    mut value: Value,
    name: &str,
    drawn: impl Fn() -> String,
) -> Result<Page, Failure> {
    if let Some(folder) = &bench.args.figures {
        let path = folder.join(name);
        write_whole(&path, &drawn())?;
        let _ = writeln!(text, "\nfigure: {}", path.display());
        value["figures"] = json!([path.display().to_string()]);
    }
    Ok((text, json!({ "loops": value })))
}

/// When each task had a processor, in the last turn of each policy.
fn drawn(load: &Load<'_>, all: &[Measured]) -> String {
    let group = |measured: &Measured| {
        let tasks = measured.turns.last().map(|done| &done.tasks[..]).unwrap_or_default();
        let lanes = (1..).zip(tasks).map(|(task, of): (usize, _)| (format!("task {task}"), of.turns())).collect();
        Group { title: measured.policy.name().to_owned(), lanes }
    };
    lanes::svg(&load.title(), &all.iter().map(group).collect::<Vec<_>>())
}

/// For people.
fn text(load: &Load<'_>, all: &[Measured], saving: f64) -> String {
    let mut text = format!(
        "{}\n\na wait between turns is {} if all have equal ones, each its whole slice\n",
        load.title(),
        time(load.ideal_wait())
    );
    let system = all.iter().find(|measured| measured.policy.0 == Sharing::System);
    let names = ["policy", "wall", "over system", "longest wait", "of the ideal", "fairness", "turns", "switches"];
    let mut lines = vec![names.map(str::to_owned).to_vec()];
    for measured in all {
        let over = system.and_then(|system| measured.ratio_to(system));
        let starved = measured.median_of(Done::starved);
        lines.push(vec![
            measured.policy.name().to_owned(),
            time(measured.wall()),
            over.map_or_else(String::new, |ratio| format!("{ratio:.3}")),
            time(starved),
            format!("{:.2}", starved / load.ideal_wait()),
            format!("{:.3}", measured.median_of(Done::fairness)),
            format!("{:.0}", measured.median_of(|done| done.turns() as f64)),
            format!("{:.0}", measured.median_of(|done| done.switches() as f64)),
        ]);
    }
    text += &table::render(&lines, 2);
    text += "  medians of turns; fairness is Jain's index of shares of processors, 1 is even; switches are the system's\n\n";
    let mut lines = vec![
        ["a switch", "end of slice to look", "worst", "look to next", "worst", "told by"].map(str::to_owned).to_vec(),
    ];
    for measured in all {
        let Some((next, next_worst)) = measured.spread(|did| &did.hand_over_ns) else { continue };
        let late = measured.spread(|did| &did.late_ns);
        let late = |of: fn((f64, f64)) -> f64| late.map_or_else(String::new, |late| approximate_time(of(late)));
        lines.push(vec![
            measured.policy.name().to_owned(),
            late(|late| late.0),
            late(|late| late.1),
            approximate_time(next),
            approximate_time(next_worst),
            match measured.policy.0 {
                Sharing::Fifo | Sharing::System => String::new(),
                Sharing::Slices | Sharing::HandOff => if measured.timer() { "timer" } else { "clock" }.to_owned(),
            },
        ]);
    }
    if lines.len() > 1 {
        text += &table::render(&lines, 4);
    }
    let _ = writeln!(
        text,
        "\nwhere processors had local stores a switch would also save {0} and restore {0}: {1}, copied here",
        readable_bytes(load.footprint),
        time(saving)
    );
    for measured in all {
        let (turns, wall) = (measured.median_of(|done| done.turns() as f64), measured.wall());
        if measured.policy.0 != Sharing::System {
            let share = 100.0 * turns * saving / (wall * load.workers as f64);
            let _ = writeln!(text, "  {}: {share:.2} % of the workers' time", measured.policy.name());
        }
    }
    text
}

/// For programs.
fn object(load: &Load<'_>, all: &[Measured], saving: f64) -> Value {
    let system = all.iter().find(|measured| measured.policy.0 == Sharing::System);
    let spread = |spread: Option<(f64, f64)>| {
        spread.map(|(median, worst)| json!({ "median_seconds": median * 1e-9, "worst_seconds": worst * 1e-9 }))
    };
    let policy = |measured: &Measured| {
        let last = measured.turns.last().map(|done| &done.tasks[..]).unwrap_or_default();
        let task = |(task, of): (usize, &load::Task)| {
            json!({
                "task": task,
                "first_start_seconds": of.first(),
                "end_seconds": of.end,
                "processor_seconds": of.ran,
                "longest_wait_seconds": of.starved(),
                "switches": of.switches,
            })
        };
        json!({
            "policy": measured.policy.name(),
            "wall_seconds": measured.wall(),
            "walls_seconds": measured.turns.iter().map(|done| done.wall).collect::<Vec<_>>(),
            "wall_over_system": system.and_then(|system| measured.ratio_to(system)),
            "longest_wait_seconds": measured.median_of(Done::starved),
            "longest_waits_seconds": measured.turns.iter().map(Done::starved).collect::<Vec<_>>(),
            "fairness": measured.median_of(Done::fairness),
            "turns": measured.median_of(|done| done.turns() as f64),
            "switches": measured.median_of(|done| done.switches() as f64),
            "late": spread(measured.spread(|did| &did.late_ns)),
            "hand_over": spread(measured.spread(|did| &did.hand_over_ns)),
            "timer": measured.timer(),
            "tasks": (1..).zip(last).map(task).collect::<Vec<_>>(),
        })
    };
    let mut object = load.object();
    object["ideal_wait_seconds"] = json!(load.ideal_wait());
    object["saving_seconds"] = json!(saving);
    object["policies"] = json!(all.iter().map(policy).collect::<Vec<_>>());
    object
}
