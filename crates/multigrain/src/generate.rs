//! Numbers from a seed: element `i` depends on the seed and `i` alone, so any block can be made anywhere.

use multigrain_program::ElementType;
use multigrain_simd::{Isa, dispatch};

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) applied to counter and seed.
#[inline]
fn mix(seed: u64, index: u64) -> u64 {
    let mut z = seed
        .wrapping_mul(0xD1B5_4A32_D192_ED03)
        .wrapping_add(index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Element `index` of a generated float32 array: a multiple of 2^-23 in [-1, 1).
#[inline]
pub fn f32_at(seed: u64, index: u64) -> f32 {
    (mix(seed, index) >> 40) as f32 * (1.0 / 8_388_608.0) - 1.0
}

/// Element `index` of a generated float64 array: a multiple of 2^-52 in [-1, 1).
#[inline]
pub fn f64_at(seed: u64, index: u64) -> f64 {
    (mix(seed, index) >> 11) as f64 * (1.0 / 4_503_599_627_370_496.0) - 1.0
}

/// Fills `bytes` with the elements from number `first` on. A complex number takes two numbers of the sequence; integers, and
/// what is not [known](ElementType::KNOWN), are random bits.
pub fn fill(element: ElementType, seed: u64, first: u64, bytes: &mut [u8]) {
    fill_by(Isa::detect(), element, seed, first, bytes);
}

/// By an instruction set that the processor supports: products of 64 bits take vectors of their own.
fn fill_by(isa: Isa, element: ElementType, seed: u64, first: u64, bytes: &mut [u8]) {
    #[allow(unused_unsafe)] // Where no other instruction set is known, nothing in it is.
    // SAFETY: the processor supports the instruction set; nothing else is needed.
    unsafe {
        dispatch!(isa, (element: ElementType, seed: u64, first: u64, bytes: &mut [u8]) => {
            Scalar: filled, Neon: filled, Avx2: filled, Avx512: filled,
        });
    }
}

#[inline(always)]
fn filled(element: ElementType, seed: u64, first: u64, bytes: &mut [u8]) {
    let (element, first) = match element {
        ElementType::C64 => (ElementType::F32, 2 * first),
        ElementType::C128 => (ElementType::F64, 2 * first),
        other => (other, first),
    };
    match element {
        ElementType::F32 => {
            for (to, i) in bytes.as_chunks_mut().0.iter_mut().zip(first..) {
                *to = f32_at(seed, i).to_le_bytes();
            }
        }
        ElementType::F64 => {
            for (to, i) in bytes.as_chunks_mut().0.iter_mut().zip(first..) {
                *to = f64_at(seed, i).to_le_bytes();
            }
        }
        other => {
            let words = other.size_bytes().div_ceil(8);
            for (element, i) in bytes.chunks_exact_mut(other.size_bytes() as usize).zip(first..) {
                for (word, w) in element.chunks_mut(8).zip(i * words..) {
                    word.copy_from_slice(&mix(seed, w).to_le_bytes()[..word.len()]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_agree_with_the_whole_and_numbers_stay_in_range() {
        let mut whole = vec![0u8; 4096];
        fill(ElementType::F32, 7, 0, &mut whole);
        let mut part = vec![0u8; 400];
        fill(ElementType::F32, 7, 100, &mut part);
        assert_eq!(part, whole[400..800]);
        let numbers: Vec<f32> = whole.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert!(numbers.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(numbers.iter().any(|x| *x < -0.9) && numbers.iter().any(|x| *x > 0.9));
        assert_ne!(f32_at(7, 0), f32_at(8, 0));
    }

    #[test]
    fn every_instruction_set_makes_the_same_numbers() {
        for element in ElementType::KNOWN {
            let by = |isa: Isa| {
                let mut bytes = vec![0u8; 67 * element.size_bytes() as usize];
                fill_by(isa, element, 3, 1 << 40, &mut bytes);
                bytes
            };
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
                assert_eq!(by(isa), by(Isa::Scalar), "{element} by {isa}");
            }
        }
    }
}
