//! What is written of a macroblock (7.3.5 of the standard), whichever code it is written in.

use super::residual::Chroma;
use crate::cavlc::LEVEL_MAX;
use crate::kernel::Levels;
use crate::motion::Part;
use crate::picture::{Block, Macroblock};

/// How it is predicted.
#[derive(Clone, Debug)]
pub(super) enum Type {
    /// As nothing says otherwise.
    Skip,
    /// From other pictures.
    Inter(Moved),
    /// As a whole, by this mode.
    Intra16(u32),
    /// Block by block; in their order, what is written of a mode that is not the likely one.
    Intra4([Option<u8>; 16]),
    /// Its samples are stored.
    Stored(Box<Block>),
}

/// How a macroblock is cut, with the number of its type (Table 7-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Whole = 0,
    Wide = 1,
    Tall = 2,
    Quarters = 3,
}

impl Cut {
    pub(super) fn parts(self) -> &'static [Part] {
        const WHOLE: [Part; 1] = [Part::WHOLE];
        const WIDE: [Part; 2] = [Part::wide(0), Part::wide(1)];
        const TALL: [Part; 2] = [Part::tall(0), Part::tall(1)];
        const QUARTERS: [Part; 4] = [Part::quarter(0), Part::quarter(1), Part::quarter(2), Part::quarter(3)];
        match self {
            Cut::Whole => &WHOLE,
            Cut::Wide => &WIDE,
            Cut::Tall => &TALL,
            Cut::Quarters => &QUARTERS,
        }
    }

    /// Bits of its type, and of those of its quarters.
    pub(super) fn bits(self) -> u32 {
        match self {
            Cut::Whole => 1,
            Cut::Wide | Cut::Tall => 3,
            Cut::Quarters => 5 + 4,
        }
    }
}

/// What a part is predicted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A picture of the first list.
    First,
    /// Of the second.
    Second,
    /// The mean of both.
    Both,
    /// As its neighbours are, in a picture with two lists.
    Direct,
}

impl From {
    /// The number of the type of a macroblock that is one part (Table 7-14).
    pub(super) fn number(self) -> u32 {
        match self {
            From::Direct => 0,
            From::First => 1,
            From::Second => 2,
            From::Both => 3,
        }
    }

    /// Whether a vector of the list is written.
    pub(super) fn writes(self, list: usize) -> bool {
        matches!((self, list), (From::Both, _) | (From::First, 0) | (From::Second, 1))
    }
}

/// How parts are predicted from other pictures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub(super) cut: Cut,
    /// By part.
    pub(super) from: [From; 4],
    /// Which picture of the first list, by part. (Of the second, there is one.)
    pub(super) references: [u8; 4],
    /// By how much vectors differ from what they are predicted to be, by list and part.
    pub(super) differences: [[[i32; 2]; 4]; 2],
}

impl Moved {
    /// All that nothing needs to be said of.
    pub(super) const DIRECT: Moved =
        Moved { cut: Cut::Whole, from: [From::Direct; 4], references: [0; 4], differences: [[[0; 2]; 4]; 2] };

    /// Whether the whole macroblock is predicted as its neighbours are.
    pub(super) fn is_direct(&self) -> bool {
        self.cut == Cut::Whole && self.from[0] == From::Direct
    }
}

/// A macroblock.
#[derive(Clone, Debug)]
pub struct Syntax {
    pub(super) kind: Type,
    /// The mode of chroma, if it is predicted from its own picture.
    pub(super) chroma_mode: u32,
    /// The coded block pattern: four bits of luma, and chroma's above.
    pub(super) pattern: u32,
    pub(super) luma: Levels,
    /// Constant parts, in scan order, if they are coded by themselves.
    pub(super) luma_dc: Option<[i16; 16]>,
    pub(super) chroma: Chroma,
}

impl Syntax {
    /// One without levels.
    pub(super) fn empty(kind: Type) -> Syntax {
        let chroma = Chroma { levels: Levels::NONE, coded: 0, dc: [[0; 4]; 2] };
        Syntax { kind, chroma_mode: 0, pattern: 0, luma: Levels::NONE, luma_dc: None, chroma }
    }

    /// Whether the quarter that a block of luma belongs to has levels.
    pub(super) fn has_levels(&self, block: usize) -> bool {
        self.pattern >> (block / 8 * 2 + block % 4 / 2) & 1 == 1
    }

    /// Enters how many levels blocks have.
    pub(super) fn count(&self, now: &mut Macroblock) {
        for block in (0..16).filter(|block| self.has_levels(*block)) {
            now.counts[block] = self.luma.places[block].count_ones() as u8;
        }
    }

    /// Whether variable-length codes have all its levels; of constant parts that were transformed once more some are larger.
    pub(super) fn has_codes(&self) -> bool {
        let constant = self.luma_dc.iter().flatten().chain(self.chroma.dc.as_flattened());
        constant.into_iter().all(|level| level.abs() <= LEVEL_MAX)
    }

    /// Roughly as many bits as its levels take, without where they are.
    pub(super) fn bits_of_levels(&self) -> usize {
        let of = |levels: &[i16]| -> usize {
            let level = |level: &i16| 3 + 2 * level.unsigned_abs().checked_ilog2().unwrap_or(0) as usize;
            levels.iter().filter(|level| **level != 0).map(level).sum()
        };
        let luma: usize =
            (0..16).filter(|block| self.has_levels(*block)).map(|block| of(&self.luma.blocks[block])).sum();
        luma + of(self.chroma.levels.blocks[..8].as_flattened()) + self.luma_dc.map_or(0, |dc| of(&dc))
    }
}
