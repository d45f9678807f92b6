//! Memory as tight as a formula allows: what it promises is kept, and the plan is right.

use crate::support;

use multigrain_machine::{Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind, TransferRules};
use multigrain_plan::check::check;
use multigrain_plan::{Mapping, Plan, PlanOptions, Planner};
use support::product;

/// The plan of a product of n x n matrices in files, through a memory of so many bytes.
fn plan(n: u64, bytes: u64) -> Plan {
    let processor =
        Processor { kind: ProcessorKind::Cpu, flops_per_second: 5e9, call_overhead_ns: 100.0, code_bytes: 0 };
    let mut edge = Edge::new(Driver::DISK, 2e9, 100_000.0);
    (edge.costs.fragment_ns, edge.costs.fragment_processor_ns) = (1000.0, 200.0);
    let dram = Memory::child("dram", MemoryId(0), 1, bytes, edge).with_processor(processor);
    let machine = Machine::new("disk", "", vec![Memory::root("disk", 1 << 40), dram]).unwrap();
    let options =
        PlanOptions { disk_buffer_bytes: 256 << 10, file_offsets_bytes: vec![128; 3], ..PlanOptions::default() };
    let plan = Planner::new(&machine, Mapping::default(), options).plan(&product([n, n, n])).unwrap();
    check(&plan, &[TransferRules::default()]).unwrap();
    Plan::clone(&plan)
}

/// Bytes over the edge in multiples of 2 n^3 / sqrt(S) elements read (Kwasniewski et al., arXiv 1908.09606) and n^2 written.
fn over_bound(plan: &Plan, n: u64, bytes: u64) -> f64 {
    let elements = 2.0 * (n as f64).powi(3) / (bytes as f64 / 4.0).sqrt() + (n * n) as f64;
    (plan.traffic.bytes_down + plan.traffic.bytes_up) as f64 / (4.0 * elements)
}

#[test]
fn a_tile_that_nearly_fills_the_memory_stays() {
    let mut in_rooms = 0;
    for (n, mib, most) in [(4096, 8, 1.1), (4096, 12, 1.1), (5000, 8, 1.15)] {
        let bytes = mib << 20;
        let plan = plan(n, bytes);
        in_rooms += usize::from(plan.passes.iter().any(|pass| pass.summary.contains("room of its own")));
        let found = over_bound(&plan, n, bytes);
        assert!(found <= most, "{n} in {mib} MiB: {found:.3} of the bound\n{plan}");
    }
    assert!(in_rooms > 0);
}
