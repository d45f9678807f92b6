//! A product whose cost is a formula.

use multigrain_program::notation::Notation;
use multigrain_program::{CallShape, LeafContext, Read, Task, View, ViewMut, Work, Write};

/// C = A B, of which sums end every 64 elements of k.
pub(crate) struct Product;

impl Task for Product {
    type Params = (Read<f32, 2>, Read<f32, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "product"
    }

    fn notation(&self) -> Option<Notation> {
        let axes = Notation::axes(["m", "n", "k"]).every("k", 64);
        Some(axes.param("A", ["m", "k"]).param("B", ["k", "n"]).param("C", ["m", "n"]))
    }

    fn leaf(&self, _: (View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f32, 2>), _: &mut LeafContext<'_>) {}

    fn work(&self, call: &CallShape) -> Work {
        let [m, k, n] = [(0, 0), (0, 1), (1, 1)].map(|(param, dim)| call.shapes[param].dims()[dim] as f64);
        Work { flops: 2.0 * m * n * k, bytes: 4.0 * (m * k + k * n + m * n) }
    }
}
