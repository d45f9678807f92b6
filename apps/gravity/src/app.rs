//! The command: particles attract each other for some steps.
//!
//! Particles are read whole before the run, 56 bytes each, which count against the memory budget; snapshots lie where the
//! machine has them, and are looked at in pieces.

use crate::check::{self, ROWS, State};
use crate::particles::{self, PARTICLES_MAX, Particles};
use crate::picture::{self, Frame, PIXEL_BYTES};
use crate::plummer::plummer;
use crate::simulation::{CALL_ARGUMENTS, CALLS_MAX, Simulation};
use crate::task::Step;
use multigrain::app::{AppJob, Application, output};
use multigrain::prelude::{Error, Job, Outcome, Runtime, Source, blocks};
use multigrain_simd::Isa;
use std::path::{Path, PathBuf};

/// Pieces that an orbit in a picture has, when not told otherwise.
const PICTURE_SNAPSHOTS: u64 = 256;

/// Particles that attract each other: direct sums, velocity Verlet, Plummer softening
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A .npy array, n x 7 of float32 or float64 (mass, x, y, z, vx, vy, vz) or a file of snapshots, whose last one is
    /// taken; or text with a first line mass,x,y,z,vx,vy,vz, in any order; a Plummer sphere when left out
    #[arg(value_name = "PARTICLES")]
    pub particles: Option<PathBuf>,
    /// Particles of the Plummer sphere, in units where G = 1, the masses add up to 1 and the energy is -1/4
    /// [default: 4096]
    #[arg(long, conflicts_with = "particles")]
    pub n: Option<u64>,
    /// Seed of the Plummer sphere
    #[arg(long, default_value_t = 1, conflicts_with = "particles")]
    pub seed: u64,
    /// Steps
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: u64,
    /// Length of a step in units of time; negative goes backwards
    #[arg(long, default_value_t = 0.001)]
    pub dt: f64,
    /// Softening length: forces are m d / (d^2 + softening^2)^(3/2)
    #[arg(long, default_value_t = 0.01)]
    pub softening: f64,
    /// The gravitational constant in the units of the particles
    #[arg(long, value_name = "G", default_value_t = 1.0)]
    pub gravity: f64,
    /// A snapshot after every so many steps; one of the beginning and one of the end are always there. An interrupted run
    /// on a disk goes on from a snapshot: the last one where steps take seconds and there are at least 16 from one to the
    /// next, else one at most 128 steps further back [default: only these two; 256 for a picture]
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    pub snapshots: Option<u64>,
    /// File for the snapshots: .npy (snapshots x n x 7 of float64; masses are as forces see them, rounded to single
    /// precision), or bare float64 under any other name
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// File for the energies and the momentum of every snapshot, computed on the way in double precision, at the price of
    /// ten to fifteen steps each: .npy (snapshots x 6 of float64: kinetic energy, potential energy, momentum along x, y, z, sum of the absolute
    /// values of the momenta), or bare float64 under any other name
    #[arg(long, value_name = "FILE")]
    pub energies: Option<PathBuf>,
    /// Draws the orbits into this .png file
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
}

impl Default for Args {
    fn default() -> Args {
        Args {
            particles: None,
            n: None,
            seed: 1,
            steps: 100,
            dt: 0.001,
            softening: 0.01,
            gravity: 1.0,
            snapshots: None,
            output: None,
            energies: None,
            picture: None,
        }
    }
}

impl Application for Args {
    const NAME: &'static str = "gravity";
    const LEAF_JOBS: &'static [&'static str] = &["--n 2048 --steps 5", "--n 8192 --steps 5", "--n 20000 --steps 2"];

    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        let step = self.step()?;
        let (n, content) = self.particles(runtime, f64::from(step.softening2).sqrt())?;
        let every = self.snapshots.unwrap_or(match self.picture {
            Some(_) => self.steps.div_ceil(PICTURE_SNAPSHOTS),
            None => self.steps,
        });
        let simulation = Simulation { particles: n, steps: self.steps, every, step, energies: self.energies.is_some() };
        let calls = simulation.calls();
        if calls > CALLS_MAX {
            return Err(Error::Request(format!(
                "{} steps with {} snapshots are {calls} calls, more than {CALLS_MAX}, too many for one plan: take snapshots \
                 less often, or run fewer steps and go on from the last snapshot",
                self.steps,
                simulation.snapshots()
            )));
        }
        runtime.check_calls(Self::NAME, calls, CALL_ARGUMENTS)?;
        if let Some(path) = &self.picture {
            picture::check_target(path)?;
        }
        let built = simulation.build(Isa::detect())?;
        let (initial, array, sums) = (built.initial, built.snapshots, built.sums);
        let mut job = Job::new(Self::NAME, built.program);
        job = match content {
            Some(particles) => job.with_source(built.initial, Source::Bytes(particles.into_bytes())),
            // Whatever they would be, which would be kept.
            None => job
                .with_source(built.initial, Source::Generated { seed: self.seed })
                .with_kept_bytes(particles::bytes(n)),
        };
        if let Some(path) = &self.particles {
            job = job.with_file_read(path);
        }
        if let Some(path) = &self.output {
            job = job.with_sink(array, output(path)?);
        }
        if let (Some(path), Some(sums)) = (&self.energies, sums) {
            job = job.with_sink(sums, output(path)?);
        }
        if let Some(path) = &self.picture {
            job = job.with_file_written(path);
        }
        let shape = vec![("particles", n), ("steps", self.steps), ("snapshots", simulation.snapshots())];
        let check = Box::new(move |outcome: &Outcome, seed: u64| {
            check::check(outcome, (initial, array, sums), &simulation, seed)
        });
        let picture = self.picture.clone();
        let after =
            Box::new(move |outcome: &Outcome| after(outcome, array, &simulation, picture.as_deref()).map(|()| None));
        Ok(AppJob { job, shape, check, after: Some(after) })
    }
}

impl Args {
    fn step(&self) -> Result<Step, Error> {
        let refuse = |what: String| Err(Error::Request(what));
        let (dt, softening, gravity) = (self.dt, self.softening, self.gravity);
        if !dt.is_finite() {
            return refuse(format!("--dt {dt}: a step has a finite length"));
        }
        if !gravity.is_finite() {
            return refuse(format!("--gravity {gravity}: a finite constant is needed"));
        }
        let squared = (softening * softening) as f32;
        // Below the normal numbers the square would lose its digits.
        if !(softening == 0.0 || (softening > 0.0 && squared.is_normal())) {
            return refuse(format!("--softening {softening}: it is 0, or a length between 1.1e-19 and 1.8e19"));
        }
        Ok(Step { dt, gravity, softening2: squared })
    }

    /// How many particles there are, if there is room for them in the memory, and these, unless nobody reads them.
    fn particles(&self, runtime: &Runtime, softening: f64) -> Result<(u64, Option<Particles>), Error> {
        let request = |e: particles::ParticlesError| Error::Request(e.to_string());
        let room = |n: u64| runtime.check_kept_bytes(Self::NAME, particles::bytes(n), 0, 0);
        let all = |particles: Particles| (particles.rows.len() as u64, Some(particles));
        if let Some(path) = &self.particles {
            return match particles::count(path).map_err(request)? {
                Some(n) => room(n),
                // Of a text, which is read whole, no more is known.
                None => {
                    runtime.check_kept_bytes(Self::NAME, std::fs::metadata(path).map_or(0, |file| file.len()), 0, 0)
                }
            }
            .and_then(|()| particles::read(path, softening).map(all).map_err(request));
        }
        let n = self.n.unwrap_or(4096);
        if n == 0 || n > PARTICLES_MAX {
            return Err(Error::Request(format!("--n {n}: from 1 to {PARTICLES_MAX} particles are possible")));
        }
        room(n)?;
        if runtime.only_plans() {
            return Ok((n, None));
        }
        let particles = plummer(n as usize, self.seed);
        particles.validate(softening).map_err(request)?;
        Ok(all(particles))
    }
}

/// Draws the picture, and says when particles have left the numbers.
fn after(outcome: &Outcome, array: usize, simulation: &Simulation, picture: Option<&Path>) -> Result<(), Error> {
    let (n, count) = (simulation.particles, simulation.snapshots());
    let state = |number: u64| State { outcome, array, number, n };
    if let Some(path) = picture {
        let frame = Frame::of(|each: &mut dyn FnMut([f64; 3])| {
            [0, count / 2, count - 1].into_iter().try_for_each(|number| {
                state(number).in_pieces(|_, rows| rows.iter().for_each(|row| each(picture::place(row))))
            })
        })?;
        let rows = (outcome.check_bytes() / 2 / (PIXEL_BYTES * frame.extent()[0] as u64)) as usize;
        picture::write(path, &frame, rows, |canvas| {
            blocks(n, ROWS).try_for_each(|(first, some)| {
                let mut before = state(0).rows(first, some)?;
                for number in 1..count {
                    let next = state(number).rows(first, some)?;
                    canvas.lines(&frame, (first, n), &before, &next, number as f64 / count as f64, count);
                    before = next;
                }
                canvas.dots(&frame, (first, n), &before);
                Ok(())
            })
        })?;
    }
    let mut lost = None;
    state(count - 1).in_pieces(|first, rows| {
        let at = rows.iter().position(|row| row.iter().any(|value| !value.is_finite()));
        lost = lost.or(at.map(|at| first + at as u64));
    })?;
    match lost {
        None => Ok(()),
        Some(row) => Err(Error::After(format!(
            "particle {row} is no longer at a finite place after {} steps: it came too near to another; choose a larger \
             --softening or a smaller --dt",
            simulation.steps
        ))),
    }
}
