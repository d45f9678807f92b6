//! `multigrain bench papers`: published figures beside simulated ones.
//!
//! The models and their constants are the simulator's (`crates/sim/PAPERS.md`); here they are printed and drawn.

mod figures;
mod levels;
mod scaling;

use super::check_folder;
use multigrain_console::Failure;
use multigrain_console::table;
use multigrain_console::write_whole;
use multigrain_sim::papers::spufs::Variation;
use multigrain_sim::papers::{Row, Use, blade, errors, raxml, spufs};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// All rows.
fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = blade::rows().map_err(failed)?;
    rows.extend(raxml::rows().map_err(failed)?);
    rows.extend(spufs::rows().map_err(failed)?);
    rows.extend(levels::rows()?);
    Ok(rows)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(format!("a published machine cannot be simulated: {error}"))
}

/// How applications scale: draws the figures into `folder` if there is one, and gives text and JSON.
pub(super) fn scaling(folder: Option<&Path>) -> Result<(String, Value), Failure> {
    check_folder(folder)?;
    let curves = scaling::curves()?;
    let mut written = Vec::new();
    let mut text = String::new();
    for curve in &curves {
        if let Some(folder) = folder {
            let path = folder.join(curve.file());
            write_whole(&path, &curve.figure().svg())?;
            written.push(path.display().to_string());
        }
        text += &table::render(&curve.lines(), 0);
        text.push('\n');
    }
    if !written.is_empty() {
        let _ = writeln!(text, "figures: {}", written.join(", "));
    }
    Ok((text, json!({ "curves": curves.iter().map(scaling::Curve::object).collect::<Vec<_>>(), "figures": written })))
}

/// Simulates, draws the figures into `folder` if there is one, and gives text and JSON.
pub(super) fn papers(folder: Option<&Path>) -> Result<(String, Value), Failure> {
    check_folder(folder)?;
    let rows = rows()?;
    let mut written = Vec::new();
    if let Some(folder) = folder {
        for (name, figure) in figures::all(&rows)? {
            let path = folder.join(name);
            write_whole(&path, &figure.svg())?;
            written.push(path.display().to_string());
        }
    }
    let summary = summary(&rows);
    let mut text = text(&rows, &summary);
    let (spread, cures) = (spufs::spread().map_err(failed)?, spufs::cures().map_err(failed)?);
    text += &variations("Merino-Vidal et al., 12 tasks in turns, assumed constants", &spread);
    text += &variations("Merino-Vidal et al., 12 tasks in turns, cures", &cures);
    if !written.is_empty() {
        let _ = writeln!(text, "figures: {}", written.join(", "));
    }
    let summary: Vec<Value> = summary.iter().map(Summary::object).collect();
    let value = json!({
        "rows": rows.iter().map(object).collect::<Vec<_>>(),
        "errors": summary,
        "contexts": { "spread": varied(&spread), "cures": varied(&cures) },
        "figures": written,
    });
    Ok((text, value))
}

/// For people: what comes of things that are varied.
fn variations(title: &str, variations: &[Variation]) -> String {
    let mut lines = vec![[title, "wall time, s", "switches", "last start, s"].map(str::to_owned).to_vec()];
    lines.extend(variations.iter().map(|Variation { name, figures: f }| {
        vec![name.clone(), figure(f.wall), figure(f.switches), figure(f.last_start)]
    }));
    format!("\n{}", table::render(&lines, 2))
}

/// For programs.
fn varied(variations: &[Variation]) -> Vec<Value> {
    let object = |Variation { name, figures: f }: &Variation| {
        let (wall, start) = (f.wall, f.last_start);
        json!({ "name": name, "wall_seconds": wall, "switches": f.switches, "last_start_seconds": start })
    };
    variations.iter().map(object).collect()
}

/// Errors of some rows together.
struct Summary {
    table: String,
    usage: Use,
    rows: usize,
    /// How many rows of the table and use are left out, since their figures cannot follow from published constants.
    left_out: usize,
    median: f64,
    worst: f64,
}

impl Summary {
    fn object(&self) -> Value {
        let Summary { table, usage, rows, left_out, median, worst } = self;
        json!({
            "table": table,
            "use": usage,
            "rows": rows,
            "left_out": left_out,
            "median_error": median,
            "worst_error": worst,
        })
    }
}

/// For each table, and for all tables together, the rows that were fitted and those that were predicted: all of them, and
/// where there are figures that cannot follow from the constants published with them, those that can.
fn summary(rows: &[Row]) -> Vec<Summary> {
    let mut tables: Vec<&str> = rows.iter().map(|row| row.table.as_str()).collect();
    tables.dedup();
    // A paper of several tables has a line for all of them as well.
    let paper = |table: &str| table.split(", table").next().unwrap_or(table).to_owned();
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for &table in &tables {
        groups.push((table.to_owned(), vec![table]));
        let of_paper: Vec<&str> = tables.iter().copied().filter(|other| paper(other) == paper(table)).collect();
        if of_paper.len() > 1 && of_paper.last() == Some(&table) {
            groups.push((paper(table), of_paper));
        }
    }
    groups.push(("all".to_owned(), tables.clone()));
    let mut all = Vec::new();
    for ((name, tables), usage) in groups.iter().flat_map(|group| [(group, Use::Fit), (group, Use::Predict)]) {
        let of = |row: &&Row| row.usage == usage && tables.contains(&row.table.as_str());
        let every: Vec<&Row> = rows.iter().filter(of).collect();
        let follow: Vec<&Row> = every.iter().filter(|row| row.follows).copied().collect();
        let without = (follow.len() < every.len()).then_some(&follow);
        for some in [Some(&every), without].into_iter().flatten() {
            if let Some((median, worst)) = errors(some.iter().copied()) {
                let (table, left_out) = (name.clone(), every.len() - some.len());
                all.push(Summary { table, usage, rows: some.len(), left_out, median, worst });
            }
        }
    }
    all
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

fn name(usage: Use) -> String {
    match usage {
        Use::Fit => "fit".into(),
        Use::Predict => "predict".into(),
    }
}

/// For people.
fn text(rows: &[Row], summary: &[Summary]) -> String {
    let title = ["figure", "published", "simulated", "unit", "error", "use"];
    let (mut text, mut table) = (String::new(), String::new());
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut notes = String::new();
    let mut end = |lines: &mut Vec<Vec<String>>, notes: &mut String| {
        if !lines.is_empty() {
            text += &table::render(lines, 2);
            text += notes;
            text.push('\n');
        }
        lines.clear();
        notes.clear();
    };
    for row in rows {
        if row.table != table {
            end(&mut lines, &mut notes);
            table.clone_from(&row.table);
            lines.push(title.map(str::to_owned).to_vec());
            lines[0][0].clone_from(&table);
        }
        lines.push(vec![
            row.row.clone(),
            figure(row.published),
            row.simulated.map_or_else(|| "-".into(), figure),
            row.unit.to_owned(),
            row.error().map(percent).unwrap_or_default(),
            name(row.usage),
        ]);
        if let Some(note) = &row.note {
            let _ = writeln!(notes, "  {}: {note}", row.row);
        }
    }
    end(&mut lines, &mut notes);
    let mut lines = vec![["errors", "use", "rows", "median", "worst", ""].map(str::to_owned).to_vec()];
    for s in summary {
        let error = |error: f64| format!("{:.1} %", 100.0 * error);
        let without = match s.left_out {
            0 => String::new(),
            n => {
                format!("without {n} that do not follow from the constants published with them, for the reasons above")
            }
        };
        lines.push(vec![s.table.clone(), name(s.usage), s.rows.to_string(), error(s.median), error(s.worst), without]);
    }
    text + &table::render(&lines, 2)
}

/// Four digits that count.
fn figure(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

/// For programs.
fn object(row: &Row) -> Value {
    let mut value = json!({
        "table": row.table,
        "row": row.row,
        "unit": row.unit,
        "published": row.published,
        "simulated": row.simulated,
        "error": row.error(),
        "use": row.usage,
        "follows": row.follows,
    });
    if let Some(note) = &row.note {
        value["note"] = json!(note);
    }
    value
}
