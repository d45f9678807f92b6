//! Eight lanes of `f64` behind one trait, whatever the width of the registers, so that a kernel's blocks, its order of
//! arithmetic and its bits are the same with each instruction set.
//!
//! As with [`Lanes`](crate::Lanes), every operation is `#[inline(always)]` and carries no target feature itself: it must
//! be inlined into a function that enables the features.

/// Lanes of a vector of [`Doubles`].
pub const DOUBLES: usize = 8;

/// Eight `f64`: in one register, in two, or one at a time.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type. Pointers must be
/// valid for the elements accessed; they need no alignment.
pub trait Doubles: Copy {
    /// All lanes `value`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn splat(value: f64) -> Self;
    /// The eight elements from `from` on.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn load(from: *const f64) -> Self;
    /// Writes eight elements.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn store(self, to: *mut f64);
    /// `self + b`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn add(self, b: Self) -> Self;
    /// `self - b`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn sub(self, b: Self) -> Self;
    /// `self * b`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn mul(self, b: Self) -> Self;
    /// `self / b`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn div(self, b: Self) -> Self;
    /// `a * b + self`, rounded once.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    /// The larger of two numbers; neither is NaN and zeros have one sign.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn max(self, b: Self) -> Self;
    /// Bit `i` is set where lane `i` of `self` is less than that of `b`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn less(self, b: Self) -> u8;
    /// The four vectors whose lane `i` are the elements `rows[i][0]`, `[1]`, `[2]` and `[3]`: a table is looked up for
    /// each lane, and the rows are transposed.
    ///
    /// # Safety
    /// See the trait; each of `rows` is valid for four elements.
    unsafe fn rows(rows: [*const f64; DOUBLES]) -> [Self; 4];
    /// For positive normal numbers, `k` (an integer) and `m` in `[sqrt(1/2), sqrt(2))` with `self = 2^k m`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn split_logarithm(self) -> (Self, Self);
    /// The nearest integer `k` to `self` (ties to even) and 2^k, for numbers between -1022 and 1023.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn round_and_power(self) -> (Self, Self);
    /// The sum of all lanes by halving: lane `i` plus lane `i + h` for `h = 4, 2, 1`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn halving_sum(self) -> f64;

    /// The natural logarithm of positive normal numbers, to within one unit in the last place (the argument reduction and
    /// polynomial of FreeBSD's `e_log.c`, Sun Microsystems 1993, with fused operations).
    ///
    /// # Safety
    /// See the trait.
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
    ///
    /// # Safety
    /// See the trait.
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

impl Doubles for [f64; DOUBLES] {
    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        [value; DOUBLES]
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: the caller passes a pointer valid for eight elements.
        unsafe { from.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: the caller passes a pointer valid for eight elements.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }
    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        std::array::from_fn(|i| self[i] + b[i])
    }
    #[inline(always)]
    unsafe fn sub(self, b: Self) -> Self {
        std::array::from_fn(|i| self[i] - b[i])
    }
    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        std::array::from_fn(|i| self[i] * b[i])
    }
    #[inline(always)]
    unsafe fn div(self, b: Self) -> Self {
        std::array::from_fn(|i| self[i] / b[i])
    }
    #[inline(always)]
    unsafe fn fma(self, a: Self, b: Self) -> Self {
        std::array::from_fn(|i| a[i].mul_add(b[i], self[i]))
    }
    #[inline(always)]
    unsafe fn max(self, b: Self) -> Self {
        std::array::from_fn(|i| if self[i] > b[i] { self[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn less(self, b: Self) -> u8 {
        (0..DOUBLES).fold(0, |mask, i| mask | u8::from(self[i] < b[i]) << i)
    }
    #[inline(always)]
    unsafe fn rows(rows: [*const f64; DOUBLES]) -> [Self; 4] {
        // SAFETY: the caller passes rows valid for four elements each.
        std::array::from_fn(|column| rows.map(|row| unsafe { row.add(column).read() }))
    }
    #[inline(always)]
    unsafe fn split_logarithm(self) -> (Self, Self) {
        let biased = self.map(|x| (x.to_bits().wrapping_sub(ROOT_HALF).wrapping_add(1023 << 52)) >> 52);
        let k = biased.map(|b| b as f64 - 1023.0);
        let m = std::array::from_fn(|i| {
            f64::from_bits(self[i].to_bits().wrapping_sub(biased[i] << 52).wrapping_add(1023 << 52))
        });
        (k, m)
    }
    #[inline(always)]
    unsafe fn round_and_power(self) -> (Self, Self) {
        let shifted = self.map(|x| x + MAGIC);
        (shifted.map(|x| x - MAGIC), shifted.map(|x| f64::from_bits((x.to_bits().wrapping_add(1023)) << 52)))
    }
    #[inline(always)]
    unsafe fn halving_sum(self) -> f64 {
        let four: [f64; 4] = std::array::from_fn(|i| self[i] + self[i + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{DOUBLES, Doubles, MAGIC, ROOT_HALF};
    use std::arch::x86_64::*;

    /// The sum of four lanes by halving.
    #[inline(always)]
    unsafe fn halving_sum4(v: __m256d) -> f64 {
        // SAFETY: the caller's instruction set includes AVX.
        unsafe {
            let two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }

    /// Four rows of four elements as four columns.
    #[inline(always)]
    unsafe fn transpose4(r: [__m256d; 4]) -> [__m256d; 4] {
        // SAFETY: the caller's instruction set includes AVX.
        unsafe {
            let (a, b) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]));
            let (c, d) = (_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]));
            [
                _mm256_permute2f128_pd::<0x20>(a, c),
                _mm256_permute2f128_pd::<0x20>(b, d),
                _mm256_permute2f128_pd::<0x31>(a, c),
                _mm256_permute2f128_pd::<0x31>(b, d),
            ]
        }
    }

    /// Two registers of four lanes.
    #[derive(Clone, Copy)]
    pub struct Pair(__m256d, __m256d);

    // SAFETY of every block below: the caller of a function of `Doubles` guarantees the instruction set and the pointers,
    // as the trait demands; nothing else is needed.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Doubles for Pair {
        #[inline(always)]
        unsafe fn splat(value: f64) -> Self {
            unsafe { Pair(_mm256_set1_pd(value), _mm256_set1_pd(value)) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f64) -> Self {
            unsafe { Pair(_mm256_loadu_pd(from), _mm256_loadu_pd(from.add(4))) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f64) {
            unsafe {
                _mm256_storeu_pd(to, self.0);
                _mm256_storeu_pd(to.add(4), self.1);
            }
        }
        #[inline(always)]
        unsafe fn add(self, b: Self) -> Self {
            unsafe { Pair(_mm256_add_pd(self.0, b.0), _mm256_add_pd(self.1, b.1)) }
        }
        #[inline(always)]
        unsafe fn sub(self, b: Self) -> Self {
            unsafe { Pair(_mm256_sub_pd(self.0, b.0), _mm256_sub_pd(self.1, b.1)) }
        }
        #[inline(always)]
        unsafe fn mul(self, b: Self) -> Self {
            unsafe { Pair(_mm256_mul_pd(self.0, b.0), _mm256_mul_pd(self.1, b.1)) }
        }
        #[inline(always)]
        unsafe fn div(self, b: Self) -> Self {
            unsafe { Pair(_mm256_div_pd(self.0, b.0), _mm256_div_pd(self.1, b.1)) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            unsafe { Pair(_mm256_fmadd_pd(a.0, b.0, self.0), _mm256_fmadd_pd(a.1, b.1, self.1)) }
        }
        #[inline(always)]
        unsafe fn max(self, b: Self) -> Self {
            unsafe { Pair(_mm256_max_pd(self.0, b.0), _mm256_max_pd(self.1, b.1)) }
        }
        #[inline(always)]
        unsafe fn less(self, b: Self) -> u8 {
            unsafe {
                let low = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(self.0, b.0));
                let high = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(self.1, b.1));
                (low | high << 4) as u8
            }
        }
        #[inline(always)]
        unsafe fn rows(rows: [*const f64; DOUBLES]) -> [Self; 4] {
            unsafe {
                let row = |i: usize| _mm256_loadu_pd(rows[i]);
                let low = transpose4([row(0), row(1), row(2), row(3)]);
                let high = transpose4([row(4), row(5), row(6), row(7)]);
                [Pair(low[0], high[0]), Pair(low[1], high[1]), Pair(low[2], high[2]), Pair(low[3], high[3])]
            }
        }
        #[inline(always)]
        unsafe fn split_logarithm(self) -> (Self, Self) {
            unsafe {
                let half = |x: __m256d| {
                    let bits = _mm256_castpd_si256(x);
                    let one = _mm256_set1_epi64x(1023 << 52);
                    let cut = _mm256_sub_epi64(bits, _mm256_set1_epi64x(ROOT_HALF as i64));
                    let biased = _mm256_srli_epi64::<52>(_mm256_add_epi64(cut, one));
                    let magic = _mm256_set1_pd(MAGIC);
                    let integer = _mm256_castsi256_pd(_mm256_add_epi64(biased, _mm256_castpd_si256(magic)));
                    let k = _mm256_sub_pd(_mm256_sub_pd(integer, magic), _mm256_set1_pd(1023.0));
                    let m = _mm256_add_epi64(_mm256_sub_epi64(bits, _mm256_slli_epi64::<52>(biased)), one);
                    (k, _mm256_castsi256_pd(m))
                };
                let (low, high) = (half(self.0), half(self.1));
                (Pair(low.0, high.0), Pair(low.1, high.1))
            }
        }
        #[inline(always)]
        unsafe fn round_and_power(self) -> (Self, Self) {
            unsafe {
                let half = |x: __m256d| {
                    let magic = _mm256_set1_pd(MAGIC);
                    let shifted = _mm256_add_pd(x, magic);
                    let biased = _mm256_add_epi64(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(1023));
                    (_mm256_sub_pd(shifted, magic), _mm256_castsi256_pd(_mm256_slli_epi64::<52>(biased)))
                };
                let (low, high) = (half(self.0), half(self.1));
                (Pair(low.0, high.0), Pair(low.1, high.1))
            }
        }
        #[inline(always)]
        unsafe fn halving_sum(self) -> f64 {
            unsafe { halving_sum4(_mm256_add_pd(self.0, self.1)) }
        }
    }

    // SAFETY of every block below: as for `Pair`.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Doubles for __m512d {
        #[inline(always)]
        unsafe fn splat(value: f64) -> Self {
            unsafe { _mm512_set1_pd(value) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f64) -> Self {
            unsafe { _mm512_loadu_pd(from) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f64) {
            unsafe { _mm512_storeu_pd(to, self) }
        }
        #[inline(always)]
        unsafe fn add(self, b: Self) -> Self {
            unsafe { _mm512_add_pd(self, b) }
        }
        #[inline(always)]
        unsafe fn sub(self, b: Self) -> Self {
            unsafe { _mm512_sub_pd(self, b) }
        }
        #[inline(always)]
        unsafe fn mul(self, b: Self) -> Self {
            unsafe { _mm512_mul_pd(self, b) }
        }
        #[inline(always)]
        unsafe fn div(self, b: Self) -> Self {
            unsafe { _mm512_div_pd(self, b) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            unsafe { _mm512_fmadd_pd(a, b, self) }
        }
        #[inline(always)]
        unsafe fn max(self, b: Self) -> Self {
            unsafe { _mm512_max_pd(self, b) }
        }
        #[inline(always)]
        unsafe fn less(self, b: Self) -> u8 {
            unsafe { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self, b) }
        }
        #[inline(always)]
        unsafe fn rows(rows: [*const f64; DOUBLES]) -> [Self; 4] {
            unsafe {
                // Rows i and i + 4 share a register; each half is then transposed as four rows of four.
                let pair = |i: usize| {
                    let low = _mm512_castpd256_pd512(_mm256_loadu_pd(rows[i]));
                    _mm512_insertf64x4::<1>(low, _mm256_loadu_pd(rows[i + 4]))
                };
                let (r0, r1, r2, r3) = (pair(0), pair(1), pair(2), pair(3));
                let (a, b) = (_mm512_unpacklo_pd(r0, r1), _mm512_unpackhi_pd(r0, r1));
                let (c, d) = (_mm512_unpacklo_pd(r2, r3), _mm512_unpackhi_pd(r2, r3));
                let low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
                let high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
                [
                    _mm512_permutex2var_pd(a, low, c),
                    _mm512_permutex2var_pd(b, low, d),
                    _mm512_permutex2var_pd(a, high, c),
                    _mm512_permutex2var_pd(b, high, d),
                ]
            }
        }
        #[inline(always)]
        unsafe fn split_logarithm(self) -> (Self, Self) {
            unsafe {
                let bits = _mm512_castpd_si512(self);
                let one = _mm512_set1_epi64(1023 << 52);
                let cut = _mm512_sub_epi64(bits, _mm512_set1_epi64(ROOT_HALF as i64));
                let biased = _mm512_srli_epi64::<52>(_mm512_add_epi64(cut, one));
                let k = _mm512_sub_pd(_mm512_cvtepi64_pd(biased), _mm512_set1_pd(1023.0));
                let m = _mm512_add_epi64(_mm512_sub_epi64(bits, _mm512_slli_epi64::<52>(biased)), one);
                (k, _mm512_castsi512_pd(m))
            }
        }
        #[inline(always)]
        unsafe fn round_and_power(self) -> (Self, Self) {
            unsafe {
                let magic = _mm512_set1_pd(MAGIC);
                let shifted = _mm512_add_pd(self, magic);
                let biased = _mm512_add_epi64(_mm512_castpd_si512(shifted), _mm512_set1_epi64(1023));
                (_mm512_sub_pd(shifted, magic), _mm512_castsi512_pd(_mm512_slli_epi64::<52>(biased)))
            }
        }
        #[inline(always)]
        unsafe fn halving_sum(self) -> f64 {
            unsafe { halving_sum4(_mm256_add_pd(_mm512_castpd512_pd256(self), _mm512_extractf64x4_pd::<1>(self))) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::Pair;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;

    /// Every operation on eight numbers, as bits.
    #[inline(always)]
    unsafe fn all<V: Doubles>(x: &[f64; 8], y: &[f64; 8]) -> Vec<u64> {
        // SAFETY: the caller enables the instruction set; arrays of eight are valid for eight elements, and rows begin
        // at the first four of them.
        unsafe {
            let (a, b) = (V::load(x.as_ptr()), V::load(y.as_ptr()));
            let rows = V::rows(std::array::from_fn(|i| if i % 2 == 0 { &x[i / 2] } else { &y[i / 2] } as *const f64));
            let (k, m) = a.split_logarithm();
            let (n, power) = b.round_and_power();
            let results =
                [a.add(b), a.sub(b), a.mul(b), a.div(b), a.fma(a, b), a.max(b), a.ln(), b.exp(), k, m, n, power];
            let mut bits = vec![u64::from(a.less(b)), a.halving_sum().to_bits()];
            for v in results.into_iter().chain(rows) {
                let mut out = [0.0; 8];
                v.store(out.as_mut_ptr());
                bits.extend(out.map(f64::to_bits));
            }
            bits
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(x: &[f64; 8], y: &[f64; 8]) -> Vec<u64> {
        // SAFETY: the features are enabled here.
        unsafe { all::<Pair>(x, y) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
    unsafe fn avx512(x: &[f64; 8], y: &[f64; 8]) -> Vec<u64> {
        // SAFETY: the features are enabled here.
        unsafe { all::<std::arch::x86_64::__m512d>(x, y) }
    }

    fn numbers(mut state: u64) -> impl FnMut() -> f64 {
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let mut next = numbers(0x9e37_79b9_7f4a_7c15);
        for _ in 0..2000 {
            let x: [f64; 8] = std::array::from_fn(|_| next() * 2f64.powi((next() * 600.0) as i32 - 500));
            let y: [f64; 8] = std::array::from_fn(|_| -next() * 700.0);
            // SAFETY: plain arithmetic.
            let expected = unsafe { all::<[f64; 8]>(&x, &y) };
            #[cfg(target_arch = "x86_64")]
            {
                if Isa::Avx2.is_supported() {
                    // SAFETY: supported.
                    assert_eq!(unsafe { avx2(&x, &y) }, expected);
                }
                if Isa::Avx512.is_supported() {
                    // SAFETY: supported.
                    assert_eq!(unsafe { avx512(&x, &y) }, expected);
                }
            }
            assert!(!expected.is_empty());
        }
    }

    #[test]
    fn logarithms_and_exponentials_are_accurate() {
        let mut next = numbers(0x1234_5678_9abc_def1);
        for round in 0..20_000 {
            let wide = 2f64.powi((next() * 2000.0) as i32 - 1000);
            let x = (0.5 + next()) * if round % 2 == 0 { 1.0 } else { wide };
            let y = -next() * if round % 2 == 0 { 1.0 } else { 700.0 };
            // SAFETY: plain arithmetic.
            let (ln, exp) = unsafe { ([x; 8].ln()[3], [y; 8].exp()[5]) };
            assert!((ln - x.ln()).abs() <= 2.3e-16 * x.ln().abs(), "ln {x}: {ln} {}", x.ln());
            assert!((exp - y.exp()).abs() <= 2.3e-16 * y.exp() * 1.5, "exp {y}: {exp} {}", y.exp());
        }
        // SAFETY: plain arithmetic.
        unsafe {
            assert_eq!([1.0; 8].ln(), [0.0; 8]);
            assert_eq!([0.0; 8].exp(), [1.0; 8]);
            assert!([-1e9; 8].exp()[0] < 1e-300);
        }
    }
}
