//! What the kernels need of a vector beyond [`Lanes`]: maxima, a table of 32 numbers looked up by every lane.

use super::tables::CODES_PADDED;
use multigrain_simd::Lanes;

/// A vector of `f32`, one lane a sequence.
///
/// # Safety
/// As for [`Lanes`].
pub(super) trait Vector: Lanes {
    /// What picks an entry of a table in every lane.
    type Index: Copy;

    /// The greater of the two; both are numbers and not negative.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn max(self, b: Self) -> Self;
    /// Whether a lane is greater than `limit`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn any_above(self, limit: f32) -> bool;
    /// The indices from `from` on, one a lane, each below [`CODES_PADDED`].
    ///
    /// # Safety
    /// See the trait.
    unsafe fn index(from: *const u32) -> Self::Index;
    /// In every lane the entry that its index names, of a table of [`CODES_PADDED`] numbers.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn look_up(table: *const f32, index: Self::Index) -> Self;
}

const _: () = assert!(CODES_PADDED == 32, "tables are looked up by five bits");

impl Vector for f32 {
    type Index = u32;

    #[inline(always)]
    unsafe fn max(self, b: Self) -> Self {
        if self > b { self } else { b }
    }
    #[inline(always)]
    unsafe fn any_above(self, limit: f32) -> bool {
        self > limit
    }
    #[inline(always)]
    unsafe fn index(from: *const u32) -> u32 {
        // SAFETY: the caller passes a pointer valid for one element.
        unsafe { from.read() }
    }
    #[inline(always)]
    unsafe fn look_up(table: *const f32, index: u32) -> Self {
        // SAFETY: the index is below the table's length.
        unsafe { table.add(index as usize).read() }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    /// The indices, and their bits 3 and 4 in the sign bits of the lanes, where blends look.
    #[derive(Clone, Copy)]
    pub(crate) struct Index8 {
        low: __m256i,
        bit3: __m256,
        bit4: __m256,
    }

    // SAFETY of every block below: the caller of a function of `Vector` guarantees the instruction set and the pointers,
    // as the trait demands; nothing else is needed.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Vector for __m256 {
        type Index = Index8;

        #[inline(always)]
        unsafe fn max(self, b: Self) -> Self {
            unsafe { _mm256_max_ps(self, b) }
        }
        #[inline(always)]
        unsafe fn any_above(self, limit: f32) -> bool {
            unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self, _mm256_set1_ps(limit))) != 0 }
        }
        #[inline(always)]
        unsafe fn index(from: *const u32) -> Index8 {
            unsafe {
                let low = _mm256_loadu_si256(from.cast());
                Index8 {
                    low,
                    bit3: _mm256_castsi256_ps(_mm256_slli_epi32::<28>(low)),
                    bit4: _mm256_castsi256_ps(_mm256_slli_epi32::<27>(low)),
                }
            }
        }
        #[inline(always)]
        unsafe fn look_up(table: *const f32, index: Index8) -> Self {
            unsafe {
                let part = |i: usize| _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.add(8 * i)), index.low);
                let low = _mm256_blendv_ps(part(0), part(1), index.bit3);
                let high = _mm256_blendv_ps(part(2), part(3), index.bit3);
                _mm256_blendv_ps(low, high, index.bit4)
            }
        }
    }

    // SAFETY of every block below: as for `__m256`.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Vector for __m512 {
        type Index = __m512i;

        #[inline(always)]
        unsafe fn max(self, b: Self) -> Self {
            unsafe { _mm512_max_ps(self, b) }
        }
        #[inline(always)]
        unsafe fn any_above(self, limit: f32) -> bool {
            unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self, _mm512_set1_ps(limit)) != 0 }
        }
        #[inline(always)]
        unsafe fn index(from: *const u32) -> __m512i {
            unsafe { _mm512_loadu_si512(from.cast()) }
        }
        #[inline(always)]
        unsafe fn look_up(table: *const f32, index: __m512i) -> Self {
            unsafe { _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table.add(16))) }
        }
    }
}
