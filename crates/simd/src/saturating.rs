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
        // SAFETY: the caller passes a pointer valid for a vector.
        impl Saturating<$type> for [$type; $lanes] {
            const LANES: usize = $lanes;

            each! {
                splat(value: $type) -> Self { [value; $lanes] }
                load(from: *const $type) -> Self { from.cast::<Self>().read_unaligned() }
                add(self, b: Self) -> Self { std::array::from_fn(|i| self[i].saturating_add(b[i])) }
                max(self, b: Self) -> Self { std::array::from_fn(|i| Ord::max(self[i], b[i])) }
                up(self, first: Self) -> Self { std::array::from_fn(|i| if i == 0 { first[0] } else { self[i - 1] }) }
                top(self) -> $type { self.into_iter().fold(<$type>::MIN, Ord::max) }
                any_above(self, b: Self) -> bool { (0..$lanes).any(|i| self[i] > b[i]) }
            }
        }
    };
}

portable!(i8, 16);
portable!(i16, 8);

/// A vector of one instruction set: what differs between these.
macro_rules! saturating {
    (
        $type:ty, $vector:ty, $lanes:literal, $splat:ident, $load:ident, $add:ident, $max:ident,
        up($of:ident, $first:ident) $up:expr,
        top($all:ident) $top:expr,
        above($a:ident, $b:ident) $above:expr $(,)?
    ) => {
        // SAFETY of every block below: the caller of a function of `Saturating` guarantees the instruction set and the pointers,
        // as the trait demands; nothing else is needed.
        #[allow(clippy::undocumented_unsafe_blocks)]
        impl Saturating<$type> for $vector {
            const LANES: usize = $lanes;

            each! {
                splat(value: $type) -> Self { $splat(value) }
                load(from: *const $type) -> Self { $load(from.cast()) }
                add(self, b: Self) -> Self { $add(self, b) }
                max(self, b: Self) -> Self { $max(self, b) }
                up(self, $first: Self) -> Self {
                    let $of = self;
                    $up
                }
                top(self) -> $type {
                    let $all = self;
                    $top
                }
                any_above(self, $b: Self) -> bool {
                    let $a = self;
                    $above
                }
            }
        }
    };
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Saturating;
    use std::arch::aarch64::*;

    saturating!(
        i8, int8x16_t, 16, vdupq_n_s8, vld1q_s8, vqaddq_s8, vmaxq_s8,
        up(v, first) vextq_s8::<15>(first, v),
        top(v) vmaxvq_s8(v),
        above(a, b) vmaxvq_u8(vcgtq_s8(a, b)) != 0,
    );
    saturating!(
        i16, int16x8_t, 8, vdupq_n_s16, vld1q_s16, vqaddq_s16, vmaxq_s16,
        up(v, first) vextq_s16::<7>(first, v),
        top(v) vmaxvq_s16(v),
        above(a, b) vmaxvq_u16(vcgtq_s16(a, b)) != 0,
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

    /// A half of the first, then the lower half of the second: what each half of that takes in when it moves up.
    #[inline(always)]
    unsafe fn below256(first: __m256i, v: __m256i) -> __m256i {
        // SAFETY: the callers' instruction sets include AVX2.
        unsafe { _mm256_permute2x128_si256::<0x20>(first, v) }
    }

    /// The last quarter of the first, then the first three of the second.
    #[inline(always)]
    unsafe fn below512(first: __m512i, v: __m512i) -> __m512i {
        // SAFETY: the callers' instruction sets include AVX-512 F.
        unsafe { _mm512_alignr_epi64::<6>(v, first) }
    }

    saturating!(
        i8, __m256i, 32, _mm256_set1_epi8, _mm256_loadu_si256, _mm256_adds_epi8, _mm256_max_epi8,
        up(v, first) _mm256_alignr_epi8::<15>(v, below256(first, v)),
        top(v) top16(_mm_max_epi8(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v))),
        above(a, b) _mm256_movemask_epi8(_mm256_cmpgt_epi8(a, b)) != 0,
    );
    saturating!(
        i16, __m256i, 16, _mm256_set1_epi16, _mm256_loadu_si256, _mm256_adds_epi16, _mm256_max_epi16,
        up(v, first) _mm256_alignr_epi8::<14>(v, below256(first, v)),
        top(v) top8(_mm_max_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v))),
        above(a, b) _mm256_movemask_epi8(_mm256_cmpgt_epi16(a, b)) != 0,
    );
    saturating!(
        i8, __m512i, 64, _mm512_set1_epi8, _mm512_loadu_si512, _mm512_adds_epi8, _mm512_max_epi8,
        up(v, first) _mm512_alignr_epi8::<15>(v, below512(first, v)),
        top(v) Saturating::<i8>::top(_mm256_max_epi8(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64::<1>(v))),
        above(a, b) _mm512_cmpgt_epi8_mask(a, b) != 0,
    );
    saturating!(
        i16, __m512i, 32, _mm512_set1_epi16, _mm512_loadu_si512, _mm512_adds_epi16, _mm512_max_epi16,
        up(v, first) _mm512_alignr_epi8::<14>(v, below512(first, v)),
        top(v) Saturating::<i16>::top(_mm256_max_epi16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64::<1>(v))),
        above(a, b) _mm512_cmpgt_epi16_mask(a, b) != 0,
    );
}
