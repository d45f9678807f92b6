//! The order in which a block of B is packed, common to the instruction sets.

/// Rows that are packed together before going on to the next panel: the reads are then a few long streams, and the
/// writes whole runs of cache lines, whatever power of two the pitch is.
const ROWS: usize = 8;

/// Packs B as [`super::blocking::Micro::pack_b`] says; `copy` moves one row of a whole panel.
///
/// # Safety
///
/// As [`super::blocking::Micro::pack_b`]; `copy` may read `NR` elements at its first argument and write as many at
/// its second, which is aligned to `NR` elements.
#[inline(always)]
pub(super) unsafe fn panels_b<const NR: usize>(
    depth: usize,
    columns: usize,
    b: *const f32,
    ldb: usize,
    to: *mut f32,
    copy: impl Fn(*const f32, *mut f32),
) {
    let whole = columns / NR;
    let rest = columns % NR;
    for k0 in (0..depth).step_by(ROWS) {
        let rows = k0..depth.min(k0 + ROWS);
        for panel in 0..whole {
            for kk in rows.clone() {
                // SAFETY: row kk < depth and columns of panel `panel` are within B, the panel within `to`.
                unsafe { copy(b.add(kk * ldb + panel * NR), to.add((panel * depth + kk) * NR)) };
            }
        }
        for kk in rows {
            for column in 0..rest {
                // SAFETY: the same, for the columns that exist of the last panel.
                unsafe { *to.add((whole * depth + kk) * NR + column) = *b.add(kk * ldb + whole * NR + column) };
            }
        }
    }
}
