//! The samples of a macroblock.

/// A macroblock of samples: 16 rows of 16; of chroma, 8 rows of which each holds 8 of Cb and 8 of Cr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Samples(pub [u8; 256]);

impl Samples {
    /// All of one value.
    pub const fn of(value: u8) -> Samples {
        Samples([value; 256])
    }
}
