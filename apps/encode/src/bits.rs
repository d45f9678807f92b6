//! Bits, most significant first, and the units that a stream is made of.

/// Bits that are gathered one after the other.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    bytes: Vec<u8>,
    /// Bits not yet in `bytes`, in the low `held` places.
    word: u64,
    held: u32,
}

/// A place in [`Bits`] to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    bytes: usize,
    word: u64,
    held: u32,
}

impl Bits {
    /// The low `count` bits of `value`, at most 32; the others are zero.
    #[inline]
    pub fn put(&mut self, count: u32, value: u32) {
        debug_assert!(count <= 32 && (count == 32 || value >> count == 0), "{value} in {count} bits");
        self.word = self.word << count | u64::from(value);
        self.held += count;
        if self.held >= 32 {
            self.held -= 32;
            self.bytes.extend_from_slice(&((self.word >> self.held) as u32).to_be_bytes());
        }
    }

    /// One bit.
    #[inline]
    pub fn flag(&mut self, value: bool) {
        self.put(1, value.into());
    }

    /// An unsigned Exp-Golomb code (9.1): `ue(v)`.
    #[inline]
    pub fn ue(&mut self, value: u32) {
        let code = u64::from(value) + 1;
        let length = 64 - code.leading_zeros();
        if length > 16 {
            self.put(length - 1, 0);
            self.put(length, code as u32);
        } else {
            self.put(2 * length - 1, code as u32);
        }
    }

    /// A signed Exp-Golomb code (9.1.1): `se(v)`.
    #[inline]
    pub fn se(&mut self, value: i32) {
        self.ue(if value > 0 { 2 * value as u32 - 1 } else { 2 * value.unsigned_abs() });
    }

    /// A truncated Exp-Golomb code (9.1): `te(v)` of a value from 0 to `most`.
    #[inline]
    pub fn te(&mut self, value: u32, most: u32) {
        match most {
            0 => {}
            1 => self.flag(value == 0),
            _ => self.ue(value),
        }
    }

    /// How many bits there are.
    pub fn len(&self) -> usize {
        8 * self.bytes.len() + self.held as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where it stands.
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), word: self.word, held: self.held }
    }

    /// How many bits were put since.
    pub fn len_since(&self, mark: Mark) -> usize {
        self.len() - (8 * mark.bytes + mark.held as usize)
    }

    /// Forgets what was put since.
    pub fn go_back(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        (self.word, self.held) = (mark.word, mark.held);
    }

    /// Zeros up to the next whole byte.
    pub fn align(&mut self) {
        self.put((8 - self.held % 8) % 8, 0);
    }

    /// Ones up to the next whole byte (`cabac_alignment_one_bit`).
    pub fn align_with_ones(&mut self) {
        let count = (8 - self.held % 8) % 8;
        self.put(count, (1 << count) - 1);
    }

    /// All bits of another.
    pub fn append(&mut self, other: &Bits) {
        let (words, rest) = other.bytes.as_chunks::<4>();
        debug_assert!(rest.is_empty(), "bytes come in words");
        words.iter().for_each(|word| self.put(32, u32::from_be_bytes(*word)));
        if other.held > 0 {
            self.put(other.held, (other.word & ((1 << other.held) - 1)) as u32);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.word, self.held) = (0, 0);
    }

    /// `rbsp_trailing_bits` (7.3.2.11), and the bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.put(1, 1);
        self.finish_ended()
    }

    /// The bytes, where the last bit is that which ends them.
    pub fn finish_ended(mut self) -> Vec<u8> {
        self.align();
        while self.held > 0 {
            self.held -= 8;
            self.bytes.push((self.word >> self.held) as u8);
        }
        self.bytes
    }
}

/// Bits of `ue(value)`.
#[inline]
pub fn ue_bits(value: u32) -> u32 {
    2 * (32 - (value + 1).leading_zeros()) - 1
}

/// Bits of `te(value)`.
#[inline]
pub fn te_bits(value: u32, most: u32) -> u32 {
    if most < 2 { most } else { ue_bits(value) }
}

/// Bits of `se(value)`.
#[inline]
pub fn se_bits(value: i32) -> u32 {
    ue_bits(if value > 0 { 2 * value as u32 - 1 } else { 2 * value.unsigned_abs() })
}

/// What a unit holds (Table 7-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A slice of a picture that others are predicted from.
    Slice,
    /// A slice of a picture that no other is predicted from.
    DisposableSlice,
    /// A slice of a picture at which decoding can begin.
    IdrSlice,
    /// Sequence parameter set.
    Sequence,
    /// Picture parameter set.
    Picture,
}

/// A network abstraction layer unit (7.3.1): its header, and its payload with the bytes that keep start codes out of it.
pub fn unit(kind: Unit, payload: &[u8]) -> Vec<u8> {
    let header = match kind {
        Unit::Slice => 2 << 5 | 1,
        Unit::DisposableSlice => 1,
        Unit::IdrSlice => 3 << 5 | 5,
        Unit::Sequence => 3 << 5 | 7,
        Unit::Picture => 3 << 5 | 8,
    };
    let mut out = Vec::with_capacity(payload.len() + payload.len() / 64 + 1);
    out.push(header);
    let mut zeros = 0;
    for &byte in payload {
        if zeros >= 2 && byte <= 3 {
            out.push(3);
            zeros = 0;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of 9.1.1, and that lengths are those of what is written.
    #[test]
    fn codes_are_those_of_the_standard() {
        for (value, code) in [(0, "1"), (1, "010"), (-1, "011"), (2, "00100"), (-2, "00101"), (3, "00110")] {
            let mut bits = Bits::default();
            bits.se(value);
            let text: String = (0..bits.len()).rev().map(|i| if bits.word >> i & 1 == 1 { '1' } else { '0' }).collect();
            assert_eq!(text, code);
        }
        for value in [0, 1, 6, 7, 254, 255, 65534, 65535, 1 << 20] {
            let mut bits = Bits::default();
            bits.ue(value);
            assert_eq!(bits.len(), ue_bits(value) as usize);
        }
    }

    #[test]
    fn bits_are_appended_wherever_they_begin() {
        let mut parts = Vec::new();
        let mut whole = Bits::default();
        for part in 0..50_u32 {
            let mut bits = Bits::default();
            for i in 0..part {
                bits.ue(i * part);
                whole.ue(i * part);
            }
            parts.push(bits);
        }
        let mut joined = Bits::default();
        parts.iter().for_each(|part| joined.append(part));
        assert_eq!(joined.finish(), whole.finish());
    }

    #[test]
    fn what_is_taken_back_leaves_nothing() {
        let mut bits = Bits::default();
        bits.put(13, 4097);
        let (mark, before) = (bits.mark(), bits.clone());
        (0..100).for_each(|i| bits.ue(i));
        bits.go_back(mark);
        bits.put(7, 5);
        let mut expected = before;
        expected.put(7, 5);
        assert_eq!(bits.finish(), expected.finish());
    }

    #[test]
    fn no_start_code_is_in_a_unit() {
        let payload = [0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4];
        let made = unit(Unit::Slice, &payload);
        assert!(made.windows(3).all(|w| w != [0, 0, 0] && w != [0, 0, 1] && w != [0, 0, 2]));
        assert_eq!(made[1..], [0, 0, 3, 0, 0, 3, 0, 1, 0, 0, 3, 2, 0, 0, 3, 3, 0, 0, 4]);
    }
}
