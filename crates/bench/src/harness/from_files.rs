//! Work that streams files several times as large as the memory budget, beside the disk's rate for the same mixture of
//! reads and writes.
//!
//! Our time is that of a whole run as its user waits for it: planning, creating the result, moving and computing, and
//! the flush and rename that publish the result. The peer reads the same files, because files of one disk differ in their
//! rates; it writes to a new file too, and includes its flush where something is written.

use super::files::Scratch;
use super::rounds::{Contender, Turn, alternate};
use super::row::{Bar, Row, Unit};
use super::{Bench, right};
use multigrain::app::Application;
use multigrain::readable_bytes;
use multigrain_console::Failure;
use std::path::PathBuf;
use std::time::Instant;

const MIB: u64 = 1 << 20;
/// The file that our runs make.
pub(crate) const RESULT: &str = "result.npy";

/// One row.
pub(crate) struct Work<'a> {
    pub(crate) label: &'a str,
    pub(crate) note: String,
    /// What is read: whole files, in turns.
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
}

/// The row's own budget, or the one that was asked for.
fn budget(bench: &Bench<'_>) -> u64 {
    bench.args.memory.unwrap_or(bench.size(256 * MIB, 16 * MIB))
}

pub(crate) fn measure(
    bench: &Bench<'_>,
    scratch: &Scratch,
    app: &impl Application,
    work: Work<'_>,
) -> Result<Vec<Row>, Failure> {
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
    let ours = alternate(bench, work.label, bench.args.rounds, &mut [turn], &mut peers)?.concat();
    let steps = super::row::median(&of_steps).unwrap_or(1.0);
    Ok(vec![Row::new(
        work.label,
        Unit::GigabytesPerSecond((work.read_bytes + work.write_bytes) as f64),
        ours,
        peers,
        Bar::RatioAtLeast(0.9),
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
