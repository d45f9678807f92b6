//! The tasks: y = alpha x + y in place, and out = alpha x + y. Both take alpha as their only scalar.

use crate::kernel::{self, STREAM_BYTES_MIN};
use multigrain::prelude::*;
use multigrain_simd::Isa;

/// y = alpha x + y: the operation of the BLAS, two vectors read and one written.
pub struct SaxpyUpdate {
    isa: Isa,
}

impl SaxpyUpdate {
    /// The task for an instruction set that this processor supports; any other is replaced by plain code.
    pub fn new(isa: Isa) -> SaxpyUpdate {
        SaxpyUpdate { isa: supported(isa) }
    }
}

/// out = alpha x + y: leaves y as it is, for vectors that lie in files.
pub struct Saxpy {
    isa: Isa,
}

impl Saxpy {
    /// The task for an instruction set that this processor supports; any other is replaced by plain code.
    pub fn new(isa: Isa) -> Saxpy {
        Saxpy { isa: supported(isa) }
    }
}

fn supported(isa: Isa) -> Isa {
    if isa.is_supported() { isa } else { Isa::Scalar }
}

/// The same block of every vector: elements depend on nothing but their own index, so blocks may end anywhere.
fn vectors<const N: usize>(names: [&'static str; N]) -> Notation {
    names.into_iter().fold(Notation::axes(["n"]).flops(2.0), |notation, name| notation.param(name, ["n"]))
}

/// Both vectors of a call have the length of the shortest, whatever the call passed.
fn common_length(lengths: &[usize]) -> usize {
    lengths.iter().copied().min().unwrap_or(0)
}

impl Task for SaxpyUpdate {
    type Params = (Read<f32, 1>, Update<f32, 1>);

    fn name(&self) -> &'static str {
        "saxpy-update"
    }

    fn notation(&self) -> Option<Notation> {
        Some(vectors(["x", "y"]))
    }

    fn leaf(&self, (x, mut y): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), context: &mut LeafContext<'_>) {
        let n = common_length(&[x.len(0), y.len(0)]);
        // SAFETY: n elements lie in each view; y is accessed by this call alone; `new` made sure of the instruction set.
        unsafe { kernel::update_raw(self.isa, context.scalars.f32(0), n, x.as_ptr(), y.as_mut_ptr()) };
    }
}

impl Task for Saxpy {
    type Params = (Read<f32, 1>, Read<f32, 1>, Write<f32, 1>);

    fn name(&self) -> &'static str {
        "saxpy"
    }

    fn notation(&self) -> Option<Notation> {
        Some(vectors(["x", "y", "out"]))
    }

    fn leaf(
        &self,
        (x, y, mut out): (View<'_, f32, 1>, View<'_, f32, 1>, ViewMut<'_, f32, 1>),
        context: &mut LeafContext<'_>,
    ) {
        let n = common_length(&[x.len(0), y.len(0), out.len(0)]);
        let (alpha, stream) = (context.scalars.f32(0), 4 * n >= STREAM_BYTES_MIN);
        // SAFETY: n elements lie in each view; out is accessed by this call alone; `new` made sure of the instruction
        // set.
        unsafe { kernel::write_raw(self.isa, alpha, n, x.as_ptr(), y.as_ptr(), out.as_mut_ptr(), stream) };
    }
}
