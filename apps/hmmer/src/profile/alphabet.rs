//! The amino acid alphabet: residue codes of symbols, degenerate residues and what they stand for.

/// Symbols in the order of their codes: 20 residues, the gap, the degenerate residues B J Z O U X, `*` (no residue) and
/// `~` (missing data). The order is that of HMMER's digital amino alphabet (Easel, `esl_alphabet`).
pub const SYMBOLS: &[u8; 29] = b"ACDEFGHIKLMNPQRSTVWY-BJZOUX*~";

/// Number of residues, codes 0 to 19.
pub const RESIDUES: usize = 20;

/// Number of codes.
pub const CODES: usize = 29;

/// Code of the gap.
pub const GAP: u8 = 20;

/// Code of X, any residue.
pub const ANY: u8 = 26;

/// Code of `*`, no residue: a stop codon in a translated sequence. It counts in a sequence's length; no match state
/// emits it.
pub const STAR: u8 = 27;

/// Code of `~`, missing data.
pub const MISSING: u8 = 28;

/// Code of each byte, [`NONE`] where the byte is no symbol. Upper and lower case are one; `_` and `.` are gaps.
const CODE_OF: [u8; 256] = code_of();
const NONE: u8 = 255;

/// The code of a symbol of a sequence or profile, if it is one.
#[inline]
pub const fn code(symbol: u8) -> Option<u8> {
    match CODE_OF[symbol as usize] {
        NONE => None,
        code => Some(code),
    }
}

/// The code of a symbol in a sequence, if it may hold that: all but `-`. As in HMMER, `.`, `_` and `~` count in a sequence's
/// length and no match state emits them, like `*`.
#[inline]
pub const fn code_in_sequence(symbol: u8) -> Option<u8> {
    if symbol == b'-' { None } else { code(symbol) }
}

/// The residues that a code stands for, one bit each: one for a residue, several for a degenerate one, none for a gap,
/// `*` and missing data. O (pyrrolysine) counts as K, U (selenocysteine) as C.
pub const fn members(code: u8) -> u32 {
    const fn of(a: u8, b: u8) -> u32 {
        (1 << CODE_OF[a as usize]) | (1 << CODE_OF[b as usize])
    }
    match SYMBOLS[code as usize] {
        _ if code < RESIDUES as u8 => 1 << code,
        b'B' => of(b'D', b'N'),
        b'J' => of(b'I', b'L'),
        b'Z' => of(b'E', b'Q'),
        b'O' => of(b'K', b'K'),
        b'U' => of(b'C', b'C'),
        b'X' => (1 << RESIDUES) - 1,
        _ => 0,
    }
}

const fn code_of() -> [u8; 256] {
    let mut table = [NONE; 256];
    let mut i = 0;
    while i < CODES {
        table[SYMBOLS[i] as usize] = i as u8;
        table[SYMBOLS[i].to_ascii_lowercase() as usize] = i as u8;
        i += 1;
    }
    table[b'_' as usize] = GAP;
    table[b'.' as usize] = GAP;
    table
}

/// Frequencies of the residues in Swiss-Prot 50.8 (October 2006), over 85,107,792 residues: the background that HMMER's
/// profiles are built and scored against (`p7_AminoFrequencies`).
pub const BACKGROUND: [f32; RESIDUES] = [
    0.0787945, 0.0151600, 0.0535222, 0.0668298, 0.0397062, 0.0695071, 0.0229198, 0.0590092, 0.0594422, 0.0963728,
    0.0237718, 0.0414386, 0.0482904, 0.0395639, 0.0540978, 0.0683364, 0.0540687, 0.0673417, 0.0114135, 0.0304133,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_codes_belong_together() {
        for (i, &symbol) in SYMBOLS.iter().enumerate() {
            assert_eq!(code(symbol), Some(i as u8));
            assert_eq!(code(symbol.to_ascii_lowercase()), Some(i as u8));
        }
        assert_eq!((code(b'X'), code(b'*'), code(b'~'), code(b'-')), (Some(ANY), Some(STAR), Some(MISSING), Some(GAP)));
        assert_eq!((code(b'.'), code(b'_')), (Some(GAP), Some(GAP)));
        assert!([b' ', b'\n', b'0', b'>', 0, 0xe4].iter().all(|&byte| code(byte).is_none()));
    }

    #[test]
    fn degenerate_residues_stand_for_residues() {
        let names = |symbol: u8| -> String {
            let set = members(code(symbol).unwrap());
            (0..RESIDUES).filter(|i| set >> i & 1 == 1).map(|i| SYMBOLS[i] as char).collect()
        };
        assert_eq!(
            [b'B', b'J', b'Z', b'O', b'U', b'*', b'-', b'w'].map(names),
            ["DN", "IL", "EQ", "K", "C", "", "", "W"]
        );
        assert_eq!(names(b'X').len(), 20);
    }

    #[test]
    fn background_sums_to_one() {
        assert!((BACKGROUND.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}
