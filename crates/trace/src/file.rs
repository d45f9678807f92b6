//! The trace file: sections, each with its length and a check sum, everything little-endian. `docs/format.md` draws
//! it.

mod read;
mod write;

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use crate::breakdown::Breakdown;
use crate::error::TraceError;
use crate::format::{End, MAGIC};
use crate::header::{Header, SlotInfo, Use};
use crate::record::{Record, sort};
use crate::totals::Totals;

pub(crate) use read::read;
pub(crate) use write::{Section, end, magic, names};

/// Shortest run whose elapsed time gives a better rate of the clock than what was known before it: 10 ms.
const RATE_FROM_NS: u64 = 10_000_000;

/// A whole run as records, with what is needed to read them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What the numbers stand for.
    pub header: Header,
    /// The slots that transfers fill and empty.
    pub slots: Vec<SlotInfo>,
    /// Which calls work on which slots, sorted.
    pub uses: Vec<Use>,
    /// How the run ended.
    pub end: End,
    /// Every interval, by start, then worker, the longer first.
    pub records: Vec<Record>,
}

impl Trace {
    /// First tick of the run.
    pub fn start(&self) -> u64 {
        self.end.start
    }

    /// Last tick of the run, not before the first.
    pub fn stop(&self) -> u64 {
        self.end.tick.max(self.start())
    }

    /// The rate of the clock: that of the whole run, where it was long enough to measure one.
    pub fn ticks_per_second(&self) -> f64 {
        let ticks = self.stop() - self.start();
        rate(self.header.clock.ticks_per_second, ticks, self.end.elapsed_ns)
    }

    /// Seconds of that many ticks.
    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second()
    }

    /// Wall time of the run.
    pub fn wall_seconds(&self) -> f64 {
        self.seconds(self.stop() - self.start())
    }

    /// How many workers took part.
    pub fn workers(&self) -> usize {
        self.header.workers.len()
    }

    /// Where the time of this run went: from the sums that the workers kept, which include records that were dropped,
    /// or from the records where there are no sums.
    pub fn breakdown(&self) -> Breakdown {
        let mut totals = Totals::new(self.header.edges.len());
        match self.end.totals.is_empty() {
            true => self.records.iter().for_each(|record| totals.add_record(record)),
            false => self.end.totals.iter().for_each(|worker| totals.merge(worker)),
        }
        let names = self.header.edge_names();
        Breakdown::with_rate(self.wall_seconds(), self.workers(), &totals, &names, self.ticks_per_second())
    }

    /// The name of the block in a slot, such as `A [0..512, 1024..1536]`.
    pub fn block_name(&self, slot: u32) -> Option<String> {
        let slot = self.slots.get(slot as usize)?;
        Some(crate::header::BlockName(&self.header, slot).to_string())
    }

    /// Another thread that had to do with workers, in words; `others` for one that is not known.
    pub fn other(&self, other: Option<u32>) -> String {
        self.end.observed.name(other)
    }

    /// Refuses, before any work, a file that no trace may be written to: what [`multigrain_whole::check_target`] refuses, and
    /// one that holds something other than a trace, which was hardly meant.
    ///
    /// # Errors
    /// [`TraceError::Target`] and [`TraceError::Replaces`].
    pub fn check_target(path: &Path) -> Result<(), TraceError> {
        multigrain_whole::check_target(path)?;
        let mut first = Vec::new();
        // One that is not there begins with nothing, and so may one that cannot be read.
        let _ = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut first));
        match MAGIC.starts_with(&first) {
            true => Ok(()),
            false => Err(TraceError::Replaces { path: path.to_owned() }),
        }
    }

    /// Writes the trace to a file, replacing one of that name. The file appears whole or not at all.
    ///
    /// # Errors
    /// [`TraceError::Create`] when the system refuses it, [`TraceError::TooLarge`] for what the format cannot hold.
    pub fn save(&self, path: &Path) -> Result<(), TraceError> {
        multigrain_whole::write(path, |out| self.write(out)).map_err(|error| match error {
            TraceError::Io(source) => TraceError::Create { path: path.to_owned(), source },
            other => other,
        })
    }

    /// Reads a trace from a file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn load(path: &Path) -> Result<Trace, TraceError> {
        Trace::read(&mut BufReader::new(multigrain_whole::open_input(path)?))
    }

    /// Writes the trace.
    ///
    /// # Errors
    /// [`TraceError::Io`], [`TraceError::TooLarge`].
    pub fn write(&self, out: &mut impl Write) -> Result<(), TraceError> {
        out.write_all(&magic())?;
        out.write_all(&names(&self.header, &self.slots, &self.uses)?)?;
        let mut section = Section::new();
        for chunk in self.records.chunks(32 << 10) {
            let bytes = section.records(chunk);
            out.write_all(&bytes)?;
            section.reuse(bytes);
        }
        out.write_all(&end(&self.end, self.records.len() as u64))?;
        Ok(())
    }

    /// Reads a trace. Whatever the bytes, the answer is a trace or an error, and no more memory is taken than the
    /// input has bytes to fill.
    ///
    /// # Errors
    /// [`TraceError`] says what is wrong with the input and where.
    pub fn read(input: &mut impl Read) -> Result<Trace, TraceError> {
        let mut records = Vec::new();
        let mut trace = read(input, &mut |more| {
            records.extend(more);
            Ok(())
        })?;
        sort(&mut records);
        trace.records = records;
        Ok(trace)
    }
}

/// Ticks in a second: as known before the run, or, for a run of at least 10 ms, as the two clocks say after it.
pub fn rate(known: f64, ticks: u64, elapsed_ns: u64) -> f64 {
    match elapsed_ns >= RATE_FROM_NS && ticks > 0 {
        true => ticks as f64 / (elapsed_ns as f64 / 1e9),
        false if known.is_finite() && known > 0.0 => known,
        false => 1e9,
    }
}
