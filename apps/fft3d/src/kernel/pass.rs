//! One pass of a transform: butterflies of one radix over a whole batch of columns.
//!
//! The passes are those of Stockham's autosort algorithm (Cochran et al., "What is the fast Fourier transform?", Proc.
//! IEEE 55(10), 1967), decimated in frequency. Before a pass, element `p + s (j + m q)` of a column belongs to
//! sub-transform `p < s`; its butterfly over `q < R` gives element `p + s (R j + k)`, multiplied by the twiddle
//! `exp(-2 pi i j k / (R m))`. After the last pass, where m = 1, the elements are in their natural order.

use super::butterfly::{Complex, butterfly};
use super::{Dft, Pass};
use multigrain_simd::Lanes;

// Loops over indices instead of closures: what is not inlined by force would be compiled without the instruction set.

/// What a pass works on: R m s elements, each a vector of columns (or, in rows, s counted in vectors).
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Elements that each sub-transform has after the pass.
    pub(super) m: usize,
    /// Sub-transforms, in vectors.
    pub(super) s: usize,
    /// `[j][k - 1]`: real and imaginary part of the twiddle.
    pub(super) twiddles: *const f32,
}

/// Where elements lie.
pub(super) trait Place<V: Lanes>: Copy {
    /// # Safety
    /// Element `at` exists and is not written meanwhile.
    unsafe fn load(self, at: usize) -> Complex<V>;
    /// # Safety
    /// Element `at` exists and is this caller's alone.
    unsafe fn store(self, at: usize, value: Complex<V>);
}

/// A buffer of vectors: real parts, imaginary parts, one element after the other.
#[derive(Clone, Copy)]
pub(super) struct Packed(pub(super) *mut f32);

// SAFETY of the blocks below: the caller's promise about element `at`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<V: Lanes> Place<V> for Packed {
    #[inline(always)]
    unsafe fn load(self, at: usize) -> Complex<V> {
        unsafe {
            let from = self.0.add(2 * V::LANES * at);
            Complex { re: V::load(from), im: V::load(from.add(V::LANES)) }
        }
    }
    #[inline(always)]
    unsafe fn store(self, at: usize, value: Complex<V>) {
        unsafe {
            let to = self.0.add(2 * V::LANES * at);
            value.re.store(to);
            value.im.store(to.add(V::LANES));
        }
    }
}

/// Complex numbers as arrays have them; neighbours in a vector are neighbours in memory.
#[derive(Clone, Copy)]
pub(super) struct Strided<V: Lanes> {
    pub(super) base: *mut f32,
    /// Distance of elements, in floats.
    pub(super) stride: usize,
    pub(super) loads: V::Order,
    pub(super) stores: V::Order,
}

// SAFETY of the blocks below: the caller's promise about element `at`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<V: Lanes> Place<V> for Strided<V> {
    #[inline(always)]
    unsafe fn load(self, at: usize) -> Complex<V> {
        unsafe {
            let (re, im) = V::load_complex(self.base.add(self.stride * at), self.loads);
            Complex { re, im }
        }
    }
    #[inline(always)]
    unsafe fn store(self, at: usize, value: Complex<V>) {
        unsafe { V::store_complex(value.re, value.im, self.base.add(self.stride * at), self.stores) }
    }
}

/// The same for final results: scaled, and every NaN the one canonical NaN.
#[derive(Clone, Copy)]
pub(super) struct Final<V: Lanes> {
    pub(super) place: Strided<V>,
    pub(super) factor: f32,
}

// SAFETY of the blocks below: the caller's promise about element `at`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<V: Lanes> Place<V> for Final<V> {
    #[inline(always)]
    unsafe fn load(self, at: usize) -> Complex<V> {
        unsafe { self.place.load(at) }
    }
    #[inline(always)]
    unsafe fn store(self, at: usize, value: Complex<V>) {
        unsafe {
            let factor = V::splat(self.factor);
            let re = value.re.mul(factor).canonical();
            let im = value.im.mul(factor).canonical();
            self.place.store(at, Complex { re, im });
        }
    }
}

/// `R` elements from `first` on, `stride` apart.
///
/// # Safety
/// They exist and are not written meanwhile.
#[inline(always)]
unsafe fn gather<V: Lanes, const R: usize>(from: impl Place<V>, first: usize, stride: usize) -> [Complex<V>; R] {
    // SAFETY: the caller's promise.
    unsafe {
        let zero = V::splat(0.0);
        let mut x = [Complex { re: zero, im: zero }; R];
        let mut q = 0;
        while q < R {
            x[q] = from.load(first + stride * q);
            q += 1;
        }
        x
    }
}

/// One pass of radix `R` from one place to another. Where they are the same, m or s is 1.
///
/// # Safety
/// The processor supports the instruction set of `V`; both places hold R m s elements; unless m and s are both 1 they
/// do not overlap; the twiddles are as many as the shape says.
#[inline(always)]
pub(super) unsafe fn pass<V: Lanes, const R: usize>(shape: &Shape, from: impl Place<V>, to: impl Place<V>) {
    let Shape { m, s, twiddles } = *shape;
    // SAFETY: the caller's promise; all indices are below R m s.
    unsafe {
        if m == 1 {
            let mut p = 0;
            while p < s {
                let y = butterfly::<V, R>(gather(from, p, s));
                let mut k = 0;
                while k < R {
                    to.store(p + s * k, y[k]);
                    k += 1;
                }
                p += 1;
            }
            return;
        }
        let mut j = 0;
        while j < m {
            let twiddles = twiddles.add(2 * (R - 1) * j);
            let mut p = 0;
            while p < s {
                let y = butterfly::<V, R>(gather(from, p + s * j, s * m));
                to.store(p + s * R * j, y[0]);
                let mut k = 1;
                while k < R {
                    let w = twiddles.add(2 * (k - 1));
                    let w = Complex { re: V::splat(*w), im: V::splat(*w.add(1)) };
                    to.store(p + s * (R * j + k), y[k].times(w));
                    k += 1;
                }
                p += 1;
            }
            j += 1;
        }
    }
}

/// The passes of one instruction set. Numbers are how many sub-transforms lie in a vector: 1 in columns.
///
/// All of them need what [`pass`] needs.
pub(super) struct Compiled<V: Lanes> {
    /// From an array into a buffer.
    pub(super) first: unsafe fn(&Dft, &Pass, Strided<V>, Packed),
    /// From buffer to buffer.
    pub(super) middle: unsafe fn(&Dft, &Pass, usize, Packed, Packed),
    /// From a buffer into an array.
    pub(super) last: unsafe fn(&Dft, &Pass, usize, Packed, Strided<V>),
    /// From a buffer into an array, as final results.
    pub(super) finish: unsafe fn(&Dft, &Pass, Packed, Final<V>),
}
