//! The tasks: y = A x and y += A x, split along rows and columns.

use crate::kernel::{self, SPAN};
use multigrain::prelude::*;
use multigrain_simd::Isa;
use std::sync::Arc;

/// y = A x in single precision: A is m x n, x has n elements, y has m.
///
/// Partial sums end every [`SPAN`] columns, whatever the blocks; see [`crate::kernel`].
pub struct Product {
    isa: Isa,
    accumulate: Arc<dyn DynTask>,
}

impl Product {
    /// The task for an instruction set that this processor supports; any other is replaced by plain code.
    pub fn new(isa: Isa) -> Product {
        let isa = if isa.is_supported() { isa } else { Isa::Scalar };
        Product { isa, accumulate: Program::erase(Accumulate { isa }) }
    }
}

/// y += A x: what [`Product`] calls on every block of columns but the first.
pub struct Accumulate {
    isa: Isa,
}

/// m and n of a call.
fn sizes(call: &CallShape) -> (u64, u64) {
    let a = call.shapes[0].dims();
    (a[0], a[1])
}

fn axes(call: &CallShape) -> Vec<Tunable> {
    let (m, n) = sizes(call);
    vec![Tunable { name: "m", extent: m, multiple: 1 }, Tunable { name: "n", extent: n, multiple: SPAN as u64 }]
}

/// Blocks of y one after the other; within each, along the columns.
fn split(call: &CallShape, tunables: &Tunables, later: Option<&Arc<dyn DynTask>>) -> Vec<SubCall> {
    let (m, n) = sizes(call);
    let (bm, bn) = (tunables.get("m", m), tunables.get("n", n));
    let mut calls = Vec::new();
    for (i, rows) in blocks(m, bm) {
        for (j, columns) in blocks(n, bn) {
            let args = [
                (0, Region::new(&[i, j], &[rows, columns])),
                (1, Region::new(&[j], &[columns])),
                (2, Region::new(&[i], &[rows])),
            ];
            calls.push(match later {
                Some(task) if j > 0 => SubCall::of(task, args, &call.scalars),
                _ => SubCall::itself(args, &call.scalars),
            });
        }
    }
    calls
}

/// Two operations an element of A; `times_y` is how often y is touched.
fn work(call: &CallShape, times_y: f64) -> Work {
    let (m, n) = sizes(call);
    let (m, n) = (m as f64, n as f64);
    Work { flops: 2.0 * m * n, bytes: 4.0 * (m * n + n + times_y * m) }
}

impl Task for Product {
    type Params = (Read<f32, 2>, Read<f32, 1>, Write<f32, 1>);

    fn name(&self) -> &'static str {
        "sgemv"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["A", "x", "y"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        axes(call)
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        split(call, tunables, Some(&self.accumulate))
    }

    fn leaf(&self, (a, x, mut y): (View<'_, f32, 2>, View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
        let (rows, columns) = (a.len(0).min(y.len(0)), a.len(1).min(x.len(0)));
        // SAFETY: rows x columns lie in A, as many elements in y and x; y is accessed by this call alone; `new` made
        // sure of the instruction set.
        unsafe { kernel::write_raw(self.isa, rows, columns, a.as_ptr(), a.pitch(), x.as_ptr(), y.as_mut_ptr()) };
    }

    fn work(&self, call: &CallShape) -> Work {
        work(call, 1.0)
    }
}

impl Task for Accumulate {
    type Params = (Read<f32, 2>, Read<f32, 1>, Update<f32, 1>);

    fn name(&self) -> &'static str {
        "sgemv-accumulate"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["A", "x", "y"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        axes(call)
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        split(call, tunables, None)
    }

    fn leaf(&self, (a, x, mut y): (View<'_, f32, 2>, View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
        let (rows, columns) = (a.len(0).min(y.len(0)), a.len(1).min(x.len(0)));
        // SAFETY: as in `Product::leaf`.
        unsafe { kernel::update_raw(self.isa, rows, columns, a.as_ptr(), a.pitch(), x.as_ptr(), y.as_mut_ptr()) };
    }

    fn work(&self, call: &CallShape) -> Work {
        work(call, 2.0)
    }
}
