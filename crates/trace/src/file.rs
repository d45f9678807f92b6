//! The trace file: names first, then records, everything little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | `MGTRACE` and the version, 1 |
//! | 8 | ticks in a second, as an IEEE double |
//! | 8, 8 | first and last tick of the run |
//! | 4 | workers |
//! | 4 | number of edges, then for each: 4 bytes of length and the name in UTF-8 |
//! | 4 | number of tasks, likewise |
//! | 8 | number of records, then for each the 32 bytes of [`crate::Record`] |

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use thiserror::Error;

use crate::breakdown::Breakdown;
use crate::record::{RECORD_BYTES, Record};
use crate::totals::Totals;

const MAGIC: [u8; 7] = *b"MGTRACE";
const VERSION: u8 = 1;

/// Longest name of an edge or a task that is read back; a longer one can only come from a damaged file.
const NAME_BYTES_MAX: u32 = 64 * 1024;

/// Most edges or tasks: what a record's 16-bit index can tell apart.
const NAMES_MAX: u32 = u16::MAX as u32;

/// A whole run as records, with what is needed to read them.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Rate of the ticks.
    pub ticks_per_second: f64,
    /// First tick of the run.
    pub start: u64,
    /// Last tick of the run.
    pub end: u64,
    /// How many workers took part.
    pub workers: u32,
    /// Names of the edges, by index.
    pub edges: Vec<String>,
    /// Names of the tasks, by index.
    pub tasks: Vec<String>,
    /// Every interval.
    pub records: Vec<Record>,
}

/// Why a trace could not be read or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The system refused a read or a write.
    #[error("the trace could not be read or written: {0}")]
    Io(#[from] io::Error),
    /// The first bytes are not those of a trace.
    #[error(
        "this is not a trace file: it begins with {found:02x?}, a trace with \"MGTRACE\"; was it written by a run with --trace?"
    )]
    NotATrace {
        /// The bytes that were found.
        found: [u8; 7],
    },
    /// Written by another version.
    #[error(
        "the trace has version {found}, this program reads version {VERSION}; read it with the program that wrote it"
    )]
    Version {
        /// The version that was found.
        found: u8,
    },
    /// The file ends too early.
    #[error("the trace ends in the middle of {part}: it was cut off, so write it again")]
    Truncated {
        /// What was being read.
        part: &'static str,
    },
    /// A field has a value that no writer gives it.
    #[error("the trace is damaged at {part}: found {found}, expected {expected}")]
    Damaged {
        /// What was being read.
        part: &'static str,
        /// What was found.
        found: String,
        /// What a valid file has there.
        expected: String,
    },
    /// More names, or a longer one, than the format holds.
    #[error("{what} do not fit into a trace: {found}, at most {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        found: usize,
        /// What would fit.
        limit: usize,
    },
}

impl Trace {
    /// Wall time of the run.
    pub fn wall_seconds(&self) -> f64 {
        self.end.saturating_sub(self.start) as f64 / self.ticks_per_second
    }

    /// Where the time of this run went.
    pub fn breakdown(&self) -> Breakdown {
        let mut totals = Totals::new(self.edges.len());
        self.records.iter().for_each(|record| totals.add_record(record));
        let workers = self.workers as usize;
        Breakdown::with_rate(self.wall_seconds(), workers, &totals, &self.edges, self.ticks_per_second)
    }

    /// Writes the trace to a file, replacing one of that name. The file appears whole or not at all: it is written
    /// under its name with `.part` behind it, and renamed.
    pub fn save(&self, path: &Path) -> Result<(), TraceError> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = Path::new(&part);
        let written = self.save_in_place(part).and_then(|()| Ok(fs::rename(part, path)?));
        if written.is_err() {
            // The first error is the one to report; the part may not even exist.
            let _ = fs::remove_file(part);
        }
        written
    }

    fn save_in_place(&self, path: &Path) -> Result<(), TraceError> {
        let mut out = BufWriter::new(File::create(path)?);
        self.write(&mut out)?;
        out.flush()?;
        Ok(())
    }

    /// Reads a trace from a file.
    pub fn load(path: &Path) -> Result<Trace, TraceError> {
        Trace::read(&mut BufReader::new(File::open(path)?))
    }

    /// Writes the trace. Many small writes: hand in something buffered.
    pub fn write(&self, out: &mut impl Write) -> Result<(), TraceError> {
        out.write_all(&MAGIC)?;
        out.write_all(&[VERSION])?;
        out.write_all(&self.ticks_per_second.to_le_bytes())?;
        out.write_all(&self.start.to_le_bytes())?;
        out.write_all(&self.end.to_le_bytes())?;
        out.write_all(&self.workers.to_le_bytes())?;
        write_names(out, "edges", &self.edges)?;
        write_names(out, "tasks", &self.tasks)?;
        out.write_all(&(self.records.len() as u64).to_le_bytes())?;
        for record in &self.records {
            out.write_all(&record.to_bytes())?;
        }
        Ok(())
    }

    /// Reads a trace. Whatever the bytes, the answer is a trace or an error, and no more memory is taken than the
    /// input has bytes to fill.
    pub fn read(input: &mut impl Read) -> Result<Trace, TraceError> {
        let magic: [u8; 7] = bytes(input, "the first bytes")?;
        if magic != MAGIC {
            return Err(TraceError::NotATrace { found: magic });
        }
        let [version] = bytes(input, "the version")?;
        if version != VERSION {
            return Err(TraceError::Version { found: version });
        }
        let ticks_per_second = f64::from_le_bytes(bytes(input, "the tick rate")?);
        if !(ticks_per_second.is_finite() && ticks_per_second > 0.0) {
            return Err(damaged("the tick rate", ticks_per_second, "a positive number"));
        }
        let start = u64::from_le_bytes(bytes(input, "the first tick")?);
        let end = u64::from_le_bytes(bytes(input, "the last tick")?);
        let workers = u32::from_le_bytes(bytes(input, "the number of workers")?);
        let edges = read_names(input, "the names of the edges")?;
        let tasks = read_names(input, "the names of the tasks")?;
        let count = u64::from_le_bytes(bytes(input, "the number of records")?);
        let mut records = Vec::new();
        for _ in 0..count {
            let raw: [u8; RECORD_BYTES] = bytes(input, "the records")?;
            let record =
                Record::from_bytes(&raw).ok_or_else(|| damaged("the kind of a record", raw[30], "a known kind"))?;
            records.push(record);
        }
        Ok(Trace { ticks_per_second, start, end, workers, edges, tasks, records })
    }
}

fn damaged(part: &'static str, found: impl ToString, expected: impl ToString) -> TraceError {
    TraceError::Damaged { part, found: found.to_string(), expected: expected.to_string() }
}

fn bytes<const N: usize>(input: &mut impl Read, part: &'static str) -> Result<[u8; N], TraceError> {
    let mut found = [0; N];
    input.read_exact(&mut found).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => TraceError::Truncated { part },
        _ => TraceError::Io(error),
    })?;
    Ok(found)
}

fn write_names(out: &mut impl Write, what: &'static str, names: &[String]) -> Result<(), TraceError> {
    let too_large = |found: usize, limit: u32| TraceError::TooLarge { what, found, limit: limit as usize };
    let count = u32::try_from(names.len()).ok().filter(|count| *count <= NAMES_MAX);
    let count = count.ok_or_else(|| too_large(names.len(), NAMES_MAX))?;
    out.write_all(&count.to_le_bytes())?;
    for name in names {
        let length = u32::try_from(name.len()).ok().filter(|length| *length <= NAME_BYTES_MAX);
        let length = length.ok_or_else(|| too_large(name.len(), NAME_BYTES_MAX))?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(name.as_bytes())?;
    }
    Ok(())
}

fn read_names(input: &mut impl Read, part: &'static str) -> Result<Vec<String>, TraceError> {
    let count = u32::from_le_bytes(bytes(input, part)?);
    if count > NAMES_MAX {
        return Err(damaged(part, count, format!("at most {NAMES_MAX}")));
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let length = u32::from_le_bytes(bytes(input, part)?);
        if length > NAME_BYTES_MAX {
            return Err(damaged(part, length, format!("at most {NAME_BYTES_MAX} bytes")));
        }
        let mut name = Vec::new();
        input.by_ref().take(u64::from(length)).read_to_end(&mut name)?;
        if name.len() != length as usize {
            return Err(TraceError::Truncated { part });
        }
        names.push(String::from_utf8(name).map_err(|error| damaged(part, error, "UTF-8"))?);
    }
    Ok(names)
}
