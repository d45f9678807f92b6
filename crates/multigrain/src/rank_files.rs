//! Runs of several ranks whose arrays lie in files and whose results are kept: each rank keeps a journal, so that what all have done is
//! continued by whatever ranks there are next, or by one process. `merged.rs` says what the journals mean together.
//!
//! ```text
//! rank 0    begin, as one process does | own journal | ranks(run, n) | execute, flush |  complete, publish  |
//! others                               | own journal |               | execute, flush |                     |
//!                                      ^ files are there                              ^ all is recorded
//! ```

use crate::ending::Ending;
use crate::error::Error;
use crate::found::OfRanks;
use crate::homes::{Homes, Opening};
use crate::identity::{Text, changed_input};
use crate::journal::RunJournal;
use crate::journals::{Journals, journal_paths};
use crate::merged::path_of;
use crate::options::Settings;
use crate::resume::{Begin, Begun, GoingOn, Unfinished};
use crate::run::{Done, Run};
use crate::sides::Sides;
use crate::together::{heard, meet};
use multigrain_driver::ranks::Ranks;
use multigrain_engine::{EngineError, Report};
use multigrain_plan::Plan;
use multigrain_store::{ArrayFile, Journal};
use std::path::Path;
use std::sync::Arc;

/// What the first rank holds of a run for all.
struct Led<'a> {
    log: RunJournal<'a>,
    sides: Sides,
}

impl Run<'_> {
    /// Executes this rank's part of the plan from what is there, and keeps what is done.
    pub(crate) fn kept_on_ranks(
        &mut self,
        plan: &Plan,
        ranks: &Arc<Ranks>,
        (directory, name): (&Path, &Path),
        going_on: Option<&GoingOn>,
    ) -> Result<Done, Error> {
        let leads = ranks.rank() == 0;
        if going_on.is_some_and(|going_on| going_on.unfinished.found.complete) {
            // Only names are left to be given.
            return match leads {
                true => self.on_disk(plan, going_on),
                false => {
                    let nothing = Plan { arrays: Vec::new(), ..plan.clone() };
                    let report = self.engine(&nothing, &Homes::none(), None, None).map_err(Error::Run)?;
                    Ok((Homes::none(), report, None))
                }
            };
        }
        let disk = Arc::clone(&self.means.disk);
        let inputs = self.inputs.clone();
        let begin = Begin {
            job: self.job,
            disk: &disk,
            directory,
            settings: self.settings,
            abort: self.abort,
            shared: Some(name),
        };
        let (mut homes, mut led) = (None, None);
        if leads {
            let begun = match going_on {
                Some(going_on) => begin.continued(going_on, plan)?,
                None => begin.afresh(plan, &inputs)?,
            };
            let Begun { homes: made, log, sides } = begun;
            (homes, led) = (Some(made), Some(Led { log, sides }));
        }
        let ran = self.of_rank(plan, ranks, &begin, going_on, &mut homes, led.as_mut());
        let homes = homes.unwrap_or_else(Homes::none);
        let Some(Led { log, .. }) = led else { return ran.map(|report| (homes, report, None)) };
        let result = self.job.files_written().next().map(Path::to_owned).unwrap_or_default();
        let asked = Settings { resume: true, ..Settings::default() };
        let found = || Unfinished::find(self.job, &disk, &asked, false).is_ok_and(|found| !found.is_empty());
        match ran {
            Ok(report) => {
                let scratch = homes.scratch().map(|file| file.path().to_owned());
                let before = going_on.iter().flat_map(|going_on| going_on.unfinished.scratch());
                let ending = Ending {
                    scratch: scratch.chain(before).collect(),
                    disk: disk.clone(),
                    journals: Some(log.into_journals()),
                    result,
                };
                Ok((homes, report, Some(ending).filter(|_| !self.job.files_written.is_empty())))
            }
            Err(error @ Error::Unpublished { .. }) => Err(error),
            Err(error)
                if !matches!(error, Error::InputChanged { .. })
                    && !homes.lasting().any(ArrayFile::is_gone)
                    && (log.has_work() || found()) =>
            {
                Err(match error {
                    Error::Interrupted { .. } if ranks.ended().is_none() => Error::Interrupted { resume: true },
                    error => Error::Kept { source: Box::new(error), result },
                })
            }
            Err(error) => {
                homes.discard(&disk);
                log.remove();
                Err(error)
            }
        }
    }

    /// What each rank does once the first has made the files.
    fn of_rank(
        &mut self,
        plan: &Plan,
        ranks: &Arc<Ranks>,
        begin: &Begin<'_>,
        going_on: Option<&GoingOn>,
        homes: &mut Option<Homes>,
        mut led: Option<&mut Led<'_>>,
    ) -> Result<Report, Error> {
        let (disk, job) = (begin.disk, self.job);
        // Which arrays lie in two files is known when the files are made; the run's number is the first rank's.
        let mut told: Vec<u64> = vec![crate::identity::moment() as u64];
        told.extend(led.iter().flat_map(|led| led.sides.arrays()).map(|array| array as u64));
        let bytes: Vec<u8> = told.iter().flat_map(|number| number.to_le_bytes()).collect();
        let all = heard(ranks, ranks.gather(&bytes))?;
        let mut told = all[0].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        let (run, twins) = (told.next().unwrap_or(0), told.map(|array| array as usize).collect::<Vec<_>>());
        let mut sides = match going_on {
            Some(going_on) => going_on.sides(),
            None => Sides::of(&plan.arrays, &plan.tasks, &plan.calls, &twins),
        };
        let scratch = going_on.map_or(begin.directory, |going_on| &going_on.unfinished.identity.scratch);
        if led.is_none() {
            let folder = begin.folder(scratch);
            *homes = Some(Homes::on_disk(job, plan, disk, folder, Opening::Joined, &mut sides, begin.abort)?);
        }
        let Some(homes) = homes else { return Err(Error::Request("no arrays".to_owned())) };
        let (calls, tasks, guard) = match going_on {
            Some(on) => (on.numbered.calls(), on.numbered.tasks(), on.guard(plan, &sides)),
            None => (&plan.calls[..], &plan.tasks[..], begin.guard(plan, &sides)),
        };
        let guard = guard.map(|guard| guard.among_ranks(tasks, calls));
        let text = serde_json::to_string(&Text::Rank(run)).map_err(|e| Error::Request(e.to_string()))?;
        let Some(main) = journal_paths(job).next() else {
            return Err(Error::Request("no result goes to a file".into()));
        };
        let own = Journal::create(disk, path_of(&main, ranks.rank()), &text).map_err(Error::File)?;
        own.lock().map_err(Error::File)?;
        let mut log = RunJournal::new(disk, Journals::of_rank(own), calls, begin.settings.interval(), guard, false);
        if let Err(ended) = meet(ranks) {
            // It counts when all have one, and not before; the first rank may have looked for it already.
            log.remove();
            return Err(ended);
        }
        if let Some(led) = &mut led {
            homes.shared().for_each(|file| disk.remove(file.path()));
            let of = OfRanks { run, count: ranks.count() as u32, in_parts: plan.is_in_parts() };
            led.log.of_ranks(of).map_err(Error::Store)?;
        }
        meet(ranks)?;
        let ran = self.engine(plan, homes, Some(&mut log), Some(&sides));
        // What is complete is recorded, so that nothing is done twice; all that is written is, for who begins to give names.
        let flushed = log.flush();
        let report = ran.map_err(|error| match error {
            EngineError::Interrupted => Error::Interrupted { resume: log.has_work() },
            error => Error::Run(error),
        })?;
        flushed.map_err(Error::Store)?;
        if led.is_some()
            && let Some(path) = changed_input(job, &self.inputs, homes, false, disk)?
        {
            return Err(Error::InputChanged { path });
        }
        meet(ranks)?;
        if let Some(led) = led {
            led.log.complete(homes.kept()).map_err(Error::Store)?;
            self.publish(&homes.unpublished().collect::<Vec<_>>())?;
            homes.remove_twins(disk);
        }
        Ok(report)
    }
}
