//! How the calls of a program were split, as far as it is to be known by another run.

use multigrain_program::{SplitError, Tunables};
use serde::{Deserialize, Serialize};

/// How the calls of a program were split at the root edge. Each decision stands once, where its task and shape come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ways {
    /// For each task with stages: its name, and whether it was taken apart.
    pub(crate) apart: Vec<(String, bool)>,
    /// For each chain of steps: the name of its task, and how many are taken together.
    #[serde(default)]
    pub(crate) together: Vec<(String, u64)>,
    /// For each task that was split: its name and its tunables, in their order.
    pub(crate) blocks: Vec<(String, Vec<(String, u64)>)>,
}

impl From<SplitError> for OtherWays {
    fn from(error: SplitError) -> OtherWays {
        OtherWays { why: error.to_string() }
    }
}

/// The ways of a program do not fit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct OtherWays {
    /// In which.
    pub why: String,
}

impl Ways {
    pub(crate) fn note_apart(&mut self, task: &str, apart: bool) {
        self.apart.push((task.to_owned(), apart));
    }

    pub(crate) fn note_together(&mut self, task: &str, steps: u64) {
        self.together.push((task.to_owned(), steps));
    }

    /// Every step is a call of its own.
    pub(crate) fn note_single(&mut self) {
        self.together.iter_mut().for_each(|(_, steps)| *steps = 1);
    }

    pub(crate) fn note_blocks(&mut self, task: &str, tunables: &Tunables) {
        let values = tunables.iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.blocks.push((task.to_owned(), values));
    }
}
