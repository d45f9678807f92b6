//! The leaf kernels: discrete Fourier transforms along one axis of a block of complex numbers in single precision.
//!
//! # The result is defined to the bit
//!
//! A transform of length n with the prime factors 2, 3, 5 and 7 is a sequence of passes, one for each radix of
//! [`radices`]`(n)`, as Stockham's algorithm
//! orders them (see `pass.rs`): butterflies over the elements of a column, whose order of operations `butterfly.rs`
//! fixes, and a product with a twiddle, `re = fma(x.re, w.re, -(x.im w.im))`, `im = fma(x.re, w.im, x.im w.re)`, in
//! every pass but the last; of any other length it is two such transforms (`chirped.rs`). Twiddles are rounded from double precision once. The inverse exchanges real and imaginary
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
mod chirped;
mod columns;
mod compiled;
mod pass;
mod rows;
mod twiddle;

#[cfg(test)]
mod tests;

pub use twiddle::{cos_sin, radices};

use chirped::Chirped;
use columns::Columns;
use compiled::{isa_columns, isa_rows};
use multigrain_simd::{Isa, Lanes};
use rows::Rows;
use std::sync::OnceLock;
use twiddle::root;

/// Bytes of one element of a table, a pair of `f32`.
const COMPLEX_BYTES: u64 = 8;

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
    /// Made by the first transform: a plan has no need of them.
    tables: OnceLock<Tables>,
    /// What a length with other prime factors needs instead.
    chirped: Option<Box<Chirped>>,
}

#[derive(Clone, Debug)]
struct Tables {
    /// For each pass, `[j][k - 1]`: real and imaginary part.
    twiddles: Vec<f32>,
    /// The twiddles of the first pass once more, as `[k - 1][part][j]`, for rows that are transformed one by one.
    lanes: Vec<f32>,
}

impl Dft {
    /// The transform of length `len`; `None` when it is zero or too long to be indexed.
    pub fn new(len: u64) -> Option<Dft> {
        let len = usize::try_from(len).ok().filter(|&len| len > 0)?;
        let Some(radices) = radices(len as u64) else {
            let chirped = Some(Box::new(Chirped::new(len)?));
            return Some(Dft { len, passes: Vec::new(), tables: OnceLock::new(), chirped });
        };
        let (mut passes, mut twiddles) = (Vec::new(), 0);
        let (mut s, mut n) = (1, len);
        for radix in radices {
            let m = n / radix;
            passes.push(Pass { radix, m, s, twiddles });
            twiddles += if m > 1 { 2 * m * (radix - 1) } else { 0 };
            (s, n) = (s * radix, m);
        }
        if passes.len() == 1 {
            // Out of the buffer again: every transform goes through one.
            passes.push(Pass { radix: 1, m: 1, s: len, twiddles });
        }
        Some(Dft { len, passes, tables: OnceLock::new(), chirped: None })
    }

    #[inline(always)]
    fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| self.make_tables())
    }

    #[cold]
    #[inline(never)]
    fn make_tables(&self) -> Tables {
        let (mut twiddles, mut lanes) = (Vec::new(), Vec::new());
        for pass in &self.passes {
            let (radix, m) = (pass.radix as u64, pass.m as u64);
            let root = |j: u64, k: u64| root(j * k, m * radix);
            if m > 1 {
                let pairs = (0..m).flat_map(|j| (1..radix).map(move |k| (j, k)));
                twiddles.extend(pairs.map(|(j, k)| root(j, k)).flat_map(|(re, im)| [re, im]));
            }
            if pass.s == 1 && rows::in_lanes(self.len) {
                for k in 1..radix {
                    lanes.extend((0..m).map(|j| root(j, k).0));
                    lanes.extend((0..m).map(|j| root(j, k).1));
                }
            }
        }
        twiddles.shrink_to_fit();
        lanes.shrink_to_fit();
        Tables { twiddles, lanes }
    }

    /// Number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the tables for a length, known before they are made; `None` as [`new`](Self::new).
    pub fn table_bytes(len: u64) -> Option<u64> {
        let indexed = usize::try_from(len).ok().filter(|&len| len > 0)?;
        let Some(radices) = radices(len) else {
            let padded = chirped::padded(indexed)? as u64;
            return len.checked_add(padded)?.checked_mul(COMPLEX_BYTES)?.checked_add(Self::table_bytes(padded)?);
        };
        let (mut twiddles, mut n) = (0, indexed);
        for (pass, radix) in radices.into_iter().enumerate() {
            n /= radix;
            let copies = u64::from(n > 1) + u64::from(pass == 0 && rows::in_lanes(indexed));
            twiddles += copies * (n * (radix - 1)) as u64;
        }
        twiddles.checked_mul(COMPLEX_BYTES)
    }

    /// Bytes of scratch memory for one line of a length, known before its tables are made; 0 where there are none.
    pub fn line_scratch_bytes(len: u64) -> u64 {
        let padded = match radices(len) {
            Some(_) => usize::try_from(len).ok(),
            None => usize::try_from(len).ok().and_then(chirped::padded),
        };
        // Two buffers: what a pass reads and what it writes.
        padded.map_or(0, |padded| (padded as u64).saturating_mul(2 * COMPLEX_BYTES))
    }

    /// Elements of a column in a buffer.
    fn padded(&self) -> usize {
        self.chirped.as_ref().map_or(self.len, |chirped| chirped.inner.len)
    }

    /// Number of passes.
    pub fn passes(&self) -> usize {
        self.chirped.as_ref().map_or(self.passes.len(), |chirped| 2 * chirped.inner.passes() + 2)
    }

    /// Floating-point operations of one transform, by the usual measure 5 n log2 n; of a length with other prime factors
    /// than 2, 3, 5 and 7, those of what is done instead.
    pub fn flops(&self) -> f64 {
        let n = self.len as f64;
        match &self.chirped {
            Some(chirped) => 2.0 * chirped.inner.flops() + 6.0 * (2.0 * n + chirped.inner.len as f64),
            None => 5.0 * n * n.log2(),
        }
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
        Isa::Neon => 4,
        Isa::Avx2 => 8,
        Isa::Avx512 => 16,
    }
}

/// Roundings on the way from an element to a result of a volume: for each factor of two of a transform an addition and a
/// product with a twiddle, itself rounded; for a length with other prime factors, two transforms and three products.
pub fn roundings(shape: [u64; 3]) -> u64 {
    let stages = |n: u64| u64::from(n.max(2).ilog2()) + 1;
    let of = |n: u64| match (radices(n), chirped::padded(n as usize)) {
        (None, Some(padded)) => 2 * stages(padded as u64) + 3,
        _ => stages(n),
    };
    3 * shape.map(of).iter().sum::<u64>()
}

/// The instruction set for `count` columns at once: lanes that would be idle cost memory.
fn narrowed(isa: Isa, count: usize) -> Isa {
    match count {
        0..4 => Isa::Scalar,
        4..=8 => isa.min(Isa::Avx2),
        _ => isa,
    }
}

/// Floats of scratch memory for rows, `count` of them.
fn rows_floats(isa: Isa, dft: &Dft, count: usize) -> usize {
    let isa = if rows::one_by_one(dft) { isa } else { narrowed(isa, count) };
    rows::scratch_floats(dft, lanes(isa))
}

/// Bytes of scratch memory for [`transform`] with `isa` along `axis` of a block of `shape`.
pub fn scratch_bytes(isa: Isa, dft: &Dft, axis: Axis, shape: [usize; 3]) -> usize {
    let [x, y, z] = shape;
    let columns = |count: usize| columns::scratch_floats(dft, lanes(narrowed(isa, count)), count);
    // Whether rows are contiguous, and columns therefore count as one row, is not known here; nor whether one column is a
    // row.
    let floats = match axis {
        Axis::Z => rows_floats(isa, dft, x * y),
        Axis::X if y * z == 1 => columns(1).max(rows_floats(isa, dft, 1)),
        Axis::X => columns(z).max(columns(y * z)),
        Axis::Y if z == 1 => columns(1).max(columns(x)).max(rows_floats(isa, dft, x)),
        Axis::Y => columns(z).max(columns(x * z)),
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
    let row = |strides: [usize; 2]| match axis {
        Axis::X => y * z == 1 && strides[0] == 2,
        Axis::Y => z == 1 && strides[1] == 2,
        Axis::Z => true,
    };
    // One column whose elements are neighbours is a row.
    if row(from_strides) && row(to_strides) {
        let counts = match axis {
            Axis::X => [1, 1],
            Axis::Y => [x, 1],
            Axis::Z => [x, y],
        };
        let call = Rows { dft, from, to, counts, from_strides, to_strides, swapped };
        let isa = if rows::one_by_one(dft) { isa } else { narrowed(isa, counts[0] * counts[1]) };
        // SAFETY: the caller's promise about blocks and instruction set; the scratch memory was checked.
        unsafe {
            isa_rows(isa, &call, scratch);
            if let Some(factor) = factor {
                for at in 0..2 * len {
                    let value = to.add(at);
                    *value = Lanes::canonical(*value * factor);
                }
            }
        }
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
        unsafe { isa_columns(narrowed(isa, count), &call, scratch) };
    }
}
