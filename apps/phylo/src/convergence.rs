//! Whether there are enough bootstrap replicates (autoMRE).
//!
//! The replicates are divided into halves at random, many times. Two halves that say the same have nearly the same extended
//! majority-rule consensus: the weighted Robinson-Foulds distance of the two consensus trees, over the greatest possible, is
//! what is looked at. A branch that one of the two has weighs as many replicates as support it there, one that both have as
//! many as the two numbers differ by. There are enough where the distance is at most [`CUTOFF`] in 99 in 100 of the
//! divisions and in the mean.
//!
//! Pattengale, Alipour, Bininda-Emonds, Moret and Stamatakis, Journal of Computational Biology 17:337 (2010); the constants
//! are those of RAxML-NG.

use crate::random::{Purpose, Random};
use crate::tree::Splits;
use std::collections::HashMap;

/// Relative distance of halves that say the same.
pub const CUTOFF: f64 = 0.03;
/// So many divisions,
const DIVISIONS: usize = 1000;
/// and so large a share of them must pass.
const PASSING: f64 = 0.99;
/// After so many replicates it is looked whether they are enough, and after each so many more.
pub const STEP: usize = 50;

/// What the divisions say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The mean of the relative distances.
    pub distance: f64,
    /// The share of divisions in which it is at most [`CUTOFF`].
    pub passing: f64,
    /// Whether there are enough replicates.
    pub is_enough: bool,
}

/// Splits of all replicates, those that are equal once.
#[derive(Debug, Default)]
struct Distinct<'a> {
    sets: Vec<&'a [u64]>,
    /// For each tree the numbers of its splits.
    trees: Vec<Vec<usize>>,
    /// For splits that were once in a consensus, which others they cannot be in a tree with, as bits.
    conflicts: HashMap<usize, Vec<u64>>,
    /// Inner branches of a binary tree.
    branches: usize,
}

impl<'a> Distinct<'a> {
    fn new(trees: &'a [Splits]) -> Distinct<'a> {
        let mut distinct =
            Distinct { branches: trees.first().map_or(0, |tree| tree.sets.len()), ..Distinct::default() };
        let mut numbers: HashMap<&[u64], usize> = HashMap::new();
        for tree in trees {
            let own = tree.sets.iter().map(|set| {
                *numbers.entry(set).or_insert_with(|| {
                    distinct.sets.push(set);
                    distinct.sets.len() - 1
                })
            });
            let own = own.collect();
            distinct.trees.push(own);
        }
        distinct
    }

    /// The extended majority-rule consensus of some trees: splits in the order of their numbers of trees, each that can
    /// stand beside those before it. Gives the numbers of trees of all splits, 0 for those that are not in it.
    fn consensus(&mut self, trees: &[usize]) -> Vec<u32> {
        let mut counts = vec![0u32; self.sets.len()];
        trees.iter().flat_map(|&tree| &self.trees[tree]).for_each(|&split| counts[split] += 1);
        let mut order: Vec<usize> = (0..counts.len()).filter(|&split| counts[split] > 0).collect();
        // Of equal numbers that which was met first: the sort is stable.
        order.sort_by_key(|&split| std::cmp::Reverse(counts[split]));
        let mut kept = vec![0u32; self.sets.len()];
        let mut excluded = vec![0u64; self.sets.len().div_ceil(64)];
        let mut found = 0;
        for split in order {
            if found == self.branches {
                break;
            }
            if excluded[split / 64] >> (split % 64) & 1 == 0 {
                kept[split] = counts[split];
                found += 1;
                let sets = &self.sets;
                let conflicts = self.conflicts.entry(split).or_insert_with(|| conflicts(sets, split));
                excluded.iter_mut().zip(conflicts).for_each(|(all, own)| *all |= *own);
            }
        }
        kept
    }
}

/// Which splits contradict one of them.
fn conflicts(sets: &[&[u64]], split: usize) -> Vec<u64> {
    let own = sets[split];
    let mut bits = vec![0u64; sets.len().div_ceil(64)];
    for (i, other) in sets.iter().enumerate() {
        // No set has taxon 0: two go together if one contains the other or they share nothing.
        let any = |f: fn(u64, u64) -> u64| own.iter().zip(*other).any(|(&a, &b)| f(a, b) != 0);
        if any(|a, b| a & b) && any(|a, b| a & !b) && any(|a, b| !a & b) {
            bits[i / 64] |= 1 << (i % 64);
        }
    }
    bits
}

/// Whether the trees are enough; `seed` is that of the divisions.
pub fn look(trees: &[Splits], seed: u64) -> Verdict {
    let half = trees.len() / 2;
    let mut distinct = Distinct::new(trees);
    let mut random = Random::new(seed, Purpose::Halves, trees.len() as u64);
    let mut order: Vec<usize> = (0..2 * half).collect();
    let (mut sum, mut passed) = (0.0, 0);
    for _ in 0..DIVISIONS {
        random.shuffle(&mut order);
        let [a, b] = [&order[..half], &order[half..]].map(|trees| distinct.consensus(trees));
        let distance: u64 = a.iter().zip(&b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        let branches = a.iter().chain(&b).filter(|count| **count > 0).count();
        let relative = distance as f64 / (half * branches).max(1) as f64;
        sum += relative;
        passed += usize::from(relative <= CUTOFF);
    }
    let (distance, passing) = (sum / DIVISIONS as f64, passed as f64 / DIVISIONS as f64);
    Verdict { distance, passing, is_enough: half > 0 && distance <= CUTOFF && passing >= PASSING }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Newick, Tree};

    fn splits(text: &str, taxa: usize) -> Splits {
        let names: Vec<String> = (0..taxa).map(|t| format!("t{t}")).collect();
        Splits::new(&Tree::from_newick(&Newick::parse(text).unwrap(), &names, Some(1.0)).unwrap())
    }

    #[test]
    fn a_consensus_takes_what_goes_together_by_numbers() {
        let trees = [
            splits("(t0,(t1,(t2,(t3,(t4,t5)))));", 6),
            splits("(t0,(t1,(t3,(t2,(t4,t5)))));", 6),
            splits("(t0,(t4,(t2,(t3,(t1,t5)))));", 6),
        ];
        let mut distinct = Distinct::new(&trees);
        let kept = distinct.consensus(&[0, 1, 2]);
        let of = |set: u64| distinct.sets.iter().position(|s| s[0] == set).map(|i| kept[i]);
        // {t4, t5} and {t2, .., t5} in two trees; {t3, t4, t5} was met before {t2, t4, t5}; the third tree's all clash.
        assert_eq!([of(0b110000), of(0b111100), of(0b111000), of(0b110100)], [Some(2), Some(2), Some(1), Some(0)]);
        assert_eq!(kept.iter().filter(|count| **count > 0).count(), 3);
        assert_eq!(distinct.consensus(&[2]).iter().sum::<u32>(), 3);
    }

    #[test]
    fn trees_that_agree_are_enough_and_others_are_not() {
        let same = vec![splits("((t0,t1),(t2,t3),((t4,t5),(t6,(t7,t8))));", 9); 50];
        assert_eq!(look(&same, 1), Verdict { distance: 0.0, passing: 1.0, is_enough: true });
        let mut random = Random::new(3, Purpose::Search, 0);
        let mut tree = || {
            let mut order: Vec<usize> = (0..9).collect();
            random.shuffle(&mut order);
            let text = order[1..].iter().fold(format!("t{}", order[0]), |text, t| format!("({text},t{t})"));
            splits(&format!("{text};"), 9)
        };
        let others: Vec<Splits> = (0..50).map(|_| tree()).collect();
        let verdict = look(&others, 1);
        assert!(!verdict.is_enough && verdict.distance > 2.0 * CUTOFF && verdict.passing == 0.0, "{verdict:?}");
        assert_eq!(look(&others, 1), verdict);
        // One branch in doubt in a tenth of the replicates: in a few hundred replicates halves agree.
        let few: Vec<Splits> = (0..300)
            .map(|i| match i % 10 {
                0 => splits("((t0,t1),(t2,t3),((t4,t6),(t5,(t7,t8))));", 9),
                _ => same[0].clone(),
            })
            .collect();
        assert!(look(&few, 1).is_enough, "{:?}", look(&few, 1));
        assert!(look(&few[..20], 1).distance > look(&few, 1).distance);
        assert!(!look(&[], 1).is_enough);
    }
}
