//! Collective operations among threads: every algorithm at every group size, and the best of them beside peers.

use crate::entry::Entry;
use crate::figures::svg;
use crate::harness::Bench;
use crate::harness::rounds::{Contender, Turn, alternate, status};
use crate::harness::row::{Bar, Figure, Row, Unit, median};
use multigrain_console::Failure;
use multigrain_console::write_whole;
use multigrain_schedule::choice::{Sample, Table};
use multigrain_schedule::{Algorithm, Kind, Topology};
use multigrain_team::collective::{Collective, CollectiveOptions, Sum};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[Entry::rows(
    "collectives",
    "Barrier, broadcast, reduce, allreduce among threads; std, hurdles, libgomp, LLVM OpenMP, Open MPI",
    collectives,
)];

/// Operations between two looks at the clock.
const BATCH: u32 = 32;

/// The picture of what is fastest.
const PICTURE: &str = "collectives.svg";
/// Algorithms that a line names.
const SHOWN: usize = 3;

/// The peer that is part of this program.
const STD: &str = "std::sync::Barrier";

/// Nanoseconds an operation: the median of batches, and the 99th percentile.
#[derive(Clone, Copy)]
struct Latency {
    median_ns: f64,
    p99_ns: f64,
}

/// Runs `operation` on `n` threads at once, in batches after some that do not count.
fn timed(n: u32, batches: u32, operation: impl Fn(u32, u32) -> Result<(), Failure> + Sync) -> Result<Latency, Failure> {
    let warm = (batches / 8).max(1);
    let participant = |rank: u32| {
        let mut samples = Vec::with_capacity(batches as usize);
        for batch in 0..warm + batches {
            let begin = Instant::now();
            for call in 0..BATCH {
                operation(rank, batch * BATCH + call)?;
            }
            if batch >= warm {
                samples.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH));
            }
        }
        Ok(samples)
    };
    let mut samples = std::thread::scope(|scope| {
        let participant = &participant;
        let others: Vec<_> = (1..n).map(|rank| scope.spawn(move || participant(rank))).collect();
        let own = participant(0);
        let others: Result<Vec<Vec<f64>>, Failure> = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|_| Err(Failure::Run("a participant panicked".into()))))
            .collect();
        others.and(own)
    })?;
    samples.sort_by(f64::total_cmp);
    let at = |share: f64| samples[((samples.len() as f64 * share) as usize).min(samples.len() - 1)];
    Ok(Latency { median_ns: at(0.5), p99_ns: at(0.99) })
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(error.to_string())
}

/// One algorithm in a group of `n`, on `bytes` of floats that are written anew before each operation.
fn own(kind: Kind, algorithm: Algorithm, n: u32, bytes: u64, batches: u32) -> Result<Latency, Failure> {
    let topology = Topology::flat(n).map_err(failed)?;
    let table = Table::constant(&[(kind, algorithm)]);
    let group = Collective::new(CollectiveOptions { table, ..CollectiveOptions::new(topology) }).map_err(failed)?;
    if kind == Kind::Barrier {
        return timed(n, batches, |rank, _| group.barrier(rank).map_err(failed));
    }
    let buffers: Vec<std::sync::Mutex<Vec<f32>>> =
        (0..n).map(|_| std::sync::Mutex::new(vec![0.0; bytes as usize / size_of::<f32>()])).collect();
    timed(n, batches, |rank, call| {
        // Nobody else takes it; a lock that is free costs some nanoseconds, which are counted as ours.
        let mut data = buffers[rank as usize].lock().map_err(failed)?;
        for (i, x) in data.iter_mut().enumerate() {
            *x = (call as usize + i) as f32;
        }
        match kind {
            Kind::Reduce => group.reduce(rank, 0, &mut data, &Sum),
            Kind::Allreduce => group.allreduce(rank, &mut data, &Sum),
            Kind::Broadcast | Kind::Barrier => group.broadcast(rank, 0, &mut data),
        }
        .map_err(failed)
    })
}

/// Rows of the group that the peers are measured with, then of all sizes.
pub(crate) fn collectives(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (kind, bytes) in [(Kind::Barrier, 0), (Kind::Broadcast, 128), (Kind::Reduce, 128), (Kind::Allreduce, 128)] {
        rows.push(beside_peers(bench, kind, bytes)?);
    }
    let (samples, survey) = survey(bench)?;
    for row in &mut rows {
        let kind = row.name.split('-').next().unwrap_or_default().to_owned();
        row.notes.push(spread(&kind, &samples));
    }
    if bench.args.figures.is_some() || bench.is_alone("collectives") {
        let path = bench.args.figures.as_deref().unwrap_or(Path::new(".")).join(PICTURE);
        write_whole(&path, &picture(&samples))?;
        let shown = path.display();
        rows.iter_mut().take(1).for_each(|row| row.notes.push(format!("the fastest of each size: {shown}")));
    }
    rows.extend(survey);
    if let Some(last) = rows.last_mut() {
        last.notes.push(format!("choice, from these measurements:\n{}", Table::measured(&samples)));
    }
    Ok(rows)
}

/// Whether a row is one of the survey: an operation, a size and bytes.
pub(crate) fn is_of_survey(row: &Row) -> bool {
    row.peers.is_empty()
        && Kind::ALL.iter().any(|kind| row.name.starts_with(&format!("{kind}-")))
        && row.name.matches('-').count() == 2
}

/// For people: a line for each operation, and where the picture is.
pub(crate) fn summary(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| !is_of_survey(row)) {
        let Some(ours) = row.median() else {
            let _ = writeln!(text, "{}: {}", row.name, row.failed.as_deref().unwrap_or("no figure"));
            continue;
        };
        let best = row.peers.iter().filter_map(|peer| Some((peer.median()?, &peer.name)));
        let beside = match best.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((theirs, name)) => format!("{:.2} times as fast as {name}", theirs / ours),
            None => "no peer is there".to_owned(),
        };
        let spread = row.notes.get(1).map_or("", String::as_str);
        let _ = writeln!(text, "{}: {ours:.0} ns, {beside}; {spread}", row.name);
    }
    let picture = rows.first().and_then(|row| row.notes.get(2)).map_or("", String::as_str);
    let _ = writeln!(text, "{picture}; --verbose shows all");
    text
}

/// The fastest algorithm of every group that was measured: bytes, size, algorithm.
fn fastest(kind: &str, samples: &[Sample]) -> Vec<(u64, u32, String)> {
    let mut best: Vec<&Sample> = Vec::new();
    for sample in samples.iter().filter(|sample| sample.kind.to_string() == kind) {
        match best.iter_mut().find(|other| (other.bytes, other.size) == (sample.bytes, sample.size)) {
            Some(other) if sample.latency_ns < other.latency_ns => *other = sample,
            Some(_) => {}
            None => best.push(sample),
        }
    }
    best.into_iter().map(|s| (s.bytes, s.size, s.algorithm.name(s.kind))).collect()
}

/// How often which algorithm is the fastest, the most frequent first.
fn spread(kind: &str, samples: &[Sample]) -> String {
    let fastest = fastest(kind, samples);
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for (_, _, name) in &fastest {
        match counts.iter_mut().find(|(other, _)| other == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = counts.iter().take(SHOWN).map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>();
    format!("fastest of {} groups: {}", fastest.len(), shown.join(", "))
}

/// The fastest algorithm of every group as colours: a row for each operation and size of messages, a column for each size
/// of the group.
fn picture(samples: &[Sample]) -> String {
    let (left, top, cell) = (150, 50, 18);
    // An operation, bytes of its messages, and the fastest algorithm for each size of the group.
    type Row = (String, u64, Vec<(u32, String)>);
    let rows: Vec<Row> = Kind::ALL
        .iter()
        .flat_map(|kind| {
            let all = fastest(&kind.to_string(), samples);
            let mut bytes: Vec<u64> = all.iter().map(|(bytes, ..)| *bytes).collect();
            bytes.sort_unstable();
            bytes.dedup();
            let of = |bytes: u64| all.iter().filter(move |a| a.0 == bytes).map(|a| (a.1, a.2.clone())).collect();
            bytes.into_iter().map(|bytes| (kind.to_string(), bytes, of(bytes))).collect::<Vec<_>>()
        })
        .collect();
    let most = samples.iter().map(|sample| sample.size).max().unwrap_or(2) as usize;
    // Names without their operation: colours are those of algorithms.
    let mut names: Vec<&str> = rows.iter().flat_map(|row| row.2.iter().map(|(_, name)| name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let (width, height) = (left + cell * most + 20, top + cell * (rows.len() + names.len()) + 40);
    let mut text = svg::opened(width, height);
    text += &svg::label(left, 20, "start", 14, "The fastest collective algorithm, by operation and size of the group");
    for size in (2..=most).step_by(2) {
        text += &svg::label(left + cell * (size - 2) + cell / 2, top - 6, "middle", 10, &size.to_string());
    }
    let colour =
        |name: &str| svg::COLOURS[names.iter().position(|other| *other == name).unwrap_or(0) % svg::COLOURS.len()];
    for (i, (kind, bytes, cells)) in rows.iter().enumerate() {
        let y = top + cell * i;
        let label = if *bytes == 0 { kind.clone() } else { format!("{kind}, {bytes} bytes") };
        text += &svg::label(left - 8, y + cell - 5, "end", 12, &label);
        for (size, name) in cells {
            let x = left + cell * (*size as usize - 2);
            let _ = writeln!(
                text,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>",
                cell - 1,
                cell - 1,
                colour(name),
                svg::escaped(&format!("{label}, {size} threads: {name}"))
            );
        }
    }
    for (i, name) in names.iter().enumerate() {
        let y = top + cell * (rows.len() + i) + 16;
        let _ = writeln!(text, "<rect x=\"{left}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{}\"/>", colour(name));
        text += &svg::label(left + 20, y + 11, "start", 12, name);
    }
    text + "</svg>\n"
}

/// The fastest algorithm for the bench's threads, in turns with the peers.
fn beside_peers(bench: &Bench<'_>, kind: Kind, bytes: u64) -> Result<Row, Failure> {
    let n = bench.args.threads;
    let batches = bench.size(600, 4) as u32;
    let mut best: Option<(f64, Algorithm)> = None;
    for algorithm in Algorithm::all(kind, &[2]) {
        let latency = own(kind, algorithm, n, bytes, batches / 4)?;
        if best.is_none_or(|(ns, _)| latency.median_ns < ns) {
            best = Some((latency.median_ns, algorithm));
        }
    }
    let Some((_, algorithm)) = best else { return Err(Failure::Run(format!("no algorithm for a {kind}"))) };
    let mut tails = Vec::new();
    let mut turns: Vec<Turn<'_>> = vec![Box::new(|| {
        let latency = own(kind, algorithm, n, bytes, batches)?;
        tails.push(latency.p99_ns);
        Ok(latency.median_ns)
    })];
    if kind == Kind::Barrier {
        turns.push(Box::new(|| Ok(std_barrier(n, batches / 8)?.median_ns)));
    }
    let calls = (batches * BATCH).to_string();
    let options = |work: &str| {
        [("work", work.to_owned()), ("calls", calls.clone()), ("elements", (bytes / 4).max(1).to_string())]
    };
    let (work, openmp) = match kind {
        Kind::Barrier => ("barrier", true),
        Kind::Broadcast => ("bcast", false),
        Kind::Reduce => ("reduce", true),
        Kind::Allreduce => ("allreduce", false),
    };
    let mut peers = vec![Contender::start(bench, "openmpi", "Open MPI", &options(work))];
    if openmp {
        peers.push(Contender::start(bench, "libgomp", "libgomp", &options(work)));
        peers.push(Contender::start(bench, "libomp", "LLVM OpenMP", &options(work)));
    }
    if kind == Kind::Barrier {
        peers.push(Contender::start(bench, "hurdles", "hurdles", &options(work)));
    }
    let mut samples = alternate(bench, "collectives", bench.args.rounds, &mut turns, &mut peers)?.into_iter();
    drop(turns);
    let ours = samples.next().unwrap_or_default();
    let mut figures: Vec<Figure> = peers.into_iter().map(Figure::from).collect();
    if let Some(samples) = samples.next() {
        figures.push(Figure { name: STD.to_owned(), version: None, samples, missing: None });
    }
    Ok(Row::new(
        format!("{kind}-{n}"),
        Unit::Nanoseconds,
        ours,
        figures,
        if matches!(kind, Kind::Barrier | Kind::Reduce) { Bar::RatioAtLeast(1.0) } else { Bar::None },
        vec![format!(
            "{} of {n} threads, {bytes} bytes, by {}: median of batches of {BATCH}, 99th percentile {:.0} ns",
            kind,
            algorithm.name(kind),
            median(&tails).unwrap_or(f64::NAN),
        )],
    ))
}

fn std_barrier(n: u32, batches: u32) -> Result<Latency, Failure> {
    let barrier = std::sync::Barrier::new(n as usize);
    timed(n, batches.max(1), |_, _| {
        barrier.wait();
        Ok(())
    })
}

/// Every algorithm at every size from 2 to 32, and what was measured. Without peers: most of these groups have more
/// threads than this computer has processors.
fn survey(bench: &Bench<'_>) -> Result<(Vec<Sample>, Vec<Row>), Failure> {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let sizes_end = bench.size(32, 3) as u32;
    let sizes_bytes: &[u64] = if bench.args.quick { &[128] } else { &[128, 16 << 10] };
    let (mut samples, mut rows) = (Vec::new(), Vec::new());
    for kind in Kind::ALL {
        for &bytes in if kind == Kind::Barrier { &[0] } else { sizes_bytes } {
            for n in 2..=sizes_end {
                let batches = match n {
                    _ if bench.args.quick => 2,
                    n if n <= processors => 200,
                    _ => 6,
                };
                let mut figures: Vec<(Latency, Algorithm)> = Vec::new();
                for algorithm in Algorithm::all(kind, &[2, 4]) {
                    // On a flat group the blade variants have the same steps.
                    if algorithm.blade {
                        continue;
                    }
                    status(&format!("{} of {n}, {bytes} bytes", algorithm.name(kind)));
                    if bench.abort.is_raised() {
                        return Err(multigrain::Error::Interrupted { resume: false }.into());
                    }
                    let latency = own(kind, algorithm, n, bytes, batches)?;
                    let latency_ns = latency.median_ns;
                    samples.push(Sample { kind, algorithm, size: n, bytes, latency_ns });
                    figures.push((latency, algorithm));
                }
                figures.sort_by(|a, b| a.0.median_ns.total_cmp(&b.0.median_ns));
                let text = |(latency, algorithm): &(Latency, Algorithm)| {
                    format!("{} {:.0} ({:.0})", algorithm.name(kind), latency.median_ns, latency.p99_ns)
                };
                let crowded = if n > processors { ", more threads than processors" } else { "" };
                rows.push(Row::new(
                    format!("{kind}-{n}-{bytes}"),
                    Unit::Nanoseconds,
                    figures.first().map(|(latency, _)| latency.median_ns).into_iter().collect(),
                    None::<Figure>,
                    Bar::None,
                    vec![format!(
                        "median and 99th percentile in ns{crowded}: {}",
                        figures.iter().map(text).collect::<Vec<_>>().join(", ")
                    )],
                ));
            }
        }
    }
    status("");
    Ok((samples, rows))
}
