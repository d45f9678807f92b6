//! Lists of kernel steps.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where a conditional likelihood vector comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The letters of a taxon.
    Tip(u32),
    /// A slot of the chunk's memory.
    Slot(u32),
}

/// A vector seen through a branch: multiplied by the branch's transition matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// The vector at the far end.
    pub source: Source,
    /// The branch, as [`Batch::branch`] has numbered it.
    pub branch: u32,
}

/// A kernel on the patterns of one chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// The conditional likelihoods at a node from those behind its two other branches (`newview`): their product, pattern
    /// by pattern, scaled where it is small.
    Combine {
        /// One of them.
        left: Operand,
        /// The other.
        right: Operand,
        /// The slot of the result.
        to: u32,
    },
    /// A vector seen through a branch, times frequencies and probabilities of categories: what [`Step::Insert`] takes.
    Propagate {
        /// The vector and its branch.
        from: Operand,
        /// The slot of the result.
        to: u32,
    },
    /// The log-likelihood of a tree, from the vectors at both ends of one of its branches.
    Evaluate {
        /// The vector at one end.
        near: Source,
        /// The other, through the branch.
        far: Operand,
        /// Which result is written: `[log-likelihood, 0, 0]`.
        result: u32,
        /// Whether the log-likelihood of each pattern is kept as well.
        each: bool,
    },
    /// The log-likelihood of a tree from three vectors around a node, none of which need be stored at it: that of a
    /// subtree inserted into a branch.
    Insert {
        /// One end of the branch, through its part of it.
        near: Operand,
        /// The other end.
        far: Operand,
        /// The slot of the propagated vector of the subtree.
        subtree: u32,
        /// Which result is written: `[log-likelihood, 0, 0]`.
        result: u32,
    },
    /// Products of the vectors at both ends of a branch in the space of eigenvectors: from this table the likelihood for
    /// any length of the branch is a sum over eigenvalues.
    Table {
        /// One end.
        a: Source,
        /// The other.
        b: Source,
        /// Which table is written.
        table: u32,
    },
    /// From a table: the log-likelihood (where `log` is set), and its first and second derivative with respect to the
    /// length.
    Slope {
        /// The table.
        table: u32,
        /// The length, as [`Batch::length`] has numbered it.
        length: u32,
        /// Whether the log-likelihood itself is wanted.
        log: bool,
        /// Which result is written: `[log-likelihood or 0, first, second]`.
        result: u32,
    },
}

/// Steps, with the branch lengths that they need, for all partitions.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) steps: Vec<Step>,
    /// `[branch][set]`: lengths.
    lengths: Vec<f64>,
    /// `[length][set]`: lengths of slopes.
    slope_lengths: Vec<f64>,
    sets: usize,
    /// For each branch whether a tip lies behind it.
    tips: Vec<bool>,
    results: u32,
    slots: u32,
    tables: u32,
    /// See [`settle`](Batch::settle).
    pub(super) number: u64,
}

/// Numbers of batches, from 1: none is given twice.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl Batch {
    /// Empties the batch, which keeps its memory, for trees with `sets` sets of branch lengths and for chunks of so many slots at
    /// least: they get these at once, since memory that grows bit by bit takes more than it has.
    pub fn clear(&mut self, sets: usize, slots: u32) {
        self.go_on();
        self.sets = sets;
        self.results = 0;
        self.slots = slots;
        self.tables = 0;
    }

    /// Forgets the steps and branches that there are, which were executed: others follow. Results keep their numbers.
    pub fn go_on(&mut self) {
        self.steps.clear();
        self.lengths.clear();
        self.slope_lengths.clear();
        self.tips.clear();
    }

    /// Adds a branch with its lengths (one a set), behind which `source` lies; gives the operand.
    pub fn branch(&mut self, source: Source, lengths: &[f64]) -> Operand {
        debug_assert_eq!(lengths.len(), self.sets);
        let branch = self.tips.len() as u32;
        self.lengths.extend_from_slice(lengths);
        self.tips.push(matches!(source, Source::Tip(_)));
        Operand { source, branch }
    }

    /// Adds lengths (one a set) at which a slope is wanted; gives their number.
    pub fn length(&mut self, lengths: &[f64]) -> u32 {
        debug_assert_eq!(lengths.len(), self.sets);
        self.slope_lengths.extend_from_slice(lengths);
        (self.slope_lengths.len() / self.sets - 1) as u32
    }

    /// Adds a step.
    pub fn push(&mut self, step: Step) {
        match step {
            Step::Combine { to, .. } | Step::Propagate { to, .. } => self.slots = self.slots.max(to + 1),
            Step::Evaluate { result, .. } | Step::Insert { result, .. } | Step::Slope { result, .. } => {
                self.results = self.results.max(result + 1);
            }
            Step::Table { table, .. } => self.tables = self.tables.max(table + 1),
        }
        self.steps.push(step);
    }

    /// Whether it has no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Number of results that the steps write.
    pub fn results(&self) -> usize {
        self.results as usize
    }

    /// One more than the highest slot written.
    pub(super) fn slots(&self) -> usize {
        self.slots as usize
    }

    /// One more than the highest table written.
    pub(super) fn tables(&self) -> usize {
        self.tables as usize
    }

    /// A measure of the work on one pattern and category: multiply-adds of its vectors.
    pub fn work(&self, states: usize) -> usize {
        let square = states * states;
        let cost = |step: &Step| match step {
            Step::Combine { .. } | Step::Insert { .. } | Step::Table { .. } => 2 * square + 2 * states,
            Step::Propagate { .. } | Step::Evaluate { .. } => square + 2 * states,
            Step::Slope { .. } => 4 * states,
        };
        self.steps.iter().map(cost).sum()
    }

    /// Gives the batch as it is now a number, by which threads know what they have made ready for it.
    pub fn settle(&mut self) {
        self.number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of branches.
    pub fn branches(&self) -> usize {
        self.tips.len()
    }

    /// The lengths of the branches in a set, and whether a tip lies behind them.
    pub(super) fn lengths_of(&self, set: usize) -> impl Iterator<Item = (f64, bool)> {
        self.lengths.iter().skip(set).step_by(self.sets).copied().zip(self.tips.iter().copied())
    }

    /// The lengths of slopes in a set.
    pub(super) fn slopes_of(&self, set: usize) -> impl Iterator<Item = f64> {
        self.slope_lengths.iter().skip(set).step_by(self.sets).copied()
    }
}
