//! PHYLIP, in its four forms.
//!
//! The first line gives the numbers of taxa and sites. *Relaxed*: a name is what stands before the first blank;
//! *strict*: the name is ten characters, blanks included. *Sequential*: a sequence goes on, over as many lines as it
//! takes, until it has all its letters; *interleaved*: blocks of one line for each taxon, names in the first block only.
//! Nothing in a file says which form it has, so the forms are tried in that order (the interleaved ones first where blank
//! lines separate blocks of one line for each taxon), and the first under which names and lengths come out right is the
//! file's. If none does, the message is that of the relaxed form that came
//! further, or of the sequential one where each taxon has one line.

use super::lines::lines;
use super::source::Sequence;
use crate::error::{Error, Place};
use std::path::Path;

/// Characters of a name in the strict form.
const STRICT_NAME: usize = 10;

/// Why one form does not fit: a place and what is wrong there.
struct Misfit {
    line: usize,
    column: usize,
    what: String,
}

fn misfit(line: usize, column: usize, what: impl Into<String>) -> Misfit {
    Misfit { line, column, what: what.into() }
}

struct Text<'a> {
    taxa: usize,
    sites: usize,
    /// Lines after the header that are not blank.
    lines: Vec<(usize, &'a [u8])>,
    /// The last line of the file.
    end: usize,
    /// So many letters a sequence may have.
    room: usize,
}

impl Text<'_> {
    /// Whether blank lines separate several blocks, each of one line for each taxon.
    fn is_in_blocks(&self) -> bool {
        self.lines.len() > self.taxa
            && self.lines.chunk_by(|(before, _), (line, _)| *line == before + 1).all(|block| block.len() == self.taxa)
    }
}

/// Sequences of the length and in the number that the header gives.
pub(crate) fn parse(file: &Path, bytes: &[u8]) -> Result<Vec<Sequence>, Error> {
    let told = |m: Misfit| Error::request(format!("{}: {}", Place::new(file, m.line, m.column), m.what));
    let text = header(bytes).map_err(told)?;
    type Form = fn(&Text, bool) -> Result<Vec<Sequence>, Misfit>;
    let mut forms: [(Form, bool); 4] =
        [(sequential, false), (interleaved, false), (sequential, true), (interleaved, true)];
    if text.is_in_blocks() {
        // A name of letters, in the first block, could as well go on with the sequence before it.
        forms = [(interleaved, false), (interleaved, true), (sequential, false), (sequential, true)];
    }
    let one_line_each = text.lines.len() == text.taxa;
    let mut furthest: Option<Misfit> = None;
    for (form, strict) in forms {
        match form(&text, strict) {
            Ok(sequences) => return Ok(sequences),
            Err(m) if !strict && furthest.as_ref().is_none_or(|f| !one_line_each && f.line < m.line) => {
                furthest = Some(m);
            }
            Err(_) => {}
        }
    }
    Err(told(furthest.unwrap_or_else(|| misfit(1, 1, "no sequences"))))
}

fn header(bytes: &[u8]) -> Result<Text<'_>, Misfit> {
    let wanted = "a PHYLIP file begins with the numbers of taxa and sites, a FASTA file with '>'";
    let mut all = lines(bytes).filter(|(_, line)| !line.trim_ascii().is_empty());
    let Some((number, first)) = all.next() else { return Err(misfit(1, 1, wanted)) };
    let first = std::str::from_utf8(first).map_err(|_| misfit(number, 1, wanted))?;
    let mut words = first.split_whitespace();
    let mut count = || words.next().and_then(|w| w.parse::<usize>().ok()).ok_or_else(|| misfit(number, 1, wanted));
    let (taxa, sites) = (count()?, count()?);
    if taxa == 0 || sites == 0 {
        return Err(misfit(number, 1, format!("{taxa} taxa and {sites} sites: there must be some of both")));
    }
    // In one list of the right length from the beginning: short lines take more room there than in the file.
    let mut lines = Vec::with_capacity(all.clone().count());
    lines.extend(all);
    let end = lines.last().map_or(number, |(number, _)| *number);
    // One line holds at most one name, in every form: files that promise more than they can hold end here.
    if lines.len() < taxa {
        let found = lines.len();
        return Err(misfit(end, 1, format!("the first line promises {taxa} taxa, but only {found} lines follow")));
    }
    // What a first line promises may be more than the file can hold.
    let room = sites.min(bytes.len() / taxa);
    Ok(Text { taxa, sites, lines, end, room })
}

/// Name and the rest of the line with the column where it begins.
fn split_name(line: &[u8], number: usize, strict: bool) -> Result<(&str, &[u8], usize), Misfit> {
    let utf8 = |name| std::str::from_utf8(name).map_err(|_| misfit(number, 1, "the name is not UTF-8"));
    if strict {
        let (name, rest) = line.split_at(STRICT_NAME.min(line.len()));
        let name = utf8(name)?.trim();
        if name.is_empty() {
            return Err(misfit(number, 1, "the ten characters of the name are blank"));
        }
        return Ok((name, rest, name_columns(line, rest)));
    }
    let start = line.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(0);
    let end = line[start..].iter().position(u8::is_ascii_whitespace).map_or(line.len(), |n| start + n);
    Ok((utf8(&line[start..end])?, &line[end..], name_columns(line, &line[end..])))
}

fn name_columns(line: &[u8], rest: &[u8]) -> usize {
    line.len() - rest.len() + 1
}

fn push(sequence: &mut Sequence, text: &[u8], number: usize, column: usize) -> Result<(), Misfit> {
    sequence.push(text, number, column).map_err(|column| misfit(number, column, "a character that is no letter"))
}

fn sequential(text: &Text, strict: bool) -> Result<Vec<Sequence>, Misfit> {
    let mut sequences = Vec::new();
    // Where no sequence goes on in a second line, a short one is not taken to go on in the next taxon's.
    let one_line_each = text.lines.len() == text.taxa;
    let mut lines = text.lines.iter();
    for _ in 0..text.taxa {
        let Some(&(number, line)) = lines.next() else {
            let (found, taxa) = (sequences.len(), text.taxa);
            return Err(misfit(
                text.end,
                1,
                format!("the first line promises {taxa} taxa, but only {found} are there"),
            ));
        };
        let (name, rest, column) = split_name(line, number, strict)?;
        let mut sequence = Sequence::new(name, number, text.room);
        push(&mut sequence, rest, number, column)?;
        while sequence.letters.len() < text.sites && !one_line_each {
            let Some(&(number, line)) = lines.next() else { break };
            push(&mut sequence, line, number, 1)?;
        }
        if sequence.letters.len() != text.sites {
            let (found, sites) = (sequence.letters.len(), text.sites);
            let what = format!("sequence {name} has {found} letters, but the first line promises {sites}");
            return Err(misfit(number, 1, what));
        }
        sequences.push(sequence);
    }
    match lines.next() {
        None => Ok(sequences),
        Some(&(number, _)) => {
            let taxa = text.taxa;
            Err(misfit(number, 1, format!("something follows the {taxa} sequences that the first line promises")))
        }
    }
}

fn interleaved(text: &Text, strict: bool) -> Result<Vec<Sequence>, Misfit> {
    let mut sequences: Vec<Sequence> = Vec::new();
    for (block, lines) in text.lines.chunks(text.taxa).enumerate() {
        for (taxon, &(number, line)) in lines.iter().enumerate() {
            if block == 0 {
                let (name, rest, column) = split_name(line, number, strict)?;
                let mut sequence = Sequence::new(name, number, text.room);
                push(&mut sequence, rest, number, column)?;
                sequences.push(sequence);
            } else {
                push(&mut sequences[taxon], line, number, 1)?;
            }
            let (found, first) = (sequences[taxon].letters.len(), sequences[0].letters.len());
            if found != first {
                let (name, other) = (&sequences[taxon].name, &sequences[0].name);
                let what = format!("up to here sequence {name} has {found} letters, but {other} has {first}");
                return Err(misfit(number, 1, what));
            }
        }
        if lines.len() < text.taxa {
            let taxa = text.taxa;
            return Err(misfit(text.end, 1, format!("the last block has {} lines for {taxa} taxa", lines.len())));
        }
    }
    let found = sequences.first().map_or(0, |s| s.letters.len());
    match found == text.sites {
        true => Ok(sequences),
        false => {
            let sites = text.sites;
            Err(misfit(text.end, 1, format!("the sequences have {found} letters, but the first line promises {sites}")))
        }
    }
}
