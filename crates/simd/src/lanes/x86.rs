//! [`Lanes`] of AVX2 and AVX-512.

use super::{Lanes, NAN_BITS};
use std::arch::x86_64::*;

/// What does not depend on the width.
macro_rules! of_any_width {
    () => {
        #[inline(always)]
        fn prefetch_near(at: *const f32) {
            // SAFETY: a prefetch never faults; SSE is part of x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
        }
        #[inline(always)]
        fn prefetch(at: *const f32) {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
        }
        #[inline(always)]
        fn fence() {
            // SAFETY: SSE is part of x86-64.
            unsafe { _mm_sfence() }
        }
    };
}

/// The sum of four lanes by halving.
#[inline(always)]
unsafe fn halving_sum4(v: __m128) -> f32 {
    // SAFETY: the caller's instruction set includes SSE.
    unsafe {
        let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
        _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
    }
}

/// Eight words of all ones followed by eight of zeros and eight of ones again: a window of
/// eight at the right offset is a mask that ends, or begins, at any lane.
static EDGES: [u32; 24] = {
    let mut words = [u32::MAX; 24];
    let mut i = 8;
    while i < 16 {
        words[i] = 0;
        i += 1;
    }
    words
};

/// The indices, and their bits 3 and 4 in the sign bits of the lanes, where blends look.
#[derive(Clone, Copy)]
pub struct Index8 {
    low: __m256i,
    bit3: __m256,
    bit4: __m256,
}

// SAFETY of every block below: the caller of a function of `Lanes` guarantees the instruction
// set and the pointers, as the trait demands; nothing else is needed.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for __m256 {
    const LANES: usize = 8;
    type Mask = __m256i;
    type Index = Index8;
    type Order = __m256i;

    each! {
        splat(value: f32) -> Self { _mm256_set1_ps(value) }
        load(from: *const f32) -> Self { _mm256_loadu_ps(from) }
        store(self, to: *mut f32) { _mm256_storeu_ps(to, self) }
        stream(self, to: *mut f32) { _mm256_stream_ps(to, self) }
        fma(self, a: Self, b: Self) -> Self { _mm256_fmadd_ps(a, b, self) }
        fms(self, a: Self, b: Self) -> Self { _mm256_fmsub_ps(a, b, self) }
        fnma(self, a: Self, b: Self) -> Self { _mm256_fnmadd_ps(a, b, self) }
        add(self, b: Self) -> Self { _mm256_add_ps(self, b) }
        sub(self, b: Self) -> Self { _mm256_sub_ps(self, b) }
        mul(self, b: Self) -> Self { _mm256_mul_ps(self, b) }
        div(self, b: Self) -> Self { _mm256_div_ps(self, b) }
        sqrt(self) -> Self { _mm256_sqrt_ps(self) }
        canonical(self) -> Self {
            let nan = _mm256_set1_ps(f32::from_bits(NAN_BITS));
            _mm256_blendv_ps(self, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(self, self))
        }
        halving_sum(self) -> f32 {
            halving_sum4(_mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self)))
        }
        mask(first: usize, end: usize) -> __m256i {
            debug_assert!(first <= end && end <= 8);
            let until = _mm256_loadu_si256(EDGES.as_ptr().add(8 - end).cast());
            let from = _mm256_loadu_si256(EDGES.as_ptr().add(16 - first).cast());
            _mm256_and_si256(until, from)
        }
        load_masked(mask: __m256i, from: *const f32) -> Self { _mm256_maskload_ps(from, mask) }
        store_masked(self, mask: __m256i, to: *mut f32) { _mm256_maskstore_ps(to, mask, self) }
        fma_masked(self, mask: __m256i, a: Self, b: Self) -> Self {
            _mm256_blendv_ps(self, _mm256_fmadd_ps(a, b, self), _mm256_castsi256_ps(mask))
        }
        equal(self, b: Self) -> __m256i { _mm256_castps_si256(_mm256_cmp_ps::<_CMP_EQ_OQ>(self, b)) }
        select(self, mask: __m256i, b: Self) -> Self { _mm256_blendv_ps(self, b, _mm256_castsi256_ps(mask)) }
        max(self, b: Self) -> Self { _mm256_max_ps(self, b) }
        any_above(self, limit: f32) -> bool {
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self, _mm256_set1_ps(limit))) != 0
        }
        index(from: *const u32) -> Index8 {
            let low = _mm256_loadu_si256(from.cast());
            Index8 {
                low,
                bit3: _mm256_castsi256_ps(_mm256_slli_epi32::<28>(low)),
                bit4: _mm256_castsi256_ps(_mm256_slli_epi32::<27>(low)),
            }
        }
        look_up(table: *const f32, index: Index8) -> Self {
            let part = |i: usize| _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.add(8 * i)), index.low);
            let low = _mm256_blendv_ps(part(0), part(1), index.bit3);
            let high = _mm256_blendv_ps(part(2), part(3), index.bit3);
            _mm256_blendv_ps(low, high, index.bit4)
        }
        order_of_loads(swapped: bool) -> __m256i {
            let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
            if swapped { _mm256_xor_si256(order, _mm256_set1_epi32(1)) } else { order }
        }
        order_of_stores(swapped: bool) -> __m256i {
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            if swapped { _mm256_xor_si256(order, _mm256_set1_epi32(4)) } else { order }
        }
        load_complex(from: *const f32, order: __m256i) -> (Self, Self) {
            let low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(from), order);
            let high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(from.add(8)), order);
            (_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
        }
        interleave(re: Self, im: Self, order: __m256i) -> (Self, Self) {
            let low = _mm256_permute2f128_ps::<0x20>(re, im);
            let high = _mm256_permute2f128_ps::<0x31>(re, im);
            (_mm256_permutevar8x32_ps(low, order), _mm256_permutevar8x32_ps(high, order))
        }
        halved_from(self, bits: u32) -> Self {
            let half = _mm256_srli_epi32::<1>(_mm256_castps_si256(self));
            _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_set1_epi32(bits as i32), half))
        }
        add_to(self, to: *mut f64) {
            let low = _mm256_cvtps_pd(_mm256_castps256_ps128(self));
            let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self));
            _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), low));
            _mm256_storeu_pd(to.add(4), _mm256_add_pd(_mm256_loadu_pd(to.add(4)), high));
        }
        transpose(square: &mut [Self; 16]) {
            let s = *square;
            let mut pairs = s;
            for i in (0..8).step_by(2) {
                pairs[i] = _mm256_unpacklo_ps(s[i], s[i + 1]);
                pairs[i + 1] = _mm256_unpackhi_ps(s[i], s[i + 1]);
            }
            let mut fours = pairs;
            for i in [0, 4] {
                fours[i] = _mm256_shuffle_ps::<0x44>(pairs[i], pairs[i + 2]);
                fours[i + 1] = _mm256_shuffle_ps::<0xEE>(pairs[i], pairs[i + 2]);
                fours[i + 2] = _mm256_shuffle_ps::<0x44>(pairs[i + 1], pairs[i + 3]);
                fours[i + 3] = _mm256_shuffle_ps::<0xEE>(pairs[i + 1], pairs[i + 3]);
            }
            for i in 0..4 {
                square[i] = _mm256_permute2f128_ps::<0x20>(fours[i], fours[i + 4]);
                square[i + 4] = _mm256_permute2f128_ps::<0x31>(fours[i], fours[i + 4]);
            }
        }
    }
    of_any_width! {}
}

// SAFETY of every block below: as for `__m256`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for __m512 {
    const LANES: usize = 16;
    type Mask = __mmask16;
    type Index = __m512i;
    type Order = (__m512i, __m512i);

    each! {
        splat(value: f32) -> Self { _mm512_set1_ps(value) }
        load(from: *const f32) -> Self { _mm512_loadu_ps(from) }
        store(self, to: *mut f32) { _mm512_storeu_ps(to, self) }
        stream(self, to: *mut f32) { _mm512_stream_ps(to, self) }
        fma(self, a: Self, b: Self) -> Self { _mm512_fmadd_ps(a, b, self) }
        fms(self, a: Self, b: Self) -> Self { _mm512_fmsub_ps(a, b, self) }
        fnma(self, a: Self, b: Self) -> Self { _mm512_fnmadd_ps(a, b, self) }
        add(self, b: Self) -> Self { _mm512_add_ps(self, b) }
        sub(self, b: Self) -> Self { _mm512_sub_ps(self, b) }
        mul(self, b: Self) -> Self { _mm512_mul_ps(self, b) }
        div(self, b: Self) -> Self { _mm512_div_ps(self, b) }
        sqrt(self) -> Self { _mm512_sqrt_ps(self) }
        canonical(self) -> Self {
            let nan = _mm512_set1_ps(f32::from_bits(NAN_BITS));
            _mm512_mask_mov_ps(self, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self, self), nan)
        }
        halving_sum(self) -> f32 {
            _mm256_add_ps(_mm512_castps512_ps256(self), _mm512_extractf32x8_ps::<1>(self)).halving_sum()
        }
        mask(first: usize, end: usize) -> __mmask16 {
            debug_assert!(first <= end && end <= 16);
            ((1_u32 << end) - (1_u32 << first)) as __mmask16
        }
        load_masked(mask: __mmask16, from: *const f32) -> Self { _mm512_maskz_loadu_ps(mask, from) }
        store_masked(self, mask: __mmask16, to: *mut f32) { _mm512_mask_storeu_ps(to, mask, self) }
        fma_masked(self, mask: __mmask16, a: Self, b: Self) -> Self { _mm512_mask3_fmadd_ps(a, b, self, mask) }
        equal(self, b: Self) -> __mmask16 { _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self, b) }
        select(self, mask: __mmask16, b: Self) -> Self { _mm512_mask_mov_ps(self, mask, b) }
        max(self, b: Self) -> Self { _mm512_max_ps(self, b) }
        any_above(self, limit: f32) -> bool { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self, _mm512_set1_ps(limit)) != 0 }
        index(from: *const u32) -> __m512i { _mm512_loadu_si512(from.cast()) }
        look_up(table: *const f32, index: __m512i) -> Self {
            _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table.add(16)))
        }
        order_of_loads(swapped: bool) -> (__m512i, __m512i) {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
            if swapped { (odd, even) } else { (even, odd) }
        }
        order_of_stores(swapped: bool) -> (__m512i, __m512i) {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let flip = _mm512_set1_epi32(if swapped { 16 } else { 0 });
            let high = _mm512_or_si512(low, _mm512_set1_epi32(8));
            (_mm512_xor_si512(low, flip), _mm512_xor_si512(high, flip))
        }
        load_complex(from: *const f32, order: (__m512i, __m512i)) -> (Self, Self) {
            let (low, high) = (_mm512_loadu_ps(from), _mm512_loadu_ps(from.add(16)));
            (_mm512_permutex2var_ps(low, order.0, high), _mm512_permutex2var_ps(low, order.1, high))
        }
        interleave(re: Self, im: Self, order: (__m512i, __m512i)) -> (Self, Self) {
            (_mm512_permutex2var_ps(re, order.0, im), _mm512_permutex2var_ps(re, order.1, im))
        }
        halved_from(self, bits: u32) -> Self {
            let half = _mm512_srli_epi32::<1>(_mm512_castps_si512(self));
            _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32(bits as i32), half))
        }
        add_to(self, to: *mut f64) {
            let low = _mm512_cvtps_pd(_mm512_castps512_ps256(self));
            let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(self));
            _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), low));
            _mm512_storeu_pd(to.add(8), _mm512_add_pd(_mm512_loadu_pd(to.add(8)), high));
        }
        transpose(square: &mut [Self; 16]) {
            let s = *square;
            let mut pairs = s;
            for i in (0..16).step_by(2) {
                pairs[i] = _mm512_unpacklo_ps(s[i], s[i + 1]);
                pairs[i + 1] = _mm512_unpackhi_ps(s[i], s[i + 1]);
            }
            let mut fours = pairs;
            for i in [0, 4, 8, 12] {
                fours[i] = _mm512_shuffle_ps::<0x44>(pairs[i], pairs[i + 2]);
                fours[i + 1] = _mm512_shuffle_ps::<0xEE>(pairs[i], pairs[i + 2]);
                fours[i + 2] = _mm512_shuffle_ps::<0x44>(pairs[i + 1], pairs[i + 3]);
                fours[i + 3] = _mm512_shuffle_ps::<0xEE>(pairs[i + 1], pairs[i + 3]);
            }
            // fours[4 g + c] holds, in its quarter q, column 4 q + c of the rows 4 g .. 4 g + 4.
            for c in 0..4 {
                let low = _mm512_shuffle_f32x4::<0x88>(fours[c], fours[4 + c]);
                let low_odd = _mm512_shuffle_f32x4::<0xDD>(fours[c], fours[4 + c]);
                let high = _mm512_shuffle_f32x4::<0x88>(fours[8 + c], fours[12 + c]);
                let high_odd = _mm512_shuffle_f32x4::<0xDD>(fours[8 + c], fours[12 + c]);
                square[c] = _mm512_shuffle_f32x4::<0x88>(low, high);
                square[8 + c] = _mm512_shuffle_f32x4::<0xDD>(low, high);
                square[4 + c] = _mm512_shuffle_f32x4::<0x88>(low_odd, high_odd);
                square[12 + c] = _mm512_shuffle_f32x4::<0xDD>(low_odd, high_odd);
            }
        }
    }
    of_any_width! {}
}
