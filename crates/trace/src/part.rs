//! Traces of one run by several processes, put together: each has recorded its own workers, by a clock of its own.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;

use crate::error::TraceError;
use crate::file::{Section, read};
use crate::format::End;
use crate::record::{Kind, NO_SUBJECT, Record};

/// Ticks of another process's clock as ticks of this one's: a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// A tick of the other clock.
    pub from: u64,
    /// The same moment here.
    pub to: u64,
    /// Ticks here in one of the other's.
    pub rate: f64,
}

impl Shift {
    /// Of one clock that both read.
    pub const NONE: Shift = Shift { from: 0, to: 0, rate: 1.0 };

    /// A moment of the other's.
    pub fn tick(&self, tick: u64) -> u64 {
        if *self == Shift::NONE {
            return tick;
        }
        // What lies between is a run, whose ticks a float holds to less than one.
        let since = (i128::from(tick) - i128::from(self.from)) as f64 * self.rate;
        (i128::from(self.to) + since.round() as i128).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// A length of the other's.
    pub fn ticks(&self, ticks: u64) -> u64 {
        if self.rate == 1.0 { ticks } else { (ticks as f64 * self.rate).round() as u64 }
    }
}

/// What another process has traced of the same run, in a file of its own with the same names. In its records its own workers have the
/// numbers from 0 on, in its sums those that they have in all.
#[derive(Clone, Debug)]
pub struct Part {
    /// The file.
    pub path: PathBuf,
    /// The number in all of its first worker.
    pub first_worker: u32,
    /// Its clock.
    pub shift: Shift,
}

impl Part {
    /// Appends its records to a trace that ends so far with `end`, which then includes it. Returns how many there were.
    ///
    /// # Errors
    /// [`TraceError::Part`]; [`TraceError::Io`] where they cannot be written.
    pub(crate) fn append(&self, out: &mut impl Write, end: &mut End) -> Result<u64, TraceError> {
        let unreadable = |source| TraceError::Part { path: self.path.clone(), source: Box::new(source) };
        let mut file = BufReader::new(File::open(&self.path).map_err(|error| unreadable(error.into()))?);
        let (mut section, mut count, mut fault) = (Section::new(), 0, None);
        let part = read(&mut file, &mut |mut records: Vec<Record>| {
            records.iter_mut().for_each(|record| self.translate(record));
            count += records.len() as u64;
            let bytes = section.records(&records);
            let written = out.write_all(&bytes);
            section.reuse(bytes);
            written.map_err(|error| {
                fault = Some(error);
                TraceError::Io(std::io::ErrorKind::Other.into())
            })
        });
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        let part = part.map_err(unreadable)?.end;
        for (sums, more) in end.totals.iter_mut().zip(&part.totals) {
            sums.merge(&more.scaled(|ticks| self.shift.ticks(ticks)));
        }
        end.dropped += part.dropped;
        end.extend(self.shift.tick(part.start), self.shift.tick(part.tick));
        Ok(count)
    }

    fn translate(&self, record: &mut Record) {
        (record.start, record.end) = (self.shift.tick(record.start), self.shift.tick(record.end));
        record.worker = record.worker.wrapping_add(self.first_worker);
        if matches!(record.kind, Kind::Wait | Kind::Idle) && record.subject != NO_SUBJECT {
            record.subject = record.subject.wrapping_add(self.first_worker);
        }
    }
}
