//! The command: a volume in a file or generated from a seed is transformed.

use crate::check;
use crate::task::{InPlace, Into, Setup, direction};
use multigrain::app::{AppJob, Application, input, output};
use multigrain::prelude::*;
use multigrain_simd::Isa;
use std::path::PathBuf;

/// Discrete Fourier transform of a volume of complex64
///
/// Lengths are any; those with the prime factors 2, 3, 5 and 7 alone are the fast ones, others take two transforms of two to
/// four times the length.
///
/// The forward transform is a plain sum, the inverse one divides by the number of elements, as NumPy's fftn and ifftn
/// do. A generated volume is transformed in place.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// Volume of three dimensions: .npy of complex64, or bare complex64 with --shape; generated when left out
    #[arg(value_name = "IN")]
    pub input: Option<PathBuf>,
    /// File for the result: .npy, or bare complex64 under any other name; without it the result is discarded. Where
    /// the volume takes several passes over a disk, these take turns between two files, so that no pass is lost when a later
    /// one is interrupted; without room for a second one, or in so little memory that it is planned in parts, the first pass
    /// is made again with --resume
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The inverse transform
    #[arg(long)]
    pub inverse: bool,
    /// Length of all three axes of a generated volume [default: 256]
    #[arg(long, conflicts_with = "shape")]
    pub n: Option<u64>,
    /// Lengths of the axes, slowest first: 512,256,128
    #[arg(long, value_name = "X,Y,Z", value_delimiter = ',', num_args = 1)]
    pub shape: Vec<u64>,
    /// Seed of a generated volume
    #[arg(long, default_value_t = 1, conflicts_with = "input")]
    pub seed: u64,
}

impl Application for Args {
    const NAME: &'static str = "fft3d";
    const LEAF_JOBS: &'static [&'static str] = &["--n 192", "--n 256", "--n 320"];

    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        let given = match &self.shape[..] {
            [] => self.n.map(|n| [n; 3]),
            &[x, y, z] => Some([x, y, z]),
            other => {
                return Err(Error::Request(format!("--shape has {} lengths; three are needed: X,Y,Z", other.len())));
            }
        };
        let (shape, source) = match &self.input {
            Some(path) => {
                let sizes = given.as_ref().map(<[u64; 3]>::as_slice);
                let (shape, source) = input(runtime, path, ElementType::C64, 3, sizes)?;
                let dims = shape.dims();
                let dims = [dims[0], dims[1], dims[2]];
                if let Some([x, y, z]) = given.filter(|given| *given != dims) {
                    return Err(Error::Request(format!(
                        "{} is {shape}, {x} x {y} x {z} was asked for; leave --shape and --n out: a .npy file tells its shape",
                        path.display()
                    )));
                }
                (dims, Some(source))
            }
            None => (given.unwrap_or([256; 3]), None),
        };
        let name = self.input.as_ref().map_or("the volume".to_owned(), |path| path.display().to_string());
        check_lengths(&name, shape)?;
        let mut program = Program::new();
        let generated = Source::Generated { seed: self.seed };
        let (first, result, job) = match source {
            Some(source) => {
                let from = program.array::<Complex32, 3>("in", shape, Role::Input)?;
                let to = program.array::<Complex32, 3>("out", shape, Role::Output)?;
                let (setup, tables) = setup(&name, shape, runtime)?;
                let task = program.task(Into::new(&setup));
                program.call(task, (from.all(), to.all()), direction(self.inverse))?;
                let job = Job::new(Self::NAME, program).with_kept_bytes(tables).with_source(from.index(), source);
                (check::Initial::Array(from.index()), to.index(), job)
            }
            None => {
                let data = program.array::<Complex32, 3>("data", shape, Role::InOut)?;
                let (setup, tables) = setup(&name, shape, runtime)?;
                let task = program.task(InPlace::new(&setup));
                program.call(task, (data.all(),), direction(self.inverse))?;
                let job = Job::new(Self::NAME, program).with_kept_bytes(tables).with_source(data.index(), generated);
                (check::Initial::Generated(self.seed), data.index(), job)
            }
        };
        let job = job.with_check_bytes(
            "transforming a line in double precision for --check".to_owned(),
            check::check_bytes(shape, 1),
        );
        let job = match &self.output {
            Some(path) => job.with_sink(result, output(path)?),
            None => job,
        };
        let inverse = self.inverse;
        let check =
            Box::new(move |outcome: &Outcome, seed: u64| check::check(outcome, &first, result, shape, inverse, seed));
        let [x, y, z] = shape;
        Ok(AppJob { job, shape: vec![("x", x), ("y", y), ("z", z)], check, after: None })
    }
}

/// Refuses what holds nothing.
fn check_lengths(name: &str, shape: [u64; 3]) -> Result<(), Error> {
    let [x, y, z] = shape;
    if shape.contains(&0) {
        return Err(Error::Request(format!(
            "{name} is {x} x {y} x {z}: a dimension of length zero holds nothing to compute"
        )));
    }
    Ok(())
}

/// The tables for such a volume and their bytes, if they leave a plan room.
fn setup(name: &str, shape: [u64; 3], runtime: &Runtime) -> Result<(std::sync::Arc<Setup>, u64), Error> {
    let bytes = Setup::table_bytes(shape).ok_or_else(|| too_long(name, shape))?;
    // Every worker transforms a line at least, and one of them lies in memory.
    let line_bytes = shape.into_iter().max().unwrap_or(0).saturating_mul(8);
    runtime.check_kept_bytes(Args::NAME, bytes, line_bytes, Setup::line_scratch_bytes(shape))?;
    let setup = Setup::new(Isa::detect(), shape).ok_or_else(|| too_long(name, shape))?;
    Ok((setup, bytes))
}

fn too_long(name: &str, [x, y, z]: [u64; 3]) -> Error {
    Error::Request(format!("{name} is {x} x {y} x {z}: too long to be indexed on this computer"))
}
