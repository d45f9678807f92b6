//! Climbing again from other starting trees, until the best end is met a second time.
//!
//! One climb from one starting tree misses the best tree as often as not where sites are few, as they are in bootstrap
//! replicates: supports that come from such trees are lower, and mean something else, than those of thorough searches. How
//! often it must be climbed depends on the alignment, and from replicate to replicate. So that is what is asked: two climbs
//! from independent starting trees that end at the same log-likelihood, which no other was above, are taken for the end.

use super::{NEAR, Search, moves};
use crate::likelihood::Precision;
use crate::random::{Purpose, Random};

/// Climbs that end no further apart in log-likelihood have met: they were optimised to about a tenth of this.
const SAME: f64 = 0.05;

impl Search<'_> {
    /// Climbs from another starting tree; keeps the better of both, and takes over what is better in parts of the other.
    /// True where both ends are the same.
    pub(super) fn climb_again(&mut self) -> bool {
        let (before, first) = (self.state.log_likelihood, self.likelihood.tree().clone());
        self.state.shakes += 1;
        let Some(parsimony) = &mut self.parsimony else { return true };
        // Numbers below are those of trees that are begun with.
        let mut random = Random::new(self.state.seed, Purpose::Start, AGAIN + self.state.shakes as u64);
        let tree = parsimony.start_tree(&mut random, first.sets());
        self.likelihood.set_tree(tree);
        let mut now = self.likelihood.smooth(2, 1.0, Precision::COARSE);
        now = self.climb_while(&moves::Effort::fast(NEAR), now, 1.0);
        now = self.climb_while(&moves::Effort::fast(self.options.fast_radius), now, 1.0);
        now = self.climb_while(&moves::Effort::thorough(self.options.thorough_radius), now, 0.05);
        now = now.max(self.likelihood.smooth(4, 0.01, Precision::COARSE));
        if (now - before).abs() < SAME {
            self.state.log_likelihood = now;
            return true;
        }
        let other = match now > before {
            true => first,
            false => {
                let other = self.likelihood.tree().clone();
                self.likelihood.set_tree(first);
                other
            }
        };
        self.state.log_likelihood = self.likelihood.fuse(&other, now.max(before));
        false
    }
}

/// Streams of random numbers from here on are those of trees that are climbed from again.
const AGAIN: u64 = 1 << 32;
