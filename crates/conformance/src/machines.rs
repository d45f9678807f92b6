//! Machines with memories of random capacities below an edge of a driver.

use multigrain::driver::{Driver, DriverName};
use multigrain::rooms::machine::{
    Edge, Machine, MachineError, Memory, MemoryId, Processor, ProcessorKind, TransferRules,
};
use multigrain::rooms::plan::testing::Rng;
use multigrain::testing::TEST_BUFFER_BYTES;
use std::path::Path;
use std::sync::Arc;

/// A machine: its root (in `directory`, where the driver keeps arrays in files), memories of the driver, and where these can be
/// shared sometimes cores in them; sometimes there are cores beside them, which get a part of the work. `scale`: how much more
/// the memories hold than little.
pub(crate) fn machine(
    driver: &Arc<dyn Driver>,
    seed: u64,
    scale: u64,
    directory: &Path,
) -> Result<Machine, MachineError> {
    let mut rng = Rng::new(seed ^ 0xd21_7e55);
    let facts = driver.facts();
    let name = DriverName::register(facts)?;
    let mut root = Memory::root("host", 1 << 34);
    if facts.files {
        root.path = Some(directory.to_owned());
    }
    // Planned for as a usual edge, with random rules that forbid no block.
    let rules =
        TransferRules { alignment_bytes: *rng.pick(&[1, 16, 64, 128]).unwrap_or(&1), ..TransferRules::default() };
    let edge = Edge { rules, ..Edge::new(name, 1e12, 0.0) };
    let edge = Edge { sibling_bytes_per_second: (facts.siblings && rng.percent(50)).then_some(1e12), ..edge };
    let capacity = scale * rng.range(1 << 10, 24 << 10) + if facts.files { TEST_BUFFER_BYTES } else { 0 };
    let count = if facts.files { 1 } else { rng.range(1, 3) as usize };
    let mut memories = vec![root, Memory::child("memory", MemoryId(0), count, capacity, edge)];
    if !facts.own_processor && rng.percent(40) {
        let cores = Edge::new(DriverName::SHARED, 2e10, 100.0);
        memories.push(Memory::child("core", MemoryId(1), rng.range(1, 2) as usize, capacity, cores));
    }
    if let Some(leaf) = memories.last_mut() {
        let (flops_per_second, call_overhead_ns) = (1e9 * rng.range(1, 100) as f64, rng.range(10, 10_000) as f64);
        leaf.processor =
            Some(Processor { kind: ProcessorKind::Cpu, flops_per_second, call_overhead_ns, code_bytes: 0 });
    }
    if !facts.files && rng.percent(30) {
        // So slow that it is worth it to divide what is as small as these programs.
        let mut slow = || {
            let flops_per_second = 1e4 * rng.range(1, 100) as f64;
            Some(Processor { kind: ProcessorKind::Cpu, flops_per_second, call_overhead_ns: 1e3, code_bytes: 0 })
        };
        let beside = Memory::child("beside", MemoryId(0), 1, 1 << 20, Edge::new(DriverName::SHARED, 2e10, 100.0));
        if let Some(leaf) = memories.last_mut() {
            leaf.processor = slow();
        }
        memories.push(Memory { processor: slow(), ..beside });
    }
    Machine::new("conformance", "Memories of one driver below a host.", memories)
}
