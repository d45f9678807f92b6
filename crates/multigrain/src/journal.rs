//! The journal of a run whose results lie on disk: what the engine tells about stores, written so that a run that was
//! killed can be continued. `docs/resume.md` of this crate names the states.

use multigrain_engine::StoreLog;
use multigrain_plan::Stored;
use multigrain_store::{ArrayFile, Disk, Journal, Record, StoreError};
use std::time::{Duration, Instant};

const BEGIN: u32 = 1;
const DONE: u32 = 2;

/// Writes the journal. Completed stores are recorded in groups: making files durable costs a flush of the disk.
pub(crate) struct RunJournal<'a> {
    disk: &'a Disk,
    journal: Journal,
    interval: Duration,
    last: Instant,
    waiting: Vec<(Record, ArrayFile)>,
    /// Whether a store may overwrite what a resumed run would need, so that its beginning must be durable first.
    in_place: bool,
}

impl<'a> RunJournal<'a> {
    pub(crate) fn new(disk: &'a Disk, journal: Journal, interval: Duration, in_place: bool) -> RunJournal<'a> {
        RunJournal { disk, journal, interval, last: Instant::now(), waiting: Vec::new(), in_place }
    }

    /// Makes every completed store durable and records it.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        self.last = Instant::now();
        let mut synced: Vec<std::path::PathBuf> = Vec::new();
        for (_, file) in &self.waiting {
            if !synced.iter().any(|p| p == file.path()) {
                self.disk.sync(file)?;
                synced.push(file.path().to_owned());
            }
        }
        let records: Vec<Record> = self.waiting.drain(..).map(|(record, _)| record).collect();
        self.journal.append(self.disk, &records)
    }

    /// Ends the journal: the run is complete and published.
    pub(crate) fn remove(self) {
        self.journal.remove(self.disk);
    }
}

impl StoreLog for RunJournal<'_> {
    fn begin(&mut self, call: u32, argument: u32) -> Result<(), StoreError> {
        let record = Record { kind: BEGIN, a: u64::from(call), b: u64::from(argument) };
        if self.in_place {
            // Completed stores of earlier versions must not be recorded after this one's beginning.
            self.flush()?;
        }
        self.journal.append(self.disk, &[record])?;
        if self.in_place {
            self.journal.sync(self.disk)?;
        }
        Ok(())
    }

    fn done(&mut self, call: u32, argument: u32, file: &ArrayFile) -> Result<(), StoreError> {
        self.waiting.push((Record { kind: DONE, a: u64::from(call), b: u64::from(argument) }, file.clone()));
        if self.last.elapsed() >= self.interval {
            self.flush()?;
        }
        Ok(())
    }
}

/// The events of a journal, for the planner.
pub(crate) fn events(records: &[Record]) -> Vec<Stored> {
    records.iter().map(|r| Stored { call: r.a as u32, argument: r.b as u32, durable: r.kind == DONE }).collect()
}
