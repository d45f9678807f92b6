//! The command: C = A B from files or generated from a seed.

use crate::check::check;
use crate::task::Product;
use multigrain::app::{AppJob, Application, input, output, sizes_match};
use multigrain::prelude::*;
use multigrain_simd::Isa;
use std::path::PathBuf;

/// Product of two matrices of float32: C (m x n) = A (m x k) B (k x n)
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// A, m x k: .npy, or bare float32 with the sizes given as options; generated when left out
    #[arg(value_name = "A", requires = "b")]
    pub a: Option<PathBuf>,
    /// B, k x n
    #[arg(value_name = "B")]
    pub b: Option<PathBuf>,
    /// File for C: .npy, or bare float32 under any other name; without it the result is discarded
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Columns of B and C; rows and depth too, where --m or --k are left out [default: 1024]
    #[arg(long)]
    pub n: Option<u64>,
    /// Rows of A and C
    #[arg(long)]
    pub m: Option<u64>,
    /// Columns of A and rows of B
    #[arg(long)]
    pub k: Option<u64>,
    /// Seed of generated matrices
    #[arg(long, default_value_t = 1, conflicts_with = "a")]
    pub seed: u64,
}

impl Application for Args {
    const NAME: &'static str = "sgemm";
    const LEAF_JOBS: &'static [&'static str] = &["--n 512", "--n 1024", "--n 2048", "--n 3000"];

    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        let n = self.n.unwrap_or(1024);
        let (m, k) = (self.m.unwrap_or(n), self.k.unwrap_or(n));
        let ((m, k), (k_b, n), a, b) = match (&self.a, &self.b) {
            (Some(a_path), Some(b_path)) => {
                let given = self.n.is_some();
                let (a_shape, a) = input(runtime, a_path, ElementType::F32, 2, given.then_some(&[m, k]))?;
                let (b_shape, b) = input(runtime, b_path, ElementType::F32, 2, given.then_some(&[k, n]))?;
                sizes_match(a_path, &a_shape, &[("m", self.m), ("k", self.k)])?;
                sizes_match(b_path, &b_shape, &[("k", self.k), ("n", self.n)])?;
                let (sa, sb) = (a_shape.dims().to_owned(), b_shape.dims().to_owned());
                ((sa[0], sa[1]), (sb[0], sb[1]), a, b)
            }
            _ => {
                let seed = self.seed;
                let second = Source::Generated { seed: seed.wrapping_add(1) };
                ((m, k), (k, n), Source::Generated { seed }, second)
            }
        };
        if k != k_b {
            return Err(Error::Request(format!(
                "A is {m} x {k} and B is {k_b} x {n}: the columns of A must be as many as the rows of B"
            )));
        }
        let mut program = Program::new();
        let product = program.task(Product::new(Isa::detect()));
        let arrays = (
            program.array::<f32, 2>("A", [m, k], Role::Input)?,
            program.array::<f32, 2>("B", [k, n], Role::Input)?,
            program.array::<f32, 2>("C", [m, n], Role::Output)?,
        );
        program.call(product, (arrays.0.all(), arrays.1.all(), arrays.2.all()), Scalars::new())?;
        let mut job = Job::new(Self::NAME, program).with_source(0, a).with_source(1, b);
        if let Some(path) = &self.output {
            job = job.with_sink(2, output(path)?);
        }
        let check = Box::new(move |outcome: &Outcome, seed: u64| check(outcome, (m, n, k), seed));
        Ok(AppJob { job, shape: vec![("m", m), ("n", n), ("k", k)], check, after: None })
    }
}
