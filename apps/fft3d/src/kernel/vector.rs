//! What the transform needs of vectors beyond [`Lanes`]: pairs of real and imaginary parts, and transposition.
//!
//! As in `multigrain_simd`, every operation is inlined into a function that enables the instruction set.

use multigrain_simd::Lanes;

/// A vector of `f32` with the operations of a transform.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type, and pointers that
/// are valid for the lanes accessed.
pub(super) trait Vector: Lanes {
    /// Which lanes of two vectors of complex numbers are real parts and which imaginary ones.
    type Order: Copy;

    /// The order for [`load_complex`](Self::load_complex); `swapped` exchanges real and imaginary parts.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn order_of_loads(swapped: bool) -> Self::Order;
    /// The order for [`store_complex`](Self::store_complex).
    ///
    /// # Safety
    /// See the trait.
    unsafe fn order_of_stores(swapped: bool) -> Self::Order;
    /// Real and imaginary parts of the complex numbers from `from` on, as many as lanes.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn load_complex(from: *const f32, order: Self::Order) -> (Self, Self);
    /// Two vectors with the complex numbers of these parts, in their order in memory.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn interleave(re: Self, im: Self, order: Self::Order) -> (Self, Self);
    /// Exchanges lanes and vectors of a square: `square[i]` lane `j` becomes `square[j]` lane `i`. Only the first
    /// [`LANES`](Lanes::LANES) vectors count.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn transpose(square: &mut [Self; 16]);

    /// Writes the complex numbers of these parts from `to` on.
    ///
    /// # Safety
    /// See the trait.
    #[inline(always)]
    unsafe fn store_complex(re: Self, im: Self, to: *mut f32, order: Self::Order) {
        // SAFETY: the caller's promise.
        unsafe {
            let (low, high) = Self::interleave(re, im, order);
            low.store(to);
            high.store(to.add(Self::LANES));
        }
    }
}

impl Vector for f32 {
    type Order = usize;

    #[inline(always)]
    unsafe fn order_of_loads(swapped: bool) -> usize {
        usize::from(swapped)
    }
    #[inline(always)]
    unsafe fn order_of_stores(swapped: bool) -> usize {
        usize::from(swapped)
    }
    #[inline(always)]
    unsafe fn load_complex(from: *const f32, order: usize) -> (Self, Self) {
        // SAFETY: the caller passes a pointer valid for one complex number.
        unsafe { (from.add(order).read(), from.add(1 - order).read()) }
    }
    #[inline(always)]
    unsafe fn interleave(re: Self, im: Self, order: usize) -> (Self, Self) {
        if order == 0 { (re, im) } else { (im, re) }
    }
    #[inline(always)]
    unsafe fn transpose(_: &mut [Self; 16]) {}
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    // SAFETY of every block below: the caller of a function of `Vector` guarantees the instruction set and the
    // pointers, as the trait demands; nothing else is needed.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Vector for __m256 {
        type Order = __m256i;

        #[inline(always)]
        unsafe fn order_of_loads(swapped: bool) -> __m256i {
            unsafe {
                let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
                if swapped { _mm256_xor_si256(order, _mm256_set1_epi32(1)) } else { order }
            }
        }
        #[inline(always)]
        unsafe fn order_of_stores(swapped: bool) -> __m256i {
            unsafe {
                let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                if swapped { _mm256_xor_si256(order, _mm256_set1_epi32(4)) } else { order }
            }
        }
        #[inline(always)]
        unsafe fn load_complex(from: *const f32, order: __m256i) -> (Self, Self) {
            unsafe {
                let low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(from), order);
                let high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(from.add(8)), order);
                (_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
            }
        }
        #[inline(always)]
        unsafe fn interleave(re: Self, im: Self, order: __m256i) -> (Self, Self) {
            unsafe {
                let low = _mm256_permute2f128_ps::<0x20>(re, im);
                let high = _mm256_permute2f128_ps::<0x31>(re, im);
                (_mm256_permutevar8x32_ps(low, order), _mm256_permutevar8x32_ps(high, order))
            }
        }
        #[inline(always)]
        unsafe fn transpose(square: &mut [Self; 16]) {
            unsafe {
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
    }

    // SAFETY of every block below: as for `__m256`.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Vector for __m512 {
        type Order = (__m512i, __m512i);

        #[inline(always)]
        unsafe fn order_of_loads(swapped: bool) -> (__m512i, __m512i) {
            unsafe {
                let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
                let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
                if swapped { (odd, even) } else { (even, odd) }
            }
        }
        #[inline(always)]
        unsafe fn order_of_stores(swapped: bool) -> (__m512i, __m512i) {
            unsafe {
                let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
                let flip = _mm512_set1_epi32(if swapped { 16 } else { 0 });
                let high = _mm512_or_si512(low, _mm512_set1_epi32(8));
                (_mm512_xor_si512(low, flip), _mm512_xor_si512(high, flip))
            }
        }
        #[inline(always)]
        unsafe fn load_complex(from: *const f32, order: (__m512i, __m512i)) -> (Self, Self) {
            unsafe {
                let (low, high) = (_mm512_loadu_ps(from), _mm512_loadu_ps(from.add(16)));
                (_mm512_permutex2var_ps(low, order.0, high), _mm512_permutex2var_ps(low, order.1, high))
            }
        }
        #[inline(always)]
        unsafe fn interleave(re: Self, im: Self, order: (__m512i, __m512i)) -> (Self, Self) {
            unsafe { (_mm512_permutex2var_ps(re, order.0, im), _mm512_permutex2var_ps(re, order.1, im)) }
        }
        #[inline(always)]
        unsafe fn transpose(square: &mut [Self; 16]) {
            unsafe {
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
    }
}
