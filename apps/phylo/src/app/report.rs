//! What a run found, for people and for programs.

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
        let (k, n) = (self.free_parameters as f64, sites as f64);
        let deviance = -2.0 * self.log_likelihood?;
        let akaike = deviance + 2.0 * k;
        let corrected = if n > k + 1.0 { akaike + 2.0 * k * (k + 1.0) / (n - k - 1.0) } else { f64::INFINITY };
        Some([akaike, corrected, deviance + k * n.ln()])
    }
}
