//! Planning and running jobs.

use crate::across;
use crate::choose;
use crate::error::Error;
use crate::homes::Homes;
use crate::identity::input_states;
use crate::job::{Job, call_bytes};
use crate::keeps::{Keeps, check_kept, check_reading, kept_bytes_max, plan_bytes};
use crate::ledger::{Lease, Ledger, Turn};
use crate::limits::{self, budget_bytes};
use crate::means::Means;
use crate::names::{is_beside, names_beside};
use crate::options::{Options, Settings};
use crate::outcome::Outcome;
use crate::planning::{Kept, Planned, Ready};
use crate::resume::{GoingOn, Unfinished};
use crate::run::{Run, ended};
use crate::together;
use multigrain_engine::{Memories, Report};
use multigrain_machine::Machine;
use multigrain_plan::Plan;
use multigrain_store::Disk;
use multigrain_team::{Abort, Team, TeamOptions};
use multigrain_trace::Mode;
use multigrain_whole::{check_keeps, check_target, is_same_file};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Plans and runs jobs on one machine. Threads and transfer buffers are kept between jobs, and so are the plan and the
/// memories of the last job, for when it is run again.
///
/// Any thread may begin a run: runs of one runtime are executed one after the other, in the order in which they were begun,
/// each with all workers and the whole memory. A limit on the memory holds for all of them together with the results and
/// prepared jobs that are still in use: a run that does not find room beside these is refused. Two runtimes know nothing of each
/// other, and each has its own limit.
pub struct Runtime {
    pub(crate) means: Means,
    team: Mutex<Option<Arc<Team>>>,
    kept: Mutex<Option<Kept>>,
    ledger: Arc<Ledger>,
}

impl Runtime {
    /// A runtime with these options.
    ///
    /// # Errors
    /// When the way to files that was asked for is refused by the system.
    pub fn new(options: Options) -> Result<Runtime, Error> {
        let means = Means::new(options)?;
        Ok(Runtime { means, team: Mutex::new(None), kept: Mutex::new(None), ledger: Arc::default() })
    }

    /// The way to files.
    pub fn disk(&self) -> &Disk {
        &self.means.disk
    }

    /// Capacity of the main memory in bytes, for applications whose inputs become arrays only after they were read: the
    /// budget, or that of the memory below a disk, or of the root where there is no disk.
    ///
    /// # Errors
    /// [`Error::Machine`] when the machine is refused.
    pub fn memory_bytes(&self) -> Result<u64, Error> {
        Ok(choose::memory(&self.means.options)?.0.capacity_bytes)
    }

    /// Workers of its machine, for applications that read their inputs in several threads.
    ///
    /// # Errors
    /// As [`Runtime::memory_bytes`].
    pub fn workers(&self) -> Result<usize, Error> {
        Ok(choose::memory(&self.means.options)?.1)
    }

    /// Refuses tables that would take so many bytes of the main memory that no plan has room beside them
    /// ([`Job::with_kept_bytes`]): for an application whose tables take long to make. What else is known to be needed, in all
    /// and for each worker, counts in what is said to be enough.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] says how much is enough; [`Error::Machine`] when the machine is refused.
    pub fn check_kept_bytes(&self, app: &str, bytes: u64, others: u64, each_worker: u64) -> Result<(), Error> {
        let (memory, workers) = choose::memory(&self.means.options)?;
        let others = others.saturating_add(each_worker.saturating_mul(workers as u64));
        check_kept(app, "its tables", bytes, others, &memory)
    }

    /// The most bytes of tables that [`Runtime::check_kept_bytes`] does not refuse.
    ///
    /// # Errors
    /// [`Error::Machine`] when the machine is refused.
    pub fn kept_bytes_max(&self) -> Result<u64, Error> {
        Ok(kept_bytes_max(&choose::memory(&self.means.options)?.0))
    }

    /// Refuses a program of so many calls before it is listed, if that would leave its plan no room.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] says how much is needed at least; [`Error::Machine`] when the machine is refused.
    pub fn check_calls(&self, app: &str, calls: u64, arguments: usize) -> Result<(), Error> {
        let bytes = calls.saturating_mul(call_bytes(arguments));
        check_kept(app, "its calls", bytes, 0, &choose::memory(&self.means.options)?.0)
    }

    /// Refuses a run before which there is work, such as reading a picture, that takes more bytes than the main memory has while nothing
    /// else is in it.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] says how much is enough; [`Error::Machine`] when the machine is refused.
    pub fn check_reading_bytes(&self, app: &str, what: &str, bytes: u64) -> Result<(), Error> {
        check_reading(app, what, bytes, &choose::memory(&self.means.options)?.0)
    }

    /// Chooses the machine for a job, plans it and proves that it fits. Starts nothing.
    ///
    /// # Errors
    /// [`Error::Plan`] when it does not fit; [`Error::Machine`] when the machine is refused.
    pub fn plan(&self, job: &Job) -> Result<Planned, Error> {
        let planned = self.plan_simulated(job)?;
        let runs = choose::check_rules(&planned.machine, &planned.plan, job)
            .and_then(|()| choose::check_drivers(&planned.machine))
            .and_then(|()| choose::check_disk_room(&planned.machine, job));
        Ok(Planned { refused: runs.err().map(|why| why.to_string()), ..planned })
    }

    /// Whether jobs are planned and not run: then arrays need no content.
    pub fn only_plans(&self) -> bool {
        self.means.options.only_plans
    }

    /// Whether a plan for the job is found without the search for a good one, which takes longest. [`Runtime::plan`] has one then.
    ///
    /// # Errors
    /// As [`Runtime::plan`], which may find one all the same.
    pub fn fits(&self, job: &Job) -> Result<(), Error> {
        let asked = self.means.asked(job, true)?.searching(false);
        self.means.plan(asked, job, true).map(|_| ())
    }

    /// As [`Runtime::plan`], without a word on whether it would run.
    pub(crate) fn plan_simulated(&self, job: &Job) -> Result<Planned, Error> {
        let asked = self.means.asked(job, true)?;
        let (asked, plan) = self.means.plan(asked, job, true)?;
        Ok(asked.planned(plan, job))
    }

    /// What the last run has left, for one taker.
    fn take_kept(&self) -> Option<Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets go of the plan and the memories of the last job, so that their room is there for work on its results.
    pub fn forget(&self) {
        drop(self.take_kept());
    }

    fn keep(&self, kept: Kept) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    fn team(&self, workers: usize) -> Result<Arc<Team>, Error> {
        let mut team = self.team.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(team) = &*team
            && team.workers() == workers
        {
            return Ok(team.clone());
        }
        let made = Team::new(TeamOptions { workers, ..TeamOptions::default() })
            .map_err(|source| Error::Team { workers, source })?;
        let made = Arc::new(made);
        *team = Some(made.clone());
        Ok(made)
    }

    /// Plans and runs a job. Results with a sink appear under their final names, whole, when this returns.
    ///
    /// # Errors
    /// See [`Error::exit_status`] for which of them mean that nothing was started. What a run on a disk had done when it
    /// failed or was interrupted is kept ([`Error::Kept`], [`Error::Interrupted`]); otherwise no file is left behind.
    pub fn run(&self, job: &Job, settings: Settings<'_>) -> Result<Outcome, Error> {
        match &self.means.options.ranks {
            None => self.run_here(job, settings),
            Some(ranks) => self.run_here(job, settings).map_err(|error| together::failed(ranks, error)),
        }
    }

    /// Waits until no other run of this runtime is under way.
    fn turn(&self, abort: Option<&Abort>) -> Result<Turn<'_>, Error> {
        if self.only_plans() {
            return Err(Error::Request("a runtime that only plans runs nothing: make one without only_plans".into()));
        }
        let team = || self.team.lock().unwrap_or_else(PoisonError::into_inner);
        self.ledger.turn(abort, || team().as_ref().is_some_and(|team| team.is_here()))
    }

    fn run_here(&self, job: &Job, settings: Settings<'_>) -> Result<Outcome, Error> {
        self.check_sinks(job)?;
        limits::check_memory(&self.means.options)?;
        if settings.resume && settings.discard {
            return Err(Error::Request("what an interrupted run has left is either continued or thrown away".into()));
        }
        let _turn = self.turn(settings.abort)?;
        let kept = self.take_kept();
        let inputs = input_states(job, &self.means.disk)?;
        let leads = across::leads(&self.means.options, &settings)?;
        // All ranks go on with what the first has found; they have the same journals, which is compared.
        let mut unfinished = match leads || settings.resume {
            true => Unfinished::find(job, &self.means.disk, &settings, leads)?,
            false => Vec::new(),
        };
        let mut going_on = match unfinished.pop() {
            Some(one) if settings.resume && unfinished.is_empty() => Some(GoingOn::of(job, &inputs, one)?),
            Some(one) if !settings.discard => return Err(one.in_the_way()),
            _ => None,
        };
        let Ready { asked, plan, memories } = match &going_on {
            Some(going_on) => {
                drop(kept);
                self.means.ready_to_go_on(job, going_on)?
            }
            None => self.means.ready(job, kept)?,
        };
        if let Some(going_on) = &mut going_on {
            going_on.left.forget_calls();
        }
        let Planned { machine, plan, edges, .. } = asked.planned(plan, job);
        choose::check_rules(&machine, &plan, job)?;
        let (keeps, spare_bytes) = self.find_room(job, &machine, &plan)?;
        if let Some(ranks) = &self.means.options.ranks {
            across::agree(ranks, &machine, &plan, (job, &inputs), going_on.as_ref())?;
        }
        let team = self.team(machine.workers() / self.means.part().ranks)?;
        let own_abort = Abort::new();
        let abort = settings.abort.unwrap_or(&own_abort);
        if let Some(on_start) = settings.on_start {
            on_start();
        }
        let mode = if settings.full_trace { Mode::Full } else { Mode::Totals };
        let mut run = Run {
            means: &self.means,
            job,
            machine: &machine,
            team: &team,
            abort,
            mode,
            settings: &settings,
            memories,
            spare_bytes,
            inputs,
            of_ranks: Vec::new(),
            is_shown: false,
        };
        let resumed = going_on.is_some();
        let (homes, report, ending) = match (&self.means.options.ranks, plan.driver.files, &going_on) {
            (Some(ranks), ..) => run.on_ranks(&plan, ranks, going_on.as_ref())?,
            (None, true, _) | (None, _, Some(_)) => run.on_disk(&plan, going_on.as_ref())?,
            _ => run.in_memory(&plan)?,
        };
        if let Some(memories) = run.memories.take()
            && !resumed
            // Who makes files from the results uses the memory for that.
            && job.files_written.is_empty()
        {
            self.keep(Kept { asked, plan: plan.clone(), memories });
        }
        let of_ranks = run.of_ranks;
        let flops = match resumed {
            // What was done before is no part of this run.
            true => plan.flops(),
            false => {
                let tasks = job.program.tasks();
                job.program.calls().iter().map(|c| tasks[c.task as usize].work(&c.shape()).flops).sum()
            }
        };
        let (beside_bytes, own_left_bytes) = keeps.beside();
        Ok(Outcome {
            declared: job.program.declared().clone(),
            ran: plan.clone(),
            _lease: self.ledger.lease(keeps.arrays, plan.clone(), plan_bytes(&plan)),
            plan,
            machine,
            seconds: report.seconds,
            breakdown: report.breakdown,
            trace: report.trace,
            spill: settings.trace.clone(),
            edges,
            flops,
            backend: self.means.disk.backend_name(),
            resumed,
            ranks: of_ranks,
            homes,
            ending,
            disk: self.means.disk.clone(),
            beside_bytes,
            own_left_bytes,
        })
    }

    /// What a run of the plan keeps, if that fits beside what results and prepared jobs hold, and the bytes that they leave.
    fn find_room(&self, job: &Job, machine: &Machine, plan: &Arc<Plan>) -> Result<(Keeps, u64), Error> {
        let keeps = Keeps::of(machine, plan, job, self.means.disk.staging_bytes(), self.means.part())?;
        let spare_bytes = match budget_bytes(&self.means.options, machine) {
            Some(capacity_bytes) => self.ledger.check(&job.app, keeps.need(), &(plan.clone() as _), capacity_bytes)?,
            // No limit was given.
            None => u64::MAX,
        };
        Ok((keeps, spare_bytes))
    }

    /// Plans a job and puts its arrays into memory, so that it can be run many times without doing either again.
    ///
    /// # Errors
    /// As [`Runtime::plan`]; [`Error::Request`] when the arrays start on a disk, or a result goes to a file: such a job
    /// has effects that belong to one run.
    pub fn prepare<'a>(&'a self, job: &'a Job) -> Result<Prepared<'a>, Error> {
        limits::check_memory(&self.means.options)?;
        let _turn = self.turn(None)?;
        drop(self.take_kept());
        let planned = self.plan(job)?;
        if planned.plan.driver.files || job.sinks.iter().any(Option::is_some) {
            return Err(Error::Request(format!(
                "{} cannot be prepared: its arrays or results lie in files; run it instead",
                job.app
            )));
        }
        let (keeps, _) = self.find_room(job, &planned.machine, &planned.plan)?;
        let own_bytes = plan_bytes(&planned.plan).saturating_add(job.kept_bytes());
        let lease = self.ledger.lease(keeps.without_own(), planned.plan.clone(), own_bytes);
        let team = self.team(planned.machine.workers())?;
        let mut homes = Homes::in_memory(job, &self.means.disk, &Abort::new())?;
        homes.add_temporaries(&planned.plan)?;
        Ok(Prepared { runtime: self, job, planned, team, homes, memories: None, _lease: lease })
    }

    /// Two results may not go to one file, nor may one overwrite an input, or lie where no file can be made.
    fn check_sinks(&self, job: &Job) -> Result<(), Error> {
        let results: Vec<&Path> = job.files_written().collect();
        for (number, path) in results.iter().enumerate() {
            let name = path.display();
            // The next run of another result would take it for its own, and replace it.
            if is_beside(&path.with_extension(""), path) {
                let what = "is a name for what is kept on the way to a result; give it another";
                return Err(Error::Request(format!("{name} {what}")));
            }
            if results[..number].iter().any(|other| is_same_file(path, other)) {
                return Err(Error::Request(format!("two results would go to {name}; give each its own file")));
            }
            check_keeps(path, job.files_read())?;
            let others = results[..number].iter().chain(&results[number + 1..]).copied();
            let used: Vec<&Path> = job.files_read().chain(others).collect();
            let refused = |beside: &Path| {
                let beside = beside.display();
                let what = format!("{beside} would be overwritten on the way to {name}; give one of them another name");
                Err(Error::Request(what))
            };
            if let Some(other) = used.iter().find(|other| is_beside(path, other)) {
                return refused(other);
            }
            if let Some(beside) =
                names_beside(path).iter().find(|beside| used.iter().any(|other| is_linked(beside, other)))
            {
                return refused(beside);
            }
            check_target(path)?;
        }
        Ok(())
    }
}

/// Whether two names are links to the same bytes.
fn is_linked(a: &Path, b: &Path) -> bool {
    let which = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    which(a).is_some_and(|a| which(b) == Some(a))
}

/// A job whose plan is made and whose arrays lie in memory. Every run works on the arrays as the run before left them.
pub struct Prepared<'a> {
    runtime: &'a Runtime,
    job: &'a Job,
    planned: Planned,
    team: Arc<Team>,
    homes: Homes,
    memories: Option<Memories>,
    _lease: Lease,
}

impl Prepared<'_> {
    /// The plan.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// Runs the plan once. `resume`, `on_start` and `journal_interval` have no meaning here.
    ///
    /// # Errors
    /// [`Error::Run`] when a leaf fails, [`Error::Interrupted`] when the abort flag is raised.
    pub fn run(&mut self, settings: Settings<'_>) -> Result<Report, Error> {
        let _turn = self.runtime.turn(settings.abort)?;
        let own_abort = Abort::new();
        let mut run = Run {
            means: &self.runtime.means,
            job: self.job,
            machine: &self.planned.machine,
            team: &self.team,
            abort: settings.abort.unwrap_or(&own_abort),
            mode: if settings.full_trace { Mode::Full } else { Mode::Totals },
            settings: &settings,
            memories: self.memories.take(),
            spare_bytes: 0,
            inputs: Vec::new(),
            of_ranks: Vec::new(),
            is_shown: false,
        };
        let report = run.engine(&self.planned.plan, &self.homes, None, None).map_err(|e| ended(e, false))?;
        self.memories = run.memories;
        Ok(report)
    }
}
