//! Distributions of the scores of unrelated sequences, in bits.
//!
//! S. R. Eddy, "A probabilistic model of local sequence alignment that simplifies statistical significance estimation",
//! PLoS Computational Biology 4:e1000069 (2008): Viterbi scores follow a Gumbel distribution, the high scores of Forward
//! an exponential one, both with lambda = ln 2 but for an edge effect.

use std::f64::consts::PI;

/// A Gumbel distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gumbel {
    /// Its location, in bits.
    pub mu: f64,
    /// Its scale, per bit.
    pub lambda: f64,
}

impl Gumbel {
    /// Probability of a score of at least `score` bits.
    pub fn survival(&self, score: f64) -> f64 {
        // 1 - exp(-e), which is e to all digits when e is small.
        let e = (-self.lambda * (score - self.mu)).exp();
        -(-e).exp_m1()
    }

    /// The lowest score, in bits, whose probability is at most `probability`, below 1.
    pub(crate) fn score(&self, probability: f64) -> f64 {
        self.mu - (-(-probability).ln_1p()).ln() / self.lambda
    }

    /// The most likely distribution of these scores, given its scale.
    pub(crate) fn located(scores: &[f64], lambda: f64) -> Gumbel {
        let mean = scores.iter().map(|x| (-lambda * x).exp()).sum::<f64>() / scores.len() as f64;
        Gumbel { mu: -mean.ln() / lambda, lambda }
    }

    /// The most likely distribution of these scores: J. F. Lawless, "Statistical Models and Methods for Lifetime Data" (1982),
    /// equation 4.1.6, by Newton's method from the scale that their variance tells.
    pub(crate) fn fitted(scores: &[f64]) -> Gumbel {
        const STEPS_MAX: usize = 100;
        const TOLERANCE: f64 = 1e-5;
        let count = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let variance = scores.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (count - 1.0);
        let mut lambda = PI / (6.0 * variance).sqrt();
        for _ in 0..STEPS_MAX {
            let [mut sum, mut first, mut second] = [0.0; 3];
            for x in scores {
                let weight = (-lambda * x).exp();
                sum += weight;
                first += x * weight;
                second += x * x * weight;
            }
            let wrong = 1.0 / lambda - mean + first / sum;
            if wrong.abs() < TOLERANCE {
                break;
            }
            let slope = (first / sum) * (first / sum) - second / sum - 1.0 / (lambda * lambda);
            lambda = (lambda - wrong / slope).max(1e-3);
        }
        Gumbel::located(scores, lambda)
    }

    /// With parameters in single precision, as HMMER keeps them.
    pub(crate) fn single(&self) -> Gumbel {
        Gumbel { mu: f64::from(self.mu as f32), lambda: f64::from(self.lambda as f32) }
    }
}

/// The tail of an exponential distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// Where the tail begins, in bits.
    pub tau: f64,
    /// Its slope, per bit.
    pub lambda: f64,
}

impl Exponential {
    /// With parameters in single precision, as HMMER keeps them.
    pub(crate) fn single(&self) -> Exponential {
        Exponential { tau: f64::from(self.tau as f32), lambda: f64::from(self.lambda as f32) }
    }

    /// Natural logarithm of the probability of a score of at least `score` bits.
    pub fn log_survival(&self, score: f64) -> f64 {
        if score < self.tau { 0.0 } else { -self.lambda * (score - self.tau) }
    }

    /// Probability of a score of at least `score` bits.
    pub fn survival(&self, score: f64) -> f64 {
        self.log_survival(score).exp()
    }

    /// The lowest score, in bits, whose probability is at most `probability`; minus infinity when all scores have it.
    pub fn score(&self, probability: f64) -> f64 {
        if probability >= 1.0 { f64::NEG_INFINITY } else { self.tau - probability.ln() / self.lambda }
    }
}
