//! The ultrafast bootstrap: supports from the trees that a search passes by (UFBoot).
//!
//! The log-likelihood of a tree on a bootstrap replicate of the sites is near to the sum of its sites' log-likelihoods on the
//! alignment, each as often as its site was drawn (RELL; Kishino, Miyata and Hasegawa 1990). So one walk through tree space
//! samples trees for all replicates at once: each replicate keeps the tree that has most of its log-likelihood. Trees that
//! differ by less than [`TIE`] are one to a replicate, which takes any of them with the same probability: otherwise branches
//! of no length would get the supports of others (UFBoot2).
//!
//! ```text
//! a chain:   a tree of its pool -> disturbed -> climbed by exchanges -> it and all its neighbours are sampled -> pool
//! chains:    each of its own random numbers, of fixed number; what they have is merged replicate by replicate
//! ```
//!
//! A tree is looked at with its replicates only where it can be the best of one: where the difference of its
//! log-likelihood to that of the first tree is within what resampling may add.
//!
//! Minh, Nguyen and von Haeseler, Molecular Biology and Evolution 30:1188 (2013); Hoang, Chernomor, von Haeseler, Minh and
//! Vinh, Molecular Biology and Evolution 35:518 (2018).

use crate::alignment::Patterns;
use crate::alrt::Drawing;
use crate::likelihood::{Likelihood, Precision};
use crate::random::{Purpose, Random};
use crate::search::disturbed;
use crate::tree::{HalfEdge, Splits, Tree};
use multigrain_simd::{Isa, dispatch};
use std::collections::{BTreeMap, HashMap};

/// Trees no further apart in a replicate's log-likelihood are equal to it (UFBoot's).
pub const TIE: f32 = 0.5;
/// Chains, whatever the number of workers is.
pub const CHAINS: usize = 8;
/// Climbs of each chain in a round: after a round it is looked whether supports still change.
pub const CLIMBS: usize = 25;
/// At most so many rounds.
pub const ROUNDS: usize = 10;
/// Supports of two halves of the chains, or of two rounds, that correlate so well are the same (UFBoot's number, of rounds).
pub const CORRELATION: f64 = 0.99;
/// Trees that a chain may begin a climb with.
const POOL: usize = 10;
/// Resampling adds to a difference of log-likelihoods no more than so many of its standard deviations.
const DEVIATIONS: f64 = 5.0;
/// Turns over the five branches of an exchange.
const TURNS: usize = 2;
/// A climb by exchanges ends where a round gains less.
const GAIN: f64 = 0.1;

/// How often each replicate has each pattern.
pub struct Drawn {
    /// `[pattern][replicate]`
    counts: Vec<f32>,
    replicates: usize,
    isa: Isa,
}

impl Drawn {
    /// Sites drawn with replacement, partition by partition; `weights` are those of the patterns of each.
    pub fn new(weights: &[&[u32]], replicates: usize, seed: u64) -> Drawn {
        let drawing = Drawing::new(weights);
        let patterns = weights.iter().map(|w| w.len()).sum();
        let mut counts = vec![0.0; patterns * replicates];
        let mut drawn = vec![0.0; patterns];
        for replicate in 0..replicates {
            drawing.draw(&mut Random::new(seed, Purpose::Ultrafast, replicate as u64), &mut drawn);
            for (row, &count) in counts.chunks_exact_mut(replicates).zip(&drawn) {
                row[replicate] = count as f32;
            }
        }
        Drawn { counts, replicates, isa: Isa::detect() }
    }

    /// Bytes that so many replicates of so many patterns take.
    pub fn bytes(patterns: usize, replicates: usize) -> u64 {
        (patterns * replicates * size_of::<f32>()) as u64
    }

    /// The patterns of a replicate, as often as it has them; those that it lacks are left out.
    pub fn patterns(&self, partitions: &[&Patterns], replicate: usize) -> Vec<Patterns> {
        let mut rows = self.counts.chunks_exact(self.replicates);
        let of = |patterns: &&Patterns| {
            let weights: Vec<u32> = rows.by_ref().take(patterns.len()).map(|row| row[replicate] as u32).collect();
            patterns.weighted(&weights)
        };
        partitions.iter().map(of).collect()
    }

    /// For each replicate the sum of these numbers, one a pattern, as often as it has the pattern.
    fn sums(&self, of_patterns: &[f64], sums: &mut Vec<f32>) {
        sums.clear();
        sums.resize(self.replicates, 0.0);
        let (counts, sums) = (&*self.counts, &mut **sums);
        // SAFETY: an `Isa` is chosen only where it is supported, and what is called is safe.
        unsafe {
            dispatch!(self.isa, (counts: &[f32], of_patterns: &[f64], sums: &mut [f32]) => {
                Scalar: add_rows,
                Neon: add_rows,
                Avx2: add_rows,
                Avx512: add_rows,
            });
        }
    }
}

/// Adds `rows`, each of as many numbers as there are sums, times the numbers of patterns, pattern after pattern. Four at a time,
/// so that sums are read and written less.
#[inline(always)]
fn add_rows(rows: &[f32], of_patterns: &[f64], sums: &mut [f32]) {
    let n = sums.len();
    let (fours, rest) = of_patterns.as_chunks::<4>();
    for (rows, values) in rows.chunks_exact(4 * n).zip(fours) {
        let [a, b, c, d] = values.map(|value| value as f32);
        let (first, second) = rows.split_at(2 * n);
        let ((w, x), (y, z)) = (first.split_at(n), second.split_at(n));
        for ((((sum, w), x), y), z) in sums.iter_mut().zip(w).zip(x).zip(y).zip(z) {
            *sum = *sum + a * w + b * x + c * y + d * z;
        }
    }
    for (row, &value) in rows[4 * n * fours.len()..].chunks_exact(n).zip(rest) {
        sums.iter_mut().zip(row).for_each(|(sum, count)| *sum += value as f32 * count);
    }
}

/// What a replicate has found: its best tree by number, and among how many equals.
#[derive(Debug, Clone, Copy)]
struct Best {
    /// More log-likelihood than the first tree has.
    value: f32,
    equals: u32,
    tree: usize,
}

/// Numbers that name topologies: sums over splits of numbers that their taxa make.
struct Names {
    /// A number for each taxon.
    taxa: Vec<u64>,
    all: u64,
}

impl Names {
    fn new(taxa: usize) -> Names {
        // Any numbers do, the same in all runs.
        let mut random = Random::new(0, Purpose::Ultrafast, 0);
        let taxa: Vec<u64> = (0..taxa).map(|_| random.bits()).collect();
        let all = taxa.iter().fold(0, |all, taxon| all ^ taxon);
        Names { taxa, all }
    }

    /// The number of what lies at the node of each half-edge, seen from its back.
    fn behind(&self, tree: &Tree) -> Vec<u64> {
        let mut numbers = vec![0; tree.halves()];
        let order = tree.behind(tree.back(tree.tip(0)));
        for &half in order.iter().rev() {
            let number = match tree.is_tip(half) {
                true => self.taxa[half.index()],
                false => tree.others(half).iter().fold(0, |all, &side| all ^ numbers[tree.back(side).index()]),
            };
            numbers[half.index()] = number;
            numbers[tree.back(half).index()] = self.all ^ number;
        }
        numbers
    }

    /// The number of a split, from that of either side.
    fn split(&self, side: u64) -> u64 {
        let mut mixed = side.min(self.all ^ side).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ mixed >> 29
    }

    /// The number of a tree.
    fn tree(&self, tree: &Tree, behind: &[u64]) -> u64 {
        Splits::new(tree).branches.iter().fold(0, |sum, half| sum.wrapping_add(self.split(behind[half.index()])))
    }
}

/// A tree that was sampled: one that was climbed to, by number, or the one that an exchange there leads to.
struct Sample {
    climbed: usize,
    exchange: Option<Exchange>,
}

/// An exchange at a branch, and the lengths of the five branches around it behind it.
struct Exchange {
    half: HalfEdge,
    which: usize,
    lengths: [f64; 5],
}

/// A walk through tree space and what its trees are to the replicates.
pub struct Chain {
    random: Random,
    names: Names,
    /// Topologies that were sampled, in order.
    seen: Vec<u64>,
    /// Those at which a climb has ended: all of their neighbours were sampled.
    ends: Vec<u64>,
    /// Trees that were climbed to, with one set of lengths, as far as samples begin with them.
    climbed: Vec<Tree>,
    /// What replicates have.
    samples: Vec<Sample>,
    best: Vec<Best>,
    /// Log-likelihood and tree, the best first.
    pool: Vec<(f64, u64, Tree)>,
    sums: Vec<f32>,
}

impl Chain {
    /// Chain `number` of this seed, which begins with these trees.
    pub fn new(trees: &[(f64, Tree)], replicates: usize, seed: u64, number: usize) -> Chain {
        let names = Names::new(trees[0].1.taxa());
        let of = |(value, tree): &(f64, Tree)| (*value, names.tree(tree, &names.behind(tree)), tree.clone());
        let pool = trees.iter().map(of).collect();
        Chain {
            random: Random::new(seed, Purpose::Ultrafast, (1 << 32) + number as u64),
            names,
            seen: Vec::new(),
            ends: Vec::new(),
            climbed: Vec::new(),
            samples: Vec::new(),
            best: vec![Best { value: f32::NEG_INFINITY, equals: 0, tree: 0 }; replicates],
            pool,
            sums: Vec::new(),
        }
    }

    /// Bytes that a chain takes at most, where a tree of so many taxa takes so many with all its lengths.
    pub fn bytes(taxa: usize, replicates: u64, tree: u64) -> u64 {
        let climbs = (CLIMBS * ROUNDS) as u64;
        // What a climb can add: its own tree, and those that exchanges lead to.
        let trees = 2 * taxa as u64;
        let halves = 2 * trees;
        let climbed = climbs.min(replicates + 1) * halves * (size_of::<HalfEdge>() + size_of::<f64>()) as u64;
        // In lists that grow.
        let samples = (replicates + trees).min(climbs * trees) * 2 * size_of::<Sample>() as u64;
        let seen = climbs * (trees + 2) * size_of::<u64>() as u64;
        let of_replicates = replicates * (size_of::<Best>() + size_of::<f32>()) as u64;
        seen + climbed + samples + of_replicates + (POOL + 1) as u64 * tree
    }

    /// The best of the trees that it may begin a climb with.
    pub fn first(&self) -> &Tree {
        &self.pool[0].2
    }

    /// How many trees chains have sampled, each its own.
    pub fn seen(chains: &[Chain]) -> usize {
        chains.iter().map(|chain| chain.seen.len()).sum()
    }

    /// The best log-likelihood that was met.
    pub fn log_likelihood(&self) -> f64 {
        self.pool[0].0
    }

    /// One round: [`CLIMBS`] climbs. `reference` are the log-likelihoods of the patterns on the first tree, `weights` how many
    /// sites of the alignment have each.
    pub fn round(&mut self, likelihood: &mut Likelihood<'_>, drawn: &Drawn, reference: &[f64], weights: &[f64]) {
        for _ in 0..CLIMBS {
            // The trees that are begun with are sampled as they are.
            let is_first = self.samples.is_empty();
            let from = if is_first { 0 } else { self.random.below(self.pool.len() as u64) as usize };
            let mut tree = self.pool[from].2.clone();
            let constraint = likelihood.constraint();
            if !is_first {
                disturbed(&mut tree, &mut self.random, constraint.as_deref());
            }
            likelihood.set_tree(tree);
            if !is_first {
                likelihood.exchange_while(GAIN);
            }
            let behind = self.names.behind(likelihood.tree());
            let name = self.names.tree(likelihood.tree(), &behind);
            if self.ends.contains(&name) {
                continue;
            }
            self.ends.push(name);
            let value = likelihood.smooth(4, 0.01, Precision::COARSE);
            if !self.pool.iter().any(|(_, other, _)| *other == name) {
                self.pool.push((value, name, likelihood.tree().clone()));
                self.pool.sort_by(|a, b| b.0.total_cmp(&a.0));
                self.pool.truncate(POOL);
            }
            let sites = likelihood.sites().to_vec();
            self.climbed.push(likelihood.tree().mean(&sites));
            // No more than a climb can add.
            self.seen.reserve_exact(2 * likelihood.tree().taxa());
            let mut judge = Judge { drawn, reference, weights };
            if self.is_new(name) {
                let logs = likelihood.of_patterns().concat();
                self.sample(&mut judge, logs, || None);
            }
            let bounds = constraint.as_ref().map(|constraint| constraint.bounds(likelihood.tree()));
            for half in Splits::new(likelihood.tree()).branches {
                if bounds.as_ref().is_some_and(|bounds| bounds.is_needed(likelihood.tree(), half)) {
                    continue;
                }
                for which in 0..2 {
                    let other = self.exchanged(likelihood.tree(), &behind, name, half, which);
                    if self.is_new(other) {
                        let chain = &mut *self;
                        let judge = &mut judge;
                        let around = likelihood.tree().around(half);
                        likelihood.with_exchange(half, which, TURNS, Precision::COARSE, |likelihood| {
                            let logs = likelihood.of_patterns().concat();
                            let length = |branch| likelihood.tree().mean_length(branch, &sites);
                            chain.sample(judge, logs, || Some(Exchange { half, which, lengths: around.map(length) }));
                        });
                    }
                }
            }
            self.forget();
        }
    }

    /// Whether a tree of this number is sampled for the first time.
    fn is_new(&mut self, name: u64) -> bool {
        let place = self.seen.binary_search(&name);
        if let Err(place) = place {
            self.seen.insert(place, name);
        }
        place.is_err()
    }

    /// Forgets the samples that no replicate has any more, and what they alone began with.
    fn forget(&mut self) {
        let mut is_kept = vec![false; self.samples.len()];
        self.best.iter().for_each(|best| is_kept[best.tree] = true);
        let places = kept(&mut self.samples, &is_kept);
        self.best.iter_mut().for_each(|best| best.tree = places[best.tree]);
        let mut is_kept = vec![false; self.climbed.len()];
        self.samples.iter().for_each(|sample| is_kept[sample.climbed] = true);
        let places = kept(&mut self.climbed, &is_kept);
        self.samples.iter_mut().for_each(|sample| sample.climbed = places[sample.climbed]);
    }

    /// A sample, with one set of lengths.
    fn tree(&self, sample: usize) -> Tree {
        let Sample { climbed, exchange } = &self.samples[sample];
        let mut tree = self.climbed[*climbed].clone();
        if let Some(Exchange { half, which, lengths }) = exchange {
            let around = tree.around(*half);
            tree.exchange_sides(around[2], around[3 + which]);
            around.into_iter().zip(lengths).for_each(|(branch, &length)| tree.set_length(branch, 0, length));
        }
        tree
    }

    /// The number of the tree that an exchange leads to.
    fn exchanged(&self, tree: &Tree, behind: &[u64], name: u64, half: HalfEdge, which: usize) -> u64 {
        let near = tree.others(half);
        let far = tree.others(tree.back(half));
        let at = |side: HalfEdge| behind[tree.back(side).index()];
        let (old, new) = (at(near[0]) ^ at(near[1]), at(near[0]) ^ at(far[which]));
        name.wrapping_sub(self.names.split(old)).wrapping_add(self.names.split(new))
    }

    /// The tree that was climbed to last, or one that an exchange leads to from there, of these log-likelihoods is offered to all
    /// replicates.
    fn sample(&mut self, judge: &mut Judge<'_>, mut logs: Vec<f64>, exchange: impl FnOnce() -> Option<Exchange>) {
        logs.iter_mut().zip(judge.reference).for_each(|(log, reference)| *log -= reference);
        if !judge.is_possible(&logs) {
            return;
        }
        judge.drawn.sums(&logs, &mut self.sums);
        let number = self.samples.len();
        let mut is_kept = false;
        for (best, &value) in self.best.iter_mut().zip(&self.sums) {
            if value > best.value + TIE {
                *best = Best { value, equals: 1, tree: number };
                is_kept = true;
            } else if value > best.value - TIE {
                best.equals += 1;
                best.value = best.value.max(value);
                if self.random.below(u64::from(best.equals)) == 0 {
                    best.tree = number;
                    is_kept = true;
                }
            }
        }
        if is_kept {
            self.samples.push(Sample { climbed: self.climbed.len() - 1, exchange: exchange() });
        }
    }
}

/// What a tree is compared with.
struct Judge<'a> {
    drawn: &'a Drawn,
    reference: &'a [f64],
    weights: &'a [f64],
}

impl Judge<'_> {
    /// Whether a tree can be better than the first one in any replicate, from the differences of their patterns.
    fn is_possible(&self, more: &[f64]) -> bool {
        let (mut sum, mut squares, mut sites) = (0.0, 0.0, 0.0);
        for (&more, &weight) in more.iter().zip(self.weights) {
            sum += weight * more;
            squares += weight * more * more;
            sites += weight;
        }
        // The variance of a sum of as many drawn sites.
        let variance = squares - sum * sum / f64::max(sites, 1.0);
        sum + DEVIATIONS * variance.max(0.0).sqrt() + f64::from(TIE) >= 0.0
    }
}

/// Keeps some of the items, and gives the new place of each of these.
fn kept<T>(items: &mut Vec<T>, is_kept: &[bool]) -> Vec<usize> {
    let mut before = is_kept.iter();
    items.retain(|_| before.next().is_some_and(|kept| *kept));
    let place = |next: &mut usize, &kept: &bool| Some(std::mem::replace(next, *next + usize::from(kept)));
    is_kept.iter().scan(0, place).collect()
}

/// A tree that a replicate has: the chain, and its sample.
pub type Choice = (usize, usize);

/// The tree of each replicate, from what all chains have found: of the chains whose trees are equal to it any one, by their
/// numbers of equals.
pub fn merged(chains: &[Chain], seed: u64) -> Vec<Choice> {
    let replicates = chains.first().map_or(0, |chain| chain.best.len());
    let of = |replicate: usize| {
        let most = chains.iter().map(|chain| chain.best[replicate].value).fold(f32::NEG_INFINITY, f32::max);
        let equal = || (0..chains.len()).filter(|&chain| chains[chain].best[replicate].value > most - TIE);
        let all: u64 = equal().map(|chain| u64::from(chains[chain].best[replicate].equals)).sum();
        let mut drawn = Random::new(seed, Purpose::Ultrafast, (2 << 32) + replicate as u64).below(all.max(1));
        let chosen = equal().find(|&chain| {
            let equals = u64::from(chains[chain].best[replicate].equals);
            let here = drawn < equals;
            drawn = drawn.saturating_sub(equals);
            here
        });
        let chain = chosen.unwrap_or(0);
        (chain, chains[chain].best[replicate].tree)
    };
    (0..replicates).map(of).collect()
}

/// A tree that a replicate has, with one set of lengths.
pub fn tree_of(chains: &[Chain], (chain, sample): Choice) -> Tree {
    chains[chain].tree(sample)
}

/// How many of these trees have each split.
pub fn splits(chains: &[Chain], trees: &[Choice]) -> HashMap<Vec<u64>, f64> {
    // A tree is that of many replicates.
    let mut shares: BTreeMap<Choice, f64> = BTreeMap::new();
    trees.iter().for_each(|choice| *shares.entry(*choice).or_insert(0.0) += 1.0);
    let mut counts = HashMap::new();
    for (choice, share) in shares {
        for set in Splits::new(&tree_of(chains, choice)).sets {
            *counts.entry(set).or_insert(0.0) += share;
        }
    }
    counts
}

/// The correlation of two supports, over all splits that any of them has; 1 where they are equal.
pub fn correlation(a: &HashMap<Vec<u64>, f64>, b: &HashMap<Vec<u64>, f64>) -> f64 {
    if a == b {
        return 1.0;
    }
    let of = |set: &Vec<u64>| [a, b].map(|supports| supports.get(set).copied().unwrap_or(0.0));
    let mut sets: Vec<&Vec<u64>> = a.keys().chain(b.keys().filter(|set| !a.contains_key(*set))).collect();
    // In one order, for sums are rounded.
    sets.sort_unstable();
    let pairs: Vec<[f64; 2]> = sets.into_iter().map(of).collect();
    let n = pairs.len().max(1) as f64;
    let mean = [0, 1].map(|i| pairs.iter().map(|pair| pair[i]).sum::<f64>() / n);
    let product = |i: usize, j: usize| pairs.iter().map(|pair| (pair[i] - mean[i]) * (pair[j] - mean[j])).sum::<f64>();
    product(0, 1) / (product(0, 0) * product(1, 1)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replicates_have_as_many_sites() {
        let weights: [&[u32]; 2] = [&[3, 1, 6], &[5, 5]];
        let drawn = Drawn::new(&weights, 40, 3);
        for replicate in 0..40 {
            let counts: Vec<f32> = (0..5).map(|pattern| drawn.counts[pattern * 40 + replicate]).collect();
            assert_eq!((counts[..3].iter().sum::<f32>(), counts[3..].iter().sum::<f32>()), (10.0, 10.0));
        }
        let mut sums = Vec::new();
        drawn.sums(&[1.0; 5], &mut sums);
        assert_eq!(sums, [20.0; 40]);
        // In the order of the patterns with each instruction set.
        let values = [-1.3, 0.7, 1e-3, 2.9, -0.1];
        let sum = |replicate: usize| {
            values
                .iter()
                .enumerate()
                .fold(0.0, |sum, (i, &value)| sum + value as f32 * drawn.counts[i * 40 + replicate])
        };
        let expected: Vec<f32> = (0..40).map(sum).collect();
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let drawn = Drawn { counts: drawn.counts.clone(), isa, ..drawn };
            drawn.sums(&values, &mut sums);
            assert_eq!(sums, expected, "{isa}");
        }
    }

    #[test]
    fn correlations_are_those_of_pearson() {
        let map = |values: &[(u64, f64)]| values.iter().map(|&(set, v)| (vec![set], v)).collect::<HashMap<_, _>>();
        let a = map(&[(1, 1.0), (2, 2.0), (3, 3.0)]);
        assert_eq!(correlation(&a, &a), 1.0);
        assert!((correlation(&a, &map(&[(1, 5.0), (2, 7.0), (3, 9.0)])) - 1.0).abs() < 1e-12);
        assert!((correlation(&a, &map(&[(1, 3.0), (2, 2.0), (3, 1.0)])) + 1.0).abs() < 1e-12);
        // Splits that one lacks have no support there.
        assert!((correlation(&map(&[(1, 1.0)]), &map(&[(2, 1.0)])) + 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn numbers_name_topologies(choices in prop::collection::vec(any::<u32>(), 2..20), seed in any::<u64>()) {
            let tree = crate::tree::tests::grown(&choices);
            let names = Names::new(tree.taxa());
            let behind = names.behind(&tree);
            let name = names.tree(&tree, &behind);
            let chain = Chain::new(&[(0.0, tree.clone())], 1, seed, 0);
            for &half in &Splits::new(&tree).branches {
                for which in 0..2 {
                    let mut other = tree.clone();
                    let (a, b) = (tree.others(half)[1], tree.others(tree.back(half))[which]);
                    let (at_a, at_b) = (tree.back(a), tree.back(b));
                    other.join(a, at_b, tree.lengths(b));
                    other.join(b, at_a, tree.lengths(a));
                    prop_assert!(other.is_valid());
                    let expected = names.tree(&other, &names.behind(&other));
                    prop_assert!(expected != name);
                    prop_assert_eq!(chain.exchanged(&tree, &behind, name, half, which), expected);
                    // A sample keeps what the exchange has changed.
                    let around = tree.around(half);
                    let lengths = [0.1, 0.2, 0.3, 0.4, 0.5];
                    around.into_iter().zip(lengths).for_each(|(branch, length)| other.set_length(branch, 0, length));
                    let exchange = Some(Exchange { half, which, lengths });
                    let samples = vec![Sample { climbed: 0, exchange }];
                    let climbed = vec![tree.clone()];
                    let chain = Chain { samples, climbed, ..Chain::new(&[(0.0, tree.clone())], 1, seed, 0) };
                    prop_assert_eq!(&chain.tree(0), &other);
                }
            }
        }

        #[test]
        fn what_is_kept_is_found_again(marks in prop::collection::vec(any::<bool>(), 0..20)) {
            let mut items: Vec<usize> = (0..marks.len()).collect();
            let places = kept(&mut items, &marks);
            for (item, is_kept) in marks.iter().enumerate() {
                prop_assert_eq!(items.get(places[item]) == Some(&item), *is_kept);
            }
        }
    }
}
