//! The command: an array or a picture is filtered.
//!
//! Arrays may be larger than memory. A picture is decoded whole: its samples, 4 bytes each, are held beside the memory
//! budget, and so is the result until it is encoded.

use crate::check::{self, Plane};
use crate::kernel::weights::{SIZE_MAX, Weights};
use crate::picture::{self, Picture, SAMPLES_MAX};
use crate::task::Conv2d;
use multigrain::app::{AppJob, Application, input, output};
use multigrain::prelude::{ElementType, Error, Job, Outcome, Program, Region, Role, Runtime, Scalars, Source};
use multigrain::rooms::store::npy;
use multigrain::whole;
use multigrain_simd::Isa;
use std::path::{Path, PathBuf};

/// Correlation of an array of float32 or of a PNG picture with small weights; taps beyond the edge are skipped
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A .npy array, a .png picture (each plane is filtered, opacity is kept), or bare float32 with the sizes given as
    /// options; generated when left out
    #[arg(value_name = "IMAGE")]
    pub image: Option<PathBuf>,
    /// Weights by name, as [`crate::kernel::weights`] lists them, or a .npy file of float32 with odd numbers of rows and
    /// columns
    #[arg(long, value_name = "KERNEL", default_value = "gaussian:9", help = KERNEL_HELP)]
    pub kernel: String,
    /// File for the result: .npy, .png (8 bits a sample, 0 to 1 becomes 0 to 255), or bare float32 under any other
    /// name; without it the result is discarded
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Columns of the array; rows too, where --m is left out [default: 4096]
    #[arg(long)]
    pub n: Option<u64>,
    /// Rows of the array
    #[arg(long)]
    pub m: Option<u64>,
    /// Seed of a generated array
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

const KERNEL_HELP: &str = "gaussian:N[:SIGMA], box:N, sharpen[:N], edge[:N], or a .npy file of float32 with odd numbers \
                           of rows and columns";

impl Default for Args {
    fn default() -> Args {
        Args { image: None, kernel: "gaussian:9".into(), output: None, n: None, m: None, seed: 1 }
    }
}

/// What is filtered: planes of one shape, and what goes into the result as it is.
struct Image {
    rows: u64,
    cols: u64,
    planes: Vec<Source>,
    alpha: Option<Vec<f32>>,
}

impl Application for Args {
    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        let weights = weights(&self.kernel)?;
        let image = self.image(runtime)?;
        let (m, n) = (image.rows, image.cols);
        let mut program = Program::new();
        let task = program.task(Conv2d::new(Isa::detect()));
        let taps = program.array::<f32, 2>("weights", [weights.rows, weights.cols], Role::Input)?;
        let mut planes = Vec::new();
        for i in 0..image.planes.len() {
            // One plane needs no number.
            let name = |name: &str| if image.planes.len() == 1 { name.to_owned() } else { format!("{name} {i}") };
            let from = program.array::<f32, 2>(&name("in"), [m, n], Role::Input)?;
            let to = program.array::<f32, 2>(&name("out"), [m, n], Role::Output)?;
            program.call(task, (from.all(), taps.all(), to.all()), Scalars::new())?;
            planes.push(Plane { input: from.index(), output: to.index() });
        }
        let mut job = Job::new("conv2d", program).with_source(taps.index(), Source::Bytes(bytes(&weights.values)));
        for (plane, source) in planes.iter().zip(image.planes) {
            job = job.with_source(plane.input, source);
        }
        if let Some(path) = self.image.as_deref().filter(|path| is_png(path)) {
            job = job.with_file_read(path);
        }
        let mut after = None;
        match (&self.output, &planes[..]) {
            (None, _) => {}
            (Some(path), _) if is_png(path) => {
                check_png_output(path, m, n, planes.len())?;
                let (path, planes, alpha) = (path.clone(), planes.clone(), image.alpha);
                let write = move |outcome: &Outcome| write_picture(outcome, &path, &planes, m, n, alpha.clone());
                after = Some(Box::new(write) as Box<dyn Fn(&Outcome) -> Result<(), Error>>);
                job = self.output.iter().fold(job, |job, path| job.with_file_written(path));
            }
            (Some(path), [plane]) if image.alpha.is_none() => job = job.with_sink(plane.output, output(path)),
            (Some(path), _) => {
                return Err(Error::Request(format!(
                    "the picture has {} planes, which {} cannot hold: name a .png file, or give a gray picture without \
                     opacity",
                    planes.len() + usize::from(image.alpha.is_some()),
                    path.display()
                )));
            }
        }
        let shape = vec![
            ("m", m),
            ("n", n),
            ("kernel rows", weights.rows),
            ("kernel columns", weights.cols),
            ("planes", planes.len() as u64),
        ];
        let check = Box::new(move |outcome: &Outcome, _: u64| check::check(outcome, &planes, m, n, &weights));
        Ok(AppJob { job, shape, check, after })
    }
}

impl Args {
    fn image(&self, runtime: &Runtime) -> Result<Image, Error> {
        let n = self.n;
        let m = self.m.or(n);
        let Some(path) = &self.image else {
            let cols = n.unwrap_or(4096);
            let planes = vec![Source::Generated { seed: self.seed }];
            return Ok(Image { rows: m.unwrap_or(cols), cols, planes, alpha: None });
        };
        if is_png(path) {
            let picture = picture::read(path, SAMPLES_MAX).map_err(|e| Error::Request(e.to_string()))?;
            let planes = picture.planes.iter().map(|plane| Source::Bytes(bytes(plane))).collect();
            let (rows, cols) = (picture.rows as u64, picture.cols as u64);
            return Ok(Image { rows, cols, planes, alpha: picture.alpha });
        }
        let given = n.zip(m).map(|(n, m)| [m, n]);
        let given = given.as_ref().map(<[u64; 2]>::as_slice);
        let (shape, source) = input(runtime, path, ElementType::F32, 2, given)?;
        Ok(Image { rows: shape.dims()[0], cols: shape.dims()[1], planes: vec![source], alpha: None })
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

fn is_png(path: &Path) -> bool {
    has_extension(path, "png")
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Weights by name or from a file, which is read whole: weights are few.
fn weights(text: &str) -> Result<check::Weights, Error> {
    let path = Path::new(text);
    if !has_extension(path, "npy") {
        let Weights { size, values } = text.parse().map_err(|e| {
            // Whoever names a file may have left out its ending.
            let also = if path.exists() { "; files of weights end in .npy" } else { "" };
            Error::Request(format!("{e}{also}"))
        })?;
        return Ok(check::Weights { rows: size as u64, cols: size as u64, values });
    }
    let refuse = |what: String| Error::Request(format!("weights {text}: {what}"));
    let max_bytes = 4 * (SIZE_MAX * SIZE_MAX) as u64;
    // Longer than any header of so small an array.
    let header_max = 1 << 20;
    let file = std::fs::metadata(path).map_err(|e| refuse(e.to_string()))?;
    if file.len() > max_bytes + header_max {
        let len = file.len();
        return Err(refuse(format!("{len} bytes are too many: at most {SIZE_MAX} x {SIZE_MAX} weights are taken")));
    }
    let content = std::fs::read(path).map_err(|e| refuse(e.to_string()))?;
    let header = npy::parse(&content).map_err(|e| refuse(e.to_string()))?;
    if header.element != ElementType::F32 {
        return Err(refuse(format!("they are {}, float32 is needed", header.element)));
    }
    let &[rows, cols] = &header.shape[..] else {
        return Err(refuse(format!("they have {} dimensions, 2 are needed", header.shape.len())));
    };
    if rows % 2 == 0 || cols % 2 == 0 {
        return Err(refuse(format!("they are {rows} x {cols}: both must be odd, so that one weight is in the middle")));
    }
    if rows > SIZE_MAX as u64 || cols > SIZE_MAX as u64 {
        return Err(refuse(format!("they are {rows} x {cols}: at most {SIZE_MAX} x {SIZE_MAX} are taken")));
    }
    let data = content.get(header.data_offset_bytes as usize..).unwrap_or_default();
    let values: Vec<f32> = data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let wanted = (rows * cols) as usize;
    if data.len() != 4 * wanted {
        return Err(refuse(format!("{rows} x {cols} weights take {} bytes, there are {}", 4 * wanted, data.len())));
    }
    Ok(check::Weights { rows, cols, values })
}

/// What would only fail after the run is refused before it.
fn check_png_output(path: &Path, m: u64, n: u64, planes: usize) -> Result<(), Error> {
    let samples = m.checked_mul(n).and_then(|s| s.checked_mul(planes as u64));
    if samples.is_none_or(|s| s > SAMPLES_MAX as u64) {
        return Err(Error::Request(format!(
            "{m} x {n} is too large for {}: a picture is written from memory, at most {SAMPLES_MAX} samples; name a .npy \
             file",
            path.display()
        )));
    }
    Ok(whole::check_target(path)?)
}

fn write_picture(
    outcome: &Outcome,
    path: &Path,
    planes: &[Plane],
    m: u64,
    n: u64,
    alpha: Option<Vec<f32>>,
) -> Result<(), Error> {
    let whole = Region::new(&[0, 0], &[m, n]);
    let planes = planes.iter().map(|plane| outcome.read_f32(plane.output, &whole)).collect::<Result<_, _>>()?;
    let picture = Picture { rows: m as usize, cols: n as usize, planes, alpha };
    picture::write(path, &picture).map_err(|e| Error::After(e.to_string()))
}
