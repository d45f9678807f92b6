//! The applications that can be named.

use clap::Subcommand;
use multigrain::app::{AppJob, Application};
use multigrain::{Error, Runtime};

/// An application with its arguments.
#[derive(Subcommand, Debug)]
pub(crate) enum App {
    /// Sum of a vector and a multiple of another, float32: y = a x + y
    Saxpy(multigrain_saxpy::app::Args),
    /// Product of a matrix and a vector of float32: y = A x
    Sgemv(multigrain_sgemv::app::Args),
    /// Product of two matrices of float32: C = A B
    Sgemm(multigrain_sgemm::app::Args),
    /// Convolution of a matrix or a picture with a small kernel
    Conv2d(multigrain_conv2d::app::Args),
    /// Fourier transform of a volume of complex64
    Fft3d(multigrain_fft3d::app::Args),
    /// Particles that attract each other, step by step
    Gravity(multigrain_gravity::app::Args),
    /// Scores of protein sequences against profile hidden Markov models
    Hmmer(multigrain_hmmer::app::Args),
}

impl App {
    /// Looks at the inputs and makes the job. Nothing is written.
    pub(crate) fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        match self {
            App::Saxpy(args) => args.prepare(runtime),
            App::Sgemv(args) => args.prepare(runtime),
            App::Sgemm(args) => args.prepare(runtime),
            App::Conv2d(args) => args.prepare(runtime),
            App::Fft3d(args) => args.prepare(runtime),
            App::Gravity(args) => args.prepare(runtime),
            App::Hmmer(args) => args.prepare(runtime),
        }
    }
}
