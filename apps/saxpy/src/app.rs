//! The command: alpha x + y from files or generated from a seed.

use crate::check::{Before, check};
use crate::task::{Saxpy, SaxpyUpdate};
use multigrain::app::{AppJob, Application, input, output, sizes_match};
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
    #[arg(long, default_value_t = 2.0)]
    pub alpha: f32,
    /// File for the result: .npy, or bare float32 under any other name; without it the result is discarded
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Length of the vectors [default: 16777216]
    #[arg(long)]
    pub n: Option<u64>,
    /// Seed of generated vectors
    #[arg(long, default_value_t = 1, conflicts_with = "x")]
    pub seed: u64,
}

impl Default for Args {
    fn default() -> Args {
        Args { x: None, y: None, alpha: 2.0, output: None, n: None, seed: 1 }
    }
}

impl Application for Args {
    const NAME: &'static str = "saxpy";
    const LEAF_JOBS: &'static [&'static str] = &["--n 24000000", "--n 64000000"];

    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        if !self.alpha.is_finite() {
            return Err(Error::Request(format!("--alpha is {} as a float32: give a finite number", self.alpha)));
        }
        let mut program = Program::new();
        let scalars = Scalars::new().with_f32(self.alpha);
        let isa = Isa::detect();
        let (n, result, before, x, y) = match (&self.x, &self.y) {
            (Some(x_path), Some(y)) => {
                let given = self.n.map(|n| [n]);
                let given = given.as_ref().map(<[u64; 1]>::as_slice);
                let (x_shape, x) = input(runtime, x_path, ElementType::F32, 1, given)?;
                let (y_shape, y) = input(runtime, y, ElementType::F32, 1, given)?;
                if x_shape != y_shape {
                    return Err(Error::Request(format!(
                        "x has {x_shape} elements and y has {y_shape}: they must be equally long"
                    )));
                }
                sizes_match(x_path, &x_shape, &[("n", self.n)])?;
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
        let mut job = Job::new(Self::NAME, program).with_source(0, x).with_source(1, y);
        if let Some(path) = &self.output {
            job = job.with_sink(result, output(path)?);
        }
        let alpha = self.alpha;
        let check = Box::new(move |outcome: &Outcome, _: u64| check(outcome, n, alpha, before, result));
        Ok(AppJob { job, shape: vec![("n", n)], check, after: None })
    }
}
