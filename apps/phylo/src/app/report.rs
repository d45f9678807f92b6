//! What a run found, for people and for programs.

use crate::choose::Criterion;
use std::path::PathBuf;

/// What a run found.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The log-likelihood of the evaluated or best tree; `None` where only replicates were asked for.
    pub log_likelihood: Option<f64>,
    /// The log-likelihoods of all searches, in their order.
    pub searches: Vec<f64>,
    /// Number of different topologies among the trees of the searches.
    pub topologies: usize,
    /// Number of bootstrap replicates.
    pub replicates: usize,
    /// For each partition its name and its model with all values.
    pub models: Vec<(String, String)>,
    /// Free parameters of the evaluated or best tree: those of the models, and branch lengths.
    pub free_parameters: usize,
    /// The tree in Newick.
    pub tree: Option<String>,
    /// Files that were written, with the words that name them.
    pub files: Vec<(String, PathBuf)>,
    /// Wall-clock time of this run, in seconds.
    pub seconds: f64,
}

impl Report {
    /// Akaike's criterion, its corrected form, and the Bayesian one, for so many sites. The corrected form has no value
    /// where there are not more sites than parameters.
    pub fn criteria(&self, sites: usize) -> Option<[f64; 3]> {
        let log_likelihood = self.log_likelihood?;
        let all = [Criterion::Aic, Criterion::Aicc, Criterion::Bic];
        Some(all.map(|criterion| criterion.of(log_likelihood, self.free_parameters, sites)))
    }
}
