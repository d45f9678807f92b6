//! [`Doubles`] one lane at a time: plain Rust, which every other set of instructions must equal.

use super::{DOUBLES, Doubles, MAGIC, ROOT_HALF};

impl Doubles for [f64; DOUBLES] {
    each! {
        splat(value: f64) -> Self { [value; DOUBLES] }
        load(from: *const f64) -> Self { from.cast::<Self>().read_unaligned() }
        store(self, to: *mut f64) { to.cast::<Self>().write_unaligned(self) }
        add(self, b: Self) -> Self { std::array::from_fn(|i| self[i] + b[i]) }
        sub(self, b: Self) -> Self { std::array::from_fn(|i| self[i] - b[i]) }
        mul(self, b: Self) -> Self { std::array::from_fn(|i| self[i] * b[i]) }
        div(self, b: Self) -> Self { std::array::from_fn(|i| self[i] / b[i]) }
        fma(self, a: Self, b: Self) -> Self { std::array::from_fn(|i| a[i].mul_add(b[i], self[i])) }
        max(self, b: Self) -> Self { std::array::from_fn(|i| if self[i] > b[i] { self[i] } else { b[i] }) }
        less(self, b: Self) -> u8 { (0..DOUBLES).fold(0, |mask, i| mask | u8::from(self[i] < b[i]) << i) }
        rows(rows: [*const f64; DOUBLES]) -> [Self; 4] {
            std::array::from_fn(|column| rows.map(|row| row.add(column).read()))
        }
        split_logarithm(self) -> (Self, Self) {
            let biased = self.map(|x| (x.to_bits().wrapping_sub(ROOT_HALF).wrapping_add(1023 << 52)) >> 52);
            let k = biased.map(|b| b as f64 - 1023.0);
            let m = std::array::from_fn(|i| {
                f64::from_bits(self[i].to_bits().wrapping_sub(biased[i] << 52).wrapping_add(1023 << 52))
            });
            (k, m)
        }
        round_and_power(self) -> (Self, Self) {
            let shifted = self.map(|x| x + MAGIC);
            (shifted.map(|x| x - MAGIC), shifted.map(|x| f64::from_bits((x.to_bits().wrapping_add(1023)) << 52)))
        }
        halving_sum(self) -> f64 {
            let four: [f64; 4] = std::array::from_fn(|i| self[i] + self[i + 4]);
            (four[0] + four[2]) + (four[1] + four[3])
        }
    }
}
