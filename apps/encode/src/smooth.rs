//! Smoothing of the edges between blocks (8.7 of the standard), a row of macroblocks at a time.

use crate::kernel::{Edge, Kernels};
use crate::picture::{Macroblock, Motion, Picture};
use crate::tables::chroma_qp;

/// Table 8-16, from index 16 on.
const ALPHA: [u8; 36] = [
    4, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 17, 20, 22, 25, 28, 32, 36, 40, 45, 50, 56, 63, 71, 80, 90, 101, 113, 127,
    144, 162, 182, 203, 226, 255, 255,
];
const BETA: [u8; 36] = [
    2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 16, 16, 17,
    17, 18, 18,
];
/// Table 8-17, from index 17 on, for strengths 1 to 3.
const LIMITS: [[u8; 3]; 35] = [
    [0, 0, 1],
    [0, 0, 1],
    [0, 0, 1],
    [0, 0, 1],
    [0, 1, 1],
    [0, 1, 1],
    [1, 1, 1],
    [1, 1, 1],
    [1, 1, 1],
    [1, 1, 1],
    [1, 1, 2],
    [1, 1, 2],
    [1, 1, 2],
    [1, 1, 2],
    [1, 2, 3],
    [1, 2, 3],
    [2, 2, 3],
    [2, 2, 4],
    [2, 3, 4],
    [2, 3, 4],
    [3, 3, 5],
    [3, 4, 6],
    [3, 4, 6],
    [4, 5, 7],
    [4, 5, 8],
    [4, 6, 9],
    [5, 7, 10],
    [6, 8, 11],
    [6, 8, 13],
    [7, 10, 14],
    [8, 11, 16],
    [9, 12, 18],
    [10, 13, 20],
    [11, 15, 23],
    [13, 17, 25],
];

/// How strongly the four parts of an edge are smoothed: 0 to 3, or 4 all along.
type Strengths = [u8; 4];

fn edge(qp: u8, strengths: Strengths) -> Option<Edge> {
    let index = usize::from(qp).checked_sub(16)?;
    if strengths == [0; 4] {
        return None;
    }
    let limit = |strength: u8| match strength {
        0 => None,
        4 => Some(0),
        _ => Some(index.checked_sub(1).map_or(0, |index| LIMITS[index][usize::from(strength) - 1])),
    };
    Some(Edge { alpha: ALPHA[index], beta: BETA[index], limit: strengths.map(limit), is_strong: strengths[0] == 4 })
}

/// What edges of a macroblock depend on.
#[derive(Clone, Copy)]
struct Side<'a> {
    of: &'a Macroblock,
    /// Bit b: block b of luma has levels.
    coded: u16,
    /// Whether all quarters are predicted alike.
    is_uniform: bool,
}

impl<'a> Side<'a> {
    fn new(of: &'a Macroblock) -> Side<'a> {
        let [a, b] = [0, 8].map(|begin| {
            let counts = u64::from_le_bytes(std::array::from_fn(|i| of.counts[begin + i]));
            // Counts are at most 16: the upper bit of each byte says whether it is more than zero, and the product gathers these.
            let any = (counts + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & 0x0101_0101_0101_0101;
            (any.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u16
        });
        Side { of, coded: a | b << 8, is_uniform: Motion::is_one(&of.motion) }
    }

    /// One vector and no levels: there is nothing to smooth inside.
    fn is_plain(&self) -> bool {
        !self.of.kind.is_intra() && self.coded == 0 && self.is_uniform
    }

    /// Bit i: block i of a column (or row, if `between_rows`) has levels.
    fn coded(&self, line: usize, between_rows: bool) -> u32 {
        let coded = u32::from(self.coded);
        match between_rows {
            true => coded >> (4 * line) & 15,
            // Each fourth bit to the place behind the one before.
            false => ((coded >> line & 0x1111) * 0x1248) >> 12 & 15,
        }
    }
}

/// Whether other vectors, or other pictures, move the samples on both sides of an edge.
fn differ(a: &Motion, b: &Motion) -> bool {
    // No picture is in both lists, so other places in these are other pictures; what is not used has no vector.
    let is_far = |list: usize| {
        let (a, b) = (a.vectors[list], b.vectors[list]);
        (a.x.abs_diff(b.x) >= 4) | (a.y.abs_diff(b.y) >= 4)
    };
    (a.references != b.references) | is_far(0) | is_far(1)
}

/// Strengths (8.7.2.1) of the edge before the blocks of column (or row, if `between_rows`) `line`, which touches blocks of the
/// macroblock before only if `line` is zero.
fn strengths(before: &Side<'_>, now: &Side<'_>, line: usize, between_rows: bool) -> Strengths {
    if before.of.kind.is_intra() || now.of.kind.is_intra() {
        return [if line == 0 { 4 } else { 3 }; 4];
    }
    let coded = now.coded(line, between_rows) | before.coded((line + 3) % 4, between_rows);
    let differs = |half: usize| {
        let quarter = |line: usize| if between_rows { line / 2 * 2 + half } else { half * 2 + line / 2 };
        differ(&now.of.motion[quarter(line)], &before.of.motion[quarter((line + 3) % 4)])
    };
    let differs = match line {
        0 if before.is_uniform && now.is_uniform => [differs(0); 2],
        2 if now.is_uniform => [false; 2],
        0 | 2 => [differs(0), differs(1)],
        // Within a quarter.
        _ => [false; 2],
    };
    std::array::from_fn(|i| if coded >> i & 1 == 1 { 2 } else { differs[i / 2].into() })
}

/// Smooths all edges of a row of macroblocks, and those to the row above.
///
/// # Safety
/// Nobody else uses the row, nor three rows of samples above it, which have been smoothed.
pub unsafe fn smooth_row(picture: &Picture, row: usize, kernels: &Kernels) {
    let columns = picture.size.columns();
    let mut left = None;
    for x in 0..columns {
        // SAFETY: by the caller.
        let at = |y: usize| Side::new(unsafe { picture.macroblocks.get(y * columns + x) });
        let now = at(row);
        let sides = [left.replace(now), row.checked_sub(1).map(at)];
        let is_now_plain = now.is_plain();
        let lines = if is_now_plain { 1 } else { 4 };
        for between_rows in [false, true] {
            let side = sides[usize::from(between_rows)];
            for line in 0..lines {
                let Some(before) = (if line == 0 { side } else { Some(now) }) else { continue };
                if is_now_plain && before.is_plain() && before.of.motion[0] == now.of.motion[0] {
                    continue;
                }
                let strengths = strengths(&before, &now, line, between_rows);
                if strengths == [0; 4] {
                    continue;
                }
                let (dx, dy) = if between_rows { (0, line) } else { (line, 0) };
                if let Some(edge) = edge((before.of.qp + now.of.qp).div_ceil(2), strengths) {
                    let plane = &picture.luma[0];
                    let pointer = plane.at((16 * x + 4 * dx) as isize, (16 * row + 4 * dy) as isize);
                    // SAFETY: four samples on both sides belong to this row, the three rows above or are only read.
                    unsafe { (kernels.smooth_luma)(pointer, plane.stride, &edge, between_rows) };
                }
                if line % 2 > 0 {
                    continue;
                }
                if let Some(edge) = edge((chroma_qp(before.of.qp) + chroma_qp(now.of.qp)).div_ceil(2), strengths) {
                    let pointers =
                        picture.chroma.each_ref().map(|p| p.at((8 * x + 2 * dx) as isize, (8 * row + 2 * dy) as isize));
                    // SAFETY: as above.
                    unsafe { (kernels.smooth_chroma)(pointers, picture.chroma[0].stride, &edge, between_rows) };
                }
            }
        }
    }
}
