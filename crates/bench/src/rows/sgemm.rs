//! Products of matrices: in memory beside libraries; from files beside our own speed in memory, and beside what people use today.

use crate::entry::Entry;
use crate::harness::files::Scratch;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Bar, Figure, Row, Unit};
use crate::harness::{Bench, in_memory, right, run_seconds};
use multigrain::app::Application;
use multigrain::{EdgeTraffic, readable_bytes};
use multigrain_console::Failure;
use multigrain_sgemm::app::Args;
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::rows("sgemm", "Product of two matrices in memory; MKL, OpenBLAS", in_memory),
    Entry::rows(
        "sgemm-files",
        "Product of matrices in files, within 512 MiB; our own speed in memory",
        within_memory_speed,
    ),
    Entry::rows("sgemm-peers", "Product of matrices in files, within 128 MiB; NumPy memory maps, dask", beside_peers),
];

const MIB: u64 = 1 << 20;

/// Turns of the largest product: one takes minutes on two cores.
const LONG_ROUNDS_MAX: u32 = 3;

fn flops(n: u64) -> f64 {
    2.0 * (n as f64).powi(3)
}

/// C = A B.
fn in_memory(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let n = bench.size(4096, 256);
    let app = multigrain_sgemm::app::Args { n: Some(n), ..Default::default() };
    let work = in_memory::Work {
        label: "sgemm",
        note: format!("C = A B in memory, n = {n}"),
        unit: Unit::Gflops(2.0 * (n as f64).powi(3)),
        peers: &["mkl", "openblas"],
        options: vec![("work", "sgemm".into()), ("n", n.to_string())],
        bar: 0.95,
    };
    in_memory::measure(bench, &app, work)
}

/// A whole run from files beside the same product in memory, and the bytes that the run moves over the disk's edge, in
/// multiples of the lower bound. Where the arrays would take more than half of the memory, the product in memory is one of
/// half the size, and its time is scaled to the same number of operations.
pub(crate) fn within_memory_speed(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let n = bench.size(16384, 1024);
    let memory = bench.args.memory.unwrap_or(bench.size(512 * MIB, 16 * MIB));
    let rounds = bench.args.rounds.min(LONG_ROUNDS_MAX);
    let scratch = Scratch::new(&bench.args.directory, 3 * 4 * n * n)?;
    let runtime = bench.runtime(bench.threads(), Some(memory))?;
    let files = Args {
        a: Some(scratch.npy("a.npy", &[n, n], 1, &bench.abort)?),
        b: Some(scratch.npy("b.npy", &[n, n], 2, &bench.abort)?),
        output: Some(scratch.path("c.npy")),
        ..Args::default()
    }
    .prepare(&runtime)?;
    let checked = right(&files, &runtime.run(&files.job, bench.settings())?)?;
    let in_memory = bench.runtime(bench.threads(), None)?;
    let resident = if in_memory.memory_bytes()? >= 2 * 3 * 4 * n * n { n } else { n / 2 };
    let own = Args { n: Some(resident), ..Args::default() }.prepare(&in_memory)?;
    let mut own = in_memory.prepare(&own.job)?;

    let mut moved = Vec::new();
    let mut turns: [Turn<'_>; 2] = [
        Box::new(|| {
            let begin = Instant::now();
            let outcome = runtime.run(&files.job, bench.settings())?;
            let seconds = begin.elapsed().as_secs_f64();
            moved.extend(outcome.edges.first().map(of_bound));
            Ok(seconds)
        }),
        Box::new(|| Ok(run_seconds(&own.run(bench.settings())?) * flops(n) / flops(resident))),
    ];
    let samples = alternate(bench, "sgemm-files", rounds, &mut turns, &mut [])?;
    drop(turns);
    let [ours, reference] = <[Vec<f64>; 2]>::try_from(samples).unwrap_or_default();
    let own = Figure {
        name: "own in memory".into(),
        version: Some(env!("CARGO_PKG_VERSION").into()),
        samples: reference,
        missing: None,
    };
    let speed = Row::new(
        "sgemm-files",
        Unit::Gflops(flops(n)),
        ours,
        [own],
        Bar::RatioAtLeast(0.9),
        vec![
            format!(
                "C = A B from .npy files, n = {n}, within {}; whole runs, the result flushed, {rounds} turns; in memory: n = {resident}",
                readable_bytes(memory),
            ),
            checked,
        ],
    );
    let bytes = Row::new(
        "sgemm-files-bytes",
        Unit::Multiple,
        moved,
        None::<Figure>,
        Bar::AtMost(1.15),
        vec!["bytes over the disk's edge, in multiples of the lower bound".into()],
    );
    Ok(vec![speed, bytes])
}

fn of_bound(edge: &EdgeTraffic) -> f64 {
    (edge.traffic.bytes_down + edge.traffic.bytes_up) as f64 / edge.lower_bound_bytes.max(1) as f64
}

/// The same files and budget beside NumPy memory maps and dask, once with inputs that they must read from the disk and
/// once with inputs that lie in the system's page cache. We never use that cache.
pub(crate) fn beside_peers(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let n = bench.size(8192, 512);
    let memory = bench.args.memory.unwrap_or(bench.size(128 * MIB, 8 * MIB));
    let scratch = Scratch::new(&bench.args.directory, 5 * 4 * n * n)?;
    let a = scratch.npy("a.npy", &[n, n], 1, &bench.abort)?;
    let b = scratch.npy("b.npy", &[n, n], 2, &bench.abort)?;
    let runtime = bench.runtime(bench.threads(), Some(memory))?;
    let args = Args { a: Some(a.clone()), b: Some(b.clone()), output: Some(scratch.path("c.npy")), ..Args::default() };
    let app = args.prepare(&runtime)?;
    let checked = right(&app, &runtime.run(&app.job, bench.settings())?)?;
    let mut rows = Vec::new();
    for warm in [false, true] {
        let turn: Turn<'_> = Box::new(|| {
            let begin = Instant::now();
            runtime.run(&app.job, bench.settings())?;
            Ok(begin.elapsed().as_secs_f64())
        });
        let start = |peer: &str| {
            let file = |name: &str| scratch.path(name).display().to_string();
            let mut options = vec![
                ("a", a.display().to_string()),
                ("b", b.display().to_string()),
                ("c", file(&format!("{peer}.npy"))),
            ];
            options.push(("block", bench.size(4096, 256).to_string()));
            if warm {
                options.push(("warm", String::new()));
            }
            Contender::start(bench, peer, peer, &options)
        };
        let mut peers = ["numpy-memmap", "dask"].map(start);
        let ours = alternate(bench, "sgemm-peers", bench.args.rounds, &mut [turn], &mut peers)?.concat();
        let mut notes = vec![format!(
            "C = A B from .npy files to a .npy file, n = {n}, within {}; peers {}",
            readable_bytes(memory),
            if warm { "with inputs in the page cache" } else { "with inputs on the disk" }
        )];
        notes.push(checked.clone());
        notes.extend(peers.iter().filter_map(|p| {
            let bytes = p.last["peak_anonymous_bytes"].as_u64()?;
            Some(format!("{} took {} besides mapped files", p.label(), readable_bytes(bytes)))
        }));
        rows.push(Row::new(
            if warm { "sgemm-peers-warm" } else { "sgemm-peers-cold" },
            Unit::Seconds,
            ours,
            peers,
            Bar::RatioAtLeast(1.0),
            notes,
        ));
    }
    Ok(rows)
}
