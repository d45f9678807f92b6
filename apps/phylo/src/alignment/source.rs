//! Where the letters of an alignment stand in its file, so that messages can point there.

use super::{Alignment, DataType};
use crate::error::{Error, Place};
use std::path::{Path, PathBuf};

/// Consecutive letters of one line. Files of more letters than these numbers count are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// The first letter's site, from 0.
    site: u32,
    /// From 1.
    line: u32,
    /// From 1.
    column: u32,
}

/// What the place of a letter takes.
pub(super) const PLACE_BYTES: u64 = size_of::<Segment>() as u64;

/// The file of an alignment and where each of its letters stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub file: PathBuf,
    /// For each taxon the line of its name.
    pub name_lines: Vec<usize>,
    /// The first line of a name that goes on after a blank, which is not part of the name: its taxon, and the whole of it.
    pub cut_name: Option<(usize, String)>,
    /// Bytes of memory that it took to read it.
    pub bytes: u64,
    segments: Vec<Vec<Segment>>,
}

/// A sequence that is being read, with the places of its letters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sequence {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) letters: Vec<u8>,
    /// What stood in the place of the name, where that is more than the name.
    pub(crate) title: Option<String>,
    segments: Vec<Segment>,
}

impl Sequence {
    /// Of a name, in a line, for which there are to be so many letters.
    pub(crate) fn new(name: &str, line: usize, letters: usize) -> Sequence {
        Sequence { name: name.to_owned(), line, letters: Vec::with_capacity(letters), ..Sequence::default() }
    }

    /// Keeps no more memory than the letters take.
    pub(crate) fn end(&mut self) {
        self.letters.shrink_to_fit();
        self.segments.shrink_to_fit();
    }

    /// Appends the letters of `text`, which begins at `column` of `line`; blanks are skipped. Fails with the column of
    /// the first character that can stand in no alignment.
    pub(crate) fn push(&mut self, text: &[u8], line: usize, column: usize) -> Result<(), usize> {
        let mut continues = false;
        for (offset, &letter) in text.iter().enumerate() {
            if letter.is_ascii_whitespace() {
                continues = false;
                continue;
            }
            if !letter.is_ascii_graphic() {
                return Err(column + offset);
            }
            if !continues {
                let [site, line, column] = [self.letters.len(), line, column + offset].map(|number| number as u32);
                self.segments.push(Segment { site, line, column });
                continues = true;
            }
            self.letters.push(letter.to_ascii_uppercase());
        }
        Ok(())
    }
}

impl Source {
    /// An alignment and its places from sequences that are known to be of one length. Names must be distinct.
    pub(crate) fn assemble(file: &Path, sequences: Vec<Sequence>) -> Result<(Alignment, Source), Error> {
        let mut lines = std::collections::HashMap::new();
        for sequence in &sequences {
            if let Some(first) = lines.insert(sequence.name.as_str(), sequence.line) {
                let place = Place::new(file, sequence.line, 1);
                let cut = if sequence.title.is_some() { ", and end at the first blank" } else { "" };
                return Err(Error::request(format!(
                    "{place}: the name {:?} was used before, in line {first}: names must be distinct{cut}",
                    sequence.name
                )));
            }
        }
        let mut alignment = Alignment { names: vec![], rows: vec![] };
        let mut source =
            Source { file: file.to_owned(), name_lines: vec![], cut_name: None, bytes: 0, segments: vec![] };
        for sequence in sequences {
            if let (None, Some(title)) = (&source.cut_name, sequence.title) {
                source.cut_name = Some((alignment.names.len(), title));
            }
            alignment.names.push(sequence.name);
            alignment.rows.push(sequence.letters);
            source.name_lines.push(sequence.line);
            source.segments.push(sequence.segments);
        }
        Ok((alignment, source))
    }

    /// The place of a letter; both indices from 0.
    pub fn place(&self, taxon: usize, site: usize) -> Place {
        let segments = &self.segments[taxon];
        let at = segments.partition_point(|s| s.site as usize <= site);
        match at.checked_sub(1).map(|i| segments[i]) {
            Some(s) => Place::new(&self.file, s.line as usize, s.column as usize + site - s.site as usize),
            None => Place::new(&self.file, self.name_lines[taxon], 1),
        }
    }

    /// Refuses letters that are not of the alphabet, at these sites (from 0), with the place of the first such letter
    /// of the first taxon that has one.
    pub fn check_letters(&self, alignment: &Alignment, sites: &[usize], data_type: DataType) -> Result<(), Error> {
        for (taxon, row) in alignment.rows.iter().enumerate() {
            if let Some(&site) = sites.iter().find(|&&site| data_type.code(row[site]).is_none()) {
                return Err(Error::request(format!(
                    "{}: the letter {:?} (sequence {}, site {}) is not in the alphabet of {data_type}",
                    self.place(taxon, site),
                    row[site] as char,
                    alignment.names[taxon],
                    site + 1
                )));
            }
        }
        Ok(())
    }

    /// Refuses what no tree can be made of: fewer than three taxa, no sites, nothing but gaps.
    pub fn check_size(&self, alignment: &Alignment) -> Result<(), Error> {
        let file = self.file.display();
        let taxa = alignment.taxa();
        if taxa < 3 {
            return Err(Error::request(format!("{file}: {taxa} taxa: an unrooted tree needs at least three")));
        }
        if alignment.sites() == 0 {
            return Err(Error::request(format!("{file}: the sequences have no letters")));
        }
        Ok(())
    }
}
