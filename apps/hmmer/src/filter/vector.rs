//! Vectors of small whole numbers whose sums stop at the ends of their range.

use std::fmt::Debug;

/// A vector of `T`, `i8` or `i16`.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type. Pointers are valid
/// for [`LANES`](Self::LANES) numbers and need no alignment.
pub(super) trait Saturating<T>: Copy + Debug {
    /// Numbers in a vector.
    const LANES: usize;

    /// All lanes `value`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn splat(value: T) -> Self;
    /// The numbers from `from` on.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn load(from: *const T) -> Self;
    /// `self + b`, or the end of the range.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn add(self, b: Self) -> Self;
    /// The greater of the two.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn max(self, b: Self) -> Self;
    /// Every number one lane up; into the lowest comes that of `first`, whose lanes are all alike.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn up(self, first: Self) -> Self;
    /// The greatest of all lanes.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn top(self) -> T;
    /// Whether some lane is greater than that of `b`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn any_above(self, b: Self) -> bool;
}

/// What every processor has: 16 bytes, which compilers make the vectors of the processor at hand.
pub(super) type Bytes = [i8; 16];
/// The same for words.
pub(super) type Words = [i16; 8];

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

#[cfg(test)]
mod tests {
    use super::Saturating;
    use proptest::prelude::*;

    /// Every operation of a vector against those of its numbers.
    macro_rules! as_numbers_do {
        ($vector:ty, $type:ty, $a:expr, $b:expr) => {{
            const LANES: usize = <$vector as Saturating<$type>>::LANES;
            let (a, b): ([$type; LANES], [$type; LANES]) =
                (std::array::from_fn(|i| $a[i] as $type), std::array::from_fn(|i| $b[i] as $type));
            // SAFETY: the caller has asked for the instruction set; a vector and an array of its lanes have one size.
            let (sum, max, up, top, above, all) = unsafe {
                let (x, y) = (<$vector as Saturating<$type>>::load(a.as_ptr()), Saturating::<$type>::load(b.as_ptr()));
                let array = |v: $vector| std::mem::transmute_copy::<$vector, [$type; LANES]>(&v);
                let first = <$vector as Saturating<$type>>::splat(b[0]);
                (
                    array(Saturating::<$type>::add(x, y)),
                    array(Saturating::<$type>::max(x, y)),
                    array(Saturating::<$type>::up(x, first)),
                    Saturating::<$type>::top(x),
                    Saturating::<$type>::any_above(x, y),
                    array(first),
                )
            };
            prop_assert_eq!(sum, std::array::from_fn(|i| a[i].saturating_add(b[i])));
            prop_assert_eq!(max, std::array::from_fn(|i| a[i].max(b[i])));
            prop_assert_eq!(up, std::array::from_fn(|i| if i == 0 { b[0] } else { a[i - 1] }));
            prop_assert_eq!(Some(top), a.iter().copied().max());
            prop_assert_eq!(above, (0..LANES).any(|i| a[i] > b[i]));
            prop_assert_eq!(all, [b[0]; LANES]);
        }};
    }

    proptest! {
        #[test]
        fn vectors_do_what_numbers_do(a in prop::collection::vec(any::<i16>(), 64), b in prop::collection::vec(any::<i16>(), 64)) {
            as_numbers_do!(super::Bytes, i8, a, b);
            as_numbers_do!(super::Words, i16, a, b);
            #[cfg(target_arch = "x86_64")]
            {
                use multigrain_simd::Isa;
                use std::arch::x86_64::{__m256i, __m512i};
                if Isa::Avx2.is_supported() {
                    as_numbers_do!(__m256i, i8, a, b);
                    as_numbers_do!(__m256i, i16, a, b);
                }
                if Isa::Avx512.is_supported() {
                    as_numbers_do!(__m512i, i8, a, b);
                    as_numbers_do!(__m512i, i16, a, b);
                }
            }
        }
    }
}
