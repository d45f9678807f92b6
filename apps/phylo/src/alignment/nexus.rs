//! NEXUS (Maddison, Swofford and Maddison 1997): the matrix of a DATA or CHARACTERS block, sequential or interleaved.
//!
//! Comments are blanked out before anything is looked at, so that everything keeps its line and column. What `GAP`,
//! `MISSING` and `MATCHCHAR` name becomes `-`, `?` and the letter of the first sequence.

use super::source::Sequence;
use crate::error::{Error, Place};
use std::collections::HashMap;
use std::path::Path;

/// How a file begins, in either case.
pub(crate) const BEGINS: &[u8] = b"#NEXUS";

/// The text with comments (which may be nested) blanked out.
pub(crate) fn without_comments(text: &str) -> String {
    let (mut depth, mut is_quoted) = (0, false);
    let mut blanked = String::with_capacity(text.len());
    for c in text.chars() {
        is_quoted ^= c == '\'' && depth == 0;
        depth += i32::from(c == '[' && !is_quoted);
        // As many bytes as there were, so that slices of the result tell places in the text.
        match depth > 0 && c != '\n' {
            true => blanked.extend(std::iter::repeat_n(' ', c.len_utf8())),
            false => blanked.push(c),
        }
        depth -= i32::from(c == ']' && depth > 0);
    }
    blanked
}

/// The statements behind the first word, each without its semicolon.
pub(crate) fn statements(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim_start();
    let text = text.get(BEGINS.len()..).unwrap_or(text);
    let mut is_quoted = false;
    let ends = move |c: char| {
        is_quoted ^= c == '\'';
        c == ';' && !is_quoted
    };
    text.split(ends).map(str::trim)
}

/// What stands before the first blank, and the rest. A name in quotes may have blanks.
pub(crate) fn word(text: &str) -> (String, &str) {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('\'') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut name = String::new();
    let mut chars = quoted.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (c, chars.peek()) {
            ('\'', Some((_, '\''))) => {
                chars.next();
                name.push('\'');
            }
            ('\'', _) => return (name, &quoted[at + 1..]),
            _ => name.push(c),
        }
    }
    (name, "")
}

/// What the statements before the matrix say.
#[derive(Default)]
struct Described {
    taxa: Option<usize>,
    sites: Option<usize>,
    gap: Option<u8>,
    missing: Option<u8>,
    same: Option<u8>,
    is_interleaved: bool,
}

impl Described {
    /// `NAME=VALUE` and words without a value.
    fn take(&mut self, statement: &str) -> Result<(), String> {
        let spaced = statement.replace('=', " = ");
        let mut words = spaced.split_whitespace().peekable();
        while let Some(name) = words.next() {
            let value = words.next_if_eq(&"=").and_then(|_| words.next());
            let letter = value.and_then(|value| value.bytes().next()).map(|b| b.to_ascii_uppercase());
            match (name.to_ascii_uppercase().as_str(), value) {
                ("NTAX", Some(value)) => self.taxa = value.parse().ok(),
                ("NCHAR", Some(value)) => self.sites = value.parse().ok(),
                ("GAP", _) => self.gap = letter,
                ("MISSING", _) => self.missing = letter,
                ("MATCHCHAR", _) => self.same = letter,
                ("INTERLEAVE", value) => self.is_interleaved = !value.is_some_and(|v| v.eq_ignore_ascii_case("no")),
                ("DATATYPE", Some(kind)) if !is_read(kind) => {
                    return Err(format!("characters of type {kind}: nucleotides and proteins are read"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_read(kind: &str) -> bool {
    ["DNA", "RNA", "NUCLEOTIDE", "PROTEIN"].iter().any(|known| kind.eq_ignore_ascii_case(known))
}

/// Sequences of equal length.
pub(crate) fn parse(file: &Path, bytes: &[u8]) -> Result<Vec<Sequence>, Error> {
    let shown = file.display();
    let text = std::str::from_utf8(bytes).map_err(|_| Error::request(format!("{shown}: the file is not UTF-8")))?;
    let text = without_comments(text);
    let mut described = Described::default();
    let (mut is_inside, mut matrix) = (false, None);
    for statement in statements(&text) {
        let (name, rest) = word(statement);
        let place = || {
            let before = &text[..statement.as_ptr() as usize - text.as_ptr() as usize];
            Place::new(file, before.matches('\n').count() + 1, 1)
        };
        match name.to_ascii_uppercase().as_str() {
            "BEGIN" => is_inside = ["DATA", "CHARACTERS"].iter().any(|b| rest.trim().eq_ignore_ascii_case(b)),
            "DIMENSIONS" | "FORMAT" if is_inside => {
                described.take(rest).map_err(|what| Error::request(format!("{}: {what}", place())))?;
            }
            "MATRIX" if is_inside => {
                matrix = Some(rest);
                break;
            }
            _ => {}
        }
    }
    let none =
        || Error::request(format!("{shown}: there is no matrix in a DATA or CHARACTERS block of this NEXUS file"));
    let matrix = matrix.ok_or_else(none)?;
    let first_line = text[..matrix.as_ptr() as usize - text.as_ptr() as usize].matches('\n').count() + 1;
    let mut sequences = rows(file, matrix, first_line, &described)?;
    let Some(first) = sequences.first().map(|sequence| sequence.letters.clone()) else { return Err(none()) };
    for sequence in &mut sequences {
        let (found, wanted) = (sequence.letters.len(), described.sites.unwrap_or(first.len()));
        if found != wanted {
            let (place, name) = (Place::new(file, sequence.line, 1), &sequence.name);
            return Err(Error::request(format!("{place}: sequence {name} has {found} letters, not {wanted}")));
        }
        for (letter, first) in sequence.letters.iter_mut().zip(&first) {
            let own = Some(*letter);
            if own == described.same {
                *letter = *first;
            } else if own == described.gap {
                *letter = b'-';
            } else if own == described.missing {
                *letter = b'?';
            }
        }
    }
    match described.taxa {
        Some(taxa) if taxa != sequences.len() => {
            let found = sequences.len();
            Err(Error::request(format!("{shown}: the matrix has {found} sequences, but NTAX promises {taxa}")))
        }
        _ => Ok(sequences),
    }
}

fn rows(file: &Path, matrix: &str, first_line: usize, described: &Described) -> Result<Vec<Sequence>, Error> {
    let mut sequences: Vec<Sequence> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let taxa = described.taxa.unwrap_or(usize::MAX).max(1);
    let room = described.sites.unwrap_or(0).min(matrix.len() / taxa);
    for (number, line) in (first_line..).zip(matrix.split('\n')) {
        if line.trim().is_empty() {
            continue;
        }
        let wanted = described.sites.unwrap_or(usize::MAX);
        let goes_on = sequences
            .last()
            .is_some_and(|last| !described.is_interleaved && described.sites.is_some() && last.letters.len() < wanted);
        let (at, rest) = match goes_on {
            true => (sequences.len() - 1, line),
            false => {
                let (name, rest) = word(line);
                let at = *known.entry(name.clone()).or_insert(sequences.len());
                match at == sequences.len() {
                    true => sequences.push(Sequence::new(&name, number, room)),
                    false if described.is_interleaved => {}
                    false => {
                        let what =
                            format!("a second sequence {name}: names must be distinct (or the format INTERLEAVE)");
                        return Err(Error::request(format!("{}: {what}", Place::new(file, number, 1))));
                    }
                }
                (at, rest)
            }
        };
        let column = line.len() - rest.len() + 1;
        sequences[at].push(rest.as_bytes(), number, column).map_err(|column| {
            Error::request(format!("{}: a character that is no letter", Place::new(file, number, column)))
        })?;
    }
    Ok(sequences)
}
