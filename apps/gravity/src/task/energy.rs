//! Energies and momentum of a snapshot, by the access mode `Reduce`: what every particle adds, combined by the fixed
//! tree.
//!
//! ```text
//! wells         snapshot twice   -> wells = how deep the targets lie in the wells of the sources
//! sums          snapshot, wells  -> kinetic energy, potential energy, momentum
//! ```
//!
//! All of it reads snapshots and nothing that is on the way from step to step, so steps wait for none of it, and an
//! interrupted run that has a snapshot needs nothing else for its sums.

use super::{Step, pairs};
use crate::kernel::potential::{self, COINCIDENT, DEPTH};
use multigrain::prelude::{
    CallShape, LeafContext, Notation, Read, Reduce, ReduceMut, Scalars, Sum, Task, View, ViewMut, Work, Write,
};
use multigrain_simd::Isa;

/// Particles whose contribution to the sums is one chain.
const SUM_SPAN: u64 = 64;

/// Numbers of a row of sums: kinetic energy, potential energy, momentum along x, y and z, and the sum of the absolute
/// values of the momenta.
pub const SUMS: u64 = 6;

/// wells = the wells of a block of sources at the places of a block of targets. The scalar is the square of the
/// softening length.
pub struct Wells {
    isa: Isa,
    particles: u64,
}

/// A row of [`SUMS`] of a snapshot. The scalars are the gravitational constant and the square of the softening length.
pub struct Sums;

impl Wells {
    /// The task for so many particles and an instruction set that this processor supports; any other is replaced by plain
    /// code.
    pub fn new(isa: Isa, particles: u64) -> Wells {
        Wells { isa: if isa.is_supported() { isa } else { Isa::Scalar }, particles }
    }
}

impl Step {
    /// The scalars of [`Sums`].
    pub fn sums_scalars(&self) -> Scalars {
        Scalars::new().with_f64(self.gravity).with_f32(self.softening2)
    }
}

impl Task for Wells {
    type Params = (Read<f64, 3>, Read<f64, 3>, Write<f64, 2>);

    fn name(&self) -> &'static str {
        "wells"
    }

    fn notation(&self) -> Option<Notation> {
        let notation = pairs(self.particles).param("sources", [":", "sources", ":"]);
        Some(notation.param("targets", [":", "targets", ":"]).param("wells", [":", "targets"]))
    }

    fn leaf(
        &self,
        (sources, targets, mut wells): (View<'_, f64, 3>, View<'_, f64, 3>, ViewMut<'_, f64, 2>),
        context: &mut LeafContext<'_>,
    ) {
        if context.first() {
            (0..wells.len(0)).for_each(|row| wells.row_mut(&[row]).fill(0.0));
        }
        potential::wells(self.isa, f64::from(context.scalars.f32(0)), &sources, &targets, &mut wells);
    }

    fn work(&self, call: &CallShape) -> Work {
        let (sources, targets) = (call.shapes[0].dims()[1] as f64, call.shapes[1].dims()[1] as f64);
        // Sixteen operations, of which a square root and a division take as long as forty others.
        Work { flops: 56.0 * sources * targets, bytes: 56.0 * sources + 88.0 * targets }
    }
}

impl Task for Sums {
    type Params = (Read<f64, 3>, Read<f64, 2>, Reduce<f64, 2, Sum>);

    fn name(&self) -> &'static str {
        "sums"
    }

    fn notation(&self) -> Option<Notation> {
        let notation = Notation::axes(["particles"]).every("particles", SUM_SPAN).flops(24.0);
        let notation = notation.param("snapshot", [":", "particles", ":"]).param("wells", [":", "particles"]);
        Some(notation.param("sums", [":", ":"]))
    }

    fn leaf(
        &self,
        (snapshot, wells, mut sums): (View<'_, f64, 3>, View<'_, f64, 2>, ReduceMut<'_, f64, 2, Sum>),
        context: &mut LeafContext<'_>,
    ) {
        let gravity = context.scalars.f64(0);
        let softening2 = f64::from(context.scalars.f32(1));
        let mut sum = [0.0; SUMS as usize];
        for i in 0..snapshot.len(1) {
            let particle = snapshot.row(&[0, i]);
            let (mass, v) = (particle[0], &particle[4..7]);
            let squared = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
            // Sources at this very place: the particle itself, and others, which lie as deep as softening lets them.
            let others = wells.row(&[COINCIDENT])[i] - mass;
            let depth = wells.row(&[DEPTH])[i] + if softening2 > 0.0 { others / softening2.sqrt() } else { 0.0 };
            // Every pair is met twice.
            let values = [
                0.5 * mass * squared,
                -0.5 * gravity * mass * depth,
                mass * v[0],
                mass * v[1],
                mass * v[2],
                mass * squared.sqrt(),
            ];
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        sums.combine_row(&[0], &sum);
    }
}
