//! Counting a subtree: every leaf of it, with the boards of one register side by side.
//!
//! [`Kernel::Scalar`] is a search in depth with a look at the next rows. The others keep a frontier
//! (`frontier.rs`): a stack of nodes for each depth, from which whole registers of nodes are taken, so lanes are full
//! whatever the tree looks like. They differ in the registers (`turn.rs`) and give equal counts.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod frontier;
mod scalar;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod turn;

use crate::board::{Board, Node};
use multigrain::Abort;
use multigrain_simd::Isa;

/// Columns of boards that are kept in 16 bits.
const NARROW_COLUMNS: u32 = 16;

/// A way of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// One node at a time; runs everywhere.
    Scalar,
    /// Four boards of 32 bits in a register of NEON.
    Neon,
    /// Eight boards of up to 16 columns in a register of NEON.
    NeonNarrow,
    /// Eight boards of 32 bits in a register.
    Avx2,
    /// Sixteen boards of 32 bits in a register.
    Avx512,
    /// Thirty-two boards of up to 16 columns in a register; wants VBMI2 besides.
    Avx512Narrow,
}

impl Kernel {
    /// All of them, from the plainest to the widest.
    pub const ALL: [Kernel; 6] =
        [Kernel::Scalar, Kernel::Neon, Kernel::NeonNarrow, Kernel::Avx2, Kernel::Avx512, Kernel::Avx512Narrow];

    /// The widest for boards of these columns with an instruction set.
    #[must_use]
    pub fn of(isa: Isa, columns: u32) -> Kernel {
        match isa {
            Isa::Scalar => Kernel::Scalar,
            Isa::Neon if Kernel::NeonNarrow.counts(columns) => Kernel::NeonNarrow,
            Isa::Neon => Kernel::Neon,
            Isa::Avx2 => Kernel::Avx2,
            Isa::Avx512 if Kernel::Avx512Narrow.counts(columns) => Kernel::Avx512Narrow,
            Isa::Avx512 => Kernel::Avx512,
        }
    }

    /// Whether this processor executes it and boards of these columns fit.
    #[must_use]
    pub fn counts(self, columns: u32) -> bool {
        let is_narrow = columns >> NARROW_COLUMNS == 0;
        match self {
            Kernel::Scalar => true,
            Kernel::Neon => Isa::Neon.is_supported(),
            Kernel::NeonNarrow => is_narrow && Isa::Neon.is_supported(),
            Kernel::Avx2 => Isa::Avx2.is_supported(),
            Kernel::Avx512 => Isa::Avx512.is_supported(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Narrow => is_narrow && Isa::Avx512.is_supported() && is_x86_feature_detected!("avx512vbmi2"),
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx512Narrow => false,
        }
    }

    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Scalar => "scalar",
            Kernel::Neon => "neon, 4 boards",
            Kernel::NeonNarrow => "neon, 8 boards",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512 => "avx512, 16 boards",
            Kernel::Avx512Narrow => "avx512, 32 boards",
        }
    }
}

/// A kernel with the memory that it works in.
#[derive(Debug)]
pub struct Counter {
    kernel: Kernel,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    wide: frontier::Frontier<u32>,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    narrow: frontier::Frontier<u16>,
}

impl Counter {
    /// Memory for a kernel, which it takes as it needs it.
    #[must_use]
    pub fn new(kernel: Kernel) -> Counter {
        Counter {
            kernel,
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            wide: frontier::Frontier::default(),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            narrow: frontier::Frontier::default(),
        }
    }

    /// The ways to fill the rows of `board` below `node`; `None` if `abort` was raised meanwhile.
    ///
    /// # Panics
    /// Where the processor does not execute the kernel, or the board's columns do not fit it: see [`Kernel::counts`].
    pub fn count(&mut self, board: &Board, node: &Node, abort: &Abort) -> Option<u64> {
        // With a row left at most, the places are the solutions.
        match board.rows().len() - node.depth as usize {
            0 => return Some(1),
            1 => return Some(u64::from(board.places(node).count_ones())),
            _ => {}
        }
        let is_there = self.kernel.counts(board.columns());
        assert!(is_there, "this processor or these columns are not for {}", self.kernel.name());
        // Counts with a turn, compiled for an instruction set.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        macro_rules! turns {
            ($frontier:ident, $turn:ident) => {
                self.$frontier.count(board, node, abort, |from, to, take, rows| {
                    // SAFETY: the instruction set is supported, as was asked above.
                    unsafe { turn::$turn(from, to, take, rows) }
                })
            };
        }
        match self.kernel {
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => turns!(wide, neon),
            #[cfg(target_arch = "aarch64")]
            Kernel::NeonNarrow => turns!(narrow, neon_narrow),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => turns!(wide, avx2),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => turns!(wide, avx512),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Narrow => turns!(narrow, avx512_narrow),
            // Those of other processors have been refused.
            _ => scalar::count(board, node, abort),
        }
    }
}
