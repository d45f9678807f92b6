//! Standard bootstrap replicates (Felsenstein 1985): as many sites as a partition has, drawn from it with replacement.

use crate::alignment::Patterns;
use crate::random::Random;

impl Patterns {
    /// A replicate: sites drawn with replacement, patterns that were not drawn left out. Columns of gaps, which carry
    /// nothing, take no part.
    pub fn resampled(&self, random: &mut Random) -> Patterns {
        let sites: Vec<u32> = self.pattern_of_site.iter().flatten().copied().collect();
        let mut weights = vec![0u32; self.len()];
        let drawn: Vec<u32> = sites.iter().map(|_| sites[random.below(sites.len() as u64) as usize]).collect();
        drawn.iter().for_each(|&p| weights[p as usize] += 1);
        let mut new = self.weighted(&weights);
        let numbers: Vec<u32> = weights
            .iter()
            .scan(0, |next, &weight| {
                *next += u32::from(weight > 0);
                Some(*next)
            })
            .collect();
        new.pattern_of_site = drawn.into_iter().map(|p| Some(numbers[p as usize] - 1)).collect();
        new
    }

    /// The patterns with other weights; those of none are left out, and which site has which pattern is not told.
    pub(crate) fn weighted(&self, weights: &[u32]) -> Patterns {
        let kept: Vec<usize> = (0..self.len()).filter(|&p| weights[p] > 0).collect();
        Patterns {
            data_type: self.data_type,
            tips: self.tips.iter().map(|tip| kept.iter().map(|&p| tip[p]).collect()).collect(),
            weights: kept.iter().map(|&p| weights[p]).collect(),
            pattern_of_site: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::alignment::{Alignment, DataType, Patterns};
    use crate::random::{Purpose, Random};

    #[test]
    fn a_replicate_has_as_many_sites_from_the_same_patterns() {
        let rows = ["AACGTACGTA-", "AACGTTCGTA-", "AACGTACCTA-", "AGCGTACGTA-"];
        let names = (0..4).map(|i| format!("t{i}")).collect();
        let a = Alignment { names, rows: rows.iter().map(|r| r.as_bytes().to_vec()).collect() };
        let p = Patterns::new(&a, 0..11, DataType::Dna);
        let column = |p: &Patterns, i: usize| p.tips.iter().map(|t| t[i]).collect::<Vec<_>>();
        let originals: Vec<_> = (0..p.len()).map(|i| column(&p, i)).collect();
        let mut totals = vec![0u32; p.len()];
        for number in 0..2000 {
            let r = p.resampled(&mut Random::new(1, Purpose::Resample, number));
            assert_eq!((r.sites(), r.taxa()), (10, 4));
            assert!(r.weights.iter().all(|&w| w > 0));
            for (site, pattern) in r.pattern_of_site.iter().enumerate() {
                assert!(pattern.is_some_and(|p| (p as usize) < r.len()), "site {site}");
            }
            for i in 0..r.len() {
                let original = originals.iter().position(|o| *o == column(&r, i)).unwrap();
                totals[original] += r.weights[i];
            }
        }
        // In the mean every pattern is drawn as often as it stands there.
        for (total, weight) in totals.iter().zip(&p.weights) {
            let mean = f64::from(*total) / 2000.0;
            assert!((mean - f64::from(*weight)).abs() < 0.2, "{mean} for {weight}");
        }
    }
}
