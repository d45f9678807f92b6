//! The models of partitions that share branch lengths, together with the lengths' scale and contrast, as one surface.

use super::bfgs::Surface;
use super::coordinates::Coordinates;
use crate::likelihood::{Likelihood, MIN_LENGTH};
use crate::tree::HalfEdge;
use std::ops::Range;

/// Branches that are shorter are as good as none: neither their scale nor their contrast means anything.
const SHORT: f64 = 10.0 * MIN_LENGTH;
/// Bounds of the logarithm of the scale, and of the contrast, in one search.
const SCALE: (f64, f64) = (-3.0, 3.0);
const CONTRAST: (f64, f64) = (-0.5, 0.5);

/// What the lengths of all branches are multiplied by, and the power by which long ones become longer and short ones
/// shorter. How rates vary over sites, and how fast bases that differ are exchanged, decide how much a branch's length
/// is underestimated, the more the longer it is: those parameters and the lengths lie on a ridge along these two.
#[derive(Debug)]
struct Stretch {
    set: usize,
    /// Branches with the logarithms of their lengths.
    branches: Vec<(HalfEdge, f64)>,
    /// The mean of the logarithms.
    center: f64,
    has_scale: bool,
}

/// Partitions that share a set of branch lengths.
pub(super) struct Joint<'l, 'o> {
    likelihood: &'l mut Likelihood<'o>,
    partitions: Range<usize>,
    coordinates: Vec<Coordinates>,
    stretch: Option<Stretch>,
    /// Of the partitions, at the last point.
    values: Vec<f64>,
}

impl<'l, 'o> Joint<'l, 'o> {
    /// The models of some partitions, at the branch lengths that there are.
    pub(super) fn of_models(likelihood: &'l mut Likelihood<'o>, partitions: Range<usize>) -> Self {
        let coordinates = likelihood.models()[partitions.clone()].iter().map(Coordinates::new).collect();
        Joint { likelihood, partitions, coordinates, stretch: None, values: vec![] }
    }

    /// The models of all partitions that share set `set`, with the scale of its lengths (unless the speeds of all of them
    /// are free) and their contrast.
    pub(super) fn with_stretch(likelihood: &'l mut Likelihood<'o>, partitions: Range<usize>, set: usize) -> Self {
        let has_scale = !likelihood.models()[partitions.clone()].iter().all(|model| model.free.speed);
        let tree = likelihood.tree();
        let branches = tree.branches().map(|half| (half, tree.length(half, set)));
        let branches: Vec<_> = branches.filter(|(_, l)| *l > SHORT).map(|(half, l)| (half, l.ln())).collect();
        let center = branches.iter().map(|(_, l)| l).sum::<f64>() / branches.len().max(1) as f64;
        let mut joint = Joint::of_models(likelihood, partitions);
        joint.stretch = Some(Stretch { set, branches, center, has_scale }).filter(|s| !s.branches.is_empty());
        joint
    }

    /// Where the parameters are now.
    pub(super) fn start(&self) -> Vec<f64> {
        let models = self.coordinates.iter().zip(&self.likelihood.models()[self.partitions.clone()]);
        let mut x: Vec<f64> = models.flat_map(|(coordinates, model)| coordinates.of(model)).collect();
        x.resize(x.len() + self.stretches(), 0.0);
        x
    }

    /// [`Coordinates::units`] of the partitions.
    pub(super) fn units(&self) -> Vec<(u8, usize)> {
        self.coordinates.iter().map(Coordinates::units).collect()
    }

    pub(super) fn bounds(&self) -> Vec<(f64, f64)> {
        let mut bounds: Vec<_> = self.coordinates.iter().flat_map(Coordinates::bounds).collect();
        bounds.extend(&[CONTRAST, SCALE][..self.stretches()]);
        bounds
    }

    fn stretches(&self) -> usize {
        self.stretch.as_ref().map_or(0, |s| 1 + usize::from(s.has_scale))
    }

    /// Contrast and scale are the last coordinates.
    fn set_lengths(&mut self, x: &[f64]) {
        let Some(stretch) = &self.stretch else { return };
        let last = &x[x.len() - self.stretches()..];
        let (contrast, scale) = (last[0], last.get(1).copied().unwrap_or(0.0));
        let length = |log: f64| (log + scale + contrast * (log - stretch.center)).exp();
        self.likelihood.set_lengths(stretch.set, stretch.branches.iter().map(|&(half, log)| (half, length(log))));
    }

    fn total(&mut self) -> f64 {
        self.values = self.likelihood.values_of(self.partitions.clone());
        self.values.iter().sum()
    }
}

impl Surface for Joint<'_, '_> {
    fn value(&mut self, x: &[f64]) -> f64 {
        let mut rest = x;
        for (partition, coordinates) in self.partitions.clone().zip(&self.coordinates) {
            let (own, others) = rest.split_at(coordinates.bounds().len());
            rest = others;
            let model = coordinates.model(own);
            if model != self.likelihood.models()[partition] {
                self.likelihood.set_model(partition, model);
            }
        }
        self.set_lengths(x);
        self.total()
    }

    /// A change of a model is seen in its own partition alone.
    fn changes(&mut self, x: &[f64], by: &[f64]) -> Vec<f64> {
        let own = x.len() - self.stretches();
        let here = self.values.clone();
        let mut changes = vec![0.0; x.len()];
        let mut point = x.to_vec();
        for i in own..x.len() {
            point[i] = x[i] + by[i];
            self.set_lengths(&point);
            self.total();
            changes[i] = self.values.iter().zip(&here).map(|(there, here)| there - here).sum();
            point[i] = x[i];
        }
        if own < x.len() {
            self.set_lengths(x);
            self.total();
        }
        let mut first = 0;
        for (p, coordinates) in self.coordinates.iter().enumerate() {
            let partition = self.partitions.start + p;
            let range = first..first + coordinates.bounds().len();
            for i in range.clone() {
                point[i] = x[i] + by[i];
                let there = self.likelihood.try_model(partition, coordinates.model(&point[range.clone()]));
                changes[i] = there - here[p];
                point[i] = x[i];
            }
            if !range.is_empty() {
                self.likelihood.try_model(partition, coordinates.model(&x[range.clone()]));
            }
            first = range.end;
        }
        changes
    }
}
