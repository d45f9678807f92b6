//! The tasks. State is held as rows of coordinates: `x`, `v`, `a` (places, velocities, accelerations; 3 x n, double
//! precision), `at` (the places as the forces see them; 3 x n, single precision) and `mass` (n, single precision).
//!
//! ```text
//! load          snapshot         -> mass, x, v, at
//! forces        mass, at, at     -> a = what the sources do to the targets
//! kick_drift    a                -> v += a dt/2, x += v dt, at = x
//! kick          a                -> v += a dt/2
//! save          mass, x, v       -> snapshot
//! wells, sums                       what a snapshot's energies and momentum are, when asked for (see `energy.rs`)
//! advance       some steps of velocity Verlet: kick_drift, forces, kick for each of them
//! ```
//!
//! `advance` is what a program calls. Its inner variant cuts all particles into blocks that are the same in every step,
//! so a block that has been brought into a memory is the block that the next step wants. More particles than that are done
//! stage by stage.

mod advance;
mod energy;
mod forces;
mod moves;
mod state;

pub use advance::Advance;
pub use energy::{SUMS, Sums, Wells};
pub use forces::Forces;
pub use moves::{Kick, KickDrift};
pub use state::{Load, Save};

use crate::kernel::SPAN;
use multigrain::prelude::{Notation, Scalars};

/// Blocks of particles begin at multiples of this: whole vectors of every instruction set.
const PARTICLES_MULTIPLE: u64 = 64;
/// A block of targets is worth a call of its own with this many interactions, some 30 us.
const CALL_INTERACTIONS: u64 = 1 << 17;
/// Blocks of sources begin at multiples of this, which is one of [`SPAN`]; finer cuts are worth nothing.
const SOURCES_MULTIPLE: u64 = 256;
const _: () = assert!(SOURCES_MULTIPLE.is_multiple_of(SPAN as u64));

/// Numbers of a snapshot's particle: mass, x, y, z, vx, vy, vz.
pub const COLUMNS: u64 = 7;

/// What every step needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Length of a step.
    pub dt: f64,
    /// The gravitational constant.
    pub gravity: f64,
    /// Square of the softening length.
    pub softening2: f32,
}

impl Step {
    /// A velocity changes by this many accelerations in a kick.
    fn kick(&self) -> f64 {
        self.gravity * (0.5 * self.dt)
    }

    /// The scalars of [`KickDrift`].
    pub fn kick_drift_scalars(&self) -> Scalars {
        Scalars::new().with_f64(self.kick()).with_f64(self.dt)
    }

    /// The scalars of [`Kick`].
    pub fn kick_scalars(&self) -> Scalars {
        Scalars::new().with_f64(self.kick())
    }

    /// The scalars of [`Forces`].
    pub fn forces_scalars(&self) -> Scalars {
        Scalars::new().with_f32(self.softening2)
    }
}

/// Blocks of targets begin at multiples of this.
fn targets_multiple(sources: u64) -> u64 {
    (CALL_INTERACTIONS / sources.max(1)).next_multiple_of(PARTICLES_MULTIPLE).max(PARTICLES_MULTIPLE)
}

/// What is done particle by particle; their axis is that of the targets, so that a step cuts them alike.
fn particles() -> Notation {
    Notation::axes(["targets"]).every("targets", PARTICLES_MULTIPLE)
}

/// What is done for all pairs of so many particles: all sources of one block of targets follow each other.
fn pairs(particles: u64) -> Notation {
    let axes = Notation::axes(["targets", "sources"]).every("targets", targets_multiple(particles));
    axes.every("sources", SOURCES_MULTIPLE)
}
