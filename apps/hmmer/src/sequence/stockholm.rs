//! Stockholm: alignments, whose rows are sequences once their gaps are left out.

use super::codes::{CODES, OTHER, shown};
use super::text::Lines;
use super::{SequenceError, spill::Spill};
use crate::profile::alphabet::{GAP, MISSING};
use std::collections::HashMap;
use std::io::BufRead;

/// How a file of this format begins.
pub(super) const BEGIN: &[u8] = b"# STOCKHOLM 1.";

/// A row of an alignment, as far as it has been read.
#[derive(Default)]
struct Row {
    name: Vec<u8>,
    description: Vec<u8>,
    codes: Vec<u8>,
    columns: usize,
}

/// The rows in the order in which they are named first.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    places: HashMap<Vec<u8>, usize>,
}

impl Rows {
    fn row(&mut self, name: &[u8]) -> &mut Row {
        let next = self.rows.len();
        let place = *self.places.entry(name.to_vec()).or_insert(next);
        if place == next {
            self.rows.push(Row { name: name.to_vec(), ..Row::default() });
        }
        &mut self.rows[place]
    }
}

/// The first word, and what follows it and blanks.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

/// Appends the residue codes of all rows of all alignments to `residues`; one alignment at a time is in memory. The first
/// line of the first has been read. `ended` is told as by FASTA's parser.
pub(super) fn parse<R: BufRead>(
    mut lines: Lines<R>,
    residues: &mut Spill,
    mut ended: impl FnMut(&[u8], u64, bool) -> Result<(), SequenceError>,
) -> Result<(), SequenceError> {
    let path = lines.path();
    let wrong = |line: u64, reason: String| SequenceError::Alignment { path: path.clone(), line, reason };
    let mut rows = Rows::default();
    let (mut last, mut is_open) = (1, true);
    while let Some((number, line)) = lines.next()? {
        last = number;
        if line.trim_ascii().is_empty() || (line.starts_with(b"#") && !line.starts_with(b"#=GS") && is_open) {
            continue;
        }
        if !is_open {
            is_open = line.starts_with(BEGIN);
            match is_open {
                true => continue,
                false => {
                    return Err(wrong(number, format!("after // begins '# STOCKHOLM 1.0', found '{}'", shown(line))));
                }
            }
        }
        if line.trim_ascii() == b"//" {
            is_open = false;
            let rows = std::mem::take(&mut rows).rows;
            let columns = rows.iter().map(|row| row.columns).max().unwrap_or(0);
            if let Some(short) = rows.iter().find(|row| row.columns < columns) {
                let (name, short) = (shown(&short.name), short.columns);
                return Err(wrong(number, format!("row {name} has {short} columns, others have {columns}")));
            }
            for row in rows {
                let any = !row.codes.is_empty();
                residues.buffer().extend_from_slice(&row.codes);
                ended(&[&row.name[..], b" ", &row.description].concat(), residues.settle()?, any)?;
            }
            continue;
        }
        let (name, rest) = word(line);
        if name == b"#=GS" {
            let (name, rest) = word(rest);
            let (feature, text) = word(rest);
            if feature == b"DE" {
                let description = &mut rows.row(name).description;
                if !description.is_empty() {
                    description.push(b' ');
                }
                description.extend_from_slice(text);
            }
            continue;
        }
        let begin = line.len() - line.trim_ascii_start().len() + name.len();
        let row = rows.row(name);
        for (column, &symbol) in line.iter().enumerate().skip(begin) {
            match CODES[usize::from(symbol)] {
                _ if symbol.is_ascii_whitespace() => continue,
                _ if symbol == b'-' => {}
                OTHER => {
                    let (path, line, column) = (path.clone(), number, column + 1);
                    let (symbol, name) = (shown(&[symbol]), shown(name));
                    let advice = "a row has letters, '*', and gaps: '-', '.', '_' and '~'";
                    return Err(SequenceError::Symbol { path, line, column, symbol, name, advice });
                }
                GAP | MISSING => {}
                code => row.codes.push(code),
            }
            row.columns += 1;
        }
    }
    if is_open {
        return Err(wrong(
            last,
            "the file ends before the // that ends an alignment; it may have been cut short".to_owned(),
        ));
    }
    Ok(())
}
