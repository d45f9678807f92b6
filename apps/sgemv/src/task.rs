//! The task: y = A x, folded along the columns.

use crate::kernel::{self, SPAN};
use multigrain::prelude::*;
use multigrain_simd::Isa;

/// y = A x in single precision: A is m x n, x has n elements, y has m.
///
/// Partial sums end every [`SPAN`] columns, whatever the blocks; see [`crate::kernel`].
pub struct Product {
    isa: Isa,
}

impl Product {
    /// The task for an instruction set that this processor supports; any other is replaced by plain code.
    pub fn new(isa: Isa) -> Product {
        Product { isa: if isa.is_supported() { isa } else { Isa::Scalar } }
    }
}

impl Task for Product {
    type Params = (Read<f32, 2>, Read<f32, 1>, Write<f32, 1>);

    fn name(&self) -> &'static str {
        "sgemv"
    }

    fn notation(&self) -> Option<Notation> {
        let axes = Notation::axes(["m", "n"]).every("n", SPAN as u64).flops(2.0);
        Some(axes.param("A", ["m", "n"]).param("x", ["n"]).param("y", ["m"]))
    }

    fn leaf(
        &self,
        (a, x, mut y): (View<'_, f32, 2>, View<'_, f32, 1>, ViewMut<'_, f32, 1>),
        context: &mut LeafContext<'_>,
    ) {
        let (rows, columns) = (a.len(0).min(y.len(0)), a.len(1).min(x.len(0)));
        let product = if context.first() { kernel::write_raw } else { kernel::update_raw };
        // SAFETY: rows x columns lie in A, as many elements in y and x; y is accessed by this call alone; `new` made
        // sure of the instruction set.
        unsafe { product(self.isa, rows, columns, a.as_ptr(), a.pitch(), x.as_ptr(), y.as_mut_ptr()) };
    }
}
