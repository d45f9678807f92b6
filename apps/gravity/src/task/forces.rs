//! Accelerations of a block of targets by a block of sources.

use super::{columns, pair_blocks, pair_tunables};
use crate::kernel::{Accelerations, Points, accelerate_raw};
use multigrain::prelude::{
    CallShape, LeafContext, Read, Region, SubCall, Task, Tunable, Tunables, Update, View, ViewMut, Work,
};
use multigrain_simd::Isa;

/// a += the accelerations of the targets by the sources. The scalar is the square of the softening length.
pub struct Forces {
    isa: Isa,
}

impl Forces {
    /// The task for an instruction set that this processor supports; any other is replaced by plain code.
    pub fn new(isa: Isa) -> Forces {
        Forces { isa: if isa.is_supported() { isa } else { Isa::Scalar } }
    }
}

/// Work of one evaluation: 20 operations an interaction, as is usual to count.
pub(super) fn forces_work(sources: u64, targets: u64) -> Work {
    let (sources, targets) = (sources as f64, targets as f64);
    Work { flops: 20.0 * sources * targets, bytes: 16.0 * sources + 36.0 * targets }
}

/// The kernel on rows that lie `pitch` elements apart.
///
/// # Safety
/// As for [`accelerate_raw`]; `isa` is supported.
pub(super) unsafe fn pull(
    isa: Isa,
    softening2: f32,
    mass: &View<'_, f32, 1>,
    sources: Points,
    targets: Points,
    a: &mut ViewMut<'_, f64, 2>,
) {
    assert!(mass.len(0) == sources.len && a.len(1) == targets.len && a.len(0) == 3, "blocks of forces");
    let to = Accelerations { pitch: a.pitch(), data: a.as_mut_ptr() };
    // SAFETY: passed on to the caller; the lengths were checked.
    unsafe { accelerate_raw(isa, softening2, mass.as_ptr(), sources, targets, to) };
}

impl Task for Forces {
    type Params = (Read<f32, 1>, Read<f32, 2>, Read<f32, 2>, Update<f64, 2>);

    fn name(&self) -> &'static str {
        "forces"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["mass", "sources", "targets", "a"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        pair_tunables(call.shapes[0].dims()[0], call.shapes[2].dims()[1])
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (sources, targets) = (call.shapes[0].dims()[0], call.shapes[2].dims()[1]);
        let block = |[(j, count), (i, rows)]: [(u64, u64); 2]| {
            let mass = Region::new(&[j], &[count]);
            let args = [(0, mass), (1, columns(j, count)), (2, columns(i, rows)), (3, columns(i, rows))];
            SubCall::itself(args, &call.scalars)
        };
        pair_blocks(sources, targets, tunables).map(block).collect()
    }

    fn leaf(
        &self,
        (mass, sources, targets, mut a): (View<'_, f32, 1>, View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f64, 2>),
        context: &mut LeafContext<'_>,
    ) {
        let points = |view: &View<'_, f32, 2>| {
            assert_eq!(view.len(0), 3, "rows of coordinates");
            Points { data: view.as_ptr(), pitch: view.pitch(), len: view.len(1) }
        };
        // SAFETY: the views are blocks of these shapes and pitches, `a` is accessed by this call alone, and `new` made
        // sure of the instruction set.
        unsafe { pull(self.isa, context.scalars.f32(0), &mass, points(&sources), points(&targets), &mut a) };
    }

    fn work(&self, call: &CallShape) -> Work {
        forces_work(call.shapes[0].dims()[0], call.shapes[2].dims()[1])
    }
}
