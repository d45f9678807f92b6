//! FASTA: a line `>NAME DESCRIPTION`, then lines of residues; blanks and case do not matter.

use super::codes::{CODES, OTHER, shown};
use super::stockholm;
use super::text::Lines;
use super::{SequenceError, spill::Spill};
use std::io::BufRead;

/// Appends the residue codes of all sequences to `residues`. `ended` is told, after each sequence, its header, how many
/// residues there are so far, and whether some are its own.
pub(super) fn parse<R: BufRead>(
    mut lines: Lines<R>,
    residues: &mut Spill,
    mut ended: impl FnMut(&[u8], u64, bool) -> Result<(), SequenceError>,
) -> Result<(), SequenceError> {
    let path = lines.path();
    // Empty before the first one.
    let mut header = Vec::new();
    // Residues when the current sequence began.
    let mut begin = residues.settle()?;
    let mut end = |header: &[u8], residues: &mut Spill, ended: &mut dyn FnMut(&[u8], u64, bool) -> _| {
        let now = residues.settle()?;
        let any = now > begin;
        begin = now;
        ended(header, now, any)
    };
    while let Some((number, line)) = lines.next()? {
        if let Some(text) = line.strip_prefix(b">") {
            if !header.is_empty() {
                end(&header, residues, &mut ended)?;
            }
            let text = text.trim_ascii_start();
            if text.is_empty() {
                return Err(SequenceError::NoName { path: path.clone(), line: number });
            }
            header.clear();
            header.extend_from_slice(text);
            continue;
        }
        if !header.is_empty() {
            append(line, residues.buffer()).map_err(|column| {
                let (symbol, advice) = advice(line[column]);
                let name = shown(name(&header));
                SequenceError::Symbol { path: path.clone(), line: number, column: column + 1, symbol, name, advice }
            })?;
            // One sequence may be longer than memory.
            residues.settle()?;
        } else if line.starts_with(stockholm::BEGIN) {
            return stockholm::parse(lines, residues, ended);
        } else if !line.trim_ascii().is_empty() {
            return Err(SequenceError::NoHeader { path: path.clone(), line: number, found: shown(line) });
        }
    }
    match header.is_empty() {
        false => end(&header, residues, &mut ended),
        true => Err(SequenceError::None { path }),
    }
}

/// Appends a line's residue codes; blanks are left out. An error is the place of a byte that is neither.
fn append(line: &[u8], codes: &mut Vec<u8>) -> Result<(), usize> {
    let before = codes.len();
    codes.extend(line.iter().map(|&byte| CODES[usize::from(byte)]));
    if codes[before..].iter().fold(0, |all, code| all | code) & OTHER == 0 {
        return Ok(());
    }
    codes.truncate(before);
    for (column, &byte) in line.iter().enumerate() {
        match CODES[usize::from(byte)] {
            OTHER if byte == b' ' || byte == b'\t' => {}
            OTHER => return Err(column),
            code => codes.push(code),
        }
    }
    Ok(())
}

/// The symbol as it is shown, and what can be done about it.
fn advice(symbol: u8) -> (String, &'static str) {
    let advice = match symbol {
        b'-' => "gaps belong to alignments: give the sequences without them",
        _ => "the letters A to Z, '*', '.', '_' and '~' are taken, in either case",
    };
    (shown(&[symbol]), advice)
}

/// The name in a header: all before the first blank.
pub(super) fn name(header: &[u8]) -> &[u8] {
    header.split(|b| b.is_ascii_whitespace()).next().unwrap_or(header)
}

/// The description in a header: what follows the name and blanks.
pub(super) fn description(header: &[u8]) -> &[u8] {
    header[name(header).len()..].trim_ascii_start()
}
