//! Transforms along an axis whose elements are a stride apart: neighbouring columns are the lanes of a vector.
//!
//! A batch of columns goes through a buffer of its own between the first pass and the last. So every element of the
//! array is read once and written once, and a stride of a power of two conflicts in no cache in between.

use super::Dft;
use super::butterfly::Complex;
use super::chirped::chirped;
use super::pass::{Compiled, Final, Packed, Place, Strided};
use multigrain_simd::Lanes;

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
    /// Memory for a panel, see [`panel_floats`]; null where columns are transformed where they lie.
    pub(super) panel: *mut f32,
    /// What final results are multiplied by; `None` when another axis follows.
    pub(super) factor: Option<f32>,
}

/// Floats of scratch memory that columns of `dft` in vectors of `lanes` need.
pub(super) fn scratch_floats(dft: &Dft, lanes: usize, count: usize) -> usize {
    let rest = usize::from(!count.is_multiple_of(lanes));
    buffers_floats(dft, lanes) + rest * 2 * lanes * dft.len
}

/// Floats of the buffers between passes.
fn buffers_floats(dft: &Dft, lanes: usize) -> usize {
    let buffers = if dft.passes.len() == 2 { 1 } else { 2 };
    buffers * 2 * lanes * dft.padded()
}

/// What a panel may take of a second-level cache, in bytes.
const PANEL_BYTES: usize = 384 << 10;
/// The widest panel, in columns: 1 KiB a row.
const PANEL_COLUMNS: usize = 128;
/// Floats between the rows of a panel: else elements that meet in a butterfly would lie a power of two apart.
const PANEL_GAP: usize = 32;
/// How many rows ahead of its copy a row is asked for.
const ROWS_AHEAD: usize = 4;

/// Columns of a panel; 0 when it is not worth having, being as narrow as a batch.
fn panel_columns(dft: &Dft, lanes: usize) -> usize {
    let columns = (PANEL_BYTES / (8 * dft.len)).min(PANEL_COLUMNS);
    if columns > lanes { 1 << columns.ilog2() } else { 0 }
}

/// Floats of scratch memory for a panel, besides those that are needed in any case.
pub(super) fn panel_floats(dft: &Dft, lanes: usize) -> usize {
    match panel_columns(dft, lanes) {
        0 => 0,
        columns => dft.len * (2 * columns + PANEL_GAP),
    }
}

/// Transforms columns.
///
/// # Safety
/// The processor supports the instruction set of `V`; all columns exist in `from`, which may be `to`; they are the
/// caller's alone in `to`; `scratch` is as long as [`scratch_floats`] says.
#[inline(always)]
pub(super) unsafe fn columns<V: Lanes>(call: &Columns<'_>, compiled: &Compiled<V>, scratch: *mut f32) {
    let n = call.dft.len;
    let buffer = 2 * V::LANES * n;
    // SAFETY: the caller's promise; a batch that is not full is completed in scratch memory, behind the buffers.
    unsafe {
        let (loads, stores) = (V::order_of_loads(call.swapped), V::order_of_stores(call.swapped));
        let full = call.count / V::LANES * V::LANES;
        let panel = if call.panel.is_null() { 0 } else { panel_columns(call.dft, V::LANES) };
        let in_panels = full.checked_div(panel).map_or(0, |whole| whole * panel);
        for first in (0..in_panels).step_by(panel.max(1)) {
            through_panel(call, compiled, first, panel, scratch);
        }
        for first in (in_panels..full).step_by(V::LANES) {
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

/// Transforms `columns` columns from `first` on in a panel of their own, which is filled and emptied by long rows: rows
/// that are far apart come from memory at its rate only when they are asked for ahead and taken whole.
///
/// # Safety
/// As for [`columns`]; the panel is large enough.
#[inline(always)]
unsafe fn through_panel<V: Lanes>(
    call: &Columns<'_>,
    compiled: &Compiled<V>,
    first: usize,
    columns: usize,
    scratch: *mut f32,
) {
    let (n, floats, pitch) = (call.dft.len, 2 * columns, 2 * columns + PANEL_GAP);
    // SAFETY: the caller's promise; a prefetch may have any address.
    unsafe {
        let ask = |at: usize| {
            let row = call.from.wrapping_add(2 * first + at.min(n - 1) * call.from_stride);
            for float in (0..floats).step_by(16) {
                V::prefetch(row.wrapping_add(float));
            }
        };
        for at in 0..ROWS_AHEAD {
            ask(at);
        }
        for at in 0..n {
            ask(at + ROWS_AHEAD);
            let (from, to) = (call.from.add(2 * first + at * call.from_stride), call.panel.add(at * pitch));
            for float in (0..floats).step_by(V::LANES) {
                V::load(from.add(float)).store(to.add(float));
            }
        }
        let (loads, stores) = (V::order_of_loads(call.swapped), V::order_of_stores(call.swapped));
        for first in (0..columns).step_by(V::LANES) {
            let place = Strided::<V> { base: call.panel.add(2 * first), stride: pitch, loads, stores };
            batch(call, compiled, place, place, scratch);
        }
        for at in 0..n {
            let (from, to) = (call.panel.add(at * pitch), call.to.add(2 * first + at * call.to_stride));
            for float in (0..floats).step_by(V::LANES) {
                V::load(from.add(float)).store(to.add(float));
            }
        }
    }
}

/// Transforms as many columns as lanes.
///
/// # Safety
/// As for [`columns`].
#[inline(always)]
unsafe fn batch<V: Lanes>(
    call: &Columns<'_>,
    compiled: &Compiled<V>,
    source: Strided<V>,
    target: Strided<V>,
    scratch: *mut f32,
) {
    let dft = call.dft;
    // SAFETY: the caller's promise.
    unsafe {
        let (mut now, mut other) = (Packed(scratch), Packed(scratch.add(2 * V::LANES * dft.padded())));
        if let Some(this) = &dft.chirped {
            for at in 0..dft.len {
                now.store(at, source.load(at));
            }
            let results = chirped(dft.len, this, compiled, now, other);
            for at in 0..dft.len {
                let value: Complex<V> = results.load(at);
                match call.factor {
                    None => target.store(at, value),
                    Some(factor) => Final { place: target, factor }.store(at, value),
                }
            }
            return;
        }
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
