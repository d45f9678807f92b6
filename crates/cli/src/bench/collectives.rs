//! Collective operations among threads: every algorithm at every group size, and the best of them beside peers.

use super::rounds::{Contender, Turn, alternate, status};
use super::row::{Bar, Figure, Row, Unit, median};
use super::{Bench, Name};
use crate::failure::Failure;
use multigrain_schedule::choice::{Sample, Table};
use multigrain_schedule::{Algorithm, Kind, Topology};
use multigrain_team::collective::{Collective, CollectiveOptions, Sum};
use std::time::Instant;

/// Operations between two looks at the clock.
const BATCH: u32 = 32;

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
    rows.extend(survey);
    if let Some(last) = rows.last_mut() {
        last.notes.push(format!("choice, from these measurements:\n{}", Table::measured(&samples)));
    }
    Ok(rows)
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
    let mut samples = alternate(bench, Name::Collectives, bench.args.rounds, &mut turns, &mut peers)?.into_iter();
    drop(turns);
    let ours = samples.next().unwrap_or_default();
    let mut figures: Vec<Figure> = peers.into_iter().map(Contender::figure).collect();
    if let Some(samples) = samples.next() {
        figures.push(Figure { name: STD.to_owned(), version: None, samples, missing: None });
    }
    Ok(Row {
        name: format!("{kind}-{n}"),
        unit: Unit::Nanoseconds,
        ours,
        peers: figures,
        bar: if matches!(kind, Kind::Barrier | Kind::Reduce) { Bar::RatioAtLeast(1.0) } else { Bar::None },
        notes: vec![format!(
            "{} of {n} threads, {bytes} bytes, by {}: median of batches of {BATCH}, 99th percentile {:.0} ns",
            kind,
            algorithm.name(kind),
            median(&tails).unwrap_or(f64::NAN),
        )],
        failed: None,
    })
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
                rows.push(Row {
                    name: format!("{kind}-{n}-{bytes}"),
                    unit: Unit::Nanoseconds,
                    ours: figures.first().map(|(latency, _)| latency.median_ns).into_iter().collect(),
                    peers: Vec::new(),
                    bar: Bar::None,
                    notes: vec![format!(
                        "median and 99th percentile in ns{crowded}: {}",
                        figures.iter().map(text).collect::<Vec<_>>().join(", ")
                    )],
                    failed: None,
                });
            }
        }
    }
    status("");
    Ok((samples, rows))
}
