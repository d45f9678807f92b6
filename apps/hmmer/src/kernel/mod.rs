//! The leaf kernel: Viterbi and Forward scores of sequences against a profile, in local multihit mode.
//!
//! # The result is defined to the bit
//!
//! The recurrences are those of HMMER3's profile (see [`reference`]), on probabilities and odds ratios in single
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
mod vector;

#[cfg(test)]
mod tests;

pub use reference::reference;
pub use tables::{CODES_PADDED, NODE_FLOATS, Node, pack};

use batch::{LANES_MAX, STATES, Work};
use multigrain_simd::Isa;

/// The scores of one sequence, in nats, relative to the background's emissions; null1 is not subtracted. Minus infinity
/// when no alignment is possible.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores {
    /// The most probable alignment.
    pub viterbi: f64,
    /// The sum over all alignments.
    pub forward: f64,
}

/// Sequences that are scored at the same time.
pub fn lanes(isa: Isa) -> usize {
    match isa {
        Isa::Scalar => 1,
        Isa::Avx2 => 8,
        Isa::Avx512 => 16,
    }
}

/// Numbers of scratch memory that [`score`] needs for a profile of `nodes` nodes.
pub fn scratch_floats(isa: Isa, nodes: usize) -> usize {
    STATES * nodes * lanes(isa)
}

/// Scores sequences, whose residue codes lie one after the other in `residues`; sequence `i` goes from
/// `offsets[i] - offsets[0]` to `offsets[i + 1] - offsets[0]`. `tables` are those that [`pack`] made.
///
/// # Panics
/// When the processor does not support the instruction set, a code is 32 or greater, or a slice is too short.
pub fn score(isa: Isa, tables: &[f32], residues: &[u8], offsets: &[u64], scratch: &mut [f32], scores: &mut [Scores]) {
    assert!(isa.is_supported(), "{isa} is not supported here");
    let nodes = tables.len() / NODE_FLOATS;
    assert!(tables.len() == nodes * NODE_FLOATS && nodes > 0, "{} floats are no tables", tables.len());
    assert!(scratch.len() >= scratch_floats(isa, nodes), "{} floats of scratch memory", scratch.len());
    assert!(offsets.len() == scores.len() + 1 && offsets.is_sorted(), "{} offsets", offsets.len());
    assert!(offsets[scores.len()] - offsets[0] <= residues.len() as u64, "{} residues", residues.len());
    // Every residue is looked at once here, and hundreds of times below.
    assert!(residues.iter().all(|&x| usize::from(x) < CODES_PADDED), "a residue code is too large");
    let work = Work { tables, nodes, residues, offsets };
    // SAFETY: the instruction set, the lengths and the codes were checked.
    unsafe {
        match isa {
            Isa::Scalar => batch::score::<f32>(work, scratch, scores),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => score_avx2(work, scratch, scores),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => score_avx512(work, scratch, scores),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => unreachable!("not supported on this architecture"),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn score_avx2(work: Work<'_>, scratch: &mut [f32], scores: &mut [Scores]) {
    // SAFETY: the caller has checked lengths and codes; the instruction set is enabled here.
    unsafe { batch::score::<std::arch::x86_64::__m256>(work, scratch, scores) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
fn score_avx512(work: Work<'_>, scratch: &mut [f32], scores: &mut [Scores]) {
    // SAFETY: as above.
    unsafe { batch::score::<std::arch::x86_64::__m512>(work, scratch, scores) }
}

const _: () = assert!(LANES_MAX >= 16);
