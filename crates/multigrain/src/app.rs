//! What an application gives to the front doors: a job, its shape, a check against a plain reference.

use crate::error::Error;
use crate::job::{Job, Sink, Source};
use crate::outcome::Outcome;
use crate::runtime::Runtime;
use multigrain_program::{ElementType, Shape};
use std::path::Path;

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
    /// The worst element of a wrong result, in words, where it was found.
    pub wrong: Option<String>,
    /// What else the check has found and does not judge, for reports: name and value.
    pub figures: Vec<(&'static str, f64)>,
}

impl Checked {
    /// Whether the result is right.
    pub fn holds(&self) -> bool {
        self.max_relative_error <= self.tolerance
    }
}

/// Compares elements with a reference in double precision and keeps the largest error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Comparison {
    worst: f64,
    elements: u64,
}

impl Comparison {
    /// Compares one element: `exact` is its value in double precision, `scale` the sum of the absolute values of the
    /// terms it was summed from, to which the error is relative.
    ///
    /// Where the reference is no number, or a sum of this scale may have overflowed on its way, the element may be what
    /// arithmetic gives. Scales below the normal numbers count as the least of these: there a rounding errs by a fixed
    /// amount.
    pub fn add(&mut self, found: f32, exact: f64, scale: f64) {
        self.elements += 1;
        let value = f64::from(found);
        let overflows = scale.is_nan() || scale > f64::from(f32::MAX);
        if value == exact || (found.is_nan() && exact.is_nan()) || (!found.is_finite() && overflows) {
            return;
        }
        self.add_error((value - exact).abs() / scale.max(f64::from(f32::MIN_POSITIVE)), 0);
    }

    /// Takes the error of so many elements that were compared elsewhere; against a tolerance of 1 it is a part of what is
    /// allowed.
    pub fn add_error(&mut self, error: f64, elements: u64) {
        self.elements += elements;
        self.worst = if error.is_nan() { f64::INFINITY } else { self.worst.max(error) };
    }

    /// The result, against a tolerance.
    pub fn checked(&self, tolerance: f64, covered: String) -> Checked {
        Checked { max_relative_error: self.worst, tolerance, elements: self.elements, covered, ..Checked::default() }
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

type Check = Box<dyn Fn(&Outcome, u64) -> Result<Checked, Error>>;
type After = Box<dyn Fn(&Outcome) -> Result<(), Error>>;

/// An application's job with what surrounds it.
pub struct AppJob {
    /// What is run.
    pub job: Job,
    /// Sizes, for reports: name and value.
    pub shape: Vec<(&'static str, u64)>,
    /// Compares results with what plain code in double precision finds; the number is the seed of what is random in it.
    pub check: Check,
    /// Done after a run, for example writing a picture.
    pub after: Option<After>,
}

/// Arguments of an application that can be turned into a job.
pub trait Application {
    /// Looks at the inputs and makes the job. Nothing is written.
    ///
    /// # Errors
    /// When the request is wrong: files that cannot be used, shapes that do not go together.
    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error>;
}

/// An input as it was named on the command line: its shape and where it comes from. Files that end in `.npy` tell
/// their shape; others are bare elements and take the shape that is given.
///
/// # Errors
/// The file cannot be read, or it is not of `element`, or has another number of dimensions than `rank`, or no shape
/// was given for a bare file.
pub fn input(
    runtime: &Runtime,
    path: &Path,
    element: ElementType,
    rank: usize,
    given: Option<&[u64]>,
) -> Result<(Shape, Source), Error> {
    let name = path.display();
    let npy = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"));
    if !npy {
        let Some(given) = given else {
            return Err(Error::Request(format!(
                "{name} does not end in .npy, so it is read as bare {element}; give its sizes as options"
            )));
        };
        runtime.disk().open_raw(path, element, given).map_err(Error::File)?;
        return Ok((Shape::new(given), Source::Raw(path.to_owned())));
    }
    let file = runtime.disk().open_npy_as(path, element).map_err(Error::File)?;
    if file.element() != element {
        let found = file.element();
        return Err(Error::Request(format!(
            "{name} holds {found}, {element} is needed; convert it, for example with NumPy's astype('{element}')"
        )));
    }
    if file.shape().len() != rank {
        let found = file.shape().len();
        return Err(Error::Request(format!("{name} has {found} dimensions, {rank} are needed")));
    }
    let shape = Shape::new(file.shape());
    if shape.elements() == 0 {
        return Err(Error::Request(format!(
            "{name} has shape {shape}: a dimension of length zero holds nothing to compute"
        )));
    }
    Ok((shape, Source::Npy(path.to_owned())))
}

/// Where a result named on the command line goes: `.npy`, or bare elements under any other name.
pub fn output(path: &Path) -> Sink {
    match path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) {
        true => Sink::Npy(path.to_owned()),
        false => Sink::Raw(path.to_owned()),
    }
}
