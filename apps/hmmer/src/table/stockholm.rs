//! The significant domains below each other, a column a node, in Stockholm format.

use super::report::{described_as, digit, symbol};
use super::rows::{DomainRow, Rows};
use crate::domain::{Column, Step};
use crate::profile::Profile;
use std::io::{self, Write};

/// Columns of a block.
const BLOCK: usize = 200;

/// A line of residues and one of probabilities, as long as the alignment is.
struct Line {
    letters: Vec<u8>,
    probabilities: Vec<u8>,
}

/// Writes the alignment of the significant domains whose alignments are known, and returns how many there are; nothing where
/// there are none. Residues at a match state are in the column of its node, those between two nodes in columns between
/// them: the first half to the left, the others to the right.
///
/// # Errors
/// When writing fails.
pub fn write_stockholm(out: &mut impl Write, profile: &Profile, rows: &Rows) -> io::Result<usize> {
    let domains: Vec<&DomainRow> = rows.domains.iter().filter(|domain| domain.is_significant).collect();
    if domains.is_empty() {
        return Ok(0);
    }
    let nodes = profile.nodes();
    // The most residues that any domain has between a node and the next.
    let mut between = vec![0; nodes + 1];
    for domain in &domains {
        for (after, inserted) in runs(domain) {
            between[after] = between[after].max(inserted.len());
        }
    }
    let mut reference = Vec::new();
    for &width in &between[1..] {
        reference.push(b'x');
        reference.resize(reference.len() + width, b'.');
    }
    let sure = mean_probabilities(&domains, &between, &reference);

    let name = |domain: &DomainRow| {
        let (from, to) = domain.aligned.residues;
        format!("{}/{from}-{to}", rows.hits[domain.hit].target)
    };
    let width = domains.iter().map(|domain| name(domain).len()).max().unwrap_or(0);
    // "#=GR NAME PP", "#=GC PP_cons"
    let margin = (width + 8).max(12);
    writeln!(out, "# STOCKHOLM 1.0\n#=GF ID {}", profile.name)?;
    if let Some(accession) = &profile.accession {
        writeln!(out, "#=GF AC {accession}")?;
    }
    if let Some(description) = &profile.description {
        writeln!(out, "#=GF DE {description}")?;
    }
    writeln!(out, "#=GF AU multigrain hmmer {}\n", env!("CARGO_PKG_VERSION"))?;
    for domain in &domains {
        let (hit, name) = (&rows.hits[domain.hit], name(domain));
        if hit.target_accession != "-" {
            writeln!(out, "#=GS {name:<width$} AC {}", hit.target_accession)?;
        }
    }
    if domains.iter().any(|domain| rows.hits[domain.hit].target_accession != "-") {
        writeln!(out)?;
    }
    for domain in &domains {
        let (hit, name) = (&rows.hits[domain.hit], name(domain));
        let described = match described_as(hit) {
            "" => &hit.target,
            description => description,
        };
        writeln!(out, "#=GS {name:<width$} DE [subseq from] {described}")?;
    }
    for first in (0..reference.len()).step_by(BLOCK) {
        let block = first..(first + BLOCK).min(reference.len());
        let text = |line: &[u8]| String::from_utf8_lossy(&line[block.clone()]).into_owned();
        writeln!(out)?;
        // Lines are made again for every block: all of them together may be longer than memory.
        for domain in &domains {
            let (line, name) = (spread(domain, &between), name(domain));
            writeln!(out, "{name:<margin$} {}", text(&line.letters))?;
            writeln!(out, "#=GR {name:<0$} PP {1}", margin - 8, text(&line.probabilities))?;
        }
        writeln!(out, "{:<margin$} {}", "#=GC PP_cons", text(&sure))?;
        writeln!(out, "{:<margin$} {}", "#=GC RF", text(&reference))?;
    }
    writeln!(out, "//")?;
    Ok(domains.len())
}

/// The residues between nodes, with the node before them.
fn runs(domain: &DomainRow) -> Vec<(usize, &[Column])> {
    let mut node = domain.aligned.nodes.0 - 1;
    let mut found = Vec::new();
    for run in domain.aligned.columns.chunk_by(|a, b| a.step == Step::Insert && b.step == Step::Insert) {
        if run[0].step == Step::Insert {
            found.push((node, run));
        } else {
            node += 1;
        }
    }
    found
}

/// The lines of a domain, given how many columns there are after each node.
fn spread(domain: &DomainRow, between: &[usize]) -> Line {
    let mut line = Line { letters: Vec::new(), probabilities: Vec::new() };
    let blank = |line: &mut Line, letter: u8, count: usize| {
        line.letters.resize(line.letters.len() + count, letter);
        line.probabilities.resize(line.probabilities.len() + count, b'.');
    };
    let put = |line: &mut Line, column: &Column| {
        line.letters.push(symbol(column));
        line.probabilities.push(if column.step == Step::Delete { b'.' } else { digit(column.probability) });
    };
    let mut inserted = runs(domain).into_iter().peekable();
    let at_nodes: Vec<&Column> = domain.aligned.columns.iter().filter(|c| c.step != Step::Insert).collect();
    let (first, last) = domain.aligned.nodes;
    for (node, &width) in between.iter().enumerate().skip(1) {
        match (first..=last).contains(&node) {
            true => put(&mut line, at_nodes[node - first]),
            false => blank(&mut line, b'-', 1),
        }
        let run = inserted.next_if(|(after, _)| *after == node).map_or(&[][..], |(_, run)| run);
        let (left, right) = run.split_at(run.len() / 2);
        left.iter().for_each(|column| put(&mut line, column));
        blank(&mut line, b'.', width - run.len());
        right.iter().for_each(|column| put(&mut line, column));
    }
    line
}

/// For each column of a node the mean of its residues' probabilities, as they are written.
fn mean_probabilities(domains: &[&DomainRow], between: &[usize], reference: &[u8]) -> Vec<u8> {
    let value = |symbol: u8| match symbol {
        b'*' => 1.0,
        digit => f64::from(f32::from(digit - b'0') / 10.0),
    };
    let mut sums = vec![(0.0, 0u32); reference.len()];
    for domain in domains {
        let line = spread(domain, between);
        for ((sum, count), &symbol) in sums.iter_mut().zip(&line.probabilities).filter(|(_, symbol)| **symbol != b'.') {
            *sum += value(symbol);
            *count += 1;
        }
    }
    let mean = |((sum, count), &node): ((f64, u32), &u8)| match node {
        b'.' => b'.',
        _ if count == 0 => b'.',
        _ => digit((sum / f64::from(count)) as f32),
    };
    sums.into_iter().zip(reference).map(mean).collect()
}
