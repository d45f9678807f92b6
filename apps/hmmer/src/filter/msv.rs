//! MSV: the best chain of ungapped alignments, in bytes.
//!
//! Numbers count up from what B has, which is the lowest byte: nothing below it matters, since every match state can be
//! entered from B. While E has not gained what makes J better than N, B never changes, so the best single segment is
//! all there is to know ("SSV"); it takes two operations a vector and no look across lanes. B. Knudsen and M. Farrar
//! brought both to HMMER.

use super::quantised::BYTE_BASE;
use multigrain_simd::Saturating;

/// The best segment: how much E exceeds B at most.
///
/// # Safety
/// The processor supports the instruction set of `V`; `emissions` has [`CODES`](crate::profile::alphabet::CODES) times
/// `row.len()` vectors, and every residue is a code.
#[inline(always)]
pub(super) unsafe fn segment<V: Saturating<i8>>(emissions: *const i8, residues: &[u8], row: &mut [V]) -> u8 {
    // Rows of few vectors have their number known to the compiler, and lie in registers.
    macro_rules! rows {
        ($($quads:literal)*) => {
            match row.len() {
                // SAFETY: as this function's.
                $($quads => unsafe { segment_in(emissions, residues, &mut [V::splat(i8::MIN); $quads]) },)*
                // SAFETY: as this function's.
                _ => unsafe { segment_in(emissions, residues, row) },
            }
        };
    }
    rows!(1 2 3 4 5 6 7 8 9 10 11 12)
}

#[inline(always)]
unsafe fn segment_in<V: Saturating<i8>>(emissions: *const i8, residues: &[u8], row: &mut [V]) -> u8 {
    // SAFETY: of all blocks: as `segment`'s.
    unsafe {
        let begin = V::splat(i8::MIN);
        row.fill(begin);
        let quads = row.len();
        let mut best = begin;
        for &x in residues {
            let emissions = emissions.add(usize::from(x) * quads * V::LANES);
            let mut into = row[quads - 1].up(begin);
            for (q, cell) in row.iter_mut().enumerate() {
                let new = into.add(V::load(emissions.add(q * V::LANES)));
                best = best.max(new);
                (into, *cell) = (*cell, new);
            }
        }
        best.top().wrapping_sub(i8::MIN) as u8
    }
}

/// Prices that do not depend on the residues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    /// N to B, and J to B.
    pub(super) leave: i32,
    /// B to M.
    pub(super) entry: i32,
    /// E to J, and E to C.
    pub(super) end: i32,
    /// The best emission.
    pub(super) bias: i32,
}

impl Prices {
    /// What B has when E has not been reached.
    pub(super) fn begin(self) -> i32 {
        (BYTE_BASE - self.leave - self.entry).max(0)
    }

    /// What J has where E exceeds B, which nothing came to from J, by `gain`; None where the numbers overflow. Where it is
    /// more than N's, J matters.
    pub(super) fn rejoin(self, gain: u8) -> Option<i32> {
        let end = self.begin() + i32::from(gain);
        (end < 255 - self.bias).then(|| (end - self.end).max(0))
    }
}

/// What J has in the end, where segments may follow each other; None where the numbers overflow.
///
/// # Safety
/// As for [`segment`].
#[inline(always)]
pub(super) unsafe fn chain<V: Saturating<i8>>(
    emissions: *const i8,
    residues: &[u8],
    row: &mut [V],
    prices: Prices,
) -> Option<i32> {
    // Here the lowest byte stands for 0.
    let byte = |value: i32| (value + i32::from(i8::MIN)) as i8;
    // SAFETY: of all blocks: as this function's.
    unsafe {
        let none = V::splat(i8::MIN);
        row.fill(none);
        let quads = row.len();
        let mut rejoined = 0;
        let mut begin = prices.begin();
        for &x in residues {
            let emissions = emissions.add(usize::from(x) * quads * V::LANES);
            let from = V::splat(byte(begin));
            let mut best = none;
            let mut into = row[quads - 1].up(none);
            for (q, cell) in row.iter_mut().enumerate() {
                let emission = V::load(emissions.add(q * V::LANES));
                let new = into.max(from).add(emission);
                best = best.max(new);
                (into, *cell) = (*cell, new);
            }
            let end = i32::from(best.top()) - i32::from(i8::MIN);
            if end >= 255 - prices.bias {
                return None;
            }
            rejoined = rejoined.max(end - prices.end);
            begin = (BYTE_BASE.max(rejoined) - prices.leave - prices.entry).max(0);
        }
        Some(rejoined)
    }
}
