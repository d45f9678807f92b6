//! The check: random linear functionals of every line of the result, against another library in double precision.
//!
//! A functional is separable: a weight for each place along z, or along y and z, of random phase and an absolute value in
//! [1/2, 1]. Applied to a transform Y = F X along z it is, by symmetry, that of X with the transform of the weights; what is
//! left is a transform of far fewer numbers along the other axes. So with one pass over the elements and one over the results
//! every line along z (every plane, where memory does not hold a number a line) is compared with what RustFFT, in double
//! precision, makes of it: [`ROUNDS`] times. Of an error in a line, the largest element of size `f` times what is allowed, a
//! part of at most (2 / f^2)^[`ROUNDS`] is lost: given all other weights, that element's must lie in a disk of radius 1 / `f`,
//! and the density of weights is at most 2 / pi. An error of one element is never lost where `f` > 2.
//!
//! **What is allowed.** A fast transform errs by a small multiple of u log N of the root of the sum of squares (Gentleman and
//! Sande 1966), spread evenly but for what is large itself. So a line may err by so much of its own root of the sum of squares
//! and of the mean line's.

use crate::kernel::roundings;
use multigrain::app::{Checked, Comparison, rounding_bound};
use multigrain::prelude::*;
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftPlanner};
use std::f64::consts::TAU;

/// Independent functionals.
const ROUNDS: u64 = 2;
/// Bytes that the sums of one line take.
const LINE_BYTES: u64 = 24;

/// Where the volume is found as it was before.
pub(crate) enum Initial {
    /// In this array.
    Array(usize),
    /// It was generated from this seed and has been overwritten.
    Generated(u64),
}

/// A functional: weights along the axes that are not kept.
struct Functional {
    /// Weights of the results, for each axis that is not kept.
    of_results: Vec<Vec<Complex<f64>>>,
    /// Weights of the elements: the transforms of the former.
    of_elements: Vec<Vec<Complex<f64>>>,
}

/// The sums of a volume for every kept place.
struct Sums {
    /// Weighted.
    weighted: Vec<Complex<f64>>,
    /// Of the squares.
    squares: Vec<f64>,
    /// Of all absolute values.
    absolute: f64,
}

/// Checks a result.
pub(crate) fn check(
    outcome: &Outcome,
    initial: &Initial,
    result: usize,
    shape: [u64; 3],
    inverse: bool,
    seed: u64,
) -> Result<Checked, Error> {
    let elements: u64 = shape.iter().product();
    let kept = if check_bytes(shape, 2) <= outcome.check_bytes() / 2 { 2 } else { 1 };
    let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
    let factor = if inverse { 1.0 / elements as f64 } else { 1.0 };
    let allowed = rounding_bound(roundings(shape));
    // Elements have eight bytes.
    let band = outcome.band_elements() / 2;
    let mut comparison = Comparison::default();
    let mut wrong = None;
    for round in 0..ROUNDS {
        let functional = Functional::new(shape, kept, direction, seed.wrapping_add(round));
        let before = sums(shape, kept, &functional.of_elements, band, |region| match initial {
            Initial::Array(array) => outcome.read(*array, region),
            Initial::Generated(seed) => Ok(generated(*seed, shape, region)),
        })?;
        let mut expected = before.weighted;
        transform(&mut expected, &shape[..kept], direction);
        let after = sums(shape, kept, &functional.of_results, band, |region| outcome.read(result, region))?;
        // The root of the sum of squares of all results, by Parseval's theorem, and of the mean line.
        let all = before.squares.iter().sum::<f64>().sqrt() * factor * (elements as f64).sqrt();
        let mean = all / (expected.len() as f64).sqrt();
        // No sum on the way is larger than that of all absolute values.
        let overflows = before.absolute > f64::from(f32::MAX);
        let underflow = f64::from(f32::MIN_POSITIVE) * (elements as f64 / expected.len() as f64).sqrt();
        for (line, ((found, expected), squares)) in after.weighted.iter().zip(&expected).zip(&after.squares).enumerate()
        {
            let error = (found - factor * expected).norm();
            let error = error / (allowed * (squares.sqrt() + mean) + underflow);
            let counted = if round == 0 { elements / after.weighted.len() as u64 } else { 0 };
            let error = comparison.add_beside(found.norm(), expected.norm(), error, overflows, counted);
            if error > 1.0 && wrong.is_none() {
                let line = line as u64;
                wrong = Some(match kept {
                    2 => format!("the results at x = {}, y = {} are wrong", line / shape[1], line % shape[1]),
                    _ => format!("the results at x = {line} are wrong"),
                });
            }
        }
    }
    let (what, each) =
        if kept == 2 { ("line along z", shape[2]) } else { ("plane along y and z", shape[1] * shape[2]) };
    let covered = format!(
        "{ROUNDS} random linear functionals of every {what} ({each} elements): an element that is wrong by 100 times what its \
         {what} may err by is lost with a probability below 1e-7"
    );
    Ok(Checked { wrong, ..comparison.checked(1.0, covered) })
}

impl Functional {
    fn new(shape: [u64; 3], kept: usize, direction: FftDirection, seed: u64) -> Functional {
        let mut number = 0;
        let mut weight = || {
            let uniform = |at: u64| (generate::f64_at(seed, at) + 1.0) / 2.0;
            number += 2;
            Complex::from_polar((1.0 + uniform(number)) / 2.0, TAU * uniform(number + 1))
        };
        let of_results: Vec<Vec<Complex<f64>>> =
            shape[kept..].iter().map(|&n| (0..n).map(|_| weight()).collect()).collect();
        let of_elements = of_results
            .iter()
            .map(|weights| {
                let mut weights = weights.clone();
                let n = weights.len() as u64;
                transform(&mut weights, &[n], direction);
                weights
            })
            .collect();
        Functional { of_results, of_elements }
    }
}

/// Bytes that a check takes at most which keeps so many of the axes: sums, weights along the other axes with their transforms,
/// and what RustFFT takes for a line. That is twiddles and scratch memory, or, for a length with prime factors that it has no
/// kernels for, those of Bluestein's algorithm (twiddles, spectrum, buffer and scratch memory of a power of two, and the chirp).
pub(crate) fn check_bytes(shape: [u64; 3], kept: usize) -> u64 {
    const KERNEL_MAX: u64 = 31;
    let beside = |n: u64| {
        let rest = (2..=KERNEL_MAX).fold(n, |mut rest, factor| {
            while rest > 1 && rest.is_multiple_of(factor) {
                rest /= factor;
            }
            rest
        });
        if rest == 1 { 2 * n } else { 4 * (2 * n).next_power_of_two() + n }
    };
    let sums = LINE_BYTES * shape[..kept].iter().product::<u64>();
    let weights: u64 = shape[kept..].iter().map(|n| 2 * n).sum();
    // Where two axes are kept, a line along the first is copied.
    let copied = if kept == 2 { shape[0] } else { 0 };
    let line = copied + shape.map(beside).into_iter().max().unwrap_or(0);
    // Those of the elements are transformed before there are any of the results.
    16 * weights + sums + sums.max(16 * line)
}

/// Transforms a dense array of one or two dimensions along all of them, without a factor.
fn transform(data: &mut [Complex<f64>], shape: &[u64], direction: FftDirection) {
    let mut planner = FftPlanner::new();
    let last = shape[shape.len() - 1] as usize;
    planner.plan_fft(last, direction).process(data);
    if let &[rows, columns] = shape {
        let (rows, columns) = (rows as usize, columns as usize);
        let fft = planner.plan_fft(rows, direction);
        let mut column = vec![Complex::default(); rows];
        for c in 0..columns {
            (0..rows).for_each(|r| column[r] = data[r * columns + c]);
            fft.process(&mut column);
            (0..rows).for_each(|r| data[r * columns + c] = column[r]);
        }
    }
}

/// Sums of a volume over the axes that are not kept; whole rows are read at once, `band` elements.
fn sums(
    shape: [u64; 3],
    kept: usize,
    weights: &[Vec<Complex<f64>>],
    band: u64,
    mut read: impl FnMut(&Region) -> Result<Vec<u8>, Error>,
) -> Result<Sums, Error> {
    let [nx, ny, nz] = shape;
    let places = shape[..kept].iter().product::<u64>() as usize;
    let mut sums = Sums { weighted: vec![Complex::default(); places], squares: vec![0.0; places], absolute: 0.0 };
    let planes = (band / (ny * nz)).max(1);
    let rows = if planes > 1 { ny } else { (band / nz).clamp(1, ny) };
    // A row may be longer than a band.
    let along_z = &weights[weights.len() - 1];
    for (x, planes) in blocks(nx, planes) {
        for (y, rows) in blocks(ny, rows) {
            for (z, columns) in blocks(nz, band) {
                let bytes = read(&Region::new(&[x, y, z], &[planes, rows, columns]))?;
                for (i, row) in bytes.chunks_exact(8 * columns as usize).enumerate() {
                    let (x, y) = (x + i as u64 / rows, y + i as u64 % rows);
                    let (mut inner, mut squares): (Complex<f64>, f64) = (Complex::default(), 0.0);
                    for (number, weight) in row.chunks_exact(8).map(number).zip(&along_z[z as usize..]) {
                        inner += number * weight;
                        squares += number.norm_sqr();
                        sums.absolute += number.re.abs() + number.im.abs();
                    }
                    let (place, weight) = match kept {
                        2 => ((x * ny + y) as usize, Complex::new(1.0, 0.0)),
                        _ => (x as usize, weights[0][y as usize]),
                    };
                    sums.weighted[place] += inner * weight;
                    sums.squares[place] += squares;
                }
            }
        }
    }
    Ok(sums)
}

/// The bytes of a generated volume in a region: one run, or parts of the rows of one plane.
fn generated(seed: u64, shape: [u64; 3], region: &Region) -> Vec<u8> {
    let (start, len) = (region.start(), region.len());
    let mut bytes = vec![0; 8 * region.elements() as usize];
    for (i, row) in bytes.chunks_exact_mut(8 * len[2] as usize).enumerate() {
        let (x, y) = (start[0] + i as u64 / len[1], start[1] + i as u64 % len[1]);
        generate::fill(ElementType::C64, seed, (x * shape[1] + y) * shape[2] + start[2], row);
    }
    bytes
}

fn number(bytes: &[u8]) -> Complex<f64> {
    let part = |at: usize| f64::from(f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    Complex::new(part(0), part(4))
}
