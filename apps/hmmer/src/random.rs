//! The random numbers of sampled alignments and of random sequences.

/// Seed of HMMER's searches.
pub(crate) const SEED: u32 = 42;

/// A linear congruential generator modulo 2^32 with multiplier 69069 (Knuth, "The art of computer programming", volume
/// 2, section 3.3.4, table 1, line 15), begun at a mixed seed.
pub(crate) struct Random(u32);

impl Random {
    pub(crate) fn new(seed: u32) -> Self {
        Self(mix(seed, 87_654_321, 12_345_678))
    }

    /// Uniform in [0, 1).
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(69_069).wrapping_add(1);
        f64::from(self.0) / 4_294_967_296.0
    }

    /// One of the paths, in proportion to their weights; all alike if all are 0.
    pub(crate) fn choose<const N: usize>(&mut self, mut weights: [f32; N]) -> usize {
        let total = sum(&weights);
        for weight in &mut weights {
            *weight = if total != 0.0 { *weight / total } else { 1.0 / N as f32 };
        }
        self.pick(&weights)
    }

    /// One of as many things as there are weights, not all 0, in proportion to them.
    pub(crate) fn pick(&mut self, weights: &[f32]) -> usize {
        let norm: f64 = weights.iter().fold(0.0, |norm, &weight| norm + f64::from(weight));
        let roll = self.next();
        let mut reached = 0.0;
        for (i, &weight) in weights.iter().enumerate() {
            reached += f64::from(weight);
            if roll < reached / norm {
                return i;
            }
        }
        weights.len() - 1
    }
}

/// Sum in single precision with the lost parts carried along (W. Kahan, Communications of the ACM 8:40, 1965).
pub(crate) fn sum(values: &[f32]) -> f32 {
    let (mut sum, mut carry) = (0.0f32, 0.0f32);
    for &value in values {
        let part = value - carry;
        let next = sum + part;
        carry = (next - sum) - part;
        sum = next;
    }
    sum
}

/// Mixes three numbers into one (R. Jenkins, "Hash functions", Dr. Dobb's Journal, September 1997).
fn mix(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    for [right, left, back] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> right);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << left);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> back);
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_their_weights() {
        let mut random = Random::new(SEED);
        let mut counts = [0u32; 4];
        for _ in 0..40_000 {
            counts[random.choose([0.1f32, 0.0, 0.5, 0.4])] += 1;
        }
        assert_eq!(counts[1], 0);
        for (count, expected) in counts.iter().zip([4_000.0, 0.0, 20_000.0, 16_000.0]) {
            assert!((f64::from(*count) - expected).abs() < 500.0, "{counts:?}");
        }
        assert_eq!((0..100).map(|_| random.choose([0.0f32; 2])).max(), Some(1));
    }

    #[test]
    fn sums_keep_small_parts() {
        let values = [vec![1.0e8f32], vec![1.0; 1000]].concat();
        assert_eq!(sum(&values), 1.0e8 + 1000.0);
    }
}
