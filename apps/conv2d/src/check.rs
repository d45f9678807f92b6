//! The check against a plain reference in double precision.

use multigrain::app::{Checked, Comparison, rounding_bound};
use multigrain::prelude::*;

/// Rows that are computed again, spread over the result; all of them in a small one.
const CHECKED_ROWS: u64 = 16;
/// Below this many multiplications all rows are checked; with many rows of large weights fewer than
/// [`CHECKED_ROWS`] are.
const CHECK_ALL: u64 = 1 << 28;
/// Elements of a band of rows that are read at once, beside the rows of halo.
const BAND: u64 = 1 << 20;

/// One array and what was made of it.
#[derive(Clone, Copy)]
pub(crate) struct Plane {
    pub(crate) input: usize,
    pub(crate) output: usize,
}

/// The weights, row by row.
#[derive(Clone)]
pub(crate) struct Weights {
    pub(crate) rows: u64,
    pub(crate) cols: u64,
    pub(crate) values: Vec<f32>,
}

/// Compares rows of every plane of `m` x `n` elements.
pub(crate) fn check(outcome: &Outcome, planes: &[Plane], m: u64, n: u64, weights: &Weights) -> Result<Checked, Error> {
    let taps = weights.rows * weights.cols;
    let each = n.saturating_mul(taps).saturating_mul(planes.len() as u64);
    let bands: Vec<(u64, u64)> = if each.saturating_mul(m) <= CHECK_ALL {
        blocks(m, (BAND / n).max(1)).collect()
    } else {
        let count = (CHECK_ALL / each).clamp(2, CHECKED_ROWS).min(m);
        (0..count).map(|i| (i * (m - 1) / (count - 1).max(1), 1)).collect()
    };
    let mut comparison = Comparison::default();
    for plane in planes {
        for &(first, rows) in &bands {
            band(outcome, *plane, (m, n), (first, rows), weights, &mut comparison)?;
        }
    }
    Ok(comparison.checked(rounding_bound(taps), String::new()))
}

/// Compares `rows` rows from `first` on.
fn band(
    outcome: &Outcome,
    plane: Plane,
    (m, n): (u64, u64),
    (first, rows): (u64, u64),
    weights: &Weights,
    comparison: &mut Comparison,
) -> Result<(), Error> {
    let (half_rows, half_cols) = (weights.rows / 2, weights.cols / 2);
    let start = first.saturating_sub(half_rows);
    let height = (first + rows + half_rows).min(m) - start;
    let input = outcome.read_f32(plane.input, &Region::new(&[start, 0], &[height, n]))?;
    let found = outcome.read_f32(plane.output, &Region::new(&[first, 0], &[rows, n]))?;
    let mut sums = vec![(0.0f64, 0.0f64); n as usize];
    for (y, found) in (first..).zip(found.chunks_exact(n as usize)) {
        sums.fill((0.0, 0.0));
        for (i, weights) in (0..).zip(weights.values.chunks_exact(weights.cols as usize)) {
            // Tap (i, j) meets row y + i - half_rows and, of column x, element x + j - half_cols.
            let row = y + i;
            if row < half_rows || row - half_rows >= m {
                continue;
            }
            let row = &input[((row - half_rows - start) * n) as usize..][..n as usize];
            for (j, &weight) in (0..).zip(weights) {
                let from = j.max(half_cols) - half_cols;
                let to = half_cols.max(j) - j;
                let (from, to) = (from.min(n) as usize, to.min(n) as usize);
                for (&value, sum) in row[from..].iter().zip(&mut sums[to..]) {
                    let product = f64::from(weight) * f64::from(value);
                    sum.0 += product;
                    sum.1 += product.abs();
                }
            }
        }
        found.iter().zip(&sums).for_each(|(&found, &(exact, scale))| comparison.add(found, exact, scale));
    }
    Ok(())
}
