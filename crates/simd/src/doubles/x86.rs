//! [`Doubles`] of AVX2, two registers each, and of AVX-512.

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
    each! {
        splat(value: f64) -> Self { Pair(_mm256_set1_pd(value), _mm256_set1_pd(value)) }
        load(from: *const f64) -> Self { Pair(_mm256_loadu_pd(from), _mm256_loadu_pd(from.add(4))) }
        store(self, to: *mut f64) {
            _mm256_storeu_pd(to, self.0);
            _mm256_storeu_pd(to.add(4), self.1);
        }
        add(self, b: Self) -> Self { Pair(_mm256_add_pd(self.0, b.0), _mm256_add_pd(self.1, b.1)) }
        sub(self, b: Self) -> Self { Pair(_mm256_sub_pd(self.0, b.0), _mm256_sub_pd(self.1, b.1)) }
        mul(self, b: Self) -> Self { Pair(_mm256_mul_pd(self.0, b.0), _mm256_mul_pd(self.1, b.1)) }
        div(self, b: Self) -> Self { Pair(_mm256_div_pd(self.0, b.0), _mm256_div_pd(self.1, b.1)) }
        fma(self, a: Self, b: Self) -> Self {
            Pair(_mm256_fmadd_pd(a.0, b.0, self.0), _mm256_fmadd_pd(a.1, b.1, self.1))
        }
        max(self, b: Self) -> Self { Pair(_mm256_max_pd(self.0, b.0), _mm256_max_pd(self.1, b.1)) }
        less(self, b: Self) -> u8 {
            let low = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(self.0, b.0));
            let high = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(self.1, b.1));
            (low | high << 4) as u8
        }
        rows(rows: [*const f64; DOUBLES]) -> [Self; 4] {
            let row = |i: usize| _mm256_loadu_pd(rows[i]);
            let low = transpose4([row(0), row(1), row(2), row(3)]);
            let high = transpose4([row(4), row(5), row(6), row(7)]);
            [Pair(low[0], high[0]), Pair(low[1], high[1]), Pair(low[2], high[2]), Pair(low[3], high[3])]
        }
        split_logarithm(self) -> (Self, Self) {
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
        round_and_power(self) -> (Self, Self) {
            let half = |x: __m256d| {
                let magic = _mm256_set1_pd(MAGIC);
                let shifted = _mm256_add_pd(x, magic);
                let biased = _mm256_add_epi64(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(1023));
                (_mm256_sub_pd(shifted, magic), _mm256_castsi256_pd(_mm256_slli_epi64::<52>(biased)))
            };
            let (low, high) = (half(self.0), half(self.1));
            (Pair(low.0, high.0), Pair(low.1, high.1))
        }
        halving_sum(self) -> f64 { halving_sum4(_mm256_add_pd(self.0, self.1)) }
    }
}

// SAFETY of every block below: as for `Pair`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Doubles for __m512d {
    each! {
        splat(value: f64) -> Self { _mm512_set1_pd(value) }
        load(from: *const f64) -> Self { _mm512_loadu_pd(from) }
        store(self, to: *mut f64) { _mm512_storeu_pd(to, self) }
        add(self, b: Self) -> Self { _mm512_add_pd(self, b) }
        sub(self, b: Self) -> Self { _mm512_sub_pd(self, b) }
        mul(self, b: Self) -> Self { _mm512_mul_pd(self, b) }
        div(self, b: Self) -> Self { _mm512_div_pd(self, b) }
        fma(self, a: Self, b: Self) -> Self { _mm512_fmadd_pd(a, b, self) }
        max(self, b: Self) -> Self { _mm512_max_pd(self, b) }
        less(self, b: Self) -> u8 { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self, b) }
        rows(rows: [*const f64; DOUBLES]) -> [Self; 4] {
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
        split_logarithm(self) -> (Self, Self) {
            let bits = _mm512_castpd_si512(self);
            let one = _mm512_set1_epi64(1023 << 52);
            let cut = _mm512_sub_epi64(bits, _mm512_set1_epi64(ROOT_HALF as i64));
            let biased = _mm512_srli_epi64::<52>(_mm512_add_epi64(cut, one));
            let k = _mm512_sub_pd(_mm512_cvtepi64_pd(biased), _mm512_set1_pd(1023.0));
            let m = _mm512_add_epi64(_mm512_sub_epi64(bits, _mm512_slli_epi64::<52>(biased)), one);
            (k, _mm512_castsi512_pd(m))
        }
        round_and_power(self) -> (Self, Self) {
            let magic = _mm512_set1_pd(MAGIC);
            let shifted = _mm512_add_pd(self, magic);
            let biased = _mm512_add_epi64(_mm512_castpd_si512(shifted), _mm512_set1_epi64(1023));
            (_mm512_sub_pd(shifted, magic), _mm512_castsi512_pd(_mm512_slli_epi64::<52>(biased)))
        }
        halving_sum(self) -> f64 {
            halving_sum4(_mm256_add_pd(_mm512_castpd512_pd256(self), _mm512_extractf64x4_pd::<1>(self)))
        }
    }
}
