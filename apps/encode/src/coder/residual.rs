//! What is left after prediction: coefficients, levels, and what a decoder makes of them.

use super::Settings;
use crate::kernel::{Coefficients, Division, Lanes, Samples};
use crate::tables::{BLOCK_ORDER, ZIGZAG};

/// Levels of chroma.
#[derive(Clone, Debug)]
pub(super) struct Chroma {
    pub(super) lanes: Lanes,
    /// Bit b: block b has levels besides the constant part. Blocks are counted row by row, Cb's and Cr's beside each other.
    pub(super) coded: u16,
    /// The constant parts of Cb and of Cr.
    pub(super) dc: [[i16; 4]; 2],
}

/// Blocks of a chroma plane among the eight.
pub(super) const CHROMA_BLOCKS: [[usize; 4]; 2] = [[0, 1, 4, 5], [2, 3, 6, 7]];

/// Bits of the blocks in each quarter.
pub(super) const QUARTERS: [u16; 4] = [0x0033, 0x00cc, 0x3300, 0xcc00];

/// Levels of a block in scan order.
pub(super) fn scanned(lanes: &Lanes, block: usize) -> [i16; 16] {
    let mut levels = [0; 16];
    for (level, place) in levels.iter_mut().zip(ZIGZAG) {
        *level = lanes.0[place][block];
    }
    levels
}

fn clear(lanes: &mut Lanes, blocks: u16) {
    if blocks == 0 {
        return;
    }
    let mask: [i16; 16] = std::array::from_fn(|block| if blocks >> block & 1 == 1 { 0 } else { -1 });
    for values in &mut lanes.0 {
        values.iter_mut().zip(mask).for_each(|(value, mask)| *value &= mask);
    }
}

/// How much a block's levels are worth: nothing for few ones far from each other, 9 for anything larger, as x264 and JM have it.
fn worth(levels: &[i16]) -> u32 {
    const BY_RUN: [u32; 16] = [3, 2, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (mut sum, mut run) = (0, 0);
    for &level in levels {
        match level {
            0 => run += 1,
            -1 | 1 => {
                sum += BY_RUN[run];
                run = 0;
            }
            _ => return 9,
        }
    }
    sum
}

/// What levels of a quarter, of all luma, and of a plane of chroma have to be worth to be kept. Less than x264's 4, 6 and 7: what
/// is dropped stays as an error in all pictures behind, and where pictures move by fractions of samples it grows from one to the
/// next. To keep all takes more bits of noisy pictures.
const KEPT_QUARTER: u32 = 3;
const KEPT_LUMA: u32 = 5;
const KEPT_CHROMA: u32 = 4;

impl Settings<'_> {
    fn transformed(&self, source: &Samples, prediction: &Samples) -> Lanes {
        let mut lanes = Lanes([[0; 16]; 16]);
        // SAFETY: `Kernels::new` has seen to the instruction set.
        unsafe { (self.kernels.transform)(source, prediction, &mut lanes) };
        lanes
    }

    fn divided(&self, lanes: &mut Lanes, by: &Division) -> u16 {
        // SAFETY: as above.
        unsafe { (self.kernels.divide)(lanes, by) }
    }

    /// Luma predicted from another picture: levels, and which blocks have any. What is worth too little is left out.
    pub(super) fn luma_inter(&self, source: &Samples, prediction: &Samples, lanes: &mut Lanes) -> u16 {
        // SAFETY: as above.
        unsafe { (self.kernels.transform)(source, prediction, lanes) };
        let mut coded = self.divided(lanes, &self.luma.inter);
        if coded == 0 {
            return 0;
        }
        let (mut dropped, mut total) = (0, 0);
        for quarter in QUARTERS {
            let mut sum = 0;
            for block in (0..16).filter(|block| coded & quarter & 1 << block != 0) {
                sum += worth(&scanned(lanes, block));
                if sum >= KEPT_LUMA {
                    break;
                }
            }
            total += sum;
            if sum < KEPT_QUARTER {
                dropped |= quarter & coded;
            }
        }
        if total < KEPT_LUMA {
            dropped = coded;
        }
        clear(lanes, dropped);
        coded &= !dropped;
        coded
    }

    /// Luma predicted as a whole.
    pub(super) fn luma_whole(&self, source: &Samples, prediction: &Samples) -> (Lanes, u16, [i16; 16]) {
        let mut lanes = self.transformed(source, prediction);
        let dc = self.luma.luma_dc(&lanes.0[0]);
        lanes.0[0] = [0; 16];
        let coded = self.divided(&mut lanes, &self.luma.intra);
        (lanes, coded, dc)
    }

    /// Chroma.
    pub(super) fn chroma_levels(&self, source: &Samples, prediction: &Samples, is_intra: bool) -> Chroma {
        let mut lanes = self.transformed(source, prediction);
        let dc = CHROMA_BLOCKS.map(|blocks| self.chroma.chroma_dc(blocks.map(|block| lanes.0[0][block]), is_intra));
        lanes.0[0] = [0; 16];
        self.chroma.spare(&mut lanes);
        let by = if is_intra { &self.chroma.intra } else { &self.chroma.inter };
        let mut coded = self.divided(&mut lanes, by) & 0xff;
        if !is_intra && coded != 0 {
            for blocks in CHROMA_BLOCKS {
                let bits = blocks.iter().fold(0, |bits, block| bits | 1 << block) & coded;
                let worth = |block: &usize| worth(&scanned(&lanes, *block)[1..]);
                if blocks.iter().filter(|block| bits & 1 << **block != 0).map(worth).sum::<u32>() < KEPT_CHROMA {
                    clear(&mut lanes, bits);
                    coded &= !bits;
                }
            }
        }
        Chroma { lanes, coded, dc }
    }

    /// What a decoder makes of the levels of luma, some of which are not zero if any block is coded, and of constant parts that are
    /// coded by themselves.
    pub(super) fn made_luma(
        &self,
        (levels, coded): (&Lanes, u16),
        luma_dc: Option<&[i16; 16]>,
        prediction: &Samples,
        out: &mut Samples,
    ) {
        if coded == 0 && luma_dc.is_none_or(|dc| *dc == [0; 16]) {
            *out = *prediction;
            return;
        }
        let constant = luma_dc.map(|dc| self.luma.luma_dc_back(dc));
        let coefficients = Coefficients { levels, factors: &self.luma.scale, constant };
        // SAFETY: as above.
        unsafe { (self.kernels.reconstruct)(coefficients, prediction, out) };
    }

    /// And of those of chroma.
    pub(super) fn made_chroma(&self, chroma: &Chroma, prediction: &Samples, out: &mut Samples) {
        if chroma.pattern() == 0 {
            *out = *prediction;
            return;
        }
        let mut constant = [0; 16];
        for (blocks, dc) in CHROMA_BLOCKS.iter().zip(chroma.dc) {
            let values = self.chroma.chroma_dc_back(dc);
            blocks.iter().zip(values).for_each(|(block, value)| constant[*block] = value);
        }
        let (levels, factors) = (&chroma.lanes, &self.chroma.scale);
        let coefficients = Coefficients { levels, factors, constant: Some(constant) };
        // SAFETY: as above.
        unsafe { (self.kernels.reconstruct)(coefficients, prediction, out) };
    }
}

impl Chroma {
    /// The chroma part of the coded block pattern: nothing, constant parts, all.
    pub(super) fn pattern(&self) -> u32 {
        match (self.coded != 0, self.dc != [[0; 4]; 2]) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }
    }
}

/// The luma part of the coded block pattern: which quarters have levels.
pub(super) fn luma_pattern(coded: u16) -> u32 {
    QUARTERS.iter().enumerate().fold(0, |bits, (i, quarter)| bits | u32::from(coded & quarter != 0) << i)
}

/// Blocks of a quarter in the order in which they are written.
pub(super) fn blocks_of(quarter: usize) -> &'static [usize] {
    &BLOCK_ORDER[4 * quarter..4 * quarter + 4]
}
