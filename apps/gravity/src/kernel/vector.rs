//! What the force kernel needs of vectors beyond [`Lanes`]. Every operation is one that IEEE 754 rounds correctly, or one
//! on integers, so that its order of arithmetic alone decides the result, with every instruction set.
//!
//! As in `multigrain_simd`, every operation is inlined into a function that enables the instruction set.

use multigrain_simd::Lanes;

/// A vector of `f32` with the operations of the force kernel.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type. Pointers must be
/// valid for [`LANES`](Lanes::LANES) elements; they need no alignment.
pub(super) trait Vector: Lanes {
    /// As integers: `magic` less half of each lane's bits, rounded down.
    unsafe fn halved_from(self, magic: u32) -> Self;
    /// 1 in the lanes that are 0, the other lanes as they are.
    unsafe fn one_for_zero(self) -> Self;
    /// Adds every lane to its number from `to` on.
    unsafe fn add_to(self, to: *mut f64);
}

impl Vector for f32 {
    #[inline(always)]
    unsafe fn halved_from(self, magic: u32) -> Self {
        f32::from_bits(magic.wrapping_sub(self.to_bits() >> 1))
    }
    #[inline(always)]
    unsafe fn one_for_zero(self) -> Self {
        if self == 0.0 { 1.0 } else { self }
    }
    #[inline(always)]
    unsafe fn add_to(self, to: *mut f64) {
        // SAFETY: the caller passes a pointer valid for one element.
        unsafe { *to += f64::from(self) };
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    // SAFETY of every block below: the caller of a function of `Vector` guarantees the instruction set and the
    // pointers, as the trait demands; nothing else is needed.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Vector for __m256 {
        #[inline(always)]
        unsafe fn halved_from(self, magic: u32) -> Self {
            unsafe {
                let half = _mm256_srli_epi32::<1>(_mm256_castps_si256(self));
                _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_set1_epi32(magic as i32), half))
            }
        }
        #[inline(always)]
        unsafe fn one_for_zero(self) -> Self {
            unsafe {
                let zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(self, _mm256_setzero_ps());
                _mm256_blendv_ps(self, _mm256_set1_ps(1.0), zero)
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
    }

    // SAFETY of every block below: as for `__m256`.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Vector for __m512 {
        #[inline(always)]
        unsafe fn halved_from(self, magic: u32) -> Self {
            unsafe {
                let half = _mm512_srli_epi32::<1>(_mm512_castps_si512(self));
                _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32(magic as i32), half))
            }
        }
        #[inline(always)]
        unsafe fn one_for_zero(self) -> Self {
            unsafe {
                let zero = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self, _mm512_setzero_ps());
                _mm512_mask_mov_ps(self, zero, _mm512_set1_ps(1.0))
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
    }
}
