//! Parameters of models and branch lengths by maximum likelihood.
//!
//! Parameters are maximised together by BFGS, branch lengths one by one by Newton's method, both in turn. Where the two
//! depend on each other, turns alone creep along a ridge, so the first search has the scale and the contrast of all lengths
//! among its variables, and the way of a whole turn is gone on with as long as that gains.

mod bfgs;
mod coordinates;
mod joint;

use crate::likelihood::{Likelihood, MIN_LENGTH, Precision};
use crate::model::{Model, bounds};
use crate::parsimony::START_LENGTH;
use crate::tree::{HalfEdge, Tree};
use bfgs::{Curvature, Surface, maximize};
use coordinates::Coordinates;
use joint::Joint;
use std::ops::Range;

/// At most so many turns of parameters and lengths.
const TURNS: usize = 200;
/// As long as turns gain more than this, lengths are not stretched together with the parameters: they are far from where
/// they will be.
const ROUGH: f64 = 5.0;
/// Shapes of the gamma distribution from which other maxima are looked for, and what such a maximum must gain.
const ALPHAS: [f64; 3] = [0.1, 0.3, 1.0];
const EXPLORED: f64 = 0.05;

/// What former turns have learnt of the curvatures of a group of partitions, in coordinates of these units.
#[derive(Debug, Clone, Default)]
struct Known {
    units: Vec<(u8, usize)>,
    curvature: Curvature,
}

impl Likelihood<'_> {
    /// Optimises all free parameters and the branch lengths, until by what the last turns gained less than `gain` of
    /// log-likelihood is left. Gives the log-likelihood.
    pub fn optimize_all(&mut self, gain: f64) -> f64 {
        let precision = Precision { gain: gain * 1e-3, steps: 20 };
        let mut best = self.log_likelihood();
        for _ in 0..TURNS {
            self.optimize_models(gain.max(0.1 * ROUGH));
            let now = self.smooth(2, gain, precision);
            let gained = now - best;
            best = now;
            if gained < ROUGH {
                break;
            }
        }
        best = self.climb_ridge(best, gain);
        // Several partitions that share lengths hold each other in a place that may be the best for none of them.
        while self.models().len() > 1 && self.explore() {
            let now = self.smooth(2, gain, precision);
            let now = self.climb_ridge(now, gain);
            let gained = now - best;
            best = now;
            if gained < EXPLORED {
                break;
            }
        }
        best
    }

    /// As [`Likelihood::optimize_all`], and once more from branches that are all of one length and rates that hardly vary
    /// over sites: lengths may have several maxima, and which is found depends on where they and the models were. What is
    /// better is kept, for each set of lengths.
    pub fn optimize_thoroughly(&mut self, gain: f64) -> f64 {
        self.fit_scales();
        let best = self.optimize_all(gain);
        let groups = self.groups();
        let of_groups = |values: Vec<f64>| groups.iter().map(|(p, _)| values[p.clone()].iter().sum()).collect();
        let before: Vec<f64> = of_groups(self.log_likelihoods());
        let (models, tree) = (self.models().to_vec(), self.tree().clone());
        if !models.iter().any(|model| model.free.alpha) {
            return best;
        }
        for (partition, model) in models.iter().enumerate().filter(|(_, model)| model.free.alpha) {
            self.set_model(partition, Model { alpha: Some(1.0), ..model.clone() });
        }
        let branches: Vec<HalfEdge> = tree.branches().collect();
        for (_, set) in &groups {
            self.set_lengths(*set, branches.iter().map(|&half| (half, START_LENGTH)));
        }
        self.fit_scales();
        self.optimize_all(gain);
        let after: Vec<f64> = of_groups(self.log_likelihoods());
        for ((partitions, set), _) in groups.iter().zip(before.iter().zip(after)).filter(|(_, (b, a))| *b >= a) {
            partitions.clone().for_each(|p| self.set_model(p, models[p].clone()));
            self.set_lengths(*set, branches.iter().map(|&half| (half, tree.length(half, *set))));
        }
        self.log_likelihood()
    }

    /// Fits the models and the scale and the contrast of each set of lengths, but no length by itself. Lengths that are fitted
    /// one by one while all are too long or too short end where the first of them take what belongs to their neighbours:
    /// there are many such maxima where few sites vary.
    fn fit_scales(&mut self) {
        for (partitions, set) in self.groups() {
            self.optimize_jointly(partitions, set, 0.1 * ROUGH, &mut Known::default());
        }
        self.normalize_speeds();
    }

    /// Parameters and lengths together, from a log-likelihood of `best`.
    fn climb_ridge(&mut self, mut best: f64, gain: f64) -> f64 {
        let precision = Precision { gain: gain * 1e-3, steps: 20 };
        let groups = self.groups();
        let mut known = vec![Known::default(); groups.len()];
        let mut before_last = f64::INFINITY;
        let mut is_fresh = true;
        for _ in 0..TURNS {
            let start = (self.models().to_vec(), self.tree().clone());
            for ((partitions, set), known) in groups.iter().zip(&mut known) {
                self.optimize_jointly(partitions.clone(), *set, 0.1 * gain, known);
            }
            self.normalize_speeds();
            let now = self.smooth(4, gain, precision);
            let now = self.go_on(&start, now);
            let gained = now - best;
            best = now;
            // Of a geometric series, what is left after the last two terms.
            let ratio = (gained / before_last).clamp(0.0, 0.99);
            before_last = gained.max(f64::MIN_POSITIVE);
            if gained < gain && gained * ratio / (1.0 - ratio) < gain {
                if is_fresh {
                    break;
                }
                // What was learnt of curvatures on the way may have hidden where the ridge goes on.
                known.fill(Known::default());
                is_fresh = true;
            } else {
                is_fresh = false;
            }
        }
        best
    }

    /// Looks for better maxima of each partition's model at the present lengths, from other shapes of the gamma
    /// distribution and equal exchangeabilities. True where any was found.
    fn explore(&mut self) -> bool {
        let values = self.log_likelihoods();
        let mut found = false;
        for (partition, value) in values.into_iter().enumerate() {
            let start = self.models()[partition].clone();
            if !start.free.alpha {
                continue;
            }
            let mut best = (value + EXPLORED, start.clone());
            for alpha in ALPHAS {
                let mut model = start.clone();
                model.alpha = Some(alpha);
                if !model.free.exchangeabilities.is_empty() {
                    model.exchangeabilities.fill(1.0);
                }
                model.free.alpha = false;
                self.try_model(partition, model);
                self.maximize_model(partition, 1.0);
                let mut model = self.models()[partition].clone();
                model.free.alpha = true;
                self.try_model(partition, model);
                let there = self.maximize_model(partition, 0.01);
                if there > best.0 {
                    best = (there, self.models()[partition].clone());
                    found = true;
                }
            }
            self.try_model(partition, best.1);
        }
        found
    }

    /// Partitions that share a set of branch lengths, and the set.
    fn groups(&self) -> Vec<(Range<usize>, usize)> {
        let of = self.set_of();
        match self.tree().sets() {
            1 => vec![(0..of.len(), 0)],
            _ => of.iter().enumerate().map(|(p, &set)| (p..p + 1, set)).collect(),
        }
    }

    fn optimize_jointly(&mut self, partitions: Range<usize>, set: usize, gain: f64, known: &mut Known) {
        let mut joint = Joint::with_stretch(self, partitions, set);
        if known.units != joint.units() {
            *known = Known { units: joint.units(), curvature: Curvature::default() };
        }
        let (x, bounds) = (joint.start(), joint.bounds());
        let value = joint.value(&x);
        let (x, _) = maximize(x, value, &bounds, gain, &mut joint, &mut known.curvature);
        joint.value(&x);
    }

    /// Goes on from a former point through the present one, twice as far each time, as long as that gains. Gives the
    /// log-likelihood where it ends, `now` being that where it begins.
    fn go_on(&mut self, start: &(Vec<Model>, Tree), now: f64) -> f64 {
        let coordinates: Vec<Coordinates> = self.models().iter().map(Coordinates::new).collect();
        let of = |models: &[Model], tree: &Tree| {
            let models = models.iter().zip(&coordinates).flat_map(|(model, c)| c.of(model));
            let lengths = tree.branches().flat_map(|half| tree.lengths(half)).map(|l| l.max(MIN_LENGTH).ln());
            models.chain(lengths).collect::<Vec<f64>>()
        };
        let here = of(self.models(), self.tree());
        let way: Vec<f64> = here.iter().zip(of(&start.0, &start.1)).map(|(a, b)| a - b).collect();
        let branches: Vec<HalfEdge> = self.tree().branches().collect();
        let mut best = (now, self.models().to_vec(), self.tree().clone());
        let mut far = 1.0;
        loop {
            let mut x = here.iter().zip(&way).map(|(x, way)| x + far * way);
            for (p, c) in coordinates.iter().enumerate() {
                let own: Vec<f64> = c.bounds().iter().map(|b| x.next().unwrap_or(0.0).clamp(b.0, b.1)).collect();
                self.set_model(p, c.model(&own));
            }
            let lengths: Vec<f64> = x.map(f64::exp).collect();
            let sets = self.tree().sets();
            for set in 0..sets {
                self.set_lengths(set, branches.iter().copied().zip(lengths.iter().skip(set).step_by(sets).copied()));
            }
            let there = self.log_likelihood();
            if there <= best.0 {
                break;
            }
            best = (there, self.models().to_vec(), self.tree().clone());
            far *= 2.0;
        }
        best.1.into_iter().enumerate().for_each(|(p, model)| self.set_model(p, model));
        self.set_tree(best.2);
        self.log_likelihood()
    }

    /// Optimises the free parameters of each partition's model for the present branch lengths, to about `gain` of
    /// log-likelihood. Gives the log-likelihood.
    pub fn optimize_models(&mut self, gain: f64) -> f64 {
        let mut values = self.log_likelihoods();
        for (partition, value) in values.iter_mut().enumerate() {
            *value = self.maximize_model(partition, gain);
        }
        if self.normalize_speeds() { self.log_likelihood() } else { values.iter().sum() }
    }

    /// Optimises the free parameters of one partition's model and gives its log-likelihood; all vectors are valid before and
    /// after.
    fn maximize_model(&mut self, partition: usize, gain: f64) -> f64 {
        let mut joint = Joint::of_models(self, partition..partition + 1);
        let (x, bounds) = (joint.start(), joint.bounds());
        let start = joint.value(&x);
        let (x, _) = maximize(x, start, &bounds, gain, &mut joint, &mut Curvature::default());
        joint.value(&x)
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
}
