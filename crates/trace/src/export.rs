//! Traces in the formats of other programs. Everything is written as it is made, never held as a whole, and appears
//! under its name when it is complete.

mod html;
mod lanes;
mod paraver;
mod perfetto;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

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

/// Writes a trace to `path` (for Paraver with the extensions `.prv`, `.pcf` and `.row`) and tells which files there are
/// now.
///
/// # Errors
/// [`TraceError::Create`] when the system refuses a file; none of that name is left behind then.
pub fn write(trace: &Trace, format: Format, path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let timeline = Timeline::new(trace);
    match format {
        Format::Perfetto => whole(path, |out| perfetto::write(&timeline, out)).map(|path| vec![path]),
        Format::Html => whole(path, |out| html::write(&timeline, out)).map(|path| vec![path]),
        Format::Paraver => {
            let mut names = Vec::new();
            // The trace itself comes last: who sees it finds the others.
            names.push(whole(&path.with_extension("pcf"), |out| paraver::write_pcf(&timeline, out))?);
            names.push(whole(&path.with_extension("row"), |out| paraver::write_row(&timeline, out))?);
            names.insert(0, whole(&path.with_extension("prv"), |out| paraver::write_prv(&timeline, out))?);
            Ok(names)
        }
    }
}

type Out<'a> = &'a mut dyn Write;

/// Writes a file under another name and renames it.
fn whole(path: &Path, content: impl FnOnce(Out<'_>) -> std::io::Result<()>) -> Result<PathBuf, TraceError> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let written = File::create(&part).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        content(&mut out)?;
        out.flush()?;
        fs::rename(&part, path)
    });
    written.map(|()| path.to_owned()).map_err(|source| {
        // The first error is the one to report; the part may not even exist.
        let _ = fs::remove_file(&part);
        TraceError::Create { path: path.to_owned(), source }
    })
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
