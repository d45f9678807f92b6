//! `multigrain bench beside`: pairs of programs on the same processors, each a process that takes its turns while the other takes its own: what
//! each gets of the half that is its own.

use super::check_folder;
use super::loops::programs::{asked, end_with_the_bench, ready, said};
use crate::entry::Page;
use crate::figures::lanes::{self, Group};
use crate::harness::alignments::Source;
use crate::harness::driver::Driver;
use crate::harness::how::Program;
use crate::harness::row::median;
use crate::harness::{Bench, rounds};
use multigrain::app::Application;
use multigrain::rooms::team::strands::{Scheduler, SchedulerOptions};
use multigrain_console::{Failure, table, write_whole};
use multigrain_phylo::app::execute;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Sequences and nodes, taxa and sites, parallel loops: turns of some hundred milliseconds.
const SEQUENCES: (u64, u64) = (20_000, 300);
const TAXA: (u64, u64) = (16, 6);
const SITES: (u64, u64) = (1000, 200);
const LOOPS: (u64, u64) = (3000, 100);

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(error.to_string())
}

/// One of a pair that is ours: takes a turn whenever it is told to.
fn member(bench: &Bench<'_>, program: Program) -> Result<Page, Failure> {
    end_with_the_bench();
    let serve = |turn: &mut dyn FnMut() -> Result<(), Failure>| {
        turn()?;
        ready()?;
        asked().try_for_each(|_| {
            let begin = Instant::now();
            turn()?;
            said(&json!({ "seconds": begin.elapsed().as_secs_f64() }))
        })
    };
    let runtime = bench.runtime(bench.threads(), None)?;
    match program {
        Program::Sgemm => {
            let args = multigrain_sgemm::app::Args { n: Some(bench.size(4096, 256)), ..Default::default() };
            let app = args.prepare(&runtime)?;
            let mut product = runtime.prepare(&app.job)?;
            serve(&mut || Ok(product.run(bench.settings()).map(drop)?))?;
        }
        Program::Hmmer => {
            let sequences = bench.size(SEQUENCES.0, SEQUENCES.1);
            let args = multigrain_hmmer::app::Args { n: sequences, max: true, ..Default::default() };
            let app = args.prepare(&runtime)?;
            serve(&mut || Ok(runtime.run(&app.job, bench.settings()).map(drop)?))?;
        }
        Program::Phylo => {
            let source = alignment(bench)?;
            let prepared = source.request(&["--searches", "1"])?;
            let options = SchedulerOptions { workers: bench.threads(), ..SchedulerOptions::default() };
            let scheduler = Scheduler::new(options).map_err(failed)?;
            serve(&mut || execute(&prepared, &scheduler, bench.abort.clone()).map(drop).map_err(failed))?;
        }
        _ => return Err(Failure::Request("this program is none of ours".into())),
    }
    Ok(Page::default())
}

fn alignment(bench: &Bench<'_>) -> Result<Source, Failure> {
    Source::new(bench, bench.size(TAXA.0, TAXA.1) as usize, bench.size(SITES.0, SITES.1) as usize)
}

/// What starts a program, or why it cannot be had.
fn command(bench: &Bench<'_>, program: Program, shares: bool, alignment: &Source) -> Result<Vec<String>, String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let threads = bench.args.threads.to_string();
    let peer = |before: &[&str], name: &str, after: &[&str]| {
        let command = bench.catalogue.command(name)?;
        Ok([words(before), command, words(&["--threads", &threads]), words(after)].concat())
    };
    let loops = bench.size(LOOPS.0, LOOPS.1).to_string();
    let looped = ["--work", "loop", "--calls", &loops];
    match program {
        Program::OpenmpActive => peer(&["env", "OMP_WAIT_POLICY=active"], "libgomp", &looped),
        Program::OpenmpPassive => peer(&["env", "OMP_WAIT_POLICY=passive"], "libgomp", &looped),
        Program::Raxml => peer(&[], "raxml", &["--alignment", &alignment.file.display().to_string()]),
        Program::Sgemm | Program::Hmmer | Program::Phylo => {
            let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
            let before: &[&str] =
                if shares { &["env", "MULTIGRAIN_WEIGHT=10"] } else { &["env", "-u", "MULTIGRAIN_WEIGHT"] };
            let file = alignment.file.display().to_string();
            let after = ["beside", "--as", program.name(), "--threads", &threads, "--alignment", &file];
            let quick: &[&str] = if bench.args.quick { &["--quick"] } else { &[] };
            Ok([words(before), vec![own.display().to_string()], words(&after), words(quick)].concat())
        }
    }
}

/// A pair that was measured.
struct Pair {
    programs: [Program; 2],
    shares: bool,
    /// Seconds of a turn beside the other, and what of its half that is; or why there is none.
    turns: Result<[(f64, f64); 2], String>,
}

/// Turns of all until each has had so many, at the same time: whoever has had them goes on until the others have. Who is slower had the other
/// beside it all the time.
fn turns(bench: &Bench<'_>, drivers: &mut [Driver]) -> Result<Vec<f64>, String> {
    let (left, wanted) = (AtomicU32::new(drivers.len() as u32), bench.args.rounds);
    std::thread::scope(|scope| {
        let own = |driver| {
            let left = &left;
            scope.spawn(move || {
                let own = while_others(bench, driver, wanted, left);
                if own.is_err() {
                    left.store(0, Ordering::Relaxed);
                }
                own
            })
        };
        let threads: Vec<_> = drivers.iter_mut().map(own).collect();
        let joined =
            |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or(Err("a thread panicked".into()));
        threads.into_iter().map(joined).collect()
    })
}

fn while_others(bench: &Bench<'_>, driver: &mut Driver, wanted: u32, left: &AtomicU32) -> Result<f64, String> {
    let mut seconds = Vec::new();
    while (seconds.len() as u32) < wanted || left.load(Ordering::Relaxed) > 0 {
        seconds.push(driver.repeat(bench.patience(), &bench.abort)?.figure);
        if seconds.len() as u32 == wanted {
            left.fetch_sub(1, Ordering::Relaxed);
        }
    }
    // In the last of those that were not needed the other may have been gone.
    if seconds.len() as u32 > wanted {
        seconds.pop();
    }
    median(&seconds).ok_or_else(|| "it had no turn".to_owned())
}

fn started(bench: &Bench<'_>, programs: &[Program], shares: bool, alignment: &Source) -> Result<Vec<Driver>, String> {
    let start = |&program: &Program| {
        let told = |why| format!("{}: {why}", program.name());
        let command = command(bench, program, shares, alignment).map_err(told)?;
        Driver::start(&command, &[], bench.patience(), &bench.abort).map_err(told)
    };
    programs.iter().map(start).collect()
}

/// Measures, draws the figure, and gives text and JSON.
pub(super) fn beside(bench: &Bench<'_>) -> Result<Page, Failure> {
    if let Some(program) = bench.args.beside.program {
        return member(bench, program);
    }
    check_folder(bench.args.figures.as_deref())?;
    let among = match &bench.args.beside.among[..] {
        [] => &Program::ALL[..],
        among => among,
    };
    let alignment = alignment(bench)?;
    let mut alone = Vec::new();
    for &program in among {
        rounds::status(&format!("{} alone", program.name()));
        let seconds = started(bench, &[program], true, &alignment).and_then(|mut drivers| turns(bench, &mut drivers));
        alone.push(seconds.map(|seconds| seconds[0]));
    }
    let mut pairs = Vec::new();
    for (first, &one) in among.iter().enumerate() {
        for (second, &other) in among.iter().enumerate().skip(first) {
            for shares in [true, false] {
                // Those of others do not know of each other.
                if !shares && !one.is_ours() && !other.is_ours() {
                    continue;
                }
                rounds::status(&format!("{} beside {}", one.name(), other.name()));
                let of =
                    |seconds: &[f64], alone: [f64; 2]| [0, 1].map(|at| (seconds[at], 2.0 * alone[at] / seconds[at]));
                let measured = match (&alone[first], &alone[second]) {
                    (Ok(own), Ok(others)) => started(bench, &[one, other], shares, &alignment)
                        .and_then(|mut drivers| turns(bench, &mut drivers))
                        .map(|seconds| of(&seconds, [*own, *others])),
                    (Err(why), _) | (_, Err(why)) => Err(why.clone()),
                };
                if bench.abort.is_raised() {
                    return Err(multigrain::Error::Interrupted { resume: false }.into());
                }
                pairs.push(Pair { programs: [one, other], shares, turns: measured });
            }
        }
    }
    rounds::status("");
    let mut text = text(bench, among, &alone, &pairs);
    let mut value = object(bench, among, &alone, &pairs);
    if let Some(folder) = &bench.args.figures {
        let path = folder.join("beside.svg");
        write_whole(&path, &drawn(&pairs))?;
        let _ = writeln!(text, "\nfigure: {}", path.display());
        value["figures"] = json!([path.display().to_string()]);
    }
    Ok((text, json!({ "beside": value })))
}

/// What both get together: 1 if as much as if each had had the processors for half of the time.
fn together(turns: &[(f64, f64); 2]) -> f64 {
    (turns[0].1 + turns[1].1) / 2.0
}

fn shared(shares: bool) -> &'static str {
    if shares { "shared" } else { "off" }
}

/// A lane a program, as long as its turn.
fn drawn(pairs: &[Pair]) -> String {
    let group = |pair: &Pair| {
        let lane = |at: usize| {
            let turn = pair.turns.as_ref().ok().map(|turns| (0.0, 1.0 / turns[at].1));
            (pair.programs[at].name().to_owned(), turn.into_iter().collect())
        };
        let [one, other] = pair.programs.map(Program::name);
        Group { title: format!("{one} beside {other}, {}", shared(pair.shares)), lanes: vec![lane(0), lane(1)] }
    };
    lanes::svg(
        "Turns beside each other, in those on half of the processors",
        &pairs.iter().map(group).collect::<Vec<_>>(),
    )
}

/// For people.
fn text(bench: &Bench<'_>, among: &[Program], alone: &[Result<f64, String>], pairs: &[Pair]) -> String {
    let mut text = format!("pairs of programs of {} threads each; alone, a turn takes\n\n", bench.args.threads);
    let mut lines = Vec::new();
    for (program, alone) in among.iter().zip(alone) {
        let time = alone.as_ref().map_or_else(Clone::clone, |seconds| format!("{seconds:.3} s"));
        lines.push(vec![program.name().to_owned(), time]);
    }
    text += &table::render(&lines, 2);
    text.push('\n');
    let names = ["program", "beside", "sharing", "of its half", "the other's", "together"];
    let mut lines = vec![names.map(str::to_owned).to_vec()];
    for pair in pairs {
        let [one, other] = pair.programs.map(|program| program.name().to_owned());
        let figures = match &pair.turns {
            Ok(turns) => [turns[0].1, turns[1].1, together(turns)].map(|part| format!("{part:.2}")),
            Err(_) => ["-"; 3].map(str::to_owned),
        };
        lines.push([vec![one, other, shared(pair.shares).to_owned()], figures.to_vec()].concat());
    }
    text + &table::render(&lines, 3)
}

/// For programs.
fn object(bench: &Bench<'_>, among: &[Program], alone: &[Result<f64, String>], pairs: &[Pair]) -> Value {
    let of_one = |(program, alone): (&Program, &Result<f64, String>)| json!({ "program": program.name(), "seconds": alone.as_ref().ok(), "missing": alone.as_ref().err() });
    let pair = |pair: &Pair| {
        let turns = pair.turns.as_ref().ok();
        json!({
            "programs": pair.programs.map(Program::name),
            "shares": pair.shares,
            "seconds": turns.map(|turns| turns.map(|turn| turn.0)),
            "of_half": turns.map(|turns| turns.map(|turn| turn.1)),
            "together": turns.map(together),
            "missing": pair.turns.as_ref().err(),
        })
    };
    json!({
        "threads": bench.args.threads,
        "alone": among.iter().zip(alone).map(of_one).collect::<Vec<_>>(),
        "pairs": pairs.iter().map(pair).collect::<Vec<_>>(),
    })
}
