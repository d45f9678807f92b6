//! Distributions of the scores of unrelated sequences, in bits.
//!
//! S. R. Eddy, "A probabilistic model of local sequence alignment that simplifies statistical significance estimation",
//! PLoS Computational Biology 4:e1000069 (2008): Viterbi scores follow a Gumbel distribution, the high scores of Forward
//! an exponential one, both with lambda = ln 2 but for an edge effect.

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
