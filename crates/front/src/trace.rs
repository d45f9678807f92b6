//! The command `trace`: what a trace says, for people and for programs.

mod text;
mod value;

use crate::args::{TraceArgs, TraceTarget};
use crate::json;
use multigrain::rooms::trace::{Analysis, Trace, export};
use multigrain::whole;
use multigrain_console::Failure;
use multigrain_console::print;
use std::path::PathBuf;

/// Stalls that are told.
const STALLS_MAX: usize = 10;

/// Reads a trace and reports, or writes it in another format.
pub(crate) fn trace(args: &TraceArgs) -> Result<(), Failure> {
    let shown = args.file.display();
    let unreadable = |e: &dyn std::fmt::Display| Failure::Request(format!("{shown}: {e}"));
    if args.output.is_some() && args.to.is_none() {
        return Err(Failure::Request("--output needs --to perfetto, paraver or html: say which format".into()));
    }
    let trace = Trace::load(&args.file).map_err(|e| unreadable(&e))?;
    let Some(to) = args.to else {
        let analysis = Analysis::of(&trace, STALLS_MAX);
        return print(&match args.json {
            true => json::line(&value::report(&trace, &analysis)),
            false => text::report(&trace, &analysis),
        });
    };
    let (extension, format) = match to {
        TraceTarget::Perfetto => ("perfetto.json", export::Format::Perfetto),
        TraceTarget::Paraver => ("prv", export::Format::Paraver),
        TraceTarget::Html => ("html", export::Format::Html),
    };
    let path = args.output.clone().unwrap_or_else(|| args.file.with_extension(extension));
    for path in export::files(format, &path) {
        whole::check_target(&path)?;
        whole::check_keeps(&path, [args.file.as_path()])?;
    }
    let written = export::write(&trace, format, &path).map_err(|e| Failure::Run(e.to_string()))?;
    let names: Vec<String> = written.iter().map(|path: &PathBuf| path.display().to_string()).collect();
    print(&match args.json {
        true => json::line(&serde_json::json!({ "files": names })),
        false => format!("{}\n", names.join("\n")),
    })
}
