//! How vectors and matrices lie in memory.

use multigrain_simd::DOUBLES;

/// Eight doubles on a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [f64; DOUBLES]);

/// States that are computed together: four sums, so that the latency of a multiply-add is covered by two operands.
pub(super) const TILE: usize = 4;

/// Where entry (i, j) of a matrix of n states lies: `[i / 4][j][i % 4]`.
pub(super) fn matrix_index(n: usize, i: usize, j: usize) -> usize {
    (i / TILE * n + j) * TILE + i % TILE
}
