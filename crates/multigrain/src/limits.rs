//! What a memory budget and a number of threads mean on a machine: which memory and which count they change, and how much may be
//! asked for.

use crate::error::Error;
use crate::options::{MachineChoice, Options};
use multigrain_machine::{Machine, Memory, MemoryId, readable_bytes};

/// The most workers of a run: far more than one computer has cores, few enough that their stacks and scratch memory do
/// not bring it down.
const THREADS_MAX: usize = 4096;

/// Refuses to run with more memory than this computer has. Planning for more is fine.
pub(crate) fn check_memory(options: &Options) -> Result<(), Error> {
    let Some(bytes) = options.memory_bytes else { return Ok(()) };
    let physical = multigrain_machine::detect::memory_bytes()?;
    if bytes <= physical {
        return Ok(());
    }
    Err(Error::Request(format!(
        "a memory of {} cannot be had: this computer, or the control group of this process, has {}; give less, or plan \
         only",
        readable_bytes(bytes),
        readable_bytes(physical)
    )))
}

/// What runs may keep of the main memory, where that was said: the budget, or that of a machine that was given. What was
/// detected changes with what is kept, so it is no limit for that.
pub(crate) fn budget_bytes(options: &Options, machine: &Machine) -> Option<u64> {
    let is_given = matches!(options.machine, MachineChoice::Given(_));
    (is_given || options.memory_bytes.is_some()).then(|| main_memory(machine).capacity_bytes)
}

/// Whether the arrays of the root lie in files.
pub(crate) fn root_is_disk(machine: &Machine) -> bool {
    machine.children(machine.root()).any(|child| machine.memory(child).edge.is_some_and(|edge| edge.driver.files))
}

/// The memory that a budget is set for: the one below a disk, or the root where there is no disk.
pub fn main_memory(machine: &Machine) -> &Memory {
    let below_disk = machine.memories().iter().find(|m| m.edge.is_some_and(|e| e.driver.files));
    below_disk.unwrap_or_else(|| machine.memory(machine.root()))
}

/// As many workers as asked for, by changing the count of the lowest memory that has several, of a kind whose leaves are
/// executed by workers, and not by a processor of its own.
pub(crate) fn with_threads(machine: Machine, threads: usize) -> Result<Machine, Error> {
    if threads == 0 {
        return Err(Error::Request("--threads 0: at least one thread is needed".into()));
    }
    if threads > THREADS_MAX {
        return Err(Error::Request(format!("--threads {threads}: at most {THREADS_MAX} can be had")));
    }
    let own = |id: &MemoryId| machine.memory(*id).edge.is_some_and(|edge| edge.driver.own_processor);
    let usual = |id: &MemoryId| *id != machine.root() && !own(id);
    let several = machine.ids().rev().find(|id| usual(id) && machine.memory(*id).count > 1);
    let last = || machine.ids().rev().find(usual).or(machine.ids().next_back());
    let Some(id) = several.or_else(last).filter(|id| *id != machine.root()) else { return Ok(machine) };
    let memory = machine.memory(id);
    // Workers that each of these memories brings, and those that are there whatever their number.
    let each = machine.with_count(&memory.name, memory.count + 1)?.workers() - machine.workers();
    let others = machine.workers() - each * memory.count;
    if threads <= others || !(threads - others).is_multiple_of(each) {
        let (name, beside) = (&machine.name, if others > 0 { format!(" and {others} more") } else { String::new() });
        return Err(Error::Request(format!("--threads {threads}: machine {name} needs a multiple of {each}{beside}")));
    }
    Ok(machine.with_count(&memory.name.clone(), (threads - others) / each)?)
}
