//! What the transform needs of vectors beyond [`Lanes`]: pairs of real and imaginary parts.
//!
//! As in `multigrain_simd`, every operation is inlined into a function that enables the instruction set.

use multigrain_simd::{Lanes, each};

/// A vector of `f32` with the operations of a transform.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type, and pointers that
/// are valid for the lanes accessed.
pub(super) trait Vector: Lanes {
    /// Which lanes of two vectors of complex numbers are real parts and which imaginary ones.
    type Order: Copy;

    /// The order for [`load_complex`](Self::load_complex); `swapped` exchanges real and imaginary parts.
    unsafe fn order_of_loads(swapped: bool) -> Self::Order;
    /// The order for [`store_complex`](Self::store_complex).
    unsafe fn order_of_stores(swapped: bool) -> Self::Order;
    /// Real and imaginary parts of the complex numbers from `from` on, as many as lanes.
    unsafe fn load_complex(from: *const f32, order: Self::Order) -> (Self, Self);
    /// Two vectors with the complex numbers of these parts, in their order in memory.
    unsafe fn interleave(re: Self, im: Self, order: Self::Order) -> (Self, Self);

    each! {
        /// Writes the complex numbers of these parts from `to` on.
        store_complex(re: Self, im: Self, to: *mut f32, order: Self::Order) {
            let (low, high) = Self::interleave(re, im, order);
            low.store(to);
            high.store(to.add(Self::LANES));
        }
    }
}

impl Vector for f32 {
    type Order = usize;

    each! {
        order_of_loads(swapped: bool) -> usize { usize::from(swapped) }
        order_of_stores(swapped: bool) -> usize { usize::from(swapped) }
        load_complex(from: *const f32, order: usize) -> (Self, Self) {
            (from.add(order).read(), from.add(1 - order).read())
        }
        interleave(re: Self, im: Self, order: usize) -> (Self, Self) { if order == 0 { (re, im) } else { (im, re) } }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Vector, each};
    use std::arch::x86_64::*;

    // SAFETY of every block below: the caller of a function of `Vector` guarantees the instruction set and the
    // pointers, as the trait demands; nothing else is needed.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Vector for __m256 {
        type Order = __m256i;

        each! {
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
        }
    }

    // SAFETY of every block below: as for `__m256`.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Vector for __m512 {
        type Order = (__m512i, __m512i);

        each! {
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
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{Vector, each};
    use std::arch::aarch64::*;

    // SAFETY of every block below: NEON is part of the architecture; pointers are as the trait demands.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Vector for float32x4_t {
        type Order = bool;

        each! {
            order_of_loads(swapped: bool) -> bool { swapped }
            order_of_stores(swapped: bool) -> bool { swapped }
            load_complex(from: *const f32, swapped: bool) -> (Self, Self) {
                let float32x4x2_t(re, im) = vld2q_f32(from);
                if swapped { (im, re) } else { (re, im) }
            }
            interleave(re: Self, im: Self, swapped: bool) -> (Self, Self) {
                let (re, im) = if swapped { (im, re) } else { (re, im) };
                (vzip1q_f32(re, im), vzip2q_f32(re, im))
            }
        }
    }
}
