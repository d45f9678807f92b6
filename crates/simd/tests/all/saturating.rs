//! Vectors of small whole numbers do what their numbers do.

#[cfg(target_arch = "x86_64")]
use multigrain_simd::Isa;
use multigrain_simd::{Bytes, Saturating, Words};
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
        as_numbers_do!(Bytes, i8, a, b);
        as_numbers_do!(Words, i16, a, b);
        #[cfg(target_arch = "aarch64")]
        {
            as_numbers_do!(std::arch::aarch64::int8x16_t, i8, a, b);
            as_numbers_do!(std::arch::aarch64::int16x8_t, i16, a, b);
        }
        #[cfg(target_arch = "x86_64")]
        {
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
