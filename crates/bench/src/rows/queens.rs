//! Queens on one core beside the look-ahead search, and on several beside one.

use crate::entry::Entry;
use crate::harness::Bench;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Bar, Figure, Row, Unit};
use multigrain_console::Failure;
use multigrain_queens::{Counts, Finished, Request, run};

pub(super) const ENTRIES: &[Entry] = &[Entry::rows(
    "queens",
    "All solutions of 16 queens on one core, of 17 on all threads; a look-ahead search with bit vectors, one worker",
    queens,
)];

/// A turn of the peer takes seconds.
const ROUNDS_MAX: u32 = 5;

fn count(bench: &Bench<'_>, n: u32, threads: usize) -> Result<Finished, Failure> {
    let request = Request { n, threads: Some(threads), ..Request::default() };
    run(&request, &bench.abort, |_| {}).map_err(|e| Failure::Run(e.to_string()))
}

/// Seconds of a whole count, which must be the one that is expected.
fn seconds(bench: &Bench<'_>, n: u32, threads: usize, expected: &Counts) -> Result<f64, Failure> {
    let finished = count(bench, n, threads)?;
    if finished.counts != *expected {
        let (is, was) = (finished.counts.solutions, expected.solutions);
        return Err(Failure::Run(format!("{is} solutions of {n} x {n} on {threads} workers, but {was} before")));
    }
    Ok(finished.seconds)
}

/// Both rows.
pub(crate) fn queens(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    Ok(vec![one_core(bench)?, workers(bench)?])
}

fn one_core(bench: &Bench<'_>) -> Result<Row, Failure> {
    let n = bench.size(16, 10) as u32;
    let once = count(bench, n, 1)?;
    let expected = once.counts;
    let turn: Turn<'_> = Box::new(|| seconds(bench, n, 1, &expected));
    let mut peers = [Contender::start(bench, "m-queens", "m-queens search", &[("n", n.to_string())])];
    let rounds = bench.args.rounds.min(ROUNDS_MAX);
    let ours = alternate(bench, "queens", rounds, &mut [turn], &mut peers)?.concat();
    let theirs = peers[0].last["solutions"].as_u64().map(u128::from);
    if let Some(theirs) = theirs.filter(|theirs| *theirs != expected.solutions) {
        let ours = expected.solutions;
        return Err(Failure::Run(format!("{ours} solutions of {n} x {n}, but the peer found {theirs}")));
    }
    let notes = vec![format!(
        "{} solutions of {n} x {n}, {} fundamental, on one worker ({}); the peer counts half of the first row twice",
        expected.solutions,
        expected.fundamental,
        once.kernel.name()
    )];
    Ok(Row::new(format!("queens-{n}"), Unit::Seconds, ours, peers, Bar::RatioAtLeast(5.0), notes))
}

fn workers(bench: &Bench<'_>) -> Result<Row, Failure> {
    let (n, workers) = (bench.size(17, 10) as u32, bench.threads());
    let expected = count(bench, n, workers)?.counts;
    let mut turns: Vec<Turn<'_>> =
        [workers, 1].map(|workers| Box::new(move || seconds(bench, n, workers, &expected)) as Turn<'_>).into();
    let mut samples = alternate(bench, "queens", bench.args.rounds, &mut turns, &mut [])?.into_iter();
    let ours = samples.next().unwrap_or_default();
    let alone = samples.next().unwrap_or_default();
    let peer = Figure { name: "one worker".into(), version: None, samples: alone, missing: None };
    // 1.95 of two workers.
    let bar = if workers > 1 { Bar::RatioAtLeast(0.975 * workers as f64) } else { Bar::None };
    let notes = vec![format!("{} solutions of {n} x {n} on {workers} workers", expected.solutions)];
    let name = format!("queens-{n}-{workers}");
    Ok(Row::new(name, Unit::Seconds, ours, [peer], bar, notes))
}
