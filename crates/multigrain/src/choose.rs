//! Which machine a job runs on, and in which of its memories the arrays start.

use crate::error::Error;
use crate::job::Job;
use crate::runtime::{MachineChoice, Options};
use multigrain_machine::{Driver, Machine};
use std::path::Path;

/// Without a machine file, arrays start in memory when they take at most this share of it.
const IN_MEMORY_SHARE: f64 = 0.8;

/// The machine for a job.
pub(crate) fn machine(options: &Options, job: &Job) -> Result<Machine, Error> {
    let directory = job
        .sinks
        .iter()
        .flatten()
        .next()
        .and_then(|s| s.path().parent())
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let detected = matches!(options.machine, MachineChoice::Detected);
    let mut machine = match &options.machine {
        MachineChoice::Detected => Machine::detect(if directory.is_dir() { directory } else { Path::new(".") })?,
        MachineChoice::Given(machine) => (**machine).clone(),
    };
    if let Some(threads) = options.threads {
        machine = with_threads(machine, threads)?;
    }
    if let Some(bytes) = options.memory_bytes {
        let levels = machine.levels()?;
        // The budget is for the main memory: what lies below a disk, or the root where there is none.
        let below_disk = levels.iter().find(|&&l| machine.memory(l).edge.is_some_and(|e| e.driver == Driver::Disk));
        let name = machine.memory(*below_disk.unwrap_or(&levels[0])).name.clone();
        machine = machine.with_capacity(&name, bytes)?;
    }
    let root_is_disk = {
        let levels = machine.levels()?;
        levels.get(1).is_some_and(|&l| machine.memory(l).edge.is_some_and(|e| e.driver == Driver::Disk))
    };
    if detected && root_is_disk && !job.reads_files() {
        let memory = machine.without_root();
        let capacity = memory.memory(memory.root()).capacity_bytes;
        if job.bytes() as f64 <= IN_MEMORY_SHARE * capacity as f64 {
            return Ok(memory);
        }
    }
    Ok(machine)
}

/// As many workers as asked for, by changing the count of the lowest level that has several children.
fn with_threads(machine: Machine, threads: usize) -> Result<Machine, Error> {
    if threads == 0 {
        return Err(Error::Request("--threads 0: at least one thread is needed".into()));
    }
    let levels = machine.levels()?;
    let several = levels.iter().rev().find(|&&l| machine.memory(l).count > 1).or(levels.last());
    let Some(&level) = several else { return Ok(machine) };
    let others = machine.workers() / machine.memory(level).count;
    if !threads.is_multiple_of(others) {
        let name = &machine.name;
        return Err(Error::Request(format!("--threads {threads}: machine {name} needs a multiple of {others}")));
    }
    let memory = machine.memory(level);
    if level == machine.root() {
        return Ok(machine);
    }
    Ok(machine.with_count(&memory.name.clone(), threads / others)?)
}
