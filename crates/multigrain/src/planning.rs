//! What a job's plan is made from, the plan, and what is kept of a job for when it is run again.

use crate::choose;
use crate::error::Error;
use crate::job::{Job, Sink, Source};
use crate::resume::{journal_path, tile_of, tile_text};
use crate::runtime::Runtime;
use multigrain_engine::Memories;
use multigrain_machine::{Driver, Machine, readable_bytes};
use multigrain_plan::{EdgeTraffic, Mapping, Plan, PlanError, PlanOptions, Planner};
use multigrain_program::{ArrayDecl, Program, Role};
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
}

/// All that a plan is made from.
pub(crate) struct Asked {
    program: Program,
    machine: Machine,
    pub(crate) mapping: Mapping,
    options: PlanOptions,
}

impl Asked {
    /// Plans the job, and proves that it fits.
    pub(crate) fn plan(&self, job: &Job) -> Result<Arc<Plan>, Error> {
        let plan = Planner::new(&self.machine, self.mapping.clone(), self.options.clone())?.plan(&self.program)?;
        let root = self.machine.memory(self.machine.root());
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
        Ok(plan)
    }

    pub(crate) fn planned(&self, plan: Arc<Plan>, job: &Job) -> Planned {
        let edges = edges(&self.machine, &plan, job);
        Planned { machine: self.machine.clone(), plan, edges }
    }

    /// Whether the plan of one is that of the other.
    fn is_same(&self, other: &Asked) -> bool {
        self.program.is_same(&other.program)
            && self.mapping == other.mapping
            && self.options == other.options
            && is_same_machine(&self.machine, &other.machine)
    }
}

/// Whether plans for one machine are plans for the other: how much of a disk is free changes from run to run, and is
/// noticed when files are made.
fn is_same_machine(a: &Machine, b: &Machine) -> bool {
    let root = a.memory(a.root());
    let is_disk =
        a.children(a.root()).any(|child| a.memory(child).edge.is_some_and(|edge| edge.driver == Driver::Disk));
    let same_space = |memory: &mut multigrain_machine::Memory| memory.capacity_bytes = root.capacity_bytes;
    a == b || (is_disk && b.with(&root.name, same_space).is_ok_and(|b| *a == b))
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

impl Runtime {
    /// What is to be planned.
    pub(crate) fn asked(&self, job: &Job, simulated: bool, mapping: &Mapping) -> Result<Asked, Error> {
        Ok(Asked {
            program: job.program.clone(),
            machine: choose::machine(&self.options, job)?,
            mapping: mapping.clone(),
            options: PlanOptions { simulated, ..self.plan_options(job)? },
        })
    }

    /// A run from the inputs. What was kept of the job before is given back first, unless this is the same.
    pub(crate) fn ready(&self, job: &Job, kept: Option<Kept>) -> Result<Ready, Error> {
        let asked = self.asked(job, false, &self.options.mapping)?;
        match kept {
            Some(Kept { asked: before, plan, memories }) if before.is_same(&asked) => {
                Ok(Ready { asked: before, plan, memories: Some(memories) })
            }
            other => {
                drop(other);
                let plan = asked.plan(job)?;
                Ok(Ready { asked, plan, memories: None })
            }
        }
    }

    /// A run that goes on: where an interrupted run has left a tile, it is kept, since the journal counts calls of that
    /// tile.
    pub(crate) fn ready_to_resume(&self, job: &Job) -> Result<Ready, Error> {
        let asked = self.asked(job, false, &self.options.mapping)?;
        let plan = asked.plan(job);
        let ready = |asked: Asked, plan: Arc<Plan>| Ok(Ready { asked, plan, memories: None });
        let Some(tile) = tile_of(job, &self.disk)? else { return ready(asked, plan?) };
        if plan.as_ref().is_ok_and(|plan| tile_text(&asked.machine, plan) == tile) {
            return ready(asked, plan?);
        }
        let mut mapping = Mapping::parse(&tile, "of the interrupted run")?;
        mapping.overlay(&self.options.mapping);
        let again = self.asked(job, false, &mapping)?;
        match again.plan(job) {
            Ok(plan) => ready(again, plan),
            Err(Error::Plan(source @ (PlanError::MappingDoesNotFit { .. } | PlanError::DoesNotFit { .. }))) => {
                Err(Error::CannotResume { journal: journal_path(job).unwrap_or_default(), source })
            }
            // A tile of other tasks: the fingerprint tells what differs.
            Err(_) => ready(asked, plan?),
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
    if let (Ok(levels), [call]) = (machine.levels(), calls) {
        for (edge, id) in edges.iter_mut().zip(&levels[1..]) {
            if edge.driver != Driver::Shared {
                let task = &job.program.tasks()[call.task as usize];
                let memory = machine.memory(*id);
                let reaches = memory.edge.is_some_and(|edge| edge.sibling_bytes_per_second.is_some());
                let together = if reaches { memory.count as u64 } else { 1 };
                let bound = task.io_lower_bound(&call.shape(), memory.capacity_bytes.saturating_mul(together));
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
