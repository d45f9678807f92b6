//! The leaf kernel of the single-precision matrix product: C (+)= A · B on row-major matrices that already lie in
//! the processor's memory.
//!
//! # The result is defined to the bit
//!
//! Every element of C is accumulated over spans of [`SPAN`] consecutive values of k, counted from the first k of the
//! call. For each span in order:
//!
//! ```text
//! t = +0
//! for k in span:  t = fma(a[i][k], b[k][j], t)      one rounding each
//! c[i][j] = c[i][j] + t                             (c[i][j] = t for the first span of an overwriting call)
//! ```
//!
//! A result that is not a number is stored as [`f32::NAN`], because which operand's payload survives is not defined
//! by IEEE 754 and differs between instructions. Nothing else about the result is left open: tiles, packing, vector
//! width and the way a product is split over calls (anywhere in m and n, at multiples of `SPAN` in k) do not change
//! one bit. [`definition`] is this text as code, and the tests compare with it. The arithmetic assumes the default
//! floating-point environment: round to nearest, subnormal numbers kept.
//!
//! # How it is fast
//!
//! The loops are those of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (ACM TOMS
//! 34(3), 2008), arranged for row-major C: a block of B is packed for the second-level cache, a panel of A of a few
//! rows stays in the first, and the tile of C that they update lives in registers for a whole span.

mod blocking;
mod fused;
mod pack;
mod reference;
mod scalar;

#[cfg(test)]
mod tests;

pub use reference::definition;

use multigrain_simd::Isa;

/// Values of k that are accumulated in one chain of fused multiply-adds before the sum is added to C.
///
/// Part of the definition of the result, therefore not a tunable. A panel of A (14 rows in AVX-512) with one span is
/// 14 KiB and stays in a first-level cache of 32 KiB beside the stream of B.
pub const SPAN: usize = 256;

/// Elements of packing space that [`sgemm`] uses best for a call of this shape, at most `limit_bytes` bytes where a
/// limit is given.
///
/// Without a limit it is at most about 4.5 MiB (4620 KiB). With a limit below the smallest working set (one panel of A: 14 KiB
/// in AVX-512, 6 KiB in AVX2) it is 0, and the product is then computed by the slower path that packs nothing.
pub fn scratch_elements(isa: Isa, m: usize, n: usize, k: usize, limit_bytes: Option<u64>) -> usize {
    let limit = limit_bytes.map_or(usize::MAX, |bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX));
    let blocking = match isa {
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => blocking::Blocking::choose::<fused::Neon>(m, n, k, limit),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => blocking::Blocking::choose::<fused::Avx2>(m, n, k, limit),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => blocking::Blocking::choose::<fused::Avx512>(m, n, k, limit),
        _ => None,
    };
    blocking.map_or(0, |blocking| blocking.elements())
}

/// C (m × n, row pitch `ldc` elements) = A (m × k, pitch `lda`) · B (k × n, pitch `ldb`), added to C unless
/// `overwrite`. All row-major; C is not read when overwriting.
///
/// `scratch` is packing space of any length and content, best [`scratch_elements`] long; with too little the call is
/// slower, never wrong. An instruction set that this processor lacks is replaced by the scalar path.
///
/// With k = 0 an overwriting call sets C to zero, any other leaves it as it is.
///
/// # Safety
///
/// `a` must be valid for reads of rows 0..m of k elements each at pitch `lda`, `b` for reads of k rows of n at
/// `ldb`, `c` for reads and writes of m rows of n at `ldc`. Nothing else may write A or B, or touch C's rows, during
/// the call; C and `scratch` must not overlap A, B or each other.
#[allow(clippy::too_many_arguments)]
pub unsafe fn sgemm(
    isa: Isa,
    overwrite: bool,
    m: usize,
    n: usize,
    k: usize,
    a: *const f32,
    lda: usize,
    b: *const f32,
    ldb: usize,
    c: *mut f32,
    ldc: usize,
    scratch: &mut [f32],
) {
    let call = Call { overwrite, m, n, k, a, lda, b, ldb, c, ldc };
    if m == 0 || n == 0 {
        return;
    }
    // SAFETY: the caller's promise about the matrices; the instruction set is available.
    let done = unsafe {
        match isa {
            _ if k == 0 || !isa.is_supported() => false,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => blocking::run::<fused::Neon>(&call, scratch),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => blocking::run::<fused::Avx2>(&call, scratch),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => blocking::run::<fused::Avx512>(&call, scratch),
            _ => false,
        }
    };
    if done {
        return;
    }
    // SAFETY: the caller's promise about the matrices.
    unsafe { scalar::run(&call) }
}

/// One product as the paths below see it; the fields are the parameters of [`sgemm`].
struct Call {
    overwrite: bool,
    m: usize,
    n: usize,
    k: usize,
    a: *const f32,
    lda: usize,
    b: *const f32,
    ldb: usize,
    c: *mut f32,
    ldc: usize,
}

/// Why [`sgemm_checked`] refused a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// Rows would overlap.
    #[error(
        "the row pitch of {matrix} is {pitch} elements, but its rows have {columns}: pass a pitch of at least {columns}"
    )]
    Pitch {
        /// A, B or C.
        matrix: char,
        /// The pitch that was passed, in elements.
        pitch: usize,
        /// Elements of a row.
        columns: usize,
    },
    /// The slice ends before the matrix does.
    #[error(
        "{matrix} with {rows} rows of {columns} elements at pitch {pitch} does not fit the slice of {found} elements: pass a longer slice or a smaller shape"
    )]
    Length {
        /// A, B or C.
        matrix: char,
        /// Rows of the matrix.
        rows: usize,
        /// Elements of a row.
        columns: usize,
        /// Row pitch in elements.
        pitch: usize,
        /// Elements of the slice.
        found: usize,
    },
}

/// [`sgemm`] over slices, with every bound checked.
///
/// # Errors
///
/// [`ShapeError`] where a pitch is smaller than a row or a slice is shorter than its matrix. C is then untouched.
#[allow(clippy::too_many_arguments)]
pub fn sgemm_checked(
    isa: Isa,
    overwrite: bool,
    (m, n, k): (usize, usize, usize),
    (a, lda): (&[f32], usize),
    (b, ldb): (&[f32], usize),
    (c, ldc): (&mut [f32], usize),
    scratch: &mut [f32],
) -> Result<(), ShapeError> {
    check_matrix('A', m, k, lda, a.len())?;
    check_matrix('B', k, n, ldb, b.len())?;
    check_matrix('C', m, n, ldc, c.len())?;
    // SAFETY: the bounds were checked just above; the borrows exclude overlap and concurrent access.
    unsafe { sgemm(isa, overwrite, m, n, k, a.as_ptr(), lda, b.as_ptr(), ldb, c.as_mut_ptr(), ldc, scratch) };
    Ok(())
}

fn check_matrix(matrix: char, rows: usize, columns: usize, pitch: usize, found: usize) -> Result<(), ShapeError> {
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    if pitch < columns && rows > 1 {
        return Err(ShapeError::Pitch { matrix, pitch, columns });
    }
    let needed = (rows - 1).checked_mul(pitch).and_then(|last| last.checked_add(columns));
    match needed {
        Some(needed) if needed <= found => Ok(()),
        _ => Err(ShapeError::Length { matrix, rows, columns, pitch, found }),
    }
}

/// A value as it is stored: any NaN becomes the one NaN.
#[inline(always)]
fn canonical(x: f32) -> f32 {
    if x.is_nan() { f32::NAN } else { x }
}
