//! What a memory budget and a number of threads mean on a machine: which memory and which count they change, and how much may be
//! asked for.

use crate::error::Error;
use crate::options::{MachineChoice, Options};
use multigrain_machine::{Branch, Layout, Machine, Memory, MemoryId, readable_bytes};

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

/// Of the room for local stores that lie in the main memory, the part that they take where it is less than they have: the rest is
/// for what lies beside them.
const STORES_SHARE: u64 = 2;
/// Stores of less than a page are none.
const STORE_MIN_BYTES: u64 = 4096;

/// The machine with local stores, and memories of devices that are emulated, for which the main memory has so much room; `None`
/// where it has room for them as they are.
pub(crate) fn with_stores_within(machine: &Machine, room_bytes: u64) -> Option<Machine> {
    let layout = Layout::of(machine);
    let stores = || {
        let copied = |branch: &&Branch| !branch.edge(machine).driver.views && !branch.edge(machine).driver.files;
        let branches = layout.branches().iter().filter(copied);
        branches.filter_map(|branch| Some((machine.memory(branch.child?), (branch.parents * branch.children) as u64)))
    };
    let bytes = stores().map(|(store, count)| store.capacity_bytes.saturating_mul(count));
    let bytes = bytes.fold(0, u64::saturating_add);
    if bytes <= room_bytes {
        return None;
    }
    let part = room_bytes as f64 / (bytes as f64 * STORES_SHARE as f64);
    stores().try_fold(machine.clone(), |machine, (store, _)| {
        let pages = (store.capacity_bytes as f64 * part) as u64 / STORE_MIN_BYTES;
        machine.with_capacity(&store.name, pages.max(1) * STORE_MIN_BYTES).ok()
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_stores_take_no_more_than_there_is_room_for() {
        let machine = Machine::shipped("disk+local").unwrap().with_count("local", 57).unwrap();
        let all = 57 * machine.memory(machine.find("local").unwrap()).capacity_bytes;
        assert_eq!(with_stores_within(&machine, all), None);
        for room in [all - 1, all / 3, 57 << 16] {
            let smaller = with_stores_within(&machine, room).unwrap();
            let bytes = 57 * smaller.memory(smaller.find("local").unwrap()).capacity_bytes;
            assert!(
                bytes <= room / STORES_SHARE && bytes + 57 * STORE_MIN_BYTES > room / STORES_SHARE,
                "{room}: {bytes}"
            );
            assert_eq!(main_memory(&smaller), main_memory(&machine));
        }
        assert_eq!(with_stores_within(&Machine::shipped("disk").unwrap(), 0), None, "there are none");
    }
}
