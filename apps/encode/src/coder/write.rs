//! Macroblocks by variable-length codes (7.3.5 and 9.2 of the standard).

use super::Here;

use super::residual::{CHROMA_BLOCKS, blocks_of};
use super::syntax::{Cut, Moved, Syntax, Type};
use crate::bits::{Bits, Mark};
use crate::cavlc::{Around, places, write_block};
use crate::picture::{Block, Macroblock};
use crate::tables::{CBP_INTER, CBP_INTRA};

/// More bits than these no macroblock may have (A.3.1, item about `macroblock_layer`): then its samples are stored.
pub(super) const BITS_MAX: usize = 3200;

/// Levels of fewer bits do not come near that, with all that is written beside them.
pub(super) const MANY_BITS: usize = 600;

/// The bits of a row of macroblocks, to be joined with those of others.
#[derive(Clone, Debug, Default)]
pub struct RowBits {
    /// Macroblocks skipped before the first one that is coded.
    before: u32,
    /// Whether any is coded.
    any: bool,
    /// Bits, each followed by the samples of a macroblock, which begin at a whole byte.
    pieces: Vec<(Bits, Vec<u8>)>,
    /// Bits behind these.
    bits: Bits,
    /// Macroblocks skipped since.
    after: u32,
    /// Where the last macroblock that is coded begins.
    mark: Mark,
}

impl RowBits {
    pub(super) fn skip(&mut self) {
        if self.any {
            self.after += 1;
        } else {
            self.before += 1;
        }
    }

    /// Begins a macroblock that is coded; in a picture that may skip some, the run of those before it is written, unless it
    /// goes back to another row.
    fn begin(&mut self, may_skip: bool) {
        if may_skip && self.any {
            self.bits.ue(self.after);
        }
        self.any = true;
        self.after = 0;
        self.mark = self.bits.mark();
    }

    /// How many bits the last macroblock that is coded has.
    pub(super) fn len(&self) -> usize {
        self.bits.len_since(self.mark)
    }

    /// Forgets the last macroblock that is coded, which is followed by another instead.
    pub(super) fn go_back(&mut self) {
        self.bits.go_back(self.mark);
    }

    fn store(&mut self, block: &Block, may_skip: bool) {
        self.intra_type(25, may_skip);
        let (luma, chroma) = (&block.luma.0, block.chroma.0.as_chunks::<8>().0);
        let mut samples = luma.to_vec();
        for plane in 0..2 {
            chroma.iter().skip(plane).step_by(2).take(8).for_each(|row| samples.extend_from_slice(row));
        }
        self.pieces.push((std::mem::take(&mut self.bits), samples));
    }

    /// Writes a macroblock of a picture with so many references; how many levels its blocks have is entered. `is_again` if it takes the place of one that was
    /// forgotten.
    pub(super) fn write(
        &mut self,
        here: &Here<'_>,
        syntax: &Syntax,
        references: usize,
        is_again: bool,
        now: &mut Macroblock,
    ) {
        if let Type::Skip = syntax.kind {
            return self.skip();
        }
        let may_skip = references > 0;
        if !is_again {
            self.begin(may_skip);
        }
        match &syntax.kind {
            Type::Skip => {}
            Type::Stored(block) => return self.store(block, may_skip),
            Type::Inter(Moved { cut, references: which, differences, .. }) => {
                self.bits.ue(*cut as u32);
                if *cut == Cut::Quarters {
                    // None is cut further.
                    self.bits.put(4, 0b1111);
                }
                let parts = cut.parts().len();
                which[..parts].iter().for_each(|which| self.bits.te(u32::from(*which), references as u32 - 1));
                for value in differences[0][..parts].as_flattened() {
                    self.bits.se(*value);
                }
                self.bits.ue(CBP_INTER[syntax.pattern as usize].into());
            }
            Type::Intra4(modes) => {
                self.intra_type(0, may_skip);
                for mode in modes {
                    match mode {
                        None => self.bits.put(1, 1),
                        Some(mode) => self.bits.put(4, u32::from(*mode)),
                    }
                }
                self.bits.ue(syntax.chroma_mode);
                self.bits.ue(CBP_INTRA[syntax.pattern as usize].into());
            }
            Type::Intra16(mode) => {
                let all = if syntax.pattern & 15 != 0 { 12 } else { 0 };
                self.intra_type(1 + mode + 4 * (syntax.pattern >> 4) + all, may_skip);
                self.bits.ue(syntax.chroma_mode);
            }
        }
        if syntax.pattern != 0 || syntax.luma_dc.is_some() {
            // The quantiser is that of the picture, always.
            self.bits.se(0);
            self.residual(here, syntax, now);
        }
    }

    /// The type of an intra macroblock (Table 7-11), whose numbers follow others where macroblocks may be predicted from
    /// other pictures.
    fn intra_type(&mut self, number: u32, may_skip: bool) {
        self.bits.ue(number + if may_skip { 5 } else { 0 });
    }

    fn residual(&mut self, here: &Here<'_>, syntax: &Syntax, now: &mut Macroblock) {
        let mut counts = Counts::new(here);
        if let Some(dc) = &syntax.luma_dc {
            write_block(&mut self.bits, dc, places(dc), counts.luma(0));
        }
        let begin = usize::from(syntax.luma_dc.is_some());
        for quarter in 0..4 {
            for &block in blocks_of(quarter) {
                let count = match syntax.pattern >> quarter & 1 {
                    0 => 0,
                    _ => {
                        let (levels, places) = (&syntax.luma.blocks[block], syntax.luma.places[block]);
                        write_block(&mut self.bits, &levels[begin..], places >> begin, counts.luma(block))
                    }
                };
                counts.set_luma(block, count, now);
            }
        }
        let pattern = syntax.pattern >> 4;
        if pattern > 0 {
            for dc in &syntax.chroma.dc {
                write_block(&mut self.bits, dc, places(dc), Around::ChromaDc);
            }
        }
        if pattern < 2 {
            return;
        }
        for (plane, blocks) in CHROMA_BLOCKS.iter().enumerate() {
            for (i, &block) in blocks.iter().enumerate() {
                let around = counts.chroma(plane, i);
                let (levels, places) = (&syntax.chroma.levels.blocks[block], syntax.chroma.levels.places[block]);
                let count = write_block(&mut self.bits, &levels[1..], places >> 1, around);
                counts.chroma[plane][(i / 2 + 1) * 3 + i % 2 + 1] = count;
                now.counts[16 + 4 * plane + i] = count;
            }
        }
    }

    /// Joins rows to what comes before the first macroblock of a slice.
    pub fn join<'a>(slice: &mut Bits, rows: impl Iterator<Item = &'a RowBits>, may_skip: bool) {
        let mut run = 0;
        for row in rows {
            run += row.before;
            if !row.any {
                continue;
            }
            if may_skip {
                slice.ue(run);
            }
            for (bits, samples) in &row.pieces {
                slice.append(bits);
                slice.align();
                samples.iter().for_each(|sample| slice.put(8, (*sample).into()));
            }
            slice.append(&row.bits);
            run = row.after;
        }
        if run > 0 {
            slice.ue(run);
        }
    }
}

/// Coefficients of the blocks around each block: those of this macroblock, and one row and column more.
struct Counts {
    luma: [u8; 25],
    chroma: [[u8; 9]; 2],
}

/// No such block.
const MISSING: u8 = 255;

impl Counts {
    fn new(here: &Here<'_>) -> Counts {
        let mut counts = Counts { luma: [MISSING; 25], chroma: [[MISSING; 9]; 2] };
        if let Some(above) = here.above {
            counts.luma[1..5].copy_from_slice(&above.counts[12..16]);
            for (plane, to) in counts.chroma.iter_mut().enumerate() {
                to[1..3].copy_from_slice(&above.counts[18 + 4 * plane..20 + 4 * plane]);
            }
        }
        if let Some(left) = here.left {
            (0..4).for_each(|y| counts.luma[5 * (y + 1)] = left.counts[4 * y + 3]);
            for (plane, to) in counts.chroma.iter_mut().enumerate() {
                (0..2).for_each(|y| to[3 * (y + 1)] = left.counts[16 + 4 * plane + 2 * y + 1]);
            }
        }
        counts
    }

    fn around(left: u8, above: u8) -> Around {
        Around::Blocks(match (left, above) {
            (MISSING, MISSING) => 0,
            (one, MISSING) | (MISSING, one) => one,
            (left, above) => (left + above).div_ceil(2),
        })
    }

    fn luma(&self, block: usize) -> Around {
        let at = (block / 4 + 1) * 5 + block % 4 + 1;
        Counts::around(self.luma[at - 1], self.luma[at - 5])
    }

    fn chroma(&self, plane: usize, block: usize) -> Around {
        let at = (block / 2 + 1) * 3 + block % 2 + 1;
        Counts::around(self.chroma[plane][at - 1], self.chroma[plane][at - 3])
    }

    fn set_luma(&mut self, block: usize, count: u8, now: &mut Macroblock) {
        self.luma[(block / 4 + 1) * 5 + block % 4 + 1] = count;
        now.counts[block] = count;
    }
}
