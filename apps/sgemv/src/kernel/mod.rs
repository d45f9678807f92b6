//! The leaf kernel: `y = A x` or `y += A x` for a row-major matrix, in one fixed order.
//!
//! The columns of a call are cut into spans of [`SPAN`], counted from the call's first column; the
//! last may be shorter. Within a span a row's products go to [`CHAINS`] interleaved chains of fused
//! multiply-adds: column `c` of the span extends chain `c mod CHAINS`, in increasing order of `c`,
//! each chain starting from 0. The chains are then added by halving (chain `i` plus chain `i + h`
//! for `h = CHAINS/2, ..., 1`; a chain that got no product is 0), and the sum of each span is added
//! to `y`, spans in order. So `y` has the same bits with every instruction set, whichever rows are
//! computed together, and however the columns are split over calls, provided every call but the
//! first begins at a multiple of [`SPAN`]. A NaN result is always [`multigrain_simd::NAN_BITS`].

use multigrain_simd::{Isa, Lanes, dispatch};

/// Columns in a span. Long enough that adding up the chains, once a row and span, is little beside
/// the 128 vector steps at 16 lanes; short enough (8 KiB) that a tile of one span and a few rows
/// fits in a small local store and that this part of `x` stays in a first-level cache.
pub const SPAN: usize = 2048;

/// Interleaved chains in a span: two vectors of 16 lanes or four of 8 for a row. With the chains of
/// six rows (or three) that covers the latency of a fused multiply-add and leaves registers free.
pub const CHAINS: usize = 32;

/// Spans whose part of `x` is kept in the second-level cache while all rows pass: 256 KiB of `x`.
const PANEL_SPANS: usize = 32;

/// How far ahead of the loop the next elements of each row are asked for; past the end of a row
/// the elements of the rows that come next are.
const PREFETCH_BYTES: usize = 2048;

/// A request that the kernel refuses; nothing has been written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SgemvError {
    /// A vector does not fit the matrix.
    #[error("sgemv with a matrix of {rows} x {cols}: {name} has {found} elements, {wanted} are needed")]
    Length {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
        /// The vector, `x` or `y`.
        name: &'static str,
        /// Its elements.
        found: usize,
        /// The elements it should have.
        wanted: usize,
    },
    /// The matrix reaches beyond its memory.
    #[error(
        "sgemv with a matrix of {rows} x {cols}, {pitch} elements from row to row: \
         the memory given for it holds {found} elements, and the pitch must be at least {cols}"
    )]
    Matrix {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
        /// Elements from the start of a row to the start of the next.
        pitch: usize,
        /// Elements in the memory given.
        found: usize,
    },
    /// The processor does not execute the instruction set that was asked for.
    #[error("this processor does not execute {0}; use Isa::detect()")]
    Isa(Isa),
}

/// A row-major matrix in borrowed memory.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    pitch: usize,
}

impl<'a> Matrix<'a> {
    /// `rows` rows of `cols` elements, each starting `pitch` elements after the one before.
    ///
    /// # Errors
    /// [`SgemvError::Matrix`] if the pitch is shorter than a row or the rows reach beyond `data`.
    pub fn new(data: &'a [f32], rows: usize, cols: usize, pitch: usize) -> Result<Self, SgemvError> {
        let needed = match rows {
            0 => Some(0),
            _ => (rows - 1).checked_mul(pitch).and_then(|n| n.checked_add(cols)),
        };
        match needed {
            Some(needed) if needed <= data.len() && pitch >= cols => Ok(Matrix { data, rows, cols, pitch }),
            _ => Err(SgemvError::Matrix { rows, cols, pitch, found: data.len() }),
        }
    }

    fn check(&self, isa: Isa, x: usize, y: usize) -> Result<(), SgemvError> {
        let Matrix { rows, cols, .. } = *self;
        if !isa.is_supported() {
            return Err(SgemvError::Isa(isa));
        }
        for (name, found, wanted) in [("x", x, cols), ("y", y, rows)] {
            if found != wanted {
                return Err(SgemvError::Length { rows, cols, name, found, wanted });
            }
        }
        Ok(())
    }
}

/// `y = y + A x`, the spans of columns in order.
///
/// # Errors
/// [`SgemvError`] if a vector does not fit or the processor lacks `isa`; then `y` is untouched.
pub fn update(isa: Isa, a: Matrix<'_>, x: &[f32], y: &mut [f32]) -> Result<(), SgemvError> {
    a.check(isa, x.len(), y.len())?;
    // SAFETY: the matrix lies in its memory by construction, the lengths and the instruction set
    // are checked, and the borrows keep y apart from the rest.
    unsafe {
        update_raw(isa, a.rows, a.cols, a.data.as_ptr(), a.pitch, x.as_ptr(), y.as_mut_ptr());
    }
    Ok(())
}

/// `y = A x`: as [`update`] on a `y` of zeros.
///
/// # Errors
/// [`SgemvError`] if a vector does not fit or the processor lacks `isa`; then `y` is untouched.
pub fn write(isa: Isa, a: Matrix<'_>, x: &[f32], y: &mut [f32]) -> Result<(), SgemvError> {
    a.check(isa, x.len(), y.len())?;
    // SAFETY: as in `update`.
    unsafe {
        write_raw(isa, a.rows, a.cols, a.data.as_ptr(), a.pitch, x.as_ptr(), y.as_mut_ptr());
    }
    Ok(())
}

/// [`write()`] on pointers.
///
/// # Safety
/// As [`update_raw`]; `y` need not be initialised.
pub unsafe fn write_raw(isa: Isa, rows: usize, cols: usize, a: *const f32, pitch: usize, x: *const f32, y: *mut f32) {
    // SAFETY: as the caller promises.
    unsafe {
        y.write_bytes(0, rows);
        update_raw(isa, rows, cols, a, pitch, x, y);
    }
}

/// [`update`] on pointers: `rows` rows of `cols` elements at `a`, each `pitch` elements after the
/// one before; `cols` elements at `x`, `rows` at `y`.
///
/// # Safety
/// The matrix and `x` are valid for reads, `y` for reads and writes; `y` overlaps neither, and no
/// other thread accesses it. The processor supports `isa`.
pub unsafe fn update_raw(isa: Isa, rows: usize, cols: usize, a: *const f32, pitch: usize, x: *const f32, y: *mut f32) {
    // SAFETY: as the caller promises.
    unsafe {
        dispatch!(isa, (rows: usize, cols: usize, a: *const f32, pitch: usize, x: *const f32, y: *mut f32) => {
            Scalar: run::<f32, 1, 32>,
            // Three rows: their chains take 24 of the 32 registers.
            Neon: run::<std::arch::aarch64::float32x4_t, 3, 8>,
            // Three rows: their chains take 12 of the 16 registers.
            Avx2: run::<std::arch::x86_64::__m256, 3, 4>,
            // Six streams draw more from memory than one or two do; eight are no better, and rows a power
            // of two apart then fill all ways of the same sets of a first-level cache.
            Avx512: run::<std::arch::x86_64::__m512, 6, 2>,
        });
    }
}

/// Panels of [`PANEL_SPANS`] spans, in each `ROWS` rows at a time, for them the spans in order: the
/// rows are read as `ROWS` long streams.
///
/// # Safety
/// As [`update_raw`]; for the instruction set as [`Lanes`].
#[inline(always)]
unsafe fn run<L: Lanes, const ROWS: usize, const VECTORS: usize>(
    rows: usize,
    cols: usize,
    a: *const f32,
    pitch: usize,
    x: *const f32,
    y: *mut f32,
) {
    let mut first = 0;
    while first < cols {
        let len = (PANEL_SPANS * SPAN).min(cols - first);
        let mut row = 0;
        // SAFETY: rows below `rows` and columns below `cols` only.
        unsafe {
            while row + ROWS <= rows {
                let at = a.add(row * pitch + first);
                panel::<L, ROWS, VECTORS>(len, at, pitch, x.add(first), y.add(row));
                row += ROWS;
            }
            while row < rows {
                let at = a.add(row * pitch + first);
                panel::<L, 1, VECTORS>(len, at, pitch, x.add(first), y.add(row));
                row += 1;
            }
        }
        first += len;
    }
}

/// The spans of `len` columns, in order, for `ROWS` rows.
///
/// # Safety
/// As [`update_raw`] for `ROWS` rows and `len` columns; for the instruction set as [`Lanes`].
#[inline(always)]
unsafe fn panel<L: Lanes, const ROWS: usize, const VECTORS: usize>(
    len: usize,
    a: *const f32,
    pitch: usize,
    x: *const f32,
    y: *mut f32,
) {
    const { assert!(VECTORS * L::LANES == CHAINS) };
    let ahead = PREFETCH_BYTES / size_of::<f32>();
    let next_rows = (ROWS * pitch).wrapping_add(ahead).wrapping_sub(len);
    let mut first = 0;
    while first < len {
        let end = len.min(first + SPAN);
        // SAFETY: columns below `len` only; the masked accesses touch only the lanes 0..count.
        unsafe {
            let mut chains = [[L::splat(0.0); VECTORS]; ROWS];
            let mut col = first;
            while col + CHAINS <= end {
                let ahead = if col + ahead < len { ahead } else { next_rows };
                for v in 0..VECTORS {
                    let at = col + v * L::LANES;
                    let x = L::load(x.add(at));
                    for (row, chains) in chains.iter_mut().enumerate() {
                        let from = a.add(row * pitch + at);
                        L::prefetch(from.wrapping_add(ahead));
                        chains[v] = chains[v].fma(L::load(from), x);
                    }
                }
                col += CHAINS;
            }
            if col < end {
                for v in 0..VECTORS {
                    let at = (col + v * L::LANES).min(end);
                    let mask = L::mask(0, L::LANES.min(end - at));
                    let x = L::load_masked(mask, x.add(at));
                    for (row, chains) in chains.iter_mut().enumerate() {
                        let from = a.add(row * pitch + at);
                        chains[v] = chains[v].fma_masked(mask, L::load_masked(mask, from), x);
                    }
                }
            }
            for (row, chains) in chains.iter_mut().enumerate() {
                let mut half = VECTORS / 2;
                while half > 0 {
                    for v in 0..half {
                        chains[v] = chains[v].add(chains[v + half]);
                    }
                    half /= 2;
                }
                let at = y.add(row);
                L1::splat(*at + chains[0].halving_sum()).canonical().store(at);
            }
        }
        first = end;
    }
}

/// One lane: for the elements of `y`.
type L1 = f32;

/// `y0 + A x` in double precision, each row from left to right: what [`update`] and [`write()`] are
/// compared with. `y0` holds one element a row.
#[must_use]
pub fn reference(a: Matrix<'_>, x: &[f32], y0: &[f32]) -> Vec<f64> {
    let row_sum = |(row, &y): (usize, &f32)| {
        let row = &a.data[row * a.pitch..][..a.cols];
        let products = row.iter().zip(x).map(|(&a, &x)| f64::from(a) * f64::from(x));
        f64::from(y) + products.sum::<f64>()
    };
    y0.iter().enumerate().take(a.rows).map(row_sum).collect()
}
