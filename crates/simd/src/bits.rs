//! Vectors of words of 16 or 32 bits, which are shifted, combined and packed.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(target_arch = "x86_64")]
pub use avx512::{Narrow, Wide};

/// A vector of words whose bits are what counts, of one instruction set.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type, and must be inlined
/// into a function that enables it. Pointers must be valid for [`LANES`](Self::LANES) words; they need no alignment.
#[allow(clippy::missing_safety_doc)] // of each function: it is the trait's
pub trait Bits: Copy {
    /// What a lane holds.
    type Word: Copy;
    /// How far lanes are shifted: beyond their width, nothing is left.
    type Shift: Copy;
    /// At most 32.
    const LANES: usize;

    /// A number of bits to shift by.
    unsafe fn shift(by: u32) -> Self::Shift;
    /// All lanes `word`, of which a lane has as many low bits as it is wide.
    unsafe fn splat(word: u32) -> Self;
    /// The words from `from` on.
    unsafe fn load(from: *const Self::Word) -> Self;
    /// The first `lanes`, fewer than all; zeros in the others.
    unsafe fn first(self, lanes: usize) -> Self;
    /// `self | b`.
    unsafe fn or(self, b: Self) -> Self;
    /// `self ^ b`.
    unsafe fn xor(self, b: Self) -> Self;
    /// Without the lowest bit of each lane.
    unsafe fn without_lowest(self) -> Self;
    /// `self << by`.
    unsafe fn left(self, by: Self::Shift) -> Self;
    /// `self >> by`.
    unsafe fn right(self, by: Self::Shift) -> Self;
    /// Bits of `self` that are in none of the three.
    unsafe fn outside(self, a: Self, b: Self, c: Self) -> Self;
    /// Bit `i` is set where lane `i` is not zero.
    unsafe fn nonzero(self) -> u32;
    /// Writes the lanes of a mask, one after the other, and anything to the rest of [`LANES`](Self::LANES) words.
    unsafe fn pack(self, mask: u32, to: *mut Self::Word);
}

/// Where nothing compresses: for each mask of eight lanes, which lane goes to the first place, to the second, and so on, one byte
/// each; the rest repeats lane 0.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static PACKED: [u64; 256] = {
    let mut table = [0_u64; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut place) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask] |= lane << (8 * place);
                place += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
};
