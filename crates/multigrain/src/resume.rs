//! How a run whose results lie on disk begins: from its inputs, or from what an interrupted run has left behind.
//! `docs/resume.md` of this crate names the states and the races.

use crate::error::Error;
use crate::found::Found;
use crate::guard::Guard;
use crate::homes::{Folder, Homes, Opening};
use crate::identity::{Identity, InputStates, Text, changed_input};
use crate::job::Job;
use crate::journal::RunJournal;
use crate::journals::{Journals, journal_paths};
use crate::merged;
use crate::names::{directory_of, part_path, scratch_path, twin_path};
use crate::options::Settings;
use crate::samples::altered;
use crate::sides::{Sides, left, overlapping, stored_blocks};
use multigrain_plan::{ChildPlan, Left, Numbered, Op, Plan};
use multigrain_program::{Arg, Role};
use multigrain_store::{ArrayFile, Disk, Journal, StoreError};
use multigrain_team::Abort;
use std::path::{Path, PathBuf};

/// What beginning needs to know.
pub(crate) struct Begin<'a> {
    pub(crate) job: &'a Job,
    pub(crate) disk: &'a Disk,
    /// Where scratch files go.
    pub(crate) directory: &'a Path,
    pub(crate) settings: &'a Settings<'a>,
    /// Ends the beginning early when raised.
    pub(crate) abort: &'a Abort,
    /// Of a run of several ranks, a name that no other run has: by it others open files that are nobody's result.
    pub(crate) shared: Option<&'a Path>,
}

/// A run that can start.
pub(crate) struct Begun<'a> {
    pub(crate) homes: Homes,
    pub(crate) log: RunJournal<'a>,
    pub(crate) sides: Sides,
}

impl<'a> Begin<'a> {
    pub(crate) fn folder<'p>(&'p self, path: &'p Path) -> Folder<'p> {
        Folder { path, first: self.job.files_written().next(), shared: self.shared, spread: None }
    }

    /// Begins from the inputs, which were in these states before. When it fails, no file is left.
    pub(crate) fn afresh(&self, plan: &'a Plan, inputs: &InputStates) -> Result<Begun<'a>, Error> {
        let (disk, job) = (self.disk, self.job);
        make_way(job, disk, self.settings, self.directory)?;
        let numbered = (plan.own_arrays(), &plan.tasks[..], &plan.calls[..]);
        let mut sides = Sides::of(&plan.arrays, &plan.tasks, &plan.calls, &overlapping(&stored_blocks(plan)));
        let create = |twins: &[usize]| {
            let identity = Identity::new(job, inputs, numbered, &plan.ways, self.directory, twins);
            Journals::create(job, disk, &Text::Run(Box::new(identity)))
        };
        // A journal of an earlier run must not be believed about the files that are made now: it is emptied first.
        let early = match journal_paths(job).any(|path| path.exists()) {
            true => Some(create(&sides.arrays())?),
            false => None,
        };
        journal_paths(job).for_each(|path| merged::remove(disk, &path));
        remove_left(job, disk, self.directory, plan.arrays.len())?;
        let folder = self.folder(self.directory);
        let wanted = sides.arrays();
        let made = Homes::on_disk(job, plan, disk, folder, Opening::Fresh, &mut sides, self.abort);
        let made = made.and_then(|homes| match changed_input(job, inputs, &homes, true, disk) {
            Ok(None) => Ok(homes),
            other => {
                homes.discard(disk);
                Err(other.map_or_else(|e| e, |path| Error::InputChanged { path: path.unwrap_or_default() }))
            }
        });
        let homes = match made {
            Ok(homes) => homes,
            Err(error) => {
                if let Some(journals) = early {
                    journals.remove(disk);
                }
                return Err(error);
            }
        };
        // Where the disk is too small for a second file, the journal says so.
        let early = early.filter(|_| wanted == sides.arrays());
        let journals = match early.map_or_else(|| create(&sides.arrays()), Ok) {
            Ok(journals) => journals,
            Err(error) => {
                homes.discard(disk);
                return Err(error);
            }
        };
        let guard = self.guard(plan, &sides);
        let mut log = RunJournal::new(disk, journals, &plan.calls, self.settings.interval(), guard, false);
        if let Err(error) = log.ready(&homes) {
            homes.discard(disk);
            log.remove();
            return Err(Error::File(error));
        }
        Ok(Begun { homes, log, sides })
    }

    /// What has to be durable first, of a run from the inputs.
    pub(crate) fn guard(&self, plan: &Plan, sides: &Sides) -> Option<Guard> {
        overwrites(plan, Vec::new()).then(|| Guard::new(&plan.arrays, &plan.tasks, &plan.calls, sides))
    }

    /// Begins where an interrupted run ended. When it fails, what that run left stays.
    pub(crate) fn continued(&self, going_on: &'a GoingOn, plan: &Plan) -> Result<Begun<'a>, Error> {
        // A run that comes to its end gives its files other names while they are looked for.
        self.going_on_with(going_on, plan).map_err(|error| match going_on.unfinished.was_ended(self.disk) {
            true => Error::File(StoreError::Busy { path: going_on.unfinished.journal.clone() }),
            false => error,
        })
    }

    fn going_on_with(&self, going_on: &'a GoingOn, plan: &Plan) -> Result<Begun<'a>, Error> {
        let (disk, job) = (self.disk, self.job);
        let GoingOn { unfinished, numbered, left, .. } = going_on;
        let found = &unfinished.found;
        let opening = if found.complete { Opening::Complete } else { Opening::Continued };
        if let Some(missing) = unfinished.missing(job) {
            return Err(self.refused(unfinished, format!("{} is missing", missing.display())));
        }
        let folder = self.folder(&unfinished.identity.scratch);
        let mut sides = match found.complete {
            true => Sides::default(),
            false => going_on.sides(),
        };
        let homes = Homes::on_disk(job, plan, disk, folder, opening, &mut sides, self.abort)?;
        let is_another = |file: &&ArrayFile| !file.is_resumed();
        let other = match found.complete {
            true => homes.unpublished().map(|(_, file)| file).find(is_another),
            false => homes.lasting().find(is_another),
        };
        if let Some(other) = other {
            return Err(self.refused(unfinished, format!("{} is not what it was", other.path().display())));
        }
        if let Some(path) = altered(found, numbered, &sides, &homes, disk).map_err(Error::File)? {
            let why = format!("{} does not hold what the journal says was written to it", path.display());
            return Err(self.refused(unfinished, why));
        }
        let journals =
            Journals::resume(job, disk)?.ok_or_else(|| self.refused(unfinished, "its journal is gone".to_owned()))?;
        let mut log = RunJournal::new(
            disk,
            journals,
            numbered.calls(),
            self.settings.interval(),
            going_on.guard(plan, &sides),
            true,
        );
        if found.of_ranks.is_some() {
            log.fold(&found.merged).map_err(Error::File)?;
            merged::remove(disk, &unfinished.journal);
        }
        log.give_up(&left.given_up).map_err(Error::File)?;
        homes.restore(job, disk, &sides, &left.restore, self.abort).map_err(|error| match error {
            Error::Interrupted { .. } => Error::Interrupted { resume: true },
            other => other,
        })?;
        Ok(Begun { homes, log, sides })
    }

    fn refused(&self, unfinished: &Unfinished, why: String) -> Error {
        Error::OtherRun { journal: unfinished.journal.clone(), why }
    }
}

/// What an interrupted run has left, ready to be gone on with.
pub(crate) struct GoingOn {
    pub(crate) unfinished: Unfinished,
    pub(crate) numbered: Numbered,
    pub(crate) left: Left,
}

impl GoingOn {
    /// Compares the interrupted run with a job whose inputs are in these states now, and finds what is left to do.
    pub(crate) fn of(job: &Job, inputs: &InputStates, unfinished: Unfinished) -> Result<GoingOn, Error> {
        let then = &unfinished.identity;
        let refused = |why| Error::OtherRun { journal: unfinished.journal.clone(), why };
        if let Some(missing) = &unfinished.found.missing {
            return Err(refused(format!(
                "{}, the journal of one of its ranks, is not there any more",
                missing.display()
            )));
        }
        let numbered = Numbered::of(&job.program, &then.ways);
        let calls = match &numbered {
            Ok(numbered) => (numbered.arrays(), numbered.tasks(), numbered.calls()),
            Err(_) => (&[][..], &[][..], &[][..]),
        };
        let twins: Vec<usize> = then.twins.iter().map(|twin| twin.array).collect();
        let now = Identity::new(job, inputs, calls, &then.ways, &then.scratch, &twins);
        if let Some(why) = then.difference(&now) {
            return Err(refused(why));
        }
        let numbered = numbered.map_err(|other| refused(other.to_string()))?;
        // Of a complete run nothing is left but to give its results their names.
        let left = match unfinished.found.complete {
            true => numbered.nothing_left(),
            false => left(&numbered, &sides_of(then, &numbered), &unfinished.found.events),
        };
        Ok(GoingOn { unfinished, numbered, left })
    }

    /// What has to be durable first.
    pub(crate) fn guard(&self, plan: &Plan, sides: &Sides) -> Option<Guard> {
        let (found, numbered) = (&self.unfinished.found, &self.numbered);
        let stored = found.events.iter().filter(|e| e.durable).filter_map(|e| {
            let call = numbered.calls().get(e.call as usize)?;
            call.args.get(e.argument as usize).copied()
        });
        overwrites(plan, stored.collect()).then(|| {
            let events: Vec<_> = found.events.iter().chain(&self.left.given_up).copied().collect();
            Guard::new(numbered.arrays(), numbered.tasks(), numbered.calls(), sides).after(&events)
        })
    }

    pub(crate) fn sides(&self) -> Sides {
        sides_of(&self.unfinished.identity, &self.numbered)
    }
}

/// The sides that the calls of an interrupted run have.
fn sides_of(identity: &Identity, numbered: &Numbered) -> Sides {
    let twins: Vec<usize> = identity.twins.iter().map(|twin| twin.array).collect();
    Sides::of(numbered.arrays(), numbered.tasks(), numbered.calls(), &twins)
}

/// Work of an interrupted run, of which some result has the name of a result of a job.
pub(crate) struct Unfinished {
    pub(crate) journal: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) found: Found,
}

impl Unfinished {
    /// What is in the way of a job's results, or could be continued. Refused, where that is `asked`, if somebody is at work on it.
    pub(crate) fn find(job: &Job, disk: &Disk, settings: &Settings<'_>, asked: bool) -> Result<Vec<Unfinished>, Error> {
        let mut found: Vec<Unfinished> = Vec::new();
        let read = |path: &Path| match read(disk, path) {
            // What can be read no more can be thrown away.
            Err(Error::File(StoreError::NotAJournal { ours: true, .. })) if settings.discard => Ok(None),
            other => other,
        };
        for path in journal_paths(job).filter(|path| path.exists()) {
            let one = match read(&path)? {
                Some((Text::Journal(main), _)) => match read(&main)? {
                    // A journal may have been ended and what points to it not.
                    Some((Text::Run(identity), found)) if identity.written().any(|to| names(to, &path)) => {
                        Unfinished { journal: main, identity: *identity, found }
                    }
                    _ => continue,
                },
                Some((Text::Run(identity), found)) => Unfinished { journal: path, identity: *identity, found },
                Some((Text::Rank(_), _)) | None => continue,
            };
            if asked && one.is_at_home() {
                refuse_if_busy(disk, one.identity.results.iter().map(|result| result.to.clone()).chain(one.lies_in()))?;
                if let Some(path) = merged::busy(disk, &one.journal) {
                    return Err(Error::File(StoreError::Busy { path }));
                }
            }
            let over = one.found.complete
                && one.is_at_home()
                && one.parts().all(|part| !part.exists())
                && !((settings.resume || one.is_to_be_made()) && one.is_all_there(job));
            if one.found.has_work() && !over && found.iter().all(|other| other.journal != one.journal) {
                found.push(one);
            }
        }
        Ok(found)
    }

    /// Whether the files of which it speaks are those that lie beside it, and not of the run whose journal was copied or moved here.
    fn is_at_home(&self) -> bool {
        self.identity.written().next().is_some_and(|first| names(first, &self.journal))
    }

    /// Of a complete run: whether all results have their names, and those that go nowhere are still kept.
    fn is_all_there(&self, job: &Job) -> bool {
        self.identity.results.iter().all(|result| result.to.exists()) && self.not_kept(job).is_none()
    }

    /// Of a complete run: whether files are made from its results, so that it is over only when these are there.
    fn is_to_be_made(&self) -> bool {
        self.identity.written().count() > self.identity.results.len()
    }

    /// Results while they are written.
    fn parts(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.identity.results.iter().map(|result| part_path(&result.to))
    }

    /// Of a complete run: a file of a result that goes nowhere, but is not there.
    fn not_kept(&self, job: &Job) -> Option<PathBuf> {
        let needed = self.identity.needed_afterwards(job.arrays()).filter_map(|array| self.scratch_of(array));
        needed.map(|path| part_path(&path)).find(|part| !part.exists())
    }

    /// The file of an array that has none of its own, which is written under its `.part` name.
    fn scratch_of(&self, array: usize) -> Option<PathBuf> {
        let first = self.identity.written().next()?;
        Some(scratch_path(&self.identity.scratch, first, array))
    }

    /// The files of all such arrays, and second files, likewise.
    fn lies_in(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let twins = self.identity.twins.iter().map(|twin| twin.to.clone());
        self.identity.kept.iter().filter_map(|&array| self.scratch_of(array)).chain(twins)
    }

    /// What these are while the run is not over.
    pub(crate) fn scratch(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.lies_in().map(|path| part_path(&path))
    }

    /// Whether somebody else has brought the run to its end, or near it, since its journal was read.
    fn was_ended(&self, disk: &Disk) -> bool {
        match read(disk, &self.journal) {
            Ok(Some((_, now))) => now.complete != self.found.complete,
            Ok(None) => true,
            Err(_) => !self.journal.exists(),
        }
    }

    /// A file without which there is no going on.
    fn missing(&self, job: &Job) -> Option<PathBuf> {
        match self.found.complete {
            true => {
                let is_missing = |to: &&PathBuf| !to.exists() && !part_path(to).exists();
                let missing = self.identity.results.iter().map(|r| &r.to).find(is_missing).cloned();
                missing.or_else(|| self.not_kept(job).filter(|_| self.is_to_be_made()))
            }
            false => self.parts().chain(self.scratch()).find(|part| !part.exists()),
        }
    }

    /// It is in the way of a run that is neither to go on with it nor to throw it away.
    pub(crate) fn in_the_way(&self) -> Error {
        let stores = self.found.events.iter().filter(|event| event.durable).count() as u64;
        Error::Unfinished { result: self.identity.written().next().unwrap_or(&self.journal).clone(), stores }
    }

    /// Throws the work away.
    fn discard(&self, disk: &Disk) {
        // The journal goes first: without it nobody believes the rest.
        disk.remove(&self.journal);
        merged::remove(disk, &self.journal);
        if !self.is_at_home() {
            return;
        }
        let pointing = self.identity.written().skip(1).map(|to| Journal::path_for(to));
        let rest = pointing.chain(self.parts()).chain(self.scratch());
        rest.filter(|path| path.exists()).for_each(|path| disk.remove(&path));
    }
}

/// Whether a journal's name is that beside a result.
fn names(result: &Path, journal: &Path) -> bool {
    std::path::absolute(journal).is_ok_and(|journal| journal == Journal::path_for(result))
}

fn read(disk: &Disk, path: &Path) -> Result<Option<(Text, Found)>, Error> {
    let mut found = Found::default();
    let text = Journal::read(disk, path, |record| found.add(record)).map_err(Error::File)?;
    let Some(text) = text else { return Ok(None) };
    found.end();
    merged::add(disk, path, &mut found)?;
    let text = serde_json::from_str(&text).map_err(|_| {
        let found = "it is a journal of another version of this program".to_owned();
        Error::File(StoreError::NotAJournal { path: path.to_owned(), found, ours: true })
    })?;
    Ok(Some((text, found)))
}

/// Whoever runs holds the locks of the files that it writes; its journal must not be touched.
fn refuse_if_busy(disk: &Disk, mut written: impl Iterator<Item = PathBuf>) -> Result<(), Error> {
    match written.find(|path| disk.is_busy(path)) {
        Some(path) => Err(Error::File(StoreError::Busy { path: part_path(&path) })),
        None => Ok(()),
    }
}

/// The files that a job writes its arrays to, of which those without one of their own lie in a folder.
fn written_under<'a>(job: &'a Job, folder: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let scratch = job.files_written().next().into_iter().flat_map(move |first| {
        let nowhere = job.sinks.iter().enumerate().filter(|(_, sink)| sink.is_none());
        nowhere.map(move |(array, _)| scratch_path(folder, first, array))
    });
    job.sinks.iter().flatten().map(|sink| sink.path().clone()).chain(scratch)
}

/// Right before a run from the inputs makes the files of its results: nobody is at work on them, and what an interrupted run has left
/// there is thrown away, where that is asked for. It was looked for before the run was planned and its inputs were made, and that takes
/// its time.
fn make_way(job: &Job, disk: &Disk, settings: &Settings<'_>, folder: &Path) -> Result<(), Error> {
    let found = Unfinished::find(job, disk, settings, true)?;
    if let Some(one) = found.first().filter(|_| !settings.discard) {
        return Err(one.in_the_way());
    }
    refuse_if_busy(disk, written_under(job, folder))?;
    found.iter().for_each(|one| one.discard(disk));
    Ok(())
}

/// Before a run that keeps no journal makes the files of its results: a journal of an earlier run, of which nothing is to
/// be continued, must not be believed about them.
pub(crate) fn forget(job: &Job, disk: &Disk, settings: &Settings<'_>) -> Result<(), Error> {
    make_way(job, disk, settings, Path::new("."))?;
    journal_paths(job).filter(|path| path.exists()).for_each(|path| disk.remove(&path));
    journal_paths(job).for_each(|path| merged::remove(disk, &path));
    // Where a run whose arrays lie on a disk has its folder unless a machine's file says another.
    let beside = job.files_written().next().map(directory_of);
    let mut folders = beside.into_iter().chain([Path::new(".")]);
    folders.try_for_each(|folder| remove_left(job, disk, folder, job.arrays().len()))
}

/// Removes what a run that was killed before there was anything to be continued has left beside results and in the folder
/// for scratch files, where a run that is planned otherwise would not use it.
pub(crate) fn remove_left(job: &Job, disk: &Disk, folder: &Path, arrays: usize) -> Result<(), Error> {
    let Some(first) = job.files_written().next() else { return Ok(()) };
    let of = |i: usize| [twin_path(job, folder, i), scratch_path(folder, first, i)];
    let left: Vec<PathBuf> = (0..arrays).flat_map(of).map(|path| part_path(&path)).filter(|p| p.exists()).collect();
    if !left.is_empty() {
        refuse_if_busy(disk, written_under(job, folder))?;
        left.iter().for_each(|path| disk.remove(path));
    }
    Ok(())
}

/// Whether a plan may overwrite blocks that a later resumed run would have to read: blocks that it has read before or
/// stores twice, or that are among those `stored` by an earlier run.
fn overwrites(plan: &Plan, mut stored: Vec<Arg>) -> bool {
    let role = |child: &ChildPlan, slot: u32| plan.arrays[child.slots[slot as usize].block.array as usize].role;
    // Zeros, or a result that is used again.
    let reads_again = |child: &ChildPlan| {
        child.ops.iter().any(|op| matches!(*op, Op::Fetch { slot, .. } if role(child, slot) != Role::Input))
    };
    let in_out = plan.arrays.iter().any(|a| a.role == Role::InOut);
    // What a part does to its blocks, or a group of kinds of children, is known of it alone.
    if plan.is_in_parts() || plan.is_division || in_out || plan.children.iter().any(reads_again) {
        return true;
    }
    stored.extend(stored_blocks(plan));
    !overlapping(&stored).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::found::{BEGIN, COMPLETE, DONE};
    use crate::guard::tests::two_passes;
    use crate::job::Sink;
    use multigrain_machine::Machine;
    use multigrain_plan::{Mapping, PlanOptions, Planner};
    use multigrain_store::Record;
    use std::sync::Arc;

    /// Of two passes over rows and then columns, after the first.
    fn after_the_rows(result: &Path) -> (Job, Plan, GoingOn) {
        let program = two_passes(4);
        let machine = Machine::shipped("disk").unwrap();
        let plan = Planner::new(&machine, Mapping::default(), PlanOptions::default()).plan(&program).unwrap();
        let numbered = Numbered::of(&program, &plan.ways).unwrap();
        assert_eq!(numbered.calls().len(), 8, "a call is a row or a column");
        let job = Job::new("rows", program).with_sink(1, Sink::Raw(result.to_owned()));
        let calls = (numbered.arrays(), numbered.tasks(), numbered.calls());
        let identity = Identity::new(&job, &vec![None; 2], calls, &plan.ways, Path::new("."), &[]);
        let mut found = Found::default();
        for row in 0..4 {
            [BEGIN, DONE].into_iter().for_each(|kind| found.add(Record { kind, a: row, b: 1 }));
        }
        let left = left(&numbered, &Sides::default(), &found.events);
        let unfinished = Unfinished { journal: Journal::path_for(result), identity, found };
        (job, Arc::into_inner(plan).unwrap(), GoingOn { unfinished, numbered, left })
    }

    /// Of a run that another process ends meanwhile no file is said to be missing.
    #[test]
    fn who_meets_a_run_at_its_end_is_told_that_it_is_busy() {
        let directory = tempfile::tempdir().unwrap();
        let (job, plan, going_on) = after_the_rows(&directory.path().join("out"));
        let disk = Disk::new(multigrain_store::DiskOptions::default()).unwrap();
        let (settings, abort) = (Settings::default(), Abort::default());
        let (job, disk, directory) = (&job, &disk, directory.path());
        let begin = Begin { job, disk, directory, settings: &settings, abort: &abort, shared: None };
        let continued = || begin.continued(&going_on, &plan).err().expect("nothing is there");
        assert!(matches!(continued(), Error::File(StoreError::Busy { .. })), "{}", continued());
        let text = serde_json::to_string(&Text::Run(Box::new(going_on.unfinished.identity.clone()))).unwrap();
        let mut journal = Journal::create(disk, &going_on.unfinished.journal, &text).unwrap();
        let told = continued().to_string();
        assert!(matches!(continued(), Error::OtherRun { .. }) && told.contains("out.part is missing"), "{told}");
        journal.append(disk, &[Record { kind: COMPLETE, a: 0, b: 0 }]).unwrap();
        journal.sync(disk).unwrap();
        assert!(matches!(continued(), Error::File(StoreError::Busy { .. })), "{}", continued());
    }

    /// Rows that an interrupted run has recorded are overwritten by columns: the beginning of the first column has to be durable.
    #[test]
    fn what_the_run_before_has_recorded_is_guarded() {
        let (_, plan, going_on) = after_the_rows(Path::new("out"));
        let mut guard = going_on.guard(&plan, &Sides::default()).expect("columns overwrite rows");
        let mut begin = |call| {
            let block = guard.block(call, 0).unwrap();
            guard.begin(&block)
        };
        assert!(begin(4), "rows are durable until then");
        assert!(!begin(5), "and are not any more");
    }

    /// Arrays without a file of their own lie in the folder of the first result: a run in memory has none, and removes what one that
    /// was killed before anything was durable has left.
    #[test]
    fn what_a_killed_run_left_is_removed_by_one_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let result = directory.path().join("out");
        let job = Job::new("rows", two_passes(4)).with_sink(1, Sink::Raw(result.clone()));
        let left = part_path(&scratch_path(directory.path(), &result, 0));
        std::fs::write(&left, [0; 64]).unwrap();
        let disk = Disk::new(multigrain_store::DiskOptions::default()).unwrap();
        forget(&job, &disk, &Settings::default()).unwrap();
        assert!(!left.exists());
    }
}
