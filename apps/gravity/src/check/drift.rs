//! By what the ways of particles may differ that are computed twice.

use super::{POLYNOMIAL_ERROR, TERM_ROUNDINGS, UNIT};
use crate::kernel::SPAN;
use multigrain::app::rounding_bound;

/// A bound larger than this, relative to the size of the system, is no longer compared with.
const BOUND_MAX: f64 = 1e-3;

/// By what two ways part that begin alike.
pub(super) struct Drift {
    /// The largest gradient of the field met on the way, the largest acceleration and the largest speed.
    pub(super) steepest: f64,
    pub(super) largest: f64,
    pub(super) fastest: f64,
    /// The largest distance from the origin.
    pub(super) extent: f64,
    /// By how much sources may lie elsewhere.
    pub(super) sources_by: f64,
}

/// What a place and a velocity may differ by.
pub(super) struct PlaceAndSpeed {
    pub(super) place: f64,
    pub(super) speed: f64,
}

impl Drift {
    /// What is allowed after so many steps, if that says anything.
    pub(super) fn bound(&self, steps: u64, dt: f64) -> Option<PlaceAndSpeed> {
        let Drift { steepest, largest, fastest, extent, sources_by } = *self;
        // What the terms of one particle can err by is at most what all of them weigh, which the gradient bounds too.
        let weight = largest.max(steepest * extent);
        let error = (rounding_bound(SPAN as u64 + TERM_ROUNDINGS) + POLYNOMIAL_ERROR) * weight
            + steepest * (UNIT * extent + sources_by);
        let (t, root) = (steps as f64 * dt.abs(), steepest.sqrt());
        let (place, speed) = match steepest > 0.0 {
            true => (error / steepest * ((root * t).cosh() - 1.0), error / root * (root * t).sinh()),
            false => (0.0, 0.0),
        };
        // Double precision rounds as well.
        let rounding = 4.0 * (steps + 1) as f64 * f64::EPSILON;
        let place = place + rounding * extent.max(fastest * t);
        let speed = speed + rounding * fastest.max(largest * t);
        (place <= BOUND_MAX * extent).then_some(PlaceAndSpeed { place, speed })
    }
}
