//! What text files of profiles say before the nodes.

use super::alphabet::RESIDUES;
use super::fields::At;
use super::{Cutoff, Exponential, Gumbel, ProfileError};

/// What the lines before the nodes say.
#[derive(Default)]
pub(super) struct Header {
    pub(super) name: Option<String>,
    pub(super) accession: Option<String>,
    pub(super) description: Option<String>,
    pub(super) nodes: Option<usize>,
    pub(super) alphabet: bool,
    pub(super) msv: Option<Gumbel>,
    pub(super) viterbi: Option<Gumbel>,
    pub(super) forward: Option<Exponential>,
    pub(super) gathering: Option<Cutoff>,
    pub(super) trusted: Option<Cutoff>,
    pub(super) noise: Option<Cutoff>,
    pub(super) annotated: Annotated,
    pub(super) old: OldStatistics,
    /// The background's scores of HMMER2 (NULE).
    pub(super) background: Option<[i32; RESIDUES]>,
}

impl Header {
    /// The name and the number of nodes of a profile for amino acids.
    pub(super) fn name_and_nodes(&self, at: At<'_>) -> Result<(String, usize), ProfileError> {
        let name = self.name.clone().ok_or_else(|| missing(at, "NAME", "the profile's name"))?;
        let nodes = self.nodes.ok_or_else(|| missing(at, "LENG", "the number of nodes"))?;
        if self.alphabet { Ok((name, nodes)) } else { Err(missing(at, "ALPH", "the alphabet")) }
    }
}

/// The error that the header has no such line.
pub(super) fn missing(at: At<'_>, tag: &str, what: &str) -> ProfileError {
    at.error(format!("the header above has no {tag} line, {what}"))
}

/// Which symbols of nodes mean something.
#[derive(Clone, Copy, Default)]
pub(super) struct Annotated {
    pub(super) consensus: bool,
    pub(super) reference: bool,
    pub(super) mask: bool,
    pub(super) structure: bool,
}

/// The statistics of version 3/a, which has one location and one slope for MSV and Viterbi.
#[derive(Default)]
pub(super) struct OldStatistics {
    pub(super) lambda: Option<f64>,
    pub(super) mu: Option<f64>,
    pub(super) tau: Option<f64>,
}
