//! The command: y = A x from files or generated from a seed.

use crate::check::check;
use crate::task::Product;
use multigrain::app::{AppJob, Application, input, output, sizes_match};
use multigrain::prelude::*;
use multigrain_simd::Isa;
use std::path::PathBuf;

/// Product of a matrix and a vector of float32: y (m) = A (m x n) x (n)
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A, m x n: .npy, or bare float32 with the sizes given as options; generated when left out
    #[arg(value_name = "A", requires = "x")]
    pub a: Option<PathBuf>,
    /// x, n elements
    #[arg(value_name = "X")]
    pub x: Option<PathBuf>,
    /// File for y: .npy, or bare float32 under any other name; without it the result is discarded
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Columns of A; rows too, where --m is left out [default: 4096]
    #[arg(long)]
    pub n: Option<u64>,
    /// Rows of A
    #[arg(long)]
    pub m: Option<u64>,
    /// Seed of generated inputs
    #[arg(long, default_value_t = 1, conflicts_with = "a")]
    pub seed: u64,
}

impl Default for Args {
    fn default() -> Args {
        Args { a: None, x: None, output: None, n: None, m: None, seed: 1 }
    }
}

impl Application for Args {
    const NAME: &'static str = "sgemv";
    const LEAF_JOBS: &'static [&'static str] = &["--n 2048", "--n 8192"];

    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        let (m, n, n_x, a, x) = match (&self.a, &self.x) {
            (Some(a_path), Some(x)) => {
                let n = self.n;
                let m = self.m.or(n);
                let given = n.zip(m).map(|(n, m)| [m, n]);
                let (a_shape, a) =
                    input(runtime, a_path, ElementType::F32, 2, given.as_ref().map(<[u64; 2]>::as_slice))?;
                sizes_match(a_path, &a_shape, &[("m", self.m), ("n", self.n)])?;
                let given = n.map(|n| [n]);
                let (x_shape, x) = input(runtime, x, ElementType::F32, 1, given.as_ref().map(<[u64; 1]>::as_slice))?;
                (a_shape.dims()[0], a_shape.dims()[1], x_shape.elements(), a, x)
            }
            (None, None) => {
                let n = self.n.unwrap_or(4096);
                let second = Source::Generated { seed: self.seed.wrapping_add(1) };
                (self.m.unwrap_or(n), n, n, Source::Generated { seed: self.seed }, second)
            }
            _ => return Err(Error::Request("sgemv takes the files of A and of x, or neither".into())),
        };
        if n != n_x {
            return Err(Error::Request(format!(
                "A is {m} x {n} and x has {n_x} elements: x must be as long as A has columns"
            )));
        }
        let mut program = Program::new();
        let product = program.task(Product::new(Isa::detect()));
        let a_array = program.array::<f32, 2>("A", [m, n], Role::Input)?;
        let x_array = program.array::<f32, 1>("x", [n], Role::Input)?;
        let y_array = program.array::<f32, 1>("y", [m], Role::Output)?;
        program.call(product, (a_array.all(), x_array.all(), y_array.all()), Scalars::new())?;
        let mut job = Job::new(Self::NAME, program).with_source(0, a).with_source(1, x);
        if let Some(path) = &self.output {
            job = job.with_sink(2, output(path)?);
        }
        let check = Box::new(move |outcome: &Outcome, _: u64| check(outcome, m, n));
        Ok(AppJob { job, shape: vec![("m", m), ("n", n)], check, after: None })
    }
}
