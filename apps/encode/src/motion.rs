//! Samples of another picture, moved (8.4.2 of the standard).
//!
//! With the three planes of half samples every place at quarters is a sample of a plane or the mean of two.

use crate::kernel::{Kernels, Keys};
use crate::picture::{Picture, Vector};
use crate::samples::Samples;

/// How far down a vector may lead, in samples. It decides how many rows of a picture have to be complete before the next
/// picture can be predicted from them ([`rows_needed`]).
pub const DOWN_MAX: i16 = 70;

/// The same upwards.
pub const UP_MAX: i16 = 120;

/// How far to either side a vector may lead, in samples.
pub const SIDE_MAX: i16 = 2000;

// What every level from 1.1 on allows (A.3.1, Table A-1), and what headers say of vectors: 2 to the 9th quarters up or down.
const _: () = assert!(SIDE_MAX < 2048 && UP_MAX < 128 && DOWN_MAX < 128);

/// Rows of macroblocks that those below which a vector leads reach, with one sample more for what lies between.
const ROWS_BELOW: usize = (16 + DOWN_MAX as usize + 1).div_ceil(16);

/// Rows of a picture, of so many, that have to be complete before row `row` of the next is predicted from it.
pub fn rows_needed(row: usize, rows: usize) -> usize {
    (row + ROWS_BELOW).min(rows)
}

/// How far outside a block may begin: farther out all samples of a row or column are the same.
const OUTSIDE: isize = 24;

/// The planes (0 whole samples, 1 halves to the right, 2 below, 3 both) whose mean the samples at quarters (down, right) are,
/// by 8.4.2.2.1; the first moves down by one for three quarters down, the second to the right for three quarters right.
const BETWEEN: [(usize, Option<usize>); 16] = [
    (0, None),
    (1, Some(0)),
    (1, None),
    (1, Some(0)),
    (0, Some(2)),
    (1, Some(2)),
    (1, Some(3)),
    (1, Some(2)),
    (2, None),
    (3, Some(2)),
    (3, None),
    (3, Some(2)),
    (0, Some(2)),
    (1, Some(2)),
    (1, Some(3)),
    (1, Some(2)),
];

/// A place of a block in a macroblock: its first sample, and how large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Columns from the macroblock's first.
    pub x: usize,
    /// Rows from the macroblock's first.
    pub y: usize,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Part {
    /// The whole macroblock.
    pub const WHOLE: Part = Part { x: 0, y: 0, width: 16, height: 16 };

    /// One of two halves above each other.
    pub const fn wide(i: usize) -> Part {
        Part { x: 0, y: 8 * i, width: 16, height: 8 }
    }

    /// One of two halves beside each other.
    pub const fn tall(i: usize) -> Part {
        Part { x: 8 * i, y: 0, width: 8, height: 16 }
    }

    /// A quarter.
    pub const fn quarter(i: usize) -> Part {
        Part { x: 8 * (i % 2), y: 8 * (i / 2), width: 8, height: 8 }
    }

    /// The quarters that it covers.
    pub fn quarters(self) -> impl Iterator<Item = usize> {
        (0..4).filter(move |i| {
            let (x, y) = (8 * (i % 2), 8 * (i / 2));
            (self.x..self.x + self.width).contains(&x) && (self.y..self.y + self.height).contains(&y)
        })
    }
}

/// A picture to predict a macroblock from.
///
/// Whoever makes one has waited for the rows that vectors within the limits lead to ([`rows_needed`]).
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    picture: &'a Picture,
    kernels: &'a Kernels,
    /// The macroblock's first sample.
    x: isize,
    y: isize,
    /// The macroblock's first sample in each plane of luma.
    here: [*const u8; 4],
    /// The vectors that search may look at: blocks touch the picture or its border.
    near: [Vector; 2],
}

impl<'a> Reference<'a> {
    /// For the macroblock at (column, row).
    ///
    /// # Safety
    /// While it lives nobody writes the first [`rows_needed`] rows of the picture, and they are complete. It is asked for parts
    /// that lie in a macroblock only, and to look at near vectors only.
    #[inline]
    pub unsafe fn new(picture: &'a Picture, kernels: &'a Kernels, column: usize, row: usize) -> Reference<'a> {
        let (x, y) = (16 * column as isize, 16 * row as isize);
        let luma = &picture.luma[0];
        let range = |at: isize, size: usize, limits: [i16; 2]| {
            let (least, most) = (-OUTSIDE - at, size as isize + OUTSIDE - 17 - at);
            [4 * least.max(limits[0].into()) as i16, 4 * most.min(limits[1].into()) as i16]
        };
        let (across, down) = (range(x, luma.width, [-SIDE_MAX, SIDE_MAX]), range(y, luma.height, [-UP_MAX, DOWN_MAX]));
        let near = [0, 1].map(|end| Vector { x: across[end], y: down[end] });
        let offset = luma.offset(x, y);
        let here = picture.luma.each_ref().map(|plane| plane.at_offset(offset).cast_const());
        Reference { picture, kernels, x, y, here, near }
    }

    /// Whether a vector may be used here.
    pub fn allows(&self, vector: Vector) -> bool {
        (-4 * SIDE_MAX..=4 * SIDE_MAX).contains(&vector.x) && (-4 * UP_MAX..=4 * DOWN_MAX).contains(&vector.y)
    }

    /// The nearest whole vector, in quarters, that search may look at: its block touches the picture or its border.
    pub fn clamped(&self, vector: Vector) -> Vector {
        let [least, most] = self.near;
        let whole = |value: i16| value.saturating_add(2) & !3;
        Vector { x: whole(vector.x).clamp(least.x, most.x), y: whole(vector.y).clamp(least.y, most.y) }
    }

    /// Whether search may look at a vector: as [`clamped`](Self::clamped), for all fractions.
    #[inline]
    pub fn is_near(&self, vector: Vector) -> bool {
        let [least, most] = self.near;
        (least.x..=most.x).contains(&vector.x) && (least.y..=most.y).contains(&vector.y)
    }

    /// One or two places whose mean the samples of a part are, and the distance of rows.
    #[inline]
    fn places(&self, part: Part, vector: Vector) -> (*const u8, Option<*const u8>, usize) {
        let luma = &self.picture.luma[0];
        let (mut x, mut y) = (isize::from(vector.x >> 2), isize::from(vector.y >> 2));
        if !self.is_near(vector) {
            let within =
                |value: isize, at: isize, size: usize| value.clamp(-OUTSIDE, size as isize + OUTSIDE - 17) - at;
            let (left, top) = (self.x + part.x as isize, self.y + part.y as isize);
            (x, y) = (within(left + x, left, luma.width), within(top + y, top, luma.height));
        }
        let (right, down) = (vector.x & 3, vector.y & 3);
        let between = BETWEEN[usize::from((down * 4 + right) as u16)];
        let stride = luma.stride as isize;
        let offset = (y + part.y as isize) * stride + x + part.x as isize;
        // SAFETY: with near vectors or within these limits blocks lie in the planes with their borders.
        let at = |plane: usize, offset: isize| unsafe { self.here[plane].offset(offset) };
        let a = at(between.0, offset + if down == 3 { stride } else { 0 });
        let b = between.1.map(|plane| at(plane, offset + isize::from(right == 3)));
        (a, b, luma.stride)
    }

    /// The luma of a part, to rows 16 apart.
    pub fn luma(&self, part: Part, vector: Vector, out: &mut Samples) {
        let to = out.0[part.y * 16 + part.x..].as_mut_ptr();
        let (a, b, stride) = self.places(part, vector);
        let wide = part.width == 16;
        // SAFETY: `places` keeps blocks within the planes, whose rows are complete; `out` has room for the part.
        unsafe {
            match b {
                None => (self.kernels.copy)(to, a, stride, part.height, wide),
                Some(b) => (self.kernels.mean)(to, a, b, stride, part.height, wide),
            }
        }
    }

    /// The chroma of a part, Cb and Cr beside each other.
    pub fn chroma(&self, part: Part, vector: Vector, out: &mut Samples) {
        for (i, plane) in self.picture.chroma.iter().enumerate() {
            let within = |at: isize, size: usize| at.clamp(-12, size as isize + 4);
            let x = within((self.x + part.x as isize) / 2 + isize::from(vector.x >> 3), plane.width);
            let y = within((self.y + part.y as isize) / 2 + isize::from(vector.y >> 3), plane.height);
            let eighths = [(vector.x & 7) as u8, (vector.y & 7) as u8];
            // A part is as many blocks as fit: squares of 8 or 4 samples.
            let size = part.width.min(part.height) / 2;
            for (dx, dy) in [(0, 0), (part.width / 2 - size, part.height / 2 - size)]
                .into_iter()
                .take(1 + usize::from(part.width != part.height))
            {
                let to = out.0[(part.y / 2 + dy) * 16 + part.x / 2 + dx + 8 * i..].as_mut_ptr();
                let from = plane.at(x + dx as isize, y + dy as isize);
                // SAFETY: as in `luma`; one row and column more is within the border, too.
                unsafe { (self.kernels.chroma)(to, from, plane.stride, eighths, size) };
            }
        }
    }

    /// Weighs a vector near the picture, of whole or half samples, for the macroblock and its parts: sums of absolute
    /// differences, and what is added to them.
    #[inline]
    pub fn look(&self, source: &Samples, vector: Vector, addend: u32, keys: &mut Keys) {
        let (at, stride) = self.place(vector);
        // SAFETY: as in `places` and `luma`.
        unsafe { (self.kernels.look)(source, at, stride, addend, keys) }
    }

    /// Where the macroblock lies by a vector near the picture, of whole or half samples, and the distance of rows.
    #[inline]
    fn place(&self, vector: Vector) -> (*const u8, usize) {
        debug_assert!(self.is_near(vector) && (vector.x | vector.y) & 1 == 0, "{vector:?}");
        let stride = self.picture.luma[0].stride;
        let plane = usize::from(((vector.x >> 1 & 1) | (vector.y & 2)) as u16);
        let offset = isize::from(vector.y >> 2) * stride as isize + isize::from(vector.x >> 2);
        // SAFETY: with near vectors blocks lie in the planes with their borders.
        (unsafe { self.here[plane].offset(offset) }, stride)
    }

    /// The sum of absolute differences of the whole macroblock for a vector as above.
    #[inline]
    pub fn sad(&self, source: &Samples, vector: Vector) -> u32 {
        let (at, stride) = self.place(vector);
        // SAFETY: as in `places` and `luma`.
        unsafe { (self.kernels.sad)(source, at, stride) }
    }

    /// Sums of transformed differences of a part.
    #[inline]
    pub fn satd(&self, source: &Samples, part: Part, vector: Vector) -> u32 {
        let (a, b, stride) = self.places(part, vector);
        let with = [a, b.unwrap_or(a)];
        if part == Part::WHOLE {
            // SAFETY: as in `luma`.
            return unsafe { (self.kernels.satd)(source, with, stride) }.iter().sum();
        }
        let mut sum = 0;
        for y in (0..part.height).step_by(8) {
            for x in (0..part.width).step_by(8) {
                let from = source.0[(part.y + y) * 16 + part.x + x..].as_ptr();
                // SAFETY: as in `luma`.
                sum += unsafe { (self.kernels.satd_8)(from, with.map(|with| with.add(y * stride + x)), stride) };
            }
        }
        sum
    }
}
