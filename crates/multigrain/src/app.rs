//! What an application gives to the front doors: a job, its shape, a check against a plain reference.

use crate::error::Error;
use crate::job::{Job, Sink, Source};
use crate::outcome::Outcome;
use crate::runtime::Runtime;
use multigrain_program::{ElementType, Shape};
use std::path::Path;

/// The result of a check against a plain reference in double precision.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Largest error found, relative to the sum of the absolute values of the terms.
    pub max_relative_error: f64,
    /// What is allowed, from the number of terms.
    pub tolerance: f64,
    /// How many elements were compared.
    pub elements: u64,
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
        let error = (value - exact).abs() / scale.max(f64::from(f32::MIN_POSITIVE));
        self.worst = if error.is_nan() { f64::INFINITY } else { self.worst.max(error) };
    }

    /// The result, against a tolerance.
    pub fn checked(&self, tolerance: f64) -> Checked {
        Checked { max_relative_error: self.worst, tolerance, elements: self.elements, figures: Vec::new() }
    }
}

/// The largest relative error of `roundings` roundings to single precision one after the other: gamma_n = nu / (1 - nu)
/// with the unit roundoff u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, lemma 3.1).
pub fn rounding_bound(roundings: u64) -> f64 {
    let nu = roundings as f64 * (f64::from(f32::EPSILON) / 2.0);
    if nu < 1.0 { nu / (1.0 - nu) } else { f64::INFINITY }
}

type Check = Box<dyn Fn(&Outcome) -> Result<Checked, Error>>;
type After = Box<dyn Fn(&Outcome) -> Result<(), Error>>;

/// An application's job with what surrounds it.
pub struct AppJob {
    /// What is run.
    pub job: Job,
    /// Sizes, for reports: name and value.
    pub shape: Vec<(&'static str, u64)>,
    /// Compares results with a plain reference in double precision.
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
