//! Transforms of lengths that the butterflies do not have: as a convolution with a chirp (Bluestein 1970).
//!
//! With j k = (j^2 + k^2 - (k - j)^2) / 2 and c[j] = exp(-pi i j^2 / n) a transform is c[k] times the convolution of x[j] c[j]
//! with the conjugate of c, which is two transforms of a power of two of at least 2 n - 1 elements and products with c and
//! with the transform of its conjugate. These numbers are computed in double precision by additions and products alone and
//! rounded once, so every machine has the same; all else goes by lanes as in other transforms, so neither vectors nor
//! batches change a bit.

use super::Dft;
use super::butterfly::Complex;
use super::pass::{Compiled, Packed, Place};
use super::twiddle::cos_sin;
use multigrain_simd::Lanes;
use std::sync::OnceLock;

/// What a transform of such a length needs.
#[derive(Clone, Debug)]
pub(super) struct Chirped {
    /// The transform of the padded length.
    pub(super) inner: Dft,
    /// Made by the first transform: a plan has no need of them.
    tables: OnceLock<Tables>,
}

#[derive(Clone, Debug)]
struct Tables {
    /// c, real and imaginary parts.
    chirp: Vec<f32>,
    /// The transform of the conjugate of c from -n + 1 to n - 1, over the padded length.
    spectrum: Vec<f32>,
}

/// The padded length for transforms of `len` elements; `None` when it cannot be indexed.
pub(super) fn padded(len: usize) -> Option<usize> {
    len.checked_mul(2)?.checked_sub(1)?.checked_next_power_of_two()
}

impl Chirped {
    /// For transforms of `len` elements, at least one.
    pub(super) fn new(len: usize) -> Option<Chirped> {
        Some(Chirped { inner: Dft::new(padded(len)? as u64)?, tables: OnceLock::new() })
    }

    /// Those for transforms of `len` elements, for which this is.
    fn tables(&self, len: usize) -> &Tables {
        self.tables.get_or_init(|| Tables::of(len, self.inner.len))
    }

    /// Numbers in its own tables.
    #[cfg(test)]
    pub(super) fn floats(&self, len: usize) -> usize {
        let tables = self.tables(len);
        tables.chirp.len() + tables.spectrum.len()
    }
}

impl Tables {
    /// For transforms of `len` elements by those of `m`.
    #[cold]
    fn of(len: usize, m: usize) -> Tables {
        let n = len as u64;
        let root = |j: u64| {
            let (c, s) = cos_sin((u128::from(j) * u128::from(j) % u128::from(2 * n)) as u64, 2 * n);
            (c, -s)
        };
        let chirp = (0..n).map(root).flat_map(|(re, im)| [re as f32, im as f32]).collect();
        let mut filter = vec![(0.0, 0.0); m];
        for j in 0..len {
            let (re, im) = root(j as u64);
            filter[j] = (re / m as f64, -im / m as f64);
            filter[(m - j) % m] = filter[j];
        }
        transform(&mut filter);
        let spectrum = filter.into_iter().flat_map(|(re, im)| [re as f32, im as f32]).collect();
        Tables { chirp, spectrum }
    }
}

/// A forward transform in double precision, of a power of two.
fn transform(data: &mut [(f64, f64)]) {
    let n = data.len();
    let bits = n.trailing_zeros();
    for i in 0..n {
        let j = i.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
        if i < j {
            data.swap(i, j);
        }
    }
    let mut half = 1;
    while half < n {
        for j in 0..half {
            let (c, s) = cos_sin(j as u64, 2 * half as u64);
            for start in (j..n).step_by(2 * half) {
                let ((ar, ai), (br, bi)) = (data[start], data[start + half]);
                let (wr, wi) = (br * c + bi * s, bi * c - br * s);
                data[start] = (ar + wr, ai + wi);
                data[start + half] = (ar - wr, ai - wi);
            }
        }
        half *= 2;
    }
}

/// Number `at` of an array of complex numbers, in all lanes.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
unsafe fn splat<V: Lanes>(numbers: &[f32], at: usize) -> Complex<V> {
    // SAFETY: the caller's promise.
    unsafe { Complex { re: V::splat(numbers[2 * at]), im: V::splat(numbers[2 * at + 1]) } }
}

/// The inner transform; where its results are.
///
/// # Safety
/// As for [`chirped`].
#[inline(always)]
unsafe fn inner<V: Lanes>(dft: &Dft, compiled: &Compiled<V>, mut now: Packed, mut other: Packed) -> (Packed, Packed) {
    for pass in &dft.passes {
        // SAFETY: the caller's promise.
        unsafe { (compiled.middle)(dft, pass, 1, now, other) };
        std::mem::swap(&mut now, &mut other);
    }
    (now, other)
}

/// Transforms as many columns as lanes, whose elements are the first ones of `now`; where the results are.
///
/// # Safety
/// The processor supports the instruction set of `V`; both buffers hold the padded length.
#[inline(always)]
pub(super) unsafe fn chirped<V: Lanes>(
    len: usize,
    this: &Chirped,
    compiled: &Compiled<V>,
    now: Packed,
    other: Packed,
) -> Packed {
    let m = this.inner.len;
    let Tables { chirp, spectrum } = this.tables(len);
    // SAFETY: the caller's promise; indices stay below the padded length.
    unsafe {
        let zero = V::splat(0.0);
        for j in 0..len {
            let value: Complex<V> = now.load(j);
            now.store(j, value.times(splat(chirp, j)));
        }
        for j in len..m {
            now.store(j, Complex { re: zero, im: zero });
        }
        let (now, other) = inner(&this.inner, compiled, now, other);
        for k in 0..m {
            let value: Complex<V> = now.load(k);
            let value = value.times(splat(spectrum, k));
            // Real and imaginary parts change places: the next transform is the inverse one.
            now.store(k, Complex { re: value.im, im: value.re });
        }
        let (now, _) = inner(&this.inner, compiled, now, other);
        for k in 0..len {
            let value: Complex<V> = now.load(k);
            let value = Complex { re: value.im, im: value.re };
            now.store(k, value.times(splat(chirp, k)));
        }
        now
    }
}
