//! Transforms along an axis whose elements are a stride apart: neighbouring columns are the lanes of a vector.
//!
//! A batch of columns goes through a buffer of its own between the first pass and the last. So every element of the
//! array is read once and written once, and a stride of a power of two conflicts in no cache in between.

use super::Dft;
use super::compiled::Compiled;
use super::pass::{Final, Packed, Strided};
use super::vector::Vector;

/// Neighbouring columns that are transformed.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub(super) dft: &'a Dft,
    pub(super) from: *const f32,
    /// Distance of the elements of a column in `from`, in floats.
    pub(super) from_stride: usize,
    pub(super) to: *mut f32,
    /// Distance of the elements of a column in `to`, in floats.
    pub(super) to_stride: usize,
    /// Number of columns.
    pub(super) count: usize,
    /// Real and imaginary parts change places before and after.
    pub(super) swapped: bool,
    /// What final results are multiplied by; `None` when another axis follows.
    pub(super) factor: Option<f32>,
}

/// Floats of scratch memory for columns of `dft` in vectors of `lanes`.
pub(super) fn scratch_floats(dft: &Dft, lanes: usize, count: usize) -> usize {
    let buffers = if dft.passes.len() > 2 { 2 } else { 1 };
    let rest = usize::from(!count.is_multiple_of(lanes));
    (buffers + rest) * 2 * lanes * dft.len
}

/// Transforms columns.
///
/// # Safety
/// The processor supports the instruction set of `V`; all columns exist in `from`, which may be `to`; they are the
/// caller's alone in `to`; `scratch` is as long as [`scratch_floats`] says.
#[inline(always)]
pub(super) unsafe fn columns<V: Vector>(call: &Columns<'_>, compiled: &Compiled<V>, scratch: *mut f32) {
    let n = call.dft.len;
    let buffer = 2 * V::LANES * n;
    // SAFETY: the caller's promise; a batch that is not full is completed in scratch memory, behind the buffers.
    unsafe {
        let (loads, stores) = (V::order_of_loads(call.swapped), V::order_of_stores(call.swapped));
        let full = call.count / V::LANES * V::LANES;
        for first in (0..full).step_by(V::LANES) {
            let source =
                Strided::<V> { base: call.from.add(2 * first).cast_mut(), stride: call.from_stride, loads, stores };
            let target = Strided::<V> { base: call.to.add(2 * first), stride: call.to_stride, loads, stores };
            batch(call, compiled, source, target, scratch);
        }
        let rest = call.count - full;
        if rest == 0 {
            return;
        }
        let buffers = scratch_floats(call.dft, V::LANES, V::LANES);
        let square = scratch.add(buffers);
        square.write_bytes(0, buffer);
        for at in 0..n {
            let row = call.from.add(2 * full + at * call.from_stride);
            row.copy_to_nonoverlapping(square.add(2 * V::LANES * at), 2 * rest);
        }
        let place = Strided::<V> { base: square, stride: 2 * V::LANES, loads, stores };
        batch(call, compiled, place, place, scratch);
        for at in 0..n {
            let row = call.to.add(2 * full + at * call.to_stride);
            square.add(2 * V::LANES * at).copy_to_nonoverlapping(row, 2 * rest);
        }
    }
}

/// Transforms as many columns as lanes.
///
/// # Safety
/// As for [`columns`].
#[inline(always)]
unsafe fn batch<V: Vector>(
    call: &Columns<'_>,
    compiled: &Compiled<V>,
    source: Strided<V>,
    target: Strided<V>,
    scratch: *mut f32,
) {
    let dft = call.dft;
    // SAFETY: the caller's promise.
    unsafe {
        let (mut now, mut other) = (Packed(scratch), Packed(scratch.add(2 * V::LANES * dft.len)));
        let [first, middle @ .., last] = &dft.passes[..] else { return };
        (compiled.first)(dft, first, source, now);
        for pass in middle {
            (compiled.middle)(dft, pass, 1, now, other);
            std::mem::swap(&mut now, &mut other);
        }
        match call.factor {
            None => (compiled.last)(dft, last, 1, now, target),
            Some(factor) => (compiled.finish)(dft, last, now, Final { place: target, factor }),
        }
    }
}
