//! y = a x + y, in memory and from files.

use crate::entry::Entry;
use crate::harness::files::Scratch;
use crate::harness::from_files::RESULT;
use crate::harness::row::{Row, Unit};
use crate::harness::{Bench, from_files, in_memory};
use multigrain::readable_bytes;
use multigrain_console::Failure;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::rows("saxpy", "y = a x + y in memory; MKL, OpenBLAS", in_memory),
    Entry::rows("saxpy-files", "a x + y from files; the disk's rate", from_files),
];

/// y = a x + y, in place.
fn in_memory(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let n = bench.size(32 << 20, 1 << 16);
    // Small: y grows with every run and must stay far from overflow.
    let app = multigrain_saxpy::app::Args { n: Some(n), alpha: 1e-3, ..Default::default() };
    let work = in_memory::Work {
        label: "saxpy",
        note: format!("y = a x + y in memory, in place, n = {n}; 12 bytes an element"),
        unit: Unit::GigabytesPerSecond(12.0 * n as f64),
        peers: &["mkl", "openblas"],
        options: vec![("work", "saxpy".into()), ("n", n.to_string())],
        bar: 0.97,
    };
    in_memory::measure(bench, &app, work)
}

/// out = a x + y: two vectors read, one written.
fn from_files(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let n = bench.size(128 << 20, 2 << 20);
    // The result, and those of the disk's two measurements, are as large again.
    let scratch = Scratch::new(&bench.args.directory, (2 + 3) * 4 * n)?;
    let x = scratch.npy("x.npy", &[n], 1, &bench.abort)?;
    let y = scratch.npy("y.npy", &[n], 2, &bench.abort)?;
    let output = Some(scratch.path(RESULT));
    let app = multigrain_saxpy::app::Args { x: Some(x.clone()), y: Some(y.clone()), output, ..Default::default() };
    let work = from_files::Work {
        label: "saxpy-files",
        note: format!("out = a x + y, vectors of {} in .npy files", readable_bytes(4 * n)),
        inputs: &[x, y],
        read_bytes: 8 * n,
        write_bytes: 4 * n,
    };
    from_files::measure(bench, &scratch, &app, work)
}
