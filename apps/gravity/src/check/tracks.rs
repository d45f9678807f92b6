//! The ways of single particles from one snapshot to the next, where those of all take too long or have no useful bound.
//!
//! **Strays.** A particle whose velocity changes evenly is, at the end of a leg, where the mean of its velocities at both ends
//! takes it. Who strays most from there is followed, since it has been near to others, or is not who it was.
//!
//! **Tracks.** A particle is followed from the earlier snapshot in double precision, by all steps of the leg, in the field of all
//! others. These are at their places in both snapshots, and on cubics between them that have the velocities there (Hermite);
//! so a track depends on its particle's row of the later snapshot by nothing, and on the other rows by one of n terms each.
//! By how much such cubics err is measured on the tracks, which are known on the way: it is taken as [`CUBIC_FACTOR`] times
//! the larger of what nine tenths of those that were drawn err by and of what the particle itself does. It moves the sources,
//! so it adds its product with the gradient of the field to the largest error of an acceleration; the rest is the bound of
//! the trajectories.

use super::drift::{Drift, PlaceAndSpeed};
use super::{State, Worst, norm};
use crate::simulation::Simulation;
use multigrain::prelude::{Error, generate};
use std::panic::resume_unwind;
use std::thread;

/// Particles that are followed because they strayed most.
pub(super) const STRAYS: usize = 8;
/// Places of a track that are kept for the error of its cubic.
const KEPT: u64 = 32;
/// By how many times the cubics of other particles may err more than those that were measured.
const CUBIC_FACTOR: f64 = 4.0;

/// From a state to the next: so many steps.
#[derive(Clone, Copy)]
pub(super) struct Leg<'a> {
    pub(super) from: State<'a>,
    pub(super) to: State<'a>,
    pub(super) steps: u64,
}

/// How all particles went, by their ends alone.
pub(super) struct Strayed {
    /// The distance from where the mean of its velocities takes a particle, and which; the largest first, and one more than are
    /// followed.
    pub(super) most: Vec<(f64, usize)>,
    /// The largest distance of a particle from the origin.
    pub(super) extent: f64,
}

/// What was followed.
pub(super) struct Followed {
    /// Tracks that were compared, and those whose bound says nothing.
    pub(super) compared: u64,
    pub(super) chaotic: u64,
    /// The largest error of a place that was allowed.
    pub(super) allowed: f64,
}

impl Leg<'_> {
    /// How all particles strayed.
    pub(super) fn strayed(&self, dt: f64) -> Result<Strayed, Error> {
        let half = 0.5 * dt * self.steps as f64;
        let mut most: Vec<(f64, usize)> = Vec::with_capacity(STRAYS + 2);
        let mut extent = 0.0f64;
        self.from.beside(&self.to, |first, from, to| {
            for (i, (from, to)) in (first as usize..).zip(from.iter().zip(&to)) {
                let by: [f64; 3] = std::array::from_fn(|d| to[1 + d] - from[1 + d] - half * (from[4 + d] + to[4 + d]));
                let by = if norm(by).is_nan() { f64::INFINITY } else { norm(by) };
                extent = extent.max(norm([from[1], from[2], from[3]])).max(norm([to[1], to[2], to[3]]));
                if most.len() <= STRAYS || most.last().is_some_and(|least| by > least.0) {
                    most.insert(most.partition_point(|other| other.0 >= by), (by, i));
                    most.truncate(STRAYS + 1);
                }
            }
        })?;
        Ok(Strayed { most, extent })
    }

    /// Follows `drawn` particles that are chosen at random, and those that strayed most, and compares their ends.
    pub(super) fn follow(
        &self,
        drawn: usize,
        simulation: &Simulation,
        seed: u64,
        worst: &mut Worst,
    ) -> Result<Followed, Error> {
        let n = self.from.n as usize;
        let strayed = self.strayed(simulation.step.dt)?;
        let mut chosen: Vec<usize> =
            (0..drawn as u64).map(|k| ((generate::f64_at(seed, k) + 1.0) / 2.0 * n as f64) as usize % n).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let at_random = chosen.len();
        let strays = strayed.most.iter().take(STRAYS).map(|&(_, i)| i).filter(|i| !chosen[..at_random].contains(i));
        let strays: Vec<usize> = strays.collect();
        chosen.extend(strays);
        let mut tracks: Vec<Track> = chosen
            .iter()
            .map(|&i| Ok(Track::from(i, self.from.rows(i as u64, 1)?[0])))
            .collect::<Result<_, Error>>()?;
        let dt = simulation.step.dt;
        let every = self.steps.div_ceil(KEPT);
        self.pull(0, simulation, &mut tracks)?;
        for step in 1..=self.steps {
            tracks.iter_mut().for_each(|track| track.kick_drift(dt, step % every == 0));
            self.pull(step, simulation, &mut tracks)?;
            tracks.iter_mut().for_each(|track| track.kick(dt));
        }
        let time = dt * self.steps as f64;
        let errors: Vec<f64> =
            tracks.iter().map(|track| track.cubic_error(every as f64 / self.steps as f64, time)).collect();
        let mut of_drawn = errors[..at_random].to_vec();
        of_drawn.sort_unstable_by(f64::total_cmp);
        let usual = of_drawn.get(at_random * 9 / 10).copied().unwrap_or(f64::INFINITY);
        let mut followed = Followed { compared: 0, chaotic: 0, allowed: 0.0 };
        for (track, error) in tracks.iter().zip(errors) {
            let sources_by = CUBIC_FACTOR * usual.max(error);
            let drift = |steepest| Drift {
                steepest,
                largest: track.largest,
                extent: strayed.extent,
                fastest: track.fastest,
                sources_by,
            };
            // A place is not yet moved by the forces at the end.
            let places = drift(track.steepest).bound(self.steps, dt);
            let speeds = drift(track.steepest.max(track.last_steepest)).bound(self.steps, dt);
            let (Some(PlaceAndSpeed { place, .. }), found) = (places, self.to.rows(track.particle as u64, 1)?[0])
            else {
                followed.chaotic += 1;
                continue;
            };
            followed.compared += 1;
            followed.allowed = followed.allowed.max(place);
            let wrong = || {
                format!(
                    "particle {} of snapshot {} is at {found:?}, {:?} {:?} was expected",
                    track.particle, self.to.number, track.place, track.velocity
                )
            };
            worst.add(norm(std::array::from_fn(|d| found[1 + d] - track.place[d])), place, wrong);
            if let Some(PlaceAndSpeed { speed, .. }) = speeds {
                worst.add(norm(std::array::from_fn(|d| found[4 + d] - track.velocity[d])), speed, wrong);
            }
        }
        Ok(followed)
    }

    /// Computes the accelerations of all tracks after so many steps.
    fn pull(&self, step: u64, simulation: &Simulation, tracks: &mut [Track]) -> Result<(), Error> {
        let part = step as f64 / self.steps as f64;
        let time = simulation.step.dt * self.steps as f64;
        let softening2 = f64::from(simulation.step.softening2);
        let each = tracks.len().div_ceil(thread::available_parallelism().map_or(1, usize::from)).max(1);
        tracks.iter_mut().for_each(|track| (track.acceleration, track.gradient) = ([0.0; 3], 0.0));
        self.from.beside(&self.to, |first, from, to| {
            let mut sources = [(); 4].map(|()| Vec::with_capacity(from.len()));
            for (from, to) in from.iter().zip(&to) {
                sources[0].push(from[0]);
                for (d, column) in sources[1..].iter_mut().enumerate() {
                    column.push(cubic([from[1 + d], to[1 + d]], [from[4 + d], to[4 + d]], part, time));
                }
            }
            thread::scope(|scope| {
                let sources = &sources;
                let on =
                    |tracks: &mut [Track]| tracks.iter_mut().for_each(|t| t.add(first as usize, sources, softening2));
                let running: Vec<_> = tracks.chunks_mut(each).map(|part| scope.spawn(move || on(part))).collect();
                running.into_iter().for_each(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
            });
        })?;
        tracks.iter_mut().for_each(|track| track.pulled(simulation.step.gravity, step == self.steps));
        Ok(())
    }
}

/// The cubic with these values and derivatives at 0 and `time`, at `part` of it.
fn cubic(values: [f64; 2], derivatives: [f64; 2], part: f64, time: f64) -> f64 {
    let rest = 1.0 - part;
    let ([x0, x1], [v0, v1]) = (values, derivatives);
    rest * rest * ((1.0 + 2.0 * part) * x0 + part * time * v0)
        + part * part * ((1.0 + 2.0 * rest) * x1 - rest * time * v1)
}

/// A particle on its way.
struct Track {
    particle: usize,
    begin: [f64; 7],
    place: [f64; 3],
    velocity: [f64; 3],
    acceleration: [f64; 3],
    /// Of the field here and now: the sum over sources of m / r^3.
    gradient: f64,
    /// Largest gradient, acceleration and speed so far; the gradient at the end apart.
    steepest: f64,
    last_steepest: f64,
    largest: f64,
    fastest: f64,
    /// Some places of the way.
    kept: Vec<[f64; 3]>,
}

impl Track {
    fn from(particle: usize, begin: [f64; 7]) -> Track {
        let [_, x, y, z, vx, vy, vz] = begin;
        Track {
            particle,
            begin,
            place: [x, y, z],
            velocity: [vx, vy, vz],
            acceleration: [0.0; 3],
            gradient: 0.0,
            steepest: 0.0,
            last_steepest: 0.0,
            largest: 0.0,
            fastest: norm([vx, vy, vz]),
            kept: Vec::new(),
        }
    }

    /// Adds what sources from number `first` on (rows of m, x, y, z) do, but for the particle itself.
    fn add(&mut self, first: usize, [m, x, y, z]: &[Vec<f64>; 4], softening2: f64) {
        let own = self.particle.checked_sub(first).filter(|&own| own < m.len());
        let ([px, py, pz], mut sum, mut gradient) = (self.place, [0.0; 3], 0.0);
        for range in own.map_or([0..m.len(), 0..0], |own| [0..own, own + 1..m.len()]) {
            let columns = m[range.clone()].iter().zip(&x[range.clone()]).zip(&y[range.clone()]).zip(&z[range]);
            for (((&m, &x), &y), &z) in columns {
                let (dx, dy, dz) = (x - px, y - py, z - pz);
                let r2 = dx * dx + dy * dy + dz * dz;
                let soft = r2 + softening2;
                let scale = if r2 > 0.0 { m / (soft * soft.sqrt()) } else { 0.0 };
                sum[0] += scale * dx;
                sum[1] += scale * dy;
                sum[2] += scale * dz;
                gradient += scale.abs();
            }
        }
        self.acceleration.iter_mut().zip(sum).for_each(|(a, sum)| *a += sum);
        self.gradient += gradient;
    }

    /// All sources have been added.
    fn pulled(&mut self, gravity: f64, at_the_end: bool) {
        self.acceleration = self.acceleration.map(|a| gravity * a);
        // As in `Trajectory::accelerate`.
        let gradient = 4.0 * gravity.abs() * self.gradient;
        match at_the_end {
            true => self.last_steepest = gradient,
            false => self.steepest = self.steepest.max(gradient),
        }
        self.largest = self.largest.max(norm(self.acceleration));
    }

    fn kick_drift(&mut self, dt: f64, keep: bool) {
        self.kick(dt);
        self.place.iter_mut().zip(self.velocity).for_each(|(x, v)| *x += dt * v);
        if keep {
            self.kept.push(self.place);
        }
    }

    fn kick(&mut self, dt: f64) {
        self.velocity.iter_mut().zip(self.acceleration).for_each(|(v, a)| *v += 0.5 * dt * a);
        self.fastest = self.fastest.max(norm(self.velocity));
    }

    /// By how much the way leaves the cubic between its ends; `part` of it is between places that were kept.
    fn cubic_error(&self, part: f64, time: f64) -> f64 {
        let error = |(k, place): (usize, &[f64; 3])| {
            let along = |d: usize| {
                let (values, derivatives) = ([self.begin[1 + d], self.place[d]], [self.begin[4 + d], self.velocity[d]]);
                place[d] - cubic(values, derivatives, part * (k + 1) as f64, time)
            };
            let error = norm(std::array::from_fn(along));
            if error.is_nan() { f64::INFINITY } else { error }
        };
        // At both ends there is none, whatever roundings say.
        let inner = self.kept.iter().enumerate().filter(|(k, _)| part * (k + 1) as f64 <= 1.0 - 0.5 * part);
        inner.map(error).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cubic_has_its_values_and_derivatives() {
        // 1 + 2 t - t^2 + 3 t^3 on [0, 2].
        let at = |t: f64| 1.0 + 2.0 * t - t * t + 3.0 * t * t * t;
        let slope = |t: f64| 2.0 - 2.0 * t + 9.0 * t * t;
        for t in [0.0, 0.25, 1.0, 1.5, 2.0] {
            let found = cubic([at(0.0), at(2.0)], [slope(0.0), slope(2.0)], t / 2.0, 2.0);
            assert!((found - at(t)).abs() < 1e-12, "{t}: {found}");
        }
    }

    #[test]
    fn a_track_on_a_cubic_leaves_it_by_nothing_and_another_by_what_it_does() {
        let track = |at: &dyn Fn(f64) -> f64, speed: f64| Track {
            place: [at(1.0), 0.0, 0.0],
            velocity: [speed, 0.0, 0.0],
            kept: (1..=4).map(|k| [at(f64::from(k) / 4.0), 0.0, 0.0]).collect(),
            ..Track::from(0, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        };
        assert!(track(&|t| t * t * t, 3.0).cubic_error(0.25, 1.0) < 1e-15);
        // t^4 leaves its cubic by t^2 (1 - t)^2: 1/16 in the middle.
        let error = track(&|t| t * t * t * t, 4.0).cubic_error(0.25, 1.0);
        assert!((error - 0.0625).abs() < 1e-15, "{error}");
    }
}
