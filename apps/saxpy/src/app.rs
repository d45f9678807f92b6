//! The command: alpha x + y from files or generated from a seed.

use crate::task::{Saxpy, SaxpyUpdate};
use multigrain::app::{AppJob, Application, Checked, Comparison, input, output, rounding_bound};
use multigrain::prelude::*;
use multigrain_simd::Isa;
use std::path::PathBuf;

/// alpha x + y of two vectors of float32; generated vectors are updated in place, files are not changed
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// x: .npy, or bare float32 with the length given as an option; generated when left out
    #[arg(value_name = "X", requires = "y")]
    pub x: Option<PathBuf>,
    /// y, as long as x
    #[arg(value_name = "Y")]
    pub y: Option<PathBuf>,
    /// The factor of x
    #[arg(long, default_value_t = 2.0, allow_negative_numbers = true)]
    pub alpha: f32,
    /// File for the result: .npy, or bare float32 under any other name; without it the result is discarded
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Length of the vectors [default: 16777216]
    #[arg(long)]
    pub n: Option<u64>,
    /// Seed of generated vectors
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Default for Args {
    fn default() -> Args {
        Args { x: None, y: None, alpha: 2.0, output: None, n: None, seed: 1 }
    }
}

/// Elements that are read at once by `--check`.
const BAND: u64 = 1 << 20;
/// Bands that are compared, spread over the vector; all of a vector that has not more.
const BANDS_CHECKED: u64 = 64;

/// Where `--check` finds y as it was before.
#[derive(Clone, Copy)]
enum Before {
    Array(usize),
    Generated(u64),
}

impl Application for Args {
    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        let mut program = Program::new();
        let scalars = Scalars::new().with_f32(self.alpha);
        let isa = Isa::detect();
        let (n, result, before, x, y) = match (&self.x, &self.y) {
            (Some(x), Some(y)) => {
                let given = self.n.map(|n| [n]);
                let given = given.as_ref().map(<[u64; 1]>::as_slice);
                let (x_shape, x) = input(runtime, x, ElementType::F32, 1, given)?;
                let (y_shape, y) = input(runtime, y, ElementType::F32, 1, given)?;
                if x_shape != y_shape {
                    return Err(Error::Request(format!(
                        "x has {x_shape} elements and y has {y_shape}: they must be equally long"
                    )));
                }
                let n = x_shape.elements();
                let task = program.task(Saxpy::new(isa));
                let x_array = program.array::<f32, 1>("x", [n], Role::Input)?;
                let y_array = program.array::<f32, 1>("y", [n], Role::Input)?;
                let out = program.array::<f32, 1>("out", [n], Role::Output)?;
                program.call(task, (x_array.all(), y_array.all(), out.all()), scalars)?;
                (n, out.index(), Before::Array(y_array.index()), x, y)
            }
            (None, None) => {
                let n = self.n.unwrap_or(1 << 24);
                let task = program.task(SaxpyUpdate::new(isa));
                let x_array = program.array::<f32, 1>("x", [n], Role::Input)?;
                let y_array = program.array::<f32, 1>("y", [n], Role::InOut)?;
                program.call(task, (x_array.all(), y_array.all()), scalars)?;
                let seed = self.seed.wrapping_add(1);
                let (x, y) = (Source::Generated { seed: self.seed }, Source::Generated { seed });
                (n, y_array.index(), Before::Generated(seed), x, y)
            }
            _ => return Err(Error::Request("saxpy takes the files of x and of y, or neither".into())),
        };
        let mut job = Job::new("saxpy", program).with_source(0, x).with_source(1, y);
        if let Some(path) = &self.output {
            job = job.with_sink(result, output(path));
        }
        let alpha = self.alpha;
        let check = Box::new(move |outcome: &Outcome| check(outcome, n, alpha, before, result));
        Ok(AppJob { job, shape: vec![("n", n)], check, after: None })
    }
}

/// Compares with alpha x + y in double precision; the result is rounded once.
fn check(outcome: &Outcome, n: u64, alpha: f32, before: Before, result: usize) -> Result<Checked, Error> {
    let bands = n.div_ceil(BAND);
    let count = bands.min(BANDS_CHECKED);
    let mut comparison = Comparison::default();
    for i in 0..count {
        // Spread evenly, the first and the last among them.
        let first = (i * (bands - 1) / (count - 1).max(1)) * BAND;
        let region = Region::new(&[first], &[BAND.min(n - first)]);
        let x = outcome.read_f32(0, &region)?;
        let y = match before {
            Before::Array(array) => outcome.read_f32(array, &region)?,
            Before::Generated(seed) => (first..region.end(0)).map(|i| generate::f32_at(seed, i)).collect(),
        };
        for ((found, x), y) in outcome.read_f32(result, &region)?.into_iter().zip(x).zip(y) {
            let (product, y) = (f64::from(alpha) * f64::from(x), f64::from(y));
            comparison.add(found, product + y, product.abs() + y.abs());
        }
    }
    Ok(comparison.checked(rounding_bound(1)))
}
