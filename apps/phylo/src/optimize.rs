//! Parameters of models by maximum likelihood: Brent's method for single ones, BFGS for those that hang together.

mod bfgs;
mod brent;

use crate::likelihood::{Likelihood, Precision};
use crate::model::{Free, Model, bounds};
use bfgs::maximize;
use brent::maximum;

/// A parameter that is one number.
struct Scalar {
    is_free: fn(&Free) -> bool,
    of: fn(&mut Model) -> &mut Option<f64>,
    bounds: (f64, f64),
    /// Whether it is looked for by its logarithm.
    is_log: bool,
    /// How far from where it is the search begins, in what it is looked for by.
    reach: f64,
}

const SCALARS: [Scalar; 3] = [
    Scalar {
        is_free: |free| free.alpha,
        of: |model| &mut model.alpha,
        bounds: bounds::ALPHA,
        is_log: true,
        reach: 1.0,
    },
    Scalar { is_free: |free| free.pinv, of: |model| &mut model.pinv, bounds: bounds::PINV, is_log: false, reach: 0.1 },
    Scalar {
        is_free: |free| free.speed,
        of: |model| &mut model.speed,
        bounds: bounds::SPEED,
        is_log: true,
        reach: 0.5,
    },
];

impl Likelihood<'_> {
    /// Optimises all free parameters and the branch lengths in turn, until a round gains less than `gain` of
    /// log-likelihood. Gives the log-likelihood.
    pub fn optimize_all(&mut self, gain: f64) -> f64 {
        let mut best = self.log_likelihood();
        for _ in 0..100 {
            self.optimize_models(gain);
            let now = self.smooth(8, gain, Precision { gain: gain * 1e-3, steps: 20 });
            let gained = now - best;
            best = now;
            if gained < gain {
                break;
            }
        }
        best
    }

    /// Optimises the free parameters of each partition's model for the present branch lengths, to about `gain` of
    /// log-likelihood. Gives the log-likelihood.
    pub fn optimize_models(&mut self, gain: f64) -> f64 {
        let mut values = self.log_likelihoods();
        for (partition, value) in values.iter_mut().enumerate() {
            let free = self.models()[partition].free.clone();
            let tolerance = (gain * 0.1).clamp(1e-5, 0.01);
            if !free.exchangeabilities.is_empty() {
                *value = self.optimize_exchangeabilities(partition, *value, gain);
            }
            if free.frequencies {
                *value = self.optimize_frequencies(partition, *value, gain);
            }
            for scalar in SCALARS.iter().filter(|scalar| (scalar.is_free)(&free)) {
                *value = self.optimize_scalar(partition, *value, scalar, tolerance);
            }
        }
        if self.normalize_speeds() { self.log_likelihood() } else { values.iter().sum() }
    }

    /// Where the speeds of all partitions are free, only their ratios and the lengths of branches times them mean anything:
    /// makes their mean over all sites 1, so that lengths are expected substitutions a site. False where nothing changed.
    fn normalize_speeds(&mut self) -> bool {
        if !self.models().iter().all(|model| model.free.speed) {
            return false;
        }
        let speed = |model: &Model| model.speed.unwrap_or(1.0);
        let weighted = self.models().iter().zip(self.sites()).map(|(model, &sites)| speed(model) * sites);
        let mean = weighted.sum::<f64>() / self.sites().iter().sum::<f64>();
        if (mean - 1.0).abs() < 1e-9 {
            return false;
        }
        for partition in 0..self.models().len() {
            let mut model = self.models()[partition].clone();
            model.speed = Some((speed(&model) / mean).clamp(bounds::SPEED.0, bounds::SPEED.1));
            self.set_model(partition, model);
        }
        self.stretch(mean);
        true
    }

    /// One number by Brent's method, if the model has it.
    fn optimize_scalar(&mut self, partition: usize, value: f64, scalar: &Scalar, tolerance: f64) -> f64 {
        let start = self.models()[partition].clone();
        let Some(now) = *(scalar.of)(&mut start.clone()) else { return value };
        let scale = |x: f64| if scalar.is_log { x.ln() } else { x };
        let bounds = (scale(scalar.bounds.0), scale(scalar.bounds.1));
        let with = |x: f64| {
            let mut model = start.clone();
            *(scalar.of)(&mut model) = Some(if scalar.is_log { x.exp() } else { x });
            model
        };
        let (best, found) =
            maximum(bounds, (scale(now), value), scalar.reach, tolerance, |x| self.try_model(partition, with(x)));
        let model = if found > value { with(best) } else { start.clone() };
        self.try_model(partition, model)
    }

    /// Exchangeabilities by BFGS in the logarithms of those classes that are not the unit.
    fn optimize_exchangeabilities(&mut self, partition: usize, value: f64, gain: f64) -> f64 {
        let start = self.models()[partition].clone();
        let classes = start.free.exchangeabilities.clone();
        let unit = classes.last().copied();
        let mut free: Vec<u8> = classes.iter().copied().filter(|&c| Some(c) != unit).collect();
        free.sort_unstable();
        free.dedup();
        let first = |class: u8| classes.iter().position(|&c| c == class).map_or(1.0, |i| start.exchangeabilities[i]);
        let x: Vec<f64> = free.iter().map(|&class| first(class).ln()).collect();
        let with = |x: &[f64]| {
            let mut model = start.clone();
            for (rate, class) in model.exchangeabilities.iter_mut().zip(&classes) {
                *rate = free.iter().position(|c| c == class).map_or(1.0, |i| x[i].exp());
            }
            model
        };
        let (low, high) = (bounds::EXCHANGEABILITY.0.ln(), bounds::EXCHANGEABILITY.1.ln());
        let best = maximize(x, value, (low, high), gain, |x| self.try_model(partition, with(x)));
        self.try_model(partition, with(&best))
    }

    /// Frequencies by BFGS in the logarithms of their ratios to the last one.
    fn optimize_frequencies(&mut self, partition: usize, value: f64, gain: f64) -> f64 {
        let start = self.models()[partition].clone();
        let last = start.states - 1;
        let x: Vec<f64> = start.frequencies[..last].iter().map(|f| (f / start.frequencies[last]).ln()).collect();
        let with = |x: &[f64]| {
            let mut model = start.clone();
            let weights: Vec<f64> = x.iter().map(|x| x.exp()).chain([1.0]).collect();
            let total: f64 = weights.iter().sum();
            let raised: Vec<f64> = weights.iter().map(|w| (w / total).max(bounds::FREQUENCY.0)).collect();
            let total: f64 = raised.iter().sum();
            model.frequencies = raised.iter().map(|f| f / total).collect();
            model
        };
        let reach = (bounds::FREQUENCY.1 / bounds::FREQUENCY.0).ln();
        let best = maximize(x, value, (-reach, reach), gain, |x| self.try_model(partition, with(x)));
        self.try_model(partition, with(&best))
    }
}
