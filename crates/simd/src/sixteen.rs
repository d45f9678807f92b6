//! Sixteen words of 16 bits: what is computed of samples beside each other.

/// Sixteen words, signed where that matters; sums and differences wrap.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type.
#[allow(clippy::missing_safety_doc)] // of each function: it is the trait's
pub trait Sixteen: Copy {
    /// All `value`.
    unsafe fn splat(value: i16) -> Self;
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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::Sixteen;
    use std::arch::x86_64::__m256i;

    type Words = [i16; 16];

    /// What every function gives.
    #[inline(always)]
    unsafe fn all<V: Sixteen>(a: V, b: V) -> ([V; 14], bool) {
        // SAFETY: the processor supports the instruction set.
        unsafe {
            let shifted = [a.right(1), a.right(3), a.right(15)];
            let (above, splat) = (a.above(b), V::splat(-7));
            let [x, y, z] = shifted;
            let found = [
                a.add(b),
                a.sub(b),
                a.abs(),
                a.min(b),
                a.max(b),
                a.mean(b),
                x,
                y,
                z,
                above,
                a.and(b),
                a.or_where(above, b),
                splat,
                b.above(a).or_where(above, splat),
            ];
            (found, a.and(b).any())
        }
    }

    crate::compiled! { Avx2:
        fn of_avx2(a: &Words, b: &Words) -> ([Words; 14], bool) {
            let load = |words: &Words| words.as_ptr().cast::<__m256i>().read_unaligned();
            let (found, any) = all(load(a), load(b));
            (found.map(|words| std::mem::transmute::<__m256i, Words>(words)), any)
        }
    }

    #[test]
    fn avx2_computes_what_every_processor_does() {
        if !crate::Isa::Avx2.is_supported() {
            return;
        }
        let mut state = 1_u32;
        let mut word = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Ends of the range among them, which differences wrap around.
            [i16::MIN, i16::MAX, 0, -1, (state >> 16) as i16, (state >> 24) as i16][(state >> 8) as usize % 6]
        };
        for _ in 0..1000 {
            let (a, b): (Words, Words) = (std::array::from_fn(|_| word()), std::array::from_fn(|_| word()));
            // SAFETY: AVX2 is there; arrays are for any processor.
            unsafe { assert_eq!(of_avx2(&a, &b), all(a, b), "{a:?} {b:?}") };
        }
        // SAFETY: as above.
        assert!(!unsafe { of_avx2(&[0; 16], &[0; 16]) }.1);
    }
}
