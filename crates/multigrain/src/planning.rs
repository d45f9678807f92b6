//! What a job's plan is made from, the plan, and what is kept of a job for when it is run again.

use crate::choose;
use crate::cluster::is_spread;
use crate::error::Error;
use crate::job::{Job, Sink, Source};
use crate::keeps::{
    Keeps, LISTED_MIN, OWN_BYTES, PLAN_CALL_BYTES, PLAN_SHARE, calls_beside, check_kept, enough_for, held_beside,
    known_bytes, listed_max, longest_list, plan_bytes, workers_bytes,
};
use crate::limits::{main_memory, root_is_disk};
use crate::means::Means;
use crate::options::MachineChoice;
use crate::resume::GoingOn;
use crate::wire::Wire;
use multigrain_engine::{Memories, Part};
use multigrain_machine::{Layout, Machine, Memory};
use multigrain_plan::{EdgeTraffic, Enough, Mapping, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::{Arg, ArrayDecl, Call, Program, Role};
use multigrain_store::buffer::{give_code_back, give_free_memory_back};
use multigrain_store::npy;
use std::sync::Arc;

/// A job's plan.
pub struct Planned {
    /// The machine, from the memory down in which the arrays lie.
    pub machine: Machine,
    /// The plan of the root edge and of all below.
    pub plan: Arc<Plan>,
    /// Bytes over every edge, with lower bounds.
    pub edges: Vec<EdgeTraffic>,
    /// Why a run would be refused here now, though the plan fits: the disk has no room for the files, or blocks break the rules of
    /// transfers.
    pub refused: Option<String>,
    /// Where arrays lie in the memories of several ranks: what goes from one to another.
    pub wire: Option<Wire>,
}

/// Has a refusal name what people asked for: a task of which an application is made stands beside the application.
fn told_of(app: &str, mut error: PlanError) -> PlanError {
    if let PlanError::DoesNotFit { task, .. }
    | PlanError::TooManyCalls { task, .. }
    | PlanError::TooLong { task, .. }
    | PlanError::Unmovable { task, .. } = &mut error
        && task != app
    {
        let plain = task.strip_prefix(app).unwrap_or(task).trim_start_matches('-').replace('-', " ");
        *task = format!("{app}'s task {plain}");
    }
    error
}

/// All that a plan is made from.
pub(crate) struct Asked {
    program: Program,
    machine: Machine,
    mapping: Mapping,
    options: PlanOptions,
    /// Whose plan it is: of a cluster, each rank's.
    part: Part,
}

impl Asked {
    /// With a search for a good plan, or without.
    pub(crate) fn searching(mut self, searches: bool) -> Asked {
        self.options.searches = searches;
        self
    }

    /// Plans the job, and proves that it fits with all that a run of it keeps.
    ///
    /// What a plan takes itself is known only when it is made; where it is more than its share, the job is planned again
    /// for as much less.
    pub(crate) fn plan(&self, job: &Job) -> Result<Arc<Plan>, Error> {
        let plan = self.within(job, |planner| planner.plan(&self.program));
        // A plan is a small part of what the search for it took, and a run has need of the rest.
        give_free_memory_back();
        give_code_back();
        plan
    }

    /// What `plan` makes within the memory.
    fn within(
        &self,
        job: &Job,
        mut plan: impl FnMut(&mut Planner<'_>) -> Result<Arc<Plan>, PlanError>,
    ) -> Result<Arc<Plan>, Error> {
        let mut plan = |planner: &mut Planner<'_>| plan(planner).map_err(|error| told_of(&job.app, error));
        if self.options.simulated {
            return Ok(plan(&mut Planner::new(&self.machine, self.mapping.clone(), self.options.clone()))?);
        }
        let mut tried = Tried::default();
        match self.weighed(job, &mut plan, self.options.searches, &mut tried) {
            // Lists that are too long for all the room there is are as long without a search.
            Err(Error::Plan(error @ PlanError::TooManyCalls { most, .. })) if most >= self.options.calls_max => {
                Err(error.into())
            }
            // Shorter ones were looked for without a search.
            Err(refused @ Error::Plan(PlanError::TooLong { .. })) => Err(refused),
            // What a search has found first may need room that is left by what is found without one.
            Err(refused) if self.options.searches => {
                self.weighed(job, &mut plan, false, &mut tried).map_err(|_| refused)
            }
            planned => planned,
        }
    }

    /// Shorter lists, or room that is set aside for longer ones; `first_searched` says whether what they need is first looked for
    /// with a search.
    fn weighed(
        &self,
        job: &Job,
        plan: &mut impl FnMut(&mut Planner<'_>) -> Result<Arc<Plan>, PlanError>,
        first_searched: bool,
        tried: &mut Tried,
    ) -> Result<Arc<Plan>, Error> {
        let shorter = self.found(job, plan, first_searched, None, tried);
        // Whichever takes less time.
        let is_slower = |aside: &Aside| shorter.as_ref().map_or(true, |plan| plan.seconds > aside.seconds);
        let Some(aside) = tried.aside.take().filter(is_slower) else { return shorter };
        let mut shortened = Tried { shortened: true, aside: None };
        match (self.found(job, plan, first_searched, Some(aside), &mut shortened), shorter) {
            (Ok(beside), Ok(shorter)) if beside.seconds >= shorter.seconds => Ok(shorter),
            (Ok(beside), _) => Ok(beside),
            (Err(_), shorter) => shorter,
        }
    }

    /// With lists that are short enough for the plan to need no room of its own, if that can be and they were not tried before, or
    /// with room set aside for it from the `start`; what else would have fitted so is left in `tried`.
    fn found(
        &self,
        job: &Job,
        plan_for: &mut impl FnMut(&mut Planner<'_>) -> Result<Arc<Plan>, PlanError>,
        first_searched: bool,
        start: Option<Aside>,
        tried: &mut Tried,
    ) -> Result<Arc<Plan>, Error> {
        let main = main_memory(&self.machine);
        let (name, capacity_bytes) = (main.name.clone(), main.capacity_bytes);
        check_kept(&job.app, &job.kept(), job.kept_bytes(), 0, main)?;
        // Before there is a plan that names each of them.
        check_kept(&job.app, "its workers", workers_bytes(&self.machine), 0, main)?;
        let (mut machine, mut options) = (self.machine.clone(), self.options.clone());
        // What is set aside for the plan, beyond what the process takes for itself, and for what else blocks do not count.
        let (mut of_plan, mut beside, mut before) = (0_u64, 0_u64, None);
        let mut shorter = if tried.shortened { u32::MAX } else { 0 };
        if let Some(Aside { listed_max, bytes, .. }) = start {
            (options.listed_max, of_plan) = (listed_max, bytes);
            options.calls_max = self.options.calls_max.min(calls_beside(of_plan, job.kept_bytes()));
            machine = machine.with_capacity(&name, capacity_bytes - of_plan)?;
        }
        let keeps_of = |plan: &Plan| Keeps::of(&self.machine, plan, job, self.options.disk_buffer_bytes, self.part);
        // Of a run of which nothing is left but names, nothing is kept.
        let runs_with = |plan: &Plan, keeps: &Keeps| keeps.bytes() <= capacity_bytes || plan.calls.is_empty();
        let fits = |plan: &Plan, keeps: &Keeps| runs_with(plan, keeps) && keeps.afterwards() <= capacity_bytes;
        // How much more has to be set aside is found without a search, and what is best within the rest with one.
        let mut searches = first_searched;
        for _ in 0..PLANNED_AGAIN_MAX {
            let searched = std::mem::replace(&mut searches, false);
            let asked = PlanOptions { searches: searched, ..options.clone() };
            let planned = plan_for(&mut Planner::new(&machine, self.mapping.clone(), asked));
            let planned = match planned {
                Err(PlanError::DoesNotFit { .. }) if first_searched && !searched => {
                    searches = true;
                    continue;
                }
                // Shorter lists may take less in all.
                Err(PlanError::TooLong { calls, .. }) if options.listed_max / 2 >= LISTED_MIN && shorter < u32::MAX => {
                    let fitting = calls_beside(0, job.kept_bytes());
                    (options.listed_max, shorter) = (shorter_list(options.listed_max, calls, fitting), shorter + 1);
                    tried.shortened = true;
                    continue;
                }
                // With less room for blocks there are no fewer calls.
                Err(PlanError::TooManyCalls { calls, .. })
                    if of_plan > 0
                        && of_plan < capacity_bytes / PLAN_SHARE
                        && calls <= calls_beside(capacity_bytes / PLAN_SHARE, job.kept_bytes()) =>
                {
                    of_plan = (2 * of_plan).min(capacity_bytes / PLAN_SHARE);
                    options.calls_max = self.options.calls_max.min(calls_beside(of_plan, job.kept_bytes()));
                    None
                }
                // Where nothing fits into lists that short, longer ones have to do.
                Err(PlanError::DoesNotFit { .. }) if options.listed_max < self.options.listed_max => {
                    (options.listed_max, shorter) = (self.options.listed_max, u32::MAX);
                    continue;
                }
                Err(mut error) => {
                    // Of so much as was found to be enough, what was set aside is not there.
                    match &mut error {
                        PlanError::DoesNotFit { memory, enough, .. } if *memory == name => {
                            *enough = enough.beside(of_plan.saturating_add(beside));
                        }
                        // Plans lie in this memory, whichever the calls are for.
                        PlanError::TooManyCalls { calls, enough, .. } | PlanError::TooLong { calls, enough, .. } => {
                            let known = known_bytes(&self.machine, job, options.disk_buffer_bytes);
                            let room = enough_for(*calls, capacity_bytes, 1, known);
                            let need = room.max(enough_for(*calls, capacity_bytes, PLAN_SHARE, job.kept_bytes()));
                            *enough = (need > capacity_bytes).then(|| (name.clone(), Enough::from_need(need)));
                        }
                        _ => {}
                    }
                    return Err(error.into());
                }
                Ok(plan) => Some(plan),
            };
            if let Some(plan) = planned {
                let keeps = keeps_of(&plan)?;
                let runs = runs_with(&plan, &keeps);
                if fits(&plan, &keeps) {
                    let search = || plan_for(&mut Planner::new(&machine, self.mapping.clone(), options.clone())).ok();
                    let is_best = searched || !options.searches;
                    let Some(best) = (!is_best).then(search).flatten() else { return Ok(plan) };
                    let is_better = best.seconds <= plan.seconds && fits(&best, &keeps_of(&best)?);
                    return Ok(if is_better { best } else { plan });
                }
                // Shorter lists are of larger blocks, below which local stores that lie in this memory take no less.
                let others = keeps.memories.local.saturating_add(job.kept_bytes());
                if others > OWN_BYTES.saturating_add(capacity_bytes) {
                    return Err(keeps.does_not_fit(job, &name, capacity_bytes, plan.driver));
                }
                let found = Aside::of(&plan, &keeps, options.listed_max, capacity_bytes);
                let is_best =
                    |found: &Aside| !runs && tried.aside.as_ref().is_none_or(|best| found.seconds < best.seconds);
                if let Some(found) = found.filter(is_best) {
                    tried.aside = Some(found);
                }
                // What shorter lists have not changed, others do not change.
                let found = Some((plan.seconds, plan.calls.len()));
                let is_the_same = std::mem::replace(&mut before, found) == found;
                let tries = if plan.is_in_parts() { u32::MAX } else { SHORTER_MAX };
                let may_be_shorter = shorter < tries && !(shorter > 0 && is_the_same);
                // A list that is shorter than it may be stays as it is until it may not.
                let listed = options.listed_max.min(longest_list(&plan));
                if keeps.own > 0 && listed > LISTED_MIN && may_be_shorter {
                    let own_calls = (keeps.own + OWN_BYTES) / PLAN_CALL_BYTES;
                    let fitting = calls_beside(0, others);
                    (options.listed_max, shorter) = (shorter_list(listed, own_calls, fitting), shorter + 1);
                    tried.shortened = true;
                    continue;
                }
                if runs {
                    // Smaller blocks leave no more.
                    return Err(keeps.leaves_too_little(job, &name, capacity_bytes, plan.driver));
                }
                // So much is set aside, and no more may be used.
                of_plan = of_plan.max(keeps.set_aside(capacity_bytes));
                options.calls_max = self.options.calls_max.min(calls_beside(of_plan, others));
                beside += (keeps.bytes() - keeps.own).saturating_sub(main_memory(&machine).capacity_bytes);
                let has_room = of_plan.saturating_add(beside) < capacity_bytes
                    && plan_bytes(&plan).saturating_add(others) <= OWN_BYTES + capacity_bytes / PLAN_SHARE;
                if !plan.driver.files || !has_room {
                    return Err(keeps.does_not_fit(job, &name, capacity_bytes, plan.driver));
                }
            }
            machine = machine.with_capacity(&name, capacity_bytes - of_plan - beside)?;
        }
        let what = "its plan takes what its blocks leave, however it is planned";
        Err(Error::Request(format!("{} does not fit memory {name}: {what}; give {name} more", job.app)))
    }

    pub(crate) fn planned(&self, plan: Arc<Plan>, job: &Job) -> Planned {
        let edges = edges(&self.machine, &plan, job);
        let wire = is_spread(&self.machine).then(|| Wire::of(&self.machine, &plan, job));
        Planned { machine: self.machine.clone(), plan, edges, refused: None, wire }
    }

    /// Whether the plan of one is that of the other.
    fn is_same(&self, other: &Asked) -> bool {
        self.program.is_same(&other.program)
            && self.mapping == other.mapping
            && self.options == other.options
            && is_same_machine(&self.machine, &other.machine)
    }
}

/// What attempts to plan a job have left for later ones.
#[derive(Default)]
struct Tried {
    /// The best that would fit with room set aside.
    aside: Option<Aside>,
    /// Whether shorter lists were tried.
    shortened: bool,
}

/// A plan that would fit with blocks that are smaller by what it takes itself.
struct Aside {
    /// About how long it would take then: longer as blocks have less room.
    seconds: f64,
    /// How long its lists may be.
    listed_max: u64,
    /// What is to be set aside.
    bytes: u64,
}

impl Aside {
    /// `None` where it takes more than a plan may, or where arrays, which are no smaller then, lie beside it.
    fn of(plan: &Plan, keeps: &Keeps, listed_max: u64, capacity_bytes: u64) -> Option<Aside> {
        let bytes = keeps.set_aside(capacity_bytes);
        let has_room = plan.driver.files && bytes <= capacity_bytes / PLAN_SHARE;
        let left = capacity_bytes.checked_sub(bytes).filter(|_| has_room)?;
        let seconds = plan.seconds * capacity_bytes as f64 / left as f64;
        Some(Aside { seconds, listed_max, bytes })
    }
}

/// How long lists are to be that are so much shorter as calls are too many, where these take most.
fn shorter_list(listed: u64, calls: u64, fitting: u64) -> u64 {
    (listed.saturating_mul(fitting) / calls.max(1)).min(listed / 2).max(LISTED_MIN)
}

/// So often a job is planned again with less room for blocks.
const PLANNED_AGAIN_MAX: usize = 16;

/// So often shorter lists are tried where they have not led to parts yet.
const SHORTER_MAX: u32 = 2;

/// Whether plans for one machine are plans for the other: how much of a disk is free changes from run to run, and is
/// noticed when files are made.
fn is_same_machine(a: &Machine, b: &Machine) -> bool {
    let root = a.memory(a.root());
    let same_space = |memory: &mut Memory| memory.capacity_bytes = root.capacity_bytes;
    a == b || (root_is_disk(a) && b.with(&root.name, same_space).is_ok_and(|b| *a == b))
}

/// What the last run leaves for the next: its plan, and its memories, which need not be made usable again.
pub(crate) struct Kept {
    pub(crate) asked: Asked,
    pub(crate) plan: Arc<Plan>,
    pub(crate) memories: Memories,
}

/// A planned run.
pub(crate) struct Ready {
    pub(crate) asked: Asked,
    pub(crate) plan: Arc<Plan>,
    /// Those of the last run, if it was the same.
    pub(crate) memories: Option<Memories>,
}

impl Means {
    /// What is to be planned.
    pub(crate) fn asked(&self, job: &Job, simulated: bool) -> Result<Asked, Error> {
        self.asked_on(choose::machine(&self.options, job)?, job, simulated)
    }

    fn asked_on(&self, machine: Machine, job: &Job, simulated: bool) -> Result<Asked, Error> {
        // What could be run is planned as a run is.
        let is_executable = |memory: &Memory| memory.edge.is_none_or(|edge| edge.driver.executable);
        let simulated = simulated && !machine.memories().iter().all(is_executable);
        Ok(Asked {
            program: job.program.clone(),
            options: self.plan_options(job, &machine, simulated)?,
            machine,
            mapping: self.options.mapping.clone(),
            part: self.part(),
        })
    }

    /// The plan of what was asked for. Where nobody has chosen the machine, arrays that memory has room for, but not for what they
    /// need beside them, lie on the disk, as larger ones do.
    pub(crate) fn plan(&self, asked: Asked, job: &Job, simulated: bool) -> Result<(Asked, Arc<Plan>), Error> {
        let refused = match asked.plan(job) {
            Ok(plan) => return Ok((asked, plan)),
            Err(refused) => refused,
        };
        let lacks_room = matches!(
            refused,
            Error::DoesNotFit { .. }
                | Error::Plan(
                    PlanError::DoesNotFit { .. } | PlanError::TooManyCalls { .. } | PlanError::TooLong { .. }
                )
        );
        let is_chosen = matches!(self.options.machine, MachineChoice::Given(_)) || root_is_disk(&asked.machine);
        if !lacks_room || is_chosen {
            return Err(refused);
        }
        let Ok(machine) = choose::machine_with_disk(&self.options, job) else { return Err(refused) };
        choose::check_disk_room(&machine, job)?;
        let searches = asked.options.searches;
        let asked = self.asked_on(machine, job, simulated)?.searching(searches);
        let plan = asked.plan(job)?;
        Ok((asked, plan))
    }

    /// A run from the inputs. What was kept of the job before is given back first, unless this is the same.
    pub(crate) fn ready(&self, job: &Job, kept: Option<Kept>) -> Result<Ready, Error> {
        let asked = self.asked(job, false)?;
        choose::check_disk_room(&asked.machine, job)?;
        match kept {
            Some(Kept { asked: before, plan, memories }) if before.is_same(&asked) => {
                Ok(Ready { asked: before, plan, memories: Some(memories) })
            }
            other => {
                drop(other);
                let (asked, plan) = self.plan(asked, job, false)?;
                Ok(Ready { asked, plan, memories: None })
            }
        }
    }

    /// A run that goes on with what an interrupted one has left: it keeps its blocks, since the journal counts calls on
    /// them.
    pub(crate) fn ready_to_go_on(&self, job: &Job, going_on: &GoingOn) -> Result<Ready, Error> {
        let cannot = |source: Error| {
            let journal = going_on.unfinished.journal.clone();
            Error::CannotResume { journal, source: Box::new(source) }
        };
        let machine = match going_on.unfinished.found.complete {
            true => choose::machine(&self.options, job),
            false => choose::machine_with_disk(&self.options, job),
        }
        .and_then(|machine| choose::check_disk_room(&machine, job).map(|()| machine))
        .map_err(cannot)?;
        let options = self.plan_options(job, &machine, false)?;
        let (program, mapping) = (job.program.clone(), self.options.mapping.clone());
        let asked = Asked { program, machine, mapping, options, part: self.part() };
        match asked.within(job, |planner| planner.plan_left(&going_on.left)) {
            Ok(plan) => Ok(Ready { asked, plan, memories: None }),
            Err(Error::Plan(
                error @ (PlanError::MappingDoesNotFit { .. }
                | PlanError::DoesNotFit { .. }
                | PlanError::TooManyCalls { .. }
                | PlanError::TooLong { .. }
                | PlanError::Unmovable { .. }
                | PlanError::OneMemory { .. }),
            )) => Err(cannot(error.into())),
            Err(error @ (Error::Request(_) | Error::DoesNotFit { .. })) => Err(cannot(error)),
            Err(error) => Err(error),
        }
    }

    /// Lists of calls lie in the main memory of whoever runs them; a plan that is only simulated lies in none of its machine's.
    fn plan_options(&self, job: &Job, machine: &Machine, simulated: bool) -> Result<PlanOptions, Error> {
        let capacity_bytes = if simulated { u64::MAX } else { main_memory(machine).capacity_bytes };
        Ok(PlanOptions {
            disk_buffer_bytes: self.disk.staging_bytes(),
            calls_max: calls_beside(capacity_bytes / PLAN_SHARE, job.kept_bytes()),
            listed_max: self.options.listed_max.unwrap_or(listed_max(capacity_bytes)),
            held_max: held_beside(capacity_bytes, known_bytes(machine, job, self.disk.staging_bytes())),
            file_offsets_bytes: self.file_offsets_bytes(job)?,
            simulated,
            ..PlanOptions::default()
        })
    }

    /// At which byte of its file each array's data will begin, if it lies in one.
    fn file_offsets_bytes(&self, job: &Job) -> Result<Vec<u64>, Error> {
        let offset = |((decl, source), sink): ((&ArrayDecl, &Option<Source>), &Option<Sink>)| match (source, sink) {
            (_, Some(Sink::Npy(_))) => Ok(npy::DATA_OFFSET_BYTES),
            (Some(Source::Npy(path)), None) => {
                let file = self.disk.open_npy_as(path, decl.element).map_err(Error::File)?;
                Ok(file.data_offset_bytes())
            }
            _ => Ok(0),
        };
        job.arrays().iter().zip(&job.sources).zip(&job.sinks).map(offset).collect()
    }
}

/// Bytes over every edge with lower bounds: for each edge, what a memory of the child's capacity must at least see or, where
/// children reach each other, one that holds as much as all of them.
fn edges(machine: &Machine, plan: &Plan, job: &Job) -> Vec<EdgeTraffic> {
    let mut edges = plan.edges();
    let calls = job.program.calls();
    let layout = Layout::of(machine);
    let arrays = job.arrays();
    // Of a call on different arrays, of which none is read that holds nothing yet, the task knows more than what is compulsory.
    let is_plain = |call: &Call| {
        let params = job.program.tasks()[call.task as usize].params();
        let is_empty = |arg: &Arg| matches!(arrays[arg.array as usize].role, Role::Output | Role::Temporary);
        let is_read = call.args.iter().zip(params).any(|(arg, param)| param.access.reads() && is_empty(arg));
        let is_twice = (1..call.args.len()).any(|at| call.args[..at].iter().any(|a| a.array == call.args[at].array));
        !is_read && !is_twice
    };
    if let [call] = calls
        && is_plain(call)
    {
        for edge in &mut edges {
            let branch = layout.branch(edge.edge);
            // What is below a division sees a share of the call that no bound is known of.
            let divided = branch.above.iter().any(|above| layout.branch(*above).is_division());
            if let Some(id) = branch.child.filter(|_| !edge.driver.views && !divided) {
                let task = &job.program.tasks()[call.task as usize];
                let memory = machine.memory(id);
                let reaches = memory.edge.is_some_and(|edge| edge.sibling_bytes_per_second.is_some());
                let together = if reaches { memory.count as u64 } else { 1 };
                let bound = task.io_lower_bound(&call.shape(), memory.capacity_bytes.saturating_mul(together));
                edge.lower_bound_bytes = bound.bytes_down.saturating_add(bound.bytes_up);
            }
        }
    } else if let Some(edge) = edges.first_mut()
        && !edge.driver.views
    {
        // What is compulsory: what is read of every input once, and every result written once.
        let touched = |(number, array): (usize, &ArrayDecl)| {
            let bytes = |writes| {
                let elements = job.program.touched_elements(number as u32, writes);
                elements.saturating_mul(array.element.size_bytes())
            };
            match array.role {
                Role::Input => bytes(false),
                Role::Output => bytes(true),
                Role::InOut => bytes(false).saturating_add(bytes(true)),
                Role::Temporary => 0,
            }
        };
        edge.lower_bound_bytes = arrays.iter().enumerate().map(touched).fold(0, u64::saturating_add);
    }
    edges
}
