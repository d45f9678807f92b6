//! Every path gives the bits of the definition.

use super::*;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// Mostly ordinary numbers; with `wild`, now and then zeros of both signs, infinities, NaNs with payloads,
    /// subnormal and huge numbers.
    fn value(&mut self, wild: bool) -> f32 {
        if !wild || self.below(64) != 0 {
            return self.unit();
        }
        let special = [
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::from_bits(0x7fc1_2345),
            f32::from_bits(0xffc5_4321),
            f32::from_bits(0x7f80_0001),
            1e-40,
            -1e-45,
            3e38,
        ];
        special[self.below(special.len())]
    }

    fn matrix(&mut self, rows: usize, columns: usize, wild: bool) -> Matrix {
        let pitch = columns + [0, 1, 7, 64 - columns % 64][self.below(4)];
        let data = (0..(rows - 1) * pitch + columns).map(|_| self.value(wild)).collect();
        Matrix { data, rows, columns, pitch }
    }
}

#[derive(Clone)]
struct Matrix {
    data: Vec<f32>,
    rows: usize,
    columns: usize,
    pitch: usize,
}

impl Matrix {
    /// All bits, what lies between the rows included: nothing may be written there.
    fn bits(&self) -> Vec<u32> {
        self.data.iter().map(|x| x.to_bits()).collect()
    }
}

fn expected(overwrite: bool, a: &Matrix, b: &Matrix, c: &Matrix) -> Matrix {
    let mut c = c.clone();
    let shape = (a.rows, b.columns, a.columns);
    definition(overwrite, shape, (&a.data, a.pitch), (&b.data, b.pitch), (&mut c.data, c.pitch));
    c
}

fn computed(isa: Isa, limit: Option<u64>, overwrite: bool, a: &Matrix, b: &Matrix, c: &Matrix) -> Matrix {
    let mut c = c.clone();
    let shape @ (m, n, k) = (a.rows, b.columns, a.columns);
    let mut scratch = vec![f32::NAN; scratch_elements(isa, m, n, k, limit)];
    sgemm_checked(isa, overwrite, shape, (&a.data, a.pitch), (&b.data, b.pitch), (&mut c.data, c.pitch), &mut scratch)
        .expect("the shapes agree");
    c
}

fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_supported())
}

/// One random product on every path, with several scratch limits.
fn check(seed: u64, (m, n, k): (usize, usize, usize), wild: bool) {
    let mut random = Random(seed);
    let a = random.matrix(m, k, wild);
    let b = random.matrix(k, n, wild);
    let c = random.matrix(m, n, wild);
    for overwrite in [true, false] {
        let want = expected(overwrite, &a, &b, &c).bits();
        for isa in available() {
            for limit in [None, Some(0), Some(16 << 10), Some(48 << 10), Some(100 << 10)] {
                let got = computed(isa, limit, overwrite, &a, &b, &c).bits();
                assert!(
                    got == want,
                    "seed {seed}, {m} x {n} x {k}, wild {wild}, overwrite {overwrite}, {isa}, limit {limit:?}"
                );
            }
        }
    }
}

/// Fewer and smaller cases where an interpreter runs them.
const CASES: u64 = if cfg!(miri) { 2 } else { 60 };

#[test]
fn small_shapes_have_the_bits_of_the_definition() {
    let limit = if cfg!(miri) { 5 } else { 40 };
    for seed in 0..4 * CASES {
        let mut random = Random(1000 + seed);
        check(seed, (1 + random.below(limit), 1 + random.below(limit), 1 + random.below(limit)), seed % 2 == 1);
    }
}

#[test]
fn spans_end_where_the_definition_says() {
    for seed in 0..CASES {
        let mut random = Random(2000 + seed);
        let spans = if cfg!(miri) { 1 } else { 1 + random.below(4) };
        let k = spans * SPAN + random.below(5) - 2;
        let limit = if cfg!(miri) { 2 } else { 50 };
        check(seed, (1 + random.below(limit), 1 + random.below(limit), k), seed % 2 == 1);
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes in an interpreter")]
fn blocks_larger_than_one_have_the_bits_of_the_definition() {
    check(1, (4200, 40, 260), false);
    check(2, (60, 1100, 300), true);
    check(3, (97, 555, 1030), true);
    check(4, (300, 33, 513), false);
}

#[test]
fn every_edge_of_the_register_tiles() {
    let step = if cfg!(miri) { 11 } else { 1 };
    for m in (1..=29).step_by(step) {
        for n in (1..=if cfg!(miri) { 3 } else { 66 })
            .step_by(7)
            .chain([15, 16, 17, 31, 32, 33].into_iter().filter(|_| !cfg!(miri)))
        {
            check((m * 100 + n) as u64, (m, n, 19), n % 2 == 0);
        }
    }
}

#[test]
fn split_calls_give_the_same_bits() {
    for seed in 0..CASES {
        let mut random = Random(3000 + seed);
        let size = if cfg!(miri) { 3 } else { 70 };
        let (m, n) = (2 + random.below(size), 2 + random.below(size));
        let k = if cfg!(miri) { SPAN + 1 } else { 3 * SPAN + 1 + random.below(SPAN) };
        let wild = seed % 2 == 1;
        let (a, b, c) = (random.matrix(m, k, wild), random.matrix(k, n, wild), random.matrix(m, n, wild));
        let overwrite = random.below(2) == 0;
        let want = expected(overwrite, &a, &b, &c).bits();
        let (split_m, split_n) = (1 + random.below(m - 1), 1 + random.below(n - 1));
        let split_k = SPAN * (1 + random.below(k / SPAN));
        for isa in available() {
            let mut got = c.clone();
            for (k0, k1) in [(0, split_k), (split_k, k)] {
                for (j0, j1) in [(0, split_n), (split_n, n)] {
                    for (i0, i1) in [(0, split_m), (split_m, m)] {
                        if k0 == k1 {
                            continue;
                        }
                        let shape = (i1 - i0, j1 - j0, k1 - k0);
                        let mut scratch = vec![0.0; scratch_elements(isa, shape.0, shape.1, shape.2, None)];
                        sgemm_checked(
                            isa,
                            overwrite && k0 == 0,
                            shape,
                            (&a.data[i0 * a.pitch + k0..], a.pitch),
                            (&b.data[k0 * b.pitch + j0..], b.pitch),
                            (&mut got.data[i0 * c.pitch + j0..], c.pitch),
                            &mut scratch,
                        )
                        .expect("the parts lie within the matrices");
                    }
                }
            }
            assert!(
                got.bits() == want,
                "seed {seed}, {m} x {n} x {k}, {isa}, split at {split_m}, {split_n}, {split_k}"
            );
        }
    }
}

/// The scalar path as a processor without fused multiply-adds runs it.
#[test]
fn the_portable_code_has_the_bits_of_the_definition() {
    for seed in 0..CASES {
        let mut random = Random(4000 + seed);
        let limit = if cfg!(miri) { 3 } else { 40 };
        let (m, n, k) = (1 + random.below(limit), 1 + random.below(limit), 1 + random.below(SPAN + 20));
        let wild = seed % 2 == 1;
        let (a, b, mut c) = (random.matrix(m, k, wild), random.matrix(k, n, wild), random.matrix(m, n, wild));
        let overwrite = random.below(2) == 0;
        let want = expected(overwrite, &a, &b, &c).bits();
        let (a_data, b_data, c_data) = (a.data.as_ptr(), b.data.as_ptr(), c.data.as_mut_ptr());
        let call =
            Call { overwrite, m, n, k, a: a_data, lda: a.pitch, b: b_data, ldb: b.pitch, c: c_data, ldc: c.pitch };
        // SAFETY: the matrices were made for these shapes and nothing else uses them.
        unsafe { scalar::portable(&call) };
        assert!(c.bits() == want, "seed {seed}, {m} x {n} x {k}, wild {wild}, overwrite {overwrite}");
    }
}

#[test]
fn signed_zeros_and_nans_follow_the_definition() {
    let a = Matrix { data: vec![-0.0], rows: 1, columns: 1, pitch: 1 };
    let b = Matrix { data: vec![1.0], rows: 1, columns: 1, pitch: 1 };
    for isa in available() {
        let c = Matrix { data: vec![-0.0], rows: 1, columns: 1, pitch: 1 };
        assert_eq!(computed(isa, None, true, &a, &b, &c).bits(), [0], "{isa}: fma(-0, 1, +0) is +0");
        let c = Matrix { data: vec![f32::from_bits(0xffc0_0001)], rows: 1, columns: 1, pitch: 1 };
        assert_eq!(computed(isa, None, false, &a, &b, &c).bits(), [f32::NAN.to_bits()], "{isa}: one NaN");
        assert_eq!(computed(isa, None, true, &a, &b, &c).bits(), [0], "{isa}: an overwriting call does not read C");
    }
}

#[test]
fn the_definition_is_close_to_double_precision() {
    let mut random = Random(7);
    let (m, n, k) = (5, 17, 900);
    let (a, b) = (random.matrix(m, k, false), random.matrix(k, n, false));
    let c = Matrix { data: vec![0.0; m * n], rows: m, columns: n, pitch: n };
    let c = computed(Isa::detect(), None, true, &a, &b, &c);
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let products = (0..k).map(|l| f64::from(a.data[i * a.pitch + l]) * f64::from(b.data[l * b.pitch + j]));
        let (sum, absolute) = products.fold((0.0, 0.0), |(sum, absolute), x| (sum + x, absolute + x.abs()));
        // Higham's bound for chains of SPAN and then k / SPAN roundings ("Accuracy and Stability of Numerical Algorithms", 3.1).
        let roundings = (SPAN + k.div_ceil(SPAN)) as f64;
        let error: f64 = (f64::from(c.data[i * n + j]) - sum).abs();
        assert!(
            error <= roundings * f64::from(f32::EPSILON) / 2.0 * absolute * 1.01,
            "row {i}, column {j}: error {error}"
        );
    }
}

#[test]
fn scratch_keeps_its_limits() {
    for isa in Isa::ALL {
        for (m, n, k) in [(1, 1, 1), (14, 4096, 4096), (4096, 4096, 4096), (100_000, 70_000, 9_000), (64, 64, 64)] {
            assert!(scratch_elements(isa, m, n, k, None) * 4 <= 4_620 << 10, "{isa}, {m} x {n} x {k}");
            for limit in [0, 1, 8 << 10, 20 << 10, 64 << 10, 256 << 10, 1 << 20] {
                assert!(
                    scratch_elements(isa, m, n, k, Some(limit)) as u64 * 4 <= limit,
                    "{isa}, {m} x {n} x {k}, {limit}"
                );
            }
        }
    }
}

#[test]
fn wrong_shapes_are_refused_and_named() {
    let call = |lda, a_len, c_len| {
        let (a, b, mut c) = (vec![1.0; a_len], vec![1.0; 12], vec![9.0; c_len]);
        sgemm_checked(Isa::Scalar, true, (2, 4, 3), (&a, lda), (&b, 4), (&mut c, 4), &mut [])
    };
    assert_eq!(call(3, 6, 8), Ok(()));
    assert_eq!(call(2, 6, 8), Err(ShapeError::Pitch { matrix: 'A', pitch: 2, columns: 3 }));
    assert_eq!(call(usize::MAX, 6, 8).unwrap_err().to_string().split(' ').next(), Some("A"));
    assert_eq!(call(3, 6, 7), Err(ShapeError::Length { matrix: 'C', rows: 2, columns: 4, pitch: 4, found: 7 }));
}

#[test]
fn no_k_means_zero_or_nothing() {
    for isa in available() {
        let mut c = [1.0, -0.0];
        sgemm_checked(isa, false, (1, 2, 0), (&[], 0), (&[], 2), (&mut c, 2), &mut []).expect("valid");
        assert_eq!(c.map(f32::to_bits), [1.0f32.to_bits(), (-0.0f32).to_bits()]);
        sgemm_checked(isa, true, (1, 2, 0), (&[], 0), (&[], 2), (&mut c, 2), &mut []).expect("valid");
        assert_eq!(c.map(f32::to_bits), [0, 0]);
    }
}
