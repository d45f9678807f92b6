//! Work on arrays that lie in memory, warm, on both sides.

use super::rounds::{Contender, Turn, alternate};
use super::row::{Bar, Row, Unit};
use super::{Bench, right, run_seconds};
use multigrain::Prepared;
use multigrain::app::Application;
use multigrain_console::Failure;
use std::time::Instant;

/// A turn lasts at least so long: the mean of several runs, as the BLAS driver does.
const TURN_SECONDS_MIN: f64 = 0.05;

/// Seconds of one run, the mean of as many as `runs`; one more before them wakes the threads if there are several.
pub(crate) fn repeated(bench: &Bench<'_>, prepared: &mut Prepared<'_>, runs: u32) -> Result<f64, Failure> {
    if runs > 1 {
        prepared.run(bench.settings())?;
    }
    let mut seconds = 0.0;
    for _ in 0..runs {
        seconds += run_seconds(&prepared.run(bench.settings())?);
    }
    Ok(seconds / f64::from(runs))
}

/// How many runs fill a turn.
fn calibrate(bench: &Bench<'_>, prepared: &mut Prepared<'_>) -> Result<u32, Failure> {
    let mut runs = 1;
    loop {
        let begin = Instant::now();
        for _ in 0..runs {
            prepared.run(bench.settings())?;
        }
        if begin.elapsed().as_secs_f64() >= TURN_SECONDS_MIN || runs >= 1 << 20 {
            return Ok(runs);
        }
        runs *= 2;
    }
}

/// One row: the application's job beside peers that are given the same sizes.
pub(crate) struct Work<'a> {
    pub(crate) label: &'a str,
    pub(crate) note: String,
    pub(crate) unit: Unit,
    pub(crate) peers: &'a [&'a str],
    pub(crate) options: Vec<(&'a str, String)>,
    pub(crate) bar: f64,
}

pub(crate) fn measure(bench: &Bench<'_>, app: &impl Application, work: Work<'_>) -> Result<Vec<Row>, Failure> {
    let runtime = bench.runtime(bench.threads(), None)?;
    let app = app.prepare(&runtime)?;
    let checked = right(&app, &runtime.run(&app.job, bench.settings())?)?;
    let mut prepared = runtime.prepare(&app.job)?;
    let runs = calibrate(bench, &mut prepared)?;
    let turn: Turn<'_> = Box::new(|| repeated(bench, &mut prepared, runs));
    let mut peers: Vec<Contender> =
        work.peers.iter().map(|peer| Contender::start(bench, peer, peer, &work.options)).collect();
    let ours = alternate(bench, work.label, bench.args.rounds, &mut [turn], &mut peers)?.concat();
    Ok(vec![Row::new(work.label, work.unit, ours, peers, Bar::RatioAtLeast(work.bar), vec![work.note, checked])])
}
