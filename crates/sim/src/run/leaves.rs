//! What leaves cost.

use crate::time::Time;
use multigrain_machine::Memory;
use multigrain_plan::cost::LOCAL_READS_PER_COPY;
use multigrain_plan::{CallClass, Plan};

/// What one leaf costs on its processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeafCost {
    /// Bytes that come over the bus of the shared memory above.
    pub(super) bytes: u64,
    /// Everything else: starting, arithmetic, and reading a memory of its own.
    pub(super) time: Time,
}

/// The cost of the leaf variant for calls of a class of a plan, in one of its children, which are `memory`.
pub(super) fn cost(memory: &Memory, plan: &Plan, class: &CallClass) -> LeafCost {
    let task = &plan.tasks[class.task as usize];
    let work = task.work(&class.shape);
    let known = memory.leaf(task.name());
    let processor = memory.processor;
    let (rate, overhead_ns) = processor.map_or((f64::INFINITY, 0.0), |p| (p.flops_per_second, p.call_overhead_ns));
    let rate = known.and_then(|leaf| leaf.flops_per_second).unwrap_or(rate);
    let overhead_ns = known.and_then(|leaf| leaf.call_overhead_ns).unwrap_or(overhead_ns);
    // In a local store the arguments have been copied already.
    let own = memory.edge.filter(|edge| !edge.driver.views);
    let own = own.map(|edge| LOCAL_READS_PER_COPY * edge.read_bytes_per_second / memory.count as f64);
    let mut time = Time::from_ns(overhead_ns) + Time::at_rate(work.flops, rate);
    match known.and_then(|leaf| leaf.bytes_per_second).or(own) {
        Some(rate) => {
            time += Time::at_rate(work.bytes, rate);
            LeafCost { bytes: 0, time }
        }
        None => LeafCost { bytes: work.bytes.ceil() as u64, time },
    }
}
