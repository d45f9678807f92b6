//! [`Bits`] of AVX2, which has no compression: lanes are moved by a table of permutations.

use super::{Bits, PACKED};
use std::arch::x86_64::*;

// SAFETY of all functions below: the caller of the trait's functions promises AVX2, and pointers that are valid for all
// lanes.
impl Bits for __m256i {
    type Word = u32;
    type Shift = __m128i;
    const LANES: usize = 8;

    each! {
        shift(by: u32) -> __m128i { _mm_cvtsi32_si128(by as i32) }
        splat(word: u32) -> Self { _mm256_set1_epi32(word as i32) }
        load(from: *const u32) -> Self { _mm256_loadu_si256(from.cast()) }
        first(self, lanes: usize) -> Self {
            let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_and_si256(self, _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes as i32), numbers))
        }
        or(self, b: Self) -> Self { _mm256_or_si256(self, b) }
        xor(self, b: Self) -> Self { _mm256_xor_si256(self, b) }
        without_lowest(self) -> Self { _mm256_and_si256(self, _mm256_add_epi32(self, _mm256_set1_epi32(-1))) }
        left(self, by: __m128i) -> Self { _mm256_sll_epi32(self, by) }
        right(self, by: __m128i) -> Self { _mm256_srl_epi32(self, by) }
        outside(self, a: Self, b: Self, c: Self) -> Self {
            _mm256_andnot_si256(_mm256_or_si256(a, _mm256_or_si256(b, c)), self)
        }
        nonzero(self) -> u32 {
            let zero = _mm256_cmpeq_epi32(self, _mm256_setzero_si256());
            !_mm256_movemask_ps(_mm256_castsi256_ps(zero)) as u32 & 0xff
        }
        pack(self, mask: u32, to: *mut u32) {
            let lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(PACKED[mask as usize & 0xff] as i64));
            _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(self, lanes));
        }
    }
}
