//! Every operation gives the same bits in every lane of every instruction set.

use multigrain_simd::{Isa, Lanes, NAN_BITS, TABLE, dispatch};

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

/// Elements that masks choose.
const CHOSEN: std::ops::Range<usize> = 3..13;
/// What halves of bits are taken from.
const BITS: u32 = 0x5f37_5a86;

#[inline(always)]
unsafe fn results<L: Lanes>(a: &[f32; WIDEST], b: &[f32; WIDEST], c: &[f32; WIDEST]) -> Results {
    let mut found = vec![[0.0_f32; WIDEST]; 12];
    let (mut masked, mut sums) = ([1.0_f32; WIDEST], [1.0_f64; WIDEST]);
    for at in (0..WIDEST).step_by(L::LANES) {
        // SAFETY: `at` and the lanes after it are elements; the instruction set is the caller's.
        unsafe {
            let from = a[at..].as_ptr();
            let (a, b, c) = (L::load(from), L::load(b[at..].as_ptr()), L::load(c[at..].as_ptr()));
            let first = CHOSEN.start.clamp(at, at + L::LANES) - at;
            let mask = L::mask(first, CHOSEN.end.clamp(at + first, at + L::LANES) - at);
            let all = [
                a.add(b),
                a.sub(b),
                a.mul(b),
                a.div(b),
                a.sqrt(),
                a.fma(b, c),
                a.fms(b, c),
                a.fnma(b, c),
                a,
                a.select(a.equal(a), c),
                a.fma_masked(mask, b, c),
                a.halved_from(BITS),
            ];
            for (found, result) in found.iter_mut().zip(all) {
                result.canonical().store(found[at..].as_mut_ptr());
            }
            L::load_masked(mask, from).add(b).canonical().store_masked(mask, masked[at..].as_mut_ptr());
            a.canonical().add_to(sums[at..].as_mut_ptr());
        }
    }
    let sums = |shift: u32| sums.map(|sum| if sum.is_nan() { 0 } else { (sum.to_bits() >> shift) as u32 });
    found.into_iter().chain([masked]).map(|row| row.map(f32::to_bits)).chain([sums(0), sums(32)]).collect()
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
            plain(&|a, _, c| if a.is_nan() { a } else { c }),
            std::array::from_fn(|i| canonical(if CHOSEN.contains(&i) { b[i].mul_add(c[i], a[i]) } else { a[i] })),
            plain(&|a, _, _| f32::from_bits(BITS.wrapping_sub(a.to_bits() >> 1))),
            std::array::from_fn(|i| canonical(if CHOSEN.contains(&i) { a[i] + b[i] } else { 1.0 })),
            a.map(|a| if a.is_nan() { 0 } else { (1.0 + f64::from(a)).to_bits() as u32 }),
            a.map(|a| if a.is_nan() { 0 } else { ((1.0 + f64::from(a)).to_bits() >> 32) as u32 }),
        ];
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            // SAFETY: the processor supports the instruction set.
            let found = unsafe {
                let (a, b, c) = (&a, &b, &c);
                dispatch!(isa, (a: &[f32; WIDEST], b: &[f32; WIDEST], c: &[f32; WIDEST]) -> Results => {
                    Scalar: results::<f32>,
                    Neon: results::<std::arch::aarch64::float32x4_t>,
                    Avx2: results::<std::arch::x86_64::__m256>,
                    Avx512: results::<std::arch::x86_64::__m512>,
                })
            };
            assert_eq!(found, expected, "{isa}, case {case} of seed {seed}: {a:?} {b:?} {c:?}");
        }
    }
}

/// What a square becomes, whose vectors lie one after the other.
#[inline(always)]
unsafe fn transposed<L: Lanes>(square: &mut [f32; WIDEST * WIDEST]) -> usize {
    // SAFETY: all of these vectors are elements; the instruction set is the caller's.
    unsafe {
        let mut vectors = [L::splat(0.0); 16];
        for (i, vector) in vectors[..L::LANES].iter_mut().enumerate() {
            *vector = L::load(square[i * L::LANES..].as_ptr());
        }
        L::transpose(&mut vectors);
        for (i, vector) in vectors[..L::LANES].iter().enumerate() {
            vector.store(square[i * L::LANES..].as_mut_ptr());
        }
    }
    L::LANES
}

#[test]
fn squares_are_transposed() {
    let before: [f32; WIDEST * WIDEST] = std::array::from_fn(|i| i as f32);
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
        let mut after = before;
        let square = &mut after;
        // SAFETY: the processor supports the instruction set.
        let n = unsafe {
            dispatch!(isa, (square: &mut [f32; WIDEST * WIDEST]) -> usize => {
                Scalar: transposed::<f32>,
                Neon: transposed::<std::arch::aarch64::float32x4_t>,
                Avx2: transposed::<std::arch::x86_64::__m256>,
                Avx512: transposed::<std::arch::x86_64::__m512>,
            })
        };
        let all = (0..n * n).all(|at| after[at] == before[at % n * n + at / n]);
        assert!(all, "{isa}: {:?}", &after[..n * n]);
    }
}

/// What is looked up, the greater ones, and whether one is above 0.9; complex numbers taken apart and put together again, in either
/// order.
type Picked = ([f32; WIDEST], [f32; WIDEST], bool, [[f32; 4 * WIDEST]; 2]);

#[inline(always)]
unsafe fn picked<L: Lanes>(table: &[f32; TABLE], codes: &[u32; WIDEST], pairs: &[f32; 2 * WIDEST]) -> Picked {
    let (mut found, mut greater, mut above) = ([0.0; WIDEST], [0.0; WIDEST], false);
    let mut apart = [[0.0; 4 * WIDEST]; 2];
    for at in (0..WIDEST).step_by(L::LANES) {
        // SAFETY: `at` and the lanes after it are elements, codes are below the table's length; the instruction set is the caller's.
        unsafe {
            let entries = L::look_up(table.as_ptr(), L::index(codes[at..].as_ptr()));
            entries.store(found[at..].as_mut_ptr());
            entries.max(L::load(table[at..].as_ptr())).store(greater[at..].as_mut_ptr());
            above |= entries.any_above(0.9);
            for (swapped, apart) in [false, true].into_iter().zip(&mut apart) {
                let (re, im) = L::load_complex(pairs[2 * at..].as_ptr(), L::order_of_loads(swapped));
                re.store(apart[at..].as_mut_ptr());
                im.store(apart[WIDEST + at..].as_mut_ptr());
                L::store_complex(re, im, apart[2 * (WIDEST + at)..].as_mut_ptr(), L::order_of_stores(swapped));
            }
        }
    }
    (found, greater, above, apart)
}

#[test]
fn entries_are_looked_up_and_complex_numbers_taken_apart() {
    let mut state = 1;
    for case in 0..CASES {
        let mut unit = || numbers(&mut state).map(|x| (x.to_bits() >> 9) as f32 / (1 << 23) as f32);
        let table: [f32; TABLE] = std::array::from_fn(|i| unit()[i % WIDEST] * if case % 2 == 0 { 0.5 } else { 1.0 });
        let codes: [u32; WIDEST] = unit().map(|x| (x * TABLE as f32) as u32);
        let pairs: [f32; 2 * WIDEST] = std::array::from_fn(|i| unit()[i % WIDEST]);
        let found = codes.map(|code| table[code as usize]);
        let apart = |swapped: usize| {
            std::array::from_fn(|i| match i / WIDEST {
                0 => pairs[2 * i + swapped],
                1 => pairs[2 * (i - WIDEST) + 1 - swapped],
                _ => pairs[i - 2 * WIDEST],
            })
        };
        let greater = std::array::from_fn(|i| found[i].max(table[i]));
        let expected: Picked = (found, greater, found.iter().any(|&x| x > 0.9), [apart(0), apart(1)]);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let (table, codes, pairs) = (&table, &codes, &pairs);
            // SAFETY: the processor supports the instruction set.
            let got = unsafe {
                dispatch!(isa, (table: &[f32; TABLE], codes: &[u32; WIDEST], pairs: &[f32; 2 * WIDEST]) -> Picked => {
                    Scalar: picked::<f32>,
                    Neon: picked::<std::arch::aarch64::float32x4_t>,
                    Avx2: picked::<std::arch::x86_64::__m256>,
                    Avx512: picked::<std::arch::x86_64::__m512>,
                })
            };
            assert!(got == expected, "{isa}, case {case}: {got:?} instead of {expected:?}");
        }
    }
}
