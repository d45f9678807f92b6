//! The text of a table.

use super::number::general;
use super::rows::Row;
use std::io::{self, Write};

/// Least width of a name.
const NAME_WIDTH: usize = 20;
/// Least width of an accession.
const ACCESSION_WIDTH: usize = 10;

/// Widths of the columns that depend on the rows.
struct Widths {
    target: usize,
    target_accession: usize,
    query: usize,
    query_accession: usize,
}

impl Widths {
    fn of(rows: &[Row], query: &str, accession: &str) -> Self {
        let longest =
            |column: fn(&Row) -> &str, least: usize| rows.iter().map(|r| column(r).len()).fold(least, usize::max);
        Self {
            target: longest(|row| &row.target, NAME_WIDTH),
            target_accession: longest(|row| &row.target_accession, ACCESSION_WIDTH),
            query: query.len().max(NAME_WIDTH),
            query_accession: accession.len().max(ACCESSION_WIDTH),
        }
    }
}

/// Writes the three lines above the rows of a table, as wide as these rows of the first query are.
///
/// # Errors
/// When writing fails.
pub fn write_header(out: &mut impl Write, rows: &[Row], query: &str, accession: Option<&str>) -> io::Result<()> {
    let w = Widths::of(rows, query, accession.unwrap_or("-"));
    let blank = w.target + w.query + w.target_accession + w.query_accession + 2;
    let groups = ["--- full sequence ----", "--- best 1 domain ----", "--- domain number estimation ----"];
    writeln!(out, "#{:blank$} {:>22} {:>22} {:>33}", "", groups[0], groups[1], groups[2])?;
    let titles = ["  E-value", " score", " bias", "  E-value", " score", " bias", "exp"];
    let counts = ["reg", "clu", " ov", "env", "dom", "rep", "inc"];
    let names = [" target name", "accession", "query name", "accession"];
    let dashes = ["-------------------", "----------", "--------------------", "----------"];
    let rules = ["---------", "------", "-----", "---------", "------", "-----", "---"];
    let mut line = |names: [&str; 4], left: bool, titles: [&str; 7], counts: [&str; 7], last: &str| -> io::Result<()> {
        let widths = [w.target - 1, w.target_accession, w.query, w.query_accession];
        write!(out, "#")?;
        for (name, width) in names.iter().zip(widths) {
            if left { write!(out, "{name:<width$} ")? } else { write!(out, "{name:>width$} ")? }
        }
        for (title, width) in titles.iter().zip([9, 6, 5, 9, 6, 5, 5]) {
            write!(out, "{title:>width$} ")?;
        }
        for count in counts {
            write!(out, "{count:>3} ")?;
        }
        writeln!(out, "{last}")
    };
    line(names, true, titles, counts, "description of target")?;
    line(dashes, false, rules, ["---"; 7], "---------------------")
}

/// Writes rows of one query.
///
/// # Errors
/// When writing fails.
pub fn write_rows(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let w = Widths::of(rows, &first.query, &first.query_accession);
    for row in rows {
        let names = [
            (&row.target, w.target),
            (&row.target_accession, w.target_accession),
            (&row.query, w.query),
            (&row.query_accession, w.query_accession),
        ];
        for (name, width) in names {
            write!(out, "{name:<width$} ")?;
        }
        for part in [row.full, row.best] {
            write!(out, "{:>9} {:6.1} {:5.1} ", general(part.evalue), part.score, part.bias)?;
        }
        write!(out, "{:5.1} ", row.expected)?;
        let counts = [row.regions, row.clustered, row.overlaps, row.envelopes, row.domains, row.reported, row.included];
        for count in counts {
            write!(out, "{count:>3} ")?;
        }
        writeln!(out, "{}", row.description)?;
    }
    Ok(())
}

/// What the last lines of a table say. They hold no date and no folder, so that equal runs give equal files.
#[derive(Clone, Copy, Debug)]
pub struct Footer<'a> {
    /// The file of profiles.
    pub query_file: &'a str,
    /// The file of sequences.
    pub target_file: &'a str,
    /// The command.
    pub options: &'a str,
}

/// Writes the last lines of a table.
///
/// # Errors
/// When writing fails.
pub fn write_footer(out: &mut impl Write, footer: Footer<'_>) -> io::Result<()> {
    writeln!(out, "#")?;
    writeln!(out, "# Program:         multigrain hmmer")?;
    writeln!(out, "# Version:         {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "# Pipeline mode:   SEARCH")?;
    writeln!(out, "# Query file:      {}", footer.query_file)?;
    writeln!(out, "# Target file:     {}", footer.target_file)?;
    writeln!(out, "# Option settings: {}", footer.options)?;
    writeln!(out, "# [ok]")
}
