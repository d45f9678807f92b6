//! The kernels against a direct sum in double precision, and every instruction set against the others.

use super::twiddle::PRIMES;
use super::*;

/// Numbers from a seed: SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn fill(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    }
}

fn isas() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_supported())
}

/// A scratch buffer that begins at a multiple of 64 bytes and is not one byte too long.
fn with_scratch<T>(bytes: usize, run: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut memory = vec![0xA5u8; bytes + 64];
    let skip = memory.as_ptr().align_offset(64);
    run(&mut memory[skip..skip + bytes])
}

/// Transforms a dense block, of which rows are `gap` complex numbers apart that are not touched.
#[allow(clippy::too_many_arguments)]
fn run(
    isa: Isa,
    axis: Axis,
    shape: [usize; 3],
    gap: usize,
    data: &[f32],
    swapped: bool,
    factor: Option<f32>,
    in_place: bool,
) -> Vec<f32> {
    let dft = Dft::new(shape[axis as usize] as u64).unwrap();
    let pitch = shape[2] + gap;
    let mut from = vec![7.0f32; 2 * shape[0] * shape[1] * pitch];
    for (row, values) in from.chunks_exact_mut(2 * pitch).zip(data.chunks_exact(2 * shape[2])) {
        row[..2 * shape[2]].copy_from_slice(values);
    }
    let mut to = if in_place { Vec::new() } else { vec![7.0f32; from.len()] };
    let strides = [shape[1] * pitch, pitch];
    let block = Block {
        from: from.as_ptr(),
        to: if in_place { from.as_mut_ptr() } else { to.as_mut_ptr() },
        shape,
        from_strides: strides,
        to_strides: strides,
    };
    let need = scratch_bytes(isa, &dft, axis, shape) + panel_bytes(isa, &dft, axis, shape);
    // SAFETY: the block lies in vectors of this function, the instruction set is supported.
    with_scratch(need, |scratch| unsafe { transform(isa, &dft, axis, &block, swapped, factor, scratch) });
    let out = if in_place { from } else { to };
    assert!(out.chunks_exact(2 * pitch).all(|row| row[2 * shape[2]..].iter().all(|&x| x == 7.0)), "a gap was written");
    out.chunks_exact(2 * pitch).flat_map(|row| row[..2 * shape[2]].to_vec()).collect()
}

/// The direct sum along an axis, in double precision.
fn direct(axis: Axis, shape: [usize; 3], data: &[f32], inverse: bool) -> Vec<(f64, f64)> {
    let strides = [shape[1] * shape[2], shape[2], 1];
    let (n, stride) = (shape[axis as usize], strides[axis as usize]);
    let at = |i: usize| (f64::from(data[2 * i]), f64::from(data[2 * i + 1]));
    let roots: Vec<(f64, f64)> = (0..n as u64).map(|k| cos_sin(k, n as u64)).collect();
    (0..data.len() / 2)
        .map(|i| {
            let k = i / stride % n;
            let first = i - k * stride;
            (0..n).fold((0.0, 0.0), |(re, im), q| {
                let (c, s) = roots[q * k % n];
                let s = if inverse { s } else { -s };
                let (x, y) = at(first + q * stride);
                (re + x * c - y * s, im + x * s + y * c)
            })
        })
        .collect()
}

fn compare(found: &[f32], expected: &[(f64, f64)], what: &str) {
    let scale = expected.iter().map(|(re, im)| re * re + im * im).sum::<f64>().sqrt() / (expected.len() as f64).sqrt();
    for (i, (found, expected)) in found.chunks_exact(2).zip(expected).enumerate() {
        let error = (f64::from(found[0]) - expected.0).hypot(f64::from(found[1]) - expected.1);
        assert!(error <= 2e-6 * scale.max(1e-3), "{what}: element {i} is {found:?}, not {expected:?}");
    }
}

const LENGTHS: [usize; 40] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 15, 16, 21, 25, 27, 32, 35, 49, 60, 64, 96, 100, 128, 210, 256, 243, 512, 768,
    1024, 11, 13, 17, 22, 97, 121, 251, 509, 1001, 2816,
];

#[test]
fn every_length_is_the_direct_sum_with_every_instruction_set() {
    let mut numbers = Numbers(1);
    // Some that matter, and products of random factors.
    let mut lengths = LENGTHS.to_vec();
    while lengths.len() < 50 {
        let mut n = 1;
        while n < 300 && numbers.below(5) > 0 {
            n *= PRIMES[numbers.below(4) as usize] as usize;
        }
        lengths.push(n);
    }
    for n in lengths {
        for axis in [Axis::X, Axis::Y, Axis::Z] {
            let most = if n > 200 { 3 } else { 20 };
            let mut shape = [(); 3].map(|()| 1 + numbers.below(most) as usize);
            shape[axis as usize] = n;
            let data = numbers.fill(2 * shape.iter().product::<usize>());
            let inverse = numbers.below(2) == 1;
            let gap = numbers.below(3) as usize;
            let expected = direct(axis, shape, &data, inverse);
            let mut first: Option<Vec<f32>> = None;
            for isa in isas() {
                for in_place in [false, true] {
                    let found = run(isa, axis, shape, gap, &data, inverse, None, in_place);
                    compare(&found, &expected, &format!("{axis:?} of {shape:?}, {isa}"));
                    let first = first.get_or_insert_with(|| found.clone());
                    let same = first.iter().zip(&found).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{axis:?} of {shape:?}: {isa} gives other bits");
                }
            }
        }
    }
}

#[test]
fn one_column_is_a_row() {
    for n in [1usize, 60, 251, 256, 1000, 1024, 4096] {
        let data = Numbers(4).fill(2 * n);
        for inverse in [false, true] {
            let expected = run(Isa::Scalar, Axis::Z, [1, 1, n], 0, &data, inverse, None, true);
            for isa in isas() {
                for (axis, shape) in [(Axis::X, [n, 1, 1]), (Axis::Y, [1, n, 1])] {
                    let found = run(isa, axis, shape, 0, &data, inverse, None, false);
                    assert!(found == expected, "{axis:?} of {shape:?}, {isa}");
                    // Another stride, so that it is a column.
                    assert!(
                        run(isa, axis, shape, 1, &data, inverse, None, true) == expected,
                        "{axis:?} of {shape:?}, {isa}"
                    );
                }
                let scaled = run(isa, Axis::X, [n, 1, 1], 0, &data, inverse, Some(0.5), true);
                assert!(scaled.iter().zip(&expected).all(|(a, b)| *a == 0.5 * b), "{n}, {isa}");
            }
        }
    }
    // A long line does not need room for as many as a vector has lanes.
    let dft = Dft::new(1 << 20).unwrap();
    assert!(scratch_bytes(Isa::detect(), &dft, Axis::X, [1 << 20, 1, 1]) <= 16 << 20);
}

#[test]
fn final_results_are_scaled_and_nan_is_canonical() {
    let shape = [12, 3, 37];
    let mut data = Numbers(2).fill(2 * shape.iter().product::<usize>());
    for isa in isas() {
        let plain = run(isa, Axis::X, shape, 1, &data, true, Some(1.0), true);
        let scaled = run(isa, Axis::X, shape, 1, &data, true, Some(0.25), true);
        assert!(plain.iter().zip(&scaled).all(|(a, b)| a * 0.25 == *b));
    }
    data[2 * 37 + 10] = f32::from_bits(0xFFC1_2345);
    for isa in isas() {
        let out = run(isa, Axis::X, shape, 0, &data, false, Some(1.0), false);
        // Column 5 of row 1, of every plane.
        for (i, values) in out.chunks_exact(2).enumerate() {
            let hit = i % (3 * 37) == 37 + 5;
            assert_eq!(values.iter().any(|value| value.is_nan()), hit, "{isa}, element {i}: {values:?}");
            let canonical = |value: &&f32| value.is_nan() && value.to_bits() != multigrain_simd::NAN_BITS;
            assert_eq!(values.iter().find(canonical), None, "{isa}, element {i}");
        }
    }
}

#[test]
fn panels_change_nothing() {
    // Larger than a cache, with columns that fill no panel and no batch.
    for (axis, shape) in [(Axis::X, [24, 40, 210]), (Axis::Y, [1, 256, 500]), (Axis::X, [60, 3, 601])] {
        let data = Numbers(3).fill(2 * shape.iter().product::<usize>());
        let dft = Dft::new(shape[axis as usize] as u64).unwrap();
        let small: Vec<f32> = run(Isa::Scalar, axis, shape, 0, &data, false, None, true);
        for isa in isas() {
            assert!(
                panel_bytes(isa, &dft, axis, shape) > 0 || 8 * data.len() / 2 <= CACHED_BYTES,
                "{axis:?} {shape:?}"
            );
            for gap in [0, 2] {
                assert!(run(isa, axis, shape, gap, &data, false, None, false) == small, "{axis:?} of {shape:?}, {isa}");
            }
        }
        let expected = direct(axis, shape, &data, false);
        compare(&small, &expected, &format!("{axis:?} of {shape:?}"));
    }
}

#[test]
fn scratch_that_is_scarce_takes_narrower_vectors() {
    let dft = Dft::new(1000).unwrap();
    let need = |isa| scratch_bytes(isa, &dft, Axis::Y, [1, 1000, 16]);
    for isa in isas() {
        assert_eq!(within(Isa::detect(), need(isa), need), isa);
        assert!(within(isa, usize::MAX, need) == isa);
    }
    assert_eq!(within(Isa::detect(), 0, need), Isa::Scalar);
}

#[test]
fn the_bytes_of_tables_are_known_before_they_are_made() {
    fn made(dft: &Dft) -> usize {
        let padded = dft.chirped.as_ref().map_or(0, |chirped| chirped.floats(dft.len) + made(&chirped.inner));
        dft.tables().twiddles.len() + dft.tables().lanes.len() + padded
    }
    for len in (1..300).chain([1 << 12, 100_003, 15_625, 6 * 1024, 7 * 4096]) {
        let dft = Dft::new(len).unwrap();
        let is_made = |dft: &Dft| dft.tables.get().is_some();
        assert!(!is_made(&dft) && dft.chirped.as_ref().is_none_or(|chirped| !is_made(&chirped.inner)), "length {len}");
        assert_eq!(Dft::table_bytes(len), Some(4 * made(&dft) as u64), "length {len}");
    }
    assert_eq!(Dft::table_bytes(0), None);
    assert_eq!(Dft::table_bytes(u64::MAX), None);
}
