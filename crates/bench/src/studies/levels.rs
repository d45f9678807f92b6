//! `multigrain bench levels`: every application on every machine that this computer can be, and where its time went.
//!
//! After figures 5 and 6 and table 4 of Houston et al. 2008, "A portable runtime interface for multi-level memory
//! hierarchies": one figure for machines with one edge that transfers, one for machines with two, bars of leaf work,
//! waiting and overhead, and the rates beside them. The sizes are the paper's (table 3) where they take seconds here.

use crate::figures::chart::{Bar, Chart, Part};
use crate::harness::{Bench, reason, right, rounds};
use multigrain::{Error, Machine, MachineChoice, Options, Runtime};
use multigrain_console::Failure;
use multigrain_console::table;
use multigrain_console::write_whole;
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
/// Budget of the compositions with a disk: less than the arrays' sum of all applications but gravity and hmmer, whose arrays
/// are small for their work; these have [`MEMORY_SMALL_BYTES`].
const MEMORY_BYTES: u64 = 256 * MIB;
const MEMORY_SMALL_BYTES: u64 = MIB;
/// The same with `--quick`.
const MEMORY_QUICK_BYTES: u64 = 8 * MIB;

/// A stack of memories.
struct Composition {
    name: &'static str,
    /// Name of the shipped machine, or the detected one.
    machine: Option<&'static str>,
    disk: bool,
    /// Edges that move bytes.
    edges: usize,
}

/// From few memories to many.
const COMPOSITIONS: [Composition; 4] = [
    Composition { name: "shared", machine: None, disk: false, edges: 1 },
    Composition { name: "local", machine: Some("local"), disk: false, edges: 1 },
    Composition { name: "disk", machine: Some("disk"), disk: true, edges: 1 },
    Composition { name: "disk+local", machine: Some("disk+local"), disk: true, edges: 2 },
];

/// An application with its arguments in memory, on a disk, and small.
struct Work {
    name: &'static str,
    memory: &'static str,
    disk: &'static str,
    quick: &'static str,
}

const WORK: [Work; 7] = [
    Work { name: "saxpy", memory: "--n 16777216", disk: "--n 134217728", quick: "--n 4194304" },
    Work { name: "sgemv", memory: "--m 8192 --n 4096", disk: "--m 16384 --n 16384", quick: "--m 2048 --n 2048" },
    Work { name: "sgemm", memory: "--n 4096", disk: "--n 8192", quick: "--n 1024" },
    Work { name: "conv2d", memory: "--m 8192 --n 4096", disk: "--m 16384 --n 16384", quick: "--m 2048 --n 2048" },
    Work { name: "fft3d", memory: "--n 256", disk: "--n 512", quick: "--n 128" },
    Work { name: "gravity", memory: "--n 8192", disk: "--n 8192", quick: "--n 1024 --steps 10" },
    Work { name: "hmmer", memory: "--n 4000", disk: "--n 4000", quick: "--n 200" },
];

/// What one application did on one machine: its median run.
struct Measured {
    app: &'static str,
    composition: &'static str,
    edges: usize,
    arguments: &'static str,
    result: Result<Figures, String>,
}

#[derive(Clone)]
struct Figures {
    seconds: f64,
    gflops: f64,
    leaf_share: f64,
    /// Share of waiting, by edge from the root down; edges that are only views have none.
    wait_shares: Vec<(String, f64)>,
    overhead_share: f64,
}

fn figures(bench: &Bench<'_>, composition: &Composition, name: &str, arguments: &str) -> Result<Figures, Failure> {
    let app = multigrain_cli::front().typed(name, arguments)?;
    let machine = match composition.machine {
        None => MachineChoice::Detected,
        Some(name) => MachineChoice::Given(Box::new(Machine::shipped(name).map_err(Error::from)?)),
    };
    let budget = match bench.args.quick {
        true => MEMORY_QUICK_BYTES,
        false if ["gravity", "hmmer"].contains(&name) => MEMORY_SMALL_BYTES,
        false => MEMORY_BYTES,
    };
    let memory_bytes = composition.disk.then_some(bench.args.memory.unwrap_or(budget));
    let options = Options { machine, memory_bytes, threads: Some(bench.threads()), ..Options::default() };
    let runtime = Runtime::new(options)?;
    let app = app.prepare(&runtime)?;
    let mut turns = Vec::new();
    for turn in 0..bench.args.rounds {
        rounds::status(&format!("{} on {}: turn {} of {}", name, composition.name, turn + 1, bench.args.rounds));
        let outcome = runtime.run(&app.job, bench.settings())?;
        if turn == 0 {
            right(&app, &outcome)?;
        }
        let breakdown = &outcome.breakdown;
        let share = |seconds: f64| seconds / breakdown.worker_seconds().max(f64::MIN_POSITIVE);
        turns.push(Figures {
            seconds: outcome.seconds,
            gflops: outcome.flops / outcome.seconds / 1e9,
            leaf_share: share(breakdown.leaf_seconds),
            wait_shares: breakdown.wait_seconds.iter().map(|(name, s)| (name.clone(), share(*s))).collect(),
            overhead_share: share(breakdown.overhead_seconds),
        });
    }
    turns.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(turns.swap_remove(turns.len() / 2))
}

/// Measures, draws the figures, and gives text and JSON.
pub(super) fn levels(bench: &Bench<'_>) -> Result<(String, Value), Failure> {
    let folder = bench.figures();
    let folder = folder
        .canonicalize()
        .map_err(|e| Failure::Request(format!("--figures {}: {e}; name a directory that exists", folder.display())))?;
    // The shipped machines with a disk have their files in the working directory.
    std::env::set_current_dir(&bench.args.directory)
        .map_err(|e| Failure::Request(format!("--directory {}: {e}", bench.args.directory.display())))?;
    let mut all = Vec::new();
    for work in &WORK {
        for composition in &COMPOSITIONS {
            let arguments = match (bench.args.quick, composition.disk) {
                (true, _) => work.quick,
                (_, true) => work.disk,
                (_, false) => work.memory,
            };
            let result = match figures(bench, composition, work.name, arguments) {
                Err(Failure::Facade(Error::Interrupted { .. })) => {
                    return Err(Failure::Run("interrupted; nothing is left behind".into()));
                }
                Err(failure) => Err(reason(failure)),
                Ok(figures) => Ok(figures),
            };
            let (composition, edges) = (composition.name, composition.edges);
            all.push(Measured { app: work.name, composition, edges, arguments, result });
        }
    }
    let mut written = Vec::new();
    for (edges, name, title) in [
        (1, "levels-one-edge.svg", "Where the time goes on machines with one edge"),
        (2, "levels-two-edges.svg", "Where the time goes on machines with two edges"),
    ] {
        let path = folder.join(name);
        let svg = chart(&all, edges, title).svg();
        write_whole(&path, &svg)?;
        written.push(path.display().to_string());
    }
    let text = format!("{}\nfigures: {}\n", text(&all), written.join(", "));
    Ok((text, json!({ "levels": all.iter().map(object).collect::<Vec<_>>(), "figures": written })))
}

/// The bars of the compositions with so many edges.
fn chart(all: &[Measured], edges: usize, title: &str) -> Chart {
    let bars = all.iter().filter(|m| m.edges == edges).map(|m| {
        let parts = m.result.as_ref().map(|f| {
            let mut parts = vec![Part { kind: "leaf work".into(), share: f.leaf_share }];
            // From the leaves up, as the paper stacks them; who has views only never waits.
            for (name, share) in f.wait_shares.iter().rev().filter(|(_, share)| *share > 0.0) {
                parts.push(Part { kind: format!("waiting, {name}"), share: *share });
            }
            parts.push(Part { kind: "overhead".into(), share: f.overhead_share });
            (parts, f.gflops)
        });
        Bar { group: m.app.to_owned(), name: m.composition.to_owned(), figures: parts.map_err(String::clone) }
    });
    Chart { title: title.to_owned(), unit: "GFLOP/s", bars: bars.collect() }
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// For people: a line for each application and machine.
fn text(all: &[Measured]) -> String {
    let title = ["application", "machine", "GFLOP/s", "seconds", "leaf %", "wait %", "overhead %"];
    let mut lines = vec![title.map(str::to_owned).to_vec()];
    let mut notes = String::new();
    for m in all {
        let mut line = vec![m.app.to_owned(), m.composition.to_owned()];
        match &m.result {
            Ok(f) => {
                let waited = f.wait_shares.iter().map(|(_, share)| share).sum();
                line.extend([format!("{:.2}", f.gflops), format!("{:.3}", f.seconds)]);
                line.extend([f.leaf_share, waited, f.overhead_share].map(percent));
            }
            Err(why) => {
                line.push("failed".into());
                notes += &format!("{} on {}: {why}\n", m.app, m.composition);
            }
        }
        lines.push(line);
    }
    table::render(&lines, 0) + &notes
}

/// For programs.
fn object(m: &Measured) -> Value {
    let mut value = json!({ "app": m.app, "machine": m.composition, "arguments": m.arguments });
    match &m.result {
        Ok(f) => {
            let waits = f.wait_shares.iter().map(|(name, share)| (name.clone(), json!(share)));
            value["seconds"] = json!(f.seconds);
            value["gflops"] = json!(f.gflops);
            value["leaf_share"] = json!(f.leaf_share);
            value["wait_shares"] = Value::Object(waits.collect());
            value["overhead_share"] = json!(f.overhead_share);
        }
        Err(why) => value["failed"] = json!(why),
    }
    value
}
