//! The loops around a register tile: which parts of A and B are packed, when, and in how much scratch.
//!
//! ```text
//! for rows of C in blocks of mc                         packed A: mc × kc, streamed through the last-level cache
//!   for k in blocks of kc (one span)                      pack A
//!     for columns in blocks of nc                         packed B: kc × nc, stays in the second-level cache
//!                                                           pack B (or read it where it lies)
//!       for panels of MR rows                             one panel of A stays in the first-level cache
//!         for panels of NR columns                        MR × NR of C in registers: Micro::tile
//! ```

use super::{Call, SPAN};
use multigrain::rooms::team::contexts::look;

/// A register tile of one instruction set and the packing that it reads.
pub(super) trait Micro {
    /// Rows of the register tile.
    const MR: usize;
    /// Columns of the register tile.
    const NR: usize;

    /// Packs `rows` ≤ MR rows of A to `to[kk * MR + row]`; lanes of missing rows hold anything.
    ///
    /// # Safety
    ///
    /// The instruction set is available; A is readable; `to` has space for `depth * MR + SLACK` elements.
    unsafe fn pack_a(rows: usize, depth: usize, a: *const f32, lda: usize, to: *mut f32);

    /// Packs `columns` columns of B to `to[panel * depth * NR + kk * NR + column]`, the last panel filled up with
    /// lanes that are never stored.
    ///
    /// # Safety
    ///
    /// The instruction set is available; B is readable; `to` is aligned to 64 bytes and has space for `depth`
    /// times `columns` rounded up to NR.
    unsafe fn pack_b(depth: usize, columns: usize, b: *const f32, ldb: usize, to: *mut f32);

    /// Updates one tile of C.
    ///
    /// # Safety
    ///
    /// The instruction set is available; the tile's pointers are valid for its shape, 1 ≤ rows ≤ MR, 1 ≤ columns ≤ NR.
    unsafe fn tile(tile: &Tile);
}

/// One tile of C and what is multiplied into it.
pub(super) struct Tile {
    /// Rows that are stored.
    pub(super) rows: usize,
    /// Columns that are stored.
    pub(super) columns: usize,
    /// Values of k, at most one span.
    pub(super) depth: usize,
    /// Packed panel of A.
    pub(super) a: *const f32,
    /// B at the tile's first column: packed (then `ldb` is NR and all NR columns are readable) or where it lies.
    pub(super) b: *const f32,
    /// Elements from one row of `b` to the next.
    pub(super) ldb: usize,
    /// C at the tile's first element.
    pub(super) c: *mut f32,
    /// Row pitch of C.
    pub(super) ldc: usize,
    /// Whether the sum replaces C.
    pub(super) overwrite: bool,
    /// Whether this is the last span of the call, after which NaNs are made canonical.
    pub(super) last: bool,
    /// Packed elements that will be wanted soon: `ahead_lines` cache lines from here, an address only.
    pub(super) ahead: *const f32,
    /// Cache lines to fetch from `ahead`.
    pub(super) ahead_lines: usize,
}

/// Elements that a store of a whole vector may write behind a packed panel of A.
pub(super) const SLACK: usize = 16;
/// Elements of a cache line, to which the packed blocks are aligned.
pub(super) const LINE: usize = 16;

/// Rows of A that are packed at once, at most: 4 MiB, which a last-level cache keeps. Each block of B
/// is packed once for all of them.
const MC: usize = 4096;
/// Columns of B that are packed at once, at most: half of a second-level cache of 1 MiB.
const NC: usize = 512;
/// With at most this many register tiles down C, packing B costs more than it saves.
const DIRECT_PANELS: usize = 2;
/// Up to this row pitch a span of B fits a second-level cache and its rows do not crowd into few sets of the first,
/// so B is best read where it lies.
const DIRECT_PITCH: usize = 256;

/// Sizes of the packed blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocking {
    /// Rows of packed A: a multiple of MR.
    mc: usize,
    /// Columns of packed B: a multiple of NR, or 0 where B is read where it lies.
    nc: usize,
    /// Values of k of both: SPAN, or all of k if that is less.
    kc: usize,
}

impl Blocking {
    /// The best blocking of a product of this shape within `limit` elements, or `None` if not even a panel fits.
    pub(super) fn choose<M: Micro>(m: usize, n: usize, k: usize, limit: usize) -> Option<Blocking> {
        let kc = k.clamp(1, SPAN);
        let (mc, nc) = (even(m, MC).next_multiple_of(M::MR), even(n, NC).next_multiple_of(M::NR));
        let best = Blocking { mc, nc, kc };
        if m > DIRECT_PANELS * M::MR && best.elements() <= limit {
            return Some(best);
        }
        let direct = Blocking::direct::<M>(k);
        if direct.elements() > limit {
            return None;
        }
        if m <= DIRECT_PANELS * M::MR {
            return Some(direct);
        }
        // Between the two: the space in two halves, of which a small matrix leaves the rest to the other.
        let columns = |elements: usize| (elements / kc / M::NR * M::NR).min(nc);
        let rows = |elements: usize| (elements / kc / M::MR * M::MR).min(mc);
        let space = limit - SLACK - 2 * LINE;
        let half_columns = columns(space / 2);
        let mc = rows(space - half_columns * kc);
        let nc = columns(space - mc * kc);
        if mc >= DIRECT_PANELS * M::MR && nc > 0 { Some(Blocking { mc, nc, kc }) } else { Some(direct) }
    }

    /// B is read where it lies: then more than one panel of A at a time has no use.
    fn direct<M: Micro>(k: usize) -> Blocking {
        Blocking { mc: M::MR, nc: 0, kc: k.clamp(1, SPAN) }
    }

    /// Elements of scratch, alignment included.
    pub(super) fn elements(&self) -> usize {
        self.a_elements() + self.nc * self.kc + LINE
    }

    fn a_elements(&self) -> usize {
        (self.mc * self.kc + SLACK).next_multiple_of(LINE)
    }
}

/// Computes a call; false, with nothing done, if `scratch` is too small for any blocking.
///
/// # Safety
///
/// The promise of [`super::sgemm`] about the matrices; k > 0; M's instruction set is available.
pub(super) unsafe fn run<M: Micro>(call: &Call, scratch: &mut [f32]) -> bool {
    let Call { overwrite, m, n, k, a, lda, b, ldb, c, ldc } = *call;
    let Some(mut blocking) = Blocking::choose::<M>(m, n, k, scratch.len()) else { return false };
    if ldb <= DIRECT_PITCH {
        blocking = Blocking::direct::<M>(k);
    }
    let scratch = aligned(scratch);
    let (a_pack, b_pack) = scratch.split_at_mut(blocking.a_elements());
    assert!(b_pack.len() >= blocking.nc * blocking.kc, "the blocking fits the scratch that it was chosen for");
    let (a_pack, b_pack) = (a_pack.as_mut_ptr(), b_pack.as_mut_ptr());
    let nc = if blocking.nc == 0 { n } else { blocking.nc };

    for i0 in (0..m).step_by(blocking.mc) {
        let rows = blocking.mc.min(m - i0);
        for k0 in (0..k).step_by(blocking.kc) {
            let depth = blocking.kc.min(k - k0);
            for i in (0..rows).step_by(M::MR) {
                look();
                // SAFETY: rows i0 + i.. and columns k0.. of A are the caller's; panel i / MR of at most mc / MR, each
                // depth * MR elements, and the slack behind the last are within a_pack. Panels are packed in
                // ascending order, so what one writes behind its end the next replaces.
                unsafe {
                    M::pack_a(M::MR.min(rows - i), depth, a.add((i0 + i) * lda + k0), lda, a_pack.add(i * depth));
                }
            }
            for j0 in (0..n).step_by(nc) {
                let columns = nc.min(n - j0);
                // SAFETY: k0 < k, j0 < n.
                let b_block = unsafe { b.add(k0 * ldb + j0) };
                if blocking.nc != 0 {
                    // SAFETY: depth ≤ kc rows and columns ≤ nc columns of B from here are the caller's, and fit b_pack.
                    unsafe { M::pack_b(depth, columns, b_block, ldb, b_pack) };
                }
                for i in (0..rows).step_by(M::MR) {
                    let panels = columns.div_ceil(M::NR);
                    // The next panel of A comes from far away; fetch a part of it with each tile.
                    let next = if i + M::MR < rows { (i + M::MR) * depth } else { 0 };
                    let share = (M::MR * depth).div_ceil(LINE).div_ceil(panels);
                    for panel in 0..panels {
                        let j = panel * M::NR;
                        look();
                        // SAFETY: the panels were packed above, or B is read where it lies at row k0, column j0 + j;
                        // C's tile starts at row i0 + i < m, column j0 + j < n.
                        unsafe {
                            let (b, ldb) = if blocking.nc == 0 {
                                (b_block.add(j), ldb)
                            } else {
                                (b_pack.add(j * depth).cast_const(), M::NR)
                            };
                            M::tile(&Tile {
                                rows: M::MR.min(rows - i),
                                columns: M::NR.min(columns - j),
                                depth,
                                a: a_pack.add(i * depth),
                                b,
                                ldb,
                                c: c.add((i0 + i) * ldc + j0 + j),
                                ldc,
                                overwrite: overwrite && k0 == 0,
                                last: k0 + depth == k,
                                ahead: a_pack.wrapping_add(next + panel * share * LINE),
                                ahead_lines: share,
                            });
                        }
                    }
                }
            }
        }
    }
    true
}

/// The size of the fewest blocks of at most `most` that `total` divides into evenly, so that no sliver is left over.
fn even(total: usize, most: usize) -> usize {
    total.max(1).div_ceil(total.div_ceil(most).max(1))
}

/// The part of `scratch` that starts on a cache line.
fn aligned(scratch: &mut [f32]) -> &mut [f32] {
    let skip = scratch.as_ptr().align_offset(LINE * size_of::<f32>()).min(scratch.len());
    &mut scratch[skip..]
}
