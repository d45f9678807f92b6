//! Profiles: the alphabet, the parser of HMMER's files, and the model of local alignments as the kernels read it.
//!
//! ```text
//! file -> Profile (the core model: probabilities as written) -> Vec<LocalNode> (odds, entries; what sequences meet)
//! ```

pub mod alphabet;
mod binary;
mod error;
mod fields;
mod header;
mod hmmer2;
mod local;
mod log_odds;
mod read;
mod room;
mod statistics;

#[cfg(test)]
pub(crate) mod tests;

pub use error::ProfileError;
pub use local::{LocalNode, null1};
pub(crate) use log_odds::{LogOdds, null1_single};
pub use read::read_profiles;
pub(crate) use read::read_within;
pub use statistics::{Exponential, Gumbel};

use alphabet::RESIDUES;
use std::io::BufRead;
use std::path::Path;

/// Transitions that leave a node, in the order of HMMER's files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transitions {
    /// Match to the next match.
    pub mm: f64,
    /// Match to insert.
    pub mi: f64,
    /// Match to the next delete.
    pub md: f64,
    /// Insert to the next match.
    pub im: f64,
    /// Insert to insert.
    pub ii: f64,
    /// Delete to the next match.
    pub dm: f64,
    /// Delete to the next delete.
    pub dd: f64,
}

/// Score cutoffs in bits, as curators set them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cutoff {
    /// For a sequence's score.
    pub sequence: f64,
    /// For a domain's score.
    pub domain: f64,
}

/// What a file says of each node besides its probabilities: a symbol for each, for the reader.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotation {
    /// The consensus residue, in capitals where it is well conserved.
    pub consensus: Vec<u8>,
    /// Reference annotation (RF).
    pub reference: Option<Vec<u8>>,
    /// Which nodes are masked (MM).
    pub mask: Option<Vec<u8>>,
    /// Secondary structure (CS).
    pub structure: Option<Vec<u8>>,
}

/// A profile hidden Markov model of `nodes()` nodes for amino acid sequences: the core model in probabilities, which files have
/// in single precision.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name; never empty.
    pub name: String,
    /// Its accession, if it has one.
    pub accession: Option<String>,
    /// What it describes, if the file says so.
    pub description: Option<String>,
    /// Probabilities of the residues at each match state, in the order of [`alphabet::SYMBOLS`].
    pub matches: Vec<[f64; RESIDUES]>,
    /// Mean frequencies of the residues that it emits, if the file says so (COMPO).
    pub composition: Option<[f64; RESIDUES]>,
    /// Probabilities of the transitions out of the beginning (node 0), and of each node.
    pub transitions: Vec<Transitions>,
    /// What alignments show of each node.
    pub annotation: Annotation,
    /// Distribution of MSV scores, in bits.
    pub msv: Gumbel,
    /// Distribution of Viterbi scores, in bits.
    pub viterbi: Gumbel,
    /// Distribution of Forward scores, in bits.
    pub forward: Exponential,
    /// Gathering cutoff (GA).
    pub gathering: Option<Cutoff>,
    /// Trusted cutoff (TC).
    pub trusted: Option<Cutoff>,
    /// Noise cutoff (NC).
    pub noise: Option<Cutoff>,
}

impl Profile {
    /// Number of nodes, the length of the consensus.
    pub fn nodes(&self) -> usize {
        self.matches.len()
    }

    /// Parses the profiles of a text; `path` is for messages only.
    ///
    /// # Errors
    /// What is wrong, with path and line, see [`read_profiles`].
    pub fn parse(text: &[u8], path: &Path) -> Result<Vec<Profile>, ProfileError> {
        Profile::read(text, path)
    }

    /// The same of a text that is made as it is read.
    pub(crate) fn read(text: impl BufRead, path: &Path) -> Result<Vec<Profile>, ProfileError> {
        read::parse(text, path, &mut |_| true)
    }

    /// Bytes that a profile of so many nodes takes of the memory at least.
    pub(crate) fn bytes_of(nodes: usize) -> u64 {
        (size_of::<Profile>() + nodes * (size_of::<[f64; RESIDUES]>() + size_of::<Transitions>())) as u64
    }

    /// Bytes that it takes of the memory.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let Annotation { consensus, reference, mask, structure } = &self.annotation;
        let columns = [reference, mask, structure].into_iter().flatten().map(Vec::capacity).sum::<usize>();
        let rows = self.matches.capacity() * size_of::<[f64; RESIDUES]>()
            + self.transitions.capacity() * size_of::<Transitions>();
        (size_of::<Profile>() + rows + columns + consensus.capacity()) as u64
    }
}
