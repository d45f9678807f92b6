//! SH-aLRT: supports of branches by an approximate likelihood-ratio test.
//!
//! For each inner branch the tree is compared with the two that exchanges of neighbours at it lead to. The statistic is twice
//! the difference between its log-likelihood and that of the better of the two. How large it would be by chance, were all
//! three equally good, is found from replicates of the sites, whose log-likelihoods are added up anew and centred (Kishino,
//! Miyata and Hasegawa 1990; Shimodaira and Hasegawa 1999); the support is the share of the replicates that have a smaller
//! one.
//!
//! Guindon, Dufayard, Lefort, Anisimova, Hordijk and Gascuel, Systematic Biology 59:307 (2010).

use crate::likelihood::Likelihood;
use crate::random::Random;
use crate::tree::{HalfEdge, Splits};

/// The statistic must be larger than that of a replicate by this: what optimised lengths may be off (IQ-TREE's).
const MARGIN: f64 = 0.05;

/// Sites drawn with replacement, partition by partition.
pub struct Drawing {
    /// For each partition the pattern, among those of all partitions, of each of its sites.
    partitions: Vec<Vec<u32>>,
}

impl Drawing {
    /// From how many sites have each pattern, partition by partition.
    pub fn new(weights: &[&[u32]]) -> Drawing {
        let mut pattern = 0;
        let mut next = || {
            pattern += 1;
            pattern - 1
        };
        let mut sites = |weights: &&[u32]| {
            let of = |&weight: &u32| std::iter::repeat_n(next(), weight as usize);
            weights.iter().flat_map(of).collect::<Vec<u32>>()
        };
        Drawing { partitions: weights.iter().map(&mut sites).collect() }
    }

    /// How often each pattern is drawn, into `weights`.
    pub fn draw(&self, random: &mut Random, weights: &mut [f64]) {
        weights.fill(0.0);
        for sites in &self.partitions {
            for _ in sites {
                weights[sites[random.below(sites.len() as u64) as usize] as usize] += 1.0;
            }
        }
    }
}

/// The support, from 0 to 1, of each inner branch, by so many replicates. `weights` are those of the patterns of each
/// partition.
pub fn supports(
    likelihood: &mut Likelihood<'_>,
    weights: &[&[u32]],
    replicates: usize,
    random: &mut Random,
) -> Vec<(HalfEdge, f64)> {
    let branches = Splits::new(likelihood.tree()).branches;
    let own = likelihood.of_patterns().concat();
    let tests: Vec<Test> =
        branches.iter().map(|&half| Test::new(likelihood.of_exchanges(half), &own, weights)).collect();
    let drawing = Drawing::new(weights);
    let mut counts = vec![0usize; tests.len()];
    let mut drawn = vec![0.0; own.len()];
    for _ in 0..replicates {
        drawing.draw(random, &mut drawn);
        counts.iter_mut().zip(&tests).for_each(|(count, test)| *count += usize::from(test.is_passed(&drawn)));
    }
    let share = |count: usize| count as f64 / replicates.max(1) as f64;
    branches.into_iter().zip(counts).map(|(half, count)| (half, share(count))).collect()
}

/// One branch.
struct Test {
    /// By how much the log-likelihoods of the patterns are larger in each of the two other trees.
    more: [Vec<f64>; 2],
    /// Their sums over all sites.
    total: [f64; 2],
}

impl Test {
    fn new(others: [Vec<f64>; 2], own: &[f64], weights: &[&[u32]]) -> Test {
        let more = others.map(|other| other.iter().zip(own).map(|(a, b)| a - b).collect::<Vec<f64>>());
        let all: Vec<f64> = weights.iter().flat_map(|w| w.iter().copied().map(f64::from)).collect();
        let total = [0, 1].map(|i| product(&more[i], &all));
        Test { more, total }
    }

    fn is_passed(&self, drawn: &[f64]) -> bool {
        let statistic = -2.0 * self.total[0].max(self.total[1]);
        // The tree itself is at 0.
        let mut centred = [0.0, 0.0, 0.0];
        for (i, centred) in centred[1..].iter_mut().enumerate() {
            *centred = product(&self.more[i], drawn) - self.total[i];
        }
        centred.sort_by(f64::total_cmp);
        statistic > 2.0 * (centred[2] - centred[1]) + MARGIN
    }
}

/// The sum of products, in four chains.
fn product(a: &[f64], b: &[f64]) -> f64 {
    let (mut sums, mut rest) = ([0.0; 4], 0.0);
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    a4.remainder().iter().zip(b4.remainder()).for_each(|(x, y)| rest += x * y);
    for (x, y) in a4.zip(b4) {
        (0..4).for_each(|i| sums[i] += x[i] * y[i]);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    /// The definition, replicate by replicate, from the log-likelihoods themselves.
    #[test]
    fn a_test_is_its_definition() {
        let mut random = Random::new(11, Purpose::Likelihoods, 0);
        let mut number = || random.below(2000) as f64 / 1000.0;
        let patterns = 9;
        let trees: Vec<Vec<f64>> = (0..3).map(|_| (0..patterns).map(|_| -5.0 - number()).collect()).collect();
        let weights: Vec<u32> = (0..patterns as u32).map(|p| 1 + p % 3).collect();
        let sum = |logs: &[f64], w: &[f64]| logs.iter().zip(w).map(|(l, w)| l * w).sum::<f64>();
        let all: Vec<f64> = weights.iter().map(|&w| f64::from(w)).collect();
        let drawing = Drawing::new(&[&weights[..4], &weights[4..]]);
        let mut passed = 0;
        for tree in 0..3 {
            let others = [(tree + 1) % 3, (tree + 2) % 3];
            let test = Test::new(others.map(|i| trees[i].clone()), &trees[tree], &[&weights[..4], &weights[4..]]);
            let full: Vec<f64> = trees.iter().map(|logs| sum(logs, &all)).collect();
            for _ in 0..200 {
                let mut drawn = vec![0.0; patterns];
                drawing.draw(&mut random, &mut drawn);
                for range in [0..4, 4..9] {
                    let [drawn, all] = [&drawn, &all].map(|weights| weights[range.clone()].iter().sum::<f64>());
                    assert_eq!(drawn, all, "each partition keeps its number of sites");
                }
                let mut centred: Vec<f64> =
                    trees.iter().zip(&full).map(|(logs, all)| sum(logs, &drawn) - all).collect();
                centred.sort_by(|a, b| b.total_cmp(a));
                let statistic = 2.0 * (full[tree] - full[others[0]].max(full[others[1]]));
                let expected = statistic > 2.0 * (centred[0] - centred[1]) + MARGIN;
                assert_eq!(test.is_passed(&drawn), expected);
                passed += usize::from(expected);
            }
        }
        assert!((1..600).contains(&passed), "{passed}");
    }
}
