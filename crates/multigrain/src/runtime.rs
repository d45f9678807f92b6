//! Planning and running jobs.

use crate::choose;
use crate::error::Error;
use crate::homes::{Homes, Opening, Place, transfer_all};
use crate::job::{Job, Sink, Source};
use crate::outcome::Outcome;
use crate::resume::{Begin, Begun, fingerprint, forget, journal_path, tile_of, tile_text};
use multigrain_engine::{EngineError, Progress, Report, RunOptions, StoreLog};
use multigrain_machine::{Driver, Machine, readable_bytes};
use multigrain_plan::{EdgeTraffic, Mapping, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::Role;
use multigrain_store::{BackendChoice, Direction, Disk, DiskOptions, Faults, Journal, npy};
use multigrain_team::{Abort, Team, TeamOptions};
use multigrain_trace::{Mode, Spill};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The machine to run on.
#[derive(Clone, Default)]
pub enum MachineChoice {
    /// This computer as detected; arrays that are not in files start in memory where they fit.
    #[default]
    Detected,
    /// This machine; arrays start in its root memory.
    Given(Box<Machine>),
}

/// What can be chosen for all jobs of a runtime.
#[derive(Clone, Default)]
pub struct Options {
    /// The machine.
    pub machine: MachineChoice,
    /// Capacity of the main memory in bytes, instead of the machine's.
    pub memory_bytes: Option<u64>,
    /// Number of workers, instead of the machine's.
    pub threads: Option<usize>,
    /// Tunables that are not left to the planner.
    pub mapping: Mapping,
    /// How files are reached.
    pub backend: BackendChoice,
    /// Bytes of transfer buffers for files, counted in the memory budget. `None`: 8 MiB, or 1/128
    /// of the budget, at least 1 MiB.
    pub disk_buffer_bytes: Option<u64>,
    /// Asked before every file operation; for tests.
    pub faults: Option<Arc<dyn Faults>>,
}

/// What can be chosen for one run.
#[derive(Default)]
pub struct Settings<'a> {
    /// Continue an interrupted run.
    pub resume: bool,
    /// Every leaf, wait and transfer is recorded, and not only their sums.
    pub full_trace: bool,
    /// Takes these records as the run goes on; the outcome has none then. The caller publishes the file.
    pub trace: Option<Arc<Spill>>,
    /// Ends the run early when raised; looked at from the moment on that `on_start` tells.
    pub abort: Option<&'a Abort>,
    /// Called once when the plan is made, before any file is.
    pub on_start: Option<&'a (dyn Fn() + Sync)>,
    /// Called as the run goes on.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// How often completed stores are made durable and recorded. `None`: every two seconds.
    pub journal_interval: Option<Duration>,
}

/// A job's plan.
pub struct Planned {
    /// The machine, from the memory down in which the arrays lie.
    pub machine: Machine,
    /// The plan of the root edge and of all below.
    pub plan: Arc<Plan>,
    /// Bytes over every edge, with lower bounds.
    pub edges: Vec<EdgeTraffic>,
}

/// Plans and runs jobs on one machine. Threads and transfer buffers are kept between jobs.
pub struct Runtime {
    options: Options,
    disk: Arc<Disk>,
    team: Mutex<Option<Arc<Team>>>,
}

impl Runtime {
    /// A runtime with these options.
    ///
    /// # Errors
    /// When the way to files that was asked for is refused by the system.
    pub fn new(options: Options) -> Result<Runtime, Error> {
        let staging_bytes = buffer_bytes(&options) as usize;
        let faults = options.faults.clone();
        let disk = Disk::new(DiskOptions { backend: options.backend, staging_bytes, faults, ..DiskOptions::default() })
            .map_err(Error::File)?;
        Ok(Runtime { options, disk: Arc::new(disk), team: Mutex::new(None) })
    }

    /// The way to files.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Capacity of the main memory in bytes, for applications whose inputs become arrays only after they were read: the
    /// budget, or that of the memory below a disk, or of the root where there is no disk.
    ///
    /// # Errors
    /// [`Error::Machine`] when the machine is refused.
    pub fn memory_bytes(&self) -> Result<u64, Error> {
        choose::memory_bytes(&self.options)
    }

    /// Chooses the machine for a job, plans it and proves that it fits. Starts nothing.
    ///
    /// # Errors
    /// [`Error::Plan`] when it does not fit; [`Error::Machine`] when the machine is refused.
    pub fn plan(&self, job: &Job) -> Result<Planned, Error> {
        self.plan_for(job, false, &self.options.mapping)
    }

    /// As [`Runtime::plan`], also for machines with edges that cannot be executed here.
    ///
    /// # Errors
    /// As [`Runtime::plan`].
    pub fn plan_simulated(&self, job: &Job) -> Result<Planned, Error> {
        self.plan_for(job, true, &self.options.mapping)
    }

    fn plan_for(&self, job: &Job, simulated: bool, mapping: &Mapping) -> Result<Planned, Error> {
        let machine = choose::machine(&self.options, job)?;
        let options = PlanOptions { simulated, ..self.plan_options(job)? };
        let plan = Planner::new(&machine, mapping.clone(), options)?.plan(&job.program)?;
        let root = machine.memory(machine.root());
        if plan.driver != Driver::Disk {
            let arrays = plan.arrays.iter().fold(0, |sum: u64, array| sum.saturating_add(array.bytes()));
            if arrays.saturating_add(plan.scratch_bytes) > root.capacity_bytes {
                return Err(Error::Request(format!(
                    "{} does not fit: its arrays take {}, memory {} holds {}; choose a machine with a disk above it",
                    job.app,
                    readable_bytes(arrays),
                    root.name,
                    readable_bytes(root.capacity_bytes)
                )));
            }
        }
        let edges = edges(&machine, &plan, job);
        Ok(Planned { machine, plan, edges })
    }

    /// The plan of a run that goes on, and the mapping that it was made with: where an interrupted run has left a tile, it
    /// is kept, since the journal counts calls of that tile.
    fn plan_to_resume(&self, job: &Job) -> Result<(Planned, Mapping), Error> {
        let own = &self.options.mapping;
        let planned = self.plan(job);
        let Some(tile) = tile_of(job, &self.disk)? else { return Ok((planned?, own.clone())) };
        if planned.as_ref().is_ok_and(|planned| tile_text(&planned.machine, &planned.plan) == tile) {
            return Ok((planned?, own.clone()));
        }
        let mut mapping = Mapping::parse(&tile, "of the interrupted run")?;
        mapping.overlay(own);
        match self.plan_for(job, false, &mapping) {
            Ok(planned) => Ok((planned, mapping)),
            Err(Error::Plan(source @ (PlanError::MappingDoesNotFit { .. } | PlanError::DoesNotFit { .. }))) => {
                Err(Error::CannotResume { journal: journal_path(job).unwrap_or_default(), source })
            }
            // A tile of other tasks: the fingerprint tells what differs.
            Err(_) => Ok((planned?, own.clone())),
        }
    }

    pub(crate) fn planner<'m>(&self, machine: &'m Machine, job: &Job, mapping: &Mapping) -> Result<Planner<'m>, Error> {
        Ok(Planner::new(machine, mapping.clone(), self.plan_options(job)?)?)
    }

    fn plan_options(&self, job: &Job) -> Result<PlanOptions, Error> {
        Ok(PlanOptions {
            disk_buffer_bytes: self.disk.staging_bytes(),
            file_offsets_bytes: self.file_offsets_bytes(job)?,
            ..PlanOptions::default()
        })
    }

    /// At which byte of its file each array's data will begin, if it lies in one.
    fn file_offsets_bytes(&self, job: &Job) -> Result<Vec<u64>, Error> {
        let offset = |(source, sink): (&Option<Source>, &Option<Sink>)| match (source, sink) {
            (_, Some(Sink::Npy(_))) => Ok(npy::DATA_OFFSET_BYTES),
            (Some(Source::Npy(path)), None) => Ok(self.disk.open_npy(path).map_err(Error::File)?.data_offset_bytes()),
            _ => Ok(0),
        };
        job.sources.iter().zip(&job.sinks).map(offset).collect()
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
    /// See [`Error::exit_status`] for which of them mean that nothing was started. Except after an interruption, no
    /// file is left behind.
    pub fn run(&self, job: &Job, settings: Settings<'_>) -> Result<Outcome, Error> {
        let (planned, mapping) = match settings.resume {
            true => self.plan_to_resume(job)?,
            false => (self.plan(job)?, self.options.mapping.clone()),
        };
        let Planned { machine, plan, edges } = planned;
        self.check_sinks(job)?;
        let team = self.team(machine.workers())?;
        let own_abort = Abort::new();
        let abort = settings.abort.unwrap_or(&own_abort);
        if let Some(on_start) = settings.on_start {
            on_start();
        }
        let mode = if settings.full_trace { Mode::Full } else { Mode::Totals };
        let run = Run {
            runtime: self,
            job,
            machine: &machine,
            mapping: &mapping,
            team: &team,
            abort,
            mode,
            settings: &settings,
        };
        let (homes, plan, report, resumed) = match plan.driver {
            Driver::Disk => run.on_disk(plan)?,
            _ => run.in_memory(plan)?,
        };
        let mut edges = edges;
        let flops = if resumed {
            // What was done before is no part of this run's time, so it is no part of its traffic and work.
            let rest = plan.edges();
            for edge in &mut edges {
                edge.traffic = rest.iter().find(|e| e.name == edge.name).map(|e| e.traffic).unwrap_or_default();
            }
            plan.flops()
        } else {
            let tasks = job.program.tasks();
            job.program.calls().iter().map(|c| tasks[c.task as usize].work(&c.shape()).flops).sum()
        };
        Ok(Outcome {
            plan,
            machine,
            seconds: report.seconds,
            breakdown: report.breakdown,
            trace: report.trace,
            spill: settings.trace.clone(),
            edges,
            flops,
            backend: self.disk.backend_name().to_owned(),
            resumed,
            homes,
            disk: self.disk.clone(),
        })
    }

    /// Plans a job and puts its arrays into memory, so that it can be run many times without doing either again.
    ///
    /// # Errors
    /// As [`Runtime::plan`]; [`Error::Request`] when the arrays start on a disk, or a result goes to a file: such a job
    /// has effects that belong to one run.
    pub fn prepare<'a>(&'a self, job: &'a Job) -> Result<Prepared<'a>, Error> {
        let planned = self.plan(job)?;
        if planned.plan.driver == Driver::Disk || job.sinks.iter().any(Option::is_some) {
            return Err(Error::Request(format!(
                "{} cannot be prepared: its arrays or results lie in files; run it instead",
                job.app
            )));
        }
        let team = self.team(planned.machine.workers())?;
        let mut homes = Homes::in_memory(job, &self.disk, &Abort::new())?;
        homes.add_temporaries(&planned.plan, &self.disk, None)?;
        Ok(Prepared { runtime: self, job, planned, team, homes })
    }

    /// Two results may not go to one file, nor may one overwrite an input.
    fn check_sinks(&self, job: &Job) -> Result<(), Error> {
        let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_owned());
        let inputs: Vec<PathBuf> = job.files_read().map(real).collect();
        let mut seen: Vec<PathBuf> = Vec::new();
        for sink in job.sinks.iter().flatten() {
            let (path, name) = (real(sink.path()), sink.path().display());
            if seen.contains(&path) {
                return Err(Error::Request(format!("two results would go to {name}; give each its own file")));
            }
            if inputs.contains(&path) {
                let what = format!("the result would replace the input {name}; give it another name");
                return Err(Error::Request(what));
            }
            seen.push(path);
        }
        Ok(())
    }
}

/// A job whose plan is made and whose arrays lie in memory. Every run works on the arrays as the run before left them.
pub struct Prepared<'a> {
    runtime: &'a Runtime,
    job: &'a Job,
    planned: Planned,
    team: Arc<Team>,
    homes: Homes,
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
        let own_abort = Abort::new();
        let run = Run {
            runtime: self.runtime,
            job: self.job,
            machine: &self.planned.machine,
            mapping: &self.runtime.options.mapping,
            team: &self.team,
            abort: settings.abort.unwrap_or(&own_abort),
            mode: if settings.full_trace { Mode::Full } else { Mode::Totals },
            settings: &settings,
        };
        run.engine(&self.planned.plan, &self.homes, None).map_err(|e| run.ended(e, false))
    }
}

/// One run of a job.
struct Run<'a> {
    runtime: &'a Runtime,
    job: &'a Job,
    machine: &'a Machine,
    /// What the plan was made with.
    mapping: &'a Mapping,
    team: &'a Team,
    abort: &'a Abort,
    mode: Mode,
    settings: &'a Settings<'a>,
}

type Done = (Homes, Arc<Plan>, Report, bool);

impl Run<'_> {
    fn engine<'l>(
        &self,
        plan: &Plan,
        homes: &Homes,
        log: Option<&'l mut (dyn StoreLog + 'l)>,
    ) -> Result<Report, EngineError> {
        let options = RunOptions {
            abort: self.abort,
            mode: self.mode,
            spill: self.settings.trace.as_ref(),
            program: &self.job.app,
            afterwards: &self.job.afterwards,
            disk: Some(&self.runtime.disk),
            log,
            progress: self.settings.progress,
        };
        // SAFETY: memory homes are buffers of this run, one for each array, which nobody else uses.
        unsafe { multigrain_engine::run(plan, self.machine, self.team, &homes.homes(), options) }
    }

    fn in_memory(&self, plan: Arc<Plan>) -> Result<Done, Error> {
        let disk = &self.runtime.disk;
        let mut homes = Homes::in_memory(self.job, disk, self.abort)?;
        homes.add_temporaries(&plan, disk, None)?;
        forget(self.job, disk)?;
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
        let discard = |files: &[(usize, multigrain_store::ArrayFile)]| files.iter().for_each(|(_, f)| disk.discard(f));
        if let Err(error) = created {
            discard(&files);
            return Err(Error::File(error));
        }
        let report = self.engine(&plan, &homes, None).inspect_err(|_| discard(&files)).map_err(|e| match e {
            EngineError::Interrupted => Error::Interrupted { resume: false },
            e => Error::Run(e),
        })?;
        let written = files.iter().try_for_each(|(i, file)| {
            let Place::Memory(buffer) = &homes.places[*i] else { return Ok(()) };
            transfer_all(disk, file, Direction::Write, buffer.as_mut_ptr())
        });
        let published = written.and_then(|()| files.iter().try_for_each(|(_, file)| disk.publish(file)));
        if let Err(error) = published {
            discard(&files);
            return Err(Error::Store(error));
        }
        Ok((homes, plan, report, false))
    }

    fn on_disk(&self, whole: Arc<Plan>) -> Result<Done, Error> {
        let disk = &self.runtime.disk;
        let root = self.machine.memory(self.machine.root());
        let directory = root.path.clone().unwrap_or_else(|| PathBuf::from("."));
        let Some(sink) = self.job.sinks.iter().flatten().next() else {
            let mut homes = Homes::on_disk(self.job, disk, &directory, Opening::Fresh, self.abort)?;
            homes.add_temporaries(&whole, disk, Some(&directory))?;
            let report = self.engine(&whole, &homes, None).map_err(|e| self.ended(e, false))?;
            return Ok((homes, whole, report, false));
        };
        let begin = Begin {
            job: self.job,
            disk,
            directory: &directory,
            journal_path: Journal::path_for(sink.path()),
            fingerprint: fingerprint(self.job, &whole)?,
            tile: tile_text(self.machine, &whole),
            whole: &whole,
            interval: self.settings.journal_interval.unwrap_or(Duration::from_secs(2)),
            abort: self.abort,
        };
        let continued = match self.settings.resume {
            true => begin.continued(self.runtime, self.machine, self.mapping)?,
            false => None,
        };
        let resumed = continued.is_some();
        let Begun { homes, plan, mut log } = match continued {
            Some(begun) => begun,
            None => begin.afresh()?,
        };
        let result = match self.engine(&plan, &homes, Some(&mut log)) {
            Err(EngineError::Interrupted) => {
                // What is complete is recorded, so that nothing is done twice. Where that fails, it is done twice.
                let _ = log.flush();
                return Err(Error::Interrupted { resume: true });
            }
            Err(e) => Err(Error::Run(e)),
            Ok(report) => log
                .complete()
                .and_then(|()| homes.unpublished().try_for_each(|file| disk.publish(file)))
                .map(|()| report)
                .map_err(Error::Store),
        };
        match result {
            Ok(report) => {
                log.remove();
                Ok((homes, plan, report, resumed))
            }
            Err(error) => {
                homes.discard(disk);
                log.remove();
                Err(error)
            }
        }
    }

    fn ended(&self, error: EngineError, resume: bool) -> Error {
        match error {
            EngineError::Interrupted => Error::Interrupted { resume },
            error => Error::Run(error),
        }
    }
}

/// Transfer buffers serve what is not aligned; the blocks themselves need the memory more.
fn buffer_bytes(options: &Options) -> u64 {
    let (least, most) = (1 << 20, 8 << 20);
    let share = |memory: u64| (memory / 128).clamp(least, most).min(memory / 8);
    options.disk_buffer_bytes.unwrap_or_else(|| options.memory_bytes.map_or(most, share))
}

/// Bytes over every edge with lower bounds: for each edge, what a memory of the child's capacity must at least see.
fn edges(machine: &Machine, plan: &Plan, job: &Job) -> Vec<EdgeTraffic> {
    let mut edges = plan.edges();
    let calls = job.program.calls();
    if let (Ok(levels), [call]) = (machine.levels(), calls) {
        for (edge, id) in edges.iter_mut().zip(&levels[1..]) {
            if edge.driver != Driver::Shared {
                let task = &job.program.tasks()[call.task as usize];
                let bound = task.io_lower_bound(&call.shape(), machine.memory(*id).capacity_bytes);
                edge.lower_bound_bytes = bound.bytes_down + bound.bytes_up;
            }
        }
    } else if let Some(edge) = edges.first_mut()
        && edge.driver != Driver::Shared
    {
        // Several calls: what is compulsory, every input read once and every result written once.
        edge.lower_bound_bytes = job
            .arrays()
            .iter()
            .map(|a| match a.role {
                Role::Input | Role::Output => a.bytes(),
                Role::InOut => 2 * a.bytes(),
                Role::Temporary => 0,
            })
            .sum();
    }
    edges
}
