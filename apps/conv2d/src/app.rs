//! The command: an array or a picture is filtered.
//!
//! Arrays may be larger than memory, and so may pictures: their rows are decoded one after the other into scratch files
//! without names where they would take too much of the memory, and encoded from the result row by row.

use crate::border::Border;
use crate::check::{self, Filter, Plane};
use crate::kernel::Filling;
use crate::kernel::weights::{SIZE_MAX, Weights};
use crate::padded::{self, Pad};
use crate::picture::{self, Reading, SAMPLES_MAX};
use crate::scratch::{Channel, Failed};
use crate::task::Conv2d;
use multigrain::app::{AppJob, Application, input, output, sizes_match};
use multigrain::prelude::{ElementType, Error, Job, Outcome, Program, Region, Role, Runtime, Scalars, Shape, Source};
use multigrain::rooms::store::npy;
use multigrain::whole;
use multigrain_simd::Isa;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Convolution of an array of float32 or of a PNG picture with small weights, as SciPy's convolve2d(mode="same")
///
/// out[y, x] is the sum over i, j of weights[i, j] in[y + h - i, x + w - j], where weights[h, w] is the middle one, of an
/// even number the former of two: weights are turned around, unless --correlate is given. Beyond the border there are zeros, which darken the edges of a picture,
/// unless --border says otherwise.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A .npy array, a .png picture (each plane is filtered, opacity is kept), or bare float32 with the sizes given as
    /// options; generated when left out
    #[arg(value_name = "IMAGE")]
    pub image: Option<PathBuf>,
    /// Weights by name, as [`crate::kernel::weights`] lists them, or a .npy file of float32
    #[arg(long, value_name = "KERNEL", default_value = "gaussian:9", help = KERNEL_HELP)]
    pub kernel: String,
    /// Takes the weights as they are, as SciPy's correlate2d(mode="same") and what machine learning calls a convolution
    #[arg(long)]
    pub correlate: bool,
    /// What lies beyond the border
    #[arg(long, value_enum, default_value_t = Border::Zero)]
    pub border: Border,
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
    #[arg(long, default_value_t = 1, conflicts_with = "image")]
    pub seed: u64,
}

const KERNEL_HELP: &str = "gaussian:N[:SIGMA], box:N, sharpen[:N], edge[:N], with an odd N, or a .npy file of float32 \
                           with any numbers of rows and columns";

/// A picture's samples may take this share of the memory; beyond, they lie in scratch files.
const MEMORY_SHARE: u64 = 8;
/// Samples of a result that are read at once when it is written as a picture.
const BAND: u64 = 1 << 18;

impl Default for Args {
    fn default() -> Args {
        Args {
            image: None,
            kernel: "gaussian:9".into(),
            correlate: false,
            border: Border::Zero,
            output: None,
            n: None,
            m: None,
            seed: 1,
        }
    }
}

/// What is filtered: planes of one shape, and perhaps opacity, which goes into the result as it is.
struct Image {
    rows: u64,
    cols: u64,
    planes: Vec<Source>,
    alpha: bool,
    /// Of a picture, the file and its channels, opacity last, which hold nothing yet.
    encoded: Option<(Reading, Vec<Channel>)>,
}

impl Application for Args {
    const NAME: &'static str = "conv2d";
    const LEAF_JOBS: &'static [&'static str] = &["--n 1024", "--n 4096"];

    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        let ([kernel_rows, kernel_columns], filter) = applied(&self.kernel, self.border, self.correlate)?;
        let image = self.image(runtime)?;
        let (m, n) = (image.rows, image.cols);
        let mut program = Program::new();
        let taps = program.array::<f32, 2>("weights", [filter.rows, filter.cols], Role::Input)?;
        let mut planes = Vec::new();
        let conv2d = program.task(Conv2d::new(Isa::detect()));
        // Only the tasks that are called: names of tasks are part of what a run is known by.
        let pad = (self.border != Border::Zero).then(|| program.task(Pad));
        for i in 0..image.planes.len() {
            // One plane needs no number.
            let number = if image.planes.len() == 1 { String::new() } else { format!(" {i}") };
            let from = program.array::<f32, 2>(&format!("in{number}"), [m, n], Role::Input)?;
            let to = program.array::<f32, 2>(&format!("out{number}"), [m, n], Role::Output)?;
            match pad {
                None => {
                    program.call(conv2d, (from.all(), taps.all(), to.all()), filter.filling.scalars(Scalars::new()))?;
                }
                Some(pad) => {
                    padded::call(&mut program, (conv2d, pad), (from, taps, to), ([m, n], &filter), &number)?;
                }
            }
            planes.push(Plane { input: from.index(), output: to.index() });
        }
        let mut job = Job::new(Self::NAME, program).with_source(taps.index(), Source::Bytes(bytes(filter.values)));
        for (plane, source) in planes.iter().zip(image.planes) {
            job = job.with_source(plane.input, source);
        }
        let weights = Some(Path::new(&self.kernel)).filter(|path| is_file_of_weights(path));
        for path in self.image.as_deref().filter(|path| is_png(path)).into_iter().chain(weights) {
            job = job.with_file_read(path);
        }
        let alpha = image.alpha;
        match (&self.output, &planes[..]) {
            (None, _) => {}
            (Some(path), _) if is_png(path) => {
                whole::check_target(path)?;
                let row_bytes = picture::writing_bytes(n, planes.len(), alpha, 1);
                job = job.with_file_written(path).with_work_bytes(format!("writing {}", path.display()), row_bytes);
            }
            (Some(path), [plane]) if !alpha => job = job.with_sink(plane.output, output(path)?),
            (Some(path), _) => {
                return Err(Error::Request(format!(
                    "the picture has {} planes, which {} cannot hold: name a .png file, or give a gray picture without \
                     opacity",
                    planes.len() + usize::from(alpha),
                    path.display()
                )));
            }
        }
        let mut channels = Vec::new();
        if let Some((reading, mut encoded)) = image.encoded {
            // Decoding takes time, so what has no room is refused before.
            runtime.plan(&job)?;
            decode(reading, &mut encoded, runtime)?;
            for (plane, channel) in planes.iter().zip(&mut encoded) {
                job = job.with_source(plane.input, channel.source());
            }
            channels = encoded;
        }
        let channels = Arc::new(channels);
        let after = self.output.clone().filter(|path| is_png(path)).map(|path| {
            let (planes, channels) = (planes.clone(), channels.clone());
            let write = move |outcome: &Outcome| {
                let alpha = if alpha { channels.last() } else { None };
                write_picture(outcome, &path, &planes, (m, n), alpha).map(|()| None)
            };
            Box::new(write) as Box<dyn Fn(&Outcome) -> Result<Option<String>, Error>>
        });
        let shape = vec![
            ("m", m),
            ("n", n),
            ("kernel rows", kernel_rows),
            ("kernel columns", kernel_columns),
            ("planes", planes.len() as u64),
        ];
        let (kernel, border, correlate) = (self.kernel.clone(), self.border, self.correlate);
        let check = Box::new(move |outcome: &Outcome, seed: u64| {
            // Scratch files are there as long as the job is.
            let _ = &channels;
            check::check(outcome, &planes, (m, n), &applied(&kernel, border, correlate)?.1, seed)
        });
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
            return Ok(Image { rows: m.unwrap_or(cols), cols, planes, alpha: false, encoded: None });
        };
        if is_png(path) {
            let image = self.picture(path, runtime)?;
            let shape = Shape::new(&[image.rows, image.cols]);
            return sizes_match(path, &shape, &[("m", self.m), ("n", self.n)]).map(|()| image);
        }
        let given = n.zip(m).map(|(n, m)| [m, n]);
        let given = given.as_ref().map(<[u64; 2]>::as_slice);
        let (shape, source) = input(runtime, path, ElementType::F32, 2, given)?;
        sizes_match(path, &shape, &[("m", self.m), ("n", self.n)])?;
        let (rows, cols) = (shape.dims()[0], shape.dims()[1]);
        Ok(Image { rows, cols, planes: vec![source], alpha: false, encoded: None })
    }

    /// A picture, not decoded yet.
    fn picture(&self, path: &Path, runtime: &Runtime) -> Result<Image, Error> {
        let reading = Reading::open(path, SAMPLES_MAX).map_err(Failed::Picture)?;
        let (rows, cols, count, alpha) = (reading.rows as u64, reading.cols as u64, reading.planes, reading.alpha);
        let in_memory = 4 * rows * cols * (count as u64 + u64::from(alpha)) <= runtime.memory_bytes()? / MEMORY_SHARE;
        let directory = self.output.as_deref().and_then(Path::parent).filter(|d| !d.as_os_str().is_empty());
        let make = || Channel::new(path, (!in_memory).then(|| directory.unwrap_or(Path::new("."))));
        let mut channels = (0..count + usize::from(alpha)).map(|_| make()).collect::<Result<Vec<_>, _>>()?;
        let planes = channels[..count].iter_mut().map(Channel::source).collect();
        Ok(Image { rows, cols, planes, alpha, encoded: Some((reading, channels)) })
    }
}

/// Decodes a picture into its channels, row by row.
fn decode(reading: Reading, channels: &mut [Channel], runtime: &Runtime) -> Result<(), Error> {
    let what = format!("reading {}", reading.path().display());
    runtime.check_reading_bytes(Args::NAME, &what, reading.working_bytes())?;
    reading.each_row(|samples| {
        channels.iter_mut().zip(samples).try_for_each(|(channel, samples)| channel.push(samples))
    })?;
    Ok(channels.iter_mut().try_for_each(Channel::finish)?)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

fn is_png(path: &Path) -> bool {
    has_extension(path, "png")
}

fn bytes(values: Vec<f32>) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Rows and columns of the weights, and the weights as they are applied.
fn applied(text: &str, border: Border, correlate: bool) -> Result<([u64; 2], Filter), Error> {
    let given = weights(text, border)?;
    let shape = [given.rows, given.cols];
    let mut filter = given.with_a_middle();
    if !correlate {
        filter = filter.turned_around();
    }
    Ok((shape, filter))
}

fn is_file_of_weights(path: &Path) -> bool {
    has_extension(path, "npy")
}

/// Weights by name or from a file, which is read whole: weights are few.
fn weights(text: &str, border: Border) -> Result<Filter, Error> {
    let path = Path::new(text);
    if !is_file_of_weights(path) {
        let Weights { size, values } = text.parse().map_err(|e| {
            // Whoever names a file may have left out its ending.
            let also = if path.exists() { "; files of weights end in .npy" } else { "" };
            Error::Request(format!("{e}{also}"))
        })?;
        return Ok(Filter { rows: size as u64, cols: size as u64, values, border, filling: Filling::default() });
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
    let mut content = Vec::new();
    whole::open_input(path)
        .and_then(|mut file| file.read_to_end(&mut content))
        .map_err(|e| refuse(format!("they cannot be read: {e}")))?;
    let header = npy::parse(&content).map_err(|e| refuse(e.to_string()))?;
    if header.element != ElementType::F32 {
        return Err(refuse(format!("they are {}, float32 is needed", header.element)));
    }
    let &[rows, cols] = &header.shape[..] else {
        return Err(refuse(format!("they have {} dimensions, 2 are needed", header.shape.len())));
    };
    let sizes = 1..=SIZE_MAX as u64;
    if !sizes.contains(&rows) || !sizes.contains(&cols) {
        return Err(refuse(format!("they are {rows} x {cols}: 1 x 1 to {SIZE_MAX} x {SIZE_MAX} are taken")));
    }
    let data = content.get(header.data_offset_bytes as usize..).unwrap_or_default();
    let values: Vec<f32> = data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let wanted = (rows * cols) as usize;
    if data.len() != 4 * wanted {
        return Err(refuse(format!("{rows} x {cols} weights take {} bytes, there are {}", 4 * wanted, data.len())));
    }
    Ok(Filter { rows, cols, values, border, filling: Filling::default() })
}

/// Writes the planes, and opacity as it was, some rows at a time, as many as the run leaves room for.
fn write_picture(
    outcome: &Outcome,
    path: &Path,
    planes: &[Plane],
    (m, n): (u64, u64),
    alpha: Option<&Channel>,
) -> Result<(), Error> {
    let most = (BAND / n / planes.len().max(1) as u64).clamp(1, m);
    let bytes = |rows| picture::writing_bytes(n, planes.len(), alpha.is_some(), rows);
    // For one there is room, or the run was refused.
    let rows_each = (1..=most).rev().find(|&rows| bytes(rows) <= outcome.work_bytes()).unwrap_or(1);
    let mut band: Vec<Vec<f32>> = Vec::new();
    picture::write_rows(path, (m as usize, n as usize), (planes.len(), alpha.is_some()), |row, samples| {
        let row = row as u64;
        if row.is_multiple_of(rows_each) {
            let region = Region::new(&[row, 0], &[rows_each.min(m - row), n]);
            band.clear();
            band = planes
                .iter()
                .map(|plane| outcome.read_f32(plane.output, &region))
                .collect::<Result<_, _>>()
                .map_err(|error| Failed::Other(Box::new(error)))?;
        }
        let at = ((row % rows_each) * n) as usize;
        samples.iter_mut().zip(&band).for_each(|(to, band)| to.copy_from_slice(&band[at..][..n as usize]));
        match (alpha, samples.last_mut()) {
            (Some(alpha), Some(to)) => alpha.read(row * n, to),
            _ => Ok(()),
        }
    })
    .map_err(Failed::after)
}
