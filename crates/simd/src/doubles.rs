//! Eight lanes of `f64` behind one trait, whatever the width of the registers, so that a kernel's blocks, its order of
//! arithmetic and its bits are the same with each instruction set.
//!
//! As with [`Lanes`](crate::Lanes), every operation is `#[inline(always)]` and carries no target feature itself: it must
//! be inlined into a function that enables the features.

mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub use x86::Pair;

/// Lanes of a vector of [`Doubles`].
pub const DOUBLES: usize = 8;

/// Eight `f64`: in one register, in two, or one at a time.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type. Pointers must be
/// valid for the elements accessed; they need no alignment.
#[allow(clippy::missing_safety_doc)] // of each function: it is the trait's
pub trait Doubles: Copy {
    /// All lanes `value`.
    unsafe fn splat(value: f64) -> Self;
    /// The eight elements from `from` on.
    unsafe fn load(from: *const f64) -> Self;
    /// Writes eight elements.
    unsafe fn store(self, to: *mut f64);
    /// `self + b`.
    unsafe fn add(self, b: Self) -> Self;
    /// `self - b`.
    unsafe fn sub(self, b: Self) -> Self;
    /// `self * b`.
    unsafe fn mul(self, b: Self) -> Self;
    /// `self / b`.
    unsafe fn div(self, b: Self) -> Self;
    /// `a * b + self`, rounded once.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    /// The larger of two numbers; neither is NaN and zeros have one sign.
    unsafe fn max(self, b: Self) -> Self;
    /// Bit `i` is set where lane `i` of `self` is less than that of `b`.
    unsafe fn less(self, b: Self) -> u8;
    /// The four vectors whose lane `i` are the elements `rows[i][0]`, `[1]`, `[2]` and `[3]`: a table is looked up for
    /// each lane, and the rows are transposed.
    /// Each of `rows` is valid for four elements.
    unsafe fn rows(rows: [*const f64; DOUBLES]) -> [Self; 4];
    /// For positive normal numbers, `k` (an integer) and `m` in `[sqrt(1/2), sqrt(2))` with `self = 2^k m`.
    unsafe fn split_logarithm(self) -> (Self, Self);
    /// The nearest integer `k` to `self` (ties to even) and 2^k, for numbers between -1022 and 1023.
    unsafe fn round_and_power(self) -> (Self, Self);
    /// The sum of all lanes by halving: lane `i` plus lane `i + h` for `h = 4, 2, 1`.
    unsafe fn halving_sum(self) -> f64;

    /// The natural logarithm of positive normal numbers, to within one unit in the last place (the argument reduction and
    /// polynomial of FreeBSD's `e_log.c`, Sun Microsystems 1993, with fused operations).
    #[inline(always)]
    unsafe fn ln(self) -> Self {
        const LG: [f64; 7] = [
            6.666_666_666_666_735e-1,
            3.999_999_999_940_942e-1,
            2.857_142_874_366_239e-1,
            2.222_219_843_214_978_4e-1,
            1.818_357_216_161_805e-1,
            1.531_383_769_920_937_3e-1,
            1.479_819_860_511_658_6e-1,
        ];
        const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
        const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
        // SAFETY: the caller guarantees the instruction set; no memory is touched.
        unsafe {
            let (k, m) = self.split_logarithm();
            let f = m.sub(Self::splat(1.0));
            let s = f.div(f.add(Self::splat(2.0)));
            let z = s.mul(s);
            let mut r = Self::splat(LG[6]);
            for i in (0..6).rev() {
                r = Self::splat(LG[i]).fma(r, z);
            }
            let half_square = f.mul(f).mul(Self::splat(0.5));
            let tail = k.mul(Self::splat(LN2_LOW)).fma(s, half_square.fma(r, z));
            f.sub(half_square.sub(tail)).fma(k, Self::splat(LN2_HIGH))
        }
    }

    /// The exponential of numbers from -708 (below, its value there) to 709, to within one unit in the last place: reduced
    /// by multiples of ln 2, then Taylor's polynomial of degree 13, whose remainder is below 2^-57 there.
    #[inline(always)]
    unsafe fn exp(self) -> Self {
        const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
        const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
        const FACTORIALS: [f64; 14] = {
            let mut inverse = [1.0; 14];
            let mut factorial = 1.0;
            let mut i = 1;
            while i < 14 {
                factorial *= i as f64;
                inverse[i] = 1.0 / factorial;
                i += 1;
            }
            inverse
        };
        // SAFETY: the caller guarantees the instruction set; no memory is touched.
        unsafe {
            let x = self.max(Self::splat(-708.0));
            let (k, power) = x.mul(Self::splat(std::f64::consts::LOG2_E)).round_and_power();
            let r = x.fma(k, Self::splat(-LN2_HIGH)).fma(k, Self::splat(-LN2_LOW));
            let mut p = Self::splat(FACTORIALS[13]);
            for i in (0..13).rev() {
                p = Self::splat(FACTORIALS[i]).fma(p, r);
            }
            p.mul(power)
        }
    }
}

/// Bits of the square root of one half, rounded down: where [`Doubles::split_logarithm`] cuts.
const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcc;
/// 1.5 * 2^52: added to a small integer or number, it leaves the integer in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;
