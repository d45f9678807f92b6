//! Counting a subtree: every leaf of it, with the boards of one register side by side.
//!
//! [`Kernel::Scalar`] is a search in depth with a look at the next rows. The others keep a frontier
//! (`frontier.rs`): a stack of nodes for each depth, from which whole registers of nodes are taken, so lanes are full
//! whatever the tree looks like. They differ in the registers (`turn.rs`) and give equal counts.

#[cfg(target_arch = "x86_64")]
mod frontier;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod turn;

use crate::board::{Board, Node};
use multigrain::Abort;
use multigrain_simd::Isa;

/// Columns of boards that are kept in 16 bits.
#[cfg(target_arch = "x86_64")]
const NARROW_COLUMNS: u32 = 16;

/// A way of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// One node at a time; runs everywhere.
    Scalar,
    /// Eight boards of 32 bits in a register.
    Avx2,
    /// Sixteen boards of 32 bits in a register.
    Avx512,
    /// Thirty-two boards of up to 16 columns in a register; wants VBMI2 besides.
    Avx512Narrow,
}

impl Kernel {
    /// All of them, from the plainest to the widest.
    pub const ALL: [Kernel; 4] = [Kernel::Scalar, Kernel::Avx2, Kernel::Avx512, Kernel::Avx512Narrow];

    /// The widest for boards of these columns with an instruction set.
    #[must_use]
    pub fn of(isa: Isa, columns: u32) -> Kernel {
        match isa {
            Isa::Scalar | Isa::Neon => Kernel::Scalar,
            Isa::Avx2 => Kernel::Avx2,
            Isa::Avx512 if Kernel::Avx512Narrow.counts(columns) => Kernel::Avx512Narrow,
            Isa::Avx512 => Kernel::Avx512,
        }
    }

    /// Whether this processor executes it and boards of these columns fit.
    #[must_use]
    pub fn counts(self, columns: u32) -> bool {
        match self {
            Kernel::Scalar => true,
            Kernel::Avx2 => Isa::Avx2.is_supported(),
            Kernel::Avx512 => Isa::Avx512.is_supported(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Narrow => {
                columns >> NARROW_COLUMNS == 0 && Isa::Avx512.is_supported() && is_x86_feature_detected!("avx512vbmi2")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx512Narrow => {
                let _ = columns;
                false
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn must_count(self, board: &Board) {
        assert!(self.counts(board.columns()), "this processor or these columns are not for {}", self.name());
    }

    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Scalar => "scalar",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512 => "avx512, 16 boards",
            Kernel::Avx512Narrow => "avx512, 32 boards",
        }
    }
}

/// A kernel with the memory that it works in.
#[derive(Debug)]
pub struct Counter(Inner);

#[derive(Debug)]
enum Inner {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(frontier::Frontier<u32>),
    #[cfg(target_arch = "x86_64")]
    Avx512(frontier::Frontier<u32>),
    #[cfg(target_arch = "x86_64")]
    Avx512Narrow(frontier::Frontier<u16>),
}

impl Counter {
    /// Memory for a kernel.
    #[must_use]
    pub fn new(kernel: Kernel) -> Counter {
        Counter(match kernel {
            Kernel::Scalar => Inner::Scalar,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => Inner::Avx2(frontier::Frontier::default()),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => Inner::Avx512(frontier::Frontier::default()),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Narrow => Inner::Avx512Narrow(frontier::Frontier::default()),
            #[cfg(not(target_arch = "x86_64"))]
            _ => Inner::Scalar,
        })
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
        match &mut self.0 {
            Inner::Scalar => scalar::count(board, node, abort),
            #[cfg(target_arch = "x86_64")]
            Inner::Avx2(frontier) => {
                Kernel::Avx2.must_count(board);
                // SAFETY: the instruction set is supported.
                frontier.count(board, node, abort, |from, to, take, rows| unsafe { turn::avx2(from, to, take, rows) })
            }
            #[cfg(target_arch = "x86_64")]
            Inner::Avx512(frontier) => {
                Kernel::Avx512.must_count(board);
                // SAFETY: the instruction set is supported.
                frontier.count(board, node, abort, |from, to, take, rows| unsafe { turn::avx512(from, to, take, rows) })
            }
            #[cfg(target_arch = "x86_64")]
            Inner::Avx512Narrow(frontier) => {
                Kernel::Avx512Narrow.must_count(board);
                // SAFETY: the instruction sets are supported.
                frontier.count(board, node, abort, |from, to, take, rows| unsafe { turn::narrow(from, to, take, rows) })
            }
        }
    }
}
