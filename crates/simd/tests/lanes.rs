//! Every operation gives the same bits in every lane of every instruction set.

use multigrain_simd::{Isa, Lanes, NAN_BITS};

/// Lanes of the widest vector.
const WIDEST: usize = 16;
/// Vectors that are tried.
const CASES: usize = if cfg!(miri) { 10 } else { 2000 };

/// Numbers of any bits: of all exponents, infinities, zeros of both signs, and such that are no numbers.
fn numbers(state: &mut u64) -> [f32; WIDEST] {
    std::array::from_fn(|_| {
        // Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = (z ^ (z >> 31)) as u32;
        match bits % 16 {
            0 => [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0][(bits >> 8) as usize % 6],
            // Near to each other, so that differences cancel.
            1..=8 => 1.0 + (bits >> 4) as f32 / (1_u32 << 28) as f32,
            _ => f32::from_bits(bits),
        }
    })
}

/// Results of all operations on three vectors, as bits.
type Results = Vec<[u32; WIDEST]>;

#[inline(always)]
unsafe fn results<L: Lanes>(a: &[f32; WIDEST], b: &[f32; WIDEST], c: &[f32; WIDEST]) -> Results {
    let mut found = vec![[0.0_f32; WIDEST]; 9];
    for at in (0..WIDEST).step_by(L::LANES) {
        // SAFETY: `at` and the lanes after it are elements; the instruction set is the caller's.
        unsafe {
            let (a, b, c) = (L::load(a[at..].as_ptr()), L::load(b[at..].as_ptr()), L::load(c[at..].as_ptr()));
            let all = [a.add(b), a.sub(b), a.mul(b), a.div(b), a.sqrt(), a.fma(b, c), a.fms(b, c), a.fnma(b, c), a];
            for (found, result) in found.iter_mut().zip(all) {
                result.canonical().store(found[at..].as_mut_ptr());
            }
        }
    }
    found.into_iter().map(|row| row.map(f32::to_bits)).collect()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(a: &[f32; WIDEST], b: &[f32; WIDEST], c: &[f32; WIDEST]) -> Results {
    // SAFETY: the features are enabled here.
    unsafe { results::<std::arch::x86_64::__m256>(a, b, c) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
unsafe fn avx512(a: &[f32; WIDEST], b: &[f32; WIDEST], c: &[f32; WIDEST]) -> Results {
    // SAFETY: the features are enabled here.
    unsafe { results::<std::arch::x86_64::__m512>(a, b, c) }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let seed = std::env::var("MULTIGRAIN_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut state: u64 = seed;
    for case in 0..CASES {
        let [a, b, c] = [numbers(&mut state), numbers(&mut state), numbers(&mut state)];
        let canonical = |x: f32| if x.is_nan() { NAN_BITS } else { x.to_bits() };
        let plain = |f: &dyn Fn(f32, f32, f32) -> f32| std::array::from_fn(|i| canonical(f(a[i], b[i], c[i])));
        let expected: Results = vec![
            plain(&|a, b, _| a + b),
            plain(&|a, b, _| a - b),
            plain(&|a, b, _| a * b),
            plain(&|a, b, _| a / b),
            plain(&|a, _, _| a.sqrt()),
            plain(&|a, b, c| b.mul_add(c, a)),
            plain(&|a, b, c| b.mul_add(c, -a)),
            plain(&|a, b, c| b.mul_add(-c, a)),
            plain(&|a, _, _| a),
        ];
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            // SAFETY: the processor supports the instruction set.
            let found = unsafe {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => avx2(&a, &b, &c),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => avx512(&a, &b, &c),
                    _ => results::<f32>(&a, &b, &c),
                }
            };
            assert_eq!(found, expected, "{isa}, case {case} of seed {seed}: {a:?} {b:?} {c:?}");
        }
    }
}
