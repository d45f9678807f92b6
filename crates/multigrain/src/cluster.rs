//! The machine of several ranks: a disk that all reach, or their memories together, above the memory of each.

use crate::error::Error;
use crate::job::Job;
use crate::limits::{main_memory, with_threads};
use crate::options::{MachineChoice, Options};
use crate::together::{number, on_rank};
use multigrain_driver::ranks::Ranks;
use multigrain_driver::spread::owned;
use multigrain_machine::{Machine, Memory};
use multigrain_program::ArrayDecl;
use std::path::PathBuf;

/// The machine of all ranks, of which each has detected or read its own: a disk with a memory for each rank below it, of the
/// smallest capacity and the fewest workers of all, else as the first rank has it. Where no array comes from a file and all have room
/// in the memories together, they lie there.
pub(crate) fn of_all(
    ranks: &Ranks,
    options: &Options,
    job: &Job,
    machine: &Machine,
    on_disk: bool,
) -> Result<Machine, Error> {
    let main = main_memory(machine);
    let [capacity_bytes, workers] = least(ranks, options, main.capacity_bytes, machine.workers())?;
    let text = machine.to_toml();
    let all = ranks.gather(text.as_bytes()).map_err(|ended| on_rank(ranks, ended))?;
    let first = String::from_utf8_lossy(&all[0]);
    let machine = if first == text { machine.clone() } else { Machine::parse(&first, "the machine of rank 0")? };
    of_alike(ranks.count(), [capacity_bytes, workers], job, &machine, on_disk)
}

/// The machine of so many ranks, each with the first one's memory, of this capacity and with so many workers.
pub(crate) fn of_alike(
    ranks: usize,
    [capacity_bytes, workers]: [u64; 2],
    job: &Job,
    machine: &Machine,
    on_disk: bool,
) -> Result<Machine, Error> {
    let (name, count) = (main_memory(machine).name.clone(), main_memory(machine).count);
    if count != 1 && count != ranks {
        return Err(Error::Request(format!(
            "machine {} has {count} memories {name} below its disk, and there are {ranks} ranks: give it one, or one for each",
            machine.name
        )));
    }
    let one = machine.with_count(&name, 1)?;
    let one = if one.workers() == workers as usize { one } else { with_threads(one, workers as usize)? };
    let all = one.with_capacity(&name, capacity_bytes)?.with_count(&name, ranks)?;
    let root = all.memory(all.root()).name.clone();
    let share = most_owned(job, ranks);
    if on_disk || job.reads_files() || share > capacity_bytes / SPREAD_SHARE {
        let directory = |memory: &mut Memory| {
            memory.path.get_or_insert_with(|| PathBuf::from("."));
        };
        return Ok(all.with(&root, directory)?);
    }
    // What arrays take of each memory is not there for blocks.
    let in_memories = |memory: &mut Memory| {
        (memory.path, memory.capacity_bytes) = (None, share.saturating_mul(ranks as u64).max(1));
        SPREAD.clone_into(&mut memory.name);
    };
    Ok(all.with_capacity(&name, capacity_bytes - share)?.with(&root, in_memories)?)
}

/// Bytes that a job's arrays take of a rank's memory, at most.
fn most_owned(job: &Job, ranks: usize) -> u64 {
    let of = |rank: usize, decl: &ArrayDecl| {
        let own = owned(decl.shape.elements(), rank, ranks);
        (own.end - own.start).saturating_mul(decl.element.size_bytes())
    };
    let all = |rank| job.arrays().iter().fold(0, |sum: u64, decl| sum.saturating_add(of(rank, decl)));
    (0..ranks).map(all).max().unwrap_or(0)
}

/// Arrays lie in the ranks' memories if they take at most this part of each.
const SPREAD_SHARE: u64 = 2;

/// The name of the root where the arrays lie in the ranks' memories: a disk without a directory to the planner.
const SPREAD: &str = "ranks";

/// Whether the arrays of a run on such a machine lie in the ranks' memories.
pub(crate) fn is_spread(machine: &Machine) -> bool {
    let root = machine.memory(machine.root());
    root.path.is_none() && root.name == SPREAD
}

/// The least capacity of a main memory and the fewest workers of all ranks. What was detected of a node is shared by its ranks.
pub(crate) fn least(ranks: &Ranks, options: &Options, capacity_bytes: u64, workers: usize) -> Result<[u64; 2], Error> {
    let node = ranks.node(ranks.rank());
    let sharing = (0..ranks.count()).filter(|&rank| ranks.node(rank) == node).count() as u64;
    let is_shared = matches!(options.machine, MachineChoice::Detected) && options.memory_bytes.is_none();
    let own = [if is_shared { capacity_bytes / sharing } else { capacity_bytes }, workers as u64];
    let bytes: Vec<u8> = own.iter().flat_map(|number| number.to_le_bytes()).collect();
    let all = ranks.gather(&bytes).map_err(|ended| on_rank(ranks, ended))?;
    Ok([0, 1].map(|at| all.iter().map(|bytes| number(bytes, at)).min().unwrap_or(0)))
}
