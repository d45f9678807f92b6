//! The report: hits, their domains and alignments, in the layout of hmmsearch's output.

use super::number::general;
use super::rows::{DomainRow, Row, Rows};
use crate::domain::{Column, Step};
use crate::profile::Profile;
use crate::profile::alphabet::{SYMBOLS, code};
use std::io::{self, Write};

/// Columns of text that a line has at most, where names and numbers leave as many.
const LINE: usize = 120;
/// Columns of an alignment that a line has at least.
const ALIGNED_MIN: usize = 40;
/// Columns of a description that are shown at least.
const DESCRIPTION_MIN: usize = 32;
/// What a line of a hit has beside the sequence's name and description.
const HIT: usize = 61;
/// What the line above its domains has beside them.
const TITLE: usize = 5;

/// A posterior probability in one symbol: its first decimal, rounded, and `*` from 0.95 on.
pub(super) fn digit(probability: f32) -> u8 {
    let rounded = f64::from(probability) + 0.05;
    if rounded >= 1.0 { b'*' } else { b'0' + (rounded * 10.0) as u8 }
}

/// The symbol of a residue: capital at a match state, small at an insert state.
pub(super) fn symbol(column: &Column) -> u8 {
    let symbol = SYMBOLS[usize::from(column.code)];
    match column.step {
        Step::Match => symbol.to_ascii_uppercase(),
        Step::Insert => symbol.to_ascii_lowercase(),
        Step::Delete => b'-',
    }
}

/// Writes the first lines of a report: what was searched with what. Files are named without their folders.
///
/// # Errors
/// When writing fails.
pub fn write_report_header(out: &mut impl Write, query: &str, target: &str, options: &str) -> io::Result<()> {
    const RULE: &str = "# - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -";
    writeln!(out, "# multigrain hmmer :: search profile(s) against a sequence database")?;
    writeln!(out, "# Multigrain {}; the layout is that of hmmsearch", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "{RULE}")?;
    writeln!(out, "# query HMM file:                  {query}")?;
    writeln!(out, "# target sequence database:        {target}")?;
    writeln!(out, "# options:                         {options}")?;
    writeln!(out, "{RULE}\n")
}

/// Writes what was found with a profile in `sequences` sequences of `residues` residues in all. Domains are those whose
/// alignments are known.
///
/// # Errors
/// When writing fails.
pub fn write_report(
    out: &mut impl Write,
    profile: &Profile,
    rows: &Rows,
    (sequences, residues): (u64, u64),
) -> io::Result<()> {
    writeln!(out, "Query:       {}  [M={}]", profile.name, profile.nodes())?;
    if let Some(accession) = &profile.accession {
        writeln!(out, "Accession:   {accession}")?;
    }
    if let Some(description) = &profile.description {
        writeln!(out, "Description: {description}")?;
    }
    write_hits(out, rows)?;
    writeln!(out, "\n\nDomain annotation for each sequence (and alignments):")?;
    if rows.hits.is_empty() {
        writeln!(out, "\n   [No targets detected that satisfy reporting thresholds]")?;
    }
    for (place, hit) in rows.hits.iter().enumerate() {
        let first = rows.domains.partition_point(|domain| domain.hit < place);
        let last = rows.domains.partition_point(|domain| domain.hit <= place);
        write_domains_of(out, profile, hit, &rows.domains[first..last])?;
    }
    writeln!(out, "\n\nInternal pipeline statistics summary:\n-------------------------------------")?;
    writeln!(out, "Query model(s):              {:>15}  ({} nodes)", 1, profile.nodes())?;
    writeln!(out, "Target sequences:            {sequences:>15}  ({residues} residues searched)")?;
    writeln!(out, "Initial search space (Z):    {:>15}", rows.targets)?;
    writeln!(out, "Domain search space  (domZ): {:>15}", rows.domain_targets)?;
    writeln!(out, "//")
}

fn write_hits(out: &mut impl Write, rows: &Rows) -> io::Result<()> {
    let width = rows.hits.iter().map(|hit| hit.target.len()).fold("Sequence".len(), usize::max);
    let described = LINE.saturating_sub(width + HIT).max(DESCRIPTION_MIN);
    writeln!(out, "Scores for complete sequences (score includes all domains):")?;
    writeln!(out, "   --- full sequence ---   --- best 1 domain ---    -#dom-")?;
    let mut line = |titles: [&str; 6], counts: [&str; 2], name: &str, last: &str| {
        let [a, b, c, d, e, f] = titles;
        let [expected, number] = counts;
        writeln!(out, "  {a:>9} {b:>6} {c:>5}  {d:>9} {e:>6} {f:>5}  {expected:>5} {number:>2}  {name:<width$} {last}")
    };
    let titles = ["E-value", " score", " bias", "E-value", " score", " bias"];
    line(titles, ["exp", "N"], "Sequence", "Description")?;
    let rules = ["-------", "------", "-----", "-------", "------", "-----"];
    line(rules, ["----", "--"], "--------", "-----------")?;
    for (place, hit) in rows.hits.iter().enumerate() {
        if place == rows.significant {
            writeln!(out, "  ------ inclusion threshold ------")?;
        }
        for part in [hit.full, hit.best] {
            write!(out, "  {:>9} {:6.1} {:5.1}", general(part.evalue), part.score, part.bias)?;
        }
        let description: String = described_as(hit).chars().take(described).collect();
        // Two blanks, though the titles are one apart: so hmmsearch has it.
        writeln!(out, "  {:5.1} {:2}  {:<width$}  {description}", hit.expected, hit.reported, hit.target)?;
    }
    if rows.hits.is_empty() {
        writeln!(out, "\n   [No hits detected that satisfy reporting thresholds]")?;
    }
    Ok(())
}

/// The description of a hit's sequence; tables show none as `-`.
pub(super) fn described_as(hit: &Row) -> &str {
    if hit.description == "-" { "" } else { &hit.description }
}

fn write_domains_of(out: &mut impl Write, profile: &Profile, hit: &Row, domains: &[DomainRow]) -> io::Result<()> {
    let described = LINE.saturating_sub(hit.target.len() + TITLE).max(DESCRIPTION_MIN);
    let description: String = described_as(hit).chars().take(described).collect();
    writeln!(out, ">> {}  {description}", hit.target)?;
    if domains.is_empty() {
        return writeln!(
            out,
            "   [No individual domains that satisfy reporting thresholds (although complete target did)]\n"
        );
    }
    let coordinates = "hmmfrom  hmm to    alifrom  ali to    envfrom  env to     acc";
    writeln!(out, "   #    score  bias  c-Evalue  i-Evalue {coordinates}")?;
    writeln!(
        out,
        " ---   ------ ----- --------- --------- ------- -------    ------- -------    ------- -------    ----"
    )?;
    for domain in domains {
        let mark = if domain.is_significant { '!' } else { '?' };
        write!(out, " {:3} {mark} {:6.1} {:5.1} ", domain.number, domain.domain.score, domain.domain.bias)?;
        write!(out, "{:>9} {:>9}", general(domain.conditional), general(domain.domain.evalue))?;
        let length = domain.length as usize;
        let spans =
            [(domain.aligned.nodes, profile.nodes()), (domain.aligned.residues, length), (domain.envelope, length)];
        for ((from, to), end) in spans {
            let open = if from == 1 { '[' } else { '.' };
            let close = if to == end { ']' } else { '.' };
            write!(out, " {from:7} {to:7} {open}{close}")?;
        }
        writeln!(out, " {:4.2}", domain.accuracy())?;
    }
    writeln!(out, "\n  Alignments for each domain:")?;
    for domain in domains {
        let (score, evalue) = (domain.domain.score, general(domain.conditional));
        writeln!(out, "  == domain {}  score: {score:.1} bits;  conditional E-value: {evalue}", domain.number)?;
        write_alignment(out, profile, &hit.target, domain)?;
        writeln!(out)?;
    }
    Ok(())
}

/// A line of an alignment: a symbol for each column.
fn line(columns: &[Column], node: usize, of: impl Fn(&Column, usize) -> u8) -> String {
    let mut node = node;
    let symbols = columns.iter().map(|column| {
        let symbol = of(column, node - 1);
        node += usize::from(column.step != Step::Insert);
        char::from(symbol)
    });
    symbols.collect()
}

fn write_alignment(out: &mut impl Write, profile: &Profile, target: &str, domain: &DomainRow) -> io::Result<()> {
    let (aligned, noted) = (&domain.aligned, &profile.annotation);
    let (mut node, mut residue) = (aligned.nodes.0, aligned.residues.0);
    let names = profile.name.len().max(target.len());
    let numbers = aligned.nodes.1.max(aligned.residues.1).to_string().len();
    let margin = names + numbers + 1;
    let width = LINE.saturating_sub(names + 2 * numbers + 5);
    let width = if width < aligned.columns.len() { width.max(ALIGNED_MIN) } else { width };
    for (block, columns) in aligned.columns.chunks(width).enumerate() {
        if block > 0 {
            writeln!(out)?;
        }
        let at_nodes = |symbols: &[u8]| {
            line(columns, node, |column, k| if column.step == Step::Insert { b'.' } else { symbols[k] })
        };
        let nodes = columns.iter().filter(|column| column.step != Step::Insert).count();
        let residues = columns.iter().filter(|column| column.step != Step::Delete).count();
        for (symbols, name) in [(&noted.structure, "CS"), (&noted.reference, "RF"), (&noted.mask, "MM")] {
            if let Some(symbols) = symbols {
                writeln!(out, "  {:margin$} {} {name}", "", at_nodes(symbols))?;
            }
        }
        let consensus = at_nodes(&noted.consensus);
        // An alignment has a match state, so counts of residues and nodes are those of lines, which may lack either.
        writeln!(out, "  {:>names$} {node:>numbers$} {consensus} {:<numbers$}", profile.name, node + nodes - 1)?;
        let alike = line(columns, node, |column, k| match column.step {
            Step::Match if code(noted.consensus[k]) == Some(column.code) => noted.consensus[k],
            Step::Match if column.is_preferred => b'+',
            _ => b' ',
        });
        writeln!(out, "  {:margin$} {alike}", "")?;
        let letters = line(columns, node, |column, _| symbol(column));
        match residues {
            0 => writeln!(out, "  {target:>names$} {:>numbers$} {letters} {:>numbers$}", "-", "-")?,
            _ => {
                writeln!(out, "  {target:>names$} {residue:>numbers$} {letters} {:<numbers$}", residue + residues - 1)?
            }
        }
        let sure = line(columns, node, |column, _| match column.step {
            Step::Delete => b'.',
            _ => digit(column.probability),
        });
        writeln!(out, "  {:margin$} {sure} PP", "")?;
        node += nodes;
        residue += residues;
    }
    Ok(())
}
