//! How deep particles lie in the wells of others: sums of m / sqrt(d^2 + eps^2) in double precision.
//!
//! Every target has one chain over the sources in their order, continued from block to block, so neither blocks nor
//! vectors show in the bits: lanes are targets, and each operation is a correctly rounded one that no instruction set
//! contracts. Sources at the very place of a target, itself among them, are no part of that sum: their masses are added
//! up beside it, so that who knows the target's own mass can tell what the others do.

use multigrain::prelude::{View, ViewMut};
use multigrain_simd::{Isa, dispatch};

/// Row of the depths.
pub const DEPTH: usize = 0;
/// Row of the masses at the very place of the target, its own among them.
pub const COINCIDENT: usize = 1;
/// Rows of the wells.
pub const WELL_ROWS: usize = 2;

/// Targets that are computed at once: a vector of AVX-512, two of AVX2.
const LANES: usize = 8;

/// Adds the wells of `sources` (1 x m x 7, as in snapshots) at the places of `targets` (1 x n x 7) to `wells` (2 x n).
///
/// # Panics
/// When the processor does not execute `isa`, or there are not as many wells as targets.
pub fn wells(
    isa: Isa,
    softening2: f64,
    sources: &View<'_, f64, 3>,
    targets: &View<'_, f64, 3>,
    wells: &mut ViewMut<'_, f64, 2>,
) {
    assert!(isa.is_supported() && wells.shape() == [WELL_ROWS, targets.len(1)], "wells of the targets, {isa}");
    #[allow(unused_unsafe)] // Where no other instruction set is known, nothing in it is.
    // SAFETY: the processor executes these instructions, as asserted.
    unsafe {
        dispatch!(
            isa,
            (softening2: f64, sources: &View<'_, f64, 3>, targets: &View<'_, f64, 3>, wells: &mut ViewMut<'_, f64, 2>) => {
                Scalar: plain, Neon: plain, Avx2: plain, Avx512: plain
            }
        );
    }
}

#[inline(always)]
fn plain(softening2: f64, sources: &View<'_, f64, 3>, targets: &View<'_, f64, 3>, wells: &mut ViewMut<'_, f64, 2>) {
    let n = targets.len(1);
    for first in (0..n).step_by(LANES) {
        let lanes = LANES.min(n - first);
        // Lanes beyond the last target compute something that nobody takes.
        let mut at = [[0.0; LANES]; 3];
        let (mut depth, mut coincident) = ([0.0; LANES], [0.0; LANES]);
        for (d, row) in at.iter_mut().enumerate() {
            for (lane, place) in row.iter_mut().enumerate().take(lanes) {
                *place = targets.row(&[0, first + lane])[1 + d];
            }
        }
        depth[..lanes].copy_from_slice(&wells.row_mut(&[DEPTH])[first..first + lanes]);
        coincident[..lanes].copy_from_slice(&wells.row_mut(&[COINCIDENT])[first..first + lanes]);
        for j in 0..sources.len(1) {
            let source = sources.row(&[0, j]);
            let (mass, x, y, z) = (source[0], source[1], source[2], source[3]);
            for lane in 0..LANES {
                let (dx, dy, dz) = (x - at[0][lane], y - at[1][lane], z - at[2][lane]);
                let r2 = dx * dx + dy * dy + dz * dz;
                let here = r2 == 0.0;
                // Without a distance there is nothing to divide by. The choice comes before the root, so that it is one
                // of vectors.
                let squared = if here { 1.0 } else { r2 + softening2 };
                depth[lane] += (if here { 0.0 } else { mass }) / squared.sqrt();
                coincident[lane] += if here { mass } else { 0.0 };
            }
        }
        wells.row_mut(&[DEPTH])[first..first + lanes].copy_from_slice(&depth[..lanes]);
        wells.row_mut(&[COINCIDENT])[first..first + lanes].copy_from_slice(&coincident[..lanes]);
    }
}
