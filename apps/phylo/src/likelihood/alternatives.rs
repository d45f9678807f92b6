//! What exchanges of neighbours at a branch would make of each pattern.

use super::{Likelihood, Precision};
use crate::tree::HalfEdge;

/// Turns over the five branches of an exchange, and what a turn must gain to be followed by another.
const TURNS: usize = 10;
const GAIN: f64 = 1e-3;

impl Likelihood<'_> {
    /// The log-likelihoods of all patterns, partition after partition, in the two trees in which subtrees from both ends of an
    /// inner branch have changed places, with that branch and its four neighbours optimised. Tree and lengths are as before
    /// when it returns.
    pub fn of_exchanges(&mut self, half: HalfEdge) -> [Vec<f64>; 2] {
        let [near, far] = [half, self.tree.back(half)].map(|end| self.tree.others(end));
        let branches = [half, near[0], near[1], far[0], far[1]];
        let lengths = branches.map(|branch| self.tree.lengths(branch).to_vec());
        let precision = Precision { gain: 1e-4, steps: 20 };
        far.map(|other| {
            self.move_focus(half);
            self.exchange_sides(near[1], other);
            let mut before = f64::NEG_INFINITY;
            for _ in 0..TURNS {
                branches.iter().for_each(|&branch| self.optimize_branch(branch, precision));
                let now = self.log_likelihood();
                if now - before < GAIN {
                    break;
                }
                before = now;
            }
            let logs = self.of_patterns().concat();
            self.move_focus(half);
            self.exchange_sides(near[1], other);
            // The lengths at the ends of the focus are in no other vectors than those of its nodes, which are invalid now.
            for (&branch, lengths) in branches.iter().zip(&lengths) {
                lengths.iter().enumerate().for_each(|(set, &length)| self.tree.set_length(branch, set, length));
            }
            logs
        })
    }
}
