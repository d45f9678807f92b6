//! Work that streams files several times as large as the memory budget, beside the disk's rate for the same mixture of
//! reads and writes.
//!
//! Our time is that of a whole run as its user waits for it: planning, creating the result, moving and computing, and
//! the flush and rename that publish the result. The peer reads the same files, because files of one disk differ in their
//! rates; it writes to a new file too, and includes its flush where something is written.

use super::files::Scratch;
use super::rounds::{Contender, Turn, alternate};
use super::row::{Row, Unit};
use super::{Bench, Name, in_memory, right};
use crate::failure::Failure;
use multigrain::app::Application;
use multigrain::readable_bytes;
use std::path::PathBuf;
use std::time::Instant;

const MIB: u64 = 1 << 20;
/// The file that our runs make.
const RESULT: &str = "result.npy";

/// One row.
struct Work<'a> {
    name: Name,
    label: &'a str,
    note: String,
    /// What is read: whole files, in turns.
    inputs: &'a [PathBuf],
    read_bytes: u64,
    write_bytes: u64,
}

/// The row's own budget, or the one that was asked for.
fn budget(bench: &Bench<'_>) -> u64 {
    bench.args.memory.unwrap_or(bench.size(256 * MIB, 16 * MIB))
}

fn measure(bench: &Bench<'_>, scratch: &Scratch, app: &dyn Application, work: Work<'_>) -> Result<Vec<Row>, Failure> {
    let memory = budget(bench);
    let runtime = bench.runtime(bench.threads(), Some(memory))?;
    let app = app.prepare(&runtime)?;
    let checked = right(&app, &runtime.run(&app.job, bench.settings())?)?;
    let mut of_steps = Vec::new();
    let turn: Turn<'_> = Box::new(|| {
        // To free the space of the turn before is no part of the work, on either side.
        let _ = std::fs::remove_file(scratch.path(RESULT));
        let begin = Instant::now();
        let outcome = runtime.run(&app.job, bench.settings())?;
        let seconds = begin.elapsed().as_secs_f64();
        of_steps.push(outcome.seconds / seconds);
        Ok(seconds)
    });
    let inputs: Vec<String> = work.inputs.iter().map(|path| path.display().to_string()).collect();
    // A result of less than a block is not worth a flush on the other side.
    let sync = if work.write_bytes >= MIB { "yes" } else { "no" };
    let options = [
        ("directory", scratch.folder().display().to_string()),
        ("read", inputs.join(":")),
        ("read-mib", (work.read_bytes / MIB).to_string()),
        ("write-mib", (work.write_bytes / MIB).to_string()),
        ("sync", sync.to_owned()),
        // Our result is a new file as well.
        ("write", "new".to_owned()),
    ];
    // The disk alone is what the bar is about; the second says what it gives to a program that looks at what it reads.
    let looking: Vec<_> = options.iter().cloned().chain([("look", "yes".to_owned())]).collect();
    let mut peers = [
        Contender::start(bench, "disk", "disk", &options),
        Contender::start(bench, "disk", "disk, looked at", &looking),
    ];
    let ours = alternate(bench, work.name, bench.args.rounds, &mut [turn], &mut peers)?.concat();
    let steps = super::row::median(&of_steps).unwrap_or(1.0);
    Ok(vec![Row::at_least(
        work.label,
        Unit::GigabytesPerSecond((work.read_bytes + work.write_bytes) as f64),
        ours,
        peers,
        0.9,
        vec![
            work.note,
            format!(
                "within {}; whole runs, {:.1} % of the time from the first step to the last; the disk reads the same files and writes a new one, {} its flush",
                readable_bytes(memory),
                100.0 * steps,
                if sync == "yes" { "with" } else { "without" },
            ),
            checked,
        ],
    )])
}

/// out = a x + y: two vectors read, one written.
pub(crate) fn saxpy(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let n = bench.size(128 << 20, 2 << 20);
    // The result, and those of the disk's two measurements, are as large again.
    let scratch = Scratch::new(&bench.args.directory, (2 + 3) * 4 * n)?;
    let x = scratch.npy("x.npy", &[n], 1, &bench.abort)?;
    let y = scratch.npy("y.npy", &[n], 2, &bench.abort)?;
    let output = Some(scratch.path(RESULT));
    let app = multigrain_saxpy::app::Args { x: Some(x.clone()), y: Some(y.clone()), output, ..Default::default() };
    let work = Work {
        name: Name::SaxpyFiles,
        label: "saxpy-files",
        note: format!("out = a x + y, vectors of {} in .npy files", readable_bytes(4 * n)),
        inputs: &[x, y],
        read_bytes: 8 * n,
        write_bytes: 4 * n,
    };
    measure(bench, &scratch, &app, work)
}

/// y = A x: a matrix read.
pub(crate) fn sgemv(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (m, n) = (bench.size(24576, 1024), bench.size(16384, 4096));
    let scratch = Scratch::new(&bench.args.directory, 4 * m * n)?;
    let a = scratch.npy("a.npy", &[m, n], 1, &bench.abort)?;
    let x = scratch.npy("x.npy", &[n], 2, &bench.abort)?;
    let output = Some(scratch.path(RESULT));
    let app = multigrain_sgemv::app::Args { a: Some(a.clone()), x: Some(x), output, ..Default::default() };
    let work = Work {
        name: Name::SgemvFiles,
        label: "sgemv-files",
        note: format!("y = A x, A {m} x {n} ({}) in a .npy file", readable_bytes(4 * m * n)),
        inputs: &[a],
        read_bytes: 4 * m * n,
        write_bytes: 4 * m,
    };
    measure(bench, &scratch, &app, work)
}

/// Convolution: an array read, one written.
pub(crate) fn conv2d(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let (m, n) = (bench.size(16384, 2048), bench.size(16384, 2048));
    let scratch = Scratch::new(&bench.args.directory, (1 + 3) * 4 * m * n)?;
    let image = scratch.npy("image.npy", &[m, n], 1, &bench.abort)?;
    let output = Some(scratch.path(RESULT));
    let kernel = format!("gaussian:{}", in_memory::TAPS);
    let app = multigrain_conv2d::app::Args {
        image: Some(image.clone()),
        output,
        kernel: kernel.clone(),
        ..Default::default()
    };
    let work = Work {
        name: Name::Conv2dFiles,
        label: "conv2d-files",
        note: format!("{kernel} on {m} x {n} ({}) from and to .npy files", readable_bytes(4 * m * n)),
        inputs: &[image],
        read_bytes: 4 * m * n,
        write_bytes: 4 * m * n,
    };
    measure(bench, &scratch, &app, work)
}
