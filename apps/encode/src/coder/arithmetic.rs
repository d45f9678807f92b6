//! Macroblocks by arithmetic codes (9.3.2 and 9.3.3 of the standard): which bins, by which contexts.
//!
//! A slice's coder has seen all that came before, so pictures are written row by row, behind the rows' coding and beside that
//! of other pictures.

use super::inter::first_quarter;
use super::residual::CHROMA_BLOCKS;
use super::syntax::{Cut, From, Moved, Syntax, Type};
use crate::bits::Bits;
use crate::cabac::Engine;
use crate::headers::SliceType;
use crate::picture::Size;
use crate::tables::BLOCK_ORDER;

/// What the contexts of others depend on.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Whether there is one.
    is_there: bool,
    is_skipped: bool,
    is_intra: bool,
    /// Whether it is predicted block by block.
    is_by_block: bool,
    has_chroma_mode: bool,
    pattern: u32,
    /// Blocks that have levels: bit b of luma; of chroma Cb's and then Cr's.
    luma: u16,
    chroma: u8,
    /// Constant parts coded by themselves: luma, Cb, Cr.
    constant: [bool; 3],
    /// Whether all of it is predicted as its neighbours are.
    is_direct: bool,
    /// Bit q: quarter q is predicted from another picture of the first list than the nearest.
    far: u8,
    /// Sizes of differences of vectors, by list and quarter.
    moved: [[[u8; 2]; 4]; 2],
}

/// Kinds of blocks (Table 9-42), and where their contexts begin beyond those of the first.
#[derive(Clone, Copy)]
struct Category {
    flag: usize,
    map: usize,
    level: usize,
}

const LUMA_DC: Category = Category { flag: 0, map: 0, level: 0 };
const LUMA_AC: Category = Category { flag: 4, map: 15, level: 10 };
const LUMA: Category = Category { flag: 8, map: 29, level: 20 };
const CHROMA_DC: Category = Category { flag: 12, map: 44, level: 30 };
const CHROMA_AC: Category = Category { flag: 16, map: 47, level: 39 };

/// Where contexts begin (Table 9-34).
const SKIP: usize = 11;
const SKIP_BIDIRECTIONAL: usize = 24;
const TYPE_INTRA: usize = 3;
const TYPE_INTER: usize = 14;
const TYPE_BIDIRECTIONAL: usize = 27;
const TYPE_INTRA_AMONG_INTER: usize = 17;
const TYPE_INTRA_AMONG_BIDIRECTIONAL: usize = 32;
const TYPE_QUARTER: usize = 21;
const TYPE_QUARTER_BIDIRECTIONAL: usize = 36;
const MOVED: [usize; 2] = [40, 47];
const REFERENCE: usize = 54;
const QUANTISER: usize = 60;
const CHROMA_MODE: usize = 64;
const MODE_IS_LIKELY: usize = 68;
const MODE: usize = 69;
const PATTERN: usize = 73;
const PATTERN_CHROMA: usize = 77;
const FLAG: usize = 85;
const SIGNIFICANT: usize = 105;
const LAST: usize = 166;
const LEVEL: usize = 227;

/// A slice that is being written.
#[derive(Debug)]
pub struct Slice {
    engine: Engine,
    slice_type: SliceType,
    /// How many pictures the first list has.
    references: usize,
    /// The row above, column by column.
    above: Vec<Seen>,
    rows_left: usize,
}

impl Slice {
    /// For a picture with a quantiser, whose macroblocks may be predicted from so many others before it.
    pub fn new(size: Size, qp: u8, slice_type: SliceType, references: usize) -> Slice {
        let above = vec![Seen::default(); size.columns()];
        let engine = Engine::new(qp, slice_type != SliceType::I);
        Slice { engine, slice_type, references, above, rows_left: size.rows() }
    }

    /// The next row.
    pub fn row(&mut self, row: &[Syntax]) {
        self.rows_left -= 1;
        let mut left = Seen::default();
        for (x, syntax) in row.iter().enumerate() {
            let mut writer = Writer {
                engine: &mut self.engine,
                slice_type: self.slice_type,
                references: self.references,
                left,
                above: self.above[x],
                now: Seen { is_there: true, ..Seen::default() },
            };
            writer.macroblock(syntax);
            left = writer.now;
            self.above[x] = left;
            self.engine.end(self.rows_left == 0 && x + 1 == row.len());
        }
    }

    /// How many bins there were.
    pub fn bins(&self) -> u64 {
        self.engine.bins()
    }

    /// Bits of a macroblock if it were a picture by itself.
    pub(super) fn bits_alone(syntax: &Syntax, qp: u8, slice_type: SliceType, references: usize) -> usize {
        let mut slice = Slice::new(Size { width: 16, height: 16 }, qp, slice_type, references);
        slice.row(std::slice::from_ref(syntax));
        slice.into_bits().len()
    }

    /// All bits but those before the first macroblock.
    pub fn into_bits(self) -> Bits {
        self.engine.into_bits()
    }
}

struct Writer<'a> {
    engine: &'a mut Engine,
    slice_type: SliceType,
    references: usize,
    left: Seen,
    above: Seen,
    now: Seen,
}

impl Writer<'_> {
    /// How many of the neighbours, the one above twice if asked.
    fn count(&self, holds: impl Fn(&Seen) -> bool, above: usize) -> usize {
        usize::from(holds(&self.left)) + above * usize::from(holds(&self.above))
    }

    fn macroblock(&mut self, syntax: &Syntax) {
        self.now.pattern = syntax.pattern;
        if self.slice_type != SliceType::I {
            let first = if self.slice_type == SliceType::B { SKIP_BIDIRECTIONAL } else { SKIP };
            let context = first + self.count(|seen| seen.is_there && !seen.is_skipped, 1);
            let is_skipped = matches!(syntax.kind, Type::Skip);
            self.engine.bin(context, is_skipped);
            if is_skipped {
                self.now.is_skipped = true;
                self.now.is_direct = self.slice_type == SliceType::B;
                return;
            }
        }
        match &syntax.kind {
            Type::Skip => {}
            Type::Inter(moved) => self.inter(moved),
            Type::Intra16(mode) => {
                self.intra_type(Some((*mode, syntax.pattern)));
                self.chroma_mode(syntax.chroma_mode);
            }
            Type::Intra4(modes) => {
                self.intra_type(None);
                self.now.is_by_block = true;
                for mode in modes {
                    self.engine.bin(MODE_IS_LIKELY, mode.is_none());
                    if let Some(mode) = mode {
                        (0..3).for_each(|bit| self.engine.bin(MODE, mode >> bit & 1 == 1));
                    }
                }
                self.chroma_mode(syntax.chroma_mode);
            }
            Type::Stored(block) => {
                self.intra_begin(true);
                self.engine.end(true);
                let mut bytes = block.luma.0.to_vec();
                let chroma = block.chroma.0.as_chunks::<8>().0;
                for plane in 0..2 {
                    chroma.iter().skip(plane).step_by(2).take(8).for_each(|row| bytes.extend_from_slice(row));
                }
                self.engine.bytes(&bytes);
                let all = Seen { pattern: 0x2f, luma: 0xffff, chroma: 0xff, constant: [true; 3], ..self.now };
                self.now = Seen { is_intra: true, ..all };
                return;
            }
        }
        self.now.is_intra = !matches!(syntax.kind, Type::Inter(..));
        if syntax.luma_dc.is_none() {
            self.pattern(syntax.pattern);
        }
        if syntax.pattern != 0 || syntax.luma_dc.is_some() {
            // The quantiser is that of the picture, always.
            self.engine.bin(QUANTISER, false);
            self.residual(syntax);
        }
    }

    fn inter(&mut self, moved: &Moved) {
        match self.slice_type {
            SliceType::B => self.cut_bidirectional(moved),
            _ => self.cut(moved.cut),
        }
        self.now.is_direct = moved.is_direct();
        if moved.is_direct() {
            return;
        }
        let parts = moved.cut.parts();
        if self.references > 1 {
            for (i, part) in parts.iter().enumerate().filter(|(i, _)| moved.from[*i].writes(0)) {
                self.reference(first_quarter(part), moved.references[i].into());
                if moved.references[i] > 0 {
                    part.quarters().for_each(|quarter| self.now.far |= 1 << quarter);
                }
            }
        }
        for list in 0..2 {
            for (i, part) in parts.iter().enumerate().filter(|(i, _)| moved.from[*i].writes(list)) {
                let difference = moved.differences[list][i];
                [0, 1].into_iter().for_each(|axis| self.moved(list, first_quarter(part), axis, difference[axis]));
                let sizes = difference.map(|value| value.unsigned_abs().min(255) as u8);
                part.quarters().for_each(|quarter| self.now.moved[list][quarter] = sizes);
            }
        }
    }

    fn cut(&mut self, cut: Cut) {
        let (second, third) = match cut {
            Cut::Whole => (false, false),
            Cut::Quarters => (false, true),
            Cut::Tall => (true, false),
            Cut::Wide => (true, true),
        };
        self.engine.bin(TYPE_INTER, false);
        self.engine.bin(TYPE_INTER + 1, second);
        self.engine.bin(TYPE_INTER + if second { 3 } else { 2 }, third);
        if cut == Cut::Quarters {
            // None is cut further.
            (0..4).for_each(|_| self.engine.bin(TYPE_QUARTER, true));
        }
    }

    /// The type of a macroblock of a picture with two lists (Tables 7-14 and 9-37).
    fn cut_bidirectional(&mut self, moved: &Moved) {
        let Moved { cut, from, .. } = *moved;
        // By what the first and the second part are predicted from, in the order of their numbers.
        const PAIRS: [(From, From); 9] = [
            (From::First, From::First),
            (From::Second, From::Second),
            (From::First, From::Second),
            (From::Second, From::First),
            (From::First, From::Both),
            (From::Second, From::Both),
            (From::Both, From::First),
            (From::Both, From::Second),
            (From::Both, From::Both),
        ];
        let number = match cut {
            Cut::Whole => from[0].number(),
            Cut::Wide | Cut::Tall => {
                let pair = PAIRS.iter().position(|pair| *pair == (from[0], from[1]));
                4 + 2 * pair.unwrap_or(0) as u32 + u32::from(cut == Cut::Tall)
            }
            Cut::Quarters => 22,
        };
        let context = TYPE_BIDIRECTIONAL + self.count(|seen| seen.is_there && !seen.is_direct, 1);
        self.engine.bin(context, number > 0);
        match number {
            0 => {}
            1 | 2 => self.type_bins(false, &[number == 2]),
            11 => self.type_number(0b1110, 4),
            22 => self.type_number(0b1111, 4),
            3..11 => self.type_number(number - 3, 4),
            _ => self.type_number(number + 4, 5),
        }
        if cut == Cut::Quarters {
            from.into_iter().for_each(|from| self.quarter(from));
        }
    }

    /// Bins behind the first of a type: the second, and so many more.
    fn type_bins(&mut self, is_other: bool, bins: &[bool]) {
        self.engine.bin(TYPE_BIDIRECTIONAL + 3, is_other);
        for (i, bin) in bins.iter().enumerate() {
            let context = if is_other && i == 0 { 4 } else { 5 };
            self.engine.bin(TYPE_BIDIRECTIONAL + context, *bin);
        }
    }

    fn type_number(&mut self, number: u32, bits: usize) {
        let bins: [bool; 5] = std::array::from_fn(|i| i < bits && number >> (bits - 1 - i) & 1 == 1);
        self.type_bins(true, &bins[..bits]);
    }

    /// The type of a quarter in a picture with two lists (Tables 7-18 and 9-38).
    fn quarter(&mut self, from: From) {
        let first = TYPE_QUARTER_BIDIRECTIONAL;
        self.engine.bin(first, from != From::Direct);
        match from {
            From::Direct => {}
            From::First | From::Second => {
                self.engine.bin(first + 1, false);
                self.engine.bin(first + 3, from == From::Second);
            }
            From::Both => {
                self.engine.bin(first + 1, true);
                (0..3).for_each(|i| self.engine.bin(first + [2, 3, 3][i], false));
            }
        }
    }

    /// Which picture of the first list.
    fn reference(&mut self, quarter: usize, value: u32) {
        let is_far = |seen: &Seen, quarter: usize| usize::from(seen.far >> quarter & 1);
        let left = is_far(if quarter % 2 == 1 { &self.now } else { &self.left }, quarter ^ 1);
        let above = is_far(if quarter >= 2 { &self.now } else { &self.above }, quarter ^ 2);
        let mut context = REFERENCE + left + 2 * above;
        for i in 0..value {
            self.engine.bin(context, true);
            context = REFERENCE + if i == 0 { 4 } else { 5 };
        }
        self.engine.bin(context, false);
    }

    /// Up to whether it is predicted block by block.
    fn intra_begin(&mut self, is_other: bool) {
        match self.slice_type {
            SliceType::I => {
                let context = TYPE_INTRA + self.count(|seen| seen.is_there && !seen.is_by_block, 1);
                self.engine.bin(context, is_other);
            }
            SliceType::P => {
                self.engine.bin(TYPE_INTER, true);
                self.engine.bin(TYPE_INTRA_AMONG_INTER, is_other);
            }
            SliceType::B => {
                let context = TYPE_BIDIRECTIONAL + self.count(|seen| seen.is_there && !seen.is_direct, 1);
                self.engine.bin(context, true);
                self.type_number(0b1101, 4);
                self.engine.bin(TYPE_INTRA_AMONG_BIDIRECTIONAL, is_other);
            }
        }
    }

    /// One that is predicted as a whole has a mode and a pattern.
    fn intra_type(&mut self, whole: Option<(u32, u32)>) {
        self.intra_begin(whole.is_some());
        let Some((mode, pattern)) = whole else { return };
        self.engine.end(false);
        let contexts = match self.slice_type {
            SliceType::I => [3, 4, 5, 6, 7].map(|context| TYPE_INTRA + context),
            SliceType::P => [1, 2, 2, 3, 3].map(|context| TYPE_INTRA_AMONG_INTER + context),
            SliceType::B => [1, 2, 2, 3, 3].map(|context| TYPE_INTRA_AMONG_BIDIRECTIONAL + context),
        };
        self.engine.bin(contexts[0], pattern & 15 != 0);
        self.engine.bin(contexts[1], pattern >> 4 != 0);
        if pattern >> 4 != 0 {
            self.engine.bin(contexts[2], pattern >> 4 == 2);
        }
        self.engine.bin(contexts[3], mode >> 1 == 1);
        self.engine.bin(contexts[4], mode & 1 == 1);
    }

    fn chroma_mode(&mut self, mode: u32) {
        let context = CHROMA_MODE + self.count(|seen| seen.has_chroma_mode, 1);
        self.now.has_chroma_mode = mode != 0;
        self.engine.bin(context, mode > 0);
        for more in 1..=mode.min(2) {
            self.engine.bin(CHROMA_MODE + 3, mode > more);
        }
    }

    fn moved(&mut self, list: usize, quarter: usize, axis: usize, value: i32) {
        let before = if quarter % 2 == 1 { &self.now } else { &self.left }.moved[list][quarter ^ 1];
        let above = if quarter >= 2 { &self.now } else { &self.above }.moved[list][quarter ^ 2];
        let sum = u32::from(before[axis]) + u32::from(above[axis]);
        let first = usize::from(sum > 2) + usize::from(sum > 32);
        let size = value.unsigned_abs();
        self.engine.bin(MOVED[axis] + first, size > 0);
        if size == 0 {
            return;
        }
        for more in 1..9 {
            let context = MOVED[axis] + (2 + more as usize).min(6);
            self.engine.bin(context, size > more);
            if size == more {
                break;
            }
        }
        if size >= 9 {
            self.engine.plain_number(3, size - 9);
        }
        self.engine.plain(value < 0);
    }

    fn pattern(&mut self, pattern: u32) {
        let none = |seen: &Seen, quarter: usize| {
            usize::from(seen.is_there && (seen.is_skipped || seen.pattern >> quarter & 1 == 0))
        };
        for quarter in 0..4 {
            let left = none(if quarter % 2 == 1 { &self.now } else { &self.left }, quarter ^ 1);
            let above = none(if quarter >= 2 { &self.now } else { &self.above }, quarter ^ 2);
            self.engine.bin(PATTERN + left + 2 * above, pattern >> quarter & 1 == 1);
        }
        let chroma = pattern >> 4;
        let context = PATTERN_CHROMA + self.count(|seen| seen.pattern >> 4 != 0, 2);
        self.engine.bin(context, chroma != 0);
        if chroma != 0 {
            let context = PATTERN_CHROMA + 4 + self.count(|seen| seen.pattern >> 4 == 2, 2);
            self.engine.bin(context, chroma == 2);
        }
    }

    fn residual(&mut self, syntax: &Syntax) {
        // Where there is no neighbour, an intra macroblock takes it to have levels.
        let missing = self.now.is_intra;
        let flag = |seen: &Seen, holds: bool| usize::from(if seen.is_there { holds } else { missing });
        if let Some(dc) = &syntax.luma_dc {
            let context = flag(&self.left, self.left.constant[0]) + 2 * flag(&self.above, self.above.constant[0]);
            self.now.constant[0] = self.block(LUMA_DC, dc, context);
        }
        let (category, begin) = if syntax.luma_dc.is_some() { (LUMA_AC, 1) } else { (LUMA, 0) };
        for block in BLOCK_ORDER.into_iter().filter(|block| syntax.has_levels(*block)) {
            let has = |seen: &Seen, block: usize| seen.luma >> block & 1 == 1;
            let left = match block % 4 {
                0 => flag(&self.left, has(&self.left, block + 3)),
                _ => usize::from(has(&self.now, block - 1)),
            };
            let above = match block / 4 {
                0 => flag(&self.above, has(&self.above, block + 12)),
                _ => usize::from(has(&self.now, block - 4)),
            };
            let any = self.block(category, &syntax.luma.blocks[block][begin..], left + 2 * above);
            self.now.luma |= u16::from(any) << block;
        }
        if syntax.pattern >> 4 == 0 {
            return;
        }
        for plane in 0..2 {
            let of = |seen: &Seen| seen.constant[1 + plane];
            let context = flag(&self.left, of(&self.left)) + 2 * flag(&self.above, of(&self.above));
            self.now.constant[1 + plane] = self.block(CHROMA_DC, &syntax.chroma.dc[plane], context);
        }
        if syntax.pattern >> 4 < 2 {
            return;
        }
        for (plane, blocks) in CHROMA_BLOCKS.iter().enumerate() {
            for (i, &block) in blocks.iter().enumerate() {
                let has = |seen: &Seen, i: usize| seen.chroma >> (4 * plane + i) & 1 == 1;
                let left = match i % 2 {
                    0 => flag(&self.left, has(&self.left, i + 1)),
                    _ => usize::from(has(&self.now, i - 1)),
                };
                let above = match i / 2 {
                    0 => flag(&self.above, has(&self.above, i + 2)),
                    _ => usize::from(has(&self.now, i - 2)),
                };
                let any = self.block(CHROMA_AC, &syntax.chroma.levels.blocks[block][1..], left + 2 * above);
                self.now.chroma |= u8::from(any) << (4 * plane + i);
            }
        }
    }

    /// Levels in scan order; whether any is not zero.
    fn block(&mut self, category: Category, levels: &[i16], context: usize) -> bool {
        let last = levels.iter().rposition(|level| *level != 0);
        self.engine.bin(FLAG + category.flag + context, last.is_some());
        let Some(last) = last else { return false };
        let place = |i: usize| category.map + if category.flag == CHROMA_DC.flag { i.min(2) } else { i };
        for (i, level) in levels[..=last].iter().enumerate().take(levels.len() - 1) {
            self.engine.bin(SIGNIFICANT + place(i), *level != 0);
            if *level != 0 {
                self.engine.bin(LAST + place(i), i == last);
            }
        }
        let (mut ones, mut others) = (0, 0);
        let others_max = if category.flag == CHROMA_DC.flag { 3 } else { 4 };
        for &level in levels[..=last].iter().rev().filter(|level| **level != 0) {
            let size = u32::from(level.unsigned_abs());
            let first = if others > 0 { 0 } else { (1 + ones).min(4) };
            self.engine.bin(LEVEL + category.level + first, size > 1);
            if size > 1 {
                let context = LEVEL + category.level + 5 + others_max.min(others);
                (2..size.min(15)).for_each(|_| self.engine.bin(context, true));
                match size {
                    ..15 => self.engine.bin(context, false),
                    _ => self.engine.plain_number(0, size - 15),
                }
                others += 1;
            } else {
                ones += 1;
            }
            self.engine.plain(level < 0);
        }
        true
    }
}
