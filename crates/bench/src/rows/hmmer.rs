//! Profiles against a database of sequences, from files to the table of hits, beside hmmsearch.

use crate::entry::Entry;
use crate::harness::files::Scratch;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Bar, Row, Unit};
use crate::harness::{Bench, right};
use multigrain::app::Application;
use multigrain_console::Failure;
use multigrain_hmmer::app::Args;
use multigrain_hmmer::generate;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[Entry::rows(
    "hmmer",
    "A profile against a database of protein sequences, all filters off; hmmsearch --max",
    hmmer,
)];

/// A turn of hmmsearch takes some ten seconds.
const ROUNDS_MAX: u32 = 5;
/// More than the generated files take.
const FILES_BYTES: u64 = 64 << 20;

/// Files of a request: those that were named, or generated ones.
fn inputs(bench: &Bench<'_>, scratch: &Scratch) -> Result<(PathBuf, PathBuf, String), Failure> {
    let (nodes, sequences) = (bench.size(150, 30), bench.size(20_000, 300));
    let written = |name: &str, text: String| -> Result<PathBuf, Failure> {
        let path = scratch.path(name);
        std::fs::write(&path, text).map_err(|e| Failure::Run(format!("cannot write {}: {e}", path.display())))?;
        Ok(path)
    };
    let mut notes = Vec::new();
    // Peers run in the same folder, but names are kept apart from it.
    let real = |path: &Path| -> Result<PathBuf, Failure> {
        path.canonicalize().map_err(|e| Failure::Request(format!("{}: {e}; check the path", path.display())))
    };
    let profile = match &bench.args.profile {
        Some(path) => real(path)?,
        None => {
            notes.push(format!("a generated profile of {nodes} nodes"));
            written("profile.hmm", generate::profile(1, nodes as usize))?
        }
    };
    let database = match &bench.args.database {
        Some(path) => real(path)?,
        None => {
            notes.push(format!("{sequences} generated sequences"));
            written("database.fasta", generate::sequences(1, sequences, nodes as usize))?
        }
    };
    Ok((profile, database, notes.join(", ")))
}

/// Whole searches: files read, sequences filtered or all scored, domains, the table.
pub(crate) fn hmmer(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let scratch = Scratch::new(&bench.args.directory, FILES_BYTES)?;
    let inputs = inputs(bench, &scratch)?;
    Ok(vec![search(bench, &scratch, &inputs, false)?, search(bench, &scratch, &inputs, true)?])
}

/// One search, with filters or, with `max`, without.
fn search(
    bench: &Bench<'_>,
    scratch: &Scratch,
    (profile, database, generated): &(PathBuf, PathBuf, String),
    max: bool,
) -> Result<Row, Failure> {
    let table = scratch.path("table");
    let options = [
        ("profile", profile.display().to_string()),
        ("database", database.display().to_string()),
        ("table", scratch.path("hmmsearch.table").display().to_string()),
        ("filters", if max { "off" } else { "on" }.to_owned()),
    ];
    let [profile, database] = [profile, database].map(|path| Some(path.clone()));
    let args = Args { profile, database, output: Some(table.clone()), max, ..Args::default() };
    let runtime = bench.runtime(bench.threads(), None)?;
    let mut shape = Vec::new();
    let app = args.prepare(&runtime)?;
    let outcome = runtime.run(&app.job, bench.settings())?;
    // The table of another row may be there.
    if let Some(after) = &app.after {
        after(&outcome)?;
    }
    let checked = right(&app, &outcome)?;
    drop((outcome, app));
    let turn: Turn<'_> = Box::new(|| {
        let begin = Instant::now();
        let app = args.prepare(&runtime)?;
        let outcome = runtime.run(&app.job, bench.settings())?;
        if let Some(after) = &app.after {
            after(&outcome)?;
        }
        shape = app.shape;
        Ok(begin.elapsed().as_secs_f64())
    });
    let mut peers = [Contender::start(bench, "hmmsearch", if max { "hmmsearch --max" } else { "hmmsearch" }, &options)];
    let rounds = bench.args.rounds.min(ROUNDS_MAX);
    let ours = alternate(bench, "hmmer", rounds, &mut [turn], &mut peers)?.concat();
    let text = std::fs::read_to_string(&table).map_err(|e| Failure::Run(format!("{}: {e}", table.display())))?;
    let hits = text.lines().filter(|line| !line.starts_with('#')).count();
    let sizes: Vec<String> = shape.iter().map(|(name, size)| format!("{size} {name}")).collect();
    let mut notes = vec![format!("whole searches from files to the table: {}", sizes.join(", "))];
    notes.extend(Some(generated.clone()).filter(|text| !text.is_empty()));
    notes.push(checked);
    for peer in &peers {
        let Some(found) = peer.last["hits"].as_u64() else { continue };
        if found != hits as u64 {
            let label = peer.label();
            return Err(Failure::Run(format!("hmmer: {hits} hits here, {found} by {label}: not the same work")));
        }
        notes.push(format!("{hits} hits, as {}", peer.label()));
    }
    let (name, bar) = if max { ("hmmer-max", 2.0) } else { ("hmmer", 1.5) };
    Ok(Row::new(name, Unit::Seconds, ours, peers, Bar::RatioAtLeast(bar), notes))
}
