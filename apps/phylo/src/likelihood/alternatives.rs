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
        let precision = Precision { gain: 1e-4, steps: 20 };
        [0, 1].map(|which| self.with_exchange(half, which, TURNS, precision, |changed| changed.of_patterns().concat()))
    }

    /// Calls `look` in one of the two trees of [`of_exchanges`](Self::of_exchanges), after at most so many turns over the five
    /// branches. `look` changes nothing; tree and lengths are as before when this returns.
    pub(crate) fn with_exchange<T>(
        &mut self,
        half: HalfEdge,
        which: usize,
        turns: usize,
        precision: Precision,
        look: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let branches = self.tree.around(half);
        let sides = (branches[2], branches[3 + which]);
        let lengths = branches.map(|branch| self.tree.lengths(branch).to_vec());
        self.move_focus(half);
        self.exchange_sides(sides.0, sides.1);
        let mut before = f64::NEG_INFINITY;
        for _ in 0..turns {
            branches.iter().for_each(|&branch| self.optimize_branch(branch, precision));
            let now = self.log_likelihood();
            if now - before < GAIN {
                break;
            }
            before = now;
        }
        let found = look(self);
        self.move_focus(half);
        self.exchange_sides(sides.0, sides.1);
        // The lengths at the ends of the focus are in no other vectors than those of its nodes, which are invalid now.
        for (&branch, lengths) in branches.iter().zip(&lengths) {
            lengths.iter().enumerate().for_each(|(set, &length)| self.tree.set_length(branch, set, length));
        }
        found
    }
}
