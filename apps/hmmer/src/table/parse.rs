//! Reading a table back: HMMER's or our own.

use super::rows::{Row, Scored};

/// A table that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the table: {reason}")]
pub struct TableError {
    /// The line, counted from 1.
    pub line: usize,
    /// What was expected and what was found.
    pub reason: String,
}

/// Fields before the description.
const FIELDS: usize = 18;

/// The rows of a table in the layout of `--tblout`. Lines that begin with `#` are skipped.
///
/// # Errors
/// When a line has too few fields, or one that is no number where a number belongs.
pub fn parse(text: &str) -> Result<Vec<Row>, TableError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|(i, line)| row(line).map_err(|reason| TableError { line: i + 1, reason })).collect()
}

fn row(line: &str) -> Result<Row, String> {
    let mut rest = line;
    let mut fields = [""; FIELDS];
    for (found, field) in fields.iter_mut().enumerate() {
        rest = rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        (*field, rest) = rest.split_at(end);
        if field.is_empty() {
            return Err(format!("{FIELDS} fields and a description are expected, found {found}"));
        }
    }
    let real = |i: usize| -> Result<f64, String> {
        fields[i].parse().map_err(|_| format!("field {} must be a number, found '{}'", i + 1, fields[i]))
    };
    let count = |i: usize| -> Result<u32, String> {
        fields[i].parse().map_err(|_| format!("field {} must be a count, found '{}'", i + 1, fields[i]))
    };
    let scored = |i: usize| -> Result<Scored, String> {
        Ok(Scored { evalue: real(i)?, score: real(i + 1)?, bias: real(i + 2)? })
    };
    Ok(Row {
        target: fields[0].to_owned(),
        target_accession: fields[1].to_owned(),
        query: fields[2].to_owned(),
        query_accession: fields[3].to_owned(),
        full: scored(4)?,
        best: scored(7)?,
        expected: real(10)?,
        regions: count(11)?,
        clustered: count(12)?,
        overlaps: count(13)?,
        envelopes: count(14)?,
        domains: count(15)?,
        reported: count(16)?,
        included: count(17)?,
        // One space parts the description from the counts; more are its own.
        description: rest.strip_prefix(' ').unwrap_or(rest).to_owned(),
    })
}
