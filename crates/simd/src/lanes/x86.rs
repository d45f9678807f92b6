//! [`Lanes`] of AVX2 and AVX-512.

use super::{Lanes, NAN_BITS};
use std::arch::x86_64::*;

/// Operations that are one instruction each.
macro_rules! plain {
    ($($name:ident($this:ident $(, $other:ident)*) = $intrinsic:ident($($operand:ident),*);)*) => {$(
        #[inline(always)]
        unsafe fn $name($this $(, $other: Self)*) -> Self {
            unsafe { $intrinsic($($operand),*) }
        }
    )*};
}

#[inline(always)]
fn prefetch(at: *const f32) {
    // SAFETY: a prefetch never faults; SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
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

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut f32) {
        unsafe { _mm256_stream_ps(to, self) }
    }
    plain! {
        fma(self, a, b) = _mm256_fmadd_ps(a, b, self);
        fms(self, a, b) = _mm256_fmsub_ps(a, b, self);
        fnma(self, a, b) = _mm256_fnmadd_ps(a, b, self);
        add(self, b) = _mm256_add_ps(self, b);
        sub(self, b) = _mm256_sub_ps(self, b);
        mul(self, b) = _mm256_mul_ps(self, b);
        div(self, b) = _mm256_div_ps(self, b);
        sqrt(self) = _mm256_sqrt_ps(self);
    }
    #[inline(always)]
    unsafe fn canonical(self) -> Self {
        unsafe {
            let nan = _mm256_set1_ps(f32::from_bits(NAN_BITS));
            _mm256_blendv_ps(self, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(self, self))
        }
    }
    #[inline(always)]
    unsafe fn halving_sum(self) -> f32 {
        unsafe { halving_sum4(_mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self))) }
    }
    #[inline(always)]
    unsafe fn mask(first: usize, end: usize) -> __m256i {
        debug_assert!(first <= end && end <= 8);
        unsafe {
            let until = _mm256_loadu_si256(EDGES.as_ptr().add(8 - end).cast());
            let from = _mm256_loadu_si256(EDGES.as_ptr().add(16 - first).cast());
            _mm256_and_si256(until, from)
        }
    }
    #[inline(always)]
    unsafe fn load_masked(mask: __m256i, from: *const f32) -> Self {
        unsafe { _mm256_maskload_ps(from, mask) }
    }
    #[inline(always)]
    unsafe fn store_masked(self, mask: __m256i, to: *mut f32) {
        unsafe { _mm256_maskstore_ps(to, mask, self) }
    }
    #[inline(always)]
    unsafe fn fma_masked(self, mask: __m256i, a: Self, b: Self) -> Self {
        unsafe { _mm256_blendv_ps(self, _mm256_fmadd_ps(a, b, self), _mm256_castsi256_ps(mask)) }
    }
    #[inline(always)]
    unsafe fn equal(self, b: Self) -> __m256i {
        unsafe { _mm256_castps_si256(_mm256_cmp_ps::<_CMP_EQ_OQ>(self, b)) }
    }
    #[inline(always)]
    unsafe fn select(self, mask: __m256i, b: Self) -> Self {
        unsafe { _mm256_blendv_ps(self, b, _mm256_castsi256_ps(mask)) }
    }
    #[inline(always)]
    unsafe fn halved_from(self, bits: u32) -> Self {
        unsafe {
            let half = _mm256_srli_epi32::<1>(_mm256_castps_si256(self));
            _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_set1_epi32(bits as i32), half))
        }
    }
    #[inline(always)]
    unsafe fn add_to(self, to: *mut f64) {
        unsafe {
            let low = _mm256_cvtps_pd(_mm256_castps256_ps128(self));
            let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self));
            _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), low));
            _mm256_storeu_pd(to.add(4), _mm256_add_pd(_mm256_loadu_pd(to.add(4)), high));
        }
    }
    #[inline(always)]
    fn prefetch(at: *const f32) {
        prefetch(at);
    }
    #[inline(always)]
    fn fence() {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_sfence() }
    }
}

// SAFETY of every block below: as for `__m256`.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for __m512 {
    const LANES: usize = 16;
    type Mask = __mmask16;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut f32) {
        unsafe { _mm512_stream_ps(to, self) }
    }
    plain! {
        fma(self, a, b) = _mm512_fmadd_ps(a, b, self);
        fms(self, a, b) = _mm512_fmsub_ps(a, b, self);
        fnma(self, a, b) = _mm512_fnmadd_ps(a, b, self);
        add(self, b) = _mm512_add_ps(self, b);
        sub(self, b) = _mm512_sub_ps(self, b);
        mul(self, b) = _mm512_mul_ps(self, b);
        div(self, b) = _mm512_div_ps(self, b);
        sqrt(self) = _mm512_sqrt_ps(self);
    }
    #[inline(always)]
    unsafe fn canonical(self) -> Self {
        unsafe {
            let nan = _mm512_set1_ps(f32::from_bits(NAN_BITS));
            _mm512_mask_mov_ps(self, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self, self), nan)
        }
    }
    #[inline(always)]
    unsafe fn halving_sum(self) -> f32 {
        unsafe { _mm256_add_ps(_mm512_castps512_ps256(self), _mm512_extractf32x8_ps::<1>(self)).halving_sum() }
    }
    #[inline(always)]
    unsafe fn mask(first: usize, end: usize) -> __mmask16 {
        debug_assert!(first <= end && end <= 16);
        ((1_u32 << end) - (1_u32 << first)) as __mmask16
    }
    #[inline(always)]
    unsafe fn load_masked(mask: __mmask16, from: *const f32) -> Self {
        unsafe { _mm512_maskz_loadu_ps(mask, from) }
    }
    #[inline(always)]
    unsafe fn store_masked(self, mask: __mmask16, to: *mut f32) {
        unsafe { _mm512_mask_storeu_ps(to, mask, self) }
    }
    #[inline(always)]
    unsafe fn fma_masked(self, mask: __mmask16, a: Self, b: Self) -> Self {
        unsafe { _mm512_mask3_fmadd_ps(a, b, self, mask) }
    }
    #[inline(always)]
    unsafe fn equal(self, b: Self) -> __mmask16 {
        unsafe { _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self, b) }
    }
    #[inline(always)]
    unsafe fn select(self, mask: __mmask16, b: Self) -> Self {
        unsafe { _mm512_mask_mov_ps(self, mask, b) }
    }
    #[inline(always)]
    unsafe fn halved_from(self, bits: u32) -> Self {
        unsafe {
            let half = _mm512_srli_epi32::<1>(_mm512_castps_si512(self));
            _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32(bits as i32), half))
        }
    }
    #[inline(always)]
    unsafe fn add_to(self, to: *mut f64) {
        unsafe {
            let low = _mm512_cvtps_pd(_mm512_castps512_ps256(self));
            let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(self));
            _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), low));
            _mm512_storeu_pd(to.add(8), _mm512_add_pd(_mm512_loadu_pd(to.add(8)), high));
        }
    }
    #[inline(always)]
    fn prefetch(at: *const f32) {
        prefetch(at);
    }
    #[inline(always)]
    fn fence() {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_sfence() }
    }
}
