use super::*;
use crate::tables::ZIGZAG;
use proptest::prelude::*;

/// Every instruction set that this processor has, beside the plainest.
fn others() -> impl Iterator<Item = Kernels> {
    Isa::ALL.into_iter().skip(1).filter(|isa| isa.is_supported()).map(Kernels::new)
}

fn plain() -> Kernels {
    Kernels::new(Isa::Scalar)
}

/// Samples of all kinds: noise, extremes, gentle slopes.
fn picture(count: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), count),
        proptest::collection::vec(prop_oneof![Just(0_u8), Just(255)], count),
        (any::<u8>(), 1..4_u8, any::<u64>()).prop_map(move |(base, slope, seed)| {
            (0..count).map(|i| base.wrapping_add((i as u8 % 32) * slope) ^ (seed >> (i % 61) & 1) as u8).collect()
        }),
    ]
}

fn samples(from: &[u8]) -> Samples {
    Samples(from[..256].try_into().unwrap())
}

const STRIDE: usize = 64;

proptest! {
    #[test]
    fn differences_are_the_same(a in picture(256), b in picture(40 * STRIDE), x in 0..40_usize, y in 0..20_usize) {
        let (source, with) = (samples(&a), b.as_ptr().wrapping_add(y * STRIDE + x));
        let plain = plain();
        for other in others() {
            // SAFETY: 16 rows of 16 lie behind the pointer.
            unsafe {
                let mut keys = [Keys::NONE; 2];
                for (keys, kernels) in keys.iter_mut().zip([&plain, &other]) {
                    keys.0[..3].copy_from_slice(&[5 * KEY_UNIT, 7000 * KEY_UNIT, 9000 * KEY_UNIT + 77]);
                    (kernels.look)(&source, with, STRIDE, 1000 * KEY_UNIT + 99, keys);
                    keys.0[9..].fill(0);
                }
                prop_assert_eq!(keys[0], keys[1]);
                let mut whole = Keys::NONE;
                (other.look)(&source, with, STRIDE, 0, &mut whole);
                let sad = (other.sad)(&source, with, STRIDE);
                prop_assert_eq!((sad * KEY_UNIT, sad), (whole.0[8], (plain.sad)(&source, with, STRIDE)));
                let with = [with, b.as_ptr().add((y / 2) * STRIDE + x / 3)];
                prop_assert_eq!((plain.satd)(&source, with, STRIDE), (other.satd)(&source, with, STRIDE));
                let quarter = source.0.as_ptr().add(8);
                prop_assert_eq!((plain.satd_8)(quarter, with, STRIDE), (other.satd_8)(quarter, with, STRIDE));
            }
        }
    }

    #[test]
    fn samples_between_are_the_same(a in picture(40 * STRIDE), fractions in any::<[u8; 2]>(), wide: bool) {
        let plain = plain();
        let from = a.as_ptr().wrapping_add(4 * STRIDE + 4);
        let all = |k: &Kernels| {
            let mut out = vec![0_u8; 5 * 1024];
            let mut scratch = vec![0; 64];
            // SAFETY: the pictures reach four rows and columns beyond what is read, and rows of 16 or 33 are written.
            unsafe {
                let to = out.as_mut_ptr();
                (k.mean)(to, from, from.add(STRIDE + 1), STRIDE, 16, wide);
                (k.copy)(to.add(256), from, STRIDE, 8, wide);
                let planes = [to.add(1024), to.add(2048), to.add(3072)];
                (k.halves)(planes, from, STRIDE, 33, &mut scratch);
                (k.chroma)(to.add(512), from, STRIDE, fractions.map(|f| f % 8), if wide { 8 } else { 4 });
            }
            out
        };
        let expected = all(&plain);
        for other in others() {
            prop_assert_eq!(&expected, &all(&other));
        }
    }

    /// Six taps in whole numbers (8.4.2.2.1), of columns that are as far apart as can be, too.
    #[test]
    fn halves_are_those_of_the_standard(noise in picture(6 * STRIDE), columns in any::<u64>(), is_extreme: bool) {
        const WIDE: usize = 33;
        // Rows where the taps are positive, or those where they are not.
        let extreme = |at: usize| 255 * u8::from((columns >> (at % STRIDE) & 1 == 1) == [0, 2, 3, 5].contains(&(at / STRIDE)));
        let a: Vec<u8> = if is_extreme { (0..6 * STRIDE).map(extreme).collect() } else { noise };
        let tap = |at: usize, step: usize| -> i32 {
            [1, -5, 20, 20, -5, 1].iter().enumerate().map(|(i, tap)| tap * i32::from(a[at + i * step])).sum()
        };
        let sample = |value: i32| value.clamp(0, 255) as u8;
        let expected: Vec<[u8; 3]> = (0..WIDE).map(|x| {
            let both: i32 = [1, -5, 20, 20, -5, 1].iter().enumerate().map(|(i, by)| by * tap(x + i, STRIDE)).sum();
            [(tap(2 * STRIDE + x, 1) + 16) >> 5, (tap(x + 2, STRIDE) + 16) >> 5, (both + 512) >> 10].map(sample)
        }).collect();
        for kernels in std::iter::once(plain()).chain(others()) {
            let (mut planes, mut scratch) = ([[0_u8; WIDE]; 3], vec![0; WIDE + 5]);
            let to = planes.each_mut().map(|plane| plane.as_mut_ptr());
            // SAFETY: there are two rows and samples before, and three behind.
            unsafe { (kernels.halves)(to, a.as_ptr().add(2 * STRIDE + 2), STRIDE, WIDE, &mut scratch) };
            let found: Vec<[u8; 3]> = (0..WIDE).map(|x| planes.each_ref().map(|plane| plane[x])).collect();
            prop_assert_eq!(&found, &expected, "{:?}", kernels);
        }
    }

    #[test]
    fn means_in_place_are_the_same(a in picture(256), b in picture(256), rows in 0..17_usize) {
        let all = |k: &Kernels| {
            let (mut out, other) = (samples(&a), samples(&b));
            // SAFETY: so many rows of 16 lie behind both.
            unsafe { (k.average)(out.0.as_mut_ptr(), other.0.as_ptr(), rows) };
            out
        };
        let expected = all(&plain());
        for other in others() {
            prop_assert_eq!(&expected, &all(&other));
        }
        let mean = |at: usize| if at < 16 * rows { (u16::from(a[at]) + u16::from(b[at])).div_ceil(2) as u8 } else { a[at] };
        prop_assert!((0..256).all(|at| expected.0[at] == mean(at)));
    }

    /// All modes of a block with all that may be around it: their predictions, and sums by the definition, half of the sum of all 16
    /// sums with signs.
    #[test]
    fn modes_of_blocks_are_the_same(a in picture(32), sides in 0..4_u8) {
        let line = Line {
            samples: a[..16].try_into().unwrap(),
            has_above: sides & 1 > 0,
            has_left: sides & 2 > 0,
        };
        let source: &[u8; 16] = a[16..].try_into().unwrap();
        let all = |k: &Kernels| {
            let mut modes = Modes::EMPTY;
            // SAFETY: no pointers are passed.
            unsafe { (k.modes)(source, &line, &mut modes) };
            modes
        };
        let expected = all(&plain());
        for other in others() {
            let found = all(&other);
            prop_assert_eq!(&expected.predictions, &found.predictions);
            prop_assert_eq!(&expected.sums[..9], &found.sums[..9]);
        }
        let sign = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1 } else { -1 };
        for (prediction, sum) in expected.predictions.iter().zip(expected.sums) {
            let difference = |j: usize| i32::from(source[j]) - i32::from(prediction[j]);
            let of = |i: usize| (0..16).map(|j| sign(i, j) * difference(j)).sum::<i32>().unsigned_abs();
            prop_assert_eq!(sum, (0..16).map(of).sum::<u32>() / 2);
        }
    }

    /// A block by itself is coded as all of a macroblock at once.
    #[test]
    fn blocks_are_coded_the_same(a in picture(256), b in picture(256), qp in 0..52_u8) {
        let (source, prediction) = (samples(&a), samples(&b));
        let scales = crate::quantiser::Quantiser::new(qp);
        let (mut lanes, mut whole) = (Lanes([[0; 16]; 16]), Samples::of(0));
        let k = plain();
        // SAFETY: no pointers are passed.
        let coded = unsafe {
            (k.transform)(&source, &prediction, &mut lanes);
            let coded = (k.divide)(&mut lanes, &scales.intra);
            let coefficients = Coefficients { levels: &lanes, factors: &scales.scale, constant: None };
            (k.reconstruct)(coefficients, &prediction, &mut whole);
            coded
        };
        for block in 0..16 {
            let of = |samples: &Samples| -> [u8; 16] {
                std::array::from_fn(|at| samples.0[(block / 4 * 4 + at / 4) * 16 + block % 4 * 4 + at % 4])
            };
            for kernels in std::iter::once(plain()).chain(others()) {
                let (mut made, mut levels) = ([0; 16], [0; 16]);
                let (factors, by) = (&scales.scale, &scales.intra);
                // SAFETY: no pointers are passed.
                let places = unsafe {
                    (kernels.code_block)(&of(&source), &of(&prediction), by, factors, &mut made, &mut levels)
                };
                prop_assert_eq!(places != 0, coded >> block & 1 == 1);
                prop_assert_eq!(places, crate::cavlc::places(&levels));
                prop_assert_eq!(levels, ZIGZAG.map(|place| lanes.0[place][block]));
                prop_assert_eq!(made, of(&whole));
            }
        }
    }

    /// There and back without division by anything that matters: what was transformed comes back, on all of them.
    #[test]
    fn transforms_are_the_same(a in picture(256), b in picture(256), qp in 0..52_u8) {
        let (source, prediction) = (samples(&a), samples(&b));
        let scales = crate::quantiser::Quantiser::new(qp);
        let all = |k: &Kernels| {
            let mut lanes = Lanes([[0; 16]; 16]);
            let mut out = Samples::of(0);
            // SAFETY: no pointers are passed.
            unsafe {
                (k.transform)(&source, &prediction, &mut lanes);
                let transformed = lanes;
                let coded = (k.divide)(&mut lanes, &scales.inter);
                let levels = lanes;
                let without = Coefficients { levels: &levels, factors: &scales.scale, constant: None };
                (k.reconstruct)(without, &prediction, &mut out);
                let constant = Some(std::array::from_fn(|lane| 64 * lane as i16));
                let mut other = Samples::of(0);
                (k.reconstruct)(Coefficients { constant, ..without }, &prediction, &mut other);
                (transformed, coded, levels, other, out)
            }
        };
        let expected = all(&plain());
        for other in others() {
            prop_assert_eq!(&expected, &all(&other));
        }
        if qp < 6 {
            prop_assert!(source.0.iter().zip(&expected.4.0).all(|(a, b)| a.abs_diff(*b) <= 2), "{expected:?}");
        }
    }

    /// Costs of whole macroblocks without their predictions are those with them.
    #[test]
    fn whole_costs_are_those_of_predictions(a in picture(256), b in picture(40), sides in 0..4_u8) {
        let source = samples(&a);
        let around = Around::<16> {
            above: (sides & 1 > 0).then(|| b[..16].try_into().unwrap()),
            left: (sides & 2 > 0).then(|| b[16..32].try_into().unwrap()),
            corner: b[32],
        };
        for kernels in std::iter::once(plain()).chain(others()) {
            // SAFETY: modes that are not possible are not looked at; 16 rows of 16 lie behind the pointer.
            let costs = unsafe { (kernels.wholes)(&source, &around) };
            let modes = [Mode::Vertical, Mode::Horizontal, Mode::Dc];
            for (mode, cost) in modes.into_iter().zip(costs).filter(|(mode, _)| mode.is_possible(&around)) {
                let mut prediction = Samples::of(0);
                // SAFETY: the mode is possible; 16 rows of 16 lie behind the pointer.
                let expected: u32 = unsafe {
                    (kernels.intra_luma)(mode, &around, &mut prediction);
                    (kernels.satd)(&source, [prediction.0.as_ptr(); 2], 16).iter().sum()
                };
                prop_assert_eq!(cost, expected, "{:?} {:?}", kernels, mode);
            }
        }
    }

    /// Slopes as 8.3.3.4 and 8.3.4.4 write them; the rest is the same everywhere.
    #[test]
    fn whole_predictions_are_those_of_the_standard(a in picture(40), sides in 0..4_u8, number in 0..4_usize) {
        let has = [sides & 1 > 0, sides & 2 > 0];
        let mode = Mode::ALL[number];
        let luma = Around::<16> {
            above: has[0].then(|| a[..16].try_into().unwrap()),
            left: has[1].then(|| a[16..32].try_into().unwrap()),
            corner: a[32],
        };
        let chroma = Around::<8> {
            above: has[0].then(|| a[..8].try_into().unwrap()),
            left: has[1].then(|| a[16..24].try_into().unwrap()),
            corner: a[32],
        };
        prop_assume!(mode.is_possible(&luma));
        let all = |k: &Kernels| {
            let mut out = [Samples::of(1); 2];
            // SAFETY: the mode is possible.
            unsafe {
                (k.intra_luma)(mode, &luma, &mut out[0]);
                (k.intra_chroma)(mode, &chroma, &mut out[1], 8);
            }
            out
        };
        let expected = all(&plain());
        for other in others() {
            prop_assert_eq!(&expected, &all(&other));
        }
        if mode == Mode::Plane {
            for (side, factor, found) in [(16, 5, &expected[0]), (8, 34, &expected[1])] {
                // p[x, -1] and p[-1, y], from -1 on.
                let p = |from: usize, at: i32| i32::from(if at < 0 { a[32] } else { a[from + at as usize] });
                let half = side / 2;
                let slope = |from: usize| -> i32 {
                    let sum = (0..half).map(|i| (i + 1) * (p(from, half + i) - p(from, half - 2 - i))).sum::<i32>();
                    (factor * sum + 32) >> 6
                };
                let (b, c, base) = (slope(0), slope(16), 16 * (p(16, side - 1) + p(0, side - 1)));
                for (x, y) in (0..side * side).map(|at| (at % side, at / side)) {
                    let value = (base + b * (x - half + 1) + c * (y - half + 1) + 16) >> 5;
                    let x = x + if side == 8 { 8 } else { 0 };
                    prop_assert_eq!(i32::from(found.0[(16 * y + x) as usize]), value.clamp(0, 255));
                }
            }
        }
    }

    #[test]
    fn levels_are_scanned_the_same(values in proptest::collection::vec(prop_oneof![Just(0_i16), any::<i16>()], 256)) {
        let lanes = Lanes(std::array::from_fn(|place| std::array::from_fn(|lane| values[16 * place + lane])));
        for kernels in std::iter::once(plain()).chain(others()) {
            let mut levels = Levels::NONE;
            // SAFETY: no pointers are passed.
            unsafe { (kernels.scan)(&lanes, &mut levels) };
            for (block, (found, places)) in levels.blocks.iter().zip(levels.places).enumerate() {
                prop_assert_eq!(*found, ZIGZAG.map(|place| lanes.0[place][block]));
                prop_assert_eq!(places, crate::cavlc::places(found));
            }
        }
    }

    #[test]
    fn edges_are_smoothed_the_same(
        a in picture(24 * STRIDE), alpha: u8, beta in 0..19_u8, limits in any::<[Option<u8>; 4]>(), strong: bool, rows: bool
    ) {
        let edge = Edge { alpha, beta, limit: limits.map(|l| l.map(|l| l % 26)), is_strong: strong };
        let all = |k: &Kernels| {
            let mut out = a.clone();
            // SAFETY: four rows and columns lie around what is smoothed.
            unsafe {
                let at = out.as_mut_ptr().add(4 * STRIDE + 4);
                (k.smooth_luma)(at, STRIDE, &edge, rows);
                (k.smooth_chroma)([at.add(24), at.add(40)], STRIDE, &edge, rows);
            }
            out
        };
        let expected = all(&plain());
        for other in others() {
            prop_assert_eq!(&expected, &all(&other));
        }
    }
}

/// Each kernel once, on memory that ends where it may read and write no more: for Miri, which sees every access of the plain ones.
#[test]
fn kernels_stay_within_their_memory() {
    let stride = 24;
    for kernels in std::iter::once(plain()).chain(others()) {
        let exact = |rows: usize, columns: usize| vec![77_u8; (rows - 1) * stride + columns];
        let (source, mut keys) = (Samples::of(9), Keys::NONE);
        // SAFETY: of all, as the fields of `Kernels` say.
        unsafe {
            let with = exact(16, 16);
            (kernels.look)(&source, with.as_ptr(), stride, 5, &mut keys);
            assert_eq!(keys.0[8], 256 * 68 * KEY_UNIT + 5);
            assert_eq!((kernels.sad)(&source, with.as_ptr(), stride), 256 * 68);
            assert_eq!((kernels.satd)(&source, [with.as_ptr(); 2], stride), [68 * 64 / 8; 4].map(|sum: u32| sum * 4));
            let with = exact(8, 8);
            (kernels.satd_8)(source.0.as_ptr().add(136), [with.as_ptr(); 2], stride);
            let mut out = Samples::of(0);
            (kernels.mean)(out.0.as_mut_ptr().add(136), with.as_ptr(), with.as_ptr(), stride, 8, false);
            assert!(out.0[136..].as_chunks::<16>().0.iter().all(|row| row[..8] == [77; 8]));
            (kernels.copy)(out.0.as_mut_ptr().add(136), with.as_ptr(), stride, 8, false);
            (kernels.average)(out.0.as_mut_ptr(), source.0.as_ptr().add(128), 8);
            for size in [4, 8] {
                let from = exact(size + 1, size + 1);
                (kernels.chroma)(out.0.as_mut_ptr(), from.as_ptr(), stride, [3, 5], size);
                assert_eq!(out.0[(size - 1) * 17], 77);
            }
            let (from, mut scratch) = (exact(6, 17), vec![0; 17]);
            let mut planes = [[0_u8; 12]; 3];
            let to = planes.each_mut().map(|plane| plane.as_mut_ptr());
            (kernels.halves)(to, from.as_ptr().add(2 * stride + 2), stride, 12, &mut scratch);
            assert_eq!(planes, [[77; 12]; 3]);
            let edge = Edge { alpha: 9, beta: 9, limit: [Some(3); 4], is_strong: false };
            let (mut between_rows, mut between_columns) = (exact(8, 16), exact(16, 8));
            (kernels.smooth_luma)(between_rows.as_mut_ptr().add(4 * stride), stride, &edge, true);
            (kernels.smooth_luma)(between_columns.as_mut_ptr().add(4), stride, &edge, false);
            let (mut between_rows, mut between_columns) = ([exact(4, 8), exact(4, 8)], [exact(8, 4), exact(8, 4)]);
            let at = between_rows.each_mut().map(|plane| plane.as_mut_ptr().add(2 * stride));
            (kernels.smooth_chroma)(at, stride, &edge, true);
            let at = between_columns.each_mut().map(|plane| plane.as_mut_ptr().add(2));
            (kernels.smooth_chroma)(at, stride, &edge, false);
        }
    }
}
