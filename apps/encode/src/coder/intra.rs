//! Macroblocks that are predicted from their own picture.

use super::residual::luma_pattern;
use super::syntax::{Syntax, Type};
use super::{Here, RowCoder};
use crate::bits::ue_bits;
use crate::intra::{Around, BLOCK_DC, BLOCK_MODES, Line, Mode};
use crate::kernel::{Levels, Modes};
use crate::picture::{Block, Kind, Macroblock};
use crate::samples::Samples;
use crate::tables::{BLOCK_ORDER, ZIGZAG};

/// A macroblock predicted block by block.
pub(super) struct Blocks {
    pub(super) cost: u32,
    modes: [u8; 16],
    levels: Levels,
    coded: u16,
    made: Samples,
}

/// Blocks may cost as much as so many more, before it is given up to predict block by block.
const AHEAD: u64 = 4;

/// Samples of a macroblock with those around it: a row above, which is four longer, and a column on the left.
struct Canvas([[u8; 21]; 17]);

impl Canvas {
    fn line(&self, x: usize, y: usize, has_above: bool, has_left: bool, has_right: bool) -> Line {
        let rows = &self.0;
        let mut samples = [0; 16];
        for (i, sample) in samples[..4].iter_mut().enumerate() {
            *sample = rows[y + 4 - i][x];
        }
        samples[4..13].copy_from_slice(&rows[y][x..x + 9]);
        if !has_right {
            let last = samples[8];
            samples[9..13].fill(last);
        }
        Line { samples, has_above, has_left }
    }
}

impl RowCoder<'_> {
    /// The best mode for luma as a whole, with its cost.
    pub(super) fn best_whole(&self, here: &Here<'_>, source: &Samples) -> (Mode, u32) {
        let (around, settings) = (self.around_luma(here), &self.shot.settings);
        // SAFETY: `Kernels::new` has seen to the instruction set.
        let [vertical, horizontal, mean] = unsafe { (settings.kernels.wholes)(source, &around) };
        let satd = |mode: Mode| match mode {
            Mode::Vertical => vertical,
            Mode::Horizontal => horizontal,
            Mode::Dc => mean,
            Mode::Plane => {
                let prediction = self.whole(&around, mode);
                // SAFETY: a macroblock of 16 rows; as above.
                unsafe { (settings.kernels.satd)(source, [prediction.0.as_ptr(); 2], 16) }.iter().sum()
            }
        };
        let mut best = (Mode::Dc, u32::MAX);
        for mode in Mode::ALL.into_iter().filter(|mode| mode.is_possible(&around)) {
            let cost = satd(mode) + settings.lambda * ue_bits(1 + mode.luma_number());
            if cost < best.1 {
                best = (mode, cost);
            }
        }
        best
    }

    /// Luma by a mode that is possible.
    fn whole(&self, around: &Around<16>, mode: Mode) -> Samples {
        let mut prediction = Samples::of(0);
        // SAFETY: `Kernels::new` has seen to the instruction set.
        unsafe { (self.shot.settings.kernels.intra_luma)(mode, around, &mut prediction) };
        prediction
    }

    /// The best mode for chroma, with its prediction.
    fn best_chroma(&self, here: &Here<'_>, source: &Samples) -> (Mode, Samples) {
        let (around, settings) = (self.around_chroma(here), &self.shot.settings);
        let mut best = (Mode::Dc, u32::MAX, Samples::of(0));
        for mode in [Mode::Dc, Mode::Horizontal, Mode::Vertical, Mode::Plane] {
            if !mode.is_possible(&around[0]) {
                continue;
            }
            let mut prediction = Samples::of(0);
            let mut cost = settings.lambda * ue_bits(mode.chroma_number());
            for (plane, around) in around.iter().enumerate() {
                // SAFETY: as above.
                unsafe { (settings.kernels.intra_chroma)(mode, around, &mut prediction, 8 * plane) };
                let (a, b) = (source.0[8 * plane..].as_ptr(), prediction.0[8 * plane..].as_ptr());
                // SAFETY: 8 rows of 8, 16 apart; as above.
                cost += unsafe { (settings.kernels.satd_8)(a, [b; 2], 16) };
            }
            if cost < best.1 {
                best = (mode, cost, prediction);
            }
        }
        (best.0, best.2)
    }

    /// Luma block by block, each coded before the next is predicted; `None` as soon as it costs more than `most`.
    pub(super) fn blocks(&self, here: &Here<'_>, source: &Samples, most: u32) -> Option<Blocks> {
        let settings = &self.shot.settings;
        let around = self.around_luma(here);
        let mut canvas = Canvas([[0; 21]; 17]);
        canvas.0[0][0] = around.corner;
        canvas.0[0][1..17].copy_from_slice(&around.above.unwrap_or_default());
        if let Some(right) = here.above_right {
            canvas.0[0][17..].copy_from_slice(&right.bottom.0[..4]);
        }
        for (row, value) in canvas.0[1..].iter_mut().zip(around.left.unwrap_or_default()) {
            row[0] = value;
        }
        let mut found = Blocks {
            cost: settings.lambda * 24,
            modes: [BLOCK_DC; 16],
            levels: Levels::NONE,
            coded: 0,
            made: Samples::of(0),
        };
        let mut modes = Modes::EMPTY;
        for (number, block) in BLOCK_ORDER.into_iter().enumerate() {
            let (bx, by) = (block % 4, block / 4);
            let (has_above, has_left) = (by > 0 || here.above.is_some(), bx > 0 || here.left.is_some());
            let has_right = match (bx, by) {
                (0..3, 0) => has_above,
                (3, 0) => here.above_right.is_some(),
                // Blocks that come later have not been made.
                (3, _) | (1, 1 | 3) => false,
                _ => true,
            };
            let line = canvas.line(4 * bx, 4 * by, has_above, has_left, has_right);
            let likely = self.likely_mode(here, &found.modes, block);
            let at = 64 * by + 4 * bx;
            let mut flat = [0; 16];
            for (row, from) in flat.as_chunks_mut::<4>().0.iter_mut().zip(source.0[at..].chunks(16)) {
                row.copy_from_slice(&from[..4]);
            }
            // SAFETY: `Kernels::new` has seen to the instruction set.
            unsafe { (settings.kernels.modes)(&flat, &line, &mut modes) };
            let mut best = (u32::MAX, BLOCK_DC);
            for mode in (0..BLOCK_MODES).filter(|mode| line.allows(*mode)) {
                let bits = if mode == likely { 1 } else { 4 };
                let cost = modes.sums[usize::from(mode)] + settings.lambda * bits;
                if cost < best.0 {
                    best = (cost, mode);
                }
            }
            let (cost, mode) = best;
            found.cost += cost;
            // The rest is not going to be that much cheaper than these.
            if u64::from(found.cost) * 16 > u64::from(most) * (number as u64 + 1 + AHEAD).min(16) {
                return None;
            }
            let (prediction, levels) = (&modes.predictions[usize::from(mode)], &mut found.levels.blocks[block]);
            let mut made = [0; 16];
            let (by_intra, factors) = (&settings.luma.intra, &settings.luma.scale);
            // SAFETY: `Kernels::new` has seen to the instruction set.
            let places =
                unsafe { (settings.kernels.code_block)(&flat, prediction, by_intra, factors, &mut made, levels) };
            for (y, row) in made.as_chunks::<4>().0.iter().enumerate() {
                canvas.0[4 * by + y + 1][4 * bx + 1..][..4].copy_from_slice(row);
                found.made.0[at + 16 * y..][..4].copy_from_slice(row);
            }
            found.modes[block] = mode;
            found.coded |= u16::from(places != 0) << block;
            found.levels.places[block] = places;
        }
        Some(found)
    }

    /// The mode that a block is expected to have (8.3.1.1).
    fn likely_mode(&self, here: &Here<'_>, modes: &[u8; 16], block: usize) -> u8 {
        let of = |other: Option<&Macroblock>, place: usize| {
            other.map(|other| if other.kind == Kind::Intra4 { other.modes[place] } else { BLOCK_DC })
        };
        let left = if !block.is_multiple_of(4) { Some(modes[block - 1]) } else { of(here.left, block + 3) };
        let above = if block >= 4 { Some(modes[block - 4]) } else { of(here.above, block + 12) };
        match (left, above) {
            (Some(left), Some(above)) => left.min(above),
            _ => BLOCK_DC,
        }
    }

    /// Codes a macroblock from its own picture.
    pub(super) fn code_intra(&mut self, here: &Here<'_>, source: &Block, now: &mut Macroblock, made: &mut Block) {
        let whole = self.best_whole(here, &source.luma);
        let blocks = self.blocks(here, &source.luma, whole.1);
        self.write_intra(here, source, whole.0, blocks, now, made);
    }

    /// Writes it as what it was decided to be: block by block, if it is there.
    pub(super) fn write_intra(
        &mut self,
        here: &Here<'_>,
        source: &Block,
        whole: Mode,
        blocks: Option<Blocks>,
        now: &mut Macroblock,
        made: &mut Block,
    ) {
        let settings = &self.shot.settings;
        let (chroma_mode, chroma_prediction) = self.best_chroma(here, &source.chroma);
        let chroma = settings.chroma_levels(&source.chroma, &chroma_prediction, true, &mut self.lanes);
        settings.made_chroma((&self.lanes, &chroma), &chroma_prediction, &mut made.chroma);
        let syntax = match blocks {
            Some(blocks) => {
                now.kind = Kind::Intra4;
                let modes = BLOCK_ORDER.map(|block| {
                    let (mode, likely) = (blocks.modes[block], self.likely_mode(here, &blocks.modes, block));
                    (mode != likely).then(|| mode - u8::from(mode > likely))
                });
                made.luma = blocks.made;
                now.modes = blocks.modes;
                let pattern = luma_pattern(blocks.coded) | chroma.pattern() << 4;
                let (kind, luma) = (Type::Intra4(modes), blocks.levels);
                Syntax { kind, chroma_mode: chroma_mode.chroma_number(), pattern, luma, luma_dc: None, chroma }
            }
            None => {
                now.kind = Kind::Intra16;
                let (mode, prediction) = (whole, self.whole(&self.around_luma(here), whole));
                let mut luma = Levels::NONE;
                let (coded, dc) = settings.luma_whole(&source.luma, &prediction, &mut self.lanes, &mut luma);
                let pattern = if coded != 0 { 15 } else { 0 } | chroma.pattern() << 4;
                settings.made_luma((&self.lanes, coded), Some(&dc), &prediction, &mut made.luma);
                let mut scanned = [0; 16];
                scanned.iter_mut().zip(ZIGZAG).for_each(|(level, place)| *level = dc[place]);
                Syntax {
                    kind: Type::Intra16(mode.luma_number()),
                    chroma_mode: chroma_mode.chroma_number(),
                    pattern,
                    luma,
                    luma_dc: Some(scanned),
                    chroma,
                }
            }
        };
        self.write(here, source, syntax, now, made);
    }
}
