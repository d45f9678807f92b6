//! The leaf kernel: `out[i] = alpha * x[i] + y[i]`, each element one fused multiply-add.
//!
//! The operation is elementwise and rounded once, so every instruction set and every tiling gives
//! the same bits; a NaN result is always [`multigrain_simd::NAN_BITS`]. The kernel does what BLAS may skip:
//! with `alpha = 0` it still reads `x`, so that an infinity in `x` becomes a NaN.

use multigrain_simd::{Isa, Lanes, dispatch};

/// Vectors handled in one turn of the loop; enough to keep several cache lines in flight.
const UNROLL: usize = 4;

/// How far ahead of the loop the next elements are asked for.
const PREFETCH_BYTES: usize = 1024;

/// From this size of the output on, [`write()`] passes the caches: the lines of such an output
/// would be evicted before anyone reads them, and writing them through the caches would first read
/// them from memory.
pub const STREAM_BYTES_MIN: usize = 4 << 20;

/// Arrays that do not fit together, or an instruction set that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaxpyError {
    /// The arrays differ in length.
    #[error(
        "saxpy of arrays of different lengths: x has {x} elements, {name} has {found}; \
         give regions of equal length"
    )]
    Length {
        /// Elements of `x`.
        x: usize,
        /// The array that differs.
        name: &'static str,
        /// Its elements.
        found: usize,
    },
    /// The processor does not execute the instruction set that was asked for.
    #[error("this processor does not execute {0}; use Isa::detect()")]
    Isa(Isa),
}

fn check(isa: Isa, x: usize, others: &[(&'static str, usize)]) -> Result<(), SaxpyError> {
    if !isa.is_supported() {
        return Err(SaxpyError::Isa(isa));
    }
    match others.iter().find(|(_, len)| *len != x) {
        Some(&(name, found)) => Err(SaxpyError::Length { x, name, found }),
        None => Ok(()),
    }
}

/// `y[i] = alpha * x[i] + y[i]`.
///
/// # Errors
/// [`SaxpyError`] if the lengths differ or the processor lacks `isa`; then `y` is untouched.
pub fn update(isa: Isa, alpha: f32, x: &[f32], y: &mut [f32]) -> Result<(), SaxpyError> {
    check(isa, x.len(), &[("y", y.len())])?;
    // SAFETY: lengths and instruction set are checked; the borrows keep x and y apart.
    unsafe { update_raw(isa, alpha, x.len(), x.as_ptr(), y.as_mut_ptr()) };
    Ok(())
}

/// `out[i] = alpha * x[i] + y[i]`.
///
/// # Errors
/// [`SaxpyError`] if the lengths differ or the processor lacks `isa`; then `out` is untouched.
pub fn write(isa: Isa, alpha: f32, x: &[f32], y: &[f32], out: &mut [f32]) -> Result<(), SaxpyError> {
    check(isa, x.len(), &[("y", y.len()), ("out", out.len())])?;
    // SAFETY: lengths and instruction set are checked; the borrows keep out apart from x and y.
    unsafe {
        write_raw(
            isa,
            alpha,
            x.len(),
            x.as_ptr(),
            y.as_ptr(),
            out.as_mut_ptr(),
            std::mem::size_of_val(out) >= STREAM_BYTES_MIN,
        );
    }
    Ok(())
}

/// [`update`] on `n` elements at `x` and `y`.
///
/// # Safety
/// `x` is valid for reads and `y` for reads and writes of `n` elements; they do not overlap, and no
/// other thread accesses what is written. The processor supports `isa`.
pub unsafe fn update_raw(isa: Isa, alpha: f32, n: usize, x: *const f32, y: *mut f32) {
    // SAFETY: as the caller promises.
    unsafe {
        raw::<false>(isa, alpha, n, x, y, y);
    }
}

/// [`write()`] on `n` elements at `x`, `y` and `out`. With `stream` the output passes the caches:
/// right when it is larger than they are (see [`STREAM_BYTES_MIN`]; the size that counts is that of
/// the whole array, of which this may be a small block).
///
/// # Safety
/// `x` and `y` are valid for reads and `out` for writes of `n` elements; `out` overlaps neither,
/// and no other thread accesses what is written. The processor supports `isa`.
pub unsafe fn write_raw(isa: Isa, alpha: f32, n: usize, x: *const f32, y: *const f32, out: *mut f32, stream: bool) {
    // SAFETY: as the caller promises.
    unsafe {
        match stream {
            true => raw::<true>(isa, alpha, n, x, y, out),
            false => raw::<false>(isa, alpha, n, x, y, out),
        }
    }
}

/// [`run`] of an instruction set.
///
/// # Safety
/// As [`run`].
unsafe fn raw<const STREAM: bool>(isa: Isa, alpha: f32, n: usize, x: *const f32, y: *const f32, out: *mut f32) {
    // SAFETY: as the caller promises.
    unsafe {
        dispatch!(isa, <STREAM: bool>(alpha: f32, n: usize, x: *const f32, y: *const f32, out: *mut f32) => {
            Scalar: run::<f32, false>,
            Neon: run::<std::arch::aarch64::float32x4_t, STREAM>,
            Avx2: run::<std::arch::x86_64::__m256, STREAM>,
            Avx512: run::<std::arch::x86_64::__m512, STREAM>,
        });
    }
}

/// The kernel itself; `out` may be `y`.
///
/// # Safety
/// See [`update_raw`] and [`write_raw`]; and for the instruction set, [`Lanes`].
#[inline(always)]
unsafe fn run<L: Lanes, const STREAM: bool>(alpha: f32, n: usize, x: *const f32, y: *const f32, out: *mut f32) {
    let turn = UNROLL * L::LANES;
    let ahead = PREFETCH_BYTES / size_of::<f32>();
    // SAFETY: every access is at an index below n, where the caller vouches for it: masked ones
    // touch only the lanes first..end; streamed stores are aligned because `head` is chosen so.
    unsafe {
        let a = L::splat(alpha);
        // Whole cache lines of the output from here on.
        let unaligned = (out as usize / size_of::<f32>()) % L::LANES;
        let head = ((L::LANES - unaligned) % L::LANES).min(n);
        part(a, head, x, y, out);
        let mut i = head;
        while i + turn <= n {
            for u in 0..UNROLL {
                let at = i + u * L::LANES;
                L::prefetch(x.wrapping_add(at + ahead));
                L::prefetch(y.wrapping_add(at + ahead));
                let sum = L::load(y.add(at)).fma(a, L::load(x.add(at))).canonical();
                if STREAM {
                    sum.stream(out.add(at));
                } else {
                    sum.store(out.add(at));
                }
            }
            i += turn;
        }
        while i < n {
            let count = L::LANES.min(n - i);
            part(a, count, x.add(i), y.add(i), out.add(i));
            i += count;
        }
        if STREAM {
            L::fence();
        }
    }
}

/// Fewer elements than a vector has.
///
/// # Safety
/// As [`run`] for `count` elements, and `count <= LANES`.
#[inline(always)]
unsafe fn part<L: Lanes>(a: L, count: usize, x: *const f32, y: *const f32, out: *mut f32) {
    // SAFETY: only the lanes 0..count are touched, which the caller vouches for.
    unsafe {
        let mask = L::mask(0, count);
        let sum = L::load_masked(mask, y).fma(a, L::load_masked(mask, x));
        sum.canonical().store_masked(mask, out);
    }
}

/// The same in double precision, without rounding to single in between: what [`update`] and
/// [`write()`] are compared with.
#[must_use]
pub fn reference(alpha: f32, x: &[f32], y: &[f32]) -> Vec<f64> {
    let term = |(&x, &y): (&f32, &f32)| f64::from(alpha) * f64::from(x) + f64::from(y);
    x.iter().zip(y).map(term).collect()
}
