//! Supports of the branches of a tree by replicates, and their majority-rule consensus.
//!
//! A split is the set of taxa on the side of a branch that does not contain taxon 0, as words of 64 bits
//! ([`Splits`]).

use crate::tree::{HalfEdge, Newick, NewickNode, Splits};
use std::collections::HashMap;

/// Splits of replicates with how many of them have each.
#[derive(Debug, Clone, Default)]
pub struct Replicates {
    /// How many trees there are.
    pub trees: usize,
    counts: HashMap<Vec<u64>, usize>,
    all: Vec<Vec<Vec<u64>>>,
}

/// Support of one inner branch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Support {
    /// The branch, by the half-edge that looks towards taxon 0.
    pub branch: HalfEdge,
    /// Share of the replicates that have the branch (Felsenstein 1985).
    pub felsenstein: f64,
    /// Transfer bootstrap expectation (Lemoine et al. 2018): 1 less the mean over replicates of the least number of taxa
    /// that must change sides to make one of its branches into this one, over its greatest possible value.
    pub transfer: f64,
}

fn ones(set: &[u64]) -> usize {
    set.iter().map(|w| w.count_ones() as usize).sum()
}

impl Replicates {
    /// Adds the tree of a replicate.
    pub fn add(&mut self, splits: &Splits) {
        self.trees += 1;
        for set in &splits.sets {
            *self.counts.entry(set.clone()).or_default() += 1;
        }
        self.all.push(splits.sets.clone());
    }

    /// Supports of the inner branches of a tree of `taxa` taxa, in the order of its splits. Without replicates there are
    /// none.
    pub fn supports(&self, reference: &Splits, taxa: usize) -> Vec<Support> {
        if self.trees == 0 {
            return Vec::new();
        }
        let n = self.trees as f64;
        let one = |(&branch, set): (&HalfEdge, &Vec<u64>)| Support {
            branch,
            felsenstein: self.counts.get(set).copied().unwrap_or(0) as f64 / n,
            transfer: self.transfer(set, taxa),
        };
        reference.branches.iter().zip(&reference.sets).map(one).collect()
    }

    fn transfer(&self, set: &[u64], taxa: usize) -> f64 {
        let size = ones(set);
        // The branch of a single tip is in every tree, and is this far away.
        let most = size.min(taxa - size) - 1;
        let mut sum = 0usize;
        for tree in &self.all {
            let mut least = most;
            for other in tree {
                let apart: usize = set.iter().zip(other).map(|(a, b)| (a ^ b).count_ones() as usize).sum();
                least = least.min(apart.min(taxa - apart));
                if least == 0 {
                    break;
                }
            }
            sum += least;
        }
        1.0 - sum as f64 / (self.trees * most) as f64
    }

    /// The tree of the splits that more than half of the replicates have, labelled with their share in per cent, without
    /// lengths. The root is at the branch of taxon 0.
    pub fn majority_consensus(&self, names: &[String]) -> Newick {
        let mut majority: Vec<(&Vec<u64>, usize)> = self
            .counts
            .iter()
            .filter(|(_, count)| 2 * **count > self.trees)
            .map(|(set, &count)| (set, count))
            .collect();
        // Majority splits are compatible: sorted by size, the smallest set that contains another is the one above it.
        majority.sort_by_key(|(set, _)| (std::cmp::Reverse(ones(set)), (*set).clone()));
        let mut nodes = vec![NewickNode { place: (1, 1), ..NewickNode::default() }];
        let mut sets: Vec<Option<&Vec<u64>>> = vec![None];
        let push = |nodes: &mut Vec<NewickNode>, parent: usize, label: Option<String>| {
            let node = nodes.len();
            nodes.push(NewickNode { parent: Some(parent), label, place: (1, 1), ..NewickNode::default() });
            nodes[parent].children.push(node);
        };
        for (set, count) in majority {
            let inside = |outer: &Option<&Vec<u64>>| outer.is_none_or(|o| set.iter().zip(o).all(|(a, b)| a & !b == 0));
            // Larger sets come first, so the last one that contains it is the smallest.
            let parent = sets.iter().rposition(inside).unwrap_or(0);
            let percent = (100.0 * count as f64 / self.trees as f64).round();
            push(&mut nodes, parent, Some(format!("{percent}")));
            sets.push(Some(set));
        }
        for (taxon, name) in names.iter().enumerate() {
            let has = |set: &Option<&Vec<u64>>| set.is_none_or(|s| s[taxon / 64] >> (taxon % 64) & 1 == 1);
            let parent = sets.iter().rposition(has).unwrap_or(0);
            push(&mut nodes, parent, Some(name.clone()));
        }
        Newick { nodes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use proptest::prelude::*;

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("t{i}")).collect()
    }

    fn splits(text: &str, taxa: usize) -> Splits {
        Splits::new(&Tree::from_newick(&Newick::parse(text).unwrap(), &names(taxa), Some(1.0)).unwrap())
    }

    #[test]
    fn supports_of_a_small_tree() {
        let reference = splits("(t0,(t1,(t2,(t3,(t4,t5)))));", 6);
        let mut replicates = Replicates::default();
        replicates.add(&splits("(t0,(t1,(t2,(t3,(t4,t5)))));", 6));
        replicates.add(&splits("(t0,(t1,(t3,(t2,(t4,t5)))));", 6));
        replicates.add(&splits("(t0,(t4,(t2,(t3,(t1,t5)))));", 6));
        let by_set: HashMap<u64, (f64, f64)> = reference
            .sets
            .iter()
            .map(|s| s[0])
            .zip(replicates.supports(&reference, 6).iter().map(|s| (s.felsenstein, s.transfer)))
            .collect();
        // {t4, t5}: in two of three; in the third it is one taxon away, the most that is possible.
        assert_eq!(by_set[&0b110000], (2.0 / 3.0, 1.0 - 1.0 / 3.0));
        // {t3, t4, t5}: in the first; one taxon away in the second; in the third {t1, t3, t5} is two away, as far as can be.
        assert_eq!(by_set[&0b111000], (1.0 / 3.0, 1.0 - 3.0 / (3.0 * 2.0)));
        // {t2, .., t5} is {t0, t1}: also in the second.
        assert_eq!(by_set[&0b111100], (2.0 / 3.0, 1.0 - 1.0 / 3.0));
        let consensus = replicates.majority_consensus(&names(6)).to_text();
        assert_eq!(consensus, "(((t4,t5)67,t2,t3)67,t0,t1);");
    }

    #[test]
    fn a_tree_supports_itself_fully_and_is_its_own_consensus() {
        let text = "((t0,t1),(t2,t3),((t4,t5),(t6,(t7,t8))));";
        let own = splits(text, 9);
        let mut replicates = Replicates::default();
        (0..3).for_each(|_| replicates.add(&own));
        let supports = replicates.supports(&own, 9);
        assert_eq!(supports.len(), 6);
        assert!(supports.iter().all(|s| s.felsenstein == 1.0 && s.transfer == 1.0));
        let consensus = replicates.majority_consensus(&names(9));
        assert_eq!(consensus.nodes.iter().filter(|n| n.label.as_deref() == Some("100")).count(), 6);
    }

    /// Random trees of taxa in random order, as caterpillars.
    fn caterpillar(order: &[usize]) -> Splits {
        let mut text = format!("(t{},t{})", order[0], order[1]);
        for taxon in &order[2..] {
            text = format!("({text},t{taxon})");
        }
        splits(&format!("{text};"), order.len())
    }

    proptest! {
        #[test]
        fn supports_lie_between_none_and_full(
            orders in prop::collection::vec(Just((0..9).collect::<Vec<usize>>()).prop_shuffle(), 2..8),
        ) {
            let trees: Vec<Splits> = orders.iter().map(|o| caterpillar(o)).collect();
            let mut replicates = Replicates::default();
            trees[1..].iter().for_each(|t| replicates.add(t));
            for support in replicates.supports(&trees[0], 9) {
                prop_assert!((0.0..=1.0).contains(&support.felsenstein) && support.transfer <= 1.0);
                // A replicate that has the branch needs no transfer, so the transfer support is never smaller.
                prop_assert!(support.transfer >= support.felsenstein - 1e-12);
            }
            // Every majority split is in the consensus, which has every taxon once.
            let consensus = replicates.majority_consensus(&names(9));
            let tips = consensus.nodes.iter().filter(|n| n.children.is_empty()).count();
            prop_assert_eq!(tips, 9);
            let text = consensus.to_text();
            prop_assert_eq!(Newick::parse(&text).unwrap().to_text(), text);
        }
    }
}
