//! Work on arrays that lie in memory, warm, on both sides.

use super::rounds::{Contender, Turn, alternate};
use super::row::{Row, Unit};
use super::{Bench, Name, right, run_seconds};
use crate::failure::Failure;
use multigrain::Prepared;
use multigrain::app::Application;
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
struct Work<'a> {
    name: Name,
    label: &'a str,
    note: String,
    unit: Unit,
    peers: &'a [&'a str],
    options: Vec<(&'a str, String)>,
    bar: f64,
}

fn measure(bench: &Bench<'_>, app: &dyn Application, work: Work<'_>) -> Result<Vec<Row>, Failure> {
    let runtime = bench.runtime(bench.threads(), None)?;
    let app = app.prepare(&runtime)?;
    let checked = right(&app, &runtime.run(&app.job, bench.settings())?)?;
    let mut prepared = runtime.prepare(&app.job)?;
    let runs = calibrate(bench, &mut prepared)?;
    let turn: Turn<'_> = Box::new(|| repeated(bench, &mut prepared, runs));
    let mut peers: Vec<Contender> =
        work.peers.iter().map(|peer| Contender::start(bench, peer, peer, &work.options)).collect();
    let ours = alternate(bench, work.name, bench.args.rounds, &mut [turn], &mut peers)?.concat();
    Ok(vec![Row::at_least(work.label, work.unit, ours, peers, work.bar, vec![work.note, checked])])
}

/// C = A B.
pub(crate) fn sgemm(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let n = bench.size(4096, 256);
    let app = multigrain_sgemm::app::Args { n: Some(n), ..Default::default() };
    let work = Work {
        name: Name::Sgemm,
        label: "sgemm",
        note: format!("C = A B in memory, n = {n}"),
        unit: Unit::Gflops(2.0 * (n as f64).powi(3)),
        peers: &["mkl", "openblas"],
        options: vec![("work", "sgemm".into()), ("n", n.to_string())],
        bar: 0.95,
    };
    measure(bench, &app, work)
}

/// y = a x + y, in place.
pub(crate) fn saxpy(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let n = bench.size(32 << 20, 1 << 16);
    // Small: y grows with every run and must stay far from overflow.
    let app = multigrain_saxpy::app::Args { n: Some(n), alpha: 1e-3, ..Default::default() };
    let work = Work {
        name: Name::Saxpy,
        label: "saxpy",
        note: format!("y = a x + y in memory, in place, n = {n}; 12 bytes an element"),
        unit: Unit::GigabytesPerSecond(12.0 * n as f64),
        peers: &["mkl", "openblas"],
        options: vec![("work", "saxpy".into()), ("n", n.to_string())],
        bar: 0.97,
    };
    measure(bench, &app, work)
}

/// y = A x.
pub(crate) fn sgemv(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (m, n) = (bench.size(8192, 256), bench.size(4096, 128));
    let app = multigrain_sgemv::app::Args { m: Some(m), n: Some(n), ..Default::default() };
    let work = Work {
        name: Name::Sgemv,
        label: "sgemv",
        note: format!("y = A x in memory, A {m} x {n}; 4 bytes an element of A"),
        unit: Unit::GigabytesPerSecond(4.0 * (m * n) as f64),
        peers: &["mkl", "openblas"],
        options: vec![("work", "sgemv".into()), ("m", m.to_string()), ("n", n.to_string())],
        bar: 0.97,
    };
    measure(bench, &app, work)
}

/// Weights of the convolutions, rows and columns.
pub(crate) const TAPS: u64 = 9;

/// Convolution. The time of neither side depends on the values of the weights: both take all of them.
pub(crate) fn conv2d(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (m, n) = (bench.size(8192, 256), bench.size(4096, 128));
    let app = multigrain_conv2d::app::Args {
        m: Some(m),
        n: Some(n),
        kernel: format!("gaussian:{TAPS}"),
        ..Default::default()
    };
    let work = Work {
        name: Name::Conv2d,
        label: "conv2d",
        note: format!("{TAPS} x {TAPS} weights, {m} x {n} float32 in memory"),
        unit: Unit::Gflops(2.0 * (TAPS * TAPS * m * n) as f64),
        peers: &["opencv"],
        options: vec![("rows", m.to_string()), ("cols", n.to_string()), ("size", TAPS.to_string())],
        bar: 2.0,
    };
    measure(bench, &app, work)
}
