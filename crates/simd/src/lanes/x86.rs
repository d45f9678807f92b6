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

// SAFETY of every block below: the caller of a function of `Lanes` guarantees the instruction
// set and the pointers, as the trait demands; nothing else is needed.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for __m256 {
    const LANES: usize = 8;
    type Mask = __m256i;

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
