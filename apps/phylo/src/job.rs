//! What a run is made of: searches and replicates, and what each of them finds.

/// A search from one starting tree, or one bootstrap replicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    /// Search number n, from 0.
    Search(usize),
    /// Replicate number n, from 0.
    Replicate(usize),
}

impl Job {
    /// The word of its kind in files.
    pub fn kind(self) -> &'static str {
        match self {
            Job::Search(_) => "search",
            Job::Replicate(_) => "replicate",
        }
    }

    /// Its number, from 0.
    pub fn number(self) -> usize {
        match self {
            Job::Search(n) | Job::Replicate(n) => n,
        }
    }

    /// The job of this kind and number.
    pub fn named(kind: &str, number: usize) -> Option<Job> {
        match kind {
            "search" => Some(Job::Search(number)),
            "replicate" => Some(Job::Replicate(number)),
            _ => None,
        }
    }
}

/// What a job found. Texts, since this is what files and checkpoints keep; numbers in them are exact.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Whose result it is.
    pub job: Job,
    /// Log-likelihood of the tree; of a replicate on the replicate's sites.
    pub log_likelihood: f64,
    /// For each partition its model with all values, as a model string.
    pub models: Vec<String>,
    /// The tree in Newick, all taxa in it: one for each set of branch lengths.
    pub trees: Vec<String>,
}

/// The best of the searches; the first of equals, whichever was ready first.
pub(crate) fn best(found: &[Found]) -> Option<&Found> {
    let searches = found.iter().filter(|f| matches!(f.job, Job::Search(_)));
    searches.reduce(|a, b| if b.log_likelihood > a.log_likelihood { b } else { a })
}
