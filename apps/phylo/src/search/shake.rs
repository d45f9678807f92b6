//! Out of local optima: random moves, and climbing from there.

use super::Search;
use super::moves::Effort;
use crate::constraint::Constraint;
use crate::likelihood::Precision;
use crate::random::{Purpose, Random};
use crate::tree::{HalfEdge, Tree};

/// Taxa for each random move; at least two moves are made.
const TAXA_A_MOVE: usize = 12;
/// Random moves go so far, in branches.
const REACH: u64 = 4;
/// Radius of the climb that follows.
const RADIUS: usize = 5;
/// A climb that ends further below the best tree in log-likelihood is not continued thoroughly.
const HOPEFUL: f64 = 2.0;
/// Where the tree is disturbed in one place: so many moves, of subtrees that hang so near.
const LOCAL_MOVES: usize = 6;
const LOCAL_RADIUS: usize = 4;
/// So much further out branches are looked at again.
const MARGIN: usize = 2;
/// So often in one round.
const LOCAL_TIMES: usize = 20;
/// A tree must be better by this.
const GAIN: f64 = 1e-2;

impl Search<'_> {
    /// Disturbs the tree and climbs again; keeps what is better.
    pub(super) fn shake(&mut self) {
        let best = self.likelihood.tree().clone();
        let before = self.likelihood.log_likelihood();
        let mut random = Random::new(self.state.seed, Purpose::Search, self.state.shakes as u64);
        self.state.shakes += 1;
        let mut tree = best.clone();
        disturbed(&mut tree, &mut random, self.options.constraint.as_deref());
        self.likelihood.set_tree(tree);
        let mut now = self.likelihood.smooth(1, 0.0, Precision::COARSE);
        now = self.climb_while(&Effort::fast(RADIUS), now, 0.5);
        if now > before - HOPEFUL {
            now = self.climb_while(&Effort::thorough(RADIUS), now, 0.05);
            now = now.max(self.likelihood.smooth(4, 1e-3, Precision::COARSE));
        }
        self.keep_better(best, before, now);
    }

    /// Disturbs the tree in one place and climbs again by exchanges there, [`LOCAL_TIMES`] times; keeps what is better.
    pub(super) fn shake_locally(&mut self) {
        for _ in 0..LOCAL_TIMES {
            let best = self.likelihood.tree().clone();
            let before = self.state.log_likelihood;
            let mut random = Random::new(self.state.seed, Purpose::Search, self.state.shakes as u64);
            self.state.shakes += 1;
            let mut tree = best.clone();
            let center = random_half(&tree, &mut random);
            let place = tree.within(center, LOCAL_RADIUS);
            let mut is_near = vec![false; tree.halves()];
            tree.within(center, LOCAL_RADIUS + MARGIN).into_iter().for_each(|half| is_near[half.index()] = true);
            for _ in 0..LOCAL_MOVES {
                let root = place[random.below(place.len() as u64) as usize];
                random_move(&mut tree, root, &mut random, self.options.constraint.as_deref());
            }
            self.likelihood.set_tree(tree);
            self.likelihood.move_focus(center);
            let mut now = self.likelihood.exchange_among(1.0, |half| is_near[half.index()]);
            if now > before - HOPEFUL {
                now = self.likelihood.exchange_among(0.01, |half| is_near[half.index()]);
            }
            self.keep_better(best, before, now);
        }
    }

    fn keep_better(&mut self, best: Tree, before: f64, now: f64) {
        if now > before + GAIN {
            (self.state.log_likelihood, self.state.failures) = (now, 0);
        } else {
            self.likelihood.set_tree(best);
            (self.state.log_likelihood, self.state.failures) = (before, self.state.failures + 1);
        }
    }

    /// Rounds as long as each gains this much; at most eight.
    pub(super) fn climb_while(&mut self, effort: &Effort, start: f64, gain: f64) -> f64 {
        let mut now = start;
        for _ in 0..8 {
            let next = self.climb(effort);
            let gained = next - now;
            now = next;
            if gained < gain {
                break;
            }
        }
        now
    }
}

/// A random half-edge of an inner node.
fn random_half(tree: &Tree, random: &mut Random) -> HalfEdge {
    let inner = tree.halves() - tree.taxa();
    HalfEdge((tree.taxa() as u64 + random.below(inner as u64)) as u32)
}

/// Random moves all over the tree, within a constraint if there is one.
pub(crate) fn disturbed(tree: &mut Tree, random: &mut Random, constraint: Option<&Constraint>) {
    for _ in 0..(tree.taxa() / TAXA_A_MOVE).max(2) {
        random_step(tree, random, constraint);
    }
}

/// One random move, anywhere.
pub(crate) fn random_step(tree: &mut Tree, random: &mut Random, constraint: Option<&Constraint>) {
    let root = random_half(tree, random);
    random_move(tree, root, random, constraint);
}

/// Moves the subtree at `root`'s branch to a random place near it.
fn random_move(tree: &mut Tree, root: HalfEdge, random: &mut Random, constraint: Option<&Constraint>) {
    let bounds = constraint.map(|constraint| constraint.bounds(tree));
    let subtree = tree.back(root);
    let pruned = tree.prune(root);
    // A walk outwards from where it was.
    let start = pruned.ends[random.below(2) as usize];
    let mut place = start;
    for _ in 0..=random.below(REACH) {
        if tree.is_tip(place) || bounds.as_ref().is_some_and(|bounds| bounds.is_end(tree, subtree, place)) {
            break;
        }
        place = tree.back(tree.others(place)[random.below(2) as usize]);
    }
    let half: Vec<f64> = tree.lengths(place).iter().map(|l| l / 2.0).collect();
    tree.regraft(root, [place, tree.back(place)], [&half, &half]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn random_moves_keep_trees_valid(
            choices in prop::collection::vec(any::<u32>(), 2..30), seed in any::<u64>(),
        ) {
            let mut tree = crate::tree::tests::grown(&choices);
            let mut random = Random::new(seed, Purpose::Search, 0);
            for _ in 0..20 {
                let place = tree.within(random_half(&tree, &mut random), LOCAL_RADIUS);
                random_move(&mut tree, place[random.below(place.len() as u64) as usize], &mut random, None);
                prop_assert!(tree.is_valid());
            }
        }
    }
}
