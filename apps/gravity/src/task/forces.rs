//! Accelerations of a block of targets by a block of sources.

use super::pairs;
use crate::kernel::{Accelerations, Points, accelerate_raw};
use multigrain::prelude::{CallShape, LeafContext, Notation, Read, Task, View, ViewMut, Work, Write};
use multigrain_simd::Isa;

/// a = the accelerations of the targets by the sources. The scalar is the square of the softening length.
pub struct Forces {
    isa: Isa,
    particles: u64,
}

impl Forces {
    /// The task for so many particles and an instruction set that this processor supports; any other is replaced by plain
    /// code.
    pub fn new(isa: Isa, particles: u64) -> Forces {
        Forces { isa: if isa.is_supported() { isa } else { Isa::Scalar }, particles }
    }
}

/// The kernel on rows that lie `pitch` elements apart; `first` when nothing has been added to `a` yet.
///
/// # Safety
/// As for [`accelerate_raw`]; `isa` is supported.
pub(super) unsafe fn pull(
    isa: Isa,
    softening2: f32,
    first: bool,
    mass: &View<'_, f32, 1>,
    sources: Points,
    targets: Points,
    a: &mut ViewMut<'_, f64, 2>,
) {
    assert!(mass.len(0) == sources.len && a.len(1) == targets.len && a.len(0) == 3, "blocks of forces");
    if first {
        (0..3).for_each(|d| a.row_mut(&[d]).fill(0.0));
    }
    let to = Accelerations { pitch: a.pitch(), data: a.as_mut_ptr() };
    // SAFETY: passed on to the caller; the lengths were checked.
    unsafe { accelerate_raw(isa, softening2, mass.as_ptr(), sources, targets, to) };
}

impl Task for Forces {
    type Params = (Read<f32, 1>, Read<f32, 2>, Read<f32, 2>, Write<f64, 2>);

    fn name(&self) -> &'static str {
        "forces"
    }

    fn notation(&self) -> Option<Notation> {
        let notation = pairs(self.particles).param("mass", ["sources"]).param("sources", [":", "sources"]);
        Some(notation.param("targets", [":", "targets"]).param("a", [":", "targets"]))
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
        let (softening2, first) = (context.scalars.f32(0), context.first());
        // SAFETY: the views are blocks of these shapes and pitches, `a` is accessed by this call alone, and `new` made
        // sure of the instruction set.
        unsafe { pull(self.isa, softening2, first, &mass, points(&sources), points(&targets), &mut a) };
    }

    /// 20 operations an interaction, as is usual to count.
    fn work(&self, call: &CallShape) -> Work {
        let (sources, targets) = (call.shapes[0].elements() as f64, call.shapes[2].dims()[1] as f64);
        Work { flops: 20.0 * sources * targets, bytes: 16.0 * sources + 36.0 * targets }
    }
}
