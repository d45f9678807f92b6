//! A row of macroblocks: what each is predicted from is decided, what is left is transformed and written.
//!
//! This is the serial part of a row: each macroblock needs the one before it, and of the row above the one above it on the
//! right. Bits of a row are gathered by themselves, since with variable-length codes nothing but the run of macroblocks
//! that were skipped goes on from row to row; they are joined when the picture is complete.

mod arithmetic;
mod bidirectional;
mod inter;
mod intra;
mod residual;
mod syntax;
mod vectors;
mod write;

pub use arithmetic::Slice;
pub use syntax::Syntax;
pub use write::RowBits;

use crate::headers::SliceType;
use crate::intra::Around;
use crate::kernel::{Kernels, Lanes};
use crate::motion::Reference;
use crate::picture::{Block, Found, Frame, Kind, Macroblock, Match, Vector};
use crate::plane::Plane;
use crate::quantiser::Quantiser;
use crate::search::{Effort, Search};
use crate::source::Source;
use crate::tables::lambda;
use std::sync::Arc;
use syntax::Type;
use write::{BITS_MAX, MANY_BITS};

/// One picture on its way: all that does not change from row to row.
#[derive(Debug)]
pub struct Shot<'a> {
    /// What is to be encoded.
    pub source: Source,
    /// What becomes of it.
    pub picture: Arc<Frame>,
    /// What it may be predicted from: two lists.
    pub lists: [Vec<Link>; 2],
    /// Whether others are predicted from it.
    pub is_reference: bool,
    /// How.
    pub settings: Settings<'a>,
}

/// A picture that another may be predicted from.
#[derive(Clone, Debug)]
pub struct Link {
    /// The picture.
    pub picture: Arc<Frame>,
    /// Whose field of vectors tells where to look: those of the nearest picture of its first list.
    pub likely: Arc<Frame>,
    /// What these vectors are multiplied by, in 256ths.
    pub scale: i32,
}

impl Link {
    /// To a picture that is `over` pictures away, where the vectors of `likely` lead `under` pictures back.
    pub fn new(picture: &Arc<Frame>, likely: &Arc<Frame>, over: i64, under: i64) -> Link {
        let scale = if under == 0 { 256 } else { (256 * over / under) as i32 };
        Link { picture: picture.clone(), likely: likely.clone(), scale }
    }

    fn scaled(&self, vector: Vector) -> Vector {
        scaled(vector, self.scale)
    }
}

/// A vector times 256ths.
fn scaled(vector: Vector, scale: i32) -> Vector {
    let times = |value: i16| ((i32::from(value) * scale + 128) >> 8).clamp(-8000, 8000) as i16;
    if scale == 256 { vector } else { Vector { x: times(vector.x), y: times(vector.y) } }
}

/// How a picture is encoded.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// The kernels.
    pub kernels: &'a Kernels,
    /// The quantiser's number, 0 to 51.
    pub qp: u8,
    /// What a bit is worth, in transformed differences.
    pub lambda: u32,
    /// For luma.
    pub luma: Quantiser,
    /// For chroma.
    pub chroma: Quantiser,
    /// How thoroughly motion is searched.
    pub effort: Effort,
    /// Whether macroblocks are written by arithmetic codes, which go on through a picture.
    pub is_arithmetic: bool,
}

impl<'a> Settings<'a> {
    /// For one quantiser.
    pub fn new(kernels: &'a Kernels, qp: u8, effort: Effort, is_arithmetic: bool) -> Settings<'a> {
        Settings {
            kernels,
            qp,
            lambda: lambda(qp),
            luma: Quantiser::new(qp),
            chroma: Quantiser::chroma(qp),
            effort,
            is_arithmetic,
        }
    }
}

/// A macroblock with its neighbours that have been coded.
#[derive(Clone, Copy)]
struct Here<'a> {
    x: usize,
    y: usize,
    left: Option<&'a Macroblock>,
    above: Option<&'a Macroblock>,
    above_left: Option<&'a Macroblock>,
    above_right: Option<&'a Macroblock>,
}

/// A row of macroblocks that has been coded.
#[derive(Debug)]
pub enum Row {
    /// As bits, to be joined to those of other rows.
    Codes(RowBits),
    /// As what is to be written by the picture's arithmetic coder.
    Syntax(Vec<Syntax>),
}

impl Default for Row {
    fn default() -> Row {
        Row::Codes(RowBits::default())
    }
}

impl Row {
    fn skip(&mut self, now: &mut Macroblock) {
        debug_assert!(now.counts == [0; 24], "it has no levels");
        match self {
            Row::Codes(bits) => bits.skip(),
            Row::Syntax(all) => all.push(Syntax::empty(Type::Skip)),
        }
    }
}

/// A column of a macroblock: luma, and Cb and Cr.
type Columns = ([u8; 16], [[u8; 8]; 2]);

/// A row that is being coded.
#[derive(Debug)]
pub struct RowCoder<'a> {
    shot: &'a Shot<'a>,
    y: usize,
    row: Row,
    /// The last columns of the macroblock before, as they were before any smoothing: luma, Cb, Cr.
    left: Columns,
    /// What was tried last.
    tried: inter::Tried,
    /// What is transformed of the same macroblock besides.
    lanes: Lanes,
    /// Whether macroblocks are searched when it turns out that they are not skipped. Else they have been.
    searches: bool,
}

impl<'a> Shot<'a> {
    fn columns(&self) -> usize {
        self.picture.size.columns()
    }

    /// The macroblock at (column, row) of the source.
    fn block(&self, x: usize, y: usize) -> &Block {
        &self.source.blocks[y * self.columns() + x]
    }

    /// What it is predicted from.
    pub fn slice_type(&self) -> SliceType {
        match self.lists.each_ref().map(Vec::is_empty) {
            [true, _] => SliceType::I,
            [_, true] => SliceType::P,
            _ => SliceType::B,
        }
    }

    /// Whether macroblocks are skipped before their motion is searched.
    pub fn skips_first(&self) -> bool {
        self.settings.effort.skips_first && self.slice_type() == SliceType::P
    }

    /// All that it may be predicted from.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.lists.iter().flatten()
    }

    /// What a macroblock may be predicted from: a picture of a list.
    ///
    /// # Safety
    /// While it lives nobody writes the rows that vectors lead to, and they are complete.
    unsafe fn reference(&self, list: usize, index: usize, x: usize, y: usize) -> Reference<'_> {
        // SAFETY: by the caller.
        unsafe { Reference::new(&self.lists[list][index].picture, self.settings.kernels, x, y) }
    }

    /// Puts what was made of a macroblock into the picture, and what others need to know of it; the last columns of it.
    fn keep(&self, here: &Here<'_>, mut now: Macroblock, made: &Block) -> Columns {
        let picture = &self.picture;
        let (luma, _) = made.luma.0.as_chunks::<16>();
        let (chroma, _) = made.chroma.0.as_chunks::<16>();
        let begin = |plane: &Plane, side: usize| plane.at((side * here.x) as isize, (side * here.y) as isize);
        let (to, stride) = (begin(&picture.luma[0], 16), picture.luma[0].stride);
        for (y, row) in luma.iter().enumerate() {
            // SAFETY: samples of this macroblock, which is this job's; planes have whole ones.
            unsafe { to.add(y * stride).copy_from_nonoverlapping(row.as_ptr(), 16) };
        }
        for (i, plane) in picture.chroma.iter().enumerate() {
            let to = begin(plane, 8);
            for (y, row) in chroma.iter().take(8).enumerate() {
                // SAFETY: as above.
                unsafe { to.add(y * plane.stride).copy_from_nonoverlapping(row[8 * i..8 * i + 8].as_ptr(), 8) };
            }
        }
        let (cb, cr) = (chroma[7].as_chunks::<8>().0[0], chroma[7].as_chunks::<8>().0[1]);
        now.bottom = (luma[15], cb, cr);
        // SAFETY: this job's; the references of `Here` are to others.
        unsafe { *picture.macroblocks.get_mut(here.y * self.columns() + here.x) = now };
        (std::array::from_fn(|y| luma[y][15]), [7, 15].map(|x| std::array::from_fn(|y| chroma[y][x])))
    }

    /// Searches motion for macroblocks of a row, in each picture that it may be predicted from.
    ///
    /// # Safety
    /// The rows of these pictures that this row needs ([`crate::motion::rows_needed`]) are complete, those before in the row
    /// have been searched, and nobody else uses the fields of these.
    pub unsafe fn search(&self, row: usize, range: std::ops::Range<usize>) {
        let columns = self.columns();
        let fields = &self.picture.fields;
        for x in range {
            let index = row * columns + x;
            if self.lists[0].is_empty() {
                // SAFETY: by the caller.
                unsafe { *fields[0].get_mut(index) = Default::default() };
            }
            let mut nearest = Match::default();
            for (number, link) in self.links().enumerate() {
                let is_other = number > 0 && number < self.lists[0].len();
                // Where the first leaves next to nothing, no other is worth its bits.
                if is_other && nearest.satd < self.settings.effort.enough * self.settings.lambda {
                    // SAFETY: by the caller.
                    unsafe { *fields[number].get_mut(index) = Found::NONE };
                    continue;
                }
                // What the neighbour found, and what another picture found here and beyond, where nothing has been
                // searched yet.
                let mut likely = [Vector::default(); 5];
                // SAFETY: by the caller; the field of what it may be predicted from is complete as its rows are.
                unsafe {
                    let before =
                        |x: usize, y: usize| link.scaled(link.likely.fields[0].get(y * columns + x).whole.vector);
                    let (right, below) = ((x + 1).min(columns - 1), (row + 1).min(self.picture.size.rows() - 1));
                    likely[1] = if is_other { link.scaled(nearest.vector) } else { before(x, row) };
                    likely[2] = before(right, row);
                    likely[3] = before(x, below);
                    likely[4] = if x > 0 { fields[number].get(index - 1).whole.vector } else { likely[1] };
                    likely[0] = median(likely[4], likely[1], likely[2]);
                }
                let search = Search {
                    source: &self.block(x, row).luma,
                    // SAFETY: by the caller.
                    reference: unsafe { Reference::new(&link.picture, self.settings.kernels, x, row) },
                    lambda: self.settings.lambda,
                    effort: self.settings.effort,
                };
                let found = search.run(&likely);
                if number == 0 {
                    nearest = found.whole;
                }
                // SAFETY: by the caller.
                unsafe { *fields[number].get_mut(index) = found };
            }
        }
    }
}

/// The middle of three vectors, each direction by itself.
fn median(a: Vector, b: Vector, c: Vector) -> Vector {
    let middle = |a: i16, b: i16, c: i16| a.min(b).max(a.max(b).min(c));
    Vector { x: middle(a.x, b.x, c.x), y: middle(a.y, b.y, c.y) }
}

impl<'a> RowCoder<'a> {
    /// Begins a row; true if it searches macroblocks itself.
    pub fn new(shot: &'a Shot<'a>, row: usize, searches: bool) -> RowCoder<'a> {
        let is_arithmetic = shot.settings.is_arithmetic;
        let coded = if is_arithmetic { Row::Syntax(Vec::with_capacity(shot.columns())) } else { Row::default() };
        RowCoder {
            shot,
            y: row,
            row: coded,
            left: Default::default(),
            tried: inter::Tried::NONE,
            lanes: Lanes([[0; 16]; 16]),
            searches,
        }
    }

    /// What was coded.
    pub fn finish(self) -> Row {
        self.row
    }

    /// Writes a macroblock; instead of one that has no codes, or takes more bits than it may, its samples.
    fn write(&mut self, here: &Here<'_>, source: &Block, syntax: Syntax, now: &mut Macroblock, made: &mut Block) {
        let references = self.shot.lists[0].len();
        let stored = || Syntax::empty(Type::Stored(Box::new(*source)));
        match &mut self.row {
            Row::Codes(bits) => {
                let has_codes = syntax.has_codes();
                if has_codes {
                    bits.write(here, &syntax, references, false, now);
                    if bits.len() <= BITS_MAX {
                        return;
                    }
                    bits.go_back();
                }
                bits.write(here, &stored(), references, has_codes, now);
            }
            Row::Syntax(all) => {
                syntax.count(now);
                // What contexts will have seen is not known here, so the bound holds for pictures as they come, and not for all: a
                // search for macroblocks before which contexts learn the opposite found one of 2408 bits by itself and 3368 there.
                let alone = |qp| Slice::bits_alone(&syntax, qp, self.shot.slice_type(), references);
                if syntax.bits_of_levels() < MANY_BITS || alone(self.shot.settings.qp) <= BITS_MAX / 4 * 3 {
                    return all.push(syntax);
                }
                all.push(stored());
            }
        }
        *made = *source;
        *now = Macroblock { kind: Kind::Stored, qp: 0, counts: [16; 24], ..Macroblock::default() };
    }

    /// Codes the macroblock of a column.
    ///
    /// # Safety
    /// All before it in the row have been coded, and of the row above all up to the next column. The rows of the reference
    /// that it needs are complete. Nobody else uses this row's samples and macroblocks from this column on.
    pub unsafe fn code(&mut self, x: usize) {
        let (shot, y, columns) = (self.shot, self.y, self.shot.columns());
        let at = |x: usize, y: usize| {
            // SAFETY: by the caller, these have been coded.
            unsafe { shot.picture.macroblocks.get(y * columns + x) }
        };
        let here = Here {
            x,
            y,
            left: (x > 0).then(|| at(x - 1, y)),
            above: (y > 0).then(|| at(x, y - 1)),
            above_left: (x > 0 && y > 0).then(|| at(x - 1, y - 1)),
            above_right: (x + 1 < columns && y > 0).then(|| at(x + 1, y - 1)),
        };
        let source = shot.block(x, y);
        let mut now = Macroblock { qp: shot.settings.qp, ..Macroblock::default() };
        let mut made = Block::EMPTY;
        match shot.slice_type() {
            SliceType::I => self.code_intra(&here, source, &mut now, &mut made),
            // SAFETY: by the caller.
            SliceType::P => unsafe { self.code_inter(&here, source, &mut now, &mut made) },
            // SAFETY: by the caller.
            SliceType::B => unsafe { self.code_bidirectional(&here, source, &mut now, &mut made) },
        }
        // What is skipped is what was tried.
        let made = if now.kind == Kind::Skip { &self.tried.prediction } else { &made };
        self.left = shot.keep(&here, now, made);
    }

    /// What lies around the macroblock, before any smoothing.
    fn around_luma(&self, here: &Here<'_>) -> Around<16> {
        Around {
            above: here.above.map(|above| above.bottom.0),
            left: here.left.map(|_| self.left.0),
            corner: here.above_left.map_or(0, |corner| corner.bottom.0[15]),
        }
    }

    fn around_chroma(&self, here: &Here<'_>) -> [Around<8>; 2] {
        std::array::from_fn(|plane| {
            let bottom = |of: &Macroblock| if plane == 0 { of.bottom.1 } else { of.bottom.2 };
            Around {
                above: here.above.map(bottom),
                left: here.left.map(|_| self.left.1[plane]),
                corner: here.above_left.map_or(0, |corner| bottom(corner)[7]),
            }
        })
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests;
