//! The journal of a run whose results lie on disk: what the engine tells about stores, written so that a run that was
//! killed can be continued. `docs/resume.md` of this crate names the states and the races.

use crate::guard::{Guard, overlap};
use multigrain_engine::StoreLog;
use multigrain_plan::Stored;
use multigrain_store::{ArrayFile, Disk, Journal, Record, StoreError};
use std::time::{Duration, Instant};

const BEGIN: u32 = 1;
const DONE: u32 = 2;
/// The files are there, with their initial content.
const READY: u32 = 3;
/// Every result is durable; files take their final names.
const COMPLETE: u32 = 4;

/// Writes the journal. Completed stores are recorded in groups: making files durable costs a flush of the disk.
pub(crate) struct RunJournal<'a> {
    disk: &'a Disk,
    journal: Journal,
    interval: Duration,
    last: Instant,
    waiting: Vec<(Record, ArrayFile)>,
    /// Tells which stores overwrite what a resumed run would need, so that their beginning must be durable first; `None`
    /// when none does.
    guard: Option<Guard>,
}

impl<'a> RunJournal<'a> {
    pub(crate) fn new(disk: &'a Disk, journal: Journal, interval: Duration, guard: Option<Guard>) -> RunJournal<'a> {
        RunJournal { disk, journal, interval, last: Instant::now(), waiting: Vec::new(), guard }
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
        self.journal.append(self.disk, &records)?;
        if let Some(guard) = &mut self.guard {
            for record in &records {
                if let Some(block) = guard.block(record.a as u32, record.b as u32) {
                    guard.recorded(block);
                }
            }
        }
        Ok(())
    }

    /// Records that the files, made durable here, hold their initial content: from now on the run can be continued.
    pub(crate) fn ready<'f>(&mut self, files: impl IntoIterator<Item = &'f ArrayFile>) -> Result<(), StoreError> {
        files.into_iter().try_for_each(|file| self.disk.sync(file))?;
        self.mark(READY)
    }

    /// Records that every result is durable: from now on files only take their final names.
    pub(crate) fn complete(&mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.mark(COMPLETE)
    }

    /// Records that durable stores count no longer.
    pub(crate) fn give_up(&mut self, stores: &[Stored]) -> Result<(), StoreError> {
        if stores.is_empty() {
            return Ok(());
        }
        let record = |s: &Stored| Record { kind: BEGIN, a: u64::from(s.call), b: u64::from(s.argument) };
        let records: Vec<Record> = stores.iter().map(record).collect();
        self.journal.append(self.disk, &records)?;
        self.journal.sync(self.disk)
    }

    fn mark(&mut self, kind: u32) -> Result<(), StoreError> {
        self.journal.append(self.disk, &[Record { kind, a: 0, b: 0 }])?;
        self.journal.sync(self.disk)
    }

    /// Ends the journal: the run is complete and published, or given up.
    pub(crate) fn remove(self) {
        self.journal.remove(self.disk);
    }
}

impl StoreLog for RunJournal<'_> {
    fn begin(&mut self, call: u32, argument: u32) -> Result<(), StoreError> {
        let record = Record { kind: BEGIN, a: u64::from(call), b: u64::from(argument) };
        let mut sync = false;
        if let Some(guard) = &mut self.guard {
            match guard.block(call, argument) {
                Some(block) => {
                    // Completed stores of what is overwritten must not be recorded after this beginning.
                    self.waiting.retain(|(waiting, _)| {
                        let other = guard.block(waiting.a as u32, waiting.b as u32);
                        other.is_some_and(|other| !overlap(&other, &block))
                    });
                    sync = guard.begin(&block);
                }
                None => sync = true,
            }
        }
        self.journal.append(self.disk, &[record])?;
        if sync {
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

/// What a journal says.
pub(crate) struct Found {
    /// Stores, for the planner.
    pub(crate) events: Vec<Stored>,
    /// Whether the files had their initial content.
    pub(crate) ready: bool,
    /// Whether every result was durable, so that some may have their final names.
    pub(crate) complete: bool,
}

impl Found {
    pub(crate) fn new(records: &[Record]) -> Found {
        let store = |r: &Record| Stored { call: r.a as u32, argument: r.b as u32, durable: r.kind == DONE };
        Found {
            events: records.iter().filter(|r| matches!(r.kind, BEGIN | DONE)).map(store).collect(),
            ready: records.iter().any(|r| r.kind == READY),
            complete: records.iter().any(|r| r.kind == COMPLETE),
        }
    }
}
