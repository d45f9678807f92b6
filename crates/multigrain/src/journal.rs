//! The journal of a run whose results lie on disk: what the engine tells about stores, written so that a run that was
//! killed can be continued. `docs/resume.md` of this crate names the states and the races.

use crate::blocks::{block_of, overlap};
use crate::error::Error;
use crate::found::{BEGIN, COMPLETE, DONE, FILE, OfRanks, RANKS, READY, SAMPLE};
use crate::guard::Guard;
use crate::homes::Homes;
use crate::identity::{Identity, InputStates, Text};
use crate::job::Job;
use crate::journals::Journals;
use crate::merged::folded;
use crate::samples::sample;
use multigrain_driver::Opaque;
use multigrain_engine::StoreLog;
use multigrain_plan::{Plan, Stored};
use multigrain_program::Call;
use multigrain_store::{ArrayFile, Disk, Record, StoreError};
use std::any::Any;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Of so many of the stores that are recorded together a sample is taken.
const SAMPLES: usize = 8;

/// Writes the journal. Completed stores are recorded in groups: making files durable costs a flush of the disk.
pub(crate) struct RunJournal<'a> {
    disk: &'a Disk,
    journals: Journals,
    /// The numbered calls.
    calls: &'a [Call],
    interval: Duration,
    last: Instant,
    waiting: Vec<(Record, ArrayFile)>,
    /// Whether a store was ever recorded.
    recorded: bool,
    /// Why nothing more is recorded: a flush has failed.
    failed: Option<StoreError>,
    /// Tells which stores overwrite what a resumed run would need, so that their beginning must be durable first; `None`
    /// when none does.
    guard: Option<Guard>,
}

impl<'a> RunJournal<'a> {
    /// The journal of a run, of which an interrupted one may have left work.
    pub(crate) fn new(
        disk: &'a Disk,
        journals: Journals,
        calls: &'a [Call],
        interval: Duration,
        guard: Option<Guard>,
        recorded: bool,
    ) -> RunJournal<'a> {
        let (last, waiting) = (Instant::now(), Vec::new());
        RunJournal { disk, journals, calls, interval, last, waiting, recorded, failed: None, guard }
    }

    /// The journal of a run whose results are complete and durable, and only want their names.
    pub(crate) fn of_complete(
        job: &Job,
        disk: &'a Disk,
        plan: &'a Plan,
        inputs: &InputStates,
        results: &[(usize, &ArrayFile)],
    ) -> Result<RunJournal<'a>, Error> {
        let numbered = (plan.own_arrays(), &plan.tasks[..], &plan.calls[..]);
        let identity = Identity::new(job, inputs, numbered, &plan.ways, Path::new("."), &[]);
        let journals = Journals::create(job, disk, &Text::Run(Box::new(identity)))?;
        let mut log = RunJournal::new(disk, journals, &plan.calls, Duration::ZERO, None, true);
        match log.complete(results.iter().copied()) {
            Ok(()) => Ok(log),
            Err(error) => {
                log.remove();
                Err(Error::Store(error))
            }
        }
    }

    /// Makes every completed store durable and records it. Where that fails, nothing is recorded from then on: the system
    /// may have dropped what was to be written, and says so once only (Rebello et al., "Can Applications Recover from fsync
    /// Failures?", USENIX ATC 2020).
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.record().inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn record(&mut self) -> Result<(), StoreError> {
        self.last = Instant::now();
        let mut synced: Vec<PathBuf> = Vec::new();
        for (_, file) in &self.waiting {
            if !synced.iter().any(|p| p == file.path()) {
                self.disk.sync(file)?;
                synced.push(file.path().to_owned());
            }
        }
        let samples = self.samples()?;
        let records: Vec<Record> = self.waiting.drain(..).map(|(record, _)| record).collect();
        self.journals.main.append(self.disk, &records)?;
        self.journals.main.append(self.disk, &samples)?;
        if !self.recorded && !records.is_empty() {
            // From here on a journal without records is damaged, and not that of a run that has nothing to be continued.
            self.journals.main.sync(self.disk)?;
            self.recorded = true;
        }
        if let Some(guard) = &mut self.guard {
            for record in &records {
                if let Some(block) = guard.block(record.a as u32, record.b as u32) {
                    guard.recorded(&block);
                }
            }
        }
        Ok(())
    }

    /// Samples of some of the stores that wait, the last among them.
    fn samples(&self) -> Result<Vec<Record>, StoreError> {
        let every = self.waiting.len().div_ceil(SAMPLES).max(1);
        let some = self.waiting.iter().rev().step_by(every);
        let samples = some.filter_map(|(record, file)| {
            let (call, argument) = (record.a as u32, record.b as u32);
            let block = block_of(self.calls, call, argument)?;
            let hash = sample(self.disk, file, &block.region);
            Some(hash.map(|hash| Record { kind: SAMPLE, a: record.a | record.b << 32, b: hash }))
        });
        samples.collect()
    }

    /// Records that the files, made durable here with their names, hold their initial content: from now on the run can be
    /// continued.
    pub(crate) fn ready(&mut self, homes: &Homes) -> Result<(), StoreError> {
        let mut folders: Vec<&std::path::Path> = Vec::new();
        for file in homes.lasting() {
            self.disk.sync(file)?;
            let folder = file.path().parent();
            if folder.is_none_or(|folder| !folders.contains(&folder)) {
                self.disk.sync_directory(file.path())?;
                folders.extend(folder);
            }
        }
        self.mark(READY)
    }

    /// Records that every result is durable: from now on files, those of these arrays, take their final names, or others are made from them.
    pub(crate) fn complete<'f>(
        &mut self,
        results: impl Iterator<Item = (usize, &'f ArrayFile)>,
    ) -> Result<(), StoreError> {
        self.flush()?;
        let held = |(array, file)| Ok(Record { kind: FILE, a: array as u64, b: self.disk.sample_of(file)? });
        let held = results.map(held).collect::<Result<Vec<_>, StoreError>>()?;
        self.journals.main.append(self.disk, &held)?;
        self.mark(COMPLETE)
    }

    /// Records that durable stores count no longer.
    pub(crate) fn give_up(&mut self, stores: &[Stored]) -> Result<(), StoreError> {
        if stores.is_empty() {
            return Ok(());
        }
        let record = |s: &Stored| Record { kind: BEGIN, a: u64::from(s.call), b: u64::from(s.argument) };
        let records: Vec<Record> = stores.iter().map(record).collect();
        self.journals.main.append(self.disk, &records)?;
        self.journals.main.sync(self.disk)
    }

    /// Records that the journals of these ranks count from now on.
    pub(crate) fn of_ranks(&mut self, of: OfRanks) -> Result<(), StoreError> {
        let [a, b] = of.written();
        self.journals.main.append(self.disk, &[Record { kind: RANKS, a, b }])?;
        self.journals.main.sync(self.disk)
    }

    /// Records what ranks had recorded, whose journals count no longer.
    pub(crate) fn fold(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.journals.main.append(self.disk, &folded(records))?;
        self.journals.main.sync(self.disk)
    }

    /// Whether something is recorded that could be continued.
    pub(crate) fn has_work(&self) -> bool {
        self.recorded
    }

    fn mark(&mut self, kind: u32) -> Result<(), StoreError> {
        self.journals.main.append(self.disk, &[Record { kind, a: 0, b: 0 }])?;
        self.journals.main.sync(self.disk)
    }

    /// What is left to be removed.
    pub(crate) fn into_journals(self) -> Journals {
        self.journals
    }

    /// Ends the journal: the run is complete and published, or given up.
    pub(crate) fn remove(self) {
        self.journals.remove(self.disk);
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
                    if guard.ends_waiting(&block) {
                        self.waiting.retain(|(waiting, _)| {
                            let other = guard.block(waiting.a as u32, waiting.b as u32);
                            other.is_some_and(|other| !overlap(&other, &block))
                        });
                    }
                    sync = guard.begin(&block) | guard.may_end_others(call, &block);
                }
                None => sync = true,
            }
        }
        self.journals.main.append(self.disk, &[record])?;
        if sync {
            self.journals.main.sync(self.disk)?;
        }
        Ok(())
    }

    fn done(&mut self, call: u32, argument: u32, array: &dyn Opaque) -> Result<(), StoreError> {
        // Nothing else is a result on a disk.
        let Some(file) = (array as &dyn Any).downcast_ref::<ArrayFile>() else { return Ok(()) };
        if let Some(guard) = &mut self.guard
            && let Some(block) = guard.block(call, argument)
        {
            guard.waits(&block);
        }
        self.waiting.push((Record { kind: DONE, a: u64::from(call), b: u64::from(argument) }, file.clone()));
        if self.last.elapsed() >= self.interval {
            self.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::tests::two_passes;
    use crate::sides::Sides;
    use multigrain_program::{ElementType, Program};
    use multigrain_store::faults::Faults;
    use multigrain_store::{DiskOptions, Journal, Operation, OperationKind, Verdict};
    use std::sync::{Arc, Mutex};

    /// What a journal held when it was last flushed.
    #[derive(Default)]
    struct Durable(Mutex<Vec<u8>>);

    impl Faults for Durable {
        fn before(&self, operation: &Operation<'_>) -> Verdict {
            if operation.kind == OperationKind::Sync && operation.path.ends_with("journal") {
                *self.0.lock().unwrap() = std::fs::read(operation.path).unwrap();
            }
            Verdict::Go
        }
    }

    /// The stores of which a program's journal speaks, after what `write` does: those that are durable, and all.
    fn records(program: &Program, write: impl FnOnce(&mut RunJournal<'_>, &ArrayFile)) -> [Vec<(u32, u64)>; 2] {
        let folder = tempfile::tempdir().unwrap();
        let durable = Arc::new(Durable::default());
        let disk = Disk::new(DiskOptions { faults: Some(durable.clone()), ..DiskOptions::default() }).unwrap();
        let path = folder.path().join("journal");
        let journals = Journals::of_rank(Journal::create(&disk, &path, "{}").unwrap());
        *durable.0.lock().unwrap() = std::fs::read(&path).unwrap();
        let file = disk.create_raw(folder.path().join("out"), ElementType::F32, &[4, 4], false).unwrap();
        let guard = Guard::new(program.arrays(), program.tasks(), program.calls(), &Sides::default());
        let never = Duration::from_secs(1 << 30);
        write(&mut RunJournal::new(&disk, journals, program.calls(), never, Some(guard), false), &file);
        let read = |path: &Path| {
            let mut stores = Vec::new();
            let of_store = |record: Record| (record.kind != SAMPLE).then_some((record.kind, record.a));
            Journal::read(&disk, path, |record| stores.extend(of_store(record))).unwrap();
            stores
        };
        let all = read(&path);
        std::fs::write(&path, &*durable.0.lock().unwrap()).unwrap();
        [read(&path), all]
    }

    #[test]
    fn what_is_overwritten_is_not_recorded_any_more() {
        let [_, all] = records(&two_passes(4), |log, file| {
            for row in 0..4 {
                log.begin(row, 1).unwrap();
                log.done(row, 1, file).unwrap();
            }
            // A column crosses all rows, which are complete and wait to be recorded.
            log.begin(4, 0).unwrap();
            log.flush().unwrap();
        });
        assert_eq!(all, [(BEGIN, 0), (BEGIN, 1), (BEGIN, 2), (BEGIN, 3), (BEGIN, 4)]);
    }

    #[test]
    fn what_is_given_up_is_durable_before_anything_is_overwritten() {
        let given_up = [Stored { call: 2, argument: 1, durable: false }];
        let [durable, _] = records(&two_passes(4), |log, _| log.give_up(&given_up).unwrap());
        assert_eq!(durable, [(BEGIN, 2)]);
    }
}
