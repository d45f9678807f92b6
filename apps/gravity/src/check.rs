//! The check: trajectories and forces against double precision, what a step keeps in every snapshot, and sums.
//!
//! **Every snapshot.** The first is what the run was given, and masses never change: these are compared bit by bit. Steps of
//! Verlet keep the momentum and move the centre of mass at its velocity, but for the roundings of forces; both are linear in
//! every number of a snapshot, so a step that was lost or one that was wrong, for any particle, shows in all that follow.
//! They keep the angular momentum, too, which changes where places or velocities alone are those of another particle.
//! What is allowed is [`DEVIATIONS`](multigrain::app::DEVIATIONS) times what independent roundings of all forces, at most u
//! of what pulls at a particle from all sides, make of them; that is estimated at sampled particles of the first and the
//! last snapshot.
//!
//! **Neighbours.** Where every step has its snapshot, those before and after a step of Verlet lie apart by twice the velocity
//! between them times the length of the step, since that is its own inverse: x(t + dt) - x(t - dt) = 2 dt v(t), for each
//! particle and whatever the forces are. All particles of all snapshots between the first and the
//! last are held to that, up to roundings to double precision: so are all places but those of the first snapshot, which are
//! compared bit by bit, and all velocities but those of the last one. What was altered by more, or has changed places with
//! another, is found.
//!
//! **Trajectories.** From snapshots that are chosen at random, and from the one after which a particle strays most from where its
//! velocities take it, all steps again in double precision by a loop that shares
//! nothing with the kernels, up to the next snapshot: all of them where they take a bounded number of interactions, as those of
//! 4096 particles and 100 steps do; of steps that take more, as many legs as take so much. Two trajectories that begin alike part
//! as e'' <= L e + d, with d the largest error of an acceleration and
//! L the largest gradient of the field met on the way, so after time t their places differ by at most
//! d/L (cosh(sqrt(L) t) - 1), their velocities by d/sqrt(L) sinh(sqrt(L) t). The places' own rounding to single precision,
//! before forces are computed, adds L u |x| to d. What is compared is the error over this bound; bounds beyond a thousandth
//! of the distance say nothing any more and are left out. What was left out is said.
//!
//! **Tracks.** Where no leg can be computed again as a whole, the ways of some particles are, those drawn at random and those that
//! strayed most, so that a particle that has changed places with another is among them ([`tracks`]). If even these have no
//! useful bound, the check says that it has not compared what it should, and is no verdict.
//!
//! **Forces.** Those of the last snapshot, of sampled particles, by the kernel of the run, against sums in double precision.
//! The error is relative to the sum of the absolute values of the terms. A term takes at most 12 roundings to single
//! precision and 2.8e-7 of the polynomial, a chain one for each source of a span: the tolerance is what these allow.
//!
//! **Sums.** Where the run has computed energies and momentum, those of the first and the last snapshot against plain
//! sums; both are in double precision, so they differ by the order of the additions.
//!
//! Energy drifts by the length of the step, which is the user's choice, and is therefore reported and not judged.

mod drift;
mod legs;
mod sums;
mod tracks;

pub(crate) use sums::energies;

use crate::kernel::{SPAN, accelerate, reference};
use crate::simulation::Simulation;
use multigrain::app::{Checked, DEVIATIONS, rounding_bound};
use multigrain::prelude::{Error, Outcome, Region, blocks};
use multigrain_simd::Isa;
use sums::{compare_sums, momentum, row};

/// Particles whose forces are compared; all of fewer.
const SAMPLES: usize = 256;
/// Roundings of one term: 3 differences that enter twice each, 3 of the square, 6 of the rest.
const TERM_ROUNDINGS: u64 = 12;
/// Relative error of the polynomial of the kernel.
const POLYNOMIAL_ERROR: f64 = 2.8e-7;
/// Interactions that an energy may take; of larger systems none is computed.
const ENERGY_INTERACTIONS: u64 = 1 << 32;
/// Unit roundoff of single precision.
const UNIT: f64 = 1.0 / 16_777_216.0;

/// Particles in double precision: mass, x, y, z, vx, vy, vz each.
pub(crate) type Rows = Vec<[f64; 7]>;

/// Particles of a snapshot that are read at a time.
pub(crate) const ROWS: u64 = 4096;

/// A state of all particles that lies in an array of a run, of which little is in memory at a time.
#[derive(Clone, Copy)]
pub(crate) struct State<'a> {
    pub(crate) outcome: &'a Outcome,
    pub(crate) array: usize,
    /// Which of the array's states.
    pub(crate) number: u64,
    /// Particles.
    pub(crate) n: u64,
}

impl State<'_> {
    /// Calls `each` with all particles, piece by piece, and the number of the first of each piece.
    pub(crate) fn in_pieces(&self, mut each: impl FnMut(u64, Rows)) -> Result<(), Error> {
        blocks(self.n, ROWS).try_for_each(|(first, count)| {
            each(first, self.rows(first, count)?);
            Ok(())
        })
    }

    /// As [`State::in_pieces`], with the same particles of another state.
    fn beside(&self, other: &State<'_>, mut each: impl FnMut(u64, Rows, Rows)) -> Result<(), Error> {
        blocks(self.n, ROWS).try_for_each(|(first, count)| {
            each(first, self.rows(first, count)?, other.rows(first, count)?);
            Ok(())
        })
    }

    /// Some particles.
    pub(crate) fn rows(&self, first: u64, count: u64) -> Result<Rows, Error> {
        rows(self.outcome, self.array, self.number, first, count)
    }
}

/// Some particles of snapshot `number`.
fn rows(outcome: &Outcome, array: usize, number: u64, first: u64, count: u64) -> Result<Rows, Error> {
    let bytes = outcome.read(array, &Region::new(&[number, first, 0], &[1, count, 7]))?;
    let number = |b: &[u8]| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    Ok(bytes.chunks_exact(56).map(|row| std::array::from_fn(|c| number(&row[8 * c..]))).collect())
}

/// Largest error over tolerance so far.
struct Worst {
    ratio: f64,
    elements: u64,
    wrong: Option<String>,
}

impl Worst {
    fn add(&mut self, error: f64, tolerance: f64, what: impl FnOnce() -> String) {
        self.elements += 1;
        let ratio = if error == 0.0 { 0.0 } else { error / tolerance };
        let ratio = if ratio.is_nan() { f64::INFINITY } else { ratio };
        if ratio > 1.0 && self.wrong.is_none() {
            self.wrong = Some(what());
        }
        self.ratio = self.ratio.max(ratio);
    }
}

fn norm(v: [f64; 3]) -> f64 {
    v.iter().map(|c| c * c).sum::<f64>().sqrt()
}

/// Compares a run's snapshots and its sums, if an array has them; `arrays` are the initial state, the snapshots, the sums.
pub(crate) fn check(
    outcome: &Outcome,
    arrays: (usize, usize, Option<usize>),
    simulation: &Simulation,
    seed: u64,
) -> Result<Checked, Error> {
    let (initial, array, sums) = arrays;
    let n = simulation.particles;
    let last = simulation.snapshots() - 1;
    let state = |number: u64| State { outcome, array, number, n };
    let (first_state, last_state) = (state(0), state(last));
    let mut worst = Worst { ratio: 0.0, elements: 0, wrong: None };
    let mut figures = Vec::new();
    let tolerance = rounding_bound(SPAN as u64 + TERM_ROUNDINGS) + POLYNOMIAL_ERROR;
    first_state.beside(&State { array: initial, ..first_state }, |first, found, given| {
        for (i, (found, given)) in (first..).zip(found.iter().zip(&given)) {
            let same = found.iter().zip(given).all(|(a, b)| a.to_bits() == b.to_bits());
            worst.add(if same { 0.0 } else { 1.0 }, 0.0, || {
                format!("particle {i} of the first snapshot is not as it was given")
            });
        }
    })?;
    let (force_error, pulls) = forces(&last_state, simulation, tolerance, &mut worst)?;
    figures.push(("force error", force_error));
    let at_first = forces(&first_state, simulation, tolerance, &mut worst)?.1;
    let pulls = Pulls { force: pulls.force.max(at_first.force), torque: pulls.torque.max(at_first.torque) };
    kept(&first_state, simulation, pulls, &mut worst)?;
    let neighbours = neighbours(outcome, array, simulation, &mut worst)?;
    let compared = legs::compare(outcome, array, simulation, seed, &mut worst)?;
    let (begin, end) = (momentum(&first_state)?, momentum(&last_state)?);
    let change: [f64; 3] = std::array::from_fn(|d| end.0[d] - begin.0[d]);
    figures.push(("momentum drift", norm(change) / begin.1.max(end.1).max(f64::MIN_POSITIVE)));
    if n.saturating_mul(n) <= ENERGY_INTERACTIONS {
        let (begin, end) = (energies(&first_state, simulation)?, energies(&last_state, simulation)?);
        if let Some(sums) = sums {
            compare_sums(&row(outcome, sums, 0)?, &first_state, begin, &mut worst)?;
            compare_sums(&row(outcome, sums, last)?, &last_state, end, &mut worst)?;
        }
        let (begin, end) = (begin[0] + begin[1], end[0] + end[1]);
        figures.push(("energy drift", (end - begin).abs() / begin.abs().max(f64::MIN_POSITIVE)));
    }
    let covered = format!(
        "masses, momenta and centre of mass of all {} snapshots;{neighbours} {}; forces of {} particles of the first and the \
         last snapshot",
        last + 1,
        compared.text,
        SAMPLES.min(n as usize)
    );
    let Worst { ratio, elements, wrong } = worst;
    let uncovered = compared.uncovered.filter(|_| neighbours.is_empty());
    Ok(Checked { max_relative_error: ratio, tolerance: 1.0, elements, covered, uncovered, wrong, figures })
}

/// What the steps keep of a state.
#[derive(Default)]
struct Totals {
    momentum: [f64; 3],
    /// Sum of all places times masses.
    centre: [f64; 3],
    angular: [f64; 3],
    /// Sums of the squares of what they are sums of.
    speeds: f64,
    distances: f64,
    turns: f64,
}

impl Totals {
    /// Those of a state, whose masses have to be those of the first.
    fn of(state: &State<'_>, first: &State<'_>, worst: &mut Worst) -> Result<Totals, Error> {
        let mut totals = Totals::default();
        state.beside(first, |number, rows, before| {
            for (i, (row, before)) in (number..).zip(rows.iter().zip(&before)) {
                for d in 0..3 {
                    totals.momentum[d] += row[0] * row[4 + d];
                    totals.centre[d] += row[0] * row[1 + d];
                    totals.speeds += (row[0] * row[4 + d]).powi(2);
                    totals.distances += (row[0] * row[1 + d]).powi(2);
                    let (e, f) = ((d + 1) % 3, (d + 2) % 3);
                    totals.angular[d] += row[0] * (row[1 + e] * row[4 + f] - row[1 + f] * row[4 + e]);
                }
                totals.turns += (row[0] * norm([row[1], row[2], row[3]]) * norm([row[4], row[5], row[6]])).powi(2);
                let changed = row[0].to_bits() != before[0].to_bits();
                worst.add(if changed { 1.0 } else { 0.0 }, 0.0, || {
                    format!("particle {i} of snapshot {} has mass {}, it was {}", state.number, row[0], before[0])
                });
            }
        })?;
        Ok(totals)
    }
}

/// Mean squares over particles of mass times what pulls at it from all sides, and of this times the distance from the origin.
#[derive(Clone, Copy, Default)]
struct Pulls {
    force: f64,
    torque: f64,
}

/// Judges what every step keeps, in every snapshot.
fn kept(first: &State<'_>, simulation: &Simulation, pulls: Pulls, worst: &mut Worst) -> Result<(), Error> {
    let n = simulation.particles;
    let dt = simulation.step.dt.abs();
    let Totals { momentum, centre, angular, speeds, turns, .. } = Totals::of(first, first, worst)?;
    for number in 1..simulation.snapshots() {
        let state = State { number, ..*first };
        let Totals { momentum: moved, centre: at, angular: turned, speeds: now, distances, turns: turning } =
            Totals::of(&state, first, worst)?;
        let steps = simulation.steps_at(number) as f64;
        let time = steps * simulation.step.dt;
        // Two accelerations a step, and what has been a velocity at both ends has been changed by as much.
        let each_step = steps * n as f64 * (simulation.step.gravity * dt).powi(2);
        let allowed = DEVIATIONS * UNIT * (each_step * pulls.force + speeds.max(now)).sqrt();
        // The places at which forces are computed are rounded, too, which turns each by as much.
        let may_turn = DEVIATIONS * UNIT * (2.0 * each_step * pulls.torque + turns.max(turning)).sqrt();
        let double = 8.0 * f64::EPSILON * (steps + n as f64).sqrt();
        for d in 0..3 {
            let error = (moved[d] - momentum[d]).abs();
            worst
                .add(error, allowed, || format!("the momentum of snapshot {number} is {moved:?}, it was {momentum:?}"));
            worst.add((turned[d] - angular[d]).abs(), may_turn + double * turns.max(turning).sqrt(), || {
                format!("the angular momentum of snapshot {number} is {turned:?}, it was {angular:?}")
            });
            let expected = centre[d] + time * momentum[d];
            let allowed = allowed * time.abs() + double * (distances.sqrt() + time.abs() * speeds.max(now).sqrt());
            worst.add((at[d] - expected).abs(), allowed, || {
                format!("the centre of mass of snapshot {number} is not where its velocity takes it")
            });
        }
    }
    Ok(())
}

/// Compares places before and after each snapshot with the velocity there, where there is one of every step; says so.
fn neighbours(
    outcome: &Outcome,
    array: usize,
    simulation: &Simulation,
    worst: &mut Worst,
) -> Result<&'static str, Error> {
    let snapshots = simulation.snapshots();
    if simulation.every != 1 || snapshots < 3 {
        return Ok("");
    }
    let dt = simulation.step.dt;
    for first in (0..simulation.particles).step_by(ROWS as usize) {
        let count = ROWS.min(simulation.particles - first);
        let at = |number: u64| rows(outcome, array, number, first, count);
        let (mut before, mut here) = (at(0)?, at(1)?);
        for number in 1..snapshots - 1 {
            let after = at(number + 1)?;
            for (i, ((before, here), after)) in before.iter().zip(&here).zip(&after).enumerate() {
                let moved: [f64; 3] = std::array::from_fn(|d| after[1 + d] - before[1 + d] - 2.0 * dt * here[4 + d]);
                // Each of the six operations of either step rounds a number no larger than these are together.
                let places = [before, here, after].map(|row| norm([row[1], row[2], row[3]]));
                let speeds = [before, here, after].map(|row| dt.abs() * norm([row[4], row[5], row[6]]));
                let allowed = 16.0 * f64::EPSILON * places.into_iter().chain(speeds).sum::<f64>();
                worst.add(norm(moved), allowed, || {
                    format!("particle {} of snapshot {number} is not between those before and after", first + i as u64)
                });
            }
            (before, here) = (here, after);
        }
    }
    Ok(" every particle of every snapshot between the first and the last with those before and after;")
}

/// Judges the forces of a state; returns the largest error relative to the force itself, and what pulls.
fn forces(
    state: &State<'_>,
    simulation: &Simulation,
    tolerance: f64,
    worst: &mut Worst,
) -> Result<(f64, Pulls), Error> {
    let n = state.n as usize;
    let softening2 = simulation.step.softening2;
    let sampled: Vec<usize> = (0..SAMPLES.min(n)).map(|k| k * n / SAMPLES.min(n)).collect();
    let of_sampled: Vec<[f64; 7]> =
        sampled.iter().map(|&i| Ok(state.rows(i as u64, 1)?[0])).collect::<Result<_, Error>>()?;
    let m = sampled.len();
    let targets: Vec<f32> = (1..4).flat_map(|c| of_sampled.iter().map(move |row| row[c] as f32)).collect();
    let mut found = vec![0.0; 3 * m];
    let mut exact = vec![([0.0; 3], 0.0); m];
    let mut largest: f64 = 0.0;
    // Pieces are whole spans, so the chains are those of all sources at once.
    const { assert!(ROWS.is_multiple_of(SPAN as u64)) };
    state.in_pieces(|_, rows| {
        let masses: Vec<f32> = rows.iter().map(|row| row[0] as f32).collect();
        let sources: Vec<f32> = (1..4).flat_map(|c| rows.iter().map(move |row| row[c] as f32)).collect();
        // Lengths are right and the instruction set was detected: there is nothing to refuse.
        if accelerate(Isa::detect(), softening2, &masses, &sources, &targets, &mut found).is_err() {
            largest = f64::INFINITY;
        }
        for (k, (exact, all)) in exact.iter_mut().enumerate() {
            let (sum, more) = reference(f64::from(softening2), &masses, &sources, &targets, k);
            exact.iter_mut().zip(sum).for_each(|(exact, sum)| *exact += sum);
            *all += more;
        }
    })?;
    let mut pulls = Pulls::default();
    for (k, ((exact, all), row)) in exact.into_iter().zip(&of_sampled).enumerate() {
        let error = norm(std::array::from_fn(|d| found[d * m + k] - exact[d]));
        let particle = sampled[k];
        let pull = f64::from(row[0] as f32) * all;
        pulls.force += pull.powi(2) / m as f64;
        pulls.torque += (pull * norm([row[1], row[2], row[3]])).powi(2) / m as f64;
        worst.add(error, tolerance * all, || format!("the force on particle {particle} is wrong by {error:e}"));
        if norm(exact) > 0.0 {
            largest = largest.max(error / norm(exact));
        }
    }
    Ok((largest, pulls))
}
