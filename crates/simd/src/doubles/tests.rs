//! The same bits with every instruction set, and how accurate the elementary functions are.

use super::*;
#[cfg(target_arch = "x86_64")]
use crate::Isa;

/// Every operation on eight numbers, as bits.
#[inline(always)]
unsafe fn all<V: Doubles>(x: &[f64; 8], y: &[f64; 8]) -> Vec<u64> {
    // SAFETY: the caller enables the instruction set; arrays of eight are valid for eight elements, and rows begin
    // at the first four of them.
    unsafe {
        let (a, b) = (V::load(x.as_ptr()), V::load(y.as_ptr()));
        let rows = V::rows(std::array::from_fn(|i| if i % 2 == 0 { x } else { y }[i / 2..].as_ptr()));
        let (k, m) = a.split_logarithm();
        let (n, power) = b.round_and_power();
        let results = [a.add(b), a.sub(b), a.mul(b), a.div(b), a.fma(a, b), a.max(b), a.ln(), b.exp(), k, m, n, power];
        let mut bits = vec![u64::from(a.less(b)), a.halving_sum().to_bits()];
        for v in results.into_iter().chain(rows) {
            let mut out = [0.0; 8];
            v.store(out.as_mut_ptr());
            bits.extend(out.map(f64::to_bits));
        }
        bits
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(x: &[f64; 8], y: &[f64; 8]) -> Vec<u64> {
    // SAFETY: the features are enabled here.
    unsafe { all::<Pair>(x, y) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
unsafe fn avx512(x: &[f64; 8], y: &[f64; 8]) -> Vec<u64> {
    // SAFETY: the features are enabled here.
    unsafe { all::<std::arch::x86_64::__m512d>(x, y) }
}

fn numbers(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let mut next = numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
        let x: [f64; 8] = std::array::from_fn(|_| next() * 2f64.powi((next() * 600.0) as i32 - 500));
        let y: [f64; 8] = std::array::from_fn(|_| -next() * 700.0);
        // SAFETY: plain arithmetic.
        let expected = unsafe { all::<[f64; 8]>(&x, &y) };
        #[cfg(target_arch = "x86_64")]
        {
            if Isa::Avx2.is_supported() {
                // SAFETY: supported.
                assert_eq!(unsafe { avx2(&x, &y) }, expected);
            }
            if Isa::Avx512.is_supported() {
                // SAFETY: supported.
                assert_eq!(unsafe { avx512(&x, &y) }, expected);
            }
        }
        assert!(!expected.is_empty());
    }
}

#[test]
fn logarithms_and_exponentials_are_accurate() {
    let mut next = numbers(0x1234_5678_9abc_def1);
    for round in 0..if cfg!(miri) { 40 } else { 20_000 } {
        let wide = 2f64.powi((next() * 2000.0) as i32 - 1000);
        let x = (0.5 + next()) * if round % 2 == 0 { 1.0 } else { wide };
        let y = -next() * if round % 2 == 0 { 1.0 } else { 700.0 };
        // SAFETY: plain arithmetic.
        let (ln, exp) = unsafe { ([x; 8].ln()[3], [y; 8].exp()[5]) };
        assert!((ln - x.ln()).abs() <= 2.3e-16 * x.ln().abs(), "ln {x}: {ln} {}", x.ln());
        assert!((exp - y.exp()).abs() <= 2.3e-16 * y.exp() * 1.5, "exp {y}: {exp} {}", y.exp());
    }
    // SAFETY: plain arithmetic.
    unsafe {
        assert_eq!([1.0; 8].ln(), [0.0; 8]);
        assert_eq!([0.0; 8].exp(), [1.0; 8]);
        assert!([-1e9; 8].exp()[0] < 1e-300);
    }
}
