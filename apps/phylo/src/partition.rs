//! Partitions: sets of sites with their own model.
//!
//! Partition files are those of RAxML and RAxML-NG, one partition a line:
//!
//! ```text
//! DNA, first = 1-300\3, 2-300\3
//! GTR+F+G4, second = 3-300\3, 301, 400-500
//! LG+G4, protein = 501-800
//! ```
//!
//! `DNA` stands for the model given on the command line, and so does `AA` (or `PROT`) for a protein. Every site of the alignment must be in exactly one partition.

use crate::alignment::{Alignment, DataType, Patterns, Source};
use crate::error::{Error, Place};
use crate::model::{Model, ModelSpec};
use std::path::Path;

/// A partition as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheme {
    /// Its name, unique.
    pub name: String,
    /// Its model.
    pub model: ModelSpec,
    /// Its file names a kind of data and no model: the command line says which, or it is chosen.
    pub is_open: bool,
    /// Its sites, from 0, ascending.
    pub sites: Vec<usize>,
}

/// Sites with their patterns and model.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Patterns and weights.
    pub patterns: Patterns,
    /// The model, with values to start from.
    pub model: Model,
}

/// How the branch lengths of partitions hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branches {
    /// One length of each branch for all partitions.
    Linked,
    /// Every partition has its own.
    Unlinked,
}

impl Scheme {
    /// The whole alignment as one partition.
    pub fn whole(model: ModelSpec, sites: usize) -> Scheme {
        Scheme { name: "all".to_owned(), model, is_open: true, sites: (0..sites).collect() }
    }

    /// Its sites as partition files write them: runs of equal steps, `A-B` or `A-B\STEP`.
    pub fn ranges(&self) -> String {
        let mut ranges = Vec::new();
        let mut rest = &self.sites[..];
        while let Some(&first) = rest.first() {
            let step = rest.get(1).map_or(1, |second| second - first);
            let mut count = 1;
            while count < rest.len() && rest[count] == rest[count - 1] + step {
                count += 1;
            }
            // Two sites apart are no run.
            if count == 2 && step > 1 {
                count = 1;
            }
            ranges.push(match (count, step) {
                (1, _) => format!("{}", first + 1),
                (_, 1) => format!("{}-{}", first + 1, rest[count - 1] + 1),
                _ => format!("{}-{}\\{step}", first + 1, rest[count - 1] + 1),
            });
            rest = &rest[count..];
        }
        ranges.join(", ")
    }

    /// Checks the letters of its sites and makes the partition.
    pub fn partition(&self, alignment: &Alignment, source: &Source) -> Result<Partition, Error> {
        source.check_letters(alignment, &self.sites, self.model.data_type)?;
        let patterns = Patterns::new(alignment, self.sites.iter().copied(), self.model.data_type);
        if patterns.is_empty() {
            return Err(Error::request(format!(
                "{}: partition {} has nothing but gaps: leave its sites out of the alignment",
                source.file.display(),
                self.name
            )));
        }
        let model = self.model.model(&patterns);
        Ok(Partition { name: self.name.clone(), patterns, model })
    }
}

/// Reads a partition file for an alignment of `sites` sites. `default` is the model of lines that only say `DNA`.
pub fn read_schemes(path: &Path, sites: usize, default: Option<&ModelSpec>) -> Result<Vec<Scheme>, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Error::request(format!("cannot read partition file {}: {e}", path.display())))?;
    parse_schemes(path, &text, sites, default)
}

/// Parses the content of a partition file; `file` is only named in messages.
pub fn parse_schemes(file: &Path, text: &str, sites: usize, default: Option<&ModelSpec>) -> Result<Vec<Scheme>, Error> {
    let mut schemes: Vec<Scheme> = Vec::new();
    // For each site the line of its partition, from 1; 0: none yet.
    let mut owners = vec![0usize; sites];
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let fail = |part: &str, what: String| {
            // `part` is a slice of the line.
            let column = line[..part.as_ptr() as usize - line.as_ptr() as usize].chars().count() + 1;
            Error::request(format!("{}: {what}", Place::new(file, number, column)))
        };
        let usage = "a partition is MODEL, NAME = SITES, such as GTR+G4, gene = 1-300\\3";
        let comma = outer_comma(line).ok_or_else(|| fail(line, usage.to_owned()))?;
        let (model, rest) = (line[..comma].trim(), &line[comma + 1..]);
        let (name, ranges) = rest.split_once('=').ok_or_else(|| fail(rest, usage.to_owned()))?;
        let name = name.trim();
        if name.is_empty() {
            return Err(fail(rest, "the partition has no name".to_owned()));
        }
        if schemes.iter().any(|s| s.name == name) {
            return Err(fail(rest, format!("a second partition {name}: names must be distinct")));
        }
        let (model, is_open) = line_model(model, default).map_err(|what| fail(line, what))?;
        let mut own = Vec::new();
        for range in ranges.split(',') {
            let range_sites = parse_range(range, sites).map_err(|what| fail(range, what))?;
            for site in range_sites {
                match std::mem::replace(&mut owners[site], number) {
                    0 => own.push(site),
                    other if other == number => {
                        return Err(fail(range, format!("site {} is in {name} twice", site + 1)));
                    }
                    other => {
                        return Err(fail(
                            range,
                            format!("site {} is in {name}, but also in the partition of line {other}", site + 1),
                        ));
                    }
                }
            }
        }
        own.sort_unstable();
        schemes.push(Scheme { name: name.to_owned(), model, is_open, sites: own });
    }
    let shown = file.display();
    if schemes.is_empty() {
        return Err(Error::request(format!("{shown}: the partition file has no partition")));
    }
    if let Some(first) = owners.iter().position(|&o| o == 0) {
        let count = owners.iter().filter(|&&o| o == 0).count();
        let more =
            if count > 1 { format!(" and {} more of {sites} are", count - 1) } else { format!(" of {sites} is") };
        let first = first + 1;
        return Err(Error::request(format!(
            "{shown}: site {first}{more} in no partition: add a partition, or take what is in none out of the alignment"
        )));
    }
    Ok(schemes)
}

/// The comma after the model: the first one outside of braces.
fn outer_comma(line: &str) -> Option<usize> {
    let mut depth = 0i32;
    line.bytes().position(|b| {
        depth += i32::from(b == b'{') - i32::from(b == b'}');
        b == b',' && depth <= 0
    })
}

/// The model of a line, and whether the line names a kind of data alone.
fn line_model(text: &str, default: Option<&ModelSpec>) -> Result<(ModelSpec, bool), String> {
    let is = |names: &[&str]| names.iter().any(|name| text.eq_ignore_ascii_case(name));
    let data_type = match text {
        _ if is(&["DNA"]) => DataType::Dna,
        _ if is(&["AA", "PROT", "PROTEIN"]) => DataType::Protein,
        _ => return ModelSpec::parse(text).map(|model| (model, false)).map_err(|e| e.to_string()),
    };
    match default {
        Some(model) if model.data_type == data_type => Ok((model.clone(), true)),
        Some(model) => Err(format!(
            "{text} stands for the model of the command line, but {model} is one of {} data",
            model.data_type
        )),
        None => ModelSpec::parse(default_model(data_type)).map(|model| (model, true)).map_err(|e| e.to_string()),
    }
}

/// The model where none is named.
pub fn default_model(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Dna => DEFAULT_DNA,
        DataType::Protein => DEFAULT_PROTEIN,
    }
}

/// The model of nucleotides where none is named.
pub const DEFAULT_DNA: &str = "GTR+F+G4";
/// The model of proteins where none is named.
pub const DEFAULT_PROTEIN: &str = "LG+G4";

/// `7`, `1-300`, `1-300\3` or `1-300/3`; `.` as the end is the last site. Sites from 0.
fn parse_range(text: &str, sites: usize) -> Result<impl Iterator<Item = usize> + use<>, String> {
    let number = |part: &str| match part.trim().parse::<usize>() {
        Ok(n) if (1..=sites).contains(&n) => Ok(n),
        Ok(n) => Err(format!("there is no site {n}: the alignment has {sites}")),
        Err(_) => Err(format!("{:?} is no site: ranges are A, A-B or A-B\\STEP", part.trim())),
    };
    let (range, step) = match text.split_once(['\\', '/']) {
        None => (text, 1),
        Some((range, step)) => {
            let step = step.trim().parse::<usize>().ok().filter(|&s| s > 0);
            (range, step.ok_or_else(|| format!("{:?}: the step is no positive number", text.trim()))?)
        }
    };
    let (first, last) = match range.split_once('-') {
        None => (number(range)?, number(range)?),
        Some((first, last)) if last.trim() == "." => (number(first)?, sites),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    if last < first {
        return Err(format!("the range {:?} ends before it begins", text.trim()));
    }
    Ok((first - 1..last).step_by(step))
}
