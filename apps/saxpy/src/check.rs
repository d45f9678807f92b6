//! The check: every element against alpha x + y in double precision, rounded once.

use multigrain::app::{Checked, Comparison, UNDERFLOW, UNIT_ROUNDOFF};
use multigrain::prelude::*;

/// Where y is found as it was before.
#[derive(Clone, Copy)]
pub(crate) enum Before {
    Array(usize),
    Generated(u64),
}

/// Compares all elements. In double precision the product is exact and the sum errs by 2^-53 of itself, which the bound of
/// the one rounding to single precision is widened by.
pub(crate) fn check(outcome: &Outcome, n: u64, alpha: f32, before: Before, result: usize) -> Result<Checked, Error> {
    let mut comparison = Comparison::default();
    let mut wrong = None;
    for (first, len) in blocks(n, outcome.band_elements()) {
        let region = Region::new(&[first], &[len]);
        let x = outcome.read_f32(0, &region)?;
        let y = match before {
            Before::Array(array) => outcome.read_f32(array, &region)?,
            Before::Generated(seed) => (first..first + len).map(|i| generate::f32_at(seed, i)).collect(),
        };
        for (i, ((found, x), y)) in (first..).zip(outcome.read_f32(result, &region)?.into_iter().zip(x).zip(y)) {
            let exact = f64::from(alpha) * f64::from(x) + f64::from(y);
            let bound = UNIT_ROUNDOFF * (1.0 + 1e-8) * exact.abs() + UNDERFLOW;
            let value = f64::from(found);
            // A sum overflows to what its rounding is.
            let overflows = value == f64::from(exact as f32);
            let error = comparison.add_beside(value, exact, (value - exact).abs() / bound, overflows, 1);
            if error > 1.0 && wrong.is_none() {
                wrong = Some(format!("element {i} is {found}, {exact} was expected"));
            }
        }
    }
    let covered = "every element against double precision; what is allowed is one rounding".to_owned();
    Ok(Checked { wrong, ..comparison.checked(1.0, covered) })
}
