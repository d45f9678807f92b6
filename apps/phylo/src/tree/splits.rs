//! The splits of a tree: what each inner branch divides the taxa into.

use super::{HalfEdge, Tree};

/// The inner branches of a tree with the set of taxa on the side that does not contain taxon 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splits {
    /// For each inner branch, its half-edge on the side of the set, looking towards taxon 0.
    pub branches: Vec<HalfEdge>,
    /// For each of `branches` the set, taxon t being bit t % 64 of word t / 64.
    pub sets: Vec<Vec<u64>>,
}

impl Splits {
    /// The n - 3 splits of a tree of n taxa that no single taxon makes.
    pub fn new(tree: &Tree) -> Splits {
        let words = tree.taxa().div_ceil(64);
        let order = tree.behind(tree.back(HalfEdge(0)));
        let mut sets = vec![Vec::new(); tree.halves()];
        let mut splits = Splits { branches: vec![], sets: vec![] };
        for &half in order.iter().rev() {
            let mut set = vec![0u64; words];
            if tree.is_tip(half) {
                set[half.index() / 64] |= 1 << (half.index() % 64);
            } else {
                for side in tree.others(half) {
                    let behind = &sets[tree.back(side).index()];
                    set.iter_mut().zip(behind).for_each(|(a, b)| *a |= b);
                }
                if half != order[0] {
                    splits.branches.push(half);
                    splits.sets.push(set.clone());
                }
            }
            sets[half.index()] = set;
        }
        splits
    }

    /// The Robinson-Foulds distance: how many splits are in one of the two trees only.
    pub fn distance(&self, other: &Splits) -> usize {
        let of = |s: &Splits| s.sets.iter().cloned().collect::<std::collections::HashSet<_>>();
        of(self).symmetric_difference(&of(other)).count()
    }
}
