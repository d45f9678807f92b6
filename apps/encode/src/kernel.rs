//! Kernels: what is done to samples and coefficients, for each instruction set.
//!
//! All of it is integer arithmetic, so every instruction set gives the same bits; the tests hold them to it. What
//! `portable` does lane by lane is compiled once for any processor and once more with AVX2, where the compiler makes
//! vector instructions of it; what it does not see (sums of absolute differences, transforms of differences, the
//! transposition of blocks into lanes) is written out in `x86`, and how edges are smoothed in `smoothing`, once for the vectors of
//! all, NEON's among them. There are none of AVX-512, whose processors compute with those of AVX2.

pub mod portable;
mod smoothing;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::intra::{Around, BLOCK_MODES, Line, Mode};
use crate::samples::Samples;
use multigrain_simd::Isa;

/// The sixteen blocks of a macroblock beside each other: at place `y * 4 + x` of a block, the values of all blocks, which
/// are counted row by row. (Chroma has eight, Cb's on the left.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Lanes(pub [[i16; 16]; 16]);

/// Levels of the blocks of a macroblock, block by block, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Levels {
    /// Counted row by row.
    pub blocks: [[i16; 16]; 16],
    /// Bit i of each block: its level i is not zero.
    pub places: [u16; 16],
}

impl Levels {
    /// All are zero.
    pub const NONE: Levels = Levels { blocks: [[0; 16]; 16], places: [0; 16] };
}

/// What search has found to be the least for each part of a macroblock: four quarters, halves above each other, halves beside
/// each other, the whole, each a sum of absolute differences times [`KEY_UNIT`] with something added. The rest is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Keys(pub [u32; 12]);

impl Keys {
    /// Nothing yet.
    pub const NONE: Keys = Keys([u32::MAX; 12]);
}

/// What sums in [`Keys`] are multiplied by.
pub const KEY_UNIT: u32 = 128;

/// A block of 4 x 4 by each of its modes: predictions, row by row, and half of the sums of absolute values of their
/// Hadamard-transformed differences to the source. (There are nine modes; the last sums are not used.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Modes {
    /// By mode.
    pub predictions: [[u8; 16]; BLOCK_MODES as usize],
    /// By mode.
    pub sums: [u32; 12],
}

impl Modes {
    /// To be filled.
    pub const EMPTY: Modes = Modes { predictions: [[0; 16]; BLOCK_MODES as usize], sums: [0; 12] };
}

/// What coefficients are divided by: `level = ((|c| + bias) * factor) >> 16`, for each place of a block.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    /// Factors.
    pub factor: [u16; 16],
    /// What is added before.
    pub bias: [u16; 16],
}

/// Coefficients of sixteen blocks, as levels.
#[derive(Clone, Copy, Debug)]
pub struct Coefficients<'a> {
    /// The levels.
    pub levels: &'a Lanes,
    /// What they are multiplied by, place by place.
    pub factors: &'a [i16; 16],
    /// Constant parts that are known, instead of these.
    pub constant: Option<[i16; 16]>,
}

/// How an edge between two blocks is smoothed (8.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What the samples beside the edge may differ by.
    pub alpha: u8,
    /// What neighbours on one side may differ by.
    pub beta: u8,
    /// How far a sample is moved at most, for each quarter of the edge; none where it is left alone.
    pub limit: [Option<u8>; 4],
    /// Whether it is an edge of an intra macroblock, where up to three samples move, whatever the limits.
    pub is_strong: bool,
}

/// Codes a block of 4 x 4: source, prediction, divisions, factors of levels; what a decoder makes of it, and levels.
type CodeBlock = unsafe fn(&[u8; 16], &[u8; 16], &Division, &[i16; 16], &mut [u8; 16], &mut [i16; 16]) -> u16;

/// The kernels for one instruction set.
///
/// # Safety
/// All functions require that the processor executes the instruction set, which [`Kernels::new`] makes sure of. Pointers
/// are valid for what the function says it reads or writes; a stride is the distance of rows in bytes.
#[derive(Clone, Copy)]
pub struct Kernels {
    /// Which instruction set they are of.
    pub isa: Isa,
    /// Sums of absolute differences of a macroblock and what lies at the pointer: where those of a part, times [`KEY_UNIT`] and
    /// with what is added, are less than its key, they become its key.
    pub look: unsafe fn(&Samples, *const u8, usize, u32, &mut Keys),
    /// The sum of absolute differences of a macroblock and what lies at the pointer.
    pub sad: unsafe fn(&Samples, *const u8, usize) -> u32,
    /// Half of the sums of absolute values of the Hadamard-transformed (4 x 4) differences, of the four quarters, to the means,
    /// rounded up, of what lies at two pointers with one stride (which may be one).
    pub satd: unsafe fn(&Samples, [*const u8; 2], usize) -> [u32; 4],
    /// The same of one quarter, 8 x 8, whose samples are at the first pointer, rows 16 apart.
    pub satd_8: unsafe fn(*const u8, [*const u8; 2], usize) -> u32,
    /// Means of the samples at two pointers with one stride, rounded up: so many rows of 16 (or 8, if false) to rows 16 apart.
    pub mean: unsafe fn(*mut u8, *const u8, *const u8, usize, usize, bool),
    /// Samples at the first pointer become their means with those at the second, rounded up: so many rows of 16, 16 apart.
    pub average: unsafe fn(*mut u8, *const u8, usize),
    /// Copies so many rows of 16 (or 8, if false) to rows 16 apart.
    pub copy: unsafe fn(*mut u8, *const u8, usize, usize, bool),
    /// A row of the three half-sample planes (8.4.2.2.1): halves to the right, below, and both, of so many samples. Reads
    /// two samples and rows before and three behind. The scratch memory holds five values more than samples.
    pub halves: unsafe fn([*mut u8; 3], *const u8, usize, usize, &mut [i16]),
    /// Transformed differences of two macroblocks (8.5's transform, forward).
    pub transform: unsafe fn(&Samples, &Samples, &mut Lanes),
    /// Coefficients become levels; bit b is set where block b has one that is not zero.
    pub divide: unsafe fn(&mut Lanes, &Division) -> u16,
    /// Levels block by block.
    pub scan: unsafe fn(&Lanes, &mut Levels),
    /// Half of the sums of absolute values of the Hadamard-transformed differences of a macroblock to what is predicted from around it
    /// downwards, to the right, and as a mean; of a mode that is not possible, to anything.
    pub wholes: unsafe fn(&Samples, &Around<16>) -> [u32; 3],
    /// Luma of a macroblock by a mode that is possible, from what is around it (8.3.3).
    pub intra_luma: unsafe fn(Mode, &Around<16>, &mut Samples),
    /// A plane of its chroma, 8 columns from 0 or 8 on (8.3.4).
    pub intra_chroma: unsafe fn(Mode, &Around<8>, &mut Samples, usize),
    /// A block of 4 x 4, row by row, by all its modes, from what is around it (8.3.1.2); those that are not possible give anything.
    pub modes: unsafe fn(&[u8; 16], &Line, &mut Modes),
    /// A block of 4 x 4, row by row, and its prediction: what a decoder makes of it, its coefficients divided and their levels multiplied
    /// by these, and the levels in the order in which they are written; bit i is set where level i is not zero.
    pub code_block: CodeBlock,
    /// The inverse transform of coefficients, added to a prediction (8.5.12, 8.5.14).
    pub reconstruct: unsafe fn(Coefficients<'_>, &Samples, &mut Samples),
    /// Chroma samples between others (8.4.2.2.2): a block of 8 or 4 columns and as many rows from the pointer on, at eighths
    /// (x, y), to rows 16 apart. Reads one row and column more.
    pub chroma: unsafe fn(*mut u8, *const u8, usize, [u8; 2], usize),
    /// Smooths an edge of 16 luma samples at the pointer: true if the edge is between rows.
    pub smooth_luma: unsafe fn(*mut u8, usize, &Edge, bool),
    /// Smooths an edge of 8 chroma samples of both planes.
    pub smooth_chroma: unsafe fn([*mut u8; 2], usize, &Edge, bool),
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kernels for {}", self.isa)
    }
}

impl Kernels {
    /// Those for an instruction set, or for the plainest where this processor does not have it.
    pub fn new(isa: Isa) -> Kernels {
        #[cfg(target_arch = "x86_64")]
        if isa >= Isa::Avx2 && Isa::Avx2.is_supported() {
            return x86::kernels();
        }
        #[cfg(target_arch = "aarch64")]
        if isa == Isa::Neon {
            use std::arch::aarch64::int16x8x2_t;
            let (smooth_luma, smooth_chroma) =
                (portable::smooth_luma::<int16x8x2_t>, portable::smooth_chroma::<int16x8x2_t>);
            return Kernels { isa, smooth_luma, smooth_chroma, ..Kernels::new(Isa::Scalar) };
        }
        let _ = isa;
        Kernels {
            isa: Isa::Scalar,
            look: portable::look,
            sad: portable::sad,
            wholes: portable::wholes,
            intra_luma: portable::intra_luma,
            intra_chroma: portable::intra_chroma,
            modes: portable::modes,
            code_block: portable::code_block,
            satd: portable::satd,
            satd_8: portable::satd_8,
            mean: portable::mean,
            average: portable::average,
            copy: portable::copy,
            halves: portable::halves,
            transform: portable::transform,
            divide: portable::divide,
            scan: portable::scan,
            reconstruct: portable::reconstruct,
            chroma: portable::chroma,
            smooth_luma: portable::smooth_luma::<[i16; 16]>,
            smooth_chroma: portable::smooth_chroma::<[i16; 16]>,
        }
    }
}

#[cfg(test)]
mod tests;
