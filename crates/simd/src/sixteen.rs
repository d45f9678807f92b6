//! Sixteen words of 16 bits: what is computed of samples beside each other.

/// Sixteen words, signed where that matters; sums and differences wrap.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type. Pointers are valid for
/// sixteen words and need no alignment.
#[allow(clippy::missing_safety_doc)] // of each function: it is the trait's
pub trait Sixteen: Copy {
    /// All `value`.
    unsafe fn splat(value: i16) -> Self;
    /// The words from `from` on.
    unsafe fn load(from: *const i16) -> Self;
    /// Writes them from `to` on.
    unsafe fn store(self, to: *mut i16);
    /// `self + b`.
    unsafe fn add(self, b: Self) -> Self;
    /// `self - b`.
    unsafe fn sub(self, b: Self) -> Self;
    /// Without signs.
    unsafe fn abs(self) -> Self;
    /// The lesser of the two.
    unsafe fn min(self, b: Self) -> Self;
    /// The greater of the two.
    unsafe fn max(self, b: Self) -> Self;
    /// The mean, rounded up, of words without signs.
    unsafe fn mean(self, b: Self) -> Self;
    /// `self >> by`, with its sign.
    unsafe fn right(self, by: i32) -> Self;
    /// All bits where `self` is greater, else none.
    unsafe fn above(self, b: Self) -> Self;
    /// The bits of both.
    unsafe fn and(self, b: Self) -> Self;
    /// `b` where all bits of `mask` are set, `self` where none is.
    unsafe fn or_where(self, mask: Self, b: Self) -> Self;
    /// Whether a bit is set.
    unsafe fn any(self) -> bool;
}

/// What every processor has, of which compilers make the vectors of the processor at hand.
impl Sixteen for [i16; 16] {
    each! {
        splat(value: i16) -> Self { [value; 16] }
        load(from: *const i16) -> Self { from.cast::<Self>().read_unaligned() }
        store(self, to: *mut i16) { to.cast::<Self>().write_unaligned(self) }
        add(self, b: Self) -> Self { std::array::from_fn(|i| self[i].wrapping_add(b[i])) }
        sub(self, b: Self) -> Self { std::array::from_fn(|i| self[i].wrapping_sub(b[i])) }
        abs(self) -> Self { self.map(i16::wrapping_abs) }
        min(self, b: Self) -> Self { std::array::from_fn(|i| Ord::min(self[i], b[i])) }
        max(self, b: Self) -> Self { std::array::from_fn(|i| Ord::max(self[i], b[i])) }
        mean(self, b: Self) -> Self {
            std::array::from_fn(|i| ((u32::from(self[i] as u16) + u32::from(b[i] as u16) + 1) >> 1) as i16)
        }
        right(self, by: i32) -> Self { self.map(|word| word >> by) }
        above(self, b: Self) -> Self { std::array::from_fn(|i| -i16::from(self[i] > b[i])) }
        and(self, b: Self) -> Self { std::array::from_fn(|i| self[i] & b[i]) }
        or_where(self, mask: Self, b: Self) -> Self { std::array::from_fn(|i| if mask[i] != 0 { b[i] } else { self[i] }) }
        any(self) -> bool { self != [0; 16] }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Sixteen;
    use std::arch::x86_64::*;

    // SAFETY of all functions: the caller of the trait's functions promises AVX2.
    impl Sixteen for __m256i {
        each! {
            splat(value: i16) -> Self { _mm256_set1_epi16(value) }
            load(from: *const i16) -> Self { _mm256_loadu_si256(from.cast()) }
            store(self, to: *mut i16) { _mm256_storeu_si256(to.cast(), self) }
            add(self, b: Self) -> Self { _mm256_add_epi16(self, b) }
            sub(self, b: Self) -> Self { _mm256_sub_epi16(self, b) }
            abs(self) -> Self { _mm256_abs_epi16(self) }
            min(self, b: Self) -> Self { _mm256_min_epi16(self, b) }
            max(self, b: Self) -> Self { _mm256_max_epi16(self, b) }
            mean(self, b: Self) -> Self { _mm256_avg_epu16(self, b) }
            right(self, by: i32) -> Self { _mm256_sra_epi16(self, _mm_cvtsi32_si128(by)) }
            above(self, b: Self) -> Self { _mm256_cmpgt_epi16(self, b) }
            and(self, b: Self) -> Self { _mm256_and_si256(self, b) }
            or_where(self, mask: Self, b: Self) -> Self { _mm256_blendv_epi8(self, b, mask) }
            any(self) -> bool { _mm256_testz_si256(self, self) == 0 }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Sixteen;
    use std::arch::aarch64::*;

    // SAFETY of all functions: NEON is part of AArch64; pointers are the caller's promise.
    impl Sixteen for int16x8x2_t {
        each! {
            splat(value: i16) -> Self { int16x8x2_t(vdupq_n_s16(value), vdupq_n_s16(value)) }
            load(from: *const i16) -> Self { vld1q_s16_x2(from) }
            store(self, to: *mut i16) { vst1q_s16_x2(to, self) }
            add(self, b: Self) -> Self { int16x8x2_t(vaddq_s16(self.0, b.0), vaddq_s16(self.1, b.1)) }
            sub(self, b: Self) -> Self { int16x8x2_t(vsubq_s16(self.0, b.0), vsubq_s16(self.1, b.1)) }
            abs(self) -> Self { int16x8x2_t(vabsq_s16(self.0), vabsq_s16(self.1)) }
            min(self, b: Self) -> Self { int16x8x2_t(vminq_s16(self.0, b.0), vminq_s16(self.1, b.1)) }
            max(self, b: Self) -> Self { int16x8x2_t(vmaxq_s16(self.0, b.0), vmaxq_s16(self.1, b.1)) }
            mean(self, b: Self) -> Self {
                let [a0, a1, b0, b1] = [self.0, self.1, b.0, b.1].map(|words| vreinterpretq_u16_s16(words));
                int16x8x2_t(vreinterpretq_s16_u16(vrhaddq_u16(a0, b0)), vreinterpretq_s16_u16(vrhaddq_u16(a1, b1)))
            }
            right(self, by: i32) -> Self {
                let by = vdupq_n_s16(-by as i16);
                int16x8x2_t(vshlq_s16(self.0, by), vshlq_s16(self.1, by))
            }
            above(self, b: Self) -> Self {
                let (low, high) = (vcgtq_s16(self.0, b.0), vcgtq_s16(self.1, b.1));
                int16x8x2_t(vreinterpretq_s16_u16(low), vreinterpretq_s16_u16(high))
            }
            and(self, b: Self) -> Self { int16x8x2_t(vandq_s16(self.0, b.0), vandq_s16(self.1, b.1)) }
            or_where(self, mask: Self, b: Self) -> Self {
                let (low, high) = (vreinterpretq_u16_s16(mask.0), vreinterpretq_u16_s16(mask.1));
                int16x8x2_t(vbslq_s16(low, b.0, self.0), vbslq_s16(high, b.1, self.1))
            }
            any(self) -> bool { vmaxvq_u16(vreinterpretq_u16_s16(vorrq_s16(self.0, self.1))) != 0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sixteen;
    use crate::{Isa, dispatch};

    type Words = [i16; 16];

    /// What every function gives.
    #[inline(always)]
    unsafe fn all<V: Sixteen>(a: &Words, b: &Words) -> ([Words; 14], bool) {
        // SAFETY: the processor supports the instruction set; arrays are sixteen words.
        unsafe {
            let (a, b) = (V::load(a.as_ptr()), V::load(b.as_ptr()));
            let (above, splat) = (a.above(b), V::splat(-7));
            let found = [
                a.add(b),
                a.sub(b),
                a.abs(),
                a.min(b),
                a.max(b),
                a.mean(b),
                a.right(1),
                a.right(3),
                a.right(15),
                above,
                a.and(b),
                a.or_where(above, b),
                splat,
                b.above(a).or_where(above, splat),
            ];
            let mut words = [[0; 16]; 14];
            for (words, found) in words.iter_mut().zip(found) {
                found.store(words.as_mut_ptr());
            }
            (words, a.and(b).any())
        }
    }

    #[test]
    fn every_instruction_set_computes_what_every_processor_does() {
        let mut state = 1_u32;
        let mut word = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Ends of the range among them, which differences wrap around.
            [i16::MIN, i16::MAX, 0, -1, (state >> 16) as i16, (state >> 24) as i16][(state >> 8) as usize % 6]
        };
        for isa in Isa::ALL.into_iter().skip(1).filter(|isa| isa.is_supported()) {
            // SAFETY: the instruction set is there.
            let of_isa = |a: &Words, b: &Words| unsafe {
                dispatch!(isa, (a: &Words, b: &Words) -> ([Words; 14], bool) => {
                    Scalar: all::<Words>,
                    Neon: all::<std::arch::aarch64::int16x8x2_t>,
                    Avx2: all::<std::arch::x86_64::__m256i>,
                    Avx512: all::<std::arch::x86_64::__m256i>,
                })
            };
            for _ in 0..1000 {
                let (a, b): (Words, Words) = (std::array::from_fn(|_| word()), std::array::from_fn(|_| word()));
                // SAFETY: arrays are for any processor.
                assert_eq!(of_isa(&a, &b), unsafe { all::<Words>(&a, &b) }, "{isa}: {a:?} {b:?}");
            }
            assert!(!of_isa(&[0; 16], &[0; 16]).1, "{isa}");
            for one in 0..16 {
                let a = std::array::from_fn(|i| i16::from(i == one));
                assert!(of_isa(&a, &a).1, "{isa}: word {one}");
            }
        }
    }
}
