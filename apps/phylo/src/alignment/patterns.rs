//! Site patterns: the distinct columns of an alignment with how often they occur.

use super::{Alignment, DataType};
use std::collections::HashMap;

/// The distinct columns of a set of sites. Their order is that of their first occurrence, so that sums over them do not
/// depend on anything but the alignment. Columns of nothing but gaps are left out: their likelihood is 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns {
    /// The alphabet; `data_type.masks()` is the table that codes index.
    pub data_type: DataType,
    /// For each taxon (in the alignment's order) the code of each pattern.
    pub tips: Vec<Vec<u8>>,
    /// For each pattern how many sites have it. Bootstrap replicates replace this, and may contain zeros.
    pub weights: Vec<u32>,
    /// For each site of the set, in order, its pattern; `None` for columns of gaps.
    pub pattern_of_site: Vec<Option<u32>>,
}

impl Patterns {
    /// The patterns of the given sites (columns from 0) of an alignment.
    ///
    /// # Panics
    /// Where a letter does not belong to the alphabet: readers have refused such alignments.
    pub fn new(alignment: &Alignment, sites: impl IntoIterator<Item = usize>, data_type: DataType) -> Patterns {
        let gap = data_type.gap();
        let mut code = [gap; 256];
        for letter in 0..=255u8 {
            code[letter as usize] = data_type.code(letter).unwrap_or(u8::MAX);
        }
        let sites: Vec<usize> = sites.into_iter().collect();
        // Columns are told apart by numbers that their letters make, row by row as they lie, and compared only where these are equal.
        let mut numbers = vec![0u64; sites.len()];
        let mut is_blank = vec![true; sites.len()];
        for row in &alignment.rows {
            for ((number, is_blank), &site) in numbers.iter_mut().zip(&mut is_blank).zip(&sites) {
                let letter = code[row[site] as usize];
                assert!(letter != u8::MAX, "a letter of column {} is not {data_type}", site + 1);
                *is_blank &= letter == gap;
                *number = (*number ^ u64::from(letter)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            }
        }
        let is_same =
            |a: usize, b: usize| alignment.rows.iter().all(|row| code[row[a] as usize] == code[row[b] as usize]);
        // The last pattern of each number, and for each pattern the one before of its number.
        let mut last: HashMap<u64, u32> = HashMap::new();
        let mut before: Vec<Option<u32>> = Vec::new();
        let mut firsts: Vec<usize> = Vec::new();
        let mut patterns = Patterns {
            data_type,
            tips: Vec::with_capacity(alignment.taxa()),
            weights: vec![],
            pattern_of_site: Vec::with_capacity(sites.len()),
        };
        for ((&site, number), is_blank) in sites.iter().zip(numbers).zip(is_blank) {
            if is_blank {
                patterns.pattern_of_site.push(None);
                continue;
            }
            let known = last.get(&number).copied();
            let mut same = known;
            while let Some(pattern) = same.filter(|&pattern| !is_same(firsts[pattern as usize], site)) {
                same = before[pattern as usize];
            }
            let pattern = same.unwrap_or_else(|| {
                let next = firsts.len() as u32;
                firsts.push(site);
                before.push(known);
                patterns.weights.push(0);
                last.insert(number, next);
                next
            });
            patterns.weights[pattern as usize] += 1;
            patterns.pattern_of_site.push(Some(pattern));
        }
        let tip = |row: &Vec<u8>| firsts.iter().map(|&site| code[row[site] as usize]).collect();
        patterns.tips.extend(alignment.rows.iter().map(tip));
        patterns
    }

    /// Number of patterns.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether no site has a letter.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Number of taxa.
    pub fn taxa(&self) -> usize {
        self.tips.len()
    }

    /// Sum of the weights: the sites that are not all gaps.
    pub fn sites(&self) -> u64 {
        self.weights.iter().map(|&w| u64::from(w)).sum()
    }

    /// For each pattern the states that every taxon allows: where a site may be invariant, in which states.
    pub fn invariant_masks(&self) -> Vec<u32> {
        let masks = self.data_type.masks();
        let all = masks[self.data_type.gap() as usize];
        (0..self.len()).map(|p| self.tips.iter().fold(all, |mask, tip| mask & masks[tip[p] as usize])).collect()
    }

    /// Empirical frequencies of the states: letters counted by weight, ambiguous ones shared over the states that they
    /// allow in proportion to the frequencies themselves, iterated to a fixed point (as Felsenstein's and Yang's
    /// programs do); gaps are not counted.
    pub fn frequencies(&self) -> Vec<f64> {
        let states = self.data_type.states();
        let masks = self.data_type.masks();
        let mut counts = vec![0u64; masks.len()];
        for tip in &self.tips {
            for (&code, &weight) in tip.iter().zip(&self.weights) {
                counts[code as usize] += u64::from(weight);
            }
        }
        counts[self.data_type.gap() as usize] = 0;
        let mut frequencies = vec![1.0 / states as f64; states];
        for _ in 0..1000 {
            let mut sums = vec![0.0; states];
            for (&count, &mask) in counts.iter().zip(masks).filter(|(count, _)| **count > 0) {
                let allowed = (0..states).filter(|s| mask >> s & 1 == 1);
                let total: f64 = allowed.clone().map(|s| frequencies[s]).sum();
                allowed.for_each(|s| sums[s] += count as f64 * frequencies[s] / total);
            }
            let total: f64 = sums.iter().sum();
            if total == 0.0 {
                return frequencies;
            }
            sums.iter_mut().for_each(|s| *s /= total);
            let moved = sums.iter().zip(&frequencies).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            frequencies = sums;
            if moved < 1e-12 {
                break;
            }
        }
        frequencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alignment(rows: &[&str]) -> Alignment {
        let names = (0..rows.len()).map(|i| format!("t{i}")).collect();
        Alignment { names, rows: rows.iter().map(|r| r.as_bytes().to_vec()).collect() }
    }

    #[test]
    fn columns_are_merged_in_the_order_of_their_first_occurrence() {
        let a = alignment(&["AC-AAN", "AG-TA-", "AC?AAX", "UU-ATN"]);
        let p = Patterns::new(&a, 0..6, DataType::Dna);
        assert_eq!(p.weights, [2, 1, 1]);
        assert_eq!(p.pattern_of_site, [Some(0), Some(1), None, Some(2), Some(0), None]);
        assert_eq!(p.tips[3], [8, 8, 1]);
        assert_eq!(p.sites(), 4);
        assert_eq!(p.invariant_masks(), [0, 0, 0]);
    }

    #[test]
    fn ambiguous_letters_are_shared_in_proportion() {
        let a = alignment(&["AAAAG", "AAAAG", "AAAAG", "AAAAR"]);
        let f = Patterns::new(&a, 0..5, DataType::Dna).frequencies();
        // 16 A, 3 G and one that is either: a fixed point has A / G = 16 / 3.
        assert!((f[0] - 16.0 / 19.0).abs() < 1e-9 && (f[2] - 3.0 / 19.0).abs() < 1e-9 && f[1] == 0.0, "{f:?}");
    }

    #[test]
    fn an_invariant_pattern_knows_its_states() {
        let a = alignment(&["AR", "A-", "NG", "AA"]);
        assert_eq!(Patterns::new(&a, 0..2, DataType::Dna).invariant_masks(), [1, 0]);
    }
}
