//! The whole simulation as one program: all steps are calls on the same arrays, so a plan can leave them where they are.

use crate::task::{Advance, COLUMNS, Forces, Load, SUMS, Save, Step, Sums, Wells};
use multigrain::prelude::{Array, Program, ProgramError, Role, Scalars, TaskHandle};
use multigrain_simd::Isa;

/// Interactions that one call of [`Advance`] should have at least: a call costs some hundred nanoseconds.
const CALL_INTERACTIONS: u64 = 1 << 20;
/// Steps of one call: enough to show a planner that what stays is used again, ...
const CALL_STEPS_MIN: u64 = 8;
/// ... and few enough to be planned in no time.
const CALL_STEPS_MAX: u64 = 4096;
/// The state is read again from a snapshot when this many steps were made since it last was. What is interrupted goes on
/// from there; it costs one more evaluation of the forces, less than one in a hundred ...
const RELOAD_STEPS: u64 = 128;
/// ... or, where so many steps have this many interactions, which take seconds, one in this many at most: else an
/// interruption could cost hours.
const RELOAD_STEPS_LARGE: u64 = 16;
const LARGE_INTERACTIONS: u64 = 1 << 36;
/// More calls than this are no longer planned in seconds.
pub(crate) const CALLS_MAX: u64 = 1 << 21;
/// Arguments of most calls.
pub(crate) const CALL_ARGUMENTS: usize = 5;

/// A simulation: how many particles, how many steps, how often a snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulation {
    /// Particles, at least one.
    pub particles: u64,
    /// Steps, at least one.
    pub steps: u64,
    /// Steps from one snapshot to the next, at least one.
    pub every: u64,
    /// Each step.
    pub step: Step,
    /// Whether energies and momentum are computed of every snapshot.
    pub energies: bool,
}

/// A simulation as a program, with the numbers of the arrays that matter outside.
pub struct Built {
    /// The program.
    pub program: Program,
    /// The first state: 1 x n x 7.
    pub initial: usize,
    /// All snapshots: count x n x 7.
    pub snapshots: usize,
    /// Energies and momentum of every snapshot, where they are computed: count x [`SUMS`].
    pub sums: Option<usize>,
}

/// What computes energies.
#[derive(Clone, Copy)]
struct Energies {
    tasks: (TaskHandle<Wells>, TaskHandle<Sums>),
    sums: Array<f64, 2>,
    wells: Array<f64, 2>,
}

impl Simulation {
    /// Number of snapshots: one of the beginning, one after every `every` steps, one of the end.
    pub fn snapshots(&self) -> u64 {
        1 + self.steps.div_ceil(self.every)
    }

    /// Steps made when snapshot `number` is taken.
    pub fn steps_at(&self, number: u64) -> u64 {
        number.saturating_mul(self.every).min(self.steps)
    }

    /// Steps of one call.
    fn call_steps(&self) -> u64 {
        let interactions = self.particles.saturating_mul(self.particles).max(1);
        (CALL_INTERACTIONS / interactions).clamp(CALL_STEPS_MIN, CALL_STEPS_MAX)
    }

    /// Steps after which the next snapshot is one that an interrupted run goes on from.
    fn reload_steps(&self) -> u64 {
        let interactions = self.particles.saturating_mul(self.particles).saturating_mul(RELOAD_STEPS);
        if interactions < LARGE_INTERACTIONS { RELOAD_STEPS } else { RELOAD_STEPS_LARGE }
    }

    /// About how many calls the program has.
    pub fn calls(&self) -> u64 {
        let of_snapshot = if self.energies { 3 } else { 1 };
        let steps = self.steps.div_ceil(self.call_steps().min(self.every));
        self.snapshots().saturating_mul(of_snapshot).saturating_add(steps)
    }

    /// The program.
    ///
    /// # Errors
    /// When the snapshots have more bytes than can be addressed.
    pub fn build(&self, isa: Isa) -> Result<Built, ProgramError> {
        let n = self.particles;
        let mut program = Program::new();
        let (load, save) = (program.task(Load), program.task(Save));
        let (forces, advance) = (program.task(Forces::new(isa, n)), program.task(Advance::new(isa, n)));
        let initial = program.array::<f64, 3>("initial", [1, n, COLUMNS], Role::Input)?;
        let snapshots = program.array::<f64, 3>("snapshots", [self.snapshots(), n, COLUMNS], Role::Output)?;
        let mass = program.array::<f32, 1>("mass", [n], Role::Temporary)?;
        let x = program.array::<f64, 2>("x", [3, n], Role::Temporary)?;
        let v = program.array::<f64, 2>("v", [3, n], Role::Temporary)?;
        let a = program.array::<f64, 2>("a", [3, n], Role::Temporary)?;
        let at = program.array::<f32, 2>("at", [3, n], Role::Temporary)?;
        let energies = match self.energies {
            true => Some(Energies {
                tasks: (program.task(Wells::new(isa, n)), program.task(Sums)),
                sums: program.array::<f64, 2>("sums", [self.snapshots(), SUMS], Role::Output)?,
                wells: program.array::<f64, 2>("wells", [2, n], Role::Temporary)?,
            }),
            false => None,
        };
        let mut loaded_from = None;
        let mut since_load = 0;
        for number in 0..self.snapshots() {
            let until = self.steps_at(number);
            let mut done = if number == 0 { 0 } else { self.steps_at(number - 1) };
            if loaded_from.is_none() || since_load >= self.reload_steps() {
                let from = match number {
                    0 => initial.all(),
                    _ => snapshots.block([number - 1, 0, 0], [1, n, COLUMNS]),
                };
                let state = (from, mass.all(), x.all(), v.all(), at.all());
                program.call(load, state, Scalars::new())?;
                if self.steps > done {
                    let all = (mass.all(), at.all(), at.all(), a.all());
                    program.call(forces, all, self.step.forces_scalars())?;
                }
                (loaded_from, since_load) = (Some(number), 0);
            }
            while done < until {
                let steps = self.call_steps().min(until - done);
                let state = (mass.all(), x.all(), v.all(), a.all(), at.all());
                program.call(advance, state, Advance::scalars(&self.step, steps))?;
                done += steps;
                since_load += steps;
            }
            let to = snapshots.block([number, 0, 0], [1, n, COLUMNS]);
            program.call(save, (mass.all(), x.all(), v.all(), to), Scalars::new())?;
            if let Some(Energies { tasks: (deepen, sum), sums, wells }) = energies {
                program.call(deepen, (to, to, wells.all()), self.step.forces_scalars())?;
                let row = sums.block([number, 0], [1, SUMS]);
                program.call(sum, (to, wells.all(), row), self.step.sums_scalars())?;
            }
        }
        let sums = energies.map(|energies| energies.sums.index());
        Ok(Built { program, initial: initial.index(), snapshots: snapshots.index(), sums })
    }
}
