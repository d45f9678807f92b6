//! Models of substitution: parameters, which of them are free, rates over sites, eigendecomposition.
//!
//! A model is reversible: the rate from state i to state j is proportional to r_ij pi_j. Rates vary over sites by a
//! discrete gamma distribution (the mean of each of `categories` equal parts, Yang 1994) or by none (free rates, Yang 1995),
//! and a share `pinv` of the
//! sites may not vary at all. Time is counted in expected substitutions a site over all sites, so the variable ones run
//! faster by 1 / (1 - pinv), as in RAxML-NG.

mod eigen;
mod gamma;
mod protein;
mod spec;

pub use eigen::Eigen;
pub use gamma::{gamma_quantile, incomplete_gamma, mean_rates};
pub use spec::{Frequencies, Invariant, ModelSpec};

/// Bounds of parameters under optimisation: those of RAxML-NG, but for exchangeabilities.
pub mod bounds {
    /// Shape of the gamma distribution.
    pub const ALPHA: (f64, f64) = (0.02, 100.0);
    /// Share of invariant sites.
    pub const PINV: (f64, f64) = (0.0, 0.99);
    /// Exchangeabilities, relative to the largest.
    pub const EXCHANGEABILITY: (f64, f64) = (1e-6, 1e3);
    /// A frequency; smaller ones (of states that never occur) are lifted to it.
    pub const FREQUENCY: (f64, f64) = (1e-3, 0.997);
    /// Speed of a partition, relative to the branch lengths.
    pub const SPEED: (f64, f64) = (1e-4, 1e4);
    /// Probability of a free category, and its rate, both relative to those of the first.
    pub const FREE_WEIGHT: (f64, f64) = (1e-3, 1e3);
    /// See [`FREE_WEIGHT`].
    pub const FREE_RATE: (f64, f64) = (1e-5, 1e5);
}

/// Which parameters of a model are fitted to the data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Free {
    /// For each exchangeability (upper triangle by rows) the class that it belongs to: those of one class are equal and
    /// are fitted together; the last one's class is the unit and stays 1. Empty: none is fitted. GTR is
    /// `[0, 1, 2, 3, 4, 5]`, K80 and HKY `[0, 1, 0, 0, 1, 0]`.
    pub exchangeabilities: Vec<u8>,
    /// Frequencies are fitted.
    pub frequencies: bool,
    /// Frequencies are those counted in the data: they are not optimised, but they are estimates from the data all the same.
    pub counted_frequencies: bool,
    /// The shape of the gamma distribution is fitted.
    pub alpha: bool,
    /// Rates and probabilities of the categories are fitted.
    pub free_rates: bool,
    /// The share of invariant sites is fitted.
    pub pinv: bool,
    /// The share of invariant sites is the share of sites that could be invariant: an estimate, as counted frequencies are.
    pub counted_pinv: bool,
    /// The speed is fitted.
    pub speed: bool,
}

/// A model of substitution with values for all its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its name, such as `GTR` or `LG`.
    pub name: String,
    /// 2, 4 or 20.
    pub states: usize,
    /// r_ij for i < j, the upper triangle by rows: AC AG AT CG CT GT for nucleotides. `states (states - 1) / 2` numbers.
    pub exchangeabilities: Vec<f64>,
    /// pi_i, positive, sum 1.
    pub frequencies: Vec<f64>,
    /// Shape of the gamma distribution of rates over sites; `None`: one rate.
    pub alpha: Option<f64>,
    /// Probabilities (sum 1) and rates (mean 1) of categories that follow no distribution; empty: none.
    pub free_rates: Vec<[f64; 2]>,
    /// Number of rate categories: 1 where there is neither `alpha` nor `free_rates`.
    pub categories: usize,
    /// Share of invariant sites, below 1; `None`: no such class of sites.
    pub pinv: Option<f64>,
    /// How fast these sites change, relative to the lengths of the branches; `None`: as fast as they say. RAxML-NG's `+B`.
    pub speed: Option<f64>,
    /// Sites were taken because they vary: likelihoods are those of a site given that it does (Lewis 2001, Systematic Biology
    /// 50:913). `+ASC`.
    pub is_ascertained: bool,
    /// What is fitted.
    pub free: Free,
}

impl Model {
    /// Rates of the categories, relative to the lengths of the branches: they have mean speed / (1 - pinv).
    pub fn rates(&self) -> Vec<f64> {
        let mut rates = match self.alpha {
            Some(alpha) => mean_rates(alpha, self.categories),
            None if self.free_rates.is_empty() => vec![1.0],
            None => self.free_rates.iter().map(|[_, rate]| *rate).collect(),
        };
        let variable = 1.0 - self.pinv.unwrap_or(0.0);
        let speed = self.speed.unwrap_or(1.0);
        rates.iter_mut().for_each(|r| *r = *r * speed / variable);
        rates
    }

    /// Probability of each category, (1 - pinv) / categories unless they are free. A pattern's likelihood is the sum over categories of this
    /// times the likelihood at that rate, plus pinv times the frequencies of the states that the pattern may be invariant
    /// in ([`crate::alignment::Patterns::invariant_masks`]).
    pub fn category_weights(&self) -> Vec<f64> {
        let variable = 1.0 - self.pinv.unwrap_or(0.0);
        match self.free_rates.is_empty() {
            true => vec![variable / self.categories as f64; self.categories],
            false => self.free_rates.iter().map(|[weight, _]| weight * variable).collect(),
        }
    }

    /// The rate matrix, rows by rows, normalised to one expected substitution a unit of time; rows sum to 0.
    pub fn rate_matrix(&self) -> Vec<f64> {
        let n = self.states;
        let mut q = vec![0.0; n * n];
        let mut k = 0;
        for i in 0..n {
            for j in i + 1..n {
                q[i * n + j] = self.exchangeabilities[k] * self.frequencies[j];
                q[j * n + i] = self.exchangeabilities[k] * self.frequencies[i];
                k += 1;
            }
        }
        let mut mean = 0.0;
        for i in 0..n {
            let row: f64 = q[i * n..(i + 1) * n].iter().sum();
            q[i * n + i] = -row;
            mean += self.frequencies[i] * row;
        }
        q.iter_mut().for_each(|x| *x /= mean);
        q
    }

    /// The eigendecomposition of the rate matrix.
    pub fn eigen(&self) -> Eigen {
        Eigen::new(self)
    }

    /// Number of free parameters, branch lengths not counted. What was counted in the data is as free as what is optimised
    /// (IQ-TREE and RAxML-NG count so): criteria that ask for the number ask for all that the data decided.
    pub fn free_parameters(&self) -> usize {
        let mut classes = self.free.exchangeabilities.clone();
        classes.sort_unstable();
        classes.dedup();
        classes.len().saturating_sub(1)
            + if self.free.frequencies || self.free.counted_frequencies { self.states - 1 } else { 0 }
            + usize::from(self.free.alpha)
            + if self.free.free_rates { 2 * (self.categories - 1) } else { 0 }
            + usize::from(self.free.pinv || self.free.counted_pinv)
            + usize::from(self.free.speed)
    }
}
