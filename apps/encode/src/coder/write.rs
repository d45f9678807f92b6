//! What was decided becomes bits (7.3.5 of the standard).

use super::residual::{CHROMA_BLOCKS, Chroma, Residual, blocks_of, luma_pattern, scanned};
use super::{Block, Here};
use crate::bits::{Bits, Mark};
use crate::cavlc::{Around, write_block};
use crate::picture::Macroblock;

/// More bits than these no macroblock may have (A.3.1, item about `macroblock_layer`): then its samples are stored.
pub(super) const BITS_MAX: usize = 3200;

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

    /// Instead of what was written of the last macroblock: its samples.
    pub(super) fn store(&mut self, block: &Block, may_skip: bool) {
        self.bits.go_back(self.mark);
        Writer { row: self, may_skip }.intra_type(25);
        let (luma, chroma) = (&block.luma.0, block.chroma.0.as_chunks::<8>().0);
        let mut samples = luma.to_vec();
        for plane in 0..2 {
            chroma.iter().skip(plane).step_by(2).take(8).for_each(|row| samples.extend_from_slice(row));
        }
        self.pieces.push((std::mem::take(&mut self.bits), samples));
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

/// Writes macroblocks of a row.
pub(super) struct Writer<'a> {
    row: &'a mut RowBits,
    may_skip: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn begin(row: &'a mut RowBits, may_skip: bool) -> Writer<'a> {
        row.begin(may_skip);
        Writer { row, may_skip }
    }

    pub(super) fn bits(&mut self) -> &mut Bits {
        &mut self.row.bits
    }

    /// The type of an intra macroblock (Table 7-11), whose numbers follow others where macroblocks may be predicted from
    /// other pictures.
    pub(super) fn intra_type(&mut self, number: u32) {
        let first = if self.may_skip { 5 } else { 0 };
        self.bits().ue(first + number);
    }

    /// Levels of a macroblock that was predicted as a whole or from another picture.
    pub(super) fn residual(&mut self, here: &Here<'_>, residual: &Residual, now: &mut Macroblock) {
        let mut counts = Counts::new(here);
        let whole = residual.luma_dc;
        if let Some(dc) = &whole {
            let levels = crate::tables::ZIGZAG.map(|place| dc[place]);
            write_block(self.bits(), &levels, counts.luma(0));
        }
        let pattern = match whole {
            Some(_) if residual.coded != 0 => 15,
            _ => luma_pattern(residual.coded),
        };
        for quarter in 0..4 {
            for &block in blocks_of(quarter) {
                let count = match pattern >> quarter & 1 {
                    0 => 0,
                    _ => {
                        let levels = scanned(&residual.luma, block);
                        let around = counts.luma(block);
                        write_block(self.bits(), if whole.is_some() { &levels[1..] } else { &levels }, around)
                    }
                };
                counts.set_luma(block, count, now);
            }
        }
        self.chroma(&residual.chroma, &mut counts, now);
    }

    /// Levels of one whose blocks were predicted one after the other, in scan order.
    pub(super) fn blocks(
        &mut self,
        here: &Here<'_>,
        levels: &[[i16; 16]; 16],
        coded: u16,
        chroma: &Chroma,
        now: &mut Macroblock,
    ) {
        let mut counts = Counts::new(here);
        let pattern = luma_pattern(coded);
        for quarter in 0..4 {
            for &block in blocks_of(quarter) {
                let count = match pattern >> quarter & 1 {
                    0 => 0,
                    _ => {
                        let around = counts.luma(block);
                        write_block(self.bits(), &levels[block], around)
                    }
                };
                counts.set_luma(block, count, now);
            }
        }
        self.chroma(chroma, &mut counts, now);
    }

    fn chroma(&mut self, chroma: &Chroma, counts: &mut Counts, now: &mut Macroblock) {
        let pattern = chroma.pattern();
        if pattern > 0 {
            chroma.dc.iter().for_each(|dc| {
                write_block(self.bits(), dc, Around::ChromaDc);
            });
        }
        now.counts[16..].fill(0);
        if pattern < 2 {
            return;
        }
        for (plane, blocks) in CHROMA_BLOCKS.iter().enumerate() {
            for (i, &block) in blocks.iter().enumerate() {
                let around = counts.chroma(plane, i);
                let count = write_block(self.bits(), &scanned(&chroma.lanes, block)[1..], around);
                counts.chroma[plane][(i / 2 + 1) * 3 + i % 2 + 1] = count;
                now.counts[16 + 4 * plane + i] = count;
            }
        }
    }
}
