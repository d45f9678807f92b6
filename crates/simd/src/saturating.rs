//! Vectors of small whole numbers whose sums stop at the ends of their range.

use std::fmt::Debug;

/// A vector of `T`, `i8` or `i16`.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type. Pointers are valid
/// for [`LANES`](Self::LANES) numbers and need no alignment.
#[allow(clippy::missing_safety_doc)] // of each function: it is the trait's
pub trait Saturating<T>: Copy + Debug {
    /// Numbers in a vector.
    const LANES: usize;

    /// All lanes `value`.
    unsafe fn splat(value: T) -> Self;
    /// The numbers from `from` on.
    unsafe fn load(from: *const T) -> Self;
    /// `self + b`, or the end of the range.
    unsafe fn add(self, b: Self) -> Self;
    /// The greater of the two.
    unsafe fn max(self, b: Self) -> Self;
    /// Every number one lane up; into the lowest comes that of `first`, whose lanes are all alike.
    unsafe fn up(self, first: Self) -> Self;
    /// The greatest of all lanes.
    unsafe fn top(self) -> T;
    /// Whether some lane is greater than that of `b`.
    unsafe fn any_above(self, b: Self) -> bool;
}

/// What every processor has: 16 bytes, which compilers make the vectors of the processor at hand.
pub type Bytes = [i8; 16];
/// The same for words.
pub type Words = [i16; 8];

macro_rules! portable {
    ($type:ty, $lanes:literal) => {
        impl Saturating<$type> for [$type; $lanes] {
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: $type) -> Self {
                [value; $lanes]
            }
            #[inline(always)]
            unsafe fn load(from: *const $type) -> Self {
                // SAFETY: the caller passes a pointer valid for a vector.
                unsafe { from.cast::<Self>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn add(self, b: Self) -> Self {
                std::array::from_fn(|i| self[i].saturating_add(b[i]))
            }
            #[inline(always)]
            unsafe fn max(self, b: Self) -> Self {
                std::array::from_fn(|i| Ord::max(self[i], b[i]))
            }
            #[inline(always)]
            unsafe fn up(self, first: Self) -> Self {
                std::array::from_fn(|i| if i == 0 { first[0] } else { self[i - 1] })
            }
            #[inline(always)]
            unsafe fn top(self) -> $type {
                self.into_iter().fold(<$type>::MIN, Ord::max)
            }
            #[inline(always)]
            unsafe fn any_above(self, b: Self) -> bool {
                (0..$lanes).any(|i| self[i] > b[i])
            }
        }
    };
}

portable!(i8, 16);
portable!(i16, 8);

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Saturating;
    use std::arch::aarch64::*;

    macro_rules! neon {
        ($type:ty, $vector:ty, $lanes:literal, $splat:ident, $load:ident, $add:ident, $max:ident, $up:ident, $top:ident, $above:ident, $any:ident) => {
            // SAFETY of every block below: NEON is part of the architecture; pointers are as the trait demands.
            #[allow(clippy::undocumented_unsafe_blocks)]
            impl Saturating<$type> for $vector {
                const LANES: usize = $lanes;

                each! {
                    splat(value: $type) -> Self { $splat(value) }
                    load(from: *const $type) -> Self { $load(from) }
                    add(self, b: Self) -> Self { $add(self, b) }
                    max(self, b: Self) -> Self { $max(self, b) }
                    up(self, first: Self) -> Self { $up::<{ $lanes - 1 }>(first, self) }
                    top(self) -> $type { $top(self) }
                    any_above(self, b: Self) -> bool { $any($above(self, b)) != 0 }
                }
            }
        };
    }

    neon!(i8, int8x16_t, 16, vdupq_n_s8, vld1q_s8, vqaddq_s8, vmaxq_s8, vextq_s8, vmaxvq_s8, vcgtq_s8, vmaxvq_u8);
    neon!(
        i16,
        int16x8_t,
        8,
        vdupq_n_s16,
        vld1q_s16,
        vqaddq_s16,
        vmaxq_s16,
        vextq_s16,
        vmaxvq_s16,
        vcgtq_s16,
        vmaxvq_u16
    );
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Saturating;
    use std::arch::x86_64::*;

    /// The greatest of eight words.
    #[inline(always)]
    unsafe fn top8(v: __m128i) -> i16 {
        // SAFETY: the callers' instruction sets include SSE4.1. The order of words is turned around, so that the least
        // unsigned word of the result was the greatest signed one.
        unsafe {
            let turn = _mm_set1_epi16(i16::MAX);
            (_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_xor_si128(v, turn))) as i16) ^ i16::MAX
        }
    }

    /// The greatest of sixteen bytes.
    #[inline(always)]
    unsafe fn top16(v: __m128i) -> i8 {
        // SAFETY: as above. Each byte becomes the upper one of a word.
        unsafe { (top8(_mm_max_epi16(_mm_slli_epi16::<8>(v), v)) >> 8) as i8 }
    }

    macro_rules! avx2 {
        ($type:ty, $lanes:literal, $bytes:literal, $splat:ident, $add:ident, $max:ident, $above:ident, $max128:ident, $top:ident) => {
            // SAFETY of every block below: the caller of a function of `Saturating` guarantees the instruction set and
            // the pointers, as the trait demands; nothing else is needed.
            #[allow(clippy::undocumented_unsafe_blocks)]
            impl Saturating<$type> for __m256i {
                const LANES: usize = $lanes;

                #[inline(always)]
                unsafe fn splat(value: $type) -> Self {
                    unsafe { $splat(value) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $type) -> Self {
                    unsafe { _mm256_loadu_si256(from.cast()) }
                }
                #[inline(always)]
                unsafe fn add(self, b: Self) -> Self {
                    unsafe { $add(self, b) }
                }
                #[inline(always)]
                unsafe fn max(self, b: Self) -> Self {
                    unsafe { $max(self, b) }
                }
                #[inline(always)]
                unsafe fn up(self, first: Self) -> Self {
                    // A half of `first`, then the lower half of this: what each half takes in comes from there.
                    unsafe {
                        _mm256_alignr_epi8::<{ 16 - $bytes }>(self, _mm256_permute2x128_si256::<0x20>(first, self))
                    }
                }
                #[inline(always)]
                unsafe fn top(self) -> $type {
                    unsafe { $top($max128(_mm256_castsi256_si128(self), _mm256_extracti128_si256::<1>(self))) }
                }
                #[inline(always)]
                unsafe fn any_above(self, b: Self) -> bool {
                    unsafe { _mm256_movemask_epi8($above(self, b)) != 0 }
                }
            }
        };
    }

    avx2!(i8, 32, 1, _mm256_set1_epi8, _mm256_adds_epi8, _mm256_max_epi8, _mm256_cmpgt_epi8, _mm_max_epi8, top16);
    avx2!(i16, 16, 2, _mm256_set1_epi16, _mm256_adds_epi16, _mm256_max_epi16, _mm256_cmpgt_epi16, _mm_max_epi16, top8);

    macro_rules! avx512 {
        ($type:ty, $lanes:literal, $bytes:literal, $splat:ident, $add:ident, $max:ident, $above:ident, $max256:ident) => {
            // SAFETY of every block below: as for AVX2.
            #[allow(clippy::undocumented_unsafe_blocks)]
            impl Saturating<$type> for __m512i {
                const LANES: usize = $lanes;

                #[inline(always)]
                unsafe fn splat(value: $type) -> Self {
                    unsafe { $splat(value) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $type) -> Self {
                    unsafe { _mm512_loadu_si512(from.cast()) }
                }
                #[inline(always)]
                unsafe fn add(self, b: Self) -> Self {
                    unsafe { $add(self, b) }
                }
                #[inline(always)]
                unsafe fn max(self, b: Self) -> Self {
                    unsafe { $max(self, b) }
                }
                #[inline(always)]
                unsafe fn up(self, first: Self) -> Self {
                    // The last quarter of `first`, then the first three of this.
                    unsafe { _mm512_alignr_epi8::<{ 16 - $bytes }>(self, _mm512_alignr_epi64::<6>(self, first)) }
                }
                #[inline(always)]
                unsafe fn top(self) -> $type {
                    unsafe {
                        let half = $max256(_mm512_castsi512_si256(self), _mm512_extracti64x4_epi64::<1>(self));
                        Saturating::<$type>::top(half)
                    }
                }
                #[inline(always)]
                unsafe fn any_above(self, b: Self) -> bool {
                    unsafe { $above(self, b) != 0 }
                }
            }
        };
    }

    avx512!(i8, 64, 1, _mm512_set1_epi8, _mm512_adds_epi8, _mm512_max_epi8, _mm512_cmpgt_epi8_mask, _mm256_max_epi8);
    avx512!(
        i16,
        32,
        2,
        _mm512_set1_epi16,
        _mm512_adds_epi16,
        _mm512_max_epi16,
        _mm512_cmpgt_epi16_mask,
        _mm256_max_epi16
    );
}
