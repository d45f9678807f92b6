//! The register-blocked loops of the kernel.
//!
//! The output is computed in strips of a few rows, a strip in patches of a few vectors. The sums of a patch stay in registers. Its input rows pass one after the other; each vector loaded
//! from an input row extends the sums of all output rows that the row touches, each with its own
//! row of weights:
//!
//! ```text
//! input row p  --->  output row r takes it with row p - r of the weights, if there is that row
//! ```
//!
//! For one output the rows of weights come in order, and within a row the taps from left to right:
//! the order that the kernel defines. Where every tap of a patch lies within the input block the
//! vectors are whole; next to the edges of the array, and for the last columns, a mask for each tap
//! leaves the sums of the other lanes as they are.

use super::{Source, Taps, Target};
use multigrain_simd::{Isa, Lanes, dispatch};

/// What [`super::conv2d_raw`] was asked for.
pub(super) struct Job {
    pub(super) input: Source,
    pub(super) top: usize,
    pub(super) left: usize,
    pub(super) taps: Taps,
    pub(super) output: Target,
}

/// Computes the whole block.
///
/// # Safety
/// See [`super::conv2d_raw`]; the output is not empty.
pub(super) unsafe fn run(isa: Isa, job: &Job) {
    // SAFETY: as the caller promises.
    unsafe {
        dispatch!(isa, (job: &Job) => {
            Scalar: strips::<f32, 2, 1>,
            // Sums 24, inputs 4, weight 1: 29 of the 32 registers.
            Neon: strips::<std::arch::aarch64::float32x4_t, 6, 4>,
            // Sums 12, inputs 2, weight 1: 15 of the 16 registers.
            Avx2: strips::<std::arch::x86_64::__m256, 6, 2>,
            // Sums 25, inputs 5, weight 1: 31 of the 32 registers.
            Avx512: strips::<std::arch::x86_64::__m512, 5, 5>,
        });
    }
}

/// All strips, each from left to right.
///
/// # Safety
/// See [`run`]; for the instruction set as [`Lanes`].
#[inline(always)]
unsafe fn strips<L: Lanes, const ROWS: usize, const VECTORS: usize>(job: &Job) {
    let half = job.taps.cols / 2;
    let width = job.output.cols;
    // Outputs `inner..inner_end` have all their taps, in a row, within the input block.
    let inner = half - job.left;
    let inner_end = (job.input.cols + inner).saturating_sub(2 * half).min(width);
    let mut y = 0;
    while y < job.output.rows {
        let rows = ROWS.min(job.output.rows - y);
        let mut x = 0;
        // SAFETY: patches lie within the output; unmasked ones are taken within inner..inner_end.
        unsafe {
            while x < width {
                if x >= inner && x + VECTORS * L::LANES <= inner_end {
                    patch::<L, ROWS, VECTORS, false>(job, y, rows, x, VECTORS * L::LANES);
                    x += VECTORS * L::LANES;
                } else if x >= inner && x + L::LANES <= inner_end {
                    patch::<L, ROWS, 1, false>(job, y, rows, x, L::LANES);
                    x += L::LANES;
                } else {
                    // A whole vector also at the left edge, although fewer outputs need the mask:
                    // so the following stores stay aligned if the rows are.
                    let count = L::LANES.min(width - x);
                    patch::<L, ROWS, 1, true>(job, y, rows, x, count);
                    x += count;
                }
            }
        }
        y += rows;
    }
}

/// The outputs `y..y + rows`, `x..x + count`.
///
/// # Safety
/// See [`run`]. `rows <= ROWS <= 6`, and the outputs lie within the output block. With `MASKED`,
/// `VECTORS` is 1 and `count <= LANES`; without it `count` is `VECTORS * LANES` and every tap of
/// every output lies, in its row, within the input block.
#[inline(always)]
unsafe fn patch<L: Lanes, const ROWS: usize, const VECTORS: usize, const MASKED: bool>(
    job: &Job,
    y: usize,
    rows: usize,
    x: usize,
    count: usize,
) {
    let Job { input, top, left, taps, output } = job;
    let (kh, kw) = (taps.rows, taps.cols);
    // Rows of weights, without filling.
    let (begun, ended) = (taps.filling.rows[0], kh - taps.filling.rows[1]);
    // Input row p, counted from that of the first tap of the first output; of these rows,
    // first..end exist.
    let above = (kh / 2).saturating_sub(top + y);
    let start_row = top + y + above - kh / 2;
    let first = above;
    let end = (rows + ended - 1).min(above + (input.rows - start_row));
    // SAFETY: rows first..end of the input exist, and of the columns only those are touched that
    // do, by the caller's word or by the mask; rows of weights are in lo..hi as their bounds say.
    unsafe {
        let mut sums = [[L::splat(0.0); VECTORS]; ROWS];
        // The column of the first tap of the first output, which may lie left of the block.
        let column = (left + x).wrapping_sub(kw / 2);
        for p in first.max(begun)..end {
            let from = input.data.add((start_row + p - first) * input.pitch).wrapping_add(column);
            let line = Line { from, column, cols: input.cols, count, kw, filling: taps.filling.cols };
            // Output rows lo..hi take this input row; output row r with row p - r of the weights.
            let lo = (p + 1).saturating_sub(ended);
            let hi = rows.min(p + 1 - begun);
            let weights = taps.data.add((p - lo) * kw);
            macro_rules! take {
                ($($lo:literal $hi:literal,)*) => {
                    match (lo, hi) {
                        $(($lo, $hi) => line.take::<L, ROWS, VECTORS, MASKED, $lo, $hi>(weights, &mut sums),)*
                        _ => std::hint::unreachable_unchecked(),
                    }
                };
            }
            take!(
                0 1, 0 2, 0 3, 0 4, 0 5, 0 6,
                1 2, 1 3, 1 4, 1 5, 1 6,
                2 3, 2 4, 2 5, 2 6,
                3 4, 3 5, 3 6,
                4 5, 4 6,
                5 6,
            );
        }
        for (r, sums) in sums.iter().enumerate().take(rows) {
            let to = output.data.add((y + r) * output.pitch + x);
            for (v, sum) in sums.iter().enumerate() {
                let sum = sum.canonical();
                if MASKED {
                    sum.store_masked(L::mask(0, count), to);
                } else {
                    sum.store(to.add(v * L::LANES));
                }
            }
        }
    }
}

/// One input row as a patch sees it.
struct Line {
    /// The column of the first tap of the first output; may lie outside the block.
    from: *const f32,
    /// Its index, modulo the word size.
    column: usize,
    /// Columns of the input block.
    cols: usize,
    /// Outputs in a row of the patch.
    count: usize,
    /// Columns of the weights, and those before and behind that are none.
    kw: usize,
    filling: [usize; 2],
}

impl Line {
    /// Extends the sums of the output rows `LO..HI` by one row of taps: that of row `LO` at
    /// `weights`, that of each next row one row of weights earlier.
    ///
    /// # Safety
    /// See [`patch`]; the rows of weights exist.
    #[allow(clippy::needless_range_loop)] // constant indices are what keeps the sums in registers
    #[inline(always)]
    unsafe fn take<
        L: Lanes,
        const ROWS: usize,
        const VECTORS: usize,
        const MASKED: bool,
        const LO: usize,
        const HI: usize,
    >(
        &self,
        weights: *const f32,
        sums: &mut [[L; VECTORS]; ROWS],
    ) {
        if HI > ROWS {
            // SAFETY: the caller passes rows of the patch.
            unsafe { std::hint::unreachable_unchecked() }
        }
        // SAFETY: as the caller promises; with a mask, only lanes whose column is within the block.
        unsafe {
            for j in self.filling[0]..self.kw - self.filling[1] {
                if MASKED {
                    // Lane c reads column + j + c, which must be within 0..cols.
                    let at = self.column.wrapping_add(j).cast_signed();
                    let count = self.count.cast_signed();
                    let begin = (-at).clamp(0, count);
                    let end = (self.cols.cast_signed() - at).clamp(begin, count);
                    let mask = L::mask(begin.cast_unsigned(), end.cast_unsigned());
                    let value = L::load_masked(mask, self.from.wrapping_add(j));
                    for r in LO..HI {
                        let weight = L::splat(*weights.sub((r - LO) * self.kw).add(j));
                        sums[r][0] = sums[r][0].fma_masked(mask, value, weight);
                    }
                } else {
                    let from = self.from.add(j);
                    let mut values = [L::splat(0.0); VECTORS];
                    for (v, value) in values.iter_mut().enumerate() {
                        *value = L::load(from.add(v * L::LANES));
                    }
                    for r in LO..HI {
                        let weight = L::splat(*weights.sub((r - LO) * self.kw).add(j));
                        for v in 0..VECTORS {
                            sums[r][v] = sums[r][v].fma(values[v], weight);
                        }
                    }
                }
            }
        }
    }
}
