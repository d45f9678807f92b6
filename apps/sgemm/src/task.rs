//! The tasks: C = A B and C += A B, split along all three axes.

use crate::kernel::{self, SPAN};
use multigrain::prelude::*;
use multigrain_simd::Isa;
use std::sync::Arc;

/// C = A B in single precision: A is m x k, B k x n, C m x n.
///
/// Partial sums end every [`SPAN`] elements of k, whatever the blocks; see [`crate::kernel`].
pub struct Product {
    isa: Isa,
    accumulate: Arc<dyn DynTask>,
}

impl Product {
    /// The task for an instruction set.
    pub fn new(isa: Isa) -> Product {
        Product { isa, accumulate: Program::erase(Accumulate { isa }) }
    }
}

/// C += A B: what [`Product`] calls on every block of k but the first.
pub struct Accumulate {
    isa: Isa,
}

/// m, n and k of a call.
fn sizes(call: &CallShape) -> (u64, u64, u64) {
    let (a, b) = (call.shapes[0].dims(), call.shapes[1].dims());
    (a[0], b[1], a[1])
}

fn axes(call: &CallShape) -> Vec<Tunable> {
    let (m, n, k) = sizes(call);
    vec![
        Tunable { name: "m", extent: m, multiple: 1 },
        Tunable { name: "n", extent: n, multiple: 1 },
        Tunable { name: "k", extent: k, multiple: SPAN as u64 },
    ]
}

/// Blocks of C one after the other, in rows of blocks; within each, along k.
fn split(call: &CallShape, tunables: &Tunables, later: Option<&Arc<dyn DynTask>>) -> Vec<SubCall> {
    let (m, n, k) = sizes(call);
    let (bm, bn, bk) = (tunables.get("m", m), tunables.get("n", n), tunables.get("k", k));
    let mut calls = Vec::new();
    for (i, rows) in blocks(m, bm) {
        for (j, columns) in blocks(n, bn) {
            for (l, depth) in blocks(k, bk) {
                let args = [
                    (0, Region::new(&[i, l], &[rows, depth])),
                    (1, Region::new(&[l, j], &[depth, columns])),
                    (2, Region::new(&[i, j], &[rows, columns])),
                ];
                calls.push(match later {
                    Some(task) if l > 0 => SubCall::of(task, args, &call.scalars),
                    _ => SubCall::itself(args, &call.scalars),
                });
            }
        }
    }
    calls
}

fn work(call: &CallShape) -> Work {
    let (m, n, k) = sizes(call);
    let (m, n, k) = (m as f64, n as f64, k as f64);
    // A and B are packed, which nothing hides; C is fetched ahead by the kernel, and counts a quarter.
    Work { flops: 2.0 * m * n * k, bytes: 4.0 * (m * k + k * n) + m * n }
}

/// Reads of A and B: 2mnk / sqrt(M) elements (Smith et al., arXiv 1702.02017, without the term that vanishes for
/// M << mn), but at least A and B once. Beside them what is compulsory for C: written once, and read once when it is
/// added to.
fn bound(call: &CallShape, capacity_bytes: u64, reads_c: bool) -> IoBound {
    let (m, n, k) = sizes(call);
    let capacity = capacity_bytes as f64 / 4.0;
    let streamed = 2.0 * m as f64 * n as f64 * k as f64 / capacity.sqrt();
    let compulsory = (m * k + k * n) as f64;
    let c = 4 * m * n;
    IoBound { bytes_down: 4 * streamed.max(compulsory) as u64 + if reads_c { c } else { 0 }, bytes_up: c }
}

fn scratch(isa: Isa, call: &CallShape, capacity_bytes: u64) -> u64 {
    let (m, n, k) = sizes(call);
    // In a local store a quarter is for packing, the rest for blocks.
    let limit = (capacity_bytes != u64::MAX).then_some(capacity_bytes / 4);
    4 * kernel::scratch_elements(isa, m as usize, n as usize, k as usize, limit) as u64
}

fn leaf(
    isa: Isa,
    overwrite: bool,
    a: &View<'_, f32, 2>,
    b: &View<'_, f32, 2>,
    c: &mut ViewMut<'_, f32, 2>,
    context: &mut LeafContext<'_>,
) {
    let [m, n] = c.shape();
    let k = a.len(1);
    let length = context.scratch.len() / 4;
    // SAFETY: scratch memory is aligned to 64 bytes and any bits are a float; the slice ends within it.
    let scratch = unsafe { std::slice::from_raw_parts_mut(context.scratch.as_mut_ptr().cast::<f32>(), length) };
    let (lda, ldb, ldc) = (a.pitch(), b.pitch(), c.pitch());
    // SAFETY: the views are blocks of these shapes and pitches; C is accessed by this call alone and overlaps neither
    // A, B nor the scratch memory.
    unsafe {
        kernel::sgemm(isa, overwrite, m, n, k, a.as_ptr(), lda, b.as_ptr(), ldb, c.as_mut_ptr(), ldc, scratch);
    }
}

impl Task for Product {
    type Params = (Read<f32, 2>, Read<f32, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "sgemm"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["A", "B", "C"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        axes(call)
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        split(call, tunables, Some(&self.accumulate))
    }

    fn leaf(
        &self,
        (a, b, mut c): (View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f32, 2>),
        context: &mut LeafContext<'_>,
    ) {
        leaf(self.isa, true, &a, &b, &mut c, context);
    }

    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        scratch(self.isa, call, capacity_bytes)
    }

    fn work(&self, call: &CallShape) -> Work {
        work(call)
    }

    fn io_lower_bound(&self, call: &CallShape, capacity_bytes: u64) -> Option<IoBound> {
        Some(bound(call, capacity_bytes, false))
    }
}

impl Task for Accumulate {
    type Params = (Read<f32, 2>, Read<f32, 2>, Update<f32, 2>);

    fn name(&self) -> &'static str {
        "sgemm-accumulate"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["A", "B", "C"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        axes(call)
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        split(call, tunables, None)
    }

    fn leaf(
        &self,
        (a, b, mut c): (View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f32, 2>),
        context: &mut LeafContext<'_>,
    ) {
        leaf(self.isa, false, &a, &b, &mut c, context);
    }

    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        scratch(self.isa, call, capacity_bytes)
    }

    fn work(&self, call: &CallShape) -> Work {
        work(call)
    }

    fn io_lower_bound(&self, call: &CallShape, capacity_bytes: u64) -> Option<IoBound> {
        Some(bound(call, capacity_bytes, true))
    }
}
