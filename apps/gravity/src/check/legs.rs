//! Legs: from snapshot to snapshot, again in double precision. Which of them, and how: all particles where that takes
//! [`TRAJECTORY_INTERACTIONS`], else tracks of some ([`super::tracks`]).

use super::drift::{Drift, PlaceAndSpeed};
use super::tracks::{Followed, Leg, STRAYS};
use super::{State, Worst, norm};
use crate::simulation::Simulation;
use multigrain::prelude::{Error, Outcome, generate};
use multigrain::readable_bytes;
use std::panic::resume_unwind;
use std::thread;

/// Interactions in double precision that the trajectories may take; as many more for tracks.
const TRAJECTORY_INTERACTIONS: u64 = 1 << 31;
/// Bytes that a particle of a trajectory takes: its numbers, and three of an acceleration.
const PARTICLE_BYTES: u64 = 8 * 10;
/// Particles that are drawn for tracks in a leg.
const DRAWN_MIN: u64 = 16;
const DRAWN_MAX: u64 = 256;
/// Legs of so many steps have tracks whatever they take, which is less than the run did.
const STEPS_ALWAYS: u64 = 3;

/// The particles of a trajectory: mass, x, y, z, vx, vy, vz of all, and their accelerations.
struct Trajectory {
    columns: [Vec<f64>; 7],
    accelerations: Vec<[f64; 3]>,
}

impl Trajectory {
    fn from(state: &State<'_>) -> Result<Trajectory, Error> {
        let mut columns = [(); 7].map(|()| Vec::with_capacity(state.n as usize));
        state.in_pieces(|_, rows| {
            rows.iter().for_each(|row| columns.iter_mut().zip(row).for_each(|(column, value)| column.push(*value)));
        })?;
        Ok(Trajectory { columns, accelerations: vec![[0.0; 3]; state.n as usize] })
    }

    fn place(&self, i: usize) -> [f64; 3] {
        std::array::from_fn(|d| self.columns[1 + d][i])
    }

    fn velocity(&self, i: usize) -> [f64; 3] {
        std::array::from_fn(|d| self.columns[4 + d][i])
    }

    /// Changes all velocities by so much of the accelerations.
    fn kick(&mut self, time: f64) {
        for (d, column) in self.columns[4..].iter_mut().enumerate() {
            column.iter_mut().zip(&self.accelerations).for_each(|(v, a)| *v += time * a[d]);
        }
    }

    /// Moves all particles.
    fn drift(&mut self, time: f64) {
        let (places, velocities) = self.columns[1..].split_at_mut(3);
        for (x, v) in places.iter_mut().zip(velocities) {
            x.iter_mut().zip(v).for_each(|(x, v)| *x += time * *v);
        }
    }

    /// Computes the accelerations of all particles; the largest gradient of the field.
    fn accelerate(&mut self, simulation: &Simulation) -> f64 {
        let (softening2, gravity) = (f64::from(simulation.step.softening2), simulation.step.gravity);
        let [m, x, y, z, ..] = &self.columns;
        let of = |i: usize| {
            let (mut sum, mut gradient) = ([0.0; 3], 0.0);
            for (((&m, &x_j), &y_j), &z_j) in m.iter().zip(x).zip(y).zip(z) {
                let (dx, dy, dz) = (x_j - x[i], y_j - y[i], z_j - z[i]);
                let r2 = dx * dx + dy * dy + dz * dz;
                let soft = r2 + softening2;
                let scale = if r2 > 0.0 { m / (soft * soft.sqrt()) } else { 0.0 };
                sum[0] += scale * dx;
                sum[1] += scale * dy;
                sum[2] += scale * dz;
                gradient += scale.abs();
            }
            // The tensor's largest eigenvalue is at most 2 m / r^3; both particles move.
            (sum.map(|sum| gravity * sum), 4.0 * gravity.abs() * gradient)
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let each = m.len().div_ceil(threads).max(256);
        let part = |(number, to): (usize, &mut [[f64; 3]])| {
            to.iter_mut().enumerate().fold(0.0, |most: f64, (i, to)| {
                let (sum, gradient) = of(number * each + i);
                *to = sum;
                most.max(gradient)
            })
        };
        thread::scope(|scope| {
            let part = &part;
            let parts = self.accelerations.chunks_mut(each).enumerate();
            let running: Vec<_> = parts.map(|one| scope.spawn(move || part(one))).collect();
            let gradients = running.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
            gradients.fold(0.0, f64::max)
        })
    }
}

/// What was computed again.
#[derive(Default)]
pub(super) struct Compared {
    /// In words.
    pub(super) text: String,
    /// Why no way from one snapshot to the next was compared, if none was.
    pub(super) uncovered: Option<String>,
}

/// Compares legs from snapshot to snapshot.
pub(super) fn compare(
    outcome: &Outcome,
    array: usize,
    simulation: &Simulation,
    seed: u64,
    worst: &mut Worst,
) -> Result<Compared, Error> {
    let n = simulation.particles;
    let dt = simulation.step.dt;
    let legs = simulation.snapshots() - 1;
    let steps = simulation.every.min(simulation.steps);
    let state = |number: u64| State { outcome, array, number, n };
    let leg = |number: u64| Leg {
        from: state(number),
        to: state(number + 1),
        steps: simulation.steps_at(number + 1) - simulation.steps_at(number),
    };
    let each = n.saturating_mul(steps + 1);
    let (needed, room) = (n.saturating_mul(PARTICLE_BYTES), outcome.check_bytes());
    let affordable = match needed <= room {
        true => (TRAJECTORY_INTERACTIONS / each.saturating_mul(n).max(1)).min(legs),
        false => 0,
    };
    // The leg in which somebody strays most, if not all are compared; and by how much anybody does elsewhere.
    let (mut strange, mut score, mut most, mut elsewhere) = (0, -1.0, 0.0f64, 0.0f64);
    if affordable < legs {
        for number in 0..legs {
            let leg = leg(number);
            let strayed = leg.strayed(dt)?.most;
            let (by, next) = (strayed[0].0, strayed.get(STRAYS).map_or(0.0, |next| next.0));
            // Who strays does so by the cube of the time.
            let scored = by / (leg.steps as f64).powi(3);
            elsewhere = elsewhere.max(next).max(if scored > score { most } else { by });
            if scored > score {
                (strange, score, most) = (number, scored, by);
            }
        }
    }
    // That one, and one of each of so many equal parts.
    let chosen = |count: u64, seed: u64| {
        let drawn = (0..count).map(move |k| {
            let (from, to) = (k * legs / count, (k + 1) * legs / count);
            from + ((generate::f64_at(seed, k) + 1.0) / 2.0 * (to - from) as f64) as u64 % (to - from)
        });
        let mut chosen: Vec<u64> = drawn.chain((count < legs).then_some(strange)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    };
    let (mut whole, mut by_tracks) = (0, Vec::new());
    if affordable > 0 {
        for number in chosen(affordable, seed) {
            match trajectory(&leg(number), simulation, worst)? {
                true => whole += 1,
                false => by_tracks.push(number),
            }
        }
    }
    let drawn = (TRAJECTORY_INTERACTIONS / each.max(1)).clamp(DRAWN_MIN, DRAWN_MAX);
    let can_follow = drawn.saturating_mul(each) <= TRAJECTORY_INTERACTIONS || steps <= STEPS_ALWAYS;
    let followed_legs = (TRAJECTORY_INTERACTIONS / drawn.saturating_mul(each).max(1)).clamp(1, legs);
    match (affordable, can_follow) {
        (0, true) => by_tracks = chosen(followed_legs, seed),
        (_, true) => by_tracks.truncate(followed_legs as usize),
        (_, false) => by_tracks.clear(),
    }
    let mut all = Followed { compared: 0, chaotic: 0, allowed: 0.0 };
    for &number in &by_tracks {
        let followed =
            leg(number).follow(drawn as usize, simulation, seed ^ number.wrapping_mul(0x9e37_79b9), worst)?;
        all.compared += followed.compared;
        all.chaotic += followed.chaotic;
        all.allowed = all.allowed.max(followed.allowed);
    }
    let mut text = format!("{whole} of {legs} trajectories from snapshot to snapshot again in double precision");
    if affordable == 0 && needed > room {
        text += &format!(
            " (all particles again take {} and {} are free; give {} more of --memory)",
            readable_bytes(needed),
            readable_bytes(room),
            readable_bytes(needed - room)
        );
    }
    if all.compared > 0 {
        text += &format!(
            ", and the ways of {} particles over {} of them in the field of all others, to within {:.1e}, drawn at random and of \
             those that strayed most",
            all.compared,
            by_tracks.len(),
            all.allowed
        );
    }
    if all.chaotic > 0 {
        text += &format!(
            "; {} more are so chaotic, or so long, that they have no useful bound (snapshots more often help)",
            all.chaotic
        );
    }
    let nothing = whole == 0 && all.compared == 0;
    if nothing {
        elsewhere = elsewhere.max(most);
    }
    if affordable < legs {
        text += &format!(
            "; every other particle of every snapshot is within {elsewhere:.1e} of where the mean of its velocities there and \
             before takes it"
        );
    }
    if whole > 0 && whole < legs {
        text += &format!(
            "; a trajectory that is wrong by less is among them with a probability of {:.2}",
            whole as f64 / legs as f64
        );
    }
    let uncovered = nothing.then(|| {
        let affordable = (TRAJECTORY_INTERACTIONS / DRAWN_MIN / n.max(1)).saturating_sub(1).max(STEPS_ALWAYS);
        format!(
            "no particle's way from one snapshot to the next was compared: {steps} steps from one to the next {}; with \
             --snapshots {} they would be",
            if can_follow { "have no useful bound" } else { "would take longer than the run" },
            if can_follow { (steps / 8).max(1) } else { affordable }
        )
    });
    Ok(Compared { text, uncovered })
}

/// All particles again over a leg; whether there was a bound to compare them with.
fn trajectory(leg: &Leg<'_>, simulation: &Simulation, worst: &mut Worst) -> Result<bool, Error> {
    let mut state = Trajectory::from(&leg.from)?;
    let mut steepest = state.accelerate(simulation);
    let (mut largest, mut extent) = (0.0f64, 0.0f64);
    let dt = simulation.step.dt;
    for _ in 0..leg.steps {
        state.kick(0.5 * dt);
        state.drift(dt);
        steepest = steepest.max(state.accelerate(simulation));
        state.kick(0.5 * dt);
        for (i, a) in state.accelerations.iter().enumerate() {
            largest = largest.max(norm(*a));
            extent = extent.max(norm(state.place(i)));
        }
    }
    let fastest = (0..leg.from.n as usize).map(|i| norm(state.velocity(i))).fold(0.0, f64::max);
    let drift = Drift { steepest, largest, fastest, extent, sources_by: 0.0 };
    let Some(PlaceAndSpeed { place, speed }) = drift.bound(leg.steps, dt) else { return Ok(false) };
    leg.to.in_pieces(|first, rows| {
        for (i, found) in (first as usize..).zip(&rows) {
            let (at, moving) = (state.place(i), state.velocity(i));
            let wrong = || {
                format!("particle {i} of snapshot {} is at {found:?}, {at:?} {moving:?} was expected", leg.to.number)
            };
            worst.add(norm(std::array::from_fn(|d| found[1 + d] - at[d])), place, wrong);
            worst.add(norm(std::array::from_fn(|d| found[4 + d] - moving[d])), speed, wrong);
        }
    })?;
    Ok(true)
}
