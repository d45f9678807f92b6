//! FASTA.

use super::lines::lines;
use super::source::Sequence;
use crate::error::{Error, Place};
use std::path::Path;

/// Sequences of equal length.
pub(crate) fn parse(file: &Path, bytes: &[u8]) -> Result<Vec<Sequence>, Error> {
    let mut sequences: Vec<Sequence> = Vec::new();
    for (number, line) in lines(bytes) {
        let fail = |column: usize, what: &str| Error::request(format!("{}: {what}", Place::new(file, number, column)));
        if let Some(head) = line.strip_prefix(b">") {
            let head = std::str::from_utf8(head).map_err(|e| fail(e.valid_up_to() + 2, "the name is not UTF-8"))?;
            let name = head.split_whitespace().next().ok_or_else(|| fail(2, "a sequence without a name"))?;
            let mut sequence = Sequence::new(name, number, 0);
            sequence.title = Some(head.trim()).filter(|head| *head != name).map(str::to_owned);
            sequences.last_mut().into_iter().for_each(Sequence::end);
            sequences.push(sequence);
        } else if line.starts_with(b";") {
            continue;
        } else if let Some(sequence) = sequences.last_mut() {
            sequence.push(line, number, 1).map_err(|column| fail(column, "a character that is no letter"))?;
        } else if !line.trim_ascii().is_empty() {
            return Err(fail(1, "a FASTA file begins with '>' and a name"));
        }
    }
    let Some(first) = sequences.first() else {
        return Err(Error::request(format!("{}: there is no sequence: no line begins with '>'", file.display())));
    };
    if let Some(other) = sequences.iter().find(|s| s.letters.len() != first.letters.len()) {
        return Err(Error::request(format!(
            "{}: sequence {} has {} letters, but {} (line {}) has {}: aligned sequences are of one length",
            Place::new(file, other.line, 1),
            other.name,
            other.letters.len(),
            first.name,
            first.line,
            first.letters.len()
        )));
    }
    Ok(sequences)
}
