//! The leaf kernel: Viterbi and Forward scores of sequences against a profile, in local multihit mode.
//!
//! # The result is defined to the bit
//!
//! The recurrences are those of HMMER3's profile (see [`reference()`]), on probabilities and odds ratios in single
//! precision, every multiplication, addition and fused multiply-add rounded once, in the order of the innermost loop of
//! `batch.rs`. A sequence's numbers are scaled by powers of two when its C grows beyond 2^60, which loses no bit. A
//! sequence has a lane of the vector for itself, so no sum runs across lanes, and neither the width of the vector nor
//! the sequences in the other lanes change a bit. Both scores are ln(C / scale) in double precision.
//!
//! Viterbi is computed on products too, not on sums of logarithms: in single precision a logarithm of several hundred
//! has lost the digits that count, a product has not.
//!
//! # How it is fast
//!
//! One sequence a lane needs no shuffles and no correction pass for the delete states, which run along the profile
//! within a row. The odds ratios of 16 residues are one table lookup in registers. When a sequence ends, the next one
//! takes its lane; sequences in order of length leave few lanes idle at the end of a batch. Rognes, "Faster
//! Smith-Waterman database searches with inter-sequence SIMD parallelisation" (BMC Bioinformatics 12:221, 2011),
//! describes the idea.

mod batch;
mod reference;
mod tables;

#[cfg(test)]
mod tests;

pub use reference::{reference, reference_domain};
pub use tables::{CODES_PADDED, NODE_FLOATS, pack};

use batch::{STATES, Work};
use multigrain_simd::{Isa, TABLE, dispatch};

const _: () = assert!(CODES_PADDED == TABLE, "tables are looked up by five bits");

/// The scores of one sequence, in nats, relative to the background's emissions; null1 is not subtracted. Minus infinity
/// when no alignment is possible.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores {
    /// The most probable alignment.
    pub viterbi: f64,
    /// The sum over all alignments.
    pub forward: f64,
}

impl From<[f64; 2]> for Scores {
    fn from([viterbi, forward]: [f64; 2]) -> Scores {
        Scores { viterbi, forward }
    }
}

/// Sequences that are scored at the same time.
pub fn lanes(isa: Isa) -> usize {
    match isa {
        Isa::Scalar => 1,
        Isa::Neon => 4,
        Isa::Avx2 => 8,
        Isa::Avx512 => 16,
    }
}

/// Bytes of scratch memory that [`score`] needs for `sequences` sequences and a profile of `nodes` nodes.
pub fn scratch_bytes(isa: Isa, nodes: usize, sequences: usize) -> usize {
    4 * (STATES * nodes * lanes(isa) + sequences)
}

/// Scores sequences, whose residue codes lie one after the other in `residues`; sequence `i` goes from
/// `offsets[i] - offsets[0]` to `offsets[i + 1] - offsets[0]`. `tables` are those that [`pack`] made. The results of
/// sequence `i` are `scores[i]`, Viterbi and Forward as [`Scores`] has them.
///
/// # Panics
/// When the processor does not support the instruction set, a code is 32 or greater, a slice is too short, or `scratch`
/// is not aligned to 4 bytes.
pub fn score(isa: Isa, tables: &[f32], residues: &[u8], offsets: &[u64], scratch: &mut [u8], scores: &mut [[f64; 2]]) {
    assert!(isa.is_supported(), "{isa} is not supported here");
    let nodes = tables.len() / NODE_FLOATS;
    assert!(tables.len() == nodes * NODE_FLOATS && nodes > 0, "{} floats are no tables", tables.len());
    let sequences = scores.len();
    assert!(offsets.len() == sequences + 1 && offsets.is_sorted(), "{} offsets", offsets.len());
    assert!(offsets[sequences] - offsets[0] <= residues.len() as u64, "{} residues", residues.len());
    // Every residue is looked at once here, and hundreds of times below.
    assert!(residues.iter().all(|&x| usize::from(x) < CODES_PADDED), "a residue code is too large");
    assert!(scratch.len() >= scratch_bytes(isa, nodes, sequences), "{} bytes of scratch memory", scratch.len());
    let (states, order) = scratch.split_at_mut(4 * STATES * nodes * lanes(isa));
    // SAFETY: any bits are a float, and a u32.
    let ((before, states, _), (_, order, _)) = unsafe { (states.align_to_mut::<f32>(), order.align_to_mut::<u32>()) };
    assert!(before.is_empty(), "scratch memory is not aligned");
    let order = &mut order[..sequences];
    order.iter_mut().zip(0..).for_each(|(order, i)| *order = i);
    let length = |i: u32| offsets[i as usize + 1] - offsets[i as usize];
    // The longest first, so that lanes end at about the same time.
    order.sort_unstable_by_key(|&i| (std::cmp::Reverse(length(i)), i));
    let work = Work { tables, nodes, residues, offsets, order };
    // SAFETY: the instruction set, the lengths and the codes were checked.
    unsafe {
        dispatch!(isa, (work: Work<'_>, states: &mut [f32], scores: &mut [[f64; 2]]) => {
            Scalar: batch::score::<f32>,
            Neon: batch::score::<std::arch::aarch64::float32x4_t>,
            Avx2: batch::score::<std::arch::x86_64::__m256>,
            Avx512: batch::score::<std::arch::x86_64::__m512>,
        });
    }
}
