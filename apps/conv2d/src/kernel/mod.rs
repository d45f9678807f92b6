//! The leaf kernel: a two-dimensional correlation with a small dense array of weights, in one
//! fixed order.
//!
//! `out[y][x]` is the sum over the taps `(i, j)` of `weights[i][j] * in[y + i - kh/2][x + j - kw/2]`,
//! as `filter2D` of OpenCV has it (the weights are not mirrored); taps that fall outside the array
//! are skipped. The order is that of the weights in memory: one chain of fused multiply-adds an
//! output, starting from 0, over the taps within bounds. So an output has the same bits with every
//! instruction set, and whichever block it is computed in. A NaN result is always
//! [`multigrain_simd::NAN_BITS`].
//!
//! A block of the output is computed from a block of the input that is larger by the halo: `kh/2`
//! rows above and below, `kw/2` columns left and right, less where the array ends. So the edge of
//! the input block is the edge of the array wherever the halo is not full, and taps beyond it are
//! skipped; where the halo is full no tap reaches beyond.
//!
//! ```text
//!            left
//!          |<---->|
//!     -    +------------------------+
//! top |    |       input block      |   pitch: from row to row
//!     -    |      +----------+      |
//!          |      |  output  |      |   output row y, column x  <->  input row top + y,
//!          |      |  block   |      |                                input column left + x
//!          |      +----------+      |
//!          +------------------------+
//! ```

mod strip;
pub mod weights;

use multigrain::prelude::Scalars;
use multigrain_simd::Isa;

/// A request that the kernel refuses; nothing has been written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conv2dError {
    /// A block reaches beyond its memory.
    #[error(
        "conv2d: the {name} of {rows} x {cols}, {pitch} elements from row to row, does not lie in \
         the {found} elements given for it; the pitch must be at least {cols}"
    )]
    Block {
        /// Which block: `input`, `output` or `weights`.
        name: &'static str,
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
        /// Elements from the start of a row to the start of the next.
        pitch: usize,
        /// Elements in the memory given.
        found: usize,
    },
    /// Nothing is left of the weights.
    #[error("conv2d with weights of {rows} x {cols}, of which none are left beside {filling:?}")]
    Filling {
        /// What is no weights.
        filling: Filling,
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },
    /// The weights have an even number of rows or columns, so that no tap is the middle one.
    #[error("conv2d with weights of {rows} x {cols}: both must be odd")]
    Even {
        /// Rows of the weights.
        rows: usize,
        /// Columns of the weights.
        cols: usize,
    },
    /// The input block is not the output block with its halo.
    #[error(
        "conv2d: with {before} {axis} of halo before an output of {output} {axis}, the input must \
         have between {min} and {max} {axis} and at most {half} before; it has {input}"
    )]
    Halo {
        /// `rows` or `columns`.
        axis: &'static str,
        /// Halo present before the first output.
        before: usize,
        /// Extent of the output block.
        output: usize,
        /// Extent of the input block.
        input: usize,
        /// The full halo on one side.
        half: usize,
        /// The least extent of the input.
        min: usize,
        /// The largest extent of the input.
        max: usize,
    },
    /// The processor does not execute the instruction set that was asked for.
    #[error("this processor does not execute {0}; use Isa::detect()")]
    Isa(Isa),
}

/// A block to read: `rows` rows of `cols` elements from `data` on, each row starting `pitch`
/// elements after the one before.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The first element.
    pub data: *const f32,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Elements from the start of a row to the start of the next.
    pub pitch: usize,
}

/// A block to write, described as a [`Source`].
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The first element.
    pub data: *mut f32,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Elements from the start of a row to the start of the next.
    pub pitch: usize,
}

/// The weights: `rows` x `cols`, both odd, without gaps.
#[derive(Debug, Clone, Copy)]
pub struct Taps {
    /// The first weight.
    pub data: *const f32,
    /// Rows, odd.
    pub rows: usize,
    /// Columns, odd.
    pub cols: usize,
    /// Those that are no weights.
    pub filling: Filling,
}

/// Outer rows and columns that are no weights, but make numbers of rows and columns odd: how many before the first and behind the
/// last weight. No element meets them, so that not a number, or an infinity, does not become one more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filling {
    /// Rows.
    pub rows: [usize; 2],
    /// Columns.
    pub cols: [usize; 2],
}

impl Filling {
    /// The scalars of a call, with these numbers behind others.
    #[must_use]
    pub fn scalars(self, others: Scalars) -> Scalars {
        self.rows.into_iter().chain(self.cols).fold(others, |scalars, count| scalars.with_u64(count as u64))
    }

    /// Of a call whose scalars are these numbers.
    pub(crate) fn of(scalars: &Scalars) -> Filling {
        let [top, bottom, left, right] = [0, 1, 2, 3].map(|i| scalars.u64(i) as usize);
        Filling { rows: [top, bottom], cols: [left, right] }
    }

    /// The same turned around both ways.
    pub(crate) fn turned_around(self) -> Filling {
        let Filling { rows: [top, bottom], cols: [left, right] } = self;
        Filling { rows: [bottom, top], cols: [right, left] }
    }

    /// Whether there are weights besides it.
    pub(crate) fn fits(self, rows: usize, cols: usize) -> bool {
        let leaves = |[before, behind]: [usize; 2], count| before.saturating_add(behind) < count;
        leaves(self.rows, rows) && leaves(self.cols, cols)
    }
}

/// A block in borrowed memory, for [`conv2d`].
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    pitch: usize,
}

/// A block in mutably borrowed memory, for [`conv2d`].
#[derive(Debug)]
pub struct BlockMut<'a> {
    data: &'a mut [f32],
    rows: usize,
    cols: usize,
    pitch: usize,
}

fn check_block(name: &'static str, found: usize, rows: usize, cols: usize, pitch: usize) -> Result<(), Conv2dError> {
    let needed = match rows {
        0 => Some(0),
        _ => (rows - 1).checked_mul(pitch).and_then(|n| n.checked_add(cols)),
    };
    match needed {
        Some(needed) if needed <= found && pitch >= cols => Ok(()),
        _ => Err(Conv2dError::Block { name, rows, cols, pitch, found }),
    }
}

impl<'a> Block<'a> {
    /// `rows` rows of `cols` elements, each starting `pitch` elements after the one before.
    ///
    /// # Errors
    /// [`Conv2dError::Block`] if the pitch is shorter than a row or the rows reach beyond `data`.
    pub fn new(data: &'a [f32], rows: usize, cols: usize, pitch: usize) -> Result<Self, Conv2dError> {
        check_block("input", data.len(), rows, cols, pitch)?;
        Ok(Block { data, rows, cols, pitch })
    }
}

impl<'a> BlockMut<'a> {
    /// `rows` rows of `cols` elements, each starting `pitch` elements after the one before.
    ///
    /// # Errors
    /// [`Conv2dError::Block`] if the pitch is shorter than a row or the rows reach beyond `data`.
    pub fn new(data: &'a mut [f32], rows: usize, cols: usize, pitch: usize) -> Result<Self, Conv2dError> {
        check_block("output", data.len(), rows, cols, pitch)?;
        Ok(BlockMut { data, rows, cols, pitch })
    }
}

fn check_halo(axis: &'static str, before: usize, output: usize, input: usize, half: usize) -> Result<(), Conv2dError> {
    let min = before.saturating_add(output);
    let max = min.saturating_add(half);
    // An empty output reads nothing, so whatever input comes with it is right.
    if output == 0 || (before <= half && (min..=max).contains(&input)) {
        Ok(())
    } else {
        Err(Conv2dError::Halo { axis, before, output, input, half, min, max })
    }
}

/// Computes the block `output` from the block `input`, which has `top` rows and `left` columns of
/// halo before the first output; `weights` holds `kh * kw` weights, row by row, of which the `filling` counts for nothing.
///
/// # Errors
/// [`Conv2dError`] if the shapes do not fit together or the processor lacks `isa`; then `output` is
/// untouched.
#[allow(clippy::too_many_arguments)] // the blocks, where they lie, and the weights: all are needed
pub fn conv2d(
    isa: Isa,
    input: Block<'_>,
    top: usize,
    left: usize,
    weights: &[f32],
    kh: usize,
    kw: usize,
    filling: Filling,
    output: &mut BlockMut<'_>,
) -> Result<(), Conv2dError> {
    if !isa.is_supported() {
        return Err(Conv2dError::Isa(isa));
    }
    if kh.is_multiple_of(2) || kw.is_multiple_of(2) {
        return Err(Conv2dError::Even { rows: kh, cols: kw });
    }
    if !filling.fits(kh, kw) {
        return Err(Conv2dError::Filling { filling, rows: kh, cols: kw });
    }
    check_block("weights", weights.len(), kh, kw, kw)?;
    check_halo("rows", top, output.rows, input.rows, kh / 2)?;
    check_halo("columns", left, output.cols, input.cols, kw / 2)?;
    let source = Source { data: input.data.as_ptr(), rows: input.rows, cols: input.cols, pitch: input.pitch };
    let taps = Taps { data: weights.as_ptr(), rows: kh, cols: kw, filling };
    let target = Target { data: output.data.as_mut_ptr(), rows: output.rows, cols: output.cols, pitch: output.pitch };
    // SAFETY: the blocks lie in their memory by construction, the shapes and the instruction set
    // are checked, and the borrows keep the output apart from the rest.
    unsafe { conv2d_raw(isa, source, top, left, taps, target) };
    Ok(())
}

/// [`conv2d`] on pointers. No memory is allocated.
///
/// # Safety
/// `input` and `taps` are valid for reads and `output` for writes; `output` overlaps neither, and
/// no other thread accesses it. `taps` has odd rows and columns, more than its filling. Unless the output is empty, in
/// rows: `top <= taps.rows/2` and `input.rows - top - output.rows` is between 0 and `taps.rows/2`;
/// in columns likewise with `left`. The processor supports `isa`.
pub unsafe fn conv2d_raw(isa: Isa, input: Source, top: usize, left: usize, taps: Taps, output: Target) {
    if output.rows == 0 || output.cols == 0 {
        return;
    }
    // SAFETY: as the caller promises.
    unsafe { strip::run(isa, &strip::Job { input, top, left, taps, output }) }
}

/// The correlation of a whole array of `rows` x `cols` in double precision, taps outside skipped:
/// what [`conv2d`] is compared with. `input` and `weights` lie row by row without gaps; where the
/// weights are of even extent the tap `(kh/2, kw/2)` is the middle one.
#[must_use]
pub fn reference(input: &[f32], rows: usize, cols: usize, weights: &[f32], kh: usize, kw: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(rows * cols);
    for y in 0..rows {
        for x in 0..cols {
            let mut sum = 0.0;
            for i in 0..kh {
                for j in 0..kw {
                    let (row, col) = ((y + i).wrapping_sub(kh / 2), (x + j).wrapping_sub(kw / 2));
                    if row < rows && col < cols {
                        sum += f64::from(weights[i * kw + j]) * f64::from(input[row * cols + col]);
                    }
                }
            }
            out.push(sum);
        }
    }
    out
}
