//! The kernels as the standard has them, for any processor. What works lane by lane is inlined into the functions of other
//! instruction sets, too.

use super::smoothing::{smooth_lines, smooth_pairs};
use super::{Coefficients, Division, Edge, KEY_UNIT, Keys, Lanes, Levels, Modes};
use crate::cavlc::places;
use crate::intra::{self, Around, Line, Mode};
use crate::samples::Samples;
use crate::tables::ZIGZAG;
use multigrain_simd::Sixteen;

/// The samples from a pointer on.
///
/// # Safety
/// The pointer is valid for them, and nobody writes them meanwhile.
#[inline(always)]
unsafe fn samples<'a>(from: *const u8, count: usize) -> &'a [u8] {
    // SAFETY: by the caller.
    unsafe { std::slice::from_raw_parts(from, count) }
}

/// The same, to be written.
///
/// # Safety
/// The pointer is valid for them, and nobody else uses them meanwhile.
#[inline(always)]
unsafe fn samples_mut<'a>(from: *mut u8, count: usize) -> &'a mut [u8] {
    // SAFETY: by the caller.
    unsafe { std::slice::from_raw_parts_mut(from, count) }
}

/// See [`Kernels`](super::Kernels), as all others here.
pub(super) unsafe fn look(source: &Samples, with: *const u8, stride: usize, addend: u32, keys: &mut Keys) {
    let mut sums = [0; 4];
    for (y, row) in source.0.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: the caller's pointer is valid for 16 rows of 16.
        let with = unsafe { with.add(y * stride).cast::<[u8; 16]>().read() };
        for x in 0..16 {
            sums[y / 8 * 2 + x / 8] += u32::from(row[x].abs_diff(with[x]));
        }
    }
    let [a, b, c, d] = sums;
    for (key, sum) in keys.0.iter_mut().zip([a, b, c, d, a + b, c + d, a + c, b + d, a + b + c + d]) {
        *key = (*key).min(sum * KEY_UNIT + addend);
    }
}

pub(super) unsafe fn sad(source: &Samples, with: *const u8, stride: usize) -> u32 {
    let mut sum = 0;
    for (y, row) in source.0.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: the caller's pointer is valid for 16 rows of 16.
        let with = unsafe { with.add(y * stride).cast::<[u8; 16]>().read() };
        sum += row.iter().zip(with).map(|(a, b)| u32::from(a.abs_diff(b))).sum::<u32>();
    }
    sum
}

pub(super) unsafe fn wholes(source: &Samples, around: &Around<16>) -> [u32; 3] {
    [Mode::Vertical, Mode::Horizontal, Mode::Dc].map(|mode| {
        let mut prediction = Samples::of(0);
        intra::luma(mode, around, &mut prediction);
        // SAFETY: 16 rows of 16.
        unsafe { satd(source, [prediction.0.as_ptr(); 2], 16) }.into_iter().sum()
    })
}

#[inline(always)]
pub(super) unsafe fn intra_luma(mode: Mode, around: &Around<16>, out: &mut Samples) {
    intra::luma(mode, around, out);
}

#[inline(always)]
pub(super) unsafe fn intra_chroma(mode: Mode, around: &Around<8>, out: &mut Samples, x: usize) {
    intra::chroma(mode, around, out, x);
}

pub(super) unsafe fn modes(source: &[u8; 16], line: &Line, out: &mut Modes) {
    let ingredients = line.ingredients();
    let mut lanes = Lanes([[0; 16]; 16]);
    for (mode, prediction) in out.predictions.iter_mut().enumerate() {
        *prediction = intra::block(mode, &ingredients);
        for (values, (a, b)) in lanes.0.iter_mut().zip(source.iter().zip(prediction)) {
            values[mode] = i16::from(*a) - i16::from(*b);
        }
    }
    out.sums.iter_mut().zip(transformed_sums(&mut lanes)).for_each(|(to, sum)| *to = sum.into());
}

pub(super) unsafe fn code_block(
    source: &[u8; 16],
    prediction: &[u8; 16],
    by: &Division,
    factors: &[i16; 16],
    made: &mut [u8; 16],
    levels: &mut [i16; 16],
) -> u16 {
    // One lane of sixteen.
    let mut lanes = Lanes([[0; 16]; 16]);
    for (values, (a, b)) in lanes.0.iter_mut().zip(source.iter().zip(prediction)) {
        values[0] = i16::from(*a) - i16::from(*b);
    }
    forward(&mut lanes);
    // SAFETY: no pointers are passed.
    unsafe { divide(&mut lanes, by) };
    *levels = ZIGZAG.map(|place| lanes.0[place][0]);
    let mut added = scaled(Coefficients { levels: &lanes, factors, constant: None });
    inverse(&mut added);
    for ((to, from), values) in made.iter_mut().zip(prediction).zip(&added.0) {
        *to = (i16::from(*from) + values[0]).clamp(0, 255) as u8;
    }
    places(levels)
}

/// Differences of square blocks of 4 x 4, so many beside and above each other, to means of two: one block a lane.
///
/// # Safety
/// The pointers are valid for the samples of the blocks.
unsafe fn differences(source: *const u8, with: [*const u8; 2], stride: usize, beside: usize) -> Lanes {
    let mut lanes = Lanes([[0; 16]; 16]);
    for y in 0..4 * beside {
        for x in 0..beside {
            let at = y * stride + 4 * x;
            // SAFETY: by the caller.
            let [a, b, c] = unsafe {
                [source.add(y * 16 + 4 * x), with[0].add(at), with[1].add(at)].map(|from| from.cast::<[u8; 4]>().read())
            };
            for i in 0..4 {
                let mean = (i16::from(b[i]) + i16::from(c[i]) + 1) >> 1;
                lanes.0[y % 4 * 4 + i][y / 4 * beside + x] = i16::from(a[i]) - mean;
            }
        }
    }
    lanes
}

pub(super) unsafe fn satd_8(source: *const u8, with: [*const u8; 2], stride: usize) -> u32 {
    // SAFETY: the caller's pointers are valid for 8 rows of 8.
    let mut lanes = unsafe { differences(source, with, stride, 2) };
    transformed_sums(&mut lanes).into_iter().map(u32::from).sum()
}

pub(super) unsafe fn satd(source: &Samples, with: [*const u8; 2], stride: usize) -> [u32; 4] {
    // SAFETY: the caller's pointers are valid for 16 rows of 16.
    let mut lanes = unsafe { differences(source.0.as_ptr(), with, stride, 4) };
    let sums = transformed_sums(&mut lanes);
    [0, 2, 8, 10].map(|first| [0, 1, 4, 5].into_iter().map(|block| u32::from(sums[first + block])).sum())
}

#[inline(always)]
pub(super) unsafe fn mean(to: *mut u8, a: *const u8, b: *const u8, stride: usize, rows: usize, wide: bool) {
    let width = if wide { 16 } else { 8 };
    for y in 0..rows {
        // SAFETY: the caller's pointers are valid for the rows.
        let (to, a, b) = unsafe {
            (samples_mut(to.add(y * 16), width), samples(a.add(y * stride), width), samples(b.add(y * stride), width))
        };
        for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
            *to = ((u16::from(*a) + u16::from(*b) + 1) >> 1) as u8;
        }
    }
}

#[inline(always)]
pub(super) unsafe fn average(to: *mut u8, other: *const u8, rows: usize) {
    // SAFETY: the caller's pointers are valid for the rows.
    let (to, other) = unsafe { (samples_mut(to, 16 * rows), samples(other, 16 * rows)) };
    for (to, other) in to.iter_mut().zip(other) {
        *to = ((u16::from(*to) + u16::from(*other) + 1) >> 1) as u8;
    }
}

#[inline(always)]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, stride: usize, rows: usize, wide: bool) {
    for y in 0..rows {
        // SAFETY: the caller's pointers are valid for the rows.
        unsafe {
            let (to, from) = (to.add(y * 16), from.add(y * stride));
            match wide {
                true => to.cast::<[u8; 16]>().write(from.cast::<[u8; 16]>().read()),
                false => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            }
        }
    }
}

#[inline(always)]
fn taps([a, b, c, d, e, f]: [u8; 6]) -> i16 {
    let pair = |a: u8, b: u8| i16::from(a) + i16::from(b);
    pair(a, f) - 5 * pair(b, e) + 20 * pair(c, d)
}

#[inline(always)]
fn clipped(value: i16) -> u8 {
    ((value + 16) >> 5).clamp(0, 255) as u8
}

#[inline(always)]
pub(super) unsafe fn halves(to: [*mut u8; 3], from: *const u8, stride: usize, width: usize, scratch: &mut [i16]) {
    let middle = &mut scratch[..width + 5];
    // SAFETY: the caller's pointers are valid for the row, and for two rows and samples before and three behind.
    let (right, below, both, rows, row) = unsafe {
        let [right, below, both] = to.map(|to| samples_mut(to, width));
        let rows: [&[u8]; 6] =
            std::array::from_fn(|row| samples(from.sub(2).offset((row as isize - 2) * stride as isize), width + 5));
        (right, below, both, rows, samples(from.sub(2), width + 5))
    };
    for x in 0..width {
        right[x] = clipped(taps([row[x], row[x + 1], row[x + 2], row[x + 3], row[x + 4], row[x + 5]]));
    }
    let [a, b, c, d, e, f] = rows;
    for x in 0..width + 5 {
        middle[x] = taps([a[x], b[x], c[x], d[x], e[x], f[x]]);
    }
    for x in 0..width {
        below[x] = clipped(middle[x + 2]);
        // (a - 5 b + 20 c + 512) / 1024 of sums of pairs, in 16 bits: what saturates is far outside of samples.
        let (a, b, c) = (middle[x] + middle[x + 5], middle[x + 1] + middle[x + 4], middle[x + 2] + middle[x + 3]);
        let sum = ((a - b) >> 2).wrapping_sub(b).saturating_add(c);
        both[x] = ((sum >> 2).wrapping_add(c).wrapping_add(32) >> 6).clamp(0, 255) as u8;
    }
}

pub(super) unsafe fn transform(source: &Samples, prediction: &Samples, out: &mut Lanes) {
    for (at, (a, b)) in source.0.iter().zip(&prediction.0).enumerate() {
        let (x, y) = (at % 16, at / 16);
        out.0[y % 4 * 4 + x % 4][y / 4 * 4 + x / 4] = i16::from(*a) - i16::from(*b);
    }
    forward(out);
}

/// The values of a lane at four places. (Not `map`, which compilers do not always see through.)
#[inline(always)]
fn four(lanes: &Lanes, [a, b, c, d]: [usize; 4], lane: usize) -> [i16; 4] {
    [lanes.0[a][lane], lanes.0[b][lane], lanes.0[c][lane], lanes.0[d][lane]]
}

/// The forward transform of differences, in place.
#[inline(always)]
pub(super) fn forward(lanes: &mut Lanes) {
    #[inline(always)]
    fn butterfly(lanes: &mut Lanes, places: [usize; 4]) {
        for lane in 0..16 {
            let [a, b, c, d] = four(lanes, places, lane);
            let (sum, near, less, far) = (a + d, b + c, a - d, b - c);
            lanes.0[places[0]][lane] = sum + near;
            lanes.0[places[1]][lane] = 2 * less + far;
            lanes.0[places[2]][lane] = sum - near;
            lanes.0[places[3]][lane] = less - 2 * far;
        }
    }
    for i in 0..4 {
        butterfly(lanes, [4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3]);
    }
    for i in 0..4 {
        butterfly(lanes, [i, i + 4, i + 8, i + 12]);
    }
}

#[inline(always)]
pub(super) unsafe fn divide(lanes: &mut Lanes, by: &Division) -> u16 {
    let mut any = [0_i16; 16];
    for ((values, factor), bias) in lanes.0.iter_mut().zip(by.factor).zip(by.bias) {
        for (value, any) in values.iter_mut().zip(&mut any) {
            let size = value.unsigned_abs().wrapping_add(bias);
            let level = ((u32::from(size) * u32::from(factor)) >> 16) as i16;
            *value = if *value < 0 { -level } else { level };
            *any |= level;
        }
    }
    (0..16).fold(0, |bits, lane| bits | u16::from(any[lane] != 0) << lane)
}

pub(super) unsafe fn scan(lanes: &Lanes, levels: &mut Levels) {
    for (block, (to, bits)) in levels.blocks.iter_mut().zip(&mut levels.places).enumerate() {
        *to = ZIGZAG.map(|place| lanes.0[place][block]);
        *bits = places(to);
    }
}

/// Levels as coefficients.
#[inline(always)]
pub(super) fn scaled(coefficients: Coefficients<'_>) -> Lanes {
    let Coefficients { levels, factors, constant } = coefficients;
    let mut lanes = Lanes([[0; 16]; 16]);
    for ((to, from), factor) in lanes.0.iter_mut().zip(&levels.0).zip(factors) {
        to.iter_mut().zip(from).for_each(|(to, level)| *to = level.wrapping_mul(*factor));
    }
    if let Some(constant) = constant {
        lanes.0[0] = constant;
    }
    lanes
}

/// Half of the sums of absolute values of Hadamard-transformed blocks, one block a lane.
fn transformed_sums(lanes: &mut Lanes) -> [u16; 16] {
    fn step(lanes: &mut Lanes, places: [usize; 4]) {
        for lane in 0..16 {
            let [a, b, c, d] = four(lanes, places, lane);
            let (s, t, u, v) = (a + b, c + d, a - b, c - d);
            lanes.0[places[0]][lane] = s + t;
            lanes.0[places[1]][lane] = s - t;
            lanes.0[places[2]][lane] = u + v;
            lanes.0[places[3]][lane] = u - v;
        }
    }
    for i in 0..4 {
        step(lanes, [4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3]);
    }
    for i in 0..4 {
        step(lanes, [i, i + 4, i + 8, i + 12]);
    }
    let mut sums = [0_u16; 16];
    for values in &lanes.0 {
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value.unsigned_abs());
    }
    sums.iter_mut().for_each(|sum| *sum /= 2);
    sums
}

/// The inverse transform, with its rounding: what is to be added to a prediction.
#[inline(always)]
pub(super) fn inverse(lanes: &mut Lanes) {
    #[inline(always)]
    fn butterfly(lanes: &mut Lanes, places: [usize; 4], round: i16) {
        for lane in 0..16 {
            let [a, b, c, d] = four(lanes, places, lane);
            let (even, odd) = (a.wrapping_add(c), a.wrapping_sub(c));
            let (less, more) = ((b >> 1).wrapping_sub(d), b.wrapping_add(d >> 1));
            let (even, odd) = (even.wrapping_add(round), odd.wrapping_add(round));
            lanes.0[places[0]][lane] = even.wrapping_add(more);
            lanes.0[places[1]][lane] = odd.wrapping_add(less);
            lanes.0[places[2]][lane] = odd.wrapping_sub(less);
            lanes.0[places[3]][lane] = even.wrapping_sub(more);
        }
    }
    for i in 0..4 {
        butterfly(lanes, [4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3], 0);
    }
    for i in 0..4 {
        butterfly(lanes, [i, i + 4, i + 8, i + 12], 32);
    }
    lanes.0.iter_mut().flatten().for_each(|value| *value >>= 6);
}

pub(super) unsafe fn reconstruct(coefficients: Coefficients<'_>, prediction: &Samples, out: &mut Samples) {
    let mut lanes = scaled(coefficients);
    inverse(&mut lanes);
    for (at, (to, from)) in out.0.iter_mut().zip(&prediction.0).enumerate() {
        let (x, y) = (at % 16, at / 16);
        *to = (i16::from(*from) + lanes.0[y % 4 * 4 + x % 4][y / 4 * 4 + x / 4]).clamp(0, 255) as u8;
    }
}

#[inline(always)]
pub(super) unsafe fn chroma(to: *mut u8, from: *const u8, stride: usize, eighths: [u8; 2], size: usize) {
    let [x, y] = eighths.map(u16::from);
    let weights = [(8 - x) * (8 - y), x * (8 - y), (8 - x) * y, x * y];
    for row in 0..size {
        // SAFETY: the caller's pointers are valid for the block, and one row and column more.
        let (to, a, b) = unsafe {
            (
                samples_mut(to.add(row * 16), size),
                samples(from.add(row * stride), size + 1),
                samples(from.add((row + 1) * stride), size + 1),
            )
        };
        for i in 0..size {
            let part = |weight: usize, sample: u8| weights[weight] * u16::from(sample);
            let sum = part(0, a[i]) + part(1, a[i + 1]) + part(2, b[i]) + part(3, b[i + 1]);
            to[i] = ((sum + 32) >> 6) as u8;
        }
    }
}

/// A sample of each of sixteen places along an edge.
type Along = [i16; 16];

/// As a vector.
///
/// # Safety
/// The processor supports the instruction set of `V`; so for all functions below.
#[inline(always)]
unsafe fn vector<V: Sixteen>(along: Along) -> V {
    // SAFETY: by the caller; an array is sixteen words.
    unsafe { V::load(along.as_ptr()) }
}

/// What is left of a vector in the range of samples.
#[inline(always)]
unsafe fn clamped<V: Sixteen>(vector: V) -> [u8; 16] {
    let mut along = [0; 16];
    // SAFETY: as above.
    unsafe { vector.max(V::splat(0)).min(V::splat(255)).store(along.as_mut_ptr()) };
    along.map(|sample| sample as u8)
}

/// The limit of each place along an edge, of which every quarter is so long; less than zero where nothing is done.
#[inline(always)]
fn limits(edge: &Edge, quarter: usize) -> Along {
    std::array::from_fn(|i| edge.limit[i / quarter % 4].map_or(-1, i16::from))
}

pub(super) unsafe fn smooth_luma<V: Sixteen>(at: *mut u8, stride: usize, edge: &Edge, between_rows: bool) {
    let (along, across) = if between_rows { (1, stride as isize) } else { (stride, 1) };
    // SAFETY: the caller's pointer is valid for four samples on both sides of the edge, and the instruction set is there.
    unsafe {
        let sample = |i: usize, distance: isize| at.add(i * along).offset(distance * across);
        let line = |distance: isize| vector::<V>(std::array::from_fn(|i| sample(i, distance).read().into()));
        let mut p = [-1, -2, -3, -4].map(line);
        let mut q = [0, 1, 2, 3].map(line);
        if !smooth_lines(&mut p, &mut q, edge, vector(limits(edge, 4))) {
            return;
        }
        for (k, (p, q)) in p.into_iter().zip(q).take(3).enumerate() {
            let (p, q) = (clamped(p), clamped(q));
            for i in 0..16 {
                sample(i, -1 - k as isize).write(p[i]);
                sample(i, k as isize).write(q[i]);
            }
        }
    }
}

pub(super) unsafe fn smooth_chroma<V: Sixteen>(at: [*mut u8; 2], stride: usize, edge: &Edge, between_rows: bool) {
    let (along, across) = if between_rows { (1, stride as isize) } else { (stride, 1) };
    // SAFETY: the caller's pointers are valid for two samples on both sides of the edge, and the instruction set is there.
    unsafe {
        let sample = |i: usize, distance: isize| at[i / 8].add(i % 8 * along).offset(distance * across);
        let line = |distance: isize| vector::<V>(std::array::from_fn(|i| sample(i, distance).read().into()));
        let limits = vector(limits(edge, 2));
        let (p, q) = smooth_pairs([-1, -2].map(line), [0, 1].map(line), edge, limits);
        let (p, q) = (clamped(p), clamped(q));
        for i in 0..16 {
            sample(i, -1).write(p[i]);
            sample(i, 0).write(q[i]);
        }
    }
}
