//! The binary format of HMMER3, versions 3/a to 3/f, as hmmpress (`.h3m`) and `hmmconvert -b` write it. HMMER's guide does
//! not describe it; this is what the files hold.
//!
//! ```text
//! magic, flags, nodes M, alphabet                                  4 bytes each
//! match emissions of nodes 1..M, insert emissions of 0..M          20 floats a node
//! transitions of nodes 0..M                                        7 floats a node
//! name, [ACC], [DESC]                                              texts
//! [RF], [MM], [consensus], [CS], [surface]                         M + 2 symbols: node 0, nodes 1..M, 0
//! command lines                                                    text
//! sequences, effective sequences, longest hit (since 3/c)          4 bytes each
//! date                                                             text
//! [columns of the alignment, nodes 0..M]                           4 bytes a node
//! checksum, statistics (3 floats in 3/a, since then 6), cutoffs    4 bytes each
//! [composition]                                                    20 floats
//! ```
//!
//! What is in brackets is there where its flag is set. A text is its number of bytes, the 0 that ends it counted, and those;
//! no text is 0. Numbers are little-endian.

use super::alphabet::RESIDUES;
use super::fields::{likeliest, near_one, shown};
use super::room::{Room, take};
use super::{Annotation, Cutoff, Exponential, Gumbel, Profile, ProfileError, Transitions};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// First four bytes of each profile, as a number; the version's letter.
const MAGIC: [(u32, u8); 6] = [
    (0xe8ed_edb6, b'a'),
    (0xe8ed_edb7, b'b'),
    (0xe8ed_edb8, b'c'),
    (0xe8ed_edb9, b'd'),
    (0xe8ed_edb0, b'e'),
    (0xe8ed_edba, b'f'),
];

/// The alphabet of amino acids.
const AMINO: u32 = 3;
/// Bytes of a text, at most; the longest in real files are descriptions and command lines.
const TEXT_BYTES_MAX: u32 = 1 << 20;

// What flags say is there.
const DESCRIPTION: u32 = 1 << 1;
const REFERENCE: u32 = 1 << 2;
const STRUCTURE: u32 = 1 << 3;
const STATISTICS: u32 = 1 << 7;
const COLUMNS: u32 = 1 << 8;
const ACCESSION: u32 = 1 << 9;
const GATHERING: u32 = 1 << 10;
const TRUSTED: u32 = 1 << 11;
const NOISE: u32 = 1 << 12;
const SURFACE: u32 = 1 << 13;
const COMPOSITION: u32 = 1 << 14;
const CONSENSUS: u32 = 1 << 16;
const MASK: u32 = 1 << 17;

/// Whether no text begins so.
pub(super) fn is_binary(begin: &[u8]) -> bool {
    begin.contains(&0) || std::str::from_utf8(begin).is_err_and(|error| error.error_len().is_some())
}

/// Reads all profiles of a binary file.
pub(super) fn parse(input: impl Read, path: &Path, has_room: Room<'_>) -> Result<Vec<Profile>, ProfileError> {
    let mut bytes = Bytes { input, path, number: 1 };
    let mut profiles = Vec::new();
    while let Some(begin) = bytes.begin()? {
        take(profile(&mut bytes, begin)?, &mut profiles, has_room, path)?;
        bytes.number += 1;
    }
    Ok(profiles)
}

/// The letter of the version that a file of these first bytes has.
fn version(begin: [u8; 4]) -> Result<u8, &'static str> {
    let of = |magic: u32| MAGIC.iter().find(|(other, _)| *other == magic).map(|(_, version)| *version);
    of(u32::from_le_bytes(begin)).ok_or(match of(u32::from_be_bytes(begin)) {
        Some(_) => {
            "it was written by a computer with the other order of bytes; give the text that hmmconvert makes of it there"
        }
        None => {
            "it is no binary profile of HMMER3; give the file of hmmpress that ends in .h3m, or the text that hmmconvert makes"
        }
    })
}

fn profile<R: Read>(bytes: &mut Bytes<'_, R>, begin: [u8; 4]) -> Result<Profile, ProfileError> {
    let version = version(begin).map_err(|reason| bytes.error(reason))?;
    let [flags, nodes, alphabet] = bytes.numbers::<3>()?;
    let has = |flag: u32| flags & flag != 0;
    if alphabet != AMINO {
        return Err(bytes.error("profiles of the alphabet amino are searched with, this is one of another"));
    }
    // One is for a node more, so this is the most that the format can say.
    if nodes == 0 || nodes >= i32::MAX as u32 {
        return Err(bytes.error(format!("it has {nodes} nodes; a profile has some")));
    }
    let nodes = nodes as usize;
    let mut matches = Vec::new();
    for k in 1..=nodes {
        matches.push(bytes.probabilities::<RESIDUES>()?);
        bytes.near_one(k, "emissions", &matches[k - 1])?;
    }
    for _ in 0..=nodes {
        // They are not needed for scores.
        bytes.floats::<RESIDUES>()?;
    }
    let mut transitions = Vec::new();
    for k in 0..=nodes {
        let [mm, mi, md, im, ii, dm, dd] = bytes.probabilities::<7>()?;
        bytes.near_one(k, "transitions of the match state", &[mm, mi, md])?;
        bytes.near_one(k, "transitions of the insert state", &[im, ii])?;
        bytes.near_one(k, "transitions of the delete state", &[dm, dd])?;
        transitions.push(Transitions { mm, mi, md, im, ii, dm, dd });
    }
    let name = bytes.words()?.ok_or_else(|| bytes.error("it has no name"))?;
    let accession = if has(ACCESSION) { bytes.words()? } else { None };
    let description = if has(DESCRIPTION) { bytes.words()? } else { None };
    if [Some(&name), accession.as_ref()].into_iter().flatten().any(|text| text.contains(char::is_whitespace)) {
        return Err(bytes.error("its name and accession are one word each"));
    }
    let mut symbols = |flag: u32| if has(flag) { bytes.symbols(nodes).map(Some) } else { Ok(None) };
    let [reference, mask, consensus, structure] =
        [symbols(REFERENCE)?, symbols(MASK)?, symbols(CONSENSUS)?, symbols(STRUCTURE)?];
    symbols(SURFACE)?;
    bytes.text()?;
    bytes.numbers::<2>()?;
    if version >= b'c' {
        bytes.numbers::<1>()?;
    }
    bytes.text()?;
    if has(COLUMNS) {
        for _ in 0..=nodes {
            bytes.numbers::<1>()?;
        }
    }
    bytes.numbers::<1>()?;
    let statistics = match version {
        b'a' => {
            let [lambda, mu, tau] = bytes.floats()?;
            [mu, lambda, mu, lambda, tau, lambda]
        }
        _ => bytes.floats()?,
    };
    let cutoffs = bytes.floats::<6>()?;
    let composition = match has(COMPOSITION) {
        true => {
            let composition = bytes.probabilities::<RESIDUES>()?;
            bytes.near_one(0, "composition, that", &composition)?;
            Some(composition)
        }
        false => None,
    };
    if !has(STATISTICS) {
        return Err(bytes.error("it has no statistics, from which E-values come; build the profile with hmmbuild"));
    }
    let [msv_mu, msv, viterbi_mu, viterbi, tau, forward] = statistics.map(f64::from);
    if !statistics.iter().all(|x| x.is_finite()) || [msv, viterbi, forward].iter().any(|&lambda| lambda <= 0.0) {
        return Err(bytes.error("its statistics are no numbers from which E-values come; build it again with hmmbuild"));
    }
    let cutoff = |flag: u32, i: usize| {
        let [sequence, domain] = [cutoffs[i], cutoffs[i + 1]].map(f64::from);
        let cutoff = has(flag).then_some(Cutoff { sequence, domain });
        match cutoff.is_none() || sequence.is_finite() && domain.is_finite() {
            true => Ok(cutoff),
            false => Err(bytes.error("a cutoff is no number")),
        }
    };
    let [gathering, trusted, noise] = [cutoff(GATHERING, 0)?, cutoff(TRUSTED, 2)?, cutoff(NOISE, 4)?];
    Ok(Profile {
        name,
        accession,
        description,
        annotation: Annotation {
            consensus: consensus.unwrap_or_else(|| matches.iter().map(likeliest).collect()),
            reference,
            mask,
            structure,
        },
        matches,
        composition,
        transitions,
        msv: Gumbel { mu: msv_mu, lambda: msv },
        viterbi: Gumbel { mu: viterbi_mu, lambda: viterbi },
        forward: Exponential { tau, lambda: forward },
        gathering,
        trusted,
        noise,
    })
}

/// Reads what a file holds, and knows which profile it is at.
struct Bytes<'a, R> {
    input: R,
    path: &'a Path,
    number: usize,
}

impl<R: Read> Bytes<'_, R> {
    fn error(&self, reason: impl Into<String>) -> ProfileError {
        ProfileError::Binary { path: self.path.to_owned(), number: self.number, reason: reason.into() }
    }

    fn exactly(&mut self, into: &mut [u8]) -> Result<(), ProfileError> {
        self.input.read_exact(into).map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => self.error("the file ends in it; it may have been cut short"),
            _ => ProfileError::Io { path: self.path.to_owned(), source },
        })
    }

    /// The first bytes of a profile; none at the end of the file.
    fn begin(&mut self) -> Result<Option<[u8; 4]>, ProfileError> {
        let mut begin = [0; 4];
        loop {
            match self.input.read(&mut begin[..1]) {
                Ok(0) => return Ok(None),
                Ok(_) => return self.exactly(&mut begin[1..]).map(|()| Some(begin)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(ProfileError::Io { path: self.path.to_owned(), source }),
            }
        }
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u32; N], ProfileError> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            let mut bytes = [0; 4];
            self.exactly(&mut bytes)?;
            *number = u32::from_le_bytes(bytes);
        }
        Ok(numbers)
    }

    fn floats<const N: usize>(&mut self) -> Result<[f32; N], ProfileError> {
        self.numbers().map(|numbers| numbers.map(f32::from_bits))
    }

    fn probabilities<const N: usize>(&mut self) -> Result<[f64; N], ProfileError> {
        let probabilities = self.floats::<N>()?.map(f64::from);
        match probabilities.iter().find(|p| !(0.0..=1.0 + 1e-4).contains(*p)) {
            Some(p) => Err(self.error(format!("{p} is no probability"))),
            None => Ok(probabilities),
        }
    }

    fn near_one(&self, node: usize, what: &str, probabilities: &[f64]) -> Result<(), ProfileError> {
        near_one(probabilities.iter().sum()).map_err(|wrong| self.error(format!("the {what} of node {node} {wrong}")))
    }

    fn text(&mut self) -> Result<Option<String>, ProfileError> {
        let [length] = self.numbers()?;
        if length > TEXT_BYTES_MAX {
            return Err(self.error(format!("a text has {length} bytes; more than {TEXT_BYTES_MAX} are no text")));
        }
        let mut text = vec![0; length as usize];
        self.exactly(&mut text)?;
        while text.pop_if(|byte| *byte == 0).is_some() {}
        Ok(Some(String::from_utf8_lossy(&text).into_owned()).filter(|text| !text.is_empty()))
    }

    /// A text for tables.
    fn words(&mut self) -> Result<Option<String>, ProfileError> {
        match self.text()? {
            Some(text) if text.contains(char::is_control) => {
                Err(self.error(format!("a line is no text: '{}'", shown(&text))))
            }
            text => Ok(text),
        }
    }

    /// A symbol for each node.
    fn symbols(&mut self, nodes: usize) -> Result<Vec<u8>, ProfileError> {
        let mut symbols = vec![0; nodes + 2];
        self.exactly(&mut symbols)?;
        symbols.pop();
        symbols.remove(0);
        match symbols.iter().all(|symbol| matches!(symbol, b' '..=b'~')) {
            true => Ok(symbols),
            false => Err(self.error("a symbol of a node cannot be printed")),
        }
    }
}
