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
//! `DNA` stands for the model given on the command line, and so does `AA` (or `PROT`) for a protein. RAxML's `WAGF` and `WAGX`
//! are `WAG+F+G4` and `WAG+FO+G4`. Every site of the alignment must be in exactly one partition. Those in NEXUS are IQ-TREE's.

mod nexus;

use crate::alignment::nexus::{BEGINS, without_comments};
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

    /// Where sites are there because they vary, none may be one that need not.
    fn refuse_constant(&self, patterns: &Patterns, source: &Source) -> Result<(), Error> {
        let masks = patterns.invariant_masks();
        let is_constant = |pattern: &Option<u32>| pattern.is_some_and(|p| masks[p as usize] != 0);
        let constant: Vec<usize> =
            (0..self.sites.len()).filter(|&i| is_constant(&patterns.pattern_of_site[i])).collect();
        let Some(&first) = constant.first() else { return Ok(()) };
        let (file, model, name) = (source.file.display(), &self.model, &self.name);
        Err(Error::request(format!(
            "{file}: {model} is for sites that were taken because they vary, but {} of partition {name} need not (the first is \
             site {}): take them out of the alignment, or leave +ASC out of the model",
            constant.len(),
            self.sites[first] + 1
        )))
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
        if self.model.is_ascertained {
            self.refuse_constant(&patterns, source)?;
        }
        let model = self.model.model(&patterns);
        Ok(Partition { name: self.name.clone(), patterns, model })
    }
}

/// What partitions are of that name no model.
#[derive(Debug, Clone, Copy)]
pub struct Unnamed<'a> {
    /// The model of the command line.
    pub model: Option<&'a ModelSpec>,
    /// Of what the letters are, where nothing says it.
    pub data_type: DataType,
}

/// Reads a partition file for an alignment of `sites` sites. `unnamed` is for lines that only say `DNA`, and less.
pub fn read_schemes(path: &Path, sites: usize, unnamed: Unnamed<'_>) -> Result<Vec<Scheme>, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Error::request(format!("cannot read partition file {}: {e}", path.display())))?;
    parse_schemes(path, &text, sites, unnamed)
}

/// A partition as slices of the file's text.
struct Entry<'t> {
    model: Option<&'t str>,
    name: &'t str,
    ranges: Vec<&'t str>,
    /// The line, or the statement.
    at: &'t str,
}

/// The line of a slice of the text, from 1, and its column.
fn place_of(text: &str, part: &str) -> (usize, usize) {
    let before = &text[..part.as_ptr() as usize - text.as_ptr() as usize];
    let line = before.rsplit_once('\n').map_or(before, |(_, line)| line);
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// Parses the content of a partition file; `file` is only named in messages.
pub fn parse_schemes(file: &Path, text: &str, sites: usize, unnamed: Unnamed<'_>) -> Result<Vec<Scheme>, Error> {
    let is_nexus = text.trim_start().get(..BEGINS.len()).is_some_and(|t| t.as_bytes().eq_ignore_ascii_case(BEGINS));
    let blanked;
    let (text, entries) = match is_nexus {
        true => {
            blanked = without_comments(text);
            (&*blanked, nexus::entries(&blanked))
        }
        false => (text, text.lines().filter(|line| !is_remark(line)).map(entry).collect()),
    };
    let fail = |part: &str, what: String| {
        let (line, column) = place_of(text, part);
        Error::request(format!("{}: {what}", Place::new(file, line, column)))
    };
    let mut schemes: Vec<Scheme> = Vec::new();
    // For each site the line of its partition, from 1; 0: none yet.
    let mut owners = vec![0usize; sites];
    for Entry { model, name, ranges, at } in entries.map_err(|(what, part)| fail(part, what))? {
        let number = place_of(text, at).0;
        if name.is_empty() {
            return Err(fail(name, "the partition has no name".to_owned()));
        }
        if schemes.iter().any(|s| s.name == name) {
            return Err(fail(name, format!("a second partition {name}: names must be distinct")));
        }
        let (model, is_open) = entry_model(model, unnamed).map_err(|what| fail(model.unwrap_or(at), what))?;
        let mut own = Vec::new();
        for range in ranges {
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

fn is_remark(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// A line in the style of RAxML; the error is what is wrong and where.
fn entry(line: &str) -> Result<Entry<'_>, (String, &str)> {
    let usage = || "a partition is MODEL, NAME = SITES, such as GTR+G4, gene = 1-300\\3".to_owned();
    let comma = outer_comma(line).ok_or_else(|| (usage(), line))?;
    let (model, rest) = (line[..comma].trim(), &line[comma + 1..]);
    let (name, ranges) = rest.split_once('=').ok_or_else(|| (usage(), rest))?;
    let name = match name.trim() {
        "" => return Err(("the partition has no name".to_owned(), rest)),
        name => name,
    };
    Ok(Entry { model: Some(model), name, ranges: ranges.split(',').collect(), at: line })
}

/// The comma after the model: the first one outside of braces.
fn outer_comma(line: &str) -> Option<usize> {
    let mut depth = 0i32;
    line.bytes().position(|b| {
        depth += i32::from(b == b'{') - i32::from(b == b'}');
        b == b',' && depth <= 0
    })
}

/// The model of a partition, and whether it is the command line that says which.
fn entry_model(text: Option<&str>, unnamed: Unnamed<'_>) -> Result<(ModelSpec, bool), String> {
    let is = |names: &[&str]| text.is_some_and(|text| names.iter().any(|name| text.eq_ignore_ascii_case(name)));
    let parsed = |text: &str| ModelSpec::parse(text).map_err(|e| e.to_string());
    let data_type = match text {
        None => unnamed.model.map_or(unnamed.data_type, |model| model.data_type),
        // The name of a model as well, beside others of other data.
        Some(_) if is(&["BIN", "BINARY"]) && unnamed.model.is_none_or(|m| m.data_type == DataType::Binary) => {
            DataType::Binary
        }
        Some(_) if is(&["DNA"]) => DataType::Dna,
        Some(_) if is(&["AA", "PROT", "PROTEIN"]) => DataType::Protein,
        Some(text) => return parsed(of_raxml(text).as_deref().unwrap_or(text)).map(|model| (model, false)),
    };
    match unnamed.model {
        Some(model) if model.data_type == data_type => Ok((model.clone(), true)),
        Some(model) => Err(format!(
            "{} stands for the model of the command line, but {model} is one of {} data",
            text.unwrap_or("this"),
            model.data_type
        )),
        None => parsed(default_model(data_type)).map(|model| (model, true)),
    }
}

/// What RAxML means by the name of a protein matrix with `F` (frequencies counted) or `X` (fitted) behind it; its rates over
/// sites are those of the whole run, of which there is no word in the file.
fn of_raxml(text: &str) -> Option<String> {
    let (name, frequencies) = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'F' => (&text[..text.len() - 1], "+F"),
        b'X' => (&text[..text.len() - 1], "+FO"),
        _ => return None,
    };
    let known = ModelSpec::names(DataType::Protein);
    let (name, _) = known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(format!("{name}{frequencies}+G4"))
}

/// The model where none is named.
pub fn default_model(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Binary => DEFAULT_BINARY,
        DataType::Dna => DEFAULT_DNA,
        DataType::Protein => DEFAULT_PROTEIN,
    }
}

/// The model of binary data where none is named.
pub const DEFAULT_BINARY: &str = "BIN+F+G4";
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
