//! Energies and momentum of a snapshot, by the access mode `Reduce`: what every particle adds, combined by the fixed
//! tree.
//!
//! ```text
//! clear         -                -> wells = 0
//! wells         snapshot twice   -> wells += how deep the targets lie in the wells of the sources
//! sums          snapshot, wells  -> kinetic energy, potential energy, momentum
//! ```
//!
//! All of it reads snapshots and nothing that is on the way from step to step, so steps wait for none of it, and an
//! interrupted run that has a snapshot needs nothing else for its sums.

use super::moves::double;
use super::{PARTICLES_MULTIPLE, Step, pair_blocks, pair_tunables};
use crate::kernel::potential::{self, COINCIDENT, DEPTH, WELL_ROWS};
use multigrain::prelude::{
    CallShape, LeafContext, Read, Reduce, ReduceMut, Region, Scalars, SubCall, Sum, Task, Tunable, Tunables, Update,
    View, ViewMut, Work, Write, blocks,
};
use multigrain_simd::Isa;

/// Particles whose contribution to the sums is one chain.
const SUM_SPAN: u64 = 64;

/// Numbers of a row of sums: kinetic energy, potential energy, momentum along x, y and z, and the sum of the absolute
/// values of the momenta.
pub const SUMS: u64 = 6;

/// wells = 0.
pub struct Clear;

/// wells += the wells of a block of sources at the places of a block of targets. The scalar is the square of the
/// softening length.
pub struct Wells {
    isa: Isa,
}

/// A row of [`SUMS`] of a snapshot. The scalars are the gravitational constant and the square of the softening length.
pub struct Sums;

impl Wells {
    /// The task for an instruction set that this processor supports; any other is replaced by plain code.
    pub fn new(isa: Isa) -> Wells {
        Wells { isa: if isa.is_supported() { isa } else { Isa::Scalar } }
    }
}

impl Step {
    /// The scalars of [`Sums`].
    pub fn sums_scalars(&self) -> Scalars {
        Scalars::new().with_u64(self.gravity.to_bits()).with_f32(self.softening2)
    }
}

fn rows_of_wells(start: u64, len: u64) -> Region {
    Region::new(&[0, start], &[WELL_ROWS as u64, len])
}

fn rows_of_snapshot(start: u64, len: u64) -> Region {
    Region::new(&[0, start, 0], &[1, len, super::COLUMNS])
}

impl Task for Clear {
    type Params = (Write<f64, 2>,);

    fn name(&self) -> &'static str {
        "clear"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["wells"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "particles", extent: call.shapes[0].dims()[1], multiple: PARTICLES_MULTIPLE }]
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].dims()[1];
        let cut = blocks(n, tunables.get("particles", n));
        cut.map(|(start, len)| SubCall::itself([(0, rows_of_wells(start, len))], &call.scalars)).collect()
    }

    fn leaf(&self, (mut wells,): (ViewMut<'_, f64, 2>,), _: &mut LeafContext<'_>) {
        (0..wells.len(0)).for_each(|row| wells.row_mut(&[row]).fill(0.0));
    }

    fn work(&self, call: &CallShape) -> Work {
        Work { flops: 0.0, bytes: 8.0 * call.shapes[0].elements() as f64 }
    }
}

impl Task for Wells {
    type Params = (Read<f64, 3>, Read<f64, 3>, Update<f64, 2>);

    fn name(&self) -> &'static str {
        "wells"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["sources", "targets", "wells"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        pair_tunables(call.shapes[0].dims()[1], call.shapes[1].dims()[1])
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (sources, targets) = (call.shapes[0].dims()[1], call.shapes[1].dims()[1]);
        let block = |[(j, count), (i, len)]: [(u64, u64); 2]| {
            let args = [(0, rows_of_snapshot(j, count)), (1, rows_of_snapshot(i, len)), (2, rows_of_wells(i, len))];
            SubCall::itself(args, &call.scalars)
        };
        pair_blocks(sources, targets, tunables).map(block).collect()
    }

    fn leaf(
        &self,
        (sources, targets, mut wells): (View<'_, f64, 3>, View<'_, f64, 3>, ViewMut<'_, f64, 2>),
        context: &mut LeafContext<'_>,
    ) {
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

    fn param_names(&self) -> &'static [&'static str] {
        &["snapshot", "wells", "sums"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "particles", extent: call.shapes[0].dims()[1], multiple: SUM_SPAN }]
    }

    fn reduced_axis(&self) -> Option<&'static str> {
        Some("particles")
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].dims()[1];
        let sums = Region::new(&[0, 0], &[1, SUMS]);
        let cut = blocks(n, tunables.get("particles", n));
        cut.map(|(start, len)| {
            let args = [(0, rows_of_snapshot(start, len)), (1, rows_of_wells(start, len)), (2, sums)];
            SubCall::itself(args, &call.scalars)
        })
        .collect()
    }

    fn leaf(
        &self,
        (snapshot, wells, mut sums): (View<'_, f64, 3>, View<'_, f64, 2>, ReduceMut<'_, f64, 2, Sum>),
        context: &mut LeafContext<'_>,
    ) {
        let gravity = double(context.scalars, 0);
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

    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].dims()[1] as f64;
        Work { flops: 24.0 * n, bytes: 72.0 * n }
    }
}
