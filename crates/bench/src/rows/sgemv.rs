//! Products of a matrix and a vector, in memory and from files.

use crate::entry::Entry;
use crate::harness::files::Scratch;
use crate::harness::from_files::RESULT;
use crate::harness::row::{Row, Unit};
use crate::harness::{Bench, from_files, in_memory};
use multigrain::readable_bytes;
use multigrain_console::Failure;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::rows("sgemv", "Product of a matrix and a vector in memory; MKL, OpenBLAS", in_memory),
    Entry::rows("sgemv-files", "Product of a matrix and a vector from files; the disk's rate", from_files),
];

/// y = A x.
fn in_memory(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (m, n) = (bench.size(8192, 256), bench.size(4096, 128));
    let app = multigrain_sgemv::app::Args { m: Some(m), n: Some(n), ..Default::default() };
    let work = in_memory::Work {
        label: "sgemv",
        note: format!("y = A x in memory, A {m} x {n}; 4 bytes an element of A"),
        unit: Unit::GigabytesPerSecond(4.0 * (m * n) as f64),
        peers: &["mkl", "openblas"],
        options: vec![("work", "sgemv".into()), ("m", m.to_string()), ("n", n.to_string())],
        bar: 0.97,
    };
    in_memory::measure(bench, &app, work)
}

/// y = A x: a matrix read.
fn from_files(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (m, n) = (bench.size(24576, 1024), bench.size(16384, 4096));
    let scratch = Scratch::new(&bench.args.directory, 4 * m * n)?;
    let a = scratch.npy("a.npy", &[m, n], 1, &bench.abort)?;
    let x = scratch.npy("x.npy", &[n], 2, &bench.abort)?;
    let output = Some(scratch.path(RESULT));
    let app = multigrain_sgemv::app::Args { a: Some(a.clone()), x: Some(x), output, ..Default::default() };
    let work = from_files::Work {
        label: "sgemv-files",
        note: format!("y = A x, A {m} x {n} ({}) in a .npy file", readable_bytes(4 * m * n)),
        inputs: &[a],
        read_bytes: 4 * m * n,
        write_bytes: 4 * m,
    };
    from_files::measure(bench, &scratch, &app, work)
}
