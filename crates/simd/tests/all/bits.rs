//! Vectors of words do what their words do.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use multigrain_simd::Bits;
use proptest::prelude::*;

/// What vectors of 16 or 32 bits are tried with: words, how far they are shifted, and how many come first.
#[derive(Clone, Debug)]
struct Given {
    words: [Vec<u32>; 4],
    by: u32,
    first: usize,
}

fn given() -> impl Strategy<Value = Given> {
    // Every other word has few bits, so that some are zero.
    let word = || prop_oneof![any::<u32>(), 0..3_u32];
    let words = || prop::collection::vec(word(), 32);
    let all = [words(), words(), words(), words()];
    (all, prop_oneof![0..40_u32, any::<u32>()], 0..32_usize).prop_map(|(words, by, first)| Given { words, by, first })
}

/// Compares each operation of a vector with that of its words.
macro_rules! as_words_do {
    ($features:literal, $vector:ty, $word:ty, $given:expr) => {{
        #[target_feature(enable = $features)]
        unsafe fn compare(given: &Given) -> Result<(), TestCaseError> {
            const LANES: usize = <$vector as Bits>::LANES;
            const WIDTH: u32 = <$word>::BITS;
            let [a, b, c, d]: [[$word; LANES]; 4] =
                std::array::from_fn(|n| std::array::from_fn(|i| given.words[n][i] as $word));
            let all = u32::MAX >> (32 - LANES);
            let stored = |v: $vector| {
                let mut words = [0; LANES];
                // SAFETY: as many words as lanes; the instruction set is the caller's.
                unsafe { v.pack(all, words.as_mut_ptr()) };
                words
            };
            let load = |words: &[$word; LANES]| {
                // SAFETY: as above.
                unsafe { <$vector as Bits>::load(words.as_ptr()) }
            };
            let [x, y, z, w] = [load(&a), load(&b), load(&c), load(&d)];
            let shifted = |word: $word, left: bool| match (given.by < WIDTH, left) {
                (false, _) => 0,
                (true, true) => word << given.by,
                (true, false) => word >> given.by,
            };
            // SAFETY: as above; there are fewer first words than lanes.
            unsafe {
                let by = <$vector as Bits>::shift(given.by);
                prop_assert_eq!(stored(x), a);
                prop_assert_eq!(
                    stored(<$vector as Bits>::splat(given.words[0][0])),
                    [given.words[0][0] as $word; LANES]
                );
                prop_assert_eq!(stored(x.or(y)), std::array::from_fn(|i| a[i] | b[i]));
                prop_assert_eq!(stored(x.xor(y)), std::array::from_fn(|i| a[i] ^ b[i]));
                prop_assert_eq!(stored(x.without_lowest()), a.map(|word| word & word.wrapping_sub(1)));
                prop_assert_eq!(stored(x.left(by)), a.map(|word| shifted(word, true)));
                prop_assert_eq!(stored(x.right(by)), a.map(|word| shifted(word, false)));
                prop_assert_eq!(stored(x.outside(y, z, w)), std::array::from_fn(|i| a[i] & !(b[i] | c[i] | d[i])));
                let first = given.first % LANES;
                prop_assert_eq!(stored(x.first(first)), std::array::from_fn(|i| if i < first { a[i] } else { 0 }));
                let nonzero = (0..LANES).filter(|&i| a[i] != 0).fold(0, |mask, i| mask | 1 << i);
                prop_assert_eq!(x.nonzero(), nonzero);
                let mut packed = [0; LANES];
                y.pack(nonzero, packed.as_mut_ptr());
                let expected: Vec<$word> = (0..LANES).filter(|&i| a[i] != 0).map(|i| b[i]).collect();
                prop_assert_eq!(&packed[..expected.len()], &expected[..]);
            }
            Ok(())
        }
        // SAFETY: the caller has asked for the instruction set.
        unsafe { compare($given)? }
    }};
}

proptest! {
    #[cfg(target_arch = "aarch64")]
    #[test]
    fn vectors_do_what_words_do(given in given()) {
        as_words_do!("neon", std::arch::aarch64::uint32x4_t, u32, &given);
        as_words_do!("neon", std::arch::aarch64::uint16x8_t, u16, &given);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn vectors_do_what_words_do(given in given()) {
        use multigrain_simd::{Isa, Narrow, Wide};
        if Isa::Avx2.is_supported() {
            as_words_do!("avx2", std::arch::x86_64::__m256i, u32, &given);
        }
        if Isa::Avx512.is_supported() {
            as_words_do!("avx512f,avx512vl,avx512dq,avx512bw", Wide, u32, &given);
            if is_x86_feature_detected!("avx512vbmi2") {
                as_words_do!("avx512f,avx512vl,avx512dq,avx512bw,avx512vbmi2", Narrow, u16, &given);
            }
        }
    }
}
