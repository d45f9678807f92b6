//! Reports for people: short, aligned, the most important first.

use multigrain::app::{AppJob, Checked};
use multigrain::ranks::OfRank;
use multigrain::rooms::machine::{MemoryId, approximate_bytes, approximate_time};
use multigrain::rooms::plan::check::CheckReport;
use multigrain::{Breakdown, EdgeTraffic, Job, Machine, Planned, Wire, main_memory};
use multigrain_console::table;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What the reports need of a run, measured or simulated.
pub(crate) struct Finished<'a> {
    /// What was run.
    pub(crate) app: &'a AppJob,
    /// The machine, from the memory down in which the arrays lay.
    pub(crate) machine: &'a Machine,
    /// Seconds from the first step to the last.
    pub(crate) seconds: f64,
    /// Where the time went.
    pub(crate) breakdown: &'a Breakdown,
    /// Bytes over every edge.
    pub(crate) edges: &'a [EdgeTraffic],
    /// Floating-point operations.
    pub(crate) flops: f64,
    /// How files were reached; `simulated` if there were none.
    pub(crate) io: &'a str,
    /// Whether an interrupted run was continued.
    pub(crate) resumed: bool,
    /// Whether times are predicted.
    pub(crate) simulated: bool,
    /// Peak resident size of the process when the run ended, in bytes; for a simulation what it would be of the arrays
    /// and the plan.
    pub(crate) peak_rss_bytes: u64,
    /// What the run was on each rank, where there were several.
    pub(crate) ranks: &'a [OfRank],
    /// What the application did with the results, if anything.
    pub(crate) after: Option<Afterwards>,
    /// The comparison with the reference, if it was asked for.
    pub(crate) checked: Option<Checked>,
    /// Whether an interrupted run was to be continued.
    pub(crate) resume_asked: bool,
}

/// Work on the results of a run, such as drawing a picture: no part of the program, so of neither its time nor its plan.
pub(crate) struct Afterwards {
    /// How long it took, in seconds.
    pub(crate) seconds: f64,
    /// Peak resident size of the process when it ended, in bytes.
    pub(crate) peak_rss_bytes: u64,
    /// What was found, in words.
    pub(crate) found: Option<String>,
}

/// A plan with what the reports need besides.
pub(crate) struct Prepared<'a> {
    /// What was planned.
    pub(crate) app: &'a AppJob,
    /// Its plan.
    pub(crate) planned: &'a Planned,
    /// What the checker looked at, if it was asked.
    pub(crate) verified: Option<CheckReport>,
}

/// The ranks whose workers were the shortest and the longest time in leaves, all workers together. They begin and end at the same time, so this tells
/// who waited for whom.
pub(crate) fn fastest_and_slowest(ranks: &[OfRank]) -> Option<[usize; 2]> {
    let by_work = |&a: &usize, &b: &usize| ranks[a].leaf_seconds.total_cmp(&ranks[b].leaf_seconds);
    Some([(0..ranks.len()).min_by(by_work)?, (0..ranks.len()).max_by(by_work)?])
}

/// How many ranks a run had, and by how much their work differed.
fn ranks(ranks: &[OfRank]) -> String {
    let Some([least, most]) = fastest_and_slowest(ranks) else { return String::new() };
    let [little, much] = [least, most].map(|rank| &ranks[rank]);
    let nodes: BTreeSet<&str> = ranks.iter().map(|rank| rank.node.as_str()).collect();
    let peak = ranks.iter().map(|rank| rank.peak_bytes).max().unwrap_or(0);
    format!(
        "{:<9}{} on {} {}; leaf work from {} (rank {least}) to {} (rank {most}), at most {} at the peak of memory, {} from rank to rank; below, \
         times are those of rank 0, bytes those of all\n",
        "ranks",
        ranks.len(),
        nodes.len(),
        if nodes.len() == 1 { "node" } else { "nodes" },
        seconds(little.leaf_seconds),
        seconds(much.leaf_seconds),
        approximate_bytes(peak),
        approximate_bytes(ranks.iter().map(|rank| rank.moved_bytes).sum())
    )
}

/// What a run was.
pub(crate) fn run(finished: &Finished<'_>) -> String {
    let Finished { app, machine, edges: traffic, .. } = finished;
    let mut text = head(&app.job, &app.shape, machine);
    let _ = writeln!(text, "{:<9}{}", "time", rates(&app.job, finished));
    if finished.resumed {
        let _ = writeln!(
            text,
            "{:<9}an interrupted run was continued; time, rates and bytes are of the rest, the bound is of the whole",
            "resumed"
        );
    } else if finished.resume_asked {
        let _ = writeln!(text, "{:<9}nothing was there to be continued; the run started from the beginning", "resumed");
    }
    let budget = main_memory(machine).capacity_bytes;
    let _ = writeln!(
        text,
        "{:<9}{} at the peak, the budget is {}",
        "memory",
        approximate_bytes(finished.peak_rss_bytes),
        approximate_bytes(budget)
    );
    text += &ranks(finished.ranks);
    if let Some(after) = &finished.after {
        if let Some(found) = &after.found {
            let _ = writeln!(text, "{:<9}{found}", "found");
        }
        let _ = writeln!(
            text,
            "{:<9}{} for work on the results, not in the times below; {} at the peak of memory then",
            "after",
            seconds(after.seconds),
            approximate_bytes(after.peak_rss_bytes)
        );
    }
    if disk_edge(traffic).is_some() && !finished.simulated {
        let _ = writeln!(text, "{:<9}{}", "files", finished.io);
    }
    if let Some(checked) = &finished.checked {
        let verdict = match &checked.uncovered {
            _ if !checked.holds() => "WRONG",
            None => "right",
            Some(_) => "UNDECIDED",
        };
        let _ = writeln!(
            text,
            "{:<9}{verdict}: largest error {:.2e} of {:.2e} allowed, {} elements",
            "check", checked.max_relative_error, checked.tolerance, checked.elements
        );
        let _ = writeln!(text, "{:<9}{}", "", checked.covered);
        if let Some(uncovered) = &checked.uncovered {
            let _ = writeln!(text, "{:<9}{uncovered}", "");
        }
        for (name, value) in &checked.figures {
            let _ = writeln!(text, "{:<9}{name} {value:.2e}", "");
        }
    }
    text += if finished.simulated { "\nwhere the time would go\n" } else { "\nwhere the time went\n" };
    text += &breakdown(finished.breakdown);
    text.push('\n');
    text += &edges(traffic, !finished.resumed);
    text
}

/// What a run would be.
pub(crate) fn plan(prepared: &Prepared<'_>) -> String {
    let Prepared { app, planned, verified } = prepared;
    let plan = &planned.plan;
    let mut text = head(&app.job, &app.shape, &planned.machine);
    let _ = writeln!(text, "{:<9}{} predicted", "time", seconds(plan.seconds));
    if let Some(why) = &planned.refused {
        let _ = writeln!(text, "{:<9}would be refused: {why}", "a run");
    }
    text.push('\n');
    text += &planned.machine.render();
    text.push('\n');
    text += &plan.to_string();
    text.push('\n');
    text += &edges(&planned.edges, true);
    if let Some(wire) = &planned.wire {
        text.push('\n');
        text += &from_rank_to_rank(wire);
    }
    if let Some(report) = verified {
        text.push('\n');
        text += &proof(report);
    }
    text
}

/// What ranks get from each other and give each other, beside what the busiest needs and must need.
fn from_rank_to_rank(wire: &Wire) -> String {
    let most = |bytes: &[u64]| bytes.iter().copied().max().unwrap_or(0);
    let (moved, needed) = (most(&wire.moved_bytes), most(&wire.needed_bytes));
    let mut text = format!(
        "from rank to rank {}: at most {} by one rank, of {} that it fetches and stores",
        approximate_bytes(wire.moved_bytes.iter().sum()),
        approximate_bytes(moved),
        approximate_bytes(needed)
    );
    if let Some(bound) = wire.lower_bound_bytes.filter(|&bound| bound > 0) {
        let of = |bytes: u64| bytes as f64 / bound as f64;
        let _ = write!(
            text,
            "; some rank must fetch and store {} (moved / bound {:.3}, fetched and stored / bound {:.3})",
            approximate_bytes(bound),
            of(moved),
            of(needed)
        );
    }
    text + "\n"
}

fn head(job: &Job, shape: &[(&'static str, u64)], machine: &Machine) -> String {
    let sizes: Vec<String> = shape.iter().map(|(name, size)| format!("{name} = {size}")).collect();
    let workers = machine.workers();
    let plural = if workers == 1 { "" } else { "s" };
    let mut text = format!("{:<9}{}\n", job.app, sizes.join(", "));
    let _ = writeln!(
        text,
        "{:<9}{}: {}; {workers} thread{plural}",
        "machine",
        machine.name,
        below(machine, machine.root())
    );
    text
}

/// A memory and what is below it: `dram > core x 2`, `dram > (core | device)`.
fn below(machine: &Machine, id: MemoryId) -> String {
    let memory = machine.memory(id);
    let count = if memory.count > 1 { format!(" x {}", memory.count) } else { String::new() };
    let kinds: Vec<String> = machine.children(id).map(|child| below(machine, child)).collect();
    let kinds = match &kinds[..] {
        [] => String::new(),
        [one] => format!(" > {one}"),
        several => format!(" > ({})", several.join(" | ")),
    };
    format!("{}{count}{kinds}", memory.name)
}

/// Seconds, and what was done in each: arithmetic, and the bytes that went over the edge of a disk or, where there is
/// none, the bytes of the blocks that the calls of the program name.
fn rates(job: &Job, finished: &Finished<'_>) -> String {
    let mut text = seconds(finished.seconds);
    if finished.simulated {
        text += " predicted";
    }
    let each_second = |amount: f64| amount / finished.seconds.max(f64::MIN_POSITIVE) / 1e9;
    if finished.flops > 0.0 {
        let _ = write!(text, ", {:.2} GFLOP/s", each_second(finished.flops));
    }
    match disk_edge(finished.edges) {
        Some(edge) => {
            let moved = edge.traffic.bytes_down + edge.traffic.bytes_up;
            let _ = write!(text, ", {:.2} GB/s over {}", each_second(moved as f64), edge.name);
        }
        None => {
            let calls = job.program().calls().iter();
            let bytes: f64 = calls.map(|c| job.program().tasks()[c.task as usize].work(&c.shape()).bytes).sum();
            let _ = write!(text, ", {:.2} GB/s of what its calls read and write", each_second(bytes));
        }
    }
    text
}

fn disk_edge(edges: &[EdgeTraffic]) -> Option<&EdgeTraffic> {
    edges.iter().find(|e| e.driver.files)
}

/// A duration with three significant digits, so that neither a microsecond nor an hour is unreadable.
fn seconds(seconds: f64) -> String {
    approximate_time(seconds * 1e9)
}

fn breakdown(breakdown: &Breakdown) -> String {
    let all = breakdown.worker_seconds().max(f64::MIN_POSITIVE);
    let row = |name: String, part: f64| vec![name, format!("{:.1} %", 100.0 * part / all), seconds(part)];
    let mut rows = vec![row("leaf work".into(), breakdown.leaf_seconds)];
    // An edge whose memories share one address space moves nothing, so nobody can have waited for it.
    let waits = breakdown.wait_seconds.iter().filter(|(_, waited)| *waited > 0.0);
    rows.extend(waits.map(|(edge, waited)| row(format!("wait on {edge}"), *waited)));
    rows.push(row("overhead".into(), breakdown.overhead_seconds));
    table::render(&rows, 2)
}

/// Of a part of what the bound is of, there is no ratio.
fn edges(edges: &[EdgeTraffic], is_whole: bool) -> String {
    let mut title = vec!["edge", "down", "up", "bound", "moved / bound", "transfers"];
    // Few machines have children that reach each other, and few plans use it.
    let across = edges.iter().any(|edge| edge.traffic.bytes_across > 0);
    title.extend(across.then_some("between siblings"));
    let mut rows = vec![title.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for edge in edges {
        if edge.driver.views {
            rows.push(vec![edge.name.clone(), "views".into()]);
            continue;
        }
        let moved = edge.traffic.bytes_down + edge.traffic.bytes_up;
        let (bound, ratio) = match edge.lower_bound_bytes {
            0 => ("-".to_owned(), "-".to_owned()),
            bound if is_whole => (approximate_bytes(bound), format!("{:.3}", moved as f64 / bound as f64)),
            bound => (approximate_bytes(bound), "-".to_owned()),
        };
        rows.push(vec![
            edge.name.clone(),
            approximate_bytes(edge.traffic.bytes_down),
            approximate_bytes(edge.traffic.bytes_up),
            bound,
            ratio,
            edge.traffic.transfers.to_string(),
        ]);
        if let (true, Some(row)) = (across, rows.last_mut()) {
            row.push(approximate_bytes(edge.traffic.bytes_across));
        }
    }
    table::render(&rows, 0)
}

fn proof(report: &CheckReport) -> String {
    let mut text = "verified: the plan does what its calls mean\n".to_owned();
    for e in &report.edges {
        let _ = writeln!(
            text,
            "  {} - {}: {} plans, {} calls, {} steps, {} transfers, {} parts of arrays",
            e.parent, e.child, e.plans, e.calls, e.ops, e.transfers, e.cells
        );
    }
    text
}
