//! What strands cost (a switch, an off-load, a loop on several workers) beside peers, and what the policies make of
//! searches in miniature.

use crate::entry::Entry;
use crate::harness::Bench;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Bar, Figure, Row, Unit};
use multigrain::strands::{Hosts, Policy, Scheduler, SchedulerOptions, Strand, TaskKind};
use multigrain_console::Failure;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[Entry::rows(
    "strands",
    "Switches, off-loads and shared loops of strands; oneTBB, libgomp, rayon; searches in miniature under each policy",
    strands,
)];

const KERNEL: TaskKind = TaskKind::new(0, "kernel");

/// Operations between two looks at the clock.
const BATCH: usize = 32;

/// Iterations of a search in miniature: some 20 ms on one processor.
const SEARCH_ITERATIONS: usize = 8_000_000;

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(error.to_string())
}

fn options(policy: Policy, workers: usize, hosts: Hosts) -> SchedulerOptions {
    SchedulerOptions { policy, workers, hosts, ..SchedulerOptions::default() }
}

/// Median nanoseconds an operation of batches in one strand, while others of `strands` do the same.
fn batches(
    scheduler: &Scheduler,
    strands: usize,
    batches: usize,
    operation: impl Fn(&Strand<'_>) + Sync,
) -> Result<f64, Failure> {
    let samples = Mutex::new(Vec::with_capacity(batches));
    let (operation, samples) = (&operation, &samples);
    let body = |strand: &Strand<'_>| {
        for batch in 0..batches + 8 {
            let begin = Instant::now();
            (0..BATCH).for_each(|_| operation(strand));
            let taken_ns = begin.elapsed().as_secs_f64() * 1e9 / (BATCH * strands) as f64;
            if batch >= 8
                && let Ok(mut samples) = samples.lock()
            {
                samples.push(taken_ns);
            }
        }
    };
    scheduler.run(vec![body; strands]).map_err(failed)?;
    let samples = samples.lock().map_err(failed)?;
    crate::harness::row::median(&samples).ok_or_else(|| Failure::Run("nothing was measured".into()))
}

/// All rows.
pub(crate) fn strands(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let mut rows = vec![switch(bench)?, offload(bench)?, shared_loop(bench)?];
    for iterations in [2_000, 8_000] {
        for strands in [1, 3] {
            rows.push(searches(bench, strands, iterations)?);
        }
    }
    Ok(rows)
}

fn switch(bench: &Bench<'_>) -> Result<Row, Failure> {
    const STRANDS: usize = 4;
    let options = SchedulerOptions { strands_max: Some(STRANDS), ..options(Policy::Edtlp, 1, Hosts::Workers) };
    let scheduler = Scheduler::new(options).map_err(failed)?;
    let count = bench.size(1_000, 10) as usize;
    let turn: Turn<'_> = Box::new(|| batches(&scheduler, STRANDS, count, |strand| strand.give_way()));
    let ours = alternate(bench, "strands", bench.args.rounds, &mut [turn], &mut [])?.concat();
    Ok(Row::new(
        "strands-switch",
        Unit::Nanoseconds,
        ours,
        None::<Figure>,
        Bar::AtMost(100.0),
        vec!["four strands of one host that give way to each other, the choice of the next included".into()],
    ))
}

fn offload(bench: &Bench<'_>) -> Result<Row, Failure> {
    let options = SchedulerOptions { throttle: false, ..options(Policy::Edtlp, 1, Hosts::Own(1)) };
    let scheduler = Scheduler::new(options).map_err(failed)?;
    let count = bench.size(600, 10) as usize;
    let call = |strand: &Strand<'_>| strand.offload_call(KERNEL, || black_box(()));
    let turn: Turn<'_> = Box::new(|| batches(&scheduler, 1, count, call));
    let calls = (count * BATCH).to_string();
    let mut peers = [Contender::start(bench, "rayon", "rayon", &[("work", "install".into()), ("calls", calls)])];
    let ours = alternate(bench, "strands", bench.args.rounds, &mut [turn], &mut peers)?.concat();
    Ok(Row::new(
        "strands-offload",
        Unit::Nanoseconds,
        ours,
        peers,
        Bar::AtMost(1_000.0),
        vec!["an empty task from a host to an idle worker and back, policy and switch included".into()],
    ))
}

fn shared_loop(bench: &Bench<'_>) -> Result<Row, Failure> {
    let workers = bench.threads();
    let policy = Policy::Llp { workers_per_loop: bench.args.threads };
    let options = SchedulerOptions { throttle: false, ..options(policy, workers, Hosts::Workers) };
    let scheduler = Scheduler::new(options).map_err(failed)?;
    let count = bench.size(600, 10) as usize;
    let chunks = workers.max(2);
    let call = move |strand: &Strand<'_>| {
        black_box(strand.offload(KERNEL, chunks, 1, (), |range, ()| range.start, |a, b| a + b));
    };
    let turn: Turn<'_> = Box::new(|| batches(&scheduler, 1, count, call));
    let calls = (count * BATCH).to_string();
    let options = |work: &str| [("work", work.to_owned()), ("calls", calls.clone())];
    let mut peers = [
        Contender::start(bench, "tbb", "oneTBB parallel_for", &options("parallel-for")),
        Contender::start(bench, "libgomp", "libgomp", &options("region")),
        Contender::start(bench, "rayon", "rayon broadcast", &options("broadcast")),
        Contender::start(bench, "rayon", "rayon stolen join", &options("stolen-join")),
    ];
    let ours = alternate(bench, "strands", bench.args.rounds, &mut [turn], &mut peers)?.concat();
    Ok(Row::new(
        format!("strands-loop-{workers}"),
        Unit::Nanoseconds,
        ours,
        peers,
        Bar::AtMost(300.0),
        vec![format!(
            "a loop of {chunks} empty chunks on {workers} workers: fork, reduction and join; the strand is alone, so the first \
             decision is kept. Who leads takes what its helpers have not begun, so one thread may do everything, as with \
             oneTBB; costs are lower while a helper sleeps"
        )],
    ))
}

/// About 3 ns an iteration.
fn kernel(range: Range<usize>) -> f64 {
    range.fold(1.0, |x: f64, i| x * 0.999 + (i as f64).sqrt())
}

/// Seconds of searches: kernels that are off-loaded, a twentieth of them between.
fn search_seconds(scheduler: &Scheduler, strands: usize, iterations: usize, total: usize) -> Result<f64, Failure> {
    let body = |strand: &Strand<'_>| {
        let mut x = 0.0;
        for _ in 0..total / iterations {
            let chunk = iterations.div_ceil(32);
            x += strand.offload(KERNEL, iterations, chunk, (), |r, ()| kernel(r), |a, b| a + b).unwrap_or(0.0);
            x += kernel(0..iterations / 20);
        }
        x
    };
    let begin = Instant::now();
    black_box(scheduler.run(vec![body; strands]).map_err(failed)?.results);
    Ok(begin.elapsed().as_secs_f64())
}

/// marginal, beside every other policy as a peer.
fn searches(bench: &Bench<'_>, strands: usize, iterations: usize) -> Result<Row, Failure> {
    let workers = bench.threads();
    let mut policies = vec![Policy::Marginal, Policy::Mgps];
    policies.extend(Policy::fixed(workers as u32).into_iter().filter(|policy| *policy != Policy::Static));
    let schedulers: Result<Vec<Scheduler>, _> =
        policies.iter().map(|&policy| Scheduler::new(options(policy, workers, Hosts::Workers))).collect();
    let schedulers = schedulers.map_err(failed)?;
    let total = bench.size(SEARCH_ITERATIONS as u64, 50_000) as usize;
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for scheduler in &schedulers {
        turns.push(Box::new(move || search_seconds(scheduler, strands, iterations, total)));
    }
    let mut samples = alternate(bench, "strands", bench.args.rounds, &mut turns, &mut [])?.into_iter();
    let ours = samples.next().unwrap_or_default();
    let peer = |(policy, samples): (&Policy, Vec<f64>)| Figure {
        name: policy.to_string(),
        version: None,
        samples,
        missing: None,
    };
    Ok(Row::new(
        format!("strands-{strands}x{iterations}"),
        Unit::Seconds,
        ours,
        policies[1..].iter().zip(samples).map(peer),
        Bar::RatioAtLeast(0.95),
        vec![format!(
            "{strands} searches of kernels of {iterations} iterations, some {} us each, on {workers} workers under marginal; \
             peers are the other policies",
            iterations * 27 / 10_000
        )],
    ))
}
