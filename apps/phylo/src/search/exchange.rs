//! Exchanges of neighbours (NNI): the smallest moves, tried at every inner branch while its length is optimised.
//!
//! A round looks at two other trees a branch, where pruning and regrafting looks at hundreds, so it costs little more than
//! to optimise all lengths.

use crate::kernel::{Source, Step};
use crate::likelihood::{Likelihood, MIN_LENGTH, Precision};
use crate::tree::HalfEdge;

/// An exchange takes so many slots beside those of inner nodes.
pub(crate) const EXCHANGED: usize = 4;
/// And so many tables.
pub(crate) const TABLES: usize = 3;
/// An exchange must gain this log-likelihood.
const GAIN: f64 = 1e-3;
/// In the next round it is looked so far around it, in branches.
const NEAR: usize = 2;
/// At most so many rounds.
const ROUNDS: usize = 30;

impl Likelihood<'_> {
    /// Rounds of exchanges and of all lengths, until one gains less than `gain`. Gives the log-likelihood.
    pub(crate) fn exchange_while(&mut self, gain: f64) -> f64 {
        self.exchange_among(gain, |_| true)
    }

    /// As [`exchange_while`](Self::exchange_while), at the branches of which `is_wanted` has an end.
    pub(super) fn exchange_among(&mut self, gain: f64, is_wanted: impl Fn(HalfEdge) -> bool) -> f64 {
        let mut now = self.log_likelihood();
        let constraint = self.constraint();
        let mut bounds = constraint.as_ref().map(|constraint| constraint.bounds(self.tree()));
        // In the first round anywhere; then where something was exchanged, for elsewhere the tree is as it was.
        let mut is_near = vec![true; self.tree().halves()];
        for _ in 0..ROUNDS {
            let mut exchanged = Vec::new();
            let mut order = self.depth_first(self.focus());
            let is_open = |half: HalfEdge| is_near[half.index()] && is_wanted(half);
            order.retain(|&half| is_open(half) || is_open(self.tree().back(half)));
            for half in order {
                let tree = self.tree();
                let is_outer = tree.is_tip(half) || tree.is_tip(tree.back(half));
                if is_outer || bounds.as_ref().is_some_and(|bounds| bounds.is_needed(tree, half)) {
                    self.optimize_branch(half, Precision::COARSE);
                } else if self.exchange(half) {
                    exchanged.push(half);
                    bounds.iter_mut().for_each(|bounds| bounds.exchanged(self.tree(), half));
                }
            }
            let next = self.log_likelihood();
            let gained = next - now;
            now = next;
            if exchanged.is_empty() || gained < gain {
                break;
            }
            is_near.fill(false);
            let near = exchanged.into_iter().flat_map(|half| self.tree().within(half, NEAR));
            near.for_each(|half| is_near[half.index()] = true);
        }
        now
    }

    /// Optimises the length of an inner branch in the tree as it is and in the two in which a neighbour from one end has
    /// changed places with one from the other, and makes the best of them. True for one of the two.
    fn exchange(&mut self, half: HalfEdge) -> bool {
        self.begin();
        self.push_focus(half);
        let back = self.tree().back(half);
        let [near, far] = [half, back].map(|end| self.tree().others(end));
        let sides = [near[0], near[1], far[0], far[1]];
        let around = sides.map(|side| (self.hold(self.tree().back(side)), self.tree().lengths(side).to_vec()));
        let mut ends = vec![(self.source(half), self.source(back))];
        let mut slot = self.spare_slot();
        for groups in [[[0, 2], [1, 3]], [[0, 3], [1, 2]]] {
            for group in groups {
                let [left, right] = group.map(|i: usize| self.branch(around[i].0, &around[i].1));
                self.push(Step::Combine { left, right, to: slot });
                slot += 1;
            }
            ends.push((Source::Slot(slot - 2), Source::Slot(slot - 1)));
        }
        let mut lengths = vec![self.tree().lengths(half).to_vec(); 3];
        // At no length the three trees are one. One from whose likelihood there it falls can be no better than the first.
        self.newton(&ends, &mut lengths, 1, Precision::COARSE);
        sides.into_iter().for_each(|side| self.release(self.tree().back(side)));
        self.release_ends(half);
        let mut best = 0;
        if lengths[1..].iter().flatten().any(|&length| length > MIN_LENGTH) {
            let values = self.at_lengths(lengths.iter().map(Vec::as_slice));
            let other = if values[2] > values[1] { 2 } else { 1 };
            best = if values[other] > values[0] + GAIN { other } else { 0 };
        }
        if best > 0 {
            self.exchange_sides(near[1], far[best - 1]);
        }
        // The length of the focus is in no vector.
        self.set_focus_lengths(&lengths[best]);
        if best > 0 {
            sides.into_iter().for_each(|side| self.optimize_branch(side, Precision::COARSE));
        }
        best > 0
    }
}
