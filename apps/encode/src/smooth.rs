//! Smoothing of the edges between blocks (8.7 of the standard), a row of macroblocks at a time.

use crate::kernel::{Edge, Kernels};
use crate::picture::{Kind, Macroblock, Picture};
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

/// Strengths (8.7.2.1) of the edge before the blocks of column (or row, if `between_rows`) `line`, which touches blocks of the
/// macroblock before only if `line` is zero.
fn strengths(before: &Macroblock, now: &Macroblock, line: usize, between_rows: bool) -> Strengths {
    if before.kind.is_intra() || now.kind.is_intra() {
        return [if line == 0 { 4 } else { 3 }; 4];
    }
    std::array::from_fn(|i| {
        let place = |line: usize| if between_rows { (i, line) } else { (line, i) };
        let ((x, y), (bx, by)) = (place(line), place((line + 3) % 4));
        if now.counts[y * 4 + x] > 0 || before.counts[by * 4 + bx] > 0 {
            return 2;
        }
        // No picture is in both lists, so other places in these are other pictures; what is not used has no vector.
        let (a, b) = (now.motion[y / 2 * 2 + x / 2], before.motion[by / 2 * 2 + bx / 2]);
        let is_far = |list: usize| {
            let (a, b) = (a.vectors[list], b.vectors[list]);
            (a.x.abs_diff(b.x) >= 4) | (a.y.abs_diff(b.y) >= 4)
        };
        u8::from(a.references != b.references || is_far(0) || is_far(1))
    })
}

/// One vector and no levels: there is nothing to smooth inside.
fn is_plain(of: &Macroblock) -> bool {
    matches!(of.kind, Kind::Skip | Kind::Inter) && of.counts[..16] == [0; 16] && of.motion == [of.motion[0]; 4]
}

/// Smooths all edges of a row of macroblocks, and those to the row above.
///
/// # Safety
/// Nobody else uses the row, nor three rows of samples above it, which have been smoothed.
pub unsafe fn smooth_row(picture: &Picture, row: usize, kernels: &Kernels) {
    let columns = picture.size.columns();
    for x in 0..columns {
        // SAFETY: by the caller.
        let at = |x: usize, y: usize| unsafe { picture.macroblocks.get(y * columns + x) };
        let now = at(x, row);
        let is_now_plain = is_plain(now);
        let lines = if is_now_plain { 1 } else { 4 };
        for between_rows in [false, true] {
            let before = match between_rows {
                false => (x > 0).then(|| at(x - 1, row)),
                true => (row > 0).then(|| at(x, row - 1)),
            };
            for line in 0..lines {
                let Some(before) = (if line == 0 { before } else { Some(now) }) else { continue };
                if is_now_plain && before.motion == now.motion && is_plain(before) {
                    continue;
                }
                let strengths = strengths(before, now, line, between_rows);
                if strengths == [0; 4] {
                    continue;
                }
                let (dx, dy) = if between_rows { (0, line) } else { (line, 0) };
                if let Some(edge) = edge((before.qp + now.qp).div_ceil(2), strengths) {
                    let plane = &picture.luma[0];
                    let pointer = plane.at((16 * x + 4 * dx) as isize, (16 * row + 4 * dy) as isize);
                    // SAFETY: four samples on both sides belong to this row, the three rows above or are only read.
                    unsafe { (kernels.smooth_luma)(pointer, plane.stride, &edge, between_rows) };
                }
                if line % 2 > 0 {
                    continue;
                }
                if let Some(edge) = edge((chroma_qp(before.qp) + chroma_qp(now.qp)).div_ceil(2), strengths) {
                    let pointers =
                        picture.chroma.each_ref().map(|p| p.at((8 * x + 2 * dx) as isize, (8 * row + 2 * dy) as isize));
                    // SAFETY: as above.
                    unsafe { (kernels.smooth_chroma)(pointers, picture.chroma[0].stride, &edge, between_rows) };
                }
            }
        }
    }
}
