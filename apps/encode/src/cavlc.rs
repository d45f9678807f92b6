//! Coefficients as variable-length codes (9.2 of the standard).

use crate::bits::Bits;

/// What a block is coded as, by the blocks beside it (Table 9-5): how many coefficients they have on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// So many.
    Blocks(u8),
    /// It holds the constant parts of chroma.
    ChromaDc,
}

/// No code of a block's has a larger level: the escape of twelve bits holds less than this (9.2.2.1), whatever came before
/// it, and longer ones are for other profiles.
pub const LEVEL_MAX: i16 = 2047;

/// Length and bits of `coeff_token` (Table 9-5), by four contexts, coefficients and trailing ones.
const TOKENS: [[[(u8, u8); 4]; 17]; 4] = tokens();
const TOKEN_LENGTHS: [[u8; 68]; 4] = [
    [
        1, 0, 0, 0, 6, 2, 0, 0, 8, 6, 3, 0, 9, 8, 7, 5, 10, 9, 8, 6, 11, 10, 9, 7, 13, 11, 10, 8, 13, 13, 11, 9, 13,
        13, 13, 10, 14, 14, 13, 11, 14, 14, 14, 13, 15, 15, 14, 14, 15, 15, 15, 14, 16, 15, 15, 15, 16, 16, 16, 15, 16,
        16, 16, 16, 16, 16, 16, 16,
    ],
    [
        2, 0, 0, 0, 6, 2, 0, 0, 6, 5, 3, 0, 7, 6, 6, 4, 8, 6, 6, 4, 8, 7, 7, 5, 9, 8, 8, 6, 11, 9, 9, 6, 11, 11, 11, 7,
        12, 11, 11, 9, 12, 12, 12, 11, 12, 12, 12, 11, 13, 13, 13, 12, 13, 13, 13, 13, 13, 14, 13, 13, 14, 14, 14, 13,
        14, 14, 14, 14,
    ],
    [
        4, 0, 0, 0, 6, 4, 0, 0, 6, 5, 4, 0, 6, 5, 5, 4, 7, 5, 5, 4, 7, 5, 5, 4, 7, 6, 6, 4, 7, 6, 6, 4, 8, 7, 7, 5, 8,
        8, 7, 6, 9, 8, 8, 7, 9, 9, 8, 8, 9, 9, 9, 8, 10, 9, 9, 9, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10,
    ],
    [
        6, 0, 0, 0, 6, 6, 0, 0, 6, 6, 6, 0, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
        6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6,
    ],
];
const TOKEN_BITS: [[u8; 68]; 4] = [
    [
        1, 0, 0, 0, 5, 1, 0, 0, 7, 4, 1, 0, 7, 6, 5, 3, 7, 6, 5, 3, 7, 6, 5, 4, 15, 6, 5, 4, 11, 14, 5, 4, 8, 10, 13,
        4, 15, 14, 9, 4, 11, 10, 13, 12, 15, 14, 9, 12, 11, 10, 13, 8, 15, 1, 9, 12, 11, 14, 13, 8, 7, 10, 9, 12, 4, 6,
        5, 8,
    ],
    [
        3, 0, 0, 0, 11, 2, 0, 0, 7, 7, 3, 0, 7, 10, 9, 5, 7, 6, 5, 4, 4, 6, 5, 6, 7, 6, 5, 8, 15, 6, 5, 4, 11, 14, 13,
        4, 15, 10, 9, 4, 11, 14, 13, 12, 8, 10, 9, 8, 15, 14, 13, 12, 11, 10, 9, 12, 7, 11, 6, 8, 9, 8, 10, 1, 7, 6, 5,
        4,
    ],
    [
        15, 0, 0, 0, 15, 14, 0, 0, 11, 15, 13, 0, 8, 12, 14, 12, 15, 10, 11, 11, 11, 8, 9, 10, 9, 14, 13, 9, 8, 10, 9,
        8, 15, 14, 13, 13, 11, 14, 10, 12, 15, 10, 13, 12, 11, 14, 9, 12, 8, 10, 13, 8, 13, 7, 9, 12, 9, 12, 11, 10, 5,
        8, 7, 6, 1, 4, 3, 2,
    ],
    [
        3, 0, 0, 0, 0, 1, 0, 0, 4, 5, 6, 0, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
        27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54,
        55, 56, 57, 58, 59, 60, 61, 62, 63,
    ],
];

const fn tokens() -> [[[(u8, u8); 4]; 17]; 4] {
    let mut table = [[[(0, 0); 4]; 17]; 4];
    let mut i = 0;
    while i < 4 * 68 {
        table[i / 68][i % 68 / 4][i % 4] = (TOKEN_LENGTHS[i / 68][i % 68], TOKEN_BITS[i / 68][i % 68]);
        i += 1;
    }
    table
}

/// The same for the constant parts of chroma.
const CHROMA_TOKENS: [[(u8, u8); 4]; 5] = [
    [(2, 1), (0, 0), (0, 0), (0, 0)],
    [(6, 7), (1, 1), (0, 0), (0, 0)],
    [(6, 4), (6, 6), (3, 1), (0, 0)],
    [(6, 3), (7, 3), (7, 2), (6, 5)],
    [(6, 2), (8, 3), (8, 2), (7, 0)],
];

/// Length and bits of `total_zeros` by coefficients less one (Tables 9-7 and 9-8).
const ZEROS: [&[(u8, u8)]; 15] = [
    &[
        (1, 1),
        (3, 3),
        (3, 2),
        (4, 3),
        (4, 2),
        (5, 3),
        (5, 2),
        (6, 3),
        (6, 2),
        (7, 3),
        (7, 2),
        (8, 3),
        (8, 2),
        (9, 3),
        (9, 2),
        (9, 1),
    ],
    &[
        (3, 7),
        (3, 6),
        (3, 5),
        (3, 4),
        (3, 3),
        (4, 5),
        (4, 4),
        (4, 3),
        (4, 2),
        (5, 3),
        (5, 2),
        (6, 3),
        (6, 2),
        (6, 1),
        (6, 0),
    ],
    &[(4, 5), (3, 7), (3, 6), (3, 5), (4, 4), (4, 3), (3, 4), (3, 3), (4, 2), (5, 3), (5, 2), (6, 1), (5, 1), (6, 0)],
    &[(5, 3), (3, 7), (4, 5), (4, 4), (3, 6), (3, 5), (3, 4), (4, 3), (3, 3), (4, 2), (5, 2), (5, 1), (5, 0)],
    &[(4, 5), (4, 4), (4, 3), (3, 7), (3, 6), (3, 5), (3, 4), (3, 3), (4, 2), (5, 1), (4, 1), (5, 0)],
    &[(6, 1), (5, 1), (3, 7), (3, 6), (3, 5), (3, 4), (3, 3), (3, 2), (4, 1), (3, 1), (6, 0)],
    &[(6, 1), (5, 1), (3, 5), (3, 4), (3, 3), (2, 3), (3, 2), (4, 1), (3, 1), (6, 0)],
    &[(6, 1), (4, 1), (5, 1), (3, 3), (2, 3), (2, 2), (3, 2), (3, 1), (6, 0)],
    &[(6, 1), (6, 0), (4, 1), (2, 3), (2, 2), (3, 1), (2, 1), (5, 1)],
    &[(5, 1), (5, 0), (3, 1), (2, 3), (2, 2), (2, 1), (4, 1)],
    &[(4, 0), (4, 1), (3, 1), (3, 2), (1, 1), (3, 3)],
    &[(4, 0), (4, 1), (2, 1), (1, 1), (3, 1)],
    &[(3, 0), (3, 1), (1, 1), (2, 1)],
    &[(2, 0), (2, 1), (1, 1)],
    &[(1, 0), (1, 1)],
];

/// The same for the constant parts of chroma (Table 9-9).
const CHROMA_ZEROS: [&[(u8, u8)]; 3] =
    [&[(1, 1), (2, 1), (3, 1), (3, 0)], &[(1, 1), (2, 1), (2, 0)], &[(1, 1), (1, 0)]];

/// Length and bits of `run_before` by zeros left less one (Table 9-10).
const RUNS: [&[(u8, u8)]; 7] = [
    &[(1, 1), (1, 0)],
    &[(1, 1), (2, 1), (2, 0)],
    &[(2, 3), (2, 2), (2, 1), (2, 0)],
    &[(2, 3), (2, 2), (2, 1), (3, 1), (3, 0)],
    &[(2, 3), (2, 2), (3, 3), (3, 2), (3, 1), (3, 0)],
    &[(2, 3), (3, 0), (3, 1), (3, 3), (3, 2), (3, 5), (3, 4)],
    &[
        (3, 7),
        (3, 6),
        (3, 5),
        (3, 4),
        (3, 3),
        (3, 2),
        (3, 1),
        (4, 1),
        (5, 1),
        (6, 1),
        (7, 1),
        (8, 1),
        (9, 1),
        (10, 1),
        (11, 1),
    ],
];

/// Bit i: level i is not zero.
pub fn places(levels: &[i16]) -> u16 {
    levels.iter().enumerate().fold(0, |bits, (i, level)| bits | u16::from(*level != 0) << i)
}

/// Writes the levels of a block (in scan order; 4, 15 or 16 of them), where bit i of `places` is set if level i is not zero, and
/// returns how many are not.
pub fn write_block(bits: &mut Bits, levels: &[i16], places: u16, around: Around) -> u8 {
    let count = places.count_ones() as usize;
    if count == 0 {
        let (length, value) = match around {
            Around::ChromaDc => CHROMA_TOKENS[0][0],
            Around::Blocks(n) => token(n)[0][0],
        };
        bits.put(length.into(), value.into());
        return 0;
    }
    // Levels that are not zero and the zeros before each, the last first.
    let (mut found, mut runs, mut rest) = ([0_i32; 16], [0_u8; 16], places);
    for (level, run) in found.iter_mut().zip(&mut runs).take(count) {
        let place = 15 - rest.leading_zeros();
        *level = levels[place as usize].into();
        rest ^= 1 << place;
        *run = (place - (16 - rest.leading_zeros())) as u8;
    }
    let last = 15 - places.leading_zeros() as usize;
    let found = &found[..count];
    let ones = found.iter().take(3).take_while(|level| level.abs() == 1).count();
    let (length, value) = match around {
        Around::ChromaDc => CHROMA_TOKENS[count][ones],
        Around::Blocks(n) => token(n)[count][ones],
    };
    let signs = found[..ones].iter().fold(u32::from(value), |bits, level| bits << 1 | u32::from(*level < 0));
    bits.put(u32::from(length) + ones as u32, signs);
    if ones < count {
        write_levels(bits, &found[ones..], count, ones);
    }
    // Zeros: how many there are before the last coefficient, and where.
    let mut left = last + 1 - count;
    if count < levels.len() {
        let (length, value) = match around {
            Around::ChromaDc => CHROMA_ZEROS[count - 1][left],
            Around::Blocks(_) => ZEROS[count - 1][left],
        };
        bits.put(length.into(), value.into());
    }
    for run in &runs[..count - 1] {
        if left == 0 {
            break;
        }
        let (length, value) = RUNS[left.min(7) - 1][usize::from(*run)];
        bits.put(length.into(), value.into());
        left -= usize::from(*run);
    }
    count as u8
}

#[inline]
fn token(around: u8) -> &'static [[(u8, u8); 4]; 17] {
    &TOKENS[match around {
        0..2 => 0,
        2..4 => 1,
        4..8 => 2,
        _ => 3,
    }]
}

/// Levels behind the trailing ones (9.2.2.1).
fn write_levels(bits: &mut Bits, levels: &[i32], count: usize, ones: usize) {
    let mut suffix = u32::from(count > 10 && ones < 3);
    for (i, &level) in levels.iter().enumerate() {
        // The first one cannot be 1 where fewer than three ones came before.
        let less = u32::from(i == 0 && ones < 3);
        let code = 2 * level.unsigned_abs() - 2 + u32::from(level < 0) - 2 * less;
        if suffix == 0 && code < 14 {
            bits.put(code + 1, 1);
        } else if suffix == 0 && code < 30 {
            bits.put(15, 1);
            bits.put(4, code - 14);
        } else if suffix > 0 && code < 15 << suffix {
            bits.put((code >> suffix) + 1, 1);
            bits.put(suffix, code & ((1 << suffix) - 1));
        } else {
            let code = code - if suffix == 0 { 30 } else { 15 << suffix };
            bits.put(16, 1);
            bits.put(12, code);
        }
        if suffix == 0 {
            suffix = 1;
        }
        if level.unsigned_abs() > 3 << (suffix - 1) && suffix < 6 {
            suffix += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No code begins another, and few codes are left over.
    fn is_prefix_code(codes: impl Iterator<Item = (u8, u8)>) {
        let codes: Vec<_> = codes.filter(|code| code.0 > 0).collect();
        for (i, a) in codes.iter().enumerate() {
            for (j, b) in codes.iter().enumerate() {
                let begins = a.0 <= b.0 && u32::from(b.1) >> (b.0 - a.0) == u32::from(a.1);
                assert!(i == j || !begins, "{a:?} begins {b:?}");
            }
        }
    }

    #[test]
    fn tables_are_prefix_codes() {
        TOKENS.iter().for_each(|table| is_prefix_code(table.iter().flatten().copied()));
        is_prefix_code(CHROMA_TOKENS.iter().flatten().copied());
        for table in ZEROS.into_iter().chain(CHROMA_ZEROS).chain(RUNS) {
            is_prefix_code(table.iter().copied());
        }
        for (i, table) in ZEROS.iter().enumerate() {
            assert_eq!(table.len(), 16 - i);
        }
    }

    /// Every level that may be asked for has a code that fits the escape.
    #[test]
    fn the_largest_levels_have_codes() {
        for count in [1, 4, 16] {
            for level in [LEVEL_MAX, -LEVEL_MAX] {
                let mut levels = [0_i16; 16];
                levels[..count].fill(level);
                let mut bits = Bits::default();
                assert_eq!(usize::from(write_block(&mut bits, &levels, places(&levels), Around::Blocks(0))), count);
            }
        }
    }
}
