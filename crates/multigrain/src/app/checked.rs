//! What the checks of applications share: results, comparisons, random probes and what they are allowed to err by.

use crate::error::Error;

/// The result of a check that is independent of what it checks: in double precision, by other code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// Largest error found, relative to the sum of the absolute values of the terms.
    pub max_relative_error: f64,
    /// What is allowed, from the number of terms.
    pub tolerance: f64,
    /// How many elements of the result the check depends on.
    pub elements: u64,
    /// What was looked at and how, and with which probability an error of which size may have escaped; in words.
    pub covered: String,
    /// What should have been looked at and could not be, and how it could, in words; without it a result that holds is right.
    pub uncovered: Option<String>,
    /// The worst element of a wrong result, in words, where it was found.
    pub wrong: Option<String>,
    /// What else the check has found and does not judge, for reports: name and value.
    pub figures: Vec<(&'static str, f64)>,
}

impl Checked {
    /// Whether nothing wrong was found.
    pub fn holds(&self) -> bool {
        self.max_relative_error <= self.tolerance
    }
}

/// Compares elements with a reference in double precision and keeps the largest error.
///
/// What is not finite is held to one rule. Where the reference is finite it is wrong, unless sums may have overflowed on
/// their way; there, and where the reference is not finite either, nothing can be said: such elements are counted, told in
/// what was covered, and never called right. What is finite where the reference is not is wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Comparison {
    worst: f64,
    elements: u64,
    unjudged: u64,
}

impl Comparison {
    /// Compares one element: `exact` is its value in double precision, `scale` the sum of the absolute values of the
    /// terms it was summed from, to which the error is relative.
    ///
    /// A sum may have overflowed on its way where its scale is beyond single precision. Scales below the normal numbers
    /// count as the least of these: there a rounding errs by a fixed amount.
    pub fn add(&mut self, found: f32, exact: f64, scale: f64) {
        let found = f64::from(found);
        let error = (found - exact).abs() / scale.max(f64::from(f32::MIN_POSITIVE));
        self.add_beside(found, exact, error, !scale.is_finite() || scale > f64::from(f32::MAX), 1);
    }

    /// Takes so many elements that were compared elsewhere, with what was found of them (an element, a sum) and what was
    /// expected, the error if both are finite, and whether something may have overflowed; the error that was taken.
    pub fn add_beside(&mut self, found: f64, exact: f64, error: f64, may_overflow: bool, elements: u64) -> f64 {
        let error = match (found.is_finite(), exact.is_finite()) {
            (true, true) => error,
            (false, exact_is_finite) if may_overflow || !exact_is_finite => {
                self.unjudged += elements;
                return 0.0;
            }
            _ => f64::INFINITY,
        };
        self.add_error(error, elements);
        error
    }

    /// Takes an element that was `beyond` what is allowed, so that it was computed again: `same` says whether by the
    /// definition it has these bits; and its error may be no more than `bound`, as in [`Comparison::add`]. Whether it is
    /// right; against a tolerance of 1.
    pub fn add_again(&mut self, found: f32, same: bool, exact: (f64, f64), bound: f64, beyond: f64) -> bool {
        let mut one = Comparison::default();
        one.add(found, exact.0, exact.1);
        let error = one.worst / bound;
        if !same {
            self.add_error(error.max(beyond).max(2.0), 1);
            return false;
        }
        self.unjudged += one.unjudged;
        self.add_error(error, one.elements);
        error <= 1.0
    }

    /// Takes the error of so many elements that were compared elsewhere; against a tolerance of 1 it is a part of what is
    /// allowed.
    pub fn add_error(&mut self, error: f64, elements: u64) {
        self.elements += elements;
        self.worst = if error.is_nan() { f64::INFINITY } else { self.worst.max(error) };
    }

    /// Counts what will not be looked at again.
    fn give_up(&mut self, beyond: &Beyond) {
        if beyond.ratio.is_nan() {
            self.unjudged += beyond.elements;
        }
    }

    /// The result, against a tolerance.
    pub fn checked(&self, tolerance: f64, covered: String) -> Checked {
        let mut covered = covered;
        let Comparison { worst, elements, unjudged } = *self;
        if unjudged > 0 {
            covered += &format!("; not judged, being NaN or infinite as their inputs may make them: {unjudged}");
        }
        let uncovered = (unjudged > 0 && elements == 0).then(|| {
            "every element that was looked at is NaN or infinite, as its inputs may make it, so none could be judged: look \
             for such numbers in the inputs, and for some too large for float32"
                .to_owned()
        });
        Checked { max_relative_error: worst, tolerance, elements, covered, uncovered, ..Checked::default() }
    }
}

/// Number `index` of a random probe: its sign is random, its absolute value uniform in [1/2, 1].
///
/// A linear functional with these weights loses no error of one element, which enters with at least half of its size.
/// Of an error in many elements, the largest of size `f` times what is allowed, it loses a part of at most 2 / `f` of all
/// probes: given all other weights, that element's must lie in an interval of length 2 / `f`, and its density is 1. So
/// `rounds` independent probes lose it with a probability of at most (2 / f)^rounds. (Freivalds 1977, for products, has
/// weights 0 and 1 and loses any error with 1/2 a round.)
pub fn probe(seed: u64, index: u64) -> f64 {
    let number = crate::generate::f64_at(seed, index);
    (1.0 + number.abs()).copysign(number) / 2.0
}

/// How far the roundings of a right result may lie from what is expected of them, in standard deviations, before a check
/// computes the elements again.
///
/// Roundings to single precision of partial sums s are taken as independent, each at most u |s| with u = 2^-24 (Higham and
/// Mary, SIAM J. Sci. Comput. 41, 2019), so the deviation of a sum of theirs is at most u sqrt(sum of s^2). Where they are
/// not, as in sums of equal numbers, a right result may go beyond; the bits that the definition gives decide then.
pub const DEVIATIONS: f64 = 32.0;

/// Unit roundoff of single precision, 2^-24.
pub const UNIT_ROUNDOFF: f64 = 1.0 / 16_777_216.0;

/// Half of the least positive number of single precision: what a rounding below the normal numbers errs by at most.
pub const UNDERFLOW: f64 = f64::from_bits((1023 - 150) << 52);

/// The largest relative error of `roundings` roundings to single precision one after the other: gamma_n = nu / (1 - nu)
/// with the unit roundoff u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, lemma 3.1).
pub fn rounding_bound(roundings: u64) -> f64 {
    let nu = roundings as f64 * (f64::from(f32::EPSILON) / 2.0);
    if nu < 1.0 { nu / (1.0 - nu) } else { f64::INFINITY }
}

/// A row in a group of columns whose probes are beyond what is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Beyond {
    /// The row.
    pub row: u64,
    /// The group of columns.
    pub group: u64,
    /// Elements of the row in the group.
    pub elements: u64,
    /// By how many times it is beyond; no number where neither what is expected nor what was found is one.
    pub ratio: f64,
}

/// Where partial sums of probes are larger, an element's may have been beyond single precision: a probe weighs it by at least a
/// half, and a sum of squares of partial sums by as little as a half again, and elements beside it may take away from it.
const OVERFLOWING: f64 = f32::MAX as f64 / 16.0;

/// Probes that are beyond what is allowed and remembered: the worst ones.
const REMEMBERED: usize = 4096;

/// What random probes of a matrix, by row and group of columns, have found.
#[derive(Debug, Default)]
pub struct Probed {
    /// The largest error so far.
    pub comparison: Comparison,
    beyond: Vec<Beyond>,
    forgotten: u64,
}

impl Probed {
    /// Takes what the probes of one row and group of columns found and what was expected; `allowed` is what they may differ
    /// by, [`DEVIATIONS`] of it. So many elements are in the probes, and so many were left out, being as little a number as their inputs.
    pub fn compare(
        &mut self,
        at: (u64, u64),
        (elements, left_out): (u64, u64),
        probes: impl Iterator<Item = (f64, f64)>,
        allowed: f64,
    ) {
        let mut ratio: f64 = 0.0;
        let may_overflow = allowed > DEVIATIONS * UNIT_ROUNDOFF * OVERFLOWING;
        for (found, expected) in probes {
            // What is no number where a number is expected is as wrong as can be, and the reverse.
            let error = match (found.is_finite(), expected.is_finite() && allowed.is_finite()) {
                (true, true) => (found - expected).abs() / allowed,
                (false, is_finite) if may_overflow || !is_finite => f64::NAN,
                _ => f64::INFINITY,
            };
            ratio = if error.is_nan() || ratio.is_nan() { f64::NAN } else { ratio.max(error) };
        }
        if ratio <= 1.0 {
            self.comparison.unjudged += left_out;
            return self.comparison.add_error(ratio, elements);
        }
        self.beyond.push(Beyond { row: at.0, group: at.1, elements: elements + left_out, ratio });
        if self.beyond.len() >= 2 * REMEMBERED {
            self.sort();
            for forgotten in self.beyond.drain(REMEMBERED..) {
                self.forgotten += 1;
                self.comparison.give_up(&forgotten);
            }
        }
    }

    /// The worst first; those of which nothing is known last.
    fn sort(&mut self) {
        self.beyond.sort_by(|a, b| a.ratio.is_nan().cmp(&b.ratio.is_nan()).then(b.ratio.total_cmp(&a.ratio)));
    }

    /// Has computed again what is beyond, the worst first, up to `together` rows of one group and `affordable` of all, until
    /// an element is found wrong: `again` enters them into the comparison and says which element is. What it could not look
    /// at is wrong where a number is expected, and else said to be undecided. `covered` says what the probes were.
    ///
    /// # Errors
    /// Those of `again`.
    pub fn judge(
        mut self,
        together: usize,
        affordable: u64,
        covered: &str,
        mut again: impl FnMut(&[Beyond], &mut Comparison) -> Result<Option<String>, Error>,
    ) -> Result<Checked, Error> {
        self.sort();
        let Probed { mut comparison, beyond, forgotten } = self;
        let (mut wrong, mut done) = (None, 0u64);
        let mut rest = &beyond[..];
        while let ([worst, ..], None) = (rest, &wrong) {
            if done >= affordable.max(1) {
                break;
            }
            let most = together.min((affordable.max(1) - done) as usize);
            let count = rest.iter().take(most).take_while(|b| b.group == worst.group).count();
            let (these, others) = rest.split_at(count);
            (rest, done) = (others, done + count as u64);
            wrong = again(these, &mut comparison)?;
        }
        let covered = format!("{covered}; {done} parts of rows by the definition's bits");
        let undecided = if wrong.is_none() { forgotten + rest.len() as u64 } else { 0 };
        if undecided > 0 {
            rest.iter().filter(|left| !left.ratio.is_nan()).for_each(|left| comparison.add_error(left.ratio, 0));
            rest.iter().for_each(|left| comparison.give_up(left));
        }
        let mut checked = comparison.checked(1.0, covered);
        if undecided > 0 && checked.holds() {
            checked.uncovered = Some(format!(
                "{undecided} parts of rows were not decided: their probes are beyond what roundings usually make, or NaN or \
                 infinite as numbers of the inputs may make them, and they are too many to be computed again; look for such \
                 numbers in the inputs, and for some too large for float32"
            ));
        }
        Ok(Checked { wrong, ..checked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many rows of which the probes found and expected this, and 32 are looked at again, which are right.
    fn judged(rows: u64, probes: (f64, f64), allowed: f64) -> Checked {
        let mut probed = Probed::default();
        for row in 0..rows {
            probed.compare((row, 0), (8, 0), [probes].into_iter(), allowed);
        }
        let again = |these: &[Beyond], comparison: &mut Comparison| {
            these.iter().for_each(|beyond| comparison.add_error(0.0, beyond.elements));
            Ok(None)
        };
        probed.judge(16, 32, "all", again).unwrap()
    }

    #[test]
    fn what_may_have_overflowed_is_not_called_wrong() {
        let of_sums = |sums: f64| DEVIATIONS * UNIT_ROUNDOFF * sums;
        let most = f64::from(f32::MAX);
        let overflown = judged(33, (f64::INFINITY, 2.0 * most), of_sums(most));
        assert!(overflown.holds() && overflown.uncovered.is_some(), "{overflown:?}");
        let wrong = judged(33, (f64::INFINITY, 1.0), of_sums(most / 1e3));
        assert!(!wrong.holds(), "{wrong:?}");
    }

    #[test]
    fn what_was_not_decided_is_not_called_right() {
        let checked = |rows: u64| judged(rows, (f64::NAN, f64::NAN), 1.0);
        let few = checked(32);
        assert!(few.holds() && few.uncovered.is_none(), "{few:?}");
        // More than are remembered.
        for rows in [33, 20_000] {
            let many = checked(rows);
            let left = format!("{} parts of rows were not decided", rows - 32);
            assert!(many.holds() && many.uncovered.as_ref().is_some_and(|what| what.contains(&left)), "{many:?}");
        }
    }
}
