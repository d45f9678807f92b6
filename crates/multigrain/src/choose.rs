//! Which machine a job runs on, and in which of its memories the arrays start.

use crate::cluster;
use crate::error::Error;
use crate::job::{Job, Source};
use crate::limits::{main_memory, root_is_disk, with_threads};
use crate::names::{directory_of, part_path, scratch_path};
use crate::options::{MachineChoice, Options};
use multigrain_machine::{Machine, Memory, approximate_bytes};
use multigrain_plan::check::{CheckError, check, edge_rules};
use multigrain_plan::{Enough, Plan, PlanError};
use multigrain_program::Role;
use std::path::Path;

/// The machine for a job. Without a machine file, arrays start in memory where they take no more than there is; whether all
/// that they need beside them fits is known when it is planned, and [`machine_with_disk`] is what else there is.
pub(crate) fn machine(options: &Options, job: &Job) -> Result<Machine, Error> {
    choose(options, job, false)
}

/// The machine for a job whose arrays lie on a disk already.
///
/// # Errors
/// Also when the machine that was given has none.
pub(crate) fn machine_with_disk(options: &Options, job: &Job) -> Result<Machine, Error> {
    choose(options, job, true)
}

fn choose(options: &Options, job: &Job, on_disk: bool) -> Result<Machine, Error> {
    let directory = job.sinks.iter().flatten().next().map_or(Path::new("."), |s| directory_of(s.path()));
    let detected = matches!(options.machine, MachineChoice::Detected);
    let mut machine = match &options.machine {
        MachineChoice::Detected => Machine::detect(if directory.is_dir() { directory } else { Path::new(".") })?,
        MachineChoice::Given(machine) => (**machine).clone(),
    };
    if let Some(threads) = options.threads {
        machine = with_threads(machine, threads)?;
    }
    if let Some(bytes) = options.memory_bytes {
        let name = main_memory(&machine).name.clone();
        machine = machine.with_capacity(&name, bytes)?;
    }
    let root_is_disk = root_is_disk(&machine);
    if let Some(count) = options.ranks.as_ref().map(|ranks| ranks.count()).or(options.planned_ranks) {
        if !root_is_disk {
            return Err(Error::Request(format!(
                "on {count} ranks arrays lie in files that all reach, and machine {} has no disk: choose one with a disk above its memory",
                machine.name
            )));
        }
        return match &options.ranks {
            Some(ranks) => cluster::of_all(ranks, options, job, &machine, on_disk),
            None => {
                let alike = [main_memory(&machine).capacity_bytes, machine.workers() as u64];
                cluster::of_alike(count, alike, job, &machine, on_disk)
            }
        };
    }
    if on_disk && !root_is_disk {
        return Err(Error::Request(format!("its arrays lie on a disk, and machine {} has none", machine.name)));
    }
    if detected && root_is_disk && !job.reads_files() && !on_disk {
        let memory = machine.without_root();
        let capacity = memory.memory(memory.root()).capacity_bytes;
        let beside = job.kept_bytes().saturating_add(job.work_bytes());
        if job.bytes().saturating_add(beside) <= capacity {
            return Ok(memory);
        }
    }
    if !root_is_disk {
        check_memory_room(options, &machine, job)?;
    }
    Ok(machine)
}

/// The main memory, of the capacity of the budget where there is one: the memory below a disk, or the root where there is no
/// disk.
pub(crate) fn memory(options: &Options) -> Result<(Memory, usize), Error> {
    let machine = match &options.machine {
        MachineChoice::Detected => Machine::detect(Path::new("."))?,
        MachineChoice::Given(machine) => (**machine).clone(),
    };
    let main = main_memory(&machine);
    let workers = options.threads.unwrap_or(machine.workers());
    let capacity_bytes = options.memory_bytes.unwrap_or(main.capacity_bytes);
    let [capacity_bytes, workers] = match &options.ranks {
        Some(ranks) => cluster::least(ranks, options, capacity_bytes, workers)?,
        None => [capacity_bytes, workers as u64],
    };
    Ok((Memory { capacity_bytes, ..main.clone() }, workers as usize))
}

/// Refuses a machine with an edge that no driver here executes: a plan for it is made all the same, to be looked at.
pub(crate) fn check_drivers(machine: &Machine) -> Result<(), Error> {
    let cannot = |memory: &&Memory| memory.edge.is_some_and(|edge| !edge.driver.executable);
    let Some((memory, edge)) = machine.memories().iter().find(cannot).and_then(|memory| Some((memory, memory.edge?)))
    else {
        return Ok(());
    };
    let (machine, memory) = (machine.name.clone(), memory.name.clone());
    Err(PlanError::Driver { machine, memory, driver: edge.driver.name.to_owned() }.into())
}

/// Refuses a plan whose blocks break the rules of an edge that keeps to them: of lengths that no aligned blocks make up, one
/// is made all the same, to be looked at.
pub(crate) fn check_rules(machine: &Machine, plan: &Plan, job: &Job) -> Result<(), Error> {
    let rules = edge_rules(machine);
    // Of a run of which nothing is left but names, no block moves.
    if plan.calls.is_empty() || !rules.iter().any(|rules| rules.strict) {
        return Ok(());
    }
    check(plan, &rules).map(|_| ()).map_err(|why| not_aligned(machine, job, &why))
}

/// The refusal of a plan that breaks such rules.
pub(crate) fn not_aligned(machine: &Machine, job: &Job, why: &CheckError) -> Error {
    Error::Request(format!(
        "{} cannot run on machine {}, whose transfers have to be aligned: {why}; choose lengths that are multiples of its \
         alignment, or another machine",
        job.app, machine.name
    ))
}

/// What else can be done where arrays have to fit into a memory.
pub(crate) const OR_A_DISK: &str = ", or choose a machine with a disk above it";

/// Refuses, before anything is planned, arrays that a root in memory cannot hold.
fn check_memory_room(options: &Options, machine: &Machine, job: &Job) -> Result<(), Error> {
    let root = machine.memory(machine.root());
    if job.bytes() <= root.capacity_bytes {
        return Ok(());
    }
    let what = format!(
        "{} does not fit: its arrays take {}, memory {} holds {}",
        job.app,
        approximate_bytes(job.bytes()),
        root.name,
        approximate_bytes(root.capacity_bytes),
    );
    // Of a budget there may be more; of the memory itself there is none.
    match options.memory_bytes {
        Some(_) => Err(Error::DoesNotFit {
            what,
            memory: root.name.clone(),
            enough: Enough::from_need(job.bytes()),
            instead: OR_A_DISK,
        }),
        None => Err(Error::Request(format!("{what}; choose a machine with a disk above it"))),
    }
}

/// Refuses, before a run, files for which a root that is a disk has no room now.
///
/// # Errors
/// [`Error::Request`] with the numbers.
pub(crate) fn check_disk_room(machine: &Machine, job: &Job) -> Result<(), Error> {
    let root = machine.memory(machine.root());
    if !root_is_disk(machine) || cluster::is_spread(machine) {
        return Ok(());
    }
    let directory = root.path.as_deref().unwrap_or(Path::new("."));
    let need_bytes = (0..job.arrays().len()).map(|i| new_file_bytes(job, i, directory)).fold(0, u64::saturating_add);
    if need_bytes <= root.capacity_bytes {
        return Ok(());
    }
    Err(Error::Request(format!(
        "{} does not fit: its new files take {}, memory {} (files in {}) has {} free; free space there, or put \
         the files on another disk",
        job.app,
        approximate_bytes(need_bytes),
        root.name,
        directory.display(),
        approximate_bytes(root.capacity_bytes),
    )))
}

/// Bytes that a run will take in `directory` for an array: none for inputs that are files already and for results that
/// go elsewhere, and not again what an interrupted run has reserved.
fn new_file_bytes(job: &Job, array: usize, directory: &Path) -> u64 {
    let decl = &job.arrays()[array];
    let there = |path: &Path| std::fs::metadata(part_path(path)).map_or(0, |m| m.len());
    let Some(sink) = &job.sinks[array] else {
        let is_file = matches!(job.sources[array], Some(Source::Npy(_) | Source::Raw(_)));
        let first = job.sinks.iter().flatten().next();
        let kept = first.map_or(0, |first| there(&scratch_path(directory, first.path(), array)));
        return if decl.role == Role::Input && is_file { 0 } else { decl.bytes().saturating_sub(kept) };
    };
    let real = |path: &Path| path.canonicalize().ok();
    if real(directory_of(sink.path())) != real(directory) {
        return 0;
    }
    decl.bytes().saturating_sub(there(sink.path()))
}
