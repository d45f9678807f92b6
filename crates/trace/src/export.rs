//! Traces in the formats of other programs. Everything is written as it is made, never held as a whole, and appears
//! under its name when it is complete.

mod html;
mod lanes;
mod paraver;
mod perfetto;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use multigrain_whole::WholeFile;

use crate::analysis::Timeline;
use crate::error::TraceError;
use crate::file::Trace;

/// What a trace can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The JSON of Chrome's tracing, which Perfetto opens as well.
    Perfetto,
    /// Paraver: `.prv`, `.pcf` and `.row`.
    Paraver,
    /// One page with everything in it.
    Html,
}

/// The files that a trace becomes by [`write()`].
pub fn files(format: Format, path: &Path) -> Vec<PathBuf> {
    match format {
        Format::Perfetto | Format::Html => vec![path.to_owned()],
        Format::Paraver => ["prv", "pcf", "row"].map(|extension| path.with_extension(extension)).to_vec(),
    }
}

/// Writes a trace to `path` (for Paraver with the extensions `.prv`, `.pcf` and `.row`) and tells which files there are
/// now.
///
/// # Errors
/// [`TraceError::Create`] when the system refuses a file; none of that name is left behind then.
pub fn write(trace: &Trace, format: Format, path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let timeline = Timeline::new(trace);
    match format {
        Format::Perfetto => Ok(vec![published(written(path, |out| perfetto::write(&timeline, out))?)?]),
        Format::Html => Ok(vec![published(written(path, |out| html::write(&timeline, out))?)?]),
        Format::Paraver => {
            let [prv, pcf, row] = &files(format, path)[..] else { unreachable!("Paraver's files are three") };
            let pcf = written(pcf, |out| paraver::write_pcf(&timeline, out))?;
            let row = written(row, |out| paraver::write_row(&timeline, out))?;
            let prv = written(prv, |out| paraver::write_prv(&timeline, out))?;
            // All are complete before any has its name. The trace itself comes last: who sees it finds the others.
            let [pcf, row, prv] = [published(pcf)?, published(row)?, published(prv)?];
            Ok(vec![prv, pcf, row])
        }
    }
}

type Out<'a> = &'a mut dyn Write;

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> TraceError {
    |source| TraceError::Create { path: path.to_owned(), source }
}

/// A complete file that has no name yet.
fn written(path: &Path, content: impl FnOnce(Out<'_>) -> std::io::Result<()>) -> Result<WholeFile, TraceError> {
    let write = || {
        let mut out = BufWriter::with_capacity(1 << 18, WholeFile::create(path)?);
        content(&mut out)?;
        Ok(out.into_inner()?)
    };
    write().map_err(failed(path))
}

fn published(file: WholeFile) -> Result<PathBuf, TraceError> {
    let path = file.path().to_owned();
    file.publish().map_err(failed(&path))?;
    Ok(path)
}

/// Ticks as nanoseconds from the start of the run.
struct Nanoseconds {
    start: u64,
    per_tick: f64,
}

impl Nanoseconds {
    fn of(trace: &Trace) -> Nanoseconds {
        Nanoseconds { start: trace.start(), per_tick: 1e9 / trace.ticks_per_second() }
    }

    fn at(&self, tick: u64) -> u64 {
        self.length(tick.saturating_sub(self.start))
    }

    fn length(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.per_tick).round() as u64
    }
}
