//! Fusing two trees: where they differ, the parts of the other are tried in the one, each by itself.
//!
//! Two good trees of many taxa agree in most splits. What they do not share falls into regions that hang together by
//! branches in one of them only, bounded by splits that both have; within a region either tree may be the better one, and
//! which it is in one region hardly depends on the others (Goloboff 1999, Cladistics 15:415, tree fusing).

use crate::likelihood::{Likelihood, Precision};
use crate::random::{Purpose, Random};
use crate::tree::{HalfEdge, Tree};
use std::collections::{HashMap, HashSet};

/// A region must gain this log-likelihood.
const GAIN: f64 = 1e-2;
/// Turns over the branches of a region after it was exchanged.
const PASSES: usize = 2;

/// For each half-edge a number that two half-edges (of whichever trees of the same taxa) share if the same taxa lie behind
/// them: the sum, bit by bit, of random numbers of the taxa. With 128 bits, others share one in fewer than one of 10^30
/// pairs.
fn keys(tree: &Tree) -> Vec<u128> {
    let mut random = Random::new(0, Purpose::Search, 0);
    let numbers: Vec<u128> =
        (0..tree.taxa()).map(|_| u128::from(random.bits()) << 64 | u128::from(random.bits())).collect();
    tree.sums(tree.tip(0), &numbers)
}

/// The first half-edges of the nodes that hang together with that of `start` by branches whose keys `shared` does not have.
fn region(tree: &Tree, keys: &[u128], shared: &dyn Fn(u128) -> bool, start: HalfEdge) -> Vec<HalfEdge> {
    let node = |half: HalfEdge| tree.inner(tree.inner_node(half));
    let mut found = vec![node(start)];
    let mut seen: HashSet<HalfEdge> = found.iter().copied().collect();
    let mut i = 0;
    while i < found.len() {
        for half in ring(tree, found[i]) {
            let back = tree.back(half);
            if !tree.is_tip(back) && !shared(keys[half.index()]) && seen.insert(node(back)) {
                found.push(node(back));
            }
        }
        i += 1;
    }
    found
}

/// Nodes of a region in one tree and in the other, as their first half-edges.
type Region = [Vec<HalfEdge>; 2];

/// The regions in which the trees differ, small ones first.
fn regions(tree: &Tree, keys_here: &[u128], other: &Tree, keys_there: &[u128]) -> Vec<Region> {
    let here: HashSet<u128> = keys_here.iter().copied().collect();
    let there: HashMap<u128, HalfEdge> =
        (0..other.halves() as u32).map(|h| (keys_there[h as usize], HalfEdge(h))).collect();
    let mut seen = vec![false; tree.taxa() - 2];
    let mut found = Vec::new();
    for node in 0..tree.taxa() - 2 {
        if seen[node] {
            continue;
        }
        let nodes = region(tree, keys_here, &|key| there.contains_key(&key), tree.inner(node));
        nodes.iter().for_each(|&half| seen[tree.inner_node(half)] = true);
        if nodes.len() == 1 {
            continue;
        }
        // A branch at its border leads to the same region of the other tree.
        let halves = nodes.iter().flat_map(|&first| ring(tree, first));
        let border = halves.filter_map(|half| there.get(&keys_here[half.index()])).next();
        let Some(&border) = border else { continue };
        let nodes_there = region(other, keys_there, &|key| here.contains(&key), border);
        if nodes_there.len() == nodes.len() {
            found.push([nodes, nodes_there]);
        }
    }
    found.sort_by_key(|[nodes, _]| nodes.len());
    found
}

fn ring(tree: &Tree, first: HalfEdge) -> [HalfEdge; 3] {
    let [b, c] = tree.others(first);
    [first, b, c]
}

/// The tree with a region of the other; what hangs at its border stays as it is. Gives the branches of the region as well.
fn exchanged(
    tree: &Tree,
    keys_here: &[u128],
    other: &Tree,
    keys_there: &[u128],
    [nodes, nodes_there]: &Region,
) -> (Tree, Vec<HalfEdge>) {
    let mut fused = tree.clone();
    // What lies beyond the border, by what is behind it.
    let inside: HashSet<HalfEdge> = nodes.iter().flat_map(|&first| ring(tree, first)).collect();
    let outer = inside.iter().map(|&half| tree.back(half)).filter(|half| !inside.contains(half));
    let outer: HashMap<u128, HalfEdge> = outer.map(|half| (keys_here[half.index()], half)).collect();
    let rings = nodes.iter().zip(nodes_there).flat_map(|(&a, &b)| ring(tree, a).into_iter().zip(ring(other, b)));
    let pairs: HashMap<HalfEdge, HalfEdge> = rings.map(|(a, b)| (b, a)).collect();
    let mut order: Vec<(HalfEdge, HalfEdge)> = pairs.iter().map(|(&b, &a)| (b, a)).collect();
    order.sort_unstable();
    let mut branches = Vec::new();
    for (there, here) in order {
        let back = other.back(there);
        match pairs.get(&back) {
            Some(&to) if there < back => fused.join(here, to, other.lengths(there)),
            Some(_) => continue,
            None => {
                let to = outer[&keys_there[back.index()]];
                fused.join(here, to, tree.lengths(to));
            }
        }
        branches.push(here);
    }
    (fused, branches)
}

impl Likelihood<'_> {
    /// Takes over from `other`, region by region, what is better. The log-likelihood is `now`; gives what it is then.
    pub(super) fn fuse(&mut self, other: &Tree, mut now: f64) -> f64 {
        let keys_there = keys(other);
        let mut keys_here = keys(self.tree());
        // Regions do not overlap: an exchange leaves the nodes of the others what they are.
        for region in regions(self.tree(), &keys_here, other, &keys_there) {
            let before = self.tree().clone();
            let (fused, branches) = exchanged(&before, &keys_here, other, &keys_there, &region);
            self.set_tree(fused);
            for _ in 0..PASSES {
                branches.iter().for_each(|&half| self.optimize_branch(half, Precision::COARSE));
            }
            let there = self.log_likelihood();
            if there > now + GAIN {
                now = there;
                keys_here = keys(self.tree());
            } else {
                self.set_tree(before);
            }
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Splits;
    use crate::tree::tests::grown;
    use proptest::prelude::*;

    proptest! {
        /// All regions of another tree together make that tree, whatever their order; each by itself makes a valid tree
        /// that is nearer to it by exactly what it differed in there.
        #[test]
        fn regions_lead_from_one_tree_to_the_other(
            choices in prop::collection::vec(any::<u32>(), 2..40), seed in any::<u64>(), moves in 0usize..8,
        ) {
            let tree = grown(&choices);
            let mut other = tree.clone();
            let mut random = Random::new(seed, Purpose::Search, 0);
            for _ in 0..moves {
                super::super::shake::random_step(&mut other, &mut random, None);
            }
            let (here, there) = (keys(&tree), keys(&other));
            let apart = |a: &Tree| Splits::new(a).distance(&Splits::new(&other));
            let mut all = tree.clone();
            for region in regions(&tree, &here, &other, &there) {
                let (one, branches) = exchanged(&tree, &here, &other, &there, &region);
                prop_assert!(one.is_valid());
                prop_assert_eq!(branches.len(), 2 * region[0].len() + 1);
                prop_assert_eq!(apart(&one) + 2 * (region[0].len() - 1), apart(&tree));
                all = exchanged(&all, &keys(&all), &other, &there, &region).0;
                prop_assert!(all.is_valid());
            }
            prop_assert_eq!(apart(&all), 0);
        }
    }
}
