//! Pictures as a decoder will have them.

use crate::kernel::Kernels;
use crate::plane::{Grid, PAD, Plane};
use crate::samples::Samples;
use multigrain::rooms::team::Steps;
use std::ops::Deref;
use std::sync::Arc;

/// How large pictures are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns of luma, even.
    pub width: usize,
    /// Rows of luma, even.
    pub height: usize,
}

impl Size {
    /// Macroblocks in a row.
    pub fn columns(self) -> usize {
        self.width.div_ceil(16)
    }

    /// Rows of macroblocks.
    pub fn rows(self) -> usize {
        self.height.div_ceil(16)
    }

    /// Macroblocks.
    pub fn macroblocks(self) -> usize {
        self.columns() * self.rows()
    }

    /// Bytes of a picture, 4:2:0.
    pub fn bytes(self) -> usize {
        self.width * self.height * 3 / 2
    }
}

/// The samples of a macroblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// 16 rows of 16.
    pub luma: Samples,
    /// Cb and Cr beside each other.
    pub chroma: Samples,
}

impl Block {
    /// Nothing but zeros.
    pub const EMPTY: Block = Block { luma: Samples::of(0), chroma: Samples::of(0) };
}

/// A motion vector, in quarters of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vector {
    /// To the right.
    pub x: i16,
    /// Down.
    pub y: i16,
}

/// A vector and what is left after it: half of the sum of transformed differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// The vector.
    pub vector: Vector,
    /// What is left.
    pub satd: u32,
}

/// What was found for a macroblock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// As a whole.
    pub whole: Match,
    /// Its parts, if they were looked at: halves above each other, beside each other, quarters.
    pub wide: Option<[Match; 2]>,
    /// As above.
    pub tall: Option<[Match; 2]>,
    /// As above.
    pub quarters: Option<[Match; 4]>,
}

impl Found {
    /// Where nothing was searched: anything else is better.
    pub const NONE: Found = Found {
        whole: Match { vector: Vector { x: 0, y: 0 }, satd: u32::MAX / 4 },
        wide: None,
        tall: None,
        quarters: None,
    };
}

/// What a part is predicted from: of each of two lists of pictures one, or none, and by which vector.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Motion {
    /// Zero where the list is not used.
    pub vectors: [Vector; 2],
    /// Which picture of each list; less than zero where the list is not used.
    pub references: [i8; 2],
}

impl PartialEq for Motion {
    /// All at once: it is asked of each macroblock several times.
    #[inline]
    fn eq(&self, other: &Motion) -> bool {
        let words = |of: &Motion| {
            let [a, b] = of.vectors.map(|vector| [vector.x, vector.y]);
            [a[0], a[1], b[0], b[1], i16::from_le_bytes(of.references.map(|which| which as u8))]
        };
        let (a, b) = (words(self), words(other));
        (0..5).fold(0, |bits, i| bits | (a[i] ^ b[i])) == 0
    }
}

impl Motion {
    /// Whether all quarters of a macroblock are predicted alike.
    #[inline]
    pub fn is_one(quarters: &[Motion; 4]) -> bool {
        let [first, others @ ..] = quarters;
        others.iter().fold(true, |is_one, other| is_one & (other == first))
    }

    /// From its own picture.
    pub const NONE: Motion = Motion { vectors: [Vector { x: 0, y: 0 }; 2], references: [-1; 2] };

    /// From one picture.
    pub fn of(list: usize, vector: Vector, reference: i8) -> Motion {
        let mut motion = Motion::NONE;
        (motion.vectors[list], motion.references[list]) = (vector, reference);
        motion
    }

    /// Whether a picture of the list is used.
    pub fn uses(&self, list: usize) -> bool {
        self.references[list] >= 0
    }
}

/// How a macroblock is predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// From another picture, nothing coded.
    #[default]
    Skip,
    /// From another picture.
    Inter,
    /// As a whole, from what is around it.
    Intra16,
    /// Block by block, from what is around them.
    Intra4,
    /// Not at all: its samples are stored.
    Stored,
}

impl Kind {
    /// Whether it is predicted from its own picture.
    pub fn is_intra(self) -> bool {
        matches!(self, Kind::Intra16 | Kind::Intra4 | Kind::Stored)
    }
}

/// What others need to know of a macroblock that has been coded.
#[derive(Clone, Copy, Debug)]
pub struct Macroblock {
    /// How it is predicted.
    pub kind: Kind,
    /// The quantiser by which its edges are smoothed.
    pub qp: u8,
    /// Coefficients of its blocks, row by row: 16 of luma, 4 of Cb, 4 of Cr.
    pub counts: [u8; 24],
    /// Modes of its blocks of 4 x 4, row by row, if it is predicted so.
    pub modes: [u8; 16],
    /// What its quarters, row by row, are predicted from.
    pub motion: [Motion; 4],
    /// Its last row before edges were smoothed: luma, Cb, Cr.
    pub bottom: ([u8; 16], [u8; 8], [u8; 8]),
}

impl Default for Macroblock {
    fn default() -> Macroblock {
        Macroblock {
            kind: Kind::Skip,
            qp: 0,
            counts: [0; 24],
            modes: [crate::intra::BLOCK_DC; 16],
            motion: [Motion::NONE; 4],
            bottom: ([0; 16], [0; 8], [0; 8]),
        }
    }
}

/// One of the pictures of a video, on its way or complete, in memory that others had before it.
#[derive(Debug)]
pub struct Frame {
    /// Where its samples are.
    pub memory: Arc<Picture>,
    /// Which it is of those that are shown, from 0.
    pub number: u64,
    /// How far before it the nearest picture of its first list is.
    pub span: i64,
    /// Rows that others may be predicted from.
    pub complete: Steps,
}

impl Deref for Frame {
    type Target = Picture;

    fn deref(&self) -> &Picture {
        &self.memory
    }
}

/// How far planes of half samples are computed beyond the edges; farther out nothing changes.
pub const KEPT: usize = 8;

/// A picture as a decoder will have it, with what others are predicted from.
#[derive(Debug)]
pub struct Picture {
    /// How large.
    pub size: Size,
    /// Whole samples of luma, and halves to the right, below, and both.
    pub luma: [Plane; 4],
    /// Cb and Cr.
    pub chroma: [Plane; 2],
    /// Row by row.
    pub macroblocks: Grid<Macroblock>,
    /// What motion search found, row by row: in each picture that this one may be predicted from, the nearest of the first
    /// list first.
    pub fields: Vec<Grid<Found>>,
}

impl Picture {
    /// Memory for a picture that may be predicted from so many others.
    pub fn new(size: Size, references: usize) -> Picture {
        let (width, height) = (16 * size.columns(), 16 * size.rows());
        Picture {
            size,
            luma: std::array::from_fn(|_| Plane::new(width, height)),
            chroma: std::array::from_fn(|_| Plane::new(width / 2, height / 2)),
            macroblocks: Grid::new(size.macroblocks()),
            fields: std::iter::repeat_with(|| Grid::new(size.macroblocks())).take(references).collect(),
        }
    }

    /// Bytes of one.
    pub fn bytes(size: Size, references: usize) -> usize {
        let (width, height) = (16 * size.columns(), 16 * size.rows());
        let known = size_of::<Macroblock>() + references * size_of::<Found>();
        4 * Plane::bytes(width, height) + 2 * Plane::bytes(width / 2, height / 2) + known * size.macroblocks()
    }

    /// The samples of the picture as they are shown, planes one after the other.
    ///
    /// # Safety
    /// Nobody writes the picture meanwhile.
    pub unsafe fn shown(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size.bytes());
        for (plane, part) in [(&self.luma[0], 1), (&self.chroma[0], 2), (&self.chroma[1], 2)] {
            for y in 0..self.size.height / part {
                // SAFETY: a row of the plane, which nobody writes.
                let row = unsafe { std::slice::from_raw_parts(plane.at(0, y as isize), self.size.width / part) };
                out.extend_from_slice(row);
            }
        }
        out
    }

    /// Makes of a row of macroblocks, whose edges and those of the rows above have been smoothed, what others are predicted
    /// from: borders and half samples of the rows that do not change any more, which end 8 rows short of its own unless it
    /// is the last.
    ///
    /// # Safety
    /// Nobody else uses these rows, and those above are complete.
    pub unsafe fn complete_row(&self, row: usize, kernels: &Kernels, scratch: &mut Vec<i16>) {
        let (is_first, is_last) = (row == 0, row + 1 == self.size.rows());
        let pad = PAD as isize;
        // Smoothing of the next row changes three rows of luma above it, and one of chroma.
        let planes = [(&self.luma[0], 16, 3), (&self.chroma[0], 8, 1), (&self.chroma[1], 8, 1)];
        for (plane, tall, kept) in planes {
            let height = plane.height as isize;
            let begin = if is_first { 0 } else { (row * tall) as isize - kept };
            let end = if is_last { height } else { ((row + 1) * tall) as isize - kept };
            // SAFETY: by the caller.
            unsafe {
                plane.pad_sides(begin..end, 0);
                if is_first {
                    plane.repeat_row(0, -pad..0);
                }
                if is_last {
                    plane.repeat_row(height - 1, height..height + pad);
                }
            }
        }
        let [whole, halves @ ..] = &self.luma;
        let (height, kept) = (whole.height as isize, KEPT as isize);
        let begin = if is_first { -kept } else { (row * 16) as isize - 8 };
        let end = if is_last { height + kept } else { (row * 16) as isize + 8 };
        let width = whole.width + 2 * KEPT;
        scratch.resize(width + 5, 0);
        for y in begin..end {
            let to = halves.each_ref().map(|plane| plane.at(-kept, y));
            // SAFETY: rows y - 2 to y + 3 are complete; `Kernels::new` has seen to the instruction set.
            unsafe { (kernels.halves)(to, whole.at(-kept, y), whole.stride, width, scratch) };
        }
        for plane in halves {
            // SAFETY: by the caller.
            unsafe {
                plane.pad_sides(begin..end, KEPT);
                if is_first {
                    plane.repeat_row(-kept, -pad..-kept);
                }
                if is_last {
                    plane.repeat_row(height + kept - 1, height + kept..height + pad);
                }
            }
        }
    }
}
