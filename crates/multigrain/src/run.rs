//! One run of a planned job: its arrays made, the plan executed where they lie, results published or kept for later.

use crate::ending::Ending;
use crate::error::Error;
use crate::homes::{Folder, Homes, Opening, Place, transfer_all};
use crate::identity::{InputStates, changed_input};
use crate::job::{Job, Sink};
use crate::journal::RunJournal;
use crate::means::Means;
use crate::options::Settings;
use crate::resume::{Begin, Begun, GoingOn, forget};
use crate::sides::Sides;
use crate::together::{self, OfRank};
use multigrain_engine::{EngineError, Memories, Report, RunOptions, StoreLog};
use multigrain_machine::Machine;
use multigrain_plan::Plan;
use multigrain_store::{ArrayFile, Direction, StoreError};
use multigrain_team::{Abort, Team};
use multigrain_trace::Mode;
use std::path::PathBuf;

/// One run of a job.
pub(crate) struct Run<'a> {
    pub(crate) means: &'a Means,
    pub(crate) job: &'a Job,
    pub(crate) machine: &'a Machine,
    pub(crate) team: &'a Team,
    pub(crate) abort: &'a Abort,
    pub(crate) mode: Mode,
    pub(crate) settings: &'a Settings<'a>,
    /// Of the run before, or of this one once it is over.
    pub(crate) memories: Option<Memories>,
    /// Bytes of the main memory that nobody uses.
    pub(crate) spare_bytes: u64,
    /// The files that it reads, as they were before.
    pub(crate) inputs: InputStates,
    /// Of ranks, what the run was on each of them once it is over.
    pub(crate) of_ranks: Vec<OfRank>,
    /// Whether the first rank shows how far all are.
    pub(crate) is_shown: bool,
}

pub(crate) type Done = (Homes, Report, Option<Ending>);

impl Run<'_> {
    pub(crate) fn engine<'l>(
        &mut self,
        plan: &Plan,
        homes: &Homes,
        log: Option<&'l mut (dyn StoreLog + 'l)>,
        sides: Option<&Sides>,
    ) -> Result<Report, EngineError> {
        let options = RunOptions {
            abort: self.abort,
            mode: self.mode,
            spill: self.settings.trace.as_ref(),
            kernel: self.settings.kernel,
            program: &self.job.app,
            afterwards: &self.job.afterwards,
            ranks: self.means.options.ranks.as_deref(),
            log,
            sides: sides.filter(|sides| !sides.arrays().is_empty()).map(|sides| sides as _),
            progress: self.settings.progress,
        };
        let all = self.means.options.ranks.as_ref().filter(|_| self.is_shown);
        match all {
            Some(ranks) => together::shown(ranks, self.settings.progress, |progress| {
                self.execute(plan, homes, RunOptions { progress: Some(progress), ..options })
            }),
            None => self.execute(plan, homes, options),
        }
    }

    fn execute(&mut self, plan: &Plan, homes: &Homes, options: RunOptions<'_, '_>) -> Result<Report, EngineError> {
        let part = self.means.part();
        let mut memories = match self.memories.take() {
            Some(memories) if memories.serve(self.machine, plan, part) => memories,
            other => {
                drop(other);
                Memories::reserve(self.machine, plan, &self.means.drivers(self.spare_bytes), part)?
            }
        };
        // SAFETY: memory homes are buffers of this run, one for each array, which nobody else uses.
        let report =
            unsafe { multigrain_engine::run(plan, self.machine, self.team, &mut memories, &homes.homes(), options)? };
        self.memories = Some(memories);
        Ok(report)
    }

    pub(crate) fn in_memory(&mut self, plan: &Plan) -> Result<Done, Error> {
        let disk = &self.means.disk;
        let mut homes = Homes::in_memory(self.job, disk, self.abort)?;
        // By now they have been read.
        if let Some(path) = changed_input(self.job, &self.inputs, &homes, true, disk)? {
            return Err(Error::InputChanged { path });
        }
        homes.add_temporaries(plan)?;
        forget(self.job, disk, self.settings)?;
        // Outputs are created before the work, so that a name that cannot be written is refused at once.
        let mut files = Vec::new();
        let created = self.job.sinks.iter().enumerate().try_for_each(|(i, sink)| {
            let Some(sink) = sink else { return Ok(()) };
            let decl = &self.job.arrays()[i];
            let (element, dims) = (decl.element, decl.shape.dims());
            let file = match sink {
                Sink::Npy(path) => disk.create_npy(path, element, dims, false),
                Sink::Raw(path) => disk.create_raw(path, element, dims, false),
            }?;
            files.push((i, file));
            Ok(())
        });
        let discard = |files: &[(usize, ArrayFile)]| files.iter().for_each(|(_, f)| disk.discard(f));
        if let Err(error) = created {
            discard(&files);
            return Err(Error::File(error));
        }
        let report = self.engine(plan, &homes, None, None).inspect_err(|_| discard(&files)).map_err(|e| match e {
            EngineError::Interrupted => Error::Interrupted { resume: false },
            e => Error::Run(e),
        })?;
        let written = files.iter().try_for_each(|(i, file)| {
            let Place::Memory(buffer) = &homes.places[*i] else { return Ok(()) };
            transfer_all(disk, file, Direction::Write, buffer.as_mut_ptr())?;
            disk.sync(file)
        });
        if let Err(error) = written {
            discard(&files);
            return Err(Error::Store(error));
        }
        // From here on only names change. Where there are several, or one cannot be changed, a journal says so, and a run
        // that ends within this is finished by the next.
        let results: Vec<_> = files.iter().map(|(i, file)| (*i, file)).collect();
        let complete = || RunJournal::of_complete(self.job, disk, plan, &self.inputs, &results);
        let log = (results.len() > 1).then(complete).transpose().inspect_err(|_| discard(&files))?;
        if let Err(error) = self.publish(&results) {
            if log.is_none() && complete().is_err() {
                discard(&files);
                let Error::Unpublished { source, .. } = error else { return Err(error) };
                return Err(Error::Store(source));
            }
            return Err(error);
        }
        if let Some(log) = log {
            log.remove();
        }
        // Who reads a result from now on, to check it, reads what was delivered.
        for (array, file) in files {
            homes.places[array] = Place::File(file);
        }
        Ok((homes, report, None))
    }

    /// Gives results their names.
    pub(crate) fn publish(&self, results: &[(usize, &ArrayFile)]) -> Result<(), Error> {
        let files = || results.iter().map(|&(_, file)| file);
        files().try_for_each(|file| self.means.disk.publish(file)).map_err(|source| {
            let is_named = |file: &ArrayFile| Some(file.path()) == file.final_path();
            let name = |file: &ArrayFile| file.final_path().unwrap_or(file.path()).display().to_string();
            let those = |named| files().filter(|f| is_named(f) == named).map(name).collect();
            if let Some(gone) = files().find(|file| !is_named(file) && !file.path().exists()) {
                return Error::Store(StoreError::Gone { path: gone.path().to_owned() });
            }
            Error::Unpublished { source, published: those(true), waiting: those(false) }
        })
    }

    pub(crate) fn on_disk(&mut self, plan: &Plan, going_on: Option<&GoingOn>) -> Result<Done, Error> {
        let disk = &self.means.disk;
        let root = self.machine.memory(self.machine.root());
        let directory = root.path.clone().unwrap_or_else(|| PathBuf::from("."));
        let Some(first) = self.job.files_written().next() else {
            let folder = Folder { path: &directory, first: None, shared: None, spread: None };
            let mut sides = Sides::default();
            let homes = Homes::on_disk(self.job, plan, disk, folder, Opening::Fresh, &mut sides, self.abort)?;
            let report = self.engine(plan, &homes, None, None).map_err(|e| ended(e, false))?;
            return Ok((homes, report, None));
        };
        let begin = Begin {
            job: self.job,
            disk,
            directory: &directory,
            settings: self.settings,
            abort: self.abort,
            shared: None,
        };
        let Begun { mut homes, mut log, sides } = match going_on {
            Some(going_on) => begin.continued(going_on, plan)?,
            None => begin.afresh(plan, &self.inputs)?,
        };
        let complete = going_on.is_some_and(|going_on| going_on.unfinished.found.complete);
        let ran = match complete {
            false => self.engine(plan, &homes, Some(&mut log), Some(&sides)),
            // Only names are left; the arrays may lie wherever that run had them.
            true => self.engine(&Plan { arrays: Vec::new(), ..plan.clone() }, &Homes::none(), None, None),
        };
        let ended = match ran {
            Ok(report) => match changed_input(self.job, &self.inputs, &homes, false, disk) {
                Ok(None) => log.complete(homes.kept()).map(|()| report).map_err(Error::Store),
                // What was read when is not known, so nothing that was made is to be used.
                Ok(Some(path)) => {
                    homes.discard(disk);
                    log.remove();
                    return Err(Error::InputChanged { path });
                }
                Err(error) => Err(error),
            },
            Err(error) => {
                // What is complete is recorded, so that nothing is done twice. Where that fails, now or before, it is done twice.
                let _ = log.flush();
                Err(match error {
                    EngineError::Interrupted => Error::Interrupted { resume: true },
                    error => Error::Run(error),
                })
            }
        };
        match ended {
            Ok(report) => {
                self.publish(&homes.unpublished().collect::<Vec<_>>())?;
                // The run before may have ended between a name and its way to the disk.
                homes.published().try_for_each(|file| disk.sync_directory(file.path())).map_err(Error::Store)?;
                homes.remove_twins(disk);
                let scratch = homes.scratch().map(|file| file.path().to_owned());
                let ending = Ending {
                    disk: disk.clone(),
                    scratch: scratch
                        .chain(going_on.iter().flat_map(|going_on| going_on.unfinished.scratch()))
                        .collect(),
                    journals: Some(log.into_journals()),
                    result: first.to_owned(),
                };
                Ok((homes, report, Some(ending).filter(|_| !self.job.files_written.is_empty())))
            }
            Err(error @ Error::Interrupted { .. }) if log.has_work() => Err(error),
            Err(source) if log.has_work() && !homes.lasting().any(ArrayFile::is_gone) => {
                let (source, result) = (Box::new(source), first.to_owned());
                Err(Error::Kept { source, result })
            }
            Err(error) => {
                homes.discard(disk);
                log.remove();
                Err(match error {
                    Error::Interrupted { .. } => Error::Interrupted { resume: false },
                    error => error,
                })
            }
        }
    }
}

pub(crate) fn ended(error: EngineError, resume: bool) -> Error {
    match error {
        EngineError::Interrupted => Error::Interrupted { resume },
        error => Error::Run(error),
    }
}
