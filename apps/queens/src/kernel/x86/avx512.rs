//! Boards in registers of AVX-512: of 32 bits each, and of 16.

use super::Register;
use std::arch::x86_64::*;

/// No bit of the three operands: the truth table of `vpternlog` for "neither of them".
const NONE_OF_THREE: i32 = 0b0000_0001;

/// Sixteen lanes of 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Wide(__m512i);

/// Thirty-two lanes of 16 bits; wants BW and VBMI2.
#[derive(Clone, Copy)]
pub(super) struct Narrow(__m512i);

// SAFETY of all functions below: the caller of the trait's functions promises the instruction sets, and pointers that are
// valid for all lanes.
impl Register for Wide {
    type Cell = u32;
    type Shift = __m128i;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn shift(by: u32) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_cvtsi32_si128(by as i32) }
    }
    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: see above.
        unsafe { Wide(_mm512_set1_epi32(word as i32)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: see above.
        unsafe { Wide(_mm512_loadu_si512(from.cast())) }
    }
    #[inline(always)]
    unsafe fn first(self, lanes: usize) -> Self {
        // SAFETY: see above.
        unsafe { Wide(_mm512_maskz_mov_epi32((1 << lanes) - 1, self.0)) }
    }
    #[inline(always)]
    unsafe fn or(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Wide(_mm512_or_si512(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn xor(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Wide(_mm512_xor_si512(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn without_lowest(self) -> Self {
        // SAFETY: see above.
        unsafe { Wide(_mm512_and_si512(self.0, _mm512_add_epi32(self.0, _mm512_set1_epi32(-1)))) }
    }
    #[inline(always)]
    unsafe fn left(self, by: __m128i) -> Self {
        // SAFETY: see above.
        unsafe { Wide(_mm512_sll_epi32(self.0, by)) }
    }
    #[inline(always)]
    unsafe fn right(self, by: __m128i) -> Self {
        // SAFETY: see above.
        unsafe { Wide(_mm512_srl_epi32(self.0, by)) }
    }
    #[inline(always)]
    unsafe fn outside(self, a: Self, b: Self, c: Self) -> Self {
        // SAFETY: see above.
        unsafe { Wide(_mm512_and_si512(self.0, _mm512_ternarylogic_epi32::<NONE_OF_THREE>(a.0, b.0, c.0))) }
    }
    #[inline(always)]
    unsafe fn nonzero(self) -> u32 {
        // SAFETY: see above.
        unsafe { u32::from(_mm512_test_epi32_mask(self.0, self.0)) }
    }
    #[inline(always)]
    unsafe fn pack(self, mask: u32, to: *mut u32) {
        // In a register, then written whole: compressing into memory takes over a hundred cycles on some processors.
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(mask as u16, self.0)) }
    }
}

impl Register for Narrow {
    type Cell = u16;
    type Shift = __m128i;
    const LANES: usize = 32;

    #[inline(always)]
    unsafe fn shift(by: u32) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_cvtsi32_si128(by as i32) }
    }
    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: see above.
        unsafe { Narrow(_mm512_set1_epi16(word as i16)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u16) -> Self {
        // SAFETY: see above.
        unsafe { Narrow(_mm512_loadu_si512(from.cast())) }
    }
    #[inline(always)]
    unsafe fn first(self, lanes: usize) -> Self {
        // SAFETY: see above.
        unsafe { Narrow(_mm512_maskz_mov_epi16((1 << lanes) - 1, self.0)) }
    }
    #[inline(always)]
    unsafe fn or(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Narrow(_mm512_or_si512(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn xor(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Narrow(_mm512_xor_si512(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn without_lowest(self) -> Self {
        // SAFETY: see above.
        unsafe { Narrow(_mm512_and_si512(self.0, _mm512_add_epi16(self.0, _mm512_set1_epi16(-1)))) }
    }
    #[inline(always)]
    unsafe fn left(self, by: __m128i) -> Self {
        // SAFETY: see above.
        unsafe { Narrow(_mm512_sll_epi16(self.0, by)) }
    }
    #[inline(always)]
    unsafe fn right(self, by: __m128i) -> Self {
        // SAFETY: see above.
        unsafe { Narrow(_mm512_srl_epi16(self.0, by)) }
    }
    #[inline(always)]
    unsafe fn outside(self, a: Self, b: Self, c: Self) -> Self {
        // SAFETY: see above.
        unsafe { Narrow(_mm512_and_si512(self.0, _mm512_ternarylogic_epi32::<NONE_OF_THREE>(a.0, b.0, c.0))) }
    }
    #[inline(always)]
    unsafe fn nonzero(self) -> u32 {
        // SAFETY: see above.
        unsafe { _mm512_test_epi16_mask(self.0, self.0) }
    }
    #[inline(always)]
    unsafe fn pack(self, mask: u32, to: *mut u16) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi16(mask, self.0)) }
    }
}
