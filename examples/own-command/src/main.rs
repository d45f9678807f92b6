//! Somebody else's application with all commands: `own run smooth x.npy -o y.npy --memory 64MiB --check`.

use multigrain::app::{AppJob, Application, Checked, Comparison, input, output, rounding_bound};
use multigrain::prelude::*;
use multigrain_front::Front;
use std::path::PathBuf;

fn main() -> std::process::ExitCode {
    Front::new("own", env!("CARGO_PKG_VERSION"), "What my group computes").application::<Smooth>().main()
}

/// Each element of a vector becomes the mean of itself and its neighbours.
#[task(axes(i), flops = 3.0)]
fn smooth(#[at(i +- 1)] x: Read<f32, 1>, #[at(i)] y: Write<f32, 1>) {
    for (i, y) in y.row_mut(&[]).iter_mut().enumerate() {
        *y = mean([-1, 0, 1].map(|offset| x.near([i], [offset])));
    }
}

fn mean([before, here, after]: [f32; 3]) -> f32 {
    ((before + here) + after) * (1.0 / 3.0)
}

/// Means of three neighbours of a vector of float32; beyond its ends it goes on as it ends
#[derive(Clone, Debug, clap::Args)]
struct Smooth {
    /// x: .npy, or bare float32 with --n; generated when left out
    x: Option<PathBuf>,
    /// File for the result: .npy, or bare float32 under any other name; without it the result is discarded
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Length of the vector
    #[arg(long, default_value_t = 1 << 20)]
    n: u64,
}

impl Application for Smooth {
    const NAME: &'static str = "smooth";
    const LEAF_JOBS: &'static [&'static str] = &["--n 4000000", "--n 16000000"];

    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        let (shape, source) = match &self.x {
            Some(path) => input(runtime, path, ElementType::F32, 1, Some(&[self.n]))?,
            None => (Shape::new(&[self.n]), Source::Generated { seed: 1 }),
        };
        let n = shape.elements();
        let mut program = Program::new();
        let task = program.task(smooth);
        let x = program.array::<f32, 1>("x", [n], Role::Input)?;
        let y = program.array::<f32, 1>("y", [n], Role::Output)?;
        program.call(task, (x.all(), y.all()), Scalars::new())?;
        let (from, to) = (x.index(), y.index());
        let mut job = Job::new(Self::NAME, program).with_source(from, source);
        if let Some(path) = &self.output {
            job = job.with_sink(to, output(path)?);
        }
        let check = Box::new(move |outcome: &Outcome, _: u64| check(outcome, n, from, to));
        Ok(AppJob { job, shape: vec![("n", n)], check, after: None })
    }
}

/// Compares every element with what double precision finds: two sums, a product and the rounding of a third.
fn check(outcome: &Outcome, n: u64, from: usize, to: usize) -> Result<Checked, Error> {
    const BAND: u64 = 1 << 18;
    let mut comparison = Comparison::default();
    for (first, len) in blocks(n, BAND) {
        let (low, high) = (first.saturating_sub(1), (first + len + 1).min(n));
        let x = outcome.read_f32(from, &Region::new(&[low], &[high - low]))?;
        let y = outcome.read_f32(to, &Region::new(&[first], &[len]))?;
        for (i, &found) in (first..).zip(&y) {
            let near = [i.saturating_sub(1), i, (i + 1).min(n - 1)].map(|at| f64::from(x[(at - low) as usize]));
            let scale = near.iter().map(|term| term.abs()).sum::<f64>() / 3.0;
            comparison.add(found, near.iter().sum::<f64>() / 3.0, scale);
        }
    }
    Ok(comparison.checked(rounding_bound(4), "every element against double precision".to_owned()))
}
