//! Random machines.

use super::rng::Rng;
use super::tasks::SPAN;
use crate::mapping::Mapping;
use multigrain_machine::{Costs, Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind, TransferRules};

/// A random machine, mostly a chain of two to four memories: perhaps a disk, main memory, perhaps one to four cores that
/// share it, perhaps local stores, which perhaps reach each other; and sometimes, beside the last of these, or below the disk,
/// others of one or two more kinds with rates of their own. Memories below the root are small: for
/// [`super::random_program`] most need many blocks, few are too small for any.
pub fn random_machine(seed: u64) -> Machine {
    let mut rng = Rng::new(seed ^ 0x003a_c417);
    let (disk, mut cores, mut local) = (rng.percent(50), rng.percent(60), rng.percent(50));
    if !disk && !cores && !local {
        (cores, local) = (rng.percent(50), true);
    }
    let mut memories = vec![Memory::root(if disk { "disk" } else { "dram" }, 1 << 40)];
    if disk {
        let edge = edge(&mut rng, Driver::DISK, 2e9, 8e4);
        let capacity = if rng.percent(20) { 1 << 20 } else { 256 * rng.range(4, 64) };
        memories.push(Memory::child("dram", MemoryId(0), 1, capacity, edge));
    }
    let count = rng.range(1, 4) as usize;
    if cores {
        let parent = MemoryId(memories.len() - 1);
        let edge = Edge::new(Driver::SHARED, 2e10, 100.0);
        memories.push(Memory::child("core", parent, count, memories[parent.0].capacity_bytes, edge));
    }
    if local {
        let parent = MemoryId(memories.len() - 1);
        let edge = edge(&mut rng, Driver::LOCAL, 2e10, 100.0);
        let count = if cores { 1 } else { count };
        memories.push(Memory::child("local", parent, count, 128 * rng.range(4, 32), edge));
    }
    let processor = Processor {
        kind: ProcessorKind::Cpu,
        flops_per_second: 1e9 * rng.range(1, 100) as f64,
        call_overhead_ns: rng.range(10, 10_000) as f64,
        code_bytes: 0,
    };
    if let Some(leaf) = memories.last_mut() {
        leaf.processor = Some(processor);
        // Mostly fast enough that broadcasts of blocks as small as these pay.
        if let Some(edge) = leaf.edge.as_mut().filter(|edge| edge.driver == Driver::LOCAL && rng.percent(70)) {
            edge.sibling_bytes_per_second = Some(1e9 * rng.range(10, 1000) as f64);
            edge.latency_ns = if rng.percent(70) { 0.0 } else { edge.latency_ns };
        }
    }
    kinds(&mut rng, &mut memories);
    kinds_below_disk(&mut rng, &mut memories);
    let name = format!("random {seed}");
    match Machine::new(&name, "A random machine for tests.", memories) {
        Ok(machine) => machine,
        Err(error) => unreachable!("seed {seed}: {error}"),
    }
}

/// Sometimes adds children of other kinds to the parent of the last memory.
fn kinds(rng: &mut Rng, memories: &mut Vec<Memory>) {
    let Some(leaf) = memories.last().cloned().filter(|leaf| leaf.edge.is_some_and(|edge| !edge.driver.files)) else {
        return;
    };
    if !rng.percent(25) {
        return;
    }
    // So slow that it is worth it to divide what is as small as these programs.
    let slow = |rng: &mut Rng, leaf: &Memory| {
        let flops_per_second = 1e4 * rng.range(1, 100) as f64;
        leaf.processor.map(|processor| Processor { flops_per_second, ..processor })
    };
    if let Some(first) = memories.last_mut() {
        first.processor = slow(rng, &leaf);
    }
    let more = rng.range(1, 2);
    for name in ["other", "third"].into_iter().take(more as usize) {
        let bytes_per_second = 1e9 * rng.range(1, 40) as f64;
        let edge = match rng.percent(40) {
            true => Edge::new(Driver::SHARED, 2e10, 100.0),
            false => edge(rng, Driver::LOCAL, bytes_per_second, 100.0),
        };
        let capacity_bytes = 128 * rng.range(4, 64);
        let processor = slow(rng, &leaf);
        let (parent, count) = (leaf.parent, rng.range(1, 2) as usize);
        memories.push(Memory { parent, count, edge: Some(edge), processor, ..Memory::root(name, capacity_bytes) });
    }
}

/// Sometimes adds memories of other kinds below a disk, with processors of their own or local stores below them.
fn kinds_below_disk(rng: &mut Rng, memories: &mut Vec<Memory>) {
    let Some(first) = memories.get(1).cloned().filter(|first| first.edge.is_some_and(|edge| edge.driver.files)) else {
        return;
    };
    if !rng.percent(20) {
        return;
    }
    // So slow, and the disk so fast, that it is worth it to divide what is as small as these programs.
    let slow = |rng: &mut Rng| Processor {
        kind: ProcessorKind::Cpu,
        flops_per_second: 1e4 * rng.range(1, 100) as f64,
        call_overhead_ns: 0.0,
        code_bytes: 0,
    };
    for memory in memories.iter_mut() {
        memory.processor = memory.processor.map(|_| slow(rng));
    }
    let costs = Costs { transfer_ns: 10.0, queue_ns: 10.0, fragment_ns: 1.0, ..Costs::NONE };
    let disk = |edge: Edge| Edge { latency_ns: 100.0, costs, ..edge };
    memories[1].edge = first.edge.map(disk);
    let more = rng.range(1, 2);
    for (name, below) in [("far", "far local"), ("farther", "farther local")].into_iter().take(more as usize) {
        let edge = disk(edge(rng, Driver::DISK, 2e9, 100.0));
        let (has_local, at) = (rng.percent(40), MemoryId(memories.len()));
        let capacity_bytes = 256 * rng.range(4, 64);
        let processor = (!has_local).then(|| slow(rng));
        memories.push(Memory { processor, ..Memory::child(name, MemoryId(0), 1, capacity_bytes, edge) });
        if has_local {
            let edge = self::edge(rng, Driver::LOCAL, 2e10, 100.0);
            let (count, capacity_bytes) = (rng.range(1, 2) as usize, 128 * rng.range(4, 32));
            let processor = Some(slow(rng));
            memories.push(Memory { processor, ..Memory::child(below, at, count, capacity_bytes, edge) });
        }
    }
}

/// An edge with random rules, none of which forbids a block.
fn edge(rng: &mut Rng, driver: Driver, bytes_per_second: f64, latency_ns: f64) -> Edge {
    let rules = TransferRules {
        alignment_bytes: *rng.pick(&[1, 16, 64, 128]).unwrap_or(&1),
        transfer_bytes_max: rng.percent(30).then_some(16 << 10),
        list_entries_max: rng.percent(30).then_some(2048),
        in_flight_max: None,
        strict: false,
    };
    Edge { rules, ..Edge::new(driver, bytes_per_second, latency_ns) }
}

/// Random small tiles for the tasks that reduce, at every memory below the root of a machine: left to themselves,
/// planners make one contribution of what is so small. Sometimes none. What is asked for may not fit.
pub fn random_mapping(seed: u64, machine: &Machine) -> Mapping {
    let mut rng = Rng::new(seed ^ 0x7265_6475);
    let mut mapping = Mapping::default();
    if rng.percent(30) {
        return mapping;
    }
    for id in machine.ids().filter(|&id| id != machine.root()) {
        let memory = machine.memory(id).name.clone();
        mapping.set("dot", &memory, "n", SPAN << rng.below(5));
        mapping.set("rank k", &memory, "k", SPAN << rng.below(3));
        mapping.set("rank k", &memory, "m", rng.range(1, 8));
    }
    mapping
}
