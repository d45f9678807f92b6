//! AVX2 with FMA: a register tile of 6 rows by 16 columns, 12 accumulators of the 16 registers.

use std::arch::x86_64::*;

use super::blocking::{Micro, Tile};
use super::pack;

/// See the module.
pub(super) struct Avx2;

const MR: usize = 6;
const NR: usize = 16;
/// Lanes of a vector.
const LANES: usize = 8;
/// Rows of B that are fetched ahead, by about the latency of a second-level cache.
const AHEAD: usize = 8;

impl Micro for Avx2 {
    const MR: usize = MR;
    const NR: usize = NR;

    unsafe fn pack_a(rows: usize, depth: usize, a: *const f32, lda: usize, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { pack_a(rows, depth, a, lda, to) }
    }

    unsafe fn pack_b(depth: usize, columns: usize, b: *const f32, ldb: usize, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { pack_b(depth, columns, b, ldb, to) }
    }

    unsafe fn tile(tile: &Tile) {
        // SAFETY: the caller's promise.
        unsafe {
            match tile.rows {
                1 => rows::<1>(tile),
                2 => rows::<2>(tile),
                3 => rows::<3>(tile),
                4 => rows::<4>(tile),
                5 => rows::<5>(tile),
                _ => rows::<6>(tile),
            }
        }
    }
}

/// # Safety
///
/// As [`Micro::tile`], with `R` the tile's rows.
#[target_feature(enable = "avx2,fma")]
unsafe fn rows<const R: usize>(tile: &Tile) {
    // SAFETY: the caller's promise.
    unsafe { if tile.columns == NR { product::<R, true>(tile) } else { product::<R, false>(tile) } }
}

/// The tile itself: a chain of fused multiply-adds for every element over the span, added to C at its end.
///
/// # Safety
///
/// As [`Micro::tile`], with `R` the tile's rows and `FULL` whether it has all NR columns.
#[target_feature(enable = "avx2,fma")]
unsafe fn product<const R: usize, const FULL: bool>(tile: &Tile) {
    let (mask0, mask1) = (lanes(tile.columns), lanes(tile.columns.saturating_sub(LANES)));
    // SAFETY: every access is to row < R of C at columns under the masks, to k < depth of the panel of A, or to B at
    // columns under the masks; masked lanes are not accessed. Prefetches are hints and access nothing.
    unsafe {
        for line in 0..tile.ahead_lines {
            _mm_prefetch::<_MM_HINT_T1>(tile.ahead.wrapping_add(line * 2 * LANES).cast());
        }
        for r in 0..R {
            let c = tile.c.wrapping_add(r * tile.ldc);
            _mm_prefetch::<_MM_HINT_T0>(c.cast());
            _mm_prefetch::<_MM_HINT_T0>(c.wrapping_add(NR - 1).cast());
        }
        let (mut a, mut b) = (tile.a, tile.b);
        let mut t = [[_mm256_setzero_ps(); 2]; R];
        for _ in 0..tile.depth {
            _mm_prefetch::<_MM_HINT_T0>(b.wrapping_add(AHEAD * tile.ldb).cast());
            let (b0, b1) = if FULL {
                (_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(LANES)))
            } else {
                (_mm256_maskload_ps(b, mask0), _mm256_maskload_ps(b.wrapping_add(LANES), mask1))
            };
            for (r, t) in t.iter_mut().enumerate() {
                let x = _mm256_set1_ps(*a.add(r));
                t[0] = _mm256_fmadd_ps(x, b0, t[0]);
                t[1] = _mm256_fmadd_ps(x, b1, t[1]);
            }
            a = a.add(MR);
            b = b.wrapping_add(tile.ldb);
        }
        for (r, t) in t.iter().enumerate() {
            let c = tile.c.add(r * tile.ldc);
            store::<FULL>(c, t[0], mask0, tile.overwrite, tile.last);
            store::<FULL>(c.wrapping_add(LANES), t[1], mask1, tile.overwrite, tile.last);
        }
    }
}

/// The mask of the first `count` lanes; all of them from 8 on.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn lanes(count: usize) -> __m256i {
    _mm256_cmpgt_epi32(_mm256_set1_epi32(count.min(LANES) as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
}

/// Adds one vector to C under `mask`, or replaces C by it; `last` makes NaNs canonical.
///
/// # Safety
///
/// AVX2 is available; the lanes of `c` under `mask` (all of them if `FULL`) are valid for reads and writes.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn store<const FULL: bool>(c: *mut f32, t: __m256, mask: __m256i, overwrite: bool, last: bool) {
    // SAFETY: the caller's promise; masked lanes are not accessed.
    unsafe {
        let mut sum = t;
        if !overwrite {
            let old = if FULL { _mm256_loadu_ps(c) } else { _mm256_maskload_ps(c, mask) };
            sum = _mm256_add_ps(old, t);
        }
        if last {
            let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(sum, sum);
            sum = _mm256_blendv_ps(sum, _mm256_set1_ps(f32::NAN), nan);
        }
        if FULL { _mm256_storeu_ps(c, sum) } else { _mm256_maskstore_ps(c, mask, sum) }
    }
}

/// See [`Micro::pack_a`]: transposes 8 × 8 at a time; each stored vector writes two lanes too many, which the next
/// one replaces.
///
/// # Safety
///
/// As [`Micro::pack_a`].
#[target_feature(enable = "avx2,fma")]
unsafe fn pack_a(rows: usize, depth: usize, a: *const f32, lda: usize, to: *mut f32) {
    // SAFETY: rows < `rows` and columns < depth of A are read, under a mask at the end; the vectors written start at
    // kk * MR for kk < depth and so end at most at depth * MR + SLACK.
    unsafe {
        for k0 in (0..depth).step_by(LANES) {
            let columns = LANES.min(depth - k0);
            let mask = lanes(columns);
            let mut x = [_mm256_setzero_ps(); LANES];
            for (r, x) in x.iter_mut().enumerate().take(MR) {
                if r < rows {
                    *x = _mm256_maskload_ps(a.add(r * lda + k0), mask);
                }
            }
            let x = transpose(x);
            let to = to.add(k0 * MR);
            for (c, &x) in x.iter().enumerate() {
                if c < columns {
                    _mm256_storeu_ps(to.add(c * MR), x);
                }
            }
        }
    }
}

/// Transposes an 8 × 8 matrix held in 8 vectors.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn transpose(x: [__m256; LANES]) -> [__m256; LANES] {
    let mut y = x;
    for g in [0, 4] {
        let lo01 = _mm256_unpacklo_ps(x[g], x[g + 1]);
        let hi01 = _mm256_unpackhi_ps(x[g], x[g + 1]);
        let lo23 = _mm256_unpacklo_ps(x[g + 2], x[g + 3]);
        let hi23 = _mm256_unpackhi_ps(x[g + 2], x[g + 3]);
        y[g] = _mm256_shuffle_ps::<0b01_00_01_00>(lo01, lo23);
        y[g + 1] = _mm256_shuffle_ps::<0b11_10_11_10>(lo01, lo23);
        y[g + 2] = _mm256_shuffle_ps::<0b01_00_01_00>(hi01, hi23);
        y[g + 3] = _mm256_shuffle_ps::<0b11_10_11_10>(hi01, hi23);
    }
    let mut z = y;
    for c in 0..4 {
        z[c] = _mm256_permute2f128_ps::<0x20>(y[c], y[4 + c]);
        z[4 + c] = _mm256_permute2f128_ps::<0x31>(y[c], y[4 + c]);
    }
    z
}

/// See [`Micro::pack_b`].
///
/// # Safety
///
/// As [`Micro::pack_b`].
#[target_feature(enable = "avx2,fma")]
unsafe fn pack_b(depth: usize, columns: usize, b: *const f32, ldb: usize, to: *mut f32) {
    // SAFETY: the caller's promise; `copy` is given rows < depth and columns < `columns`.
    unsafe {
        pack::panels_b::<NR>(depth, columns, b, ldb, to, |from, to| {
            _mm256_store_ps(to, _mm256_loadu_ps(from));
            _mm256_store_ps(to.add(LANES), _mm256_loadu_ps(from.add(LANES)));
        });
    }
}
