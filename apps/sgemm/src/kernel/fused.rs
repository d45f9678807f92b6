//! The register tile, written once for all vectors: some rows by two vectors of columns, whose sums stay in registers for a
//! whole span.
//!
//! AVX2 has 16 registers, of which the sums of 6 rows take 12. AVX-512 and NEON have 32, of which those of 14 rows take 28:
//! each step of k loads two vectors of B and broadcasts 14 elements of A, each of which feeds two fused multiply-adds, 16
//! loads for 28 multiply-adds, within what both one unit (Zen 4) and two (Cascade Lake) can take.

use super::blocking::{LINE, Micro, Tile};
use super::pack;
use multigrain_simd::{Lanes, compiled};

/// Rows of B that are fetched ahead: 8 steps of 28 cycles on Zen 4, well over the latency of a second-level cache.
const AHEAD: usize = 8;

/// A tile of `$most` rows, compiled for an instruction set: `$rows` are all smaller numbers of rows. `$spread` is whether
/// the lines of C are fetched over the whole span.
macro_rules! micro {
    ($set:ident, $vector:ty, $most:literal after $($rows:literal)+, $spread:literal) => {
        /// See the module.
        pub(super) struct $set;

        impl Micro for $set {
            const MR: usize = $most;
            const NR: usize = 2 * <$vector>::LANES;

            compiled! { $set:
                fn pack_a(rows: usize, depth: usize, a: *const f32, lda: usize, to: *mut f32) {
                    pack_a::<$vector, $most>(rows, depth, a, lda, to)
                }

                fn pack_b(depth: usize, columns: usize, b: *const f32, ldb: usize, to: *mut f32) {
                    // `copy` is given rows < depth and columns < `columns`.
                    pack::panels_b::<{ 2 * <$vector>::LANES }>(depth, columns, b, ldb, to, |from, to| {
                        <$vector>::load(from).store(to);
                        <$vector>::load(from.add(<$vector>::LANES)).store(to.add(<$vector>::LANES));
                    });
                }
            }

            unsafe fn tile(tile: &Tile) {
                compiled! { $set:
                    fn rows<const R: usize>(tile: &Tile) {
                        match tile.columns == $set::NR {
                            true => product::<$vector, R, $most, true, $spread>(tile),
                            false => product::<$vector, R, $most, false, $spread>(tile),
                        }
                    }
                }
                // SAFETY: the caller's promise.
                unsafe {
                    match tile.rows {
                        $($rows => rows::<$rows>(tile),)+
                        _ => rows::<$most>(tile),
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "aarch64")]
micro!(Neon, std::arch::aarch64::float32x4_t, 14 after 1 2 3 4 5 6 7 8 9 10 11 12 13, false);
#[cfg(target_arch = "x86_64")]
micro!(Avx2, std::arch::x86_64::__m256, 6 after 1 2 3 4 5, false);
#[cfg(target_arch = "x86_64")]
micro!(Avx512, std::arch::x86_64::__m512, 14 after 1 2 3 4 5 6 7 8 9 10 11 12 13, true);

/// The tile itself: a chain of fused multiply-adds for every element over the span, added to C at its end.
///
/// # Safety
///
/// As [`Micro::tile`], with `R` the tile's rows and `FULL` whether it has all columns.
#[inline(always)]
unsafe fn product<V: Lanes, const R: usize, const MR: usize, const FULL: bool, const SPREAD: bool>(tile: &Tile) {
    // SAFETY: every access is to row < R of C at columns under the masks, to k < depth of the panel of A, or to B at
    // columns under the masks; masked lanes are not accessed. Prefetches are hints and access nothing.
    unsafe {
        let mask0 = V::mask(0, tile.columns.min(V::LANES));
        let mask1 = V::mask(0, tile.columns.saturating_sub(V::LANES));
        for line in 0..tile.ahead_lines {
            V::prefetch(tile.ahead.wrapping_add(line * LINE));
        }
        if !SPREAD {
            for r in 0..R {
                let c = tile.c.wrapping_add(r * tile.ldc);
                V::prefetch_near(c);
                V::prefetch_near(c.wrapping_add(2 * V::LANES - 1));
            }
        }
        let (mut a, mut b) = (tile.a, tile.b);
        let mut t = [[V::splat(0.0); 2]; R];
        for kk in 0..tile.depth {
            if SPREAD {
                // C comes from far away. One line at a time over the whole span: all at once would hold every miss buffer
                // that B needs. 16 steps for a row, 8 for each of its two or three lines.
                let c = tile.c.wrapping_add((kk / 16) * tile.ldc).cast::<u8>().wrapping_add((kk & 8) * 15);
                V::prefetch_near(c.cast());
            }
            let ahead = b.wrapping_add(AHEAD * tile.ldb);
            for line in (0..2 * V::LANES).step_by(LINE) {
                V::prefetch_near(ahead.wrapping_add(line));
            }
            let (b0, b1) = match FULL {
                true => (V::load(b), V::load(b.add(V::LANES))),
                false => (V::load_masked(mask0, b), V::load_masked(mask1, b.wrapping_add(V::LANES))),
            };
            for (r, t) in t.iter_mut().enumerate() {
                let x = V::splat(*a.add(r));
                t[0] = t[0].fma(x, b0);
                t[1] = t[1].fma(x, b1);
            }
            a = a.add(MR);
            b = b.wrapping_add(tile.ldb);
        }
        for (r, t) in t.iter().enumerate() {
            let c = tile.c.add(r * tile.ldc);
            store::<V, FULL>(c, t[0], mask0, tile.overwrite, tile.last);
            store::<V, FULL>(c.wrapping_add(V::LANES), t[1], mask1, tile.overwrite, tile.last);
        }
    }
}

/// Adds one vector to C under `mask`, or replaces C by it; `last` makes NaNs canonical.
///
/// # Safety
///
/// The instruction set is available; the lanes of `c` under `mask` (all of them if `FULL`) are valid for reads and writes.
#[inline(always)]
unsafe fn store<V: Lanes, const FULL: bool>(c: *mut f32, t: V, mask: V::Mask, overwrite: bool, last: bool) {
    // SAFETY: the caller's promise; masked lanes are not accessed.
    unsafe {
        let mut sum = t;
        if !overwrite {
            let old = if FULL { V::load(c) } else { V::load_masked(mask, c) };
            sum = old.add(t);
        }
        if last {
            sum = sum.canonical();
        }
        if FULL { sum.store(c) } else { sum.store_masked(mask, c) }
    }
}

/// See [`Micro::pack_a`]: transposes squares; each stored vector writes two lanes too many, which the next one replaces.
///
/// # Safety
///
/// As [`Micro::pack_a`].
#[inline(always)]
unsafe fn pack_a<V: Lanes, const MR: usize>(rows: usize, depth: usize, a: *const f32, lda: usize, to: *mut f32) {
    // SAFETY: rows < `rows` and columns < depth of A are read, under a mask at the end; the vectors written start at
    // kk * MR for kk < depth and so end at most at depth * MR + SLACK.
    unsafe {
        for k0 in (0..depth).step_by(V::LANES) {
            let columns = V::LANES.min(depth - k0);
            let mask = V::mask(0, columns);
            // The last rows first: what they write too much is of the first ones.
            for group in (0..MR.div_ceil(V::LANES)).rev() {
                let (r0, mut x) = (group * V::LANES, [V::splat(0.0); 16]);
                let from = |r: usize| a.wrapping_add((r0 + r) * lda + k0);
                if columns == V::LANES && rows == MR {
                    for (r, x) in x[..V::LANES].iter_mut().enumerate() {
                        if r0 + r < MR {
                            *x = V::load(from(r));
                        }
                    }
                } else {
                    for (r, x) in x[..V::LANES].iter_mut().enumerate() {
                        if r0 + r < rows {
                            *x = V::load_masked(mask, from(r));
                        }
                    }
                }
                V::transpose(&mut x);
                let to = to.add(k0 * MR + r0);
                if columns == V::LANES {
                    for (c, &x) in x[..V::LANES].iter().enumerate() {
                        x.store(to.add(c * MR));
                    }
                } else {
                    // Vectors of a number that is known lie in registers.
                    for (c, &x) in x[..V::LANES].iter().enumerate() {
                        if c < columns {
                            x.store(to.add(c * MR));
                        }
                    }
                }
            }
        }
    }
}
