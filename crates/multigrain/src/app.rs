//! What an application gives to the front doors: a job, its shape, a check against a plain reference.

mod checked;

pub use checked::{Beyond, Checked, Comparison, DEVIATIONS, Probed, UNDERFLOW, UNIT_ROUNDOFF, probe, rounding_bound};

use crate::error::Error;
use crate::job::{Job, Sink, Source};
use crate::outcome::Outcome;
use crate::runtime::Runtime;
use multigrain_program::{ElementType, Shape};
use std::path::Path;

type Check = Box<dyn Fn(&Outcome, u64) -> Result<Checked, Error>>;
type After = Box<dyn Fn(&Outcome) -> Result<Option<String>, Error>>;

/// An application's job with what surrounds it.
pub struct AppJob {
    /// What is run.
    pub job: Job,
    /// Sizes, for reports: name and value.
    pub shape: Vec<(&'static str, u64)>,
    /// Compares results with what plain code in double precision finds; the number is the seed of what is random in it. Of a
    /// job that was run [with its check](Job::with_check) there is memory for it.
    pub check: Check,
    /// Done after a run, for example writing a picture; gives what was found, in words for its report, if there are any.
    pub after: Option<After>,
}

/// Arguments of an application that can be turned into a job.
pub trait Application {
    /// What the application is called, in one word, by those who type and in reports.
    const NAME: &'static str;
    /// Arguments of jobs by which the rates of its leaves are measured, words apart by spaces: sizes that take some tenths of
    /// a second, apart enough to tell starting, arithmetic and bytes from each other, with arrays in memory that, where a
    /// task streams, are larger than caches. None where that needs files.
    const LEAF_JOBS: &'static [&'static str] = &[];

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
    runtime.disk().check_input(path).map_err(Error::File)?;
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

/// Endings of names that promise another format than bare numbers.
const OTHER_FORMATS: [&str; 20] = [
    "png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif", "webp", "csv", "tsv", "txt", "json", "xml", "html", "npz",
    "mat", "h5", "hdf5", "nc", "gz",
];

/// Where a result named on the command line goes: `.npy`, or bare elements under other names.
///
/// Where it is a symbolic link, what that leads to.
///
/// # Errors
/// The name promises a format that is not written, or the file is there and write-protected.
pub fn output(path: &Path) -> Result<Sink, Error> {
    let file = multigrain_whole::target(path)?;
    let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("npy") => Ok(Sink::Npy(file)),
        Some(other) if OTHER_FORMATS.contains(&other) => Err(Error::Request(format!(
            "{}: arrays are written as .npy, or as bare numbers under names such as .bin, not as .{other}; give it \
             another name",
            path.display()
        ))),
        _ => Ok(Sink::Raw(file)),
    }
}

/// Refuses sizes that were given beside a file which tells its own, and says otherwise: name and value of each option.
///
/// # Errors
/// The first size that is not the file's; of a file with `.npy` the options are best left out.
pub fn sizes_match(path: &Path, shape: &Shape, given: &[(&str, Option<u64>)]) -> Result<(), Error> {
    let other = given.iter().zip(shape.dims()).find(|((_, given), found)| given.is_some_and(|given| given != **found));
    match other {
        Some(((name, Some(given)), found)) => Err(Error::Request(format!(
            "--{name} {given}: {} is {shape}, with {found} there; leave the option out, the file tells its shape",
            path.display()
        ))),
        _ => Ok(()),
    }
}
