//! Convolutions, in memory and from files.

use crate::entry::Entry;
use crate::harness::files::Scratch;
use crate::harness::from_files::RESULT;
use crate::harness::row::{Row, Unit};
use crate::harness::{Bench, from_files, in_memory};
use multigrain::readable_bytes;
use multigrain_console::Failure;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::rows("conv2d", "Convolution in memory; OpenCV", in_memory),
    Entry::rows("conv2d-files", "Convolution from files; the disk's rate", from_files),
];

/// Weights of the convolutions, rows and columns.
const TAPS: u64 = 9;

/// Convolution. The time of neither side depends on the values of the weights: both take all of them.
fn in_memory(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (m, n) = (bench.size(8192, 256), bench.size(4096, 128));
    let app = multigrain_conv2d::app::Args {
        m: Some(m),
        n: Some(n),
        kernel: format!("gaussian:{TAPS}"),
        ..Default::default()
    };
    let work = in_memory::Work {
        label: "conv2d",
        note: format!("{TAPS} x {TAPS} weights, {m} x {n} float32 in memory"),
        unit: Unit::Gflops(2.0 * (TAPS * TAPS * m * n) as f64),
        peers: &["opencv"],
        options: vec![("rows", m.to_string()), ("cols", n.to_string()), ("size", TAPS.to_string())],
        bar: 2.0,
    };
    in_memory::measure(bench, &app, work)
}

/// Convolution: an array read, one written.
fn from_files(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (m, n) = (bench.size(16384, 2048), bench.size(16384, 2048));
    let scratch = Scratch::new(&bench.args.directory, (1 + 3) * 4 * m * n)?;
    let image = scratch.npy("image.npy", &[m, n], 1, &bench.abort)?;
    let output = Some(scratch.path(RESULT));
    let kernel = format!("gaussian:{}", TAPS);
    let app = multigrain_conv2d::app::Args {
        image: Some(image.clone()),
        output,
        kernel: kernel.clone(),
        ..Default::default()
    };
    let work = from_files::Work {
        label: "conv2d-files",
        note: format!("{kernel} on {m} x {n} ({}) from and to .npy files", readable_bytes(4 * m * n)),
        inputs: &[image],
        read_bytes: 4 * m * n,
        write_bytes: 4 * m * n,
    };
    from_files::measure(bench, &scratch, &app, work)
}
