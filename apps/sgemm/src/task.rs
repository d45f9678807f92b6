//! The task: C = A B, folded along k.

use crate::kernel::{self, SPAN};
use multigrain::prelude::*;
use multigrain_simd::Isa;

/// C = A B in single precision: A is m x k, B k x n, C m x n.
///
/// Partial sums end every [`SPAN`] elements of k, whatever the blocks; see [`crate::kernel`].
pub struct Product {
    isa: Isa,
}

impl Product {
    /// The task for an instruction set.
    pub fn new(isa: Isa) -> Product {
        Product { isa }
    }
}

impl Task for Product {
    type Params = (Read<f32, 2>, Read<f32, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "sgemm"
    }

    fn notation(&self) -> Option<Notation> {
        let axes = Notation::axes(["m", "n", "k"]).every("k", SPAN as u64);
        Some(axes.param("A", ["m", "k"]).param("B", ["k", "n"]).param("C", ["m", "n"]))
    }

    fn leaf(
        &self,
        (a, b, mut c): (View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f32, 2>),
        context: &mut LeafContext<'_>,
    ) {
        let [m, n] = c.shape();
        let (k, overwrite) = (a.len(1), context.first());
        // What the kernel relies on; who calls it on other blocks would reach beyond them.
        assert!(a.len(0) == m && b.shape() == [k, n], "C of {m} x {n} from {:?} times {:?}", a.shape(), b.shape());
        // SAFETY: any bits are a float.
        let (_, scratch, _) = unsafe { context.scratch.align_to_mut::<f32>() };
        let (lda, ldb, ldc) = (a.pitch(), b.pitch(), c.pitch());
        // SAFETY: the views are blocks of these shapes and pitches; C is accessed by this call alone and overlaps neither
        // A, B nor the scratch memory.
        unsafe {
            kernel::sgemm(self.isa, overwrite, m, n, k, a.as_ptr(), lda, b.as_ptr(), ldb, c.as_mut_ptr(), ldc, scratch);
        }
    }

    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        let (m, n, k) = sizes(call);
        // In a local store a quarter is for packing, the rest for blocks.
        let limit = (capacity_bytes != u64::MAX).then_some(capacity_bytes / 4);
        4 * kernel::scratch_elements(self.isa, m as usize, n as usize, k as usize, limit) as u64
    }

    fn work(&self, call: &CallShape) -> Work {
        let (m, n, k) = sizes(call);
        let (m, n, k) = (m as f64, n as f64, k as f64);
        // A and B are packed, which nothing hides; C is fetched ahead by the kernel, and counts a quarter.
        Work { flops: 2.0 * m * n * k, bytes: 4.0 * (m * k + k * n) + m * n }
    }

    /// Reads of A and B, but at least each once, and C written once. While a tile of C stays, 2mnk / sqrt(M) elements of A and B
    /// go by (Smith et al., arXiv 1702.02017, without the term that vanishes for M << mn). An element of C that is finished at once
    /// need not stay: with so few k that a panel of all of them does, mnk / (M / k) elements go by. Whichever is less: a
    /// bound for what is read and written together.
    fn io_lower_bound(&self, call: &CallShape, capacity_bytes: u64) -> Option<IoBound> {
        let (m, n, k) = sizes(call);
        let capacity = capacity_bytes as f64 / 4.0;
        let products = m as f64 * n as f64 * k as f64;
        let streamed = products * f64::min(2.0 / capacity.sqrt(), k as f64 / capacity);
        let compulsory = (m * k + k * n) as f64;
        Some(IoBound { bytes_down: 4 * streamed.max(compulsory) as u64, bytes_up: 4 * m * n })
    }

    /// G. Kwasniewski et al., "Red-blue pebbling revisited: near optimal parallel matrix-matrix multiplication", SC 2019 (arXiv
    /// 1908.09606): the smaller of both, in elements.
    fn parallel_io_lower_bound(&self, call: &CallShape, memories: u64, capacity_bytes: u64) -> Option<u64> {
        let (m, n, k) = sizes(call);
        let (products, capacity) = (m as f64 * n as f64 * k as f64 / memories as f64, capacity_bytes as f64 / 4.0);
        let elements = f64::min(2.0 * products / capacity.sqrt() + capacity, 3.0 * products.powf(2.0 / 3.0));
        Some(4 * elements as u64)
    }
}

/// m, n and k of a call.
fn sizes(call: &CallShape) -> (u64, u64, u64) {
    let (a, b) = (call.shapes[0].dims(), call.shapes[1].dims());
    (a[0], b[1], a[1])
}
