//! `multigrain bench dispatch` alone: both ways and the peers' over lengths of jobs and numbers of workers, as tables and
//! figures.

use super::work::{BYTES, Work};
use super::{BOTH, team, turn};
use crate::figures::lines::{Lines, Scale, Series};
use crate::harness::Bench;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Figure, median};
use multigrain::jobs::{BATCH_NS, Batching, Dispatch, JobOptions, Team};
use multigrain_console::Failure;
use multigrain_console::table;
use multigrain_console::write_whole;
use serde_json::{Value, json};

/// Bytes of jobs: empty, and about 0.5 to 100 us.
const SIZES: [usize; 7] = [0, 2 << 10, 4 << 10, BYTES, 64 << 10, 192 << 10, 480 << 10];
const SIZES_QUICK: [usize; 2] = [0, BYTES];
/// Who executes jobs.
const EXECUTORS: [usize; 4] = [1, 2, 4, 8];

/// One way to hand out one kind of jobs to so many.
struct Cell {
    /// Of each turn: a job alone on one thread, in nanoseconds.
    alone_ns: Vec<f64>,
    bytes: usize,
    executors: usize,
    dispatch: Dispatch,
    host_works: bool,
    /// Of each turn: a job in the stream of all, in nanoseconds.
    each_ns: Vec<f64>,
    /// Median and 99th percentile of the time from source to sink, with one job in flight for each executor.
    latency_ns: (f64, f64),
}

/// The peers: name in the catalogue, its work, and what a column of it is called.
const PEERS: [(&str, &str, &str); 4] = [
    ("jobs", "channel", "crossbeam-channel"),
    ("jobs", "batches", "crossbeam-channel, batches"),
    ("jobs", "bridge", "rayon par_bridge"),
    ("tbb", "pipeline", "oneTBB parallel_pipeline"),
];

/// What one peer takes for one kind of jobs on so many threads, the one of the source among them.
struct PeerCell {
    bytes: usize,
    executors: usize,
    label: &'static str,
    /// Nanoseconds a job, or why there is no figure.
    each_ns: Result<f64, String>,
}

/// Measures, and gives text and JSON; figures go into the directory that was named.
pub(super) fn page(bench: &Bench<'_>) -> Result<(String, Value), Failure> {
    let sizes = if bench.args.quick { &SIZES_QUICK[..] } else { &SIZES[..] };
    let (mut cells, mut peers) = (Vec::new(), Vec::new());
    for &bytes in sizes {
        of_size(bench, bytes, &mut cells, &mut peers)?;
    }
    let mut written = Vec::new();
    if let Some(folder) = bench.args.figures.as_deref() {
        for (name, lines) in [("dispatch-figure-5.8.svg", figure(&cells)), ("dispatch-lengths.svg", lengths(&cells))] {
            let path = folder.join(name);
            write_whole(&path, &lines.svg())?;
            written.push(path.display().to_string());
        }
    }
    let mut text = text(&cells, &peers);
    if !written.is_empty() {
        text += &format!("\nfigures: {}\n", written.join(", "));
    }
    let objects = json!({
        "dispatch": cells.iter().map(object).collect::<Vec<_>>(),
        "peers": peers.iter().map(peer_object).collect::<Vec<_>>(),
        "figures": written,
    });
    Ok((text, objects))
}

/// All ways to hand out jobs of one size. In a turn each is measured once.
fn of_size(
    bench: &Bench<'_>,
    bytes: usize,
    cells: &mut Vec<Cell>,
    peer_cells: &mut Vec<PeerCell>,
) -> Result<(), Failure> {
    let work = Work::new(bytes);
    let length_ns = |jobs: u64| work.alone_seconds(jobs) * 1e9 / jobs as f64;
    let about_ns = length_ns(bench.size(2_000, 200));
    // Some 20 ms alone.
    let jobs = ((20e6 / about_ns.max(100.0)) as u64).clamp(1, bench.size(200_000, 500));
    // Where the host only hands out, it is one more thread than there are executors.
    let teams: Vec<(usize, bool, Team)> = EXECUTORS
        .into_iter()
        .flat_map(|executors| [(executors, true), (executors, false)])
        .map(|(executors, works)| Ok((executors, works, team(executors + usize::from(!works))?)))
        .collect::<Result<_, Failure>>()?;
    let ways: Vec<_> = teams.iter().flat_map(|team| BOTH.map(|dispatch| (team, dispatch))).collect();
    let first = cells.len();
    let mut turns: Vec<Turn<'_>> = vec![Box::new(|| Ok(length_ns(jobs)))];
    for &((executors, host_works, team), dispatch) in &ways {
        let options = JobOptions { dispatch, host_works: *host_works, ..JobOptions::default() };
        work.check(team, &options)?;
        let few = JobOptions { batch: Batching::Fixed(1), in_flight: *executors as u32, ..options };
        work.check(team, &few)?;
        let mut latencies_ns = work.latencies(team, &few, jobs.min(bench.size(5_000, 200)))?.latencies_ns;
        latencies_ns.sort_by(f64::total_cmp);
        let at = |share: usize| latencies_ns.get(latencies_ns.len() * share / 100).copied().unwrap_or(f64::NAN);
        turns.push(turn(team, &work, options, jobs));
        cells.push(Cell {
            alone_ns: Vec::new(),
            bytes,
            executors: *executors,
            dispatch,
            host_works: *host_works,
            each_ns: Vec::new(),
            latency_ns: (at(50), at(99)),
        });
    }
    // As long as ours are, by the same measurement.
    let batch = (BATCH_NS as f64 / about_ns.max(1.0)).clamp(1.0, 1024.0) as u64;
    let mut peers = Vec::new();
    for executors in EXECUTORS {
        for (name, kind, label) in PEERS {
            let count = if name == "tbb" { "calls" } else { "jobs" };
            let mut options = vec![
                ("work", kind.to_owned()),
                (count, jobs.to_string()),
                ("bytes", bytes.to_string()),
                ("threads", executors.to_string()),
            ];
            options.extend((kind == "batches").then(|| ("batch", batch.to_string())));
            peers.push(Contender::start(bench, name, label, &options));
            peer_cells.push(PeerCell { bytes, executors, label, each_ns: Err(String::new()) });
        }
    }
    let mut samples = alternate(bench, "dispatch", bench.args.rounds, &mut turns, &mut peers)?.into_iter();
    let alone_ns = samples.next().unwrap_or_default();
    for (cell, each_ns) in cells[first..].iter_mut().zip(samples) {
        (cell.each_ns, cell.alone_ns) = (each_ns, alone_ns.clone());
    }
    let first = peer_cells.len() - peers.len();
    for (cell, peer) in peer_cells[first..].iter_mut().zip(peers) {
        let figure: Figure = peer.into();
        cell.each_ns = figure.median().ok_or_else(|| figure.missing.unwrap_or_else(|| "no figure".into()));
    }
    Ok(())
}

impl Cell {
    fn each_ns(&self) -> f64 {
        median(&self.each_ns).unwrap_or(f64::NAN)
    }

    fn length_ns(&self) -> f64 {
        median(&self.alone_ns).unwrap_or(f64::NAN)
    }

    fn way(&self) -> String {
        format!("{}, host {}", self.dispatch, if self.host_works { "works" } else { "only hands out" })
    }
}

const WAYS: [(Dispatch, bool); 4] =
    [(Dispatch::Queue, false), (Dispatch::Mailbox, false), (Dispatch::Queue, true), (Dispatch::Mailbox, true)];

/// The lines of the four ways: what each cell that counts is at, and what it shows.
fn series(cells: &[Cell], counts: impl Fn(&Cell) -> bool, point: impl Fn(&Cell) -> (f64, f64)) -> Vec<Series> {
    let of = |(dispatch, works): (Dispatch, bool)| {
        let own = || cells.iter().filter(move |cell| cell.dispatch == dispatch && cell.host_works == works);
        Series {
            name: own().next().map(Cell::way).unwrap_or_default(),
            points: own().filter(|cell| counts(cell)).map(&point).collect(),
            marks: false,
        }
    };
    WAYS.map(of).into()
}

fn figure(cells: &[Cell]) -> Lines {
    Lines {
        title: "Figure 5.8 for this computer: jobs of 16 KiB".into(),
        x: "who executes jobs".into(),
        y: "GB/s".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: series(
            cells,
            |cell| cell.bytes == BYTES,
            |cell| (cell.executors as f64, BYTES as f64 / cell.each_ns()),
        ),
    }
}

fn lengths(cells: &[Cell]) -> Lines {
    Lines {
        title: "What is lost to handing out, on 2 workers".into(),
        x: "length of a job, us".into(),
        y: "time of one over its share of the length".into(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        series: series(
            cells,
            |cell| cell.executors == 2 && cell.bytes > 0,
            |cell| (cell.length_ns() / 1e3, 2.0 * cell.each_ns() / cell.length_ns()),
        ),
    }
}

/// For people: a line for each length and number of executors.
fn text(cells: &[Cell], peers: &[PeerCell]) -> String {
    let mut lines = vec![vec!["job us".to_owned(), "executors".to_owned()]];
    lines[0].extend(WAYS.iter().flat_map(|(dispatch, works)| {
        let host = if *works { "host works" } else { "host idle" };
        [format!("{dispatch}, {host}: ns a job"), "latency us".to_owned()]
    }));
    lines[0].extend(PEERS.map(|(_, _, label)| label.to_owned()));
    let mut keys: Vec<(usize, usize)> = cells.iter().map(|cell| (cell.bytes, cell.executors)).collect();
    keys.dedup();
    keys.sort_unstable();
    keys.dedup();
    for (bytes, executors) in keys {
        let own = || cells.iter().filter(move |cell| (cell.bytes, cell.executors) == (bytes, executors));
        let Some(first) = own().next() else { continue };
        let mut line = vec![format!("{:.2}", first.length_ns() / 1e3), executors.to_string()];
        for (dispatch, works) in WAYS {
            let cell = own().find(|cell| (cell.dispatch, cell.host_works) == (dispatch, works));
            line.push(cell.map_or_else(String::new, |cell| format!("{:.0}", cell.each_ns())));
            line.push(cell.map_or_else(String::new, |cell| format!("{:.1}", cell.latency_ns.0 / 1e3)));
        }
        let of_it = peers.iter().filter(|peer| (peer.bytes, peer.executors) == (bytes, executors));
        line.extend(of_it.map(|peer| peer.each_ns.as_ref().map_or_else(|_| "-".to_owned(), |ns| format!("{ns:.0}"))));
        lines.push(line);
    }
    let mut text = format!(
        "a job in the stream of all, and from source to sink with as many in flight as executors; a host that is idle is a \
         thread more, the peers' hosts work. Times of jobs are medians of turns, latencies are those of one run. oneTBB gives \
         results in order, and its jobs are another compiler's: compare its columns with its own of one executor\n{}",
        table::render(&lines, 0)
    );
    let mut missing: Vec<String> = peers
        .iter()
        .filter_map(|peer| peer.each_ns.as_ref().err().map(|why| format!("{}: {why}\n", peer.label)))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    missing.iter().for_each(|line| text += line);
    text
}

/// For programs.
fn object(cell: &Cell) -> Value {
    json!({
        "dispatch": cell.dispatch.to_string(),
        "host_works": cell.host_works,
        "executors": cell.executors,
        "bytes": cell.bytes,
        "job_ns": cell.length_ns(),
        "ns": cell.each_ns(),
        "samples_ns": cell.each_ns,
        "latency_ns": cell.latency_ns.0,
        "latency_p99_ns": cell.latency_ns.1,
    })
}

fn peer_object(cell: &PeerCell) -> Value {
    let (ns, missing) = match &cell.each_ns {
        Ok(ns) => (Some(ns), None),
        Err(why) => (None, Some(why)),
    };
    json!({ "peer": cell.label, "executors": cell.executors, "bytes": cell.bytes, "ns": ns, "missing": missing })
}
