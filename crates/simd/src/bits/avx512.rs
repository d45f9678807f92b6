//! [`Bits`] of AVX-512: of 32 bits each, and of 16.

use super::Bits;
use std::arch::x86_64::*;

/// No bit of the three operands: the truth table of `vpternlog` for "neither of them".
const NONE_OF_THREE: i32 = 0b0000_0001;

/// Sixteen lanes of 32 bits.
#[derive(Clone, Copy)]
pub struct Wide(__m512i);

/// Thirty-two lanes of 16 bits; wants BW and VBMI2.
#[derive(Clone, Copy)]
pub struct Narrow(__m512i);

// SAFETY of all functions below: the caller of the trait's functions promises the instruction sets, and pointers that are
// valid for all lanes.
impl Bits for Wide {
    type Word = u32;
    type Shift = __m128i;
    const LANES: usize = 16;

    each! {
        shift(by: u32) -> __m128i { _mm_cvtsi32_si128(by as i32) }
        splat(word: u32) -> Self { Wide(_mm512_set1_epi32(word as i32)) }
        load(from: *const u32) -> Self { Wide(_mm512_loadu_si512(from.cast())) }
        first(self, lanes: usize) -> Self { Wide(_mm512_maskz_mov_epi32((1 << lanes) - 1, self.0)) }
        or(self, b: Self) -> Self { Wide(_mm512_or_si512(self.0, b.0)) }
        xor(self, b: Self) -> Self { Wide(_mm512_xor_si512(self.0, b.0)) }
        without_lowest(self) -> Self { Wide(_mm512_and_si512(self.0, _mm512_add_epi32(self.0, _mm512_set1_epi32(-1)))) }
        left(self, by: __m128i) -> Self { Wide(_mm512_sll_epi32(self.0, by)) }
        right(self, by: __m128i) -> Self { Wide(_mm512_srl_epi32(self.0, by)) }
        outside(self, a: Self, b: Self, c: Self) -> Self {
            Wide(_mm512_and_si512(self.0, _mm512_ternarylogic_epi32::<NONE_OF_THREE>(a.0, b.0, c.0)))
        }
        nonzero(self) -> u32 { u32::from(_mm512_test_epi32_mask(self.0, self.0)) }
        pack(self, mask: u32, to: *mut u32) {
            // In a register, then written whole: compressing into memory takes over a hundred cycles on some processors.
            // SAFETY: the caller's promise: `to` is valid for all lanes.
            unsafe { _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(mask as u16, self.0)) }
        }
    }
}

impl Bits for Narrow {
    type Word = u16;
    type Shift = __m128i;
    const LANES: usize = 32;

    each! {
        shift(by: u32) -> __m128i { _mm_cvtsi32_si128(by as i32) }
        splat(word: u32) -> Self { Narrow(_mm512_set1_epi16(word as i16)) }
        load(from: *const u16) -> Self { Narrow(_mm512_loadu_si512(from.cast())) }
        first(self, lanes: usize) -> Self { Narrow(_mm512_maskz_mov_epi16((1 << lanes) - 1, self.0)) }
        or(self, b: Self) -> Self { Narrow(_mm512_or_si512(self.0, b.0)) }
        xor(self, b: Self) -> Self { Narrow(_mm512_xor_si512(self.0, b.0)) }
        without_lowest(self) -> Self {
            Narrow(_mm512_and_si512(self.0, _mm512_add_epi16(self.0, _mm512_set1_epi16(-1))))
        }
        left(self, by: __m128i) -> Self { Narrow(_mm512_sll_epi16(self.0, by)) }
        right(self, by: __m128i) -> Self { Narrow(_mm512_srl_epi16(self.0, by)) }
        outside(self, a: Self, b: Self, c: Self) -> Self {
            Narrow(_mm512_and_si512(self.0, _mm512_ternarylogic_epi32::<NONE_OF_THREE>(a.0, b.0, c.0)))
        }
        nonzero(self) -> u32 { _mm512_test_epi16_mask(self.0, self.0) }
        pack(self, mask: u32, to: *mut u16) {
            _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi16(mask, self.0))
        }
    }
}
