//! A plan that several processes execute: of the root edge each executes the steps of the child of its number, and what
//! children tell each other goes from process to process.
//!
//! Signals are counted from the first plan on. All ranks execute the same plans in the same order, so each knows how many another
//! had given before this one. Behind every plan of the root edge all meet: what one has stored the next plan may fetch anywhere.

use crate::error::Ended;
use multigrain_driver::ranks::Ranks;
use multigrain_plan::{Op, Plan};
use multigrain_team::Abort;
use std::sync::atomic::{AtomicU64, Ordering};

/// The ranks of a run, and what the plans before the present one had of signals and barriers.
pub(crate) struct OnRanks<'a> {
    pub(crate) all: &'a Ranks,
    signals: Vec<AtomicU64>,
}

impl<'a> OnRanks<'a> {
    pub(crate) fn new(all: &'a Ranks) -> OnRanks<'a> {
        // Behind the last barrier of the run before nobody gives a signal.
        OnRanks { all, signals: (0..all.count()).map(|rank| all.signals(rank).into()).collect() }
    }

    /// Waits until another rank's steps have given so many signals in this plan.
    pub(crate) fn wait(&self, rank: usize, signals: u32, abort: &Abort) -> Result<(), Ended> {
        // Relaxed, here and below: used by the one thread that executes this rank's steps of the root edge.
        let before = self.signals[rank].load(Ordering::Relaxed);
        self.all.wait(rank, before + u64::from(signals), abort).map_err(|_| Ended)
    }

    /// All are through with a plan of the root edge.
    pub(crate) fn leave(&self, plan: &Plan, abort: &Abort) -> Result<(), Ended> {
        for (before, child) in self.signals.iter().zip(&plan.children) {
            let given = child.ops.iter().filter(|op| matches!(op, Op::Signal)).count() as u64;
            before.fetch_add(given, Ordering::Relaxed);
        }
        self.all.meet(abort).map_err(|_| Ended)
    }
}
