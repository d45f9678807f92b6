//! The check: every element of y against its sum in double precision.
//!
//! What is allowed of a sum is [`DEVIATIONS`] times u sqrt(sum of s^2) over the partial sums s of the kernel's chains, each
//! of which is rounded once: far less than one product is worth, however long the row. A right result may lie beyond where
//! roundings are not independent (a row of equal numbers). Such elements are computed again by the plain code of the
//! definition: they must have its bits, and lie within the bound that holds whatever the roundings are.

use crate::kernel::{self, CHAINS, Matrix, SPAN};
use multigrain::app::{Checked, Comparison, DEVIATIONS, UNDERFLOW, UNIT_ROUNDOFF, rounding_bound};
use multigrain::prelude::*;
use multigrain_simd::Isa;

/// Rows that are read together where they are long.
const ROWS: u64 = 64;

/// A row's sum in double precision.
#[derive(Clone, Copy, Default)]
struct Sum {
    exact: f64,
    /// Sum of the absolute values.
    scale: f64,
    /// Sum of the squares of all partial sums.
    squares: f64,
}

/// Compares all elements of y = A x.
pub(crate) fn check(outcome: &Outcome, m: u64, n: u64) -> Result<Checked, Error> {
    let span = SPAN as u64;
    let band = outcome.band_elements();
    // A sum takes as much as six elements.
    let rows = (band / n.max(6)).clamp(ROWS, band / 6).min(m);
    let columns = (band / rows / span * span).max(span).min(n);
    // A product passes through its chain, the halvings of the chains, and one sum a span.
    let bound = rounding_bound(n.min(span).div_ceil(CHAINS as u64) + u64::from(CHAINS.ilog2()) + n.div_ceil(span));
    let (mut comparison, mut wrong, mut again) = (Comparison::default(), None, 0u64);
    for (row, rows) in blocks(m, rows) {
        let mut sums = vec![Sum::default(); rows as usize];
        for (first, len) in blocks(n, columns) {
            let x = outcome.read_f32(1, &Region::new(&[first], &[len]))?;
            let a = outcome.read_f32(0, &Region::new(&[row, first], &[rows, len]))?;
            for (a, sum) in a.chunks_exact(len as usize).zip(&mut sums) {
                a.chunks(SPAN).zip(x.chunks(SPAN)).for_each(|(a, x)| sum.add(a, x));
            }
        }
        let found = outcome.read_f32(2, &Region::new(&[row], &[rows]))?;
        for (i, (&found, sum)) in (row..).zip(found.iter().zip(&sums)) {
            let underflow = (n + CHAINS as u64) as f64 * UNDERFLOW;
            let allowed = DEVIATIONS * UNIT_ROUNDOFF * sum.squares.sqrt() + underflow;
            let error = (f64::from(found) - sum.exact).abs();
            let error = if error == 0.0 { 0.0 } else { error / allowed };
            if error <= 1.0 {
                comparison.add_error(error, 1);
                continue;
            }
            again += 1;
            let defined = defined(outcome, i, n, columns)?;
            let same = found.to_bits() == defined.to_bits();
            if !comparison.add_again(found, same, (sum.exact, sum.scale), bound, error) && wrong.is_none() {
                wrong = Some(format!("element {i} is {found}, {} was expected", sum.exact));
            }
        }
    }
    let covered = format!(
        "every element against its sum in double precision, {DEVIATIONS} standard deviations of its roundings allowed; \
         {again} of them by the definition's bits"
    );
    Ok(Checked { wrong, ..comparison.checked(1.0, covered) })
}

impl Sum {
    /// Adds the products of one span.
    fn add(&mut self, a: &[f32], x: &[f32]) {
        let (mut chains, mut squares) = ([0.0f64; CHAINS], [0.0f64; CHAINS]);
        let mut scale = [0.0f64; CHAINS];
        for (a, x) in a.chunks(CHAINS).zip(x.chunks(CHAINS)) {
            let lanes = chains.iter_mut().zip(&mut squares).zip(&mut scale);
            for (((sum, squares), scale), (&a, &x)) in lanes.zip(a.iter().zip(x)) {
                let product = f64::from(a) * f64::from(x);
                *sum += product;
                *scale += product.abs();
                *squares += *sum * *sum;
            }
        }
        let mut half = CHAINS / 2;
        self.squares += squares.iter().sum::<f64>();
        self.scale += scale.iter().sum::<f64>();
        while half > 0 {
            for i in 0..half {
                chains[i] += chains[i + half];
                self.squares += chains[i] * chains[i];
            }
            half /= 2;
        }
        self.exact += chains[0];
        self.squares += self.exact * self.exact;
    }
}

/// An element by the plain code of the definition, `columns` of the row at a time, which is a multiple of [`SPAN`].
fn defined(outcome: &Outcome, row: u64, n: u64, columns: u64) -> Result<f32, Error> {
    let mut y = [0.0f32];
    for (first, len) in blocks(n, columns) {
        let x = outcome.read_f32(1, &Region::new(&[first], &[len]))?;
        let a = outcome.read_f32(0, &Region::new(&[row, first], &[1, len]))?;
        let refused = |e: kernel::SgemvError| Error::After(e.to_string());
        let a = Matrix::new(&a, 1, len as usize, len as usize).map_err(refused)?;
        match first {
            0 => kernel::write(Isa::Scalar, a, &x, &mut y),
            _ => kernel::update(Isa::Scalar, a, &x, &mut y),
        }
        .map_err(refused)?;
    }
    Ok(y[0])
}
