//! The text of a table.

use super::number::general;
use super::rows::{Row, Rows};
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

/// Writes the three lines above the rows of a table of domains, in the layout of hmmsearch's `--domtblout`, as wide as
/// these rows of the first query are.
///
/// # Errors
/// When writing fails.
pub fn write_domain_header(out: &mut impl Write, rows: &[Row], query: &str, accession: Option<&str>) -> io::Result<()> {
    let w = Widths::of(rows, query, accession.unwrap_or("-"));
    let blank = w.target + w.query + w.target_accession + w.query_accession + 14;
    let groups =
        ["--- full sequence ---", "-------------- this domain -------------", "hmm coord", "ali coord", "env coord"];
    writeln!(
        out,
        "#{:blank$} {:>22} {:>40} {:>11} {:>11} {:>11}",
        "", groups[0], groups[1], groups[2], groups[3], groups[4]
    )?;
    let mut line =
        |names: [&str; 4], left: bool, lengths: [&str; 2], titles: [&str; 17], last: &str| -> io::Result<()> {
            let widths = [w.target - 1, w.target_accession, w.query, w.query_accession];
            write!(out, "#")?;
            for (i, (name, width)) in names.iter().zip(widths).enumerate() {
                if left {
                    write!(out, "{name:<width$} ")?
                } else {
                    write!(out, "{name:>width$} ")?
                }
                if i % 2 == 1 {
                    write!(out, "{:>5} ", lengths[i / 2])?;
                }
            }
            for (title, width) in titles.iter().zip([9, 6, 5, 3, 3, 9, 9, 6, 5, 5, 5, 5, 5, 5, 5, 4]) {
                write!(out, "{title:>width$} ")?;
            }
            writeln!(out, "{last}")
        };
    let titles = [
        "E-value", "score", "bias", "#", "of", "c-Evalue", "i-Evalue", "score", "bias", "from", "to", "from", "to",
        "from", "to", "acc", "",
    ];
    line(
        [" target name", "accession", "query name", "accession"],
        true,
        ["tlen", "qlen"],
        titles,
        "description of target",
    )?;
    let names = ["-------------------", "----------", "--------------------", "----------"];
    let dashes = titles.map(|title| match title {
        "E-value" | "c-Evalue" | "i-Evalue" => "---------",
        "score" => "------",
        "#" | "of" => "---",
        "acc" => "----",
        _ => "-----",
    });
    line(names, false, ["-----"; 2], dashes, "---------------------")
}

/// Writes the domains of the hits of one query, whose profile has `nodes` nodes.
///
/// # Errors
/// When writing fails.
pub fn write_domains(out: &mut impl Write, rows: &Rows, nodes: usize) -> io::Result<()> {
    let Some(first) = rows.hits.first() else { return Ok(()) };
    let w = Widths::of(&rows.hits, &first.query, &first.query_accession);
    for domain in &rows.domains {
        let hit = &rows.hits[domain.hit];
        let (target, target_accession, query, query_accession) =
            (w.target, w.target_accession, w.query, w.query_accession);
        write!(out, "{:<target$} {:<target_accession$} {:>5} ", hit.target, hit.target_accession, domain.length)?;
        write!(out, "{:<query$} {:<query_accession$} {nodes:>5} ", hit.query, hit.query_accession)?;
        write!(out, "{:>9} {:6.1} {:5.1} ", general(hit.full.evalue), hit.full.score, hit.full.bias)?;
        write!(out, "{:>3} {:>3} ", domain.number, hit.reported)?;
        write!(out, "{:>9} {:>9} ", general(domain.conditional), general(domain.domain.evalue))?;
        write!(out, "{:6.1} {:5.1} ", domain.domain.score, domain.domain.bias)?;
        for (from, to) in [domain.aligned.nodes, domain.aligned.residues, domain.envelope] {
            write!(out, "{from:>5} {to:>5} ")?;
        }
        writeln!(out, "{:4.2} {}", domain.accuracy(), hit.description)?;
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
