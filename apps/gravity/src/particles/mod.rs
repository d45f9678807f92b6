//! Particles from files, and what is refused of them.
//!
//! A `.npy` file holds n x 7 numbers of float32 or float64: mass, x, y, z, vx, vy, vz. One of our own snapshot files
//! (count x n x 7 of float64) is taken as well: its last snapshot. Any other file is read as text, comma-separated, with
//! the names of these columns, in any order, in its first line.

mod csv;
mod validate;

pub use csv::parse;

use multigrain::rooms::program::{ElementType, blocks};
use multigrain::rooms::store::npy;
use multigrain::whole;
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Names of the columns, in the order of a row.
pub const NAMES: [&str; 7] = ["mass", "x", "y", "z", "vx", "vy", "vz"];

/// The most particles that are taken: an evaluation of their forces takes an hour.
pub const PARTICLES_MAX: u64 = 1 << 24;

/// Particles, one row each: mass, x, y, z, vx, vy, vz.
#[derive(Clone, Debug, PartialEq)]
pub struct Particles {
    /// The rows.
    pub rows: Vec<[f64; 7]>,
}

/// A particle, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The line of a text, counted from 1.
    Line(usize),
    /// The row of an array, counted from 0.
    Row(usize),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Line(line) => write!(f, "line {line}"),
            Name::Row(row) => write!(f, "particle {row}"),
        }
    }
}

/// Why particles are refused.
#[derive(Debug, thiserror::Error)]
pub enum ParticlesError {
    /// The file cannot be read.
    #[error("cannot read the particles in {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no array that can be used.
    #[error("{}: {problem}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A line of a text makes no sense.
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A particle that cannot be.
    #[error("{}, {name}: {problem}", path.display())]
    Particle {
        /// The file, or the word for what was generated.
        path: PathBuf,
        /// Which particle.
        name: Name,
        /// What is wrong.
        problem: String,
    },
    /// The particles as a whole cannot be computed with in single precision.
    #[error("{}: {problem}", path.display())]
    Scale {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// Reads a file and refuses what cannot be simulated with this softening length.
///
/// # Errors
/// [`ParticlesError`], with the file and the line or row.
pub fn read(path: &Path, softening: f64) -> Result<Particles, ParticlesError> {
    let (particles, lines) = if is_npy(path) {
        (read_npy(path)?, None)
    } else {
        let mut content = Vec::new();
        whole::open_input(path)
            .and_then(|mut file| file.read_to_end(&mut content))
            .map_err(|source| ParticlesError::Read { path: path.to_owned(), source })?;
        let (particles, lines) = parse(&content).map_err(|e| match e {
            csv::CsvError { line: Some(line), problem } => {
                ParticlesError::Line { path: path.to_owned(), line, problem }
            }
            csv::CsvError { line: None, problem } => ParticlesError::Array { path: path.to_owned(), problem },
        })?;
        (particles, Some(lines))
    };
    let name = |row: usize| lines.as_ref().map_or(Name::Row(row), |lines| Name::Line(lines[row]));
    validate::validate(&particles, softening, path, &name)?;
    Ok(particles)
}

/// Longest header of an array that is looked at.
const HEADER_BYTES_MAX: u64 = 2 << 20;

/// An array of particles in a file.
struct Array {
    file: std::fs::File,
    /// Particles, and bytes of a number.
    n: u64,
    size: u64,
    /// Where the first is.
    offset_bytes: u64,
}

/// How many particles a file holds, where that is known before they are read: of an array.
///
/// # Errors
/// As for [`read`].
pub fn count(path: &Path) -> Result<Option<u64>, ParticlesError> {
    if is_npy(path) { open_npy(path).map(|array| Some(array.n)) } else { Ok(None) }
}

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"))
}

fn open_npy(path: &Path) -> Result<Array, ParticlesError> {
    let failed = |source| ParticlesError::Read { path: path.to_owned(), source };
    let refuse = |problem: String| ParticlesError::Array { path: path.to_owned(), problem };
    let mut file = whole::open_input(path).map_err(failed)?;
    let mut head = Vec::new();
    (&mut file).take(HEADER_BYTES_MAX).read_to_end(&mut head).map_err(failed)?;
    let header = npy::parse(&head).map_err(|e| refuse(e.to_string()))?;
    let size = match header.element {
        ElementType::F32 => 4,
        ElementType::F64 => 8,
        other => return Err(refuse(format!("it holds {other}; float32 or float64 is needed"))),
    };
    let (n, skipped) = match header.shape[..] {
        [n, 7] => (n, 0),
        [count, n, 7] => (n, count.saturating_sub(1)),
        _ => {
            return Err(refuse(format!(
                "it has shape {:?}; n x 7 is needed, with the columns mass, x, y, z, vx, vy, vz",
                header.shape
            )));
        }
    };
    if n == 0 || header.shape[0] == 0 {
        return Err(refuse("it holds no particles".into()));
    }
    if n > PARTICLES_MAX {
        return Err(refuse(format!("it holds {n} particles; at most {PARTICLES_MAX} are taken")));
    }
    let length = file.metadata().map_err(failed)?.len().saturating_sub(header.data_offset_bytes);
    let all = header.shape.iter().try_fold(size, |bytes: u64, &len| bytes.checked_mul(len));
    if all.is_none_or(|all| length < all) {
        let needed = all.map_or_else(|| "more than 2^64".to_owned(), |all| all.to_string());
        return Err(refuse(format!("it is cut off: its array takes {needed} bytes, there are {length}")));
    }
    Ok(Array { file, n, size, offset_bytes: header.data_offset_bytes + skipped * n * 7 * size })
}

/// Particles that are read at a time.
const READ_ROWS: u64 = 4096;

fn read_npy(path: &Path) -> Result<Particles, ParticlesError> {
    let failed = |source| ParticlesError::Read { path: path.to_owned(), source };
    let Array { mut file, n, size, offset_bytes } = open_npy(path)?;
    file.seek(SeekFrom::Start(offset_bytes)).map_err(failed)?;
    let number = |b: &[u8]| match size {
        4 => f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        _ => f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
    };
    let row = |b: &[u8]| std::array::from_fn(|c| number(&b[c * size as usize..]));
    let mut rows = Vec::with_capacity(n as usize);
    for (_, count) in blocks(n, READ_ROWS) {
        let mut data = vec![0; (count * 7 * size) as usize];
        file.read_exact(&mut data).map_err(failed)?;
        rows.extend(data.chunks_exact(7 * size as usize).map(row));
    }
    Ok(Particles { rows })
}

/// Bytes of a row as float64.
const ROW_BYTES: u64 = 56;

/// Bytes of so many particles as rows of an array.
pub fn bytes(particles: u64) -> u64 {
    particles.saturating_mul(ROW_BYTES)
}
/// In so many pieces rows become bytes.
const PIECES: usize = 16;

impl Particles {
    /// Refuses what cannot be simulated; for particles that were not read from a file.
    ///
    /// # Errors
    /// As for [`read`].
    pub fn validate(&self, softening: f64) -> Result<(), ParticlesError> {
        validate::validate(self, softening, Path::new("generated particles"), &Name::Row)
    }

    /// All rows as the bytes of an array of float64, with masses as the forces see them: rounded to single precision.
    pub fn into_bytes(self) -> Vec<u8> {
        let mut rows = self.rows;
        // From the last to the first, and what is done is given back: rows and bytes together take little more than one of
        // them, since zeros that were not touched take nothing.
        let row_bytes = ROW_BYTES as usize;
        let mut bytes = vec![0; rows.len() * row_bytes];
        let at_once = rows.len().div_ceil(PIECES);
        while !rows.is_empty() {
            let first = rows.len().saturating_sub(at_once.max(1));
            for (number, [mass, rest @ ..]) in rows.drain(first..).enumerate() {
                let row = [f64::from(mass as f32)].into_iter().chain(rest).flat_map(f64::to_le_bytes);
                let to = &mut bytes[(first + number) * row_bytes..][..row_bytes];
                to.iter_mut().zip(row).for_each(|(to, byte)| *to = byte);
            }
            rows.shrink_to_fit();
        }
        bytes
    }
}
