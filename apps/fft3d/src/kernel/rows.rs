//! Transforms along the axis whose elements are neighbours in memory.
//!
//! Where the length is a multiple of 256, the lanes of the first pass are neighbouring elements of one row. It leaves
//! sixteen sub-transforms side by side, which are the lanes of all later passes: one transposition of 16 x 16 in
//! between is all the reordering there is. Other rows are transposed in batches, transformed as columns, and
//! transposed back.

use super::Dft;
use super::butterfly::{Complex, butterfly};
use super::chirped::chirped;
use super::pass::{Compiled, Packed, Place, Strided};
use multigrain_simd::Lanes;

/// The radix of the first pass of rows that are not transposed as a whole.
const FIRST: usize = 16;

/// Rows that are transformed.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) dft: &'a Dft,
    pub(super) from: *const f32,
    pub(super) to: *mut f32,
    /// Number of rows along the first two dimensions.
    pub(super) counts: [usize; 2],
    /// Distances of rows in `from`, in floats.
    pub(super) from_strides: [usize; 2],
    /// Distances of rows in `to`, in floats.
    pub(super) to_strides: [usize; 2],
    /// Real and imaginary parts change places before and after.
    pub(super) swapped: bool,
}

/// Whether rows of this length are transformed one by one.
pub(super) fn one_by_one(dft: &Dft) -> bool {
    dft.chirped.is_none() && in_lanes(dft.len)
}

/// The same, for a length that has butterflies.
pub(super) fn in_lanes(len: usize) -> bool {
    len.is_multiple_of(FIRST * FIRST)
}

/// Floats of scratch memory for rows of `dft` in vectors of `lanes`.
pub(super) fn scratch_floats(dft: &Dft, lanes: usize) -> usize {
    match (one_by_one(dft), dft.passes.len()) {
        (true, 2) => 2 * dft.len,
        (true, _) => 4 * dft.len,
        (false, _) => 4 * lanes * dft.padded(),
    }
}

/// Transforms rows.
///
/// # Safety
/// The processor supports the instruction set of `V`; all rows exist in `from`, which may be `to`; they are the
/// caller's alone in `to`; `scratch` is as long as [`scratch_floats`] says.
#[inline(always)]
pub(super) unsafe fn rows<V: Lanes>(call: &Rows<'_>, compiled: &Compiled<V>, scratch: *mut f32) {
    let row = |i: usize| (i / call.counts[1], i % call.counts[1]);
    let from = |i: usize| {
        let (x, y) = row(i);
        call.from.wrapping_add(x * call.from_strides[0] + y * call.from_strides[1])
    };
    let to = |i: usize| {
        let (x, y) = row(i);
        call.to.wrapping_add(x * call.to_strides[0] + y * call.to_strides[1])
    };
    let count = call.counts[0] * call.counts[1];
    // SAFETY: the caller's promise; indices stay below the number of rows.
    unsafe {
        if one_by_one(call.dft) {
            for i in 0..count {
                one(call.dft, compiled, from(i), to(i), call.swapped, scratch);
            }
            return;
        }
        for first in (0..count).step_by(V::LANES) {
            // The last batch takes its last row as often as lanes are left.
            let last = (first + V::LANES).min(count) - 1;
            let mut sources = [call.from; 16];
            let mut targets = [call.to; 16];
            for lane in 0..V::LANES {
                sources[lane] = from((first + lane).min(last));
                targets[lane] = to((first + lane).min(last));
            }
            transposed(call.dft, compiled, &sources, &targets[..last + 1 - first], call.swapped, scratch);
        }
    }
}

/// Transforms one row whose length is a multiple of 256.
///
/// # Safety
/// As for [`rows`].
#[inline(always)]
unsafe fn one<V: Lanes>(
    dft: &Dft,
    compiled: &Compiled<V>,
    from: *const f32,
    to: *mut f32,
    swapped: bool,
    scratch: *mut f32,
) {
    let (m, lanes) = (dft.len / FIRST, dft.tables().lanes.as_ptr());
    // SAFETY: the caller's promise; the length is a multiple of 256, so m is one of the lanes.
    unsafe {
        let order = V::order_of_loads(swapped);
        let zero = V::splat(0.0);
        let (mut now, mut other) = (Packed(scratch), Packed(scratch.add(2 * dft.len)));
        for j in (0..m).step_by(V::LANES) {
            let mut y = [Complex { re: zero, im: zero }; FIRST];
            for (q, x) in y.iter_mut().enumerate() {
                let (re, im) = V::load_complex(from.add(2 * (j + m * q)), order);
                *x = Complex { re, im };
            }
            let y = butterfly::<V, FIRST>(y);
            let (mut re, mut im) = ([y[0].re; FIRST], [y[0].im; FIRST]);
            for k in 1..FIRST {
                let w = lanes.add(2 * m * (k - 1) + j);
                let product = y[k].times(Complex { re: V::load(w), im: V::load(w.add(m)) });
                (re[k], im[k]) = (product.re, product.im);
            }
            // Vectors of elements j become vectors of sub-transforms k.
            for group in 0..FIRST / V::LANES {
                let (mut square_re, mut square_im) = (re, im);
                for i in 0..V::LANES {
                    (square_re[i], square_im[i]) = (re[group * V::LANES + i], im[group * V::LANES + i]);
                }
                V::transpose(&mut square_re);
                V::transpose(&mut square_im);
                for i in 0..V::LANES {
                    let value = Complex { re: square_re[i], im: square_im[i] };
                    now.store((j + i) * (FIRST / V::LANES) + group, value);
                }
            }
        }
        let [_, middle @ .., last] = &dft.passes[..] else { return };
        for pass in middle {
            (compiled.middle)(dft, pass, V::LANES, now, other);
            std::mem::swap(&mut now, &mut other);
        }
        let (loads, stores) = (order, V::order_of_stores(swapped));
        (compiled.last)(dft, last, V::LANES, now, Strided { base: to, stride: 2 * V::LANES, loads, stores });
    }
}

/// Transforms as many rows as lanes, of any length; `targets` may be fewer, then the others are not written.
///
/// # Safety
/// As for [`rows`].
#[inline(always)]
unsafe fn transposed<V: Lanes>(
    dft: &Dft,
    compiled: &Compiled<V>,
    sources: &[*const f32; 16],
    targets: &[*mut f32],
    swapped: bool,
    scratch: *mut f32,
) {
    let n = dft.len;
    let whole = n / V::LANES * V::LANES;
    // SAFETY: the caller's promise; the buffers hold n elements of as many columns as lanes.
    unsafe {
        let (loads, stores) = (V::order_of_loads(swapped), V::order_of_stores(swapped));
        let (mut now, mut other) = (Packed(scratch), Packed(scratch.add(2 * V::LANES * dft.padded())));
        for at in (0..whole).step_by(V::LANES) {
            let (mut re, mut im) = ([V::splat(0.0); 16], [V::splat(0.0); 16]);
            for (lane, source) in sources.iter().enumerate().take(V::LANES) {
                (re[lane], im[lane]) = V::load_complex(source.add(2 * at), loads);
            }
            V::transpose(&mut re);
            V::transpose(&mut im);
            for i in 0..V::LANES {
                now.store(at + i, Complex { re: re[i], im: im[i] });
            }
        }
        let parts = if swapped { [1, 0] } else { [0, 1] };
        for at in whole..n {
            for (lane, source) in sources.iter().enumerate().take(V::LANES) {
                let element = now.0.add(2 * V::LANES * at + lane);
                element.write(source.add(2 * at + parts[0]).read());
                element.add(V::LANES).write(source.add(2 * at + parts[1]).read());
            }
        }
        for pass in &dft.passes {
            (compiled.middle)(dft, pass, 1, now, other);
            std::mem::swap(&mut now, &mut other);
        }
        if let Some(this) = &dft.chirped {
            now = chirped(n, this, compiled, now, other);
        }
        for at in (0..whole).step_by(V::LANES) {
            let (mut re, mut im) = ([V::splat(0.0); 16], [V::splat(0.0); 16]);
            for i in 0..V::LANES {
                let value: Complex<V> = now.load(at + i);
                (re[i], im[i]) = (value.re, value.im);
            }
            V::transpose(&mut re);
            V::transpose(&mut im);
            for (lane, target) in targets.iter().enumerate() {
                V::store_complex(re[lane], im[lane], target.add(2 * at), stores);
            }
        }
        for at in whole..n {
            for (lane, target) in targets.iter().enumerate() {
                let element = now.0.add(2 * V::LANES * at + lane);
                target.add(2 * at + parts[0]).write(element.read());
                target.add(2 * at + parts[1]).write(element.add(V::LANES).read());
            }
        }
    }
}
