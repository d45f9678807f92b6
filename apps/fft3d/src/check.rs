//! The check: direct sums in double precision at sampled places, and Parseval's theorem over the whole volume.

use crate::kernel::cos_sin;
use multigrain::app::{Checked, Comparison, rounding_bound};
use multigrain::prelude::*;

/// Results that are compared with direct sums.
const SAMPLES: u64 = 8;
/// Elements that are read at once.
const BAND_ELEMENTS: u64 = 1 << 20;
/// Roundings on the way to a result, for each factor of two of the number of elements: an addition, and a product with a
/// twiddle, itself rounded.
const ROUNDINGS: u64 = 3;

/// Where the volume is found as it was before.
pub(crate) enum Initial {
    /// In this array.
    Array(usize),
    /// It was generated from this seed and has been overwritten.
    Generated(u64),
}

/// Checks a result. Errors are relative to the largest result, as those of a fast transform are.
pub(crate) fn check(
    outcome: &Outcome,
    initial: &Initial,
    result: usize,
    shape: [u64; 3],
    inverse: bool,
) -> Result<Checked, Error> {
    let elements: u64 = shape.iter().product();
    let samples = samples(shape);
    let mut sums = vec![(0.0f64, 0.0f64); samples.len()];
    let mut before = 0.0f64;
    // exp(-+ 2 pi i k z / Z) for each sample's k along z.
    let along_z: Vec<Vec<(f64, f64)>> =
        samples.iter().map(|k| (0..shape[2]).map(|z| root(k[2], z, shape[2], inverse)).collect()).collect();
    bands(shape, |region| {
        let bytes = match initial {
            Initial::Array(array) => outcome.read(*array, region)?,
            Initial::Generated(seed) => generated(*seed, shape, region),
        };
        let row = 8 * shape[2] as usize;
        for (i, row) in bytes.chunks_exact(row).enumerate() {
            let x = region.start()[0] + i as u64 / region.len()[1];
            let y = region.start()[1] + i as u64 % region.len()[1];
            let row: Vec<(f64, f64)> = row.chunks_exact(8).map(number).collect();
            before += row.iter().map(|(re, im)| re * re + im * im).sum::<f64>();
            for ((sum, k), roots) in sums.iter_mut().zip(&samples).zip(&along_z) {
                let inner = row.iter().zip(roots).fold((0.0, 0.0), |sum, (x, w)| plus(sum, times(*x, *w)));
                let w = times(root(k[0], x, shape[0], inverse), root(k[1], y, shape[1], inverse));
                *sum = plus(*sum, times(inner, w));
            }
        }
        Ok(())
    })?;
    let (mut after, mut largest) = (0.0f64, 0.0f64);
    bands(shape, |region| {
        for (re, im) in outcome.read(result, region)?.chunks_exact(8).map(number) {
            let square = re * re + im * im;
            after += square;
            largest = largest.max(square);
        }
        Ok(())
    })?;
    let factor = if inverse { 1.0 / elements as f64 } else { 1.0 };
    let scale = sums.iter().fold(largest.sqrt(), |most, sum| most.max(factor * sum.0.hypot(sum.1)));
    let mut comparison = Comparison::default();
    for (k, sum) in samples.iter().zip(&sums) {
        let (re, im) = number(&outcome.read(result, &Region::new(k, &[1, 1, 1]))?);
        comparison.add(re as f32, factor * sum.0, scale);
        comparison.add(im as f32, factor * sum.1, scale);
    }
    let stages = u64::from(elements.max(2).ilog2()) + 1;
    let mut checked = comparison.checked(rounding_bound(ROUNDINGS * stages), String::new());
    // Sum of squares of the results = N times that of the elements, 1 / N times for the inverse.
    let expected = before * if inverse { 1.0 / elements as f64 } else { elements as f64 };
    if expected.is_finite() && expected > 0.0 && scale < f64::from(f32::MAX) {
        let error = (after - expected).abs() / expected;
        // Both sums of squares are relative to amplitudes twice.
        let error = if error.is_nan() { f64::INFINITY } else { error / 2.0 };
        checked.max_relative_error = checked.max_relative_error.max(error);
    }
    Ok(checked)
}

/// The first place, the last, and places scattered between them.
fn samples(shape: [u64; 3]) -> Vec<[u64; 3]> {
    let place = |i: u64| {
        let mut axis = 0;
        shape.map(|n| {
            axis += 1;
            match i {
                0 => 0,
                1 => n - 1,
                _ => ((generate::f64_at(i, axis) + 1.0) / 2.0 * n as f64) as u64 % n,
            }
        })
    };
    let mut places: Vec<[u64; 3]> = (0..SAMPLES).map(place).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Calls with regions of whole rows that cover the volume.
fn bands(shape: [u64; 3], mut each: impl FnMut(&Region) -> Result<(), Error>) -> Result<(), Error> {
    let [nx, ny, nz] = shape;
    let planes = (BAND_ELEMENTS / (ny * nz)).max(1);
    let rows = if planes > 1 { ny } else { (BAND_ELEMENTS / nz).clamp(1, ny) };
    for (x, planes) in blocks(nx, planes) {
        for (y, rows) in blocks(ny, rows) {
            each(&Region::new(&[x, y, 0], &[planes, rows, nz]))?;
        }
    }
    Ok(())
}

/// The bytes of a generated volume in a region of whole rows: one run, or the rows of one plane.
fn generated(seed: u64, shape: [u64; 3], region: &Region) -> Vec<u8> {
    let first = (region.start()[0] * shape[1] + region.start()[1]) * shape[2];
    let mut bytes = vec![0; 8 * region.elements() as usize];
    generate::fill(ElementType::C64, seed, first, &mut bytes);
    bytes
}

fn number(bytes: &[u8]) -> (f64, f64) {
    let part = |at: usize| f64::from(f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    (part(0), part(4))
}

/// exp(-2 pi i k at / n), or its conjugate for the inverse.
fn root(k: u64, at: u64, n: u64, inverse: bool) -> (f64, f64) {
    let turn = (u128::from(k) * u128::from(at) % u128::from(n)) as u64;
    let (c, s) = cos_sin(turn, n);
    (c, if inverse { s } else { -s })
}

fn times(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn plus(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 + b.0, a.1 + b.1)
}
