//! The leaf kernels: discrete Fourier transforms along one axis of a block of complex numbers in single precision.
//!
//! # The result is defined to the bit
//!
//! A transform of length n is a sequence of passes, one for each radix of [`radices`]`(n)`, as Stockham's algorithm
//! orders them (see `pass.rs`): butterflies over the elements of a column, whose order of operations `butterfly.rs`
//! fixes, and a product with a twiddle, `re = fma(x.re, w.re, -(x.im w.im))`, `im = fma(x.re, w.im, x.im w.re)`, in
//! every pass but the last. Twiddles are rounded from double precision once. The inverse exchanges real and imaginary
//! parts before and after. Along the last axis results are multiplied by a factor, rounded once, and every NaN is stored
//! as the one canonical NaN. Nothing else is left open: lanes are columns or sub-transforms, which do not meet, so
//! vector width, blocks and batches do not change one bit. The arithmetic assumes the default floating-point
//! environment: round to nearest, subnormal numbers kept.
//!
//! # How it is fast
//!
//! Real and imaginary parts lie in vectors of their own between the first pass and the last, in a buffer of a batch of
//! columns that stays in the first-level cache for lengths up to 256. Radix 16 keeps passes few: two for 256.

mod butterfly;
mod columns;
mod compiled;
mod pass;
mod rows;
mod twiddle;
mod vector;

#[cfg(test)]
mod tests;

pub use twiddle::{PRIMES, cos_sin, radices};

use columns::Columns;
use compiled::{isa_columns, isa_rows};
use multigrain_simd::Isa;
use rows::Rows;
use twiddle::root;

/// One pass of a transform.
#[derive(Clone, Copy, Debug)]
struct Pass {
    radix: usize,
    /// Elements that each sub-transform has afterwards.
    m: usize,
    /// Sub-transforms before it.
    s: usize,
    /// Where its twiddles begin.
    twiddles: usize,
}

/// A transform of one length: its passes and their twiddles.
#[derive(Clone, Debug)]
pub struct Dft {
    len: usize,
    passes: Vec<Pass>,
    /// For each pass, `[j][k - 1]`: real and imaginary part.
    twiddles: Vec<f32>,
    /// The twiddles of the first pass once more, as `[k - 1][part][j]`, for rows that are transformed one by one.
    lanes: Vec<f32>,
}

impl Dft {
    /// The transform of length `len`; `None` when it is zero or has a prime factor other than 2, 3, 5 and 7.
    pub fn new(len: u64) -> Option<Dft> {
        let radices = radices(len)?;
        let len = usize::try_from(len).ok()?;
        let (mut passes, mut twiddles, mut lanes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut s, mut n) = (1, len);
        for radix in radices {
            let m = n / radix;
            passes.push(Pass { radix, m, s, twiddles: twiddles.len() });
            if m > 1 {
                let pairs = (0..m as u64).flat_map(|j| (1..radix as u64).map(move |k| (j, k)));
                twiddles.extend(pairs.map(|(j, k)| root(j * k, n as u64)).flat_map(|(re, im)| [re, im]));
            }
            if s == 1 && rows::one_by_one(len) {
                for k in 1..radix as u64 {
                    lanes.extend((0..m as u64).map(|j| root(j * k, n as u64).0));
                    lanes.extend((0..m as u64).map(|j| root(j * k, n as u64).1));
                }
            }
            (s, n) = (s * radix, m);
        }
        if passes.len() == 1 {
            // Out of the buffer again: every transform goes through one.
            passes.push(Pass { radix: 1, m: 1, s: len, twiddles: twiddles.len() });
        }
        Some(Dft { len, passes, twiddles, lanes })
    }

    /// Number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Number of passes.
    pub fn passes(&self) -> usize {
        self.passes.len()
    }

    /// Floating-point operations of one transform, by the usual measure 5 n log2 n.
    pub fn flops(&self) -> f64 {
        let n = self.len as f64;
        5.0 * n * n.log2()
    }
}

/// A block of three dimensions that is read and the block of the same shape that is written; they may be one.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// First element that is read.
    pub from: *const f32,
    /// First element that is written.
    pub to: *mut f32,
    /// Lengths, slowest dimension first.
    pub shape: [usize; 3],
    /// Distances of neighbours along the first two dimensions of what is read, in complex numbers.
    pub from_strides: [usize; 2],
    /// Distances of neighbours along the first two dimensions of what is written, in complex numbers.
    pub to_strides: [usize; 2],
}

impl Block {
    /// What is written, as a block to go on with in place.
    pub fn written(&self) -> Block {
        Block { from: self.to, from_strides: self.to_strides, ..*self }
    }

    /// Plane `x` alone.
    pub fn plane(&self, x: usize) -> Block {
        Block {
            from: self.from.wrapping_add(2 * x * self.from_strides[0]),
            to: self.to.wrapping_add(2 * x * self.to_strides[0]),
            shape: [1, self.shape[1], self.shape[2]],
            ..*self
        }
    }
}

/// Along which dimension is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The slowest.
    X,
    /// The middle one.
    Y,
    /// The fastest: its elements are neighbours in memory.
    Z,
}

/// Lanes of an instruction set.
fn lanes(isa: Isa) -> usize {
    match isa {
        Isa::Scalar => 1,
        Isa::Avx2 => 8,
        Isa::Avx512 => 16,
    }
}

/// Bytes of scratch memory for [`transform`] with `isa` along `axis` of a block of `shape`.
pub fn scratch_bytes(isa: Isa, dft: &Dft, axis: Axis, shape: [usize; 3]) -> usize {
    let lanes = lanes(isa);
    let floats = match axis {
        Axis::Z => rows::scratch_floats(dft, lanes),
        // Whether rows are contiguous, and columns therefore count as one row, is not known here.
        Axis::X => {
            columns::scratch_floats(dft, lanes, shape[2]).max(columns::scratch_floats(dft, lanes, shape[1] * shape[2]))
        }
        Axis::Y => columns::scratch_floats(dft, lanes, shape[2]),
    };
    4 * floats
}

/// Bytes that scratch memory for [`transform`] should have besides, for blocks that are larger than a second-level
/// cache: 0 for others.
pub fn panel_bytes(isa: Isa, dft: &Dft, axis: Axis, shape: [usize; 3]) -> usize {
    let large = 8 * shape.iter().product::<usize>() > CACHED_BYTES;
    if axis == Axis::Z || !large { 0 } else { 4 * columns::panel_floats(dft, lanes(isa)) }
}

/// Blocks up to this size are found in a second-level cache once they have been touched.
const CACHED_BYTES: usize = 768 << 10;

/// The widest instruction set up to `isa` whose scratch memory is within `limit_bytes`; the scalar one if there is none.
pub fn within(isa: Isa, limit_bytes: usize, need_bytes: impl Fn(Isa) -> usize) -> Isa {
    let fits = |candidate: &Isa| *candidate <= isa && candidate.is_supported() && need_bytes(*candidate) <= limit_bytes;
    Isa::ALL.into_iter().rev().find(fits).unwrap_or(Isa::Scalar)
}

/// Transforms a block along one axis. Real and imaginary parts change places before and after where `swapped`, which
/// makes the transform the inverse one; with a `factor` results are final: multiplied by it, NaN canonical.
///
/// # Panics
/// When the scratch memory is shorter than [`scratch_bytes`] says or not aligned to 4 bytes, or the block's length along the axis is another than
/// that of `dft`.
///
/// # Safety
/// The processor supports `isa`; the blocks exist, with the last dimension contiguous; what is written is accessed by
/// this call alone and is what is read or does not overlap it.
#[allow(clippy::too_many_arguments)]
pub unsafe fn transform(
    isa: Isa,
    dft: &Dft,
    axis: Axis,
    block: &Block,
    swapped: bool,
    factor: Option<f32>,
    scratch: &mut [u8],
) {
    let [x, y, z] = block.shape;
    let len = [x, y, z][axis as usize];
    assert_eq!(len, dft.len, "length of the {axis:?} axis of a block of {x} x {y} x {z}");
    let need = scratch_bytes(isa, dft, axis, block.shape);
    assert!(scratch.len() >= need, "{} bytes of scratch memory, {need} are needed", scratch.len());
    assert!(scratch.as_ptr().cast::<f32>().is_aligned(), "scratch memory is not aligned");
    let panel_bytes = panel_bytes(isa, dft, axis, block.shape);
    let panel = match panel_bytes > 0 && scratch.len() >= need + panel_bytes {
        true => scratch[need..].as_mut_ptr().cast(),
        false => std::ptr::null_mut(),
    };
    let scratch: *mut f32 = scratch.as_mut_ptr().cast();
    let floats = |strides: [usize; 2]| strides.map(|s| 2 * s);
    let (from_strides, to_strides) = (floats(block.from_strides), floats(block.to_strides));
    let Block { from, to, .. } = *block;
    if axis == Axis::Z {
        assert!(factor.is_none(), "rows are never the last axis");
        let call = Rows { dft, from, to, counts: [x, y], from_strides, to_strides, swapped };
        // SAFETY: the caller's promise about blocks and instruction set; the scratch memory was checked.
        unsafe { isa_rows(isa, &call, scratch) };
        return;
    }
    // Columns are along `axis`; their rows lie along z, one for each index of the other dimension.
    let (across, along) = if axis == Axis::X { (1, 0) } else { (0, 1) };
    let dense = from_strides[across] == 2 * z && to_strides[across] == 2 * z;
    let (outer, count) = if dense { (1, block.shape[across] * z) } else { (block.shape[across], z) };
    for i in 0..outer {
        let call = Columns {
            dft,
            from: from.wrapping_add(i * from_strides[across]),
            from_stride: from_strides[along],
            to: to.wrapping_add(i * to_strides[across]),
            to_stride: to_strides[along],
            count,
            swapped,
            panel,
            factor,
        };
        // SAFETY: as above.
        unsafe { isa_columns(isa, &call, scratch) };
    }
}
