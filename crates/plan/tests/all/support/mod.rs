//! A product of which a formula tells the cost.

use multigrain_program::notation::Notation;
use multigrain_program::{CallShape, LeafContext, Program, Read, Role, Scalars, Task, View, ViewMut, Work, Write};

/// C = A B, of which sums end every 64 elements of k.
struct Product;

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

/// A program of one product, (m x k) (k x n).
pub(crate) fn product([m, n, k]: [u64; 3]) -> Program {
    let mut program = Program::new();
    let array = |program: &mut Program, name, dims, role| program.array::<f32, 2>(name, dims, role).unwrap();
    let a = array(&mut program, "a", [m, k], Role::Input);
    let b = array(&mut program, "b", [k, n], Role::Input);
    let c = array(&mut program, "c", [m, n], Role::Output);
    let task = program.task(Product);
    program.call(task, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
    program
}
