//! Alphabets: states, letters, ambiguity.

/// What the letters of an alignment stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Characters that are absent or present, states in the order 0 1.
    Binary,
    /// Nucleotides, states in the order A C G T.
    Dna,
    /// Amino acids, states in the order A R N D C Q E G H I L K M F P S T W Y V (the order of published matrices).
    Protein,
}

/// Amino acids by state.
const AMINO_ACIDS: &[u8; 20] = b"ARNDCQEGHILKMFPSTWYV";

/// Masks of binary codes: the code is the mask.
const BINARY_MASKS: [u32; 4] = [0, 1, 2, 3];

/// Masks of nucleotide codes: the code is the mask.
const DNA_MASKS: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Codes of proteins after the twenty states.
const B: u8 = 20;
const Z: u8 = 21;
const J: u8 = 22;
const ANY: u8 = 23;

/// Masks of protein codes: the states, N or D, Q or E, I or L, all.
const PROTEIN_MASKS: [u32; 24] = {
    let mut masks = [0; 24];
    let mut state = 0;
    while state < 20 {
        masks[state] = 1 << state;
        state += 1;
    }
    masks[B as usize] = 1 << 2 | 1 << 3;
    masks[Z as usize] = 1 << 5 | 1 << 6;
    masks[J as usize] = 1 << 9 | 1 << 10;
    masks[ANY as usize] = (1 << 20) - 1;
    masks
};

impl DataType {
    /// Number of states: 2, 4 or 20.
    pub fn states(self) -> usize {
        match self {
            DataType::Binary => 2,
            DataType::Dna => 4,
            DataType::Protein => 20,
        }
    }

    /// The table that codes index: for each code the set of states that a letter allows, state `s` being bit `s`.
    /// Binary data: 4, nucleotides: 16 codes, the code is the mask (0 never occurs). Proteins: codes 0 to 19 are the states, 20 to 22
    /// are B, Z and J, 23 is everything.
    pub fn masks(self) -> &'static [u32] {
        match self {
            DataType::Binary => &BINARY_MASKS,
            DataType::Dna => &DNA_MASKS,
            DataType::Protein => &PROTEIN_MASKS,
        }
    }

    /// The code of gaps and unknown letters, which allow every state.
    pub fn gap(self) -> u8 {
        match self {
            DataType::Binary => 3,
            DataType::Dna => 15,
            DataType::Protein => ANY,
        }
    }

    /// The letters of the states, in their order.
    pub fn letters(self) -> &'static [u8] {
        match self {
            DataType::Binary => b"01",
            DataType::Dna => b"ACGT",
            DataType::Protein => AMINO_ACIDS,
        }
    }

    /// The code of a letter in upper or lower case, or `None` where the alphabet does not have it. IUPAC's codes; gap,
    /// N, X, ? and O allow every nucleotide, U is T; gap, X, ? and * allow every amino acid, and so do selenocysteine (U) and
    /// pyrrolysine (O), of which no matrix knows.
    pub fn code(self, letter: u8) -> Option<u8> {
        let letter = letter.to_ascii_uppercase();
        match self {
            DataType::Binary => match letter {
                b'0' => Some(1),
                b'1' => Some(2),
                b'?' | b'-' | b'.' | b'~' => Some(3),
                _ => None,
            },
            DataType::Dna => Some(match letter {
                b'A' => 1,
                b'C' => 2,
                b'M' => 3,
                b'G' => 4,
                b'R' => 5,
                b'S' => 6,
                b'V' => 7,
                b'T' | b'U' => 8,
                b'W' => 9,
                b'Y' => 10,
                b'H' => 11,
                b'K' => 12,
                b'D' => 13,
                b'B' => 14,
                b'N' | b'X' | b'O' | b'?' | b'-' | b'.' | b'~' => 15,
                _ => return None,
            }),
            DataType::Protein => match letter {
                b'B' => Some(B),
                b'Z' => Some(Z),
                b'J' => Some(J),
                b'X' | b'U' | b'O' | b'?' | b'-' | b'*' | b'.' | b'~' => Some(ANY),
                _ => AMINO_ACIDS.iter().position(|&a| a == letter).map(|state| state as u8),
            },
        }
    }
}

impl std::fmt::Display for DataType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DataType::Binary => "binary",
            DataType::Dna => "DNA",
            DataType::Protein => "protein",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_states_allow_exactly_their_state() {
        for data in [DataType::Binary, DataType::Dna, DataType::Protein] {
            for (state, &letter) in data.letters().iter().enumerate() {
                let code = data.code(letter).unwrap();
                assert_eq!(data.masks()[code as usize], 1 << state);
                assert_eq!(data.code(letter.to_ascii_lowercase()), Some(code));
            }
            assert_eq!(data.masks()[data.gap() as usize], (1u32 << data.states()) - 1);
            assert_eq!(data.code(b'-'), Some(data.gap()));
            assert_eq!(data.code(b'!'), None);
        }
        assert_eq!(DataType::Dna.code(b'U'), DataType::Dna.code(b'T'));
        assert_eq!(DataType::Protein.masks()[DataType::Protein.code(b'B').unwrap() as usize], 0b1100);
        assert_eq!(DataType::Dna.code(b'E'), None);
        assert_eq!(DataType::Protein.code(b'O'), Some(DataType::Protein.gap()));
    }

    /// An ambiguity code and its complement (by bases) are the codes that IUPAC pairs: R-Y, K-M, B-V, D-H.
    #[test]
    fn ambiguity_codes_are_closed_under_complement() {
        let complement = |mask: u8| mask.reverse_bits() >> 4;
        for (a, b) in [(b'R', b'Y'), (b'K', b'M'), (b'B', b'V'), (b'D', b'H'), (b'S', b'S'), (b'W', b'W')] {
            assert_eq!(complement(DataType::Dna.code(a).unwrap()), DataType::Dna.code(b).unwrap());
        }
    }
}
