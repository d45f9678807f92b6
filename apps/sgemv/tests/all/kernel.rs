//! The kernel against its definition, bit for bit, and against double precision.

use multigrain_sgemv::kernel::{self, CHAINS, Matrix, SPAN, SgemvError};
use multigrain_simd::{Isa, NAN_BITS};
use proptest::prelude::*;

/// SplitMix64 (Steele, Lea, Flood 2014), so that a large matrix comes from one printed number.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }

    fn vector(&mut self, n: usize, specials: bool) -> Vec<f32> {
        let special = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40, f32::MAX];
        let mut one = || match self.next() % 4096 {
            r @ 0..7 if specials => special[r as usize],
            7..300 => -0.0,
            _ => self.unit(),
        };
        (0..n).map(|_| one()).collect()
    }
}

/// The definition, word for word: one element of y.
fn defined(row: &[f32], x: &[f32], y: f32) -> f32 {
    let mut y = y;
    for (row, x) in row.chunks(SPAN).zip(x.chunks(SPAN)) {
        let mut chains = [0.0_f32; CHAINS];
        for (c, (&a, &x)) in row.iter().zip(x).enumerate() {
            chains[c % CHAINS] = a.mul_add(x, chains[c % CHAINS]);
        }
        let mut half = CHAINS / 2;
        while half > 0 {
            for i in 0..half {
                chains[i] += chains[i + half];
            }
            half /= 2;
        }
        y += chains[0];
        if y.is_nan() {
            y = f32::from_bits(NAN_BITS);
        }
    }
    y
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|v| v.to_bits()).collect()
}

fn columns() -> impl Strategy<Value = usize> {
    prop_oneof![0_usize..200, SPAN - 3..SPAN + 70, 2 * SPAN..2 * SPAN + 3, 0..3 * SPAN + 5]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_isa_and_tiling_gives_the_defined_bits(
        seed in any::<u64>(),
        rows in 0_usize..20,
        cols in columns(),
        gap in 0_usize..40,
        specials in any::<bool>(),
        row_cut in 0_usize..20,
        tile_spans in 1_usize..3,
    ) {
        let mut random = Random(seed);
        let pitch = cols + gap;
        let data = random.vector(rows * pitch, specials);
        let x = random.vector(cols, specials);
        let y0 = random.vector(rows, specials);
        let wanted: Vec<f32> =
            (0..rows).map(|r| defined(&data[r * pitch..][..cols], &x, y0[r])).collect();
        let from_zero: Vec<f32> =
            (0..rows).map(|r| defined(&data[r * pitch..][..cols], &x, 0.0)).collect();
        let whole = Matrix::new(&data, rows, cols, pitch).unwrap();
        let cut = row_cut.min(rows);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let mut y = y0.clone();
            kernel::update(isa, whole, &x, &mut y).unwrap();
            prop_assert_eq!(bits(&y), bits(&wanted), "update, {}", isa);
            let mut y = vec![f32::NAN; rows];
            kernel::write(isa, whole, &x, &mut y).unwrap();
            prop_assert_eq!(bits(&y), bits(&from_zero), "write, {}", isa);

            let mut y = y0.clone();
            for (first, end) in [(0, cut), (cut, rows)] {
                let mut col = 0;
                while col < cols {
                    let width = (tile_spans * SPAN).min(cols - col);
                    let start = (first * pitch + col).min(data.len());
                    let tile = Matrix::new(&data[start..], end - first, width, pitch).unwrap();
                    kernel::update(isa, tile, &x[col..col + width], &mut y[first..end]).unwrap();
                    col += width;
                }
            }
            prop_assert_eq!(bits(&y), bits(&wanted), "tiles, {}", isa);
        }
    }

    #[test]
    fn close_to_double_precision(seed in any::<u64>(), rows in 1_usize..9, cols in columns()) {
        let mut random = Random(seed);
        let data = random.vector(rows * cols, false);
        let (x, mut y) = (random.vector(cols, false), random.vector(rows, false));
        let a = Matrix::new(&data, rows, cols, cols).unwrap();
        let wanted = kernel::reference(a, &x, &y);
        let sizes: Vec<f64> = (0..rows).map(|r| {
            let terms = data[r * cols..][..cols].iter().zip(&x);
            terms.map(|(&a, &x)| f64::from((a * x).abs())).sum::<f64>() + f64::from(y[r].abs())
        }).collect();
        kernel::update(Isa::detect(), a, &x, &mut y).unwrap();
        for r in 0..rows {
            // At most SPAN / CHAINS + log2(CHAINS) + one a span roundings on any path (Higham 2002, 4.2).
            let depth = (SPAN / CHAINS + 5 + cols.div_ceil(SPAN)) as f64;
            let bound = 1.01 * depth * f64::from(f32::EPSILON) / 2.0 * sizes[r] + 1e-40;
            prop_assert!((f64::from(y[r]) - wanted[r]).abs() <= bound, "row {}", r);
        }
    }
}

#[test]
fn a_row_wider_than_a_panel_gives_the_defined_bits() {
    let (rows, cols) = (7, 33 * SPAN + 77);
    let mut random = Random(5);
    let (data, x) = (random.vector(rows * cols, false), random.vector(cols, false));
    let wanted: Vec<f32> = data.chunks(cols).map(|row| defined(row, &x, 0.0)).collect();
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
        let mut y = vec![1.0; rows];
        let a = Matrix::new(&data, rows, cols, cols).unwrap();
        kernel::write(isa, a, &x, &mut y).unwrap();
        assert_eq!(bits(&y), bits(&wanted), "{isa}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_named() {
    let data = [1.0; 11];
    let error = Matrix::new(&data, 3, 4, 4).unwrap_err();
    assert_eq!(error, SgemvError::Matrix { rows: 3, cols: 4, pitch: 4, found: 11 });
    assert!(Matrix::new(&data, 2, 4, 3).is_err(), "rows overlap");
    assert!(Matrix::new(&data, usize::MAX, 2, usize::MAX).is_err(), "the size overflows");
    let a = Matrix::new(&data, 2, 4, 5).unwrap();
    let mut y = [3.0; 2];
    let error = kernel::update(Isa::Scalar, a, &[1.0; 5], &mut y).unwrap_err();
    assert!(error.to_string().contains("x has 5 elements, 4 are needed"), "{error}");
    assert_eq!(y, [3.0; 2]);
}
