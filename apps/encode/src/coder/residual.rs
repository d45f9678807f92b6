//! What is left after prediction: coefficients, levels, and what a decoder makes of them.

use super::Settings;
use crate::kernel::{Coefficients, Division, Lanes, Levels};
use crate::samples::Samples;
use crate::tables::BLOCK_ORDER;

/// Levels of chroma.
#[derive(Clone, Debug)]
pub(super) struct Chroma {
    pub(super) levels: Levels,
    /// Bit b: block b has levels besides the constant part. Blocks are counted row by row, Cb's and Cr's beside each other.
    pub(super) coded: u16,
    /// The constant parts of Cb and of Cr.
    pub(super) dc: [[i16; 4]; 2],
}

/// Blocks of a chroma plane among the eight.
pub(super) const CHROMA_BLOCKS: [[usize; 4]; 2] = [[0, 1, 4, 5], [2, 3, 6, 7]];

/// Bits of the blocks in each quarter.
pub(super) const QUARTERS: [u16; 4] = [0x0033, 0x00cc, 0x3300, 0xcc00];

fn clear(lanes: &mut Lanes, levels: &mut Levels, blocks: u16) {
    if blocks == 0 {
        return;
    }
    let mask: [i16; 16] = std::array::from_fn(|block| if blocks >> block & 1 == 1 { 0 } else { -1 });
    for values in &mut lanes.0 {
        values.iter_mut().zip(mask).for_each(|(value, mask)| *value &= mask);
    }
    for block in (0..16).filter(|block| blocks >> block & 1 == 1) {
        (levels.blocks[block], levels.places[block]) = ([0; 16], 0);
    }
}

/// How much a block's levels are worth: nothing for few ones far from each other, 9 for anything larger, as x264 and JM have it.
fn worth(levels: &Levels, block: usize, begin: usize) -> u32 {
    const BY_RUN: [u32; 16] = [3, 2, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (mut sum, mut next, mut rest) = (0, begin, levels.places[block]);
    while rest != 0 {
        let place = rest.trailing_zeros() as usize;
        if levels.blocks[block][place].unsigned_abs() > 1 {
            return 9;
        }
        sum += BY_RUN[place - next];
        (next, rest) = (place + 1, rest & (rest - 1));
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
    fn transform(&self, source: &Samples, prediction: &Samples, lanes: &mut Lanes) {
        // SAFETY: `Kernels::new` has seen to the instruction set.
        unsafe { (self.kernels.transform)(source, prediction, lanes) };
    }

    /// Levels, beside each other and block by block, if any is not zero; bit b is set where block b has one.
    fn divided(&self, by: &Division, lanes: &mut Lanes, levels: &mut Levels) -> u16 {
        // SAFETY: as above.
        let coded = unsafe { (self.kernels.divide)(lanes, by) };
        if coded != 0 {
            // SAFETY: as above.
            unsafe { (self.kernels.scan)(lanes, levels) };
        }
        coded
    }

    /// Luma predicted from another picture: levels, and which blocks have any. What is worth too little is left out.
    pub(super) fn luma_inter(
        &self,
        source: &Samples,
        prediction: &Samples,
        lanes: &mut Lanes,
        levels: &mut Levels,
    ) -> u16 {
        self.transform(source, prediction, lanes);
        let mut coded = self.divided(&self.luma.inter, lanes, levels);
        if coded == 0 {
            return 0;
        }
        let (mut dropped, mut total) = (0, 0);
        for quarter in QUARTERS {
            let mut sum = 0;
            for block in (0..16).filter(|block| coded & quarter & 1 << block != 0) {
                sum += worth(levels, block, 0);
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
        clear(lanes, levels, dropped);
        coded &= !dropped;
        coded
    }

    /// Luma predicted as a whole.
    pub(super) fn luma_whole(
        &self,
        source: &Samples,
        prediction: &Samples,
        lanes: &mut Lanes,
        levels: &mut Levels,
    ) -> (u16, [i16; 16]) {
        self.transform(source, prediction, lanes);
        let dc = self.luma.luma_dc(&lanes.0[0]);
        lanes.0[0] = [0; 16];
        (self.divided(&self.luma.intra, lanes, levels), dc)
    }

    /// Chroma.
    pub(super) fn chroma_levels(
        &self,
        source: &Samples,
        prediction: &Samples,
        is_intra: bool,
        lanes: &mut Lanes,
    ) -> Chroma {
        self.transform(source, prediction, lanes);
        let dc = CHROMA_BLOCKS.map(|blocks| self.chroma.chroma_dc(blocks.map(|block| lanes.0[0][block]), is_intra));
        lanes.0[0] = [0; 16];
        self.chroma.spare(lanes);
        let by = if is_intra { &self.chroma.intra } else { &self.chroma.inter };
        let mut levels = Levels::NONE;
        let mut coded = self.divided(by, lanes, &mut levels) & 0xff;
        if !is_intra && coded != 0 {
            for blocks in CHROMA_BLOCKS {
                let bits = blocks.iter().fold(0, |bits, block| bits | 1 << block) & coded;
                let worth = |block: &usize| worth(&levels, *block, 1);
                if blocks.iter().filter(|block| bits & 1 << **block != 0).map(worth).sum::<u32>() < KEPT_CHROMA {
                    clear(lanes, &mut levels, bits);
                    coded &= !bits;
                }
            }
        }
        Chroma { levels, coded, dc }
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
    pub(super) fn made_chroma(&self, (levels, chroma): (&Lanes, &Chroma), prediction: &Samples, out: &mut Samples) {
        if chroma.pattern() == 0 {
            *out = *prediction;
            return;
        }
        let mut constant = [0; 16];
        for (blocks, dc) in CHROMA_BLOCKS.iter().zip(chroma.dc) {
            let values = self.chroma.chroma_dc_back(dc);
            blocks.iter().zip(values).for_each(|(block, value)| constant[*block] = value);
        }
        let factors = &self.chroma.scale;
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
