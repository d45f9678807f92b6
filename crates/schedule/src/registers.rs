//! How the bits of a schedule lie in signal registers.

use crate::{Bit, ScheduleError};

/// The signal registers of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Bits in half a register: one half for rounds of even number, one for rounds of odd number.
    pub half_bits: u32,
    /// How many registers a participant has.
    pub registers: u32,
}

/// Where a bit lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which register of the receiver.
    pub register: u32,
    /// Which bit of it, from 0; those of odd rounds follow those of even rounds.
    pub bit: u32,
}

impl Registers {
    /// The two 32-bit signal registers of an SPE of the Cell.
    pub const CELL: Registers = Registers { half_bits: 16, registers: 2 };

    /// Where a bit lies in the round of this number.
    ///
    /// # Panics
    /// If `half_bits` is zero.
    pub const fn place(&self, bit: Bit, round: u64) -> Place {
        let low = bit.index % self.half_bits;
        let bit_of_word = if bit.is_odd(round) { self.half_bits + low } else { low };
        Place { register: bit.index / self.half_bits, bit: bit_of_word }
    }

    /// Whether a schedule that uses `bits` bits of a half can be executed with these registers.
    ///
    /// # Errors
    /// [`ScheduleError::TooFewBits`].
    pub fn hold(&self, bits: u32) -> Result<(), ScheduleError> {
        let limit = u64::from(self.half_bits) * u64::from(self.registers);
        if u64::from(bits) <= limit {
            return Ok(());
        }
        let Registers { half_bits, registers } = *self;
        Err(ScheduleError::TooFewBits { bits, registers, half_bits, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_bits_share_a_place() {
        for registers in
            [Registers::CELL, Registers { half_bits: 31, registers: 3 }, Registers { half_bits: 1, registers: 9 }]
        {
            let limit = registers.half_bits * registers.registers;
            let places: BTreeSet<Place> =
                (0..limit).flat_map(|i| [0, 1].map(|round| registers.place(Bit::new(i), round))).collect();
            assert_eq!(places.len() as u32, 2 * limit);
            assert!(places.iter().all(|p| p.register < registers.registers && p.bit < 2 * registers.half_bits));
            assert_eq!(registers.hold(limit), Ok(()));
            assert!(matches!(registers.hold(limit + 1), Err(ScheduleError::TooFewBits { .. })));
        }
    }
}
