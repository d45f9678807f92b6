//! The kernel against its definition, bit for bit, and against double precision.

use multigrain_conv2d::kernel::{self, Block, BlockMut, Conv2dError, Filling, conv2d};
use multigrain_simd::{Isa, NAN_BITS};
use proptest::prelude::*;

/// SplitMix64 (Steele, Lea, Flood 2014), so that a large array comes from one printed number.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn vector(&mut self, n: usize, specials: bool) -> Vec<f32> {
        let special = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, f32::MAX];
        let mut one = || match self.next() % 1024 {
            r @ 0..6 if specials => special[r as usize],
            6..100 => -0.0,
            _ => (self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0,
        };
        (0..n).map(|_| one()).collect()
    }
}

/// The definition, word for word, for a whole array.
fn defined(input: &[f32], rows: usize, cols: usize, w: &[f32], kh: usize, kw: usize) -> Vec<u32> {
    let mut out = Vec::new();
    for y in 0..rows {
        for x in 0..cols {
            let mut t = 0.0_f32;
            for i in 0..kh {
                for j in 0..kw {
                    let (row, col) = ((y + i).wrapping_sub(kh / 2), (x + j).wrapping_sub(kw / 2));
                    if row < rows && col < cols {
                        t = w[i * kw + j].mul_add(input[row * cols + col], t);
                    }
                }
            }
            out.push(if t.is_nan() { NAN_BITS } else { t.to_bits() });
        }
    }
    out
}

fn extent() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1_usize..40, 1 => 60_usize..200]
}

fn odd() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0_usize..6, 1 => 6_usize..20].prop_map(|half| 2 * half + 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_isa_and_tiling_gives_the_defined_bits(
        seed in any::<u64>(),
        (rows, cols) in (extent(), extent()),
        (kh, kw) in (odd(), odd()),
        (in_gap, out_gap) in (0_usize..20, 0_usize..20),
        (tile_rows, tile_cols) in (extent(), extent()),
        specials in any::<bool>(),
    ) {
        let mut random = Random(seed);
        let weights = random.vector(kh * kw, specials);
        let compact = random.vector(rows * cols, specials);
        let wanted = defined(&compact, rows, cols, &weights, kh, kw);
        let (in_pitch, out_pitch) = (cols + in_gap, cols + out_gap);
        // A NaN in every gap: whatever reads it shows.
        let mut input = vec![f32::NAN; rows * in_pitch];
        for y in 0..rows {
            input[y * in_pitch..][..cols].copy_from_slice(&compact[y * cols..][..cols]);
        }
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            for (th, tw) in [(rows, cols), (tile_rows, tile_cols)] {
                let mut output = vec![77.0_f32; rows * out_pitch];
                for y in (0..rows).step_by(th) {
                    for x in (0..cols).step_by(tw) {
                        let (h, w) = (th.min(rows - y), tw.min(cols - x));
                        let (y0, x0) = (y.saturating_sub(kh / 2), x.saturating_sub(kw / 2));
                        let (y1, x1) = ((y + h + kh / 2).min(rows), (x + w + kw / 2).min(cols));
                        let from = &input[y0 * in_pitch + x0..];
                        let block = Block::new(from, y1 - y0, x1 - x0, in_pitch).unwrap();
                        let to = &mut output[y * out_pitch + x..];
                        let mut to = BlockMut::new(to, h, w, out_pitch).unwrap();
                        conv2d(isa, block, y - y0, x - x0, &weights, kh, kw, Filling::default(), &mut to).unwrap();
                    }
                }
                for y in 0..rows {
                    let (row, gap) = output[y * out_pitch..][..out_pitch].split_at(cols);
                    let row: Vec<u32> = row.iter().map(|v| v.to_bits()).collect();
                    prop_assert_eq!(&row, &wanted[y * cols..][..cols], "{}, row {}", isa, y);
                    prop_assert!(gap.iter().all(|&v| v == 77.0), "the gap was written");
                }
            }
        }
    }

    #[test]
    fn close_to_double_precision(
        seed in any::<u64>(),
        (rows, cols) in (extent(), extent()),
        (kh, kw) in (odd(), odd()),
    ) {
        let mut random = Random(seed);
        let weights = random.vector(kh * kw, false);
        let input = random.vector(rows * cols, false);
        let wanted = kernel::reference(&input, rows, cols, &weights, kh, kw);
        let size = |v: &[f32]| v.iter().map(|v| v.abs()).collect::<Vec<_>>();
        let sizes = kernel::reference(&size(&input), rows, cols, &size(&weights), kh, kw);
        let mut output = vec![0.0; rows * cols];
        let mut block = BlockMut::new(&mut output, rows, cols, cols).unwrap();
        let source = Block::new(&input, rows, cols, cols).unwrap();
        conv2d(Isa::detect(), source, 0, 0, &weights, kh, kw, Filling::default(), &mut block).unwrap();
        for ((out, wanted), size) in output.iter().zip(wanted).zip(sizes) {
            // One rounding a tap (Higham 2002, 4.2).
            let bound = 1.01 * (kh * kw) as f64 * f64::from(f32::EPSILON) / 2.0 * size + 1e-40;
            prop_assert!((f64::from(*out) - wanted).abs() <= bound);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_named() {
    let input = [1.0; 100];
    let mut output = [5.0; 100];
    let source = Block::new(&input, 10, 10, 10).unwrap();
    let mut target = BlockMut::new(&mut output, 8, 10, 10).unwrap();
    let isa = Isa::Scalar;
    let error = conv2d(isa, source, 0, 0, &[1.0; 6], 3, 2, Filling::default(), &mut target).unwrap_err();
    assert_eq!(error, Conv2dError::Even { rows: 3, cols: 2 });
    let error = conv2d(isa, source, 0, 0, &[1.0; 8], 3, 3, Filling::default(), &mut target).unwrap_err();
    assert!(matches!(error, Conv2dError::Block { name: "weights", found: 8, .. }), "{error}");
    let error = conv2d(isa, source, 0, 0, &[1.0; 9], 3, 3, Filling::default(), &mut target).unwrap_err();
    assert!(matches!(error, Conv2dError::Halo { axis: "rows", input: 10, max: 9, .. }), "{error}");
    let error = conv2d(isa, source, 2, 0, &[1.0; 9], 3, 3, Filling::default(), &mut target).unwrap_err();
    assert!(matches!(error, Conv2dError::Halo { axis: "rows", before: 2, .. }), "{error}");
    conv2d(isa, source, 1, 0, &[1.0; 9], 3, 3, Filling::default(), &mut target).unwrap();
    assert!(Block::new(&input, 10, 11, 10).is_err());
    assert!(Block::new(&input, usize::MAX, 2, usize::MAX).is_err());
}

#[test]
fn an_empty_block_is_nothing_to_do() {
    let mut target = BlockMut::new(&mut [], 0, 0, 0).unwrap();
    let source = Block::new(&[], 0, 0, 0).unwrap();
    conv2d(Isa::detect(), source, 0, 0, &[1.0], 1, 1, Filling::default(), &mut target).unwrap();
}
