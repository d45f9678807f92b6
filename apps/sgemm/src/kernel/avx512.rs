//! AVX-512 F: a register tile of 14 rows by 32 columns, 28 accumulators of the 32 registers.
//!
//! Each step of k loads two vectors of B and broadcasts 14 elements of A, each of which feeds two fused
//! multiply-adds: 16 loads for 28 multiply-adds, within what both one unit (Zen 4) and two (Cascade Lake) can take.

use std::arch::x86_64::*;

use super::blocking::{Micro, Tile};
use super::pack;

/// See the module.
pub(super) struct Avx512;

const MR: usize = 14;
const NR: usize = 32;
/// Lanes of a vector.
const LANES: usize = 16;
/// Rows of B that are fetched ahead: 8 steps of 28 cycles on Zen 4, well over the latency of a second-level cache.
const AHEAD: usize = 8;

impl Micro for Avx512 {
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
                6 => rows::<6>(tile),
                7 => rows::<7>(tile),
                8 => rows::<8>(tile),
                9 => rows::<9>(tile),
                10 => rows::<10>(tile),
                11 => rows::<11>(tile),
                12 => rows::<12>(tile),
                13 => rows::<13>(tile),
                _ => rows::<14>(tile),
            }
        }
    }
}

/// # Safety
///
/// As [`Micro::tile`], with `R` the tile's rows.
#[target_feature(enable = "avx512f")]
unsafe fn rows<const R: usize>(tile: &Tile) {
    // SAFETY: the caller's promise.
    unsafe { if tile.columns == NR { product::<R, true>(tile) } else { product::<R, false>(tile) } }
}

/// The tile itself: a chain of fused multiply-adds for every element over the span, added to C at its end.
///
/// # Safety
///
/// As [`Micro::tile`], with `R` the tile's rows and `FULL` whether it has all NR columns.
#[target_feature(enable = "avx512f")]
unsafe fn product<const R: usize, const FULL: bool>(tile: &Tile) {
    let mask = if FULL { !0 } else { (1u32 << tile.columns) - 1 };
    let (mask0, mask1) = (mask as __mmask16, (mask >> LANES) as __mmask16);
    // SAFETY: every access is to row < R of C at columns under the masks, to k < depth of the panel of A, or to B at
    // columns under the masks; masked lanes are not accessed. Prefetches are hints and access nothing.
    unsafe {
        for line in 0..tile.ahead_lines {
            _mm_prefetch::<_MM_HINT_T1>(tile.ahead.wrapping_add(line * LANES).cast());
        }
        let (mut a, mut b) = (tile.a, tile.b);
        let mut t = [[_mm512_setzero_ps(); 2]; R];
        for kk in 0..tile.depth {
            // C comes from far away. One line at a time over the whole span: all at once would hold every miss buffer
            // that B needs. 16 steps for a row, 8 for each of its two or three lines.
            let c = tile.c.wrapping_add((kk / 16) * tile.ldc).cast::<u8>().wrapping_add((kk & 8) * 15);
            _mm_prefetch::<_MM_HINT_T0>(c.cast());
            let ahead = b.wrapping_add(AHEAD * tile.ldb);
            _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
            _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(LANES).cast());
            let (b0, b1) = if FULL {
                (_mm512_loadu_ps(b), _mm512_loadu_ps(b.add(LANES)))
            } else {
                (_mm512_maskz_loadu_ps(mask0, b), _mm512_maskz_loadu_ps(mask1, b.wrapping_add(LANES)))
            };
            for (r, t) in t.iter_mut().enumerate() {
                let x = _mm512_set1_ps(*a.add(r));
                t[0] = _mm512_fmadd_ps(x, b0, t[0]);
                t[1] = _mm512_fmadd_ps(x, b1, t[1]);
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

/// Adds one vector to C under `mask`, or replaces C by it; `last` makes NaNs canonical.
///
/// # Safety
///
/// AVX-512 F is available; the lanes of `c` under `mask` (all of them if `FULL`) are valid for reads and writes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store<const FULL: bool>(c: *mut f32, t: __m512, mask: __mmask16, overwrite: bool, last: bool) {
    // SAFETY: the caller's promise; masked lanes are not accessed.
    unsafe {
        let mut sum = t;
        if !overwrite {
            let old = if FULL { _mm512_loadu_ps(c) } else { _mm512_maskz_loadu_ps(mask, c) };
            sum = _mm512_add_ps(old, t);
        }
        if last {
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(sum, sum);
            sum = _mm512_mask_mov_ps(sum, nan, _mm512_set1_ps(f32::NAN));
        }
        if FULL { _mm512_storeu_ps(c, sum) } else { _mm512_mask_storeu_ps(c, mask, sum) }
    }
}

/// See [`Micro::pack_a`]: transposes 16 × 16 at a time; each stored vector writes two lanes too many, which the next
/// one replaces.
///
/// # Safety
///
/// As [`Micro::pack_a`].
#[target_feature(enable = "avx512f")]
unsafe fn pack_a(rows: usize, depth: usize, a: *const f32, lda: usize, to: *mut f32) {
    // SAFETY: rows < `rows` and columns < depth of A are read, under a mask at the end; the vectors written start at
    // kk * MR for kk < depth and so end at most at depth * MR + SLACK.
    unsafe {
        for k0 in (0..depth).step_by(LANES) {
            let columns = LANES.min(depth - k0);
            let mask = (!0u16) >> (LANES - columns);
            let mut x = [_mm512_setzero_ps(); LANES];
            if columns == LANES && rows == MR {
                for (r, x) in x.iter_mut().enumerate().take(MR) {
                    *x = _mm512_loadu_ps(a.add(r * lda + k0));
                }
            } else {
                for (r, x) in x.iter_mut().enumerate() {
                    if r < rows {
                        *x = _mm512_maskz_loadu_ps(mask, a.add(r * lda + k0));
                    }
                }
            }
            let x = transpose(x);
            let to = to.add(k0 * MR);
            if columns == LANES {
                for (c, &x) in x.iter().enumerate() {
                    _mm512_storeu_ps(to.add(c * MR), x);
                }
            } else {
                for (c, &x) in x.iter().enumerate() {
                    if c < columns {
                        _mm512_storeu_ps(to.add(c * MR), x);
                    }
                }
            }
        }
    }
}

/// Transposes a 16 × 16 matrix held in 16 vectors, in four steps of butterflies.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(x: [__m512; LANES]) -> [__m512; LANES] {
    let mut y = x;
    // Within pairs of rows, then within groups of four: 4 × 4 blocks of a 128-bit lane.
    for g in 0..4 {
        let g = 4 * g;
        let lo01 = _mm512_unpacklo_ps(x[g], x[g + 1]);
        let hi01 = _mm512_unpackhi_ps(x[g], x[g + 1]);
        let lo23 = _mm512_unpacklo_ps(x[g + 2], x[g + 3]);
        let hi23 = _mm512_unpackhi_ps(x[g + 2], x[g + 3]);
        y[g] = _mm512_shuffle_ps::<0b01_00_01_00>(lo01, lo23);
        y[g + 1] = _mm512_shuffle_ps::<0b11_10_11_10>(lo01, lo23);
        y[g + 2] = _mm512_shuffle_ps::<0b01_00_01_00>(hi01, hi23);
        y[g + 3] = _mm512_shuffle_ps::<0b11_10_11_10>(hi01, hi23);
    }
    // y[4g + c] holds, in lane l, rows 4g.. of column 4l + c. Exchange lanes between the four groups.
    let mut z = y;
    for c in 0..4 {
        let lo01 = _mm512_shuffle_f32x4::<0b10_00_10_00>(y[c], y[4 + c]);
        let hi01 = _mm512_shuffle_f32x4::<0b11_01_11_01>(y[c], y[4 + c]);
        let lo23 = _mm512_shuffle_f32x4::<0b10_00_10_00>(y[8 + c], y[12 + c]);
        let hi23 = _mm512_shuffle_f32x4::<0b11_01_11_01>(y[8 + c], y[12 + c]);
        z[c] = _mm512_shuffle_f32x4::<0b10_00_10_00>(lo01, lo23);
        z[4 + c] = _mm512_shuffle_f32x4::<0b10_00_10_00>(hi01, hi23);
        z[8 + c] = _mm512_shuffle_f32x4::<0b11_01_11_01>(lo01, lo23);
        z[12 + c] = _mm512_shuffle_f32x4::<0b11_01_11_01>(hi01, hi23);
    }
    z
}

/// See [`Micro::pack_b`].
///
/// # Safety
///
/// As [`Micro::pack_b`].
#[target_feature(enable = "avx512f")]
unsafe fn pack_b(depth: usize, columns: usize, b: *const f32, ldb: usize, to: *mut f32) {
    // SAFETY: the caller's promise; `copy` is given rows < depth and columns < `columns`.
    unsafe {
        pack::panels_b::<NR>(depth, columns, b, ldb, to, |from, to| {
            _mm512_store_ps(to, _mm512_loadu_ps(from));
            _mm512_store_ps(to.add(LANES), _mm512_loadu_ps(from.add(LANES)));
        });
    }
}
