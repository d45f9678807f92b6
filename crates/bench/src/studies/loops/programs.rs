//! Several programs at once, each a process that talks as peers do (`bench/README.md`): it says that it is ready, and what came of each turn.

use super::load::{Done, Load, time};
use super::page;
use crate::entry::{Page, told};
use crate::figures::lanes::{self, Group};
use crate::harness::driver::Driver;
use crate::harness::how::Policy;
use crate::harness::row::median;
use crate::harness::{Bench, rounds};
use multigrain_console::{Failure, print, table};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a program may take besides its share of the processors.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of a program's turns, or why nothing did.
struct Program {
    greedy: bool,
    turns: Result<Vec<Value>, String>,
}

impl Program {
    fn median_of(&self, member: &str) -> Option<f64> {
        let turns = self.turns.as_ref().ok()?;
        median(&turns.iter().filter_map(|turn| turn[member].as_f64()).collect::<Vec<_>>())
    }

    fn kind(&self) -> &'static str {
        if self.greedy { "greedy" } else { "tasks" }
    }
}

fn said(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

fn asked() -> impl Iterator<Item = String> {
    std::io::stdin().lines().map_while(Result::ok).take_while(|line| line == "run")
}

fn ready() -> Result<(), Failure> {
    said(&json!({ "ready": true, "peer": "loops", "version": env!("CARGO_PKG_VERSION") }))
}

/// Where the bench is killed there is nobody to compute for, and whoever measures next would have this beside it.
fn end_with_the_bench() {
    #[cfg(target_os = "linux")]
    // Where the system refuses it, it ends after its turn.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// One of several programs: executes its tasks whenever it is told to, until it is told to end, or nobody is there to tell it.
pub(super) fn member(bench: &Bench<'_>) -> Result<(), Failure> {
    end_with_the_bench();
    let load = Load::new(bench)?;
    let policy = bench.args.loops.policy.first().copied().unwrap_or(Policy::ALL[0]);
    ready()?;
    for _ in asked() {
        let done = load.turn(policy)?;
        said(&json!({
            "seconds": done.wall,
            "longest_wait_seconds": done.starved(),
            "fairness": done.fairness(),
            "processor_seconds": processor_seconds(&done),
        }))?;
    }
    Ok(())
}

fn processor_seconds(done: &Done) -> f64 {
    done.tasks.iter().map(|task| task.ran).sum()
}

/// One that spins with twice as many threads as there are processors, until it is told to end.
pub(super) fn spin() -> Result<(), Failure> {
    end_with_the_bench();
    let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let talked =
            ready().and_then(|()| asked().try_for_each(|_| said(&json!({ "seconds": begun.elapsed().as_secs_f64() }))));
        over.store(true, Ordering::Relaxed);
        talked
    })
}

/// Starts programs, lets those with tasks take their turns at the same time, and tells what came of them; one that dies, or is stopped for longer
/// than it could take, is told.
pub(super) fn programs(bench: &Bench<'_>, load: &Load<'_>, policies: &[Policy]) -> Result<Page, Failure> {
    let mut all = Vec::new();
    for &policy in policies {
        all.push((policy, under(bench, load, policy)?));
    }
    rounds::status("");
    let (text, value) = (text(bench, load, &all), object(bench, load, &all));
    let page = page(bench, text, value, "loops-programs.svg", || drawn(load, &all))?;
    match all.iter().flat_map(|(_, programs)| programs).filter(|program| program.turns.is_err()).count() {
        0 => Ok(page),
        lost => {
            told(page, bench.args.json)?;
            Err(Failure::Run(format!("{lost} of the programs did not have all their turns")))
        }
    }
}

/// All programs under one policy.
fn under(bench: &Bench<'_>, load: &Load<'_>, policy: Policy) -> Result<Vec<Program>, Failure> {
    let asked = &bench.args.loops;
    let own = std::env::current_exe().map_err(|e| Failure::Run(format!("cannot find this program: {e}")))?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    // Their threads have a share each, as every other has.
    let share = f64::from(asked.programs) + 2.0 * processors * f64::from(asked.greedy);
    let longest = Duration::from_secs_f64((4.0 * alone(load) * share).min(1e6)) + PATIENCE;
    let patience = bench.patience().min(longest);
    let mut started = Vec::new();
    for number in 0..asked.programs {
        let greedy = number >= asked.programs - asked.greedy;
        let command = [own.display().to_string(), "loops".to_owned()];
        rounds::status(&format!("{}: starting program {}", policy.name(), number + 1));
        let driver = Driver::start(&command, &words(load, bench, policy, greedy), bench.patience(), &bench.abort);
        started.push((greedy, driver, Vec::new()));
    }
    for round in 1..=bench.args.rounds {
        rounds::status(&format!("{}: turn {round} of {}", policy.name(), bench.args.rounds));
        std::thread::scope(|scope| {
            for (greedy, driver, turns) in &mut started {
                // A greedy one only says that it is there, which it is to do until the others have had all their turns.
                if !*greedy {
                    scope.spawn(|| turn(driver, turns, patience, bench));
                }
            }
        });
        if bench.abort.is_raised() {
            return Err(multigrain::Error::Interrupted { resume: false }.into());
        }
    }
    for (_, driver, turns) in started.iter_mut().filter(|(greedy, ..)| *greedy) {
        turn(driver, turns, patience, bench);
    }
    let program = |(greedy, driver, turns): (bool, Result<Driver, String>, Vec<Value>)| Program {
        greedy,
        turns: driver.map(|_| turns),
    };
    Ok(started.into_iter().map(program).collect())
}

fn turn(driver: &mut Result<Driver, String>, turns: &mut Vec<Value>, patience: Duration, bench: &Bench<'_>) {
    if let Ok(of) = driver {
        match of.repeat(patience, &bench.abort) {
            Ok(answer) => turns.push(answer.members),
            Err(why) => *driver = Err(why),
        }
    }
}

/// What a program is told when it is started.
fn words(load: &Load<'_>, bench: &Bench<'_>, policy: Policy, greedy: bool) -> Vec<String> {
    let asked = &bench.args.loops;
    let named =
        |value: Option<clap::builder::PossibleValue>| value.map_or_else(String::new, |v| v.get_name().to_owned());
    let mut words: Vec<String> = [
        ("--member", if greedy { "greedy" } else { "tasks" }.to_owned()),
        ("--workers", load.workers.to_string()),
        ("--tasks", load.tasks.to_string()),
        ("--length", format!("{} ns", load.length.as_nanos())),
        ("--slice", format!("{} ns", load.slice.as_nanos())),
        ("--footprint", format!("{} B", load.footprint)),
        ("--chunks", load.chunks.to_string()),
        ("--policy", policy.name().to_owned()),
        ("--work", named(clap::ValueEnum::to_possible_value(&asked.work))),
        ("--told", named(clap::ValueEnum::to_possible_value(&asked.told))),
    ]
    .into_iter()
    .flat_map(|(option, value)| [option.to_owned(), value])
    .collect();
    words.extend(bench.args.quick.then(|| "--quick".to_owned()));
    words
}

/// Seconds of a program that has the processors for itself.
fn alone(load: &Load<'_>) -> f64 {
    load.length.as_secs_f64() * load.tasks as f64 / load.workers as f64
}

/// The part of its fair share that a program had: 1 if it took as long as with an equal part of the processors, all the time.
fn fair(bench: &Bench<'_>, load: &Load<'_>, program: &Program) -> Option<f64> {
    Some(alone(load) * f64::from(bench.args.loops.programs) / program.median_of("seconds")?)
}

/// How long each program took.
fn drawn(load: &Load<'_>, all: &[(Policy, Vec<Program>)]) -> String {
    let group = |(policy, programs): &(Policy, Vec<Program>)| {
        let lane = |(number, program): (usize, &Program)| {
            let end = program.median_of("seconds").filter(|_| !program.greedy);
            (format!("{} {number}", program.kind()), end.map(|end| (0.0, end)).into_iter().collect())
        };
        Group { title: policy.name().to_owned(), lanes: (1..).zip(programs).map(lane).collect() }
    };
    lanes::svg(&format!("Each program: {}", load.title()), &all.iter().map(group).collect::<Vec<_>>())
}

/// For people.
fn text(bench: &Bench<'_>, load: &Load<'_>, all: &[(Policy, Vec<Program>)]) -> String {
    let (programs, greedy) = (bench.args.loops.programs, bench.args.loops.greedy);
    let text = format!(
        "{programs} programs at once, {greedy} of them greedy; each other: {}\n\nalone, such a program takes {}\n",
        load.title(),
        time(alone(load))
    );
    let names = ["policy", "program", "", "wall", "of its fair share", "longest wait", "fairness"];
    let mut lines = vec![names.map(str::to_owned).to_vec()];
    let mut notes = String::new();
    for (policy, programs) in all {
        for (number, program) in (1..).zip(programs) {
            let shown = |figure: Option<f64>, show: &dyn Fn(f64) -> String| {
                figure.filter(|_| !program.greedy).map_or_else(|| "-".to_owned(), show)
            };
            lines.push(vec![
                policy.name().to_owned(),
                number.to_string(),
                program.kind().to_owned(),
                shown(program.median_of("seconds"), &time),
                shown(fair(bench, load, program), &|share| format!("{share:.2}")),
                shown(program.median_of("longest_wait_seconds"), &time),
                shown(program.median_of("fairness"), &|fairness| format!("{fairness:.3}")),
            ]);
            if let Err(why) = &program.turns {
                let _ = writeln!(notes, "  {}, program {number}: {why}", policy.name());
            }
        }
    }
    text + &table::render(&lines, 3) + &notes
}

/// For programs.
fn object(bench: &Bench<'_>, load: &Load<'_>, all: &[(Policy, Vec<Program>)]) -> Value {
    let program = |program: &Program| {
        json!({
            "kind": program.kind(),
            "seconds": program.median_of("seconds"),
            "of_fair_share": fair(bench, load, program).filter(|_| !program.greedy),
            "longest_wait_seconds": program.median_of("longest_wait_seconds"),
            "fairness": program.median_of("fairness"),
            "turns": program.turns.as_ref().ok(),
            "missing": program.turns.as_ref().err(),
        })
    };
    let policies: Vec<Value> = all
        .iter()
        .map(|(policy, programs)| {
            json!({ "policy": policy.name(), "programs": programs.iter().map(program).collect::<Vec<_>>() })
        })
        .collect();
    let mut object = load.object();
    object["alone_seconds"] = json!(alone(load));
    object["policies"] = json!(policies);
    object
}
