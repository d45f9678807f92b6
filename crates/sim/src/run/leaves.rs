//! What leaves cost.

use crate::time::Time;
use multigrain_machine::{Machine, Memory, MemoryId};
use multigrain_plan::{CallClass, Plan, cost};

/// What one leaf costs on its processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeafCost {
    /// Bytes that come over the bus of the shared memory above.
    pub(super) bytes: u64,
    /// Everything else: starting, arithmetic, and reading a memory of its own.
    pub(super) time: Time,
}

/// How leaves are costed on one machine.
pub(super) struct Leaves<'m> {
    memory: &'m Memory,
    /// What one processor reads its own memory at, in bytes per second, where that is not shared.
    own_bytes_per_second: Option<f64>,
}

impl<'m> Leaves<'m> {
    pub(super) fn of(machine: &'m Machine, levels: &[MemoryId]) -> Leaves<'m> {
        let memory = machine.memory(levels[levels.len() - 1]);
        let own = memory.edge.filter(|edge| !edge.driver.views).map(|edge| {
            // In a local store the arguments have been copied already.
            cost::LOCAL_READS_PER_COPY * edge.read_bytes_per_second / memory.count as f64
        });
        Leaves { memory, own_bytes_per_second: own }
    }

    /// The cost of the leaf variant for calls of a class.
    pub(super) fn cost(&self, plan: &Plan, class: &CallClass) -> LeafCost {
        let task = &plan.tasks[class.task as usize];
        let work = task.work(&class.shape);
        let known = self.memory.leaf(task.name());
        let (rate, overhead_ns) = self
            .memory
            .processor
            .map_or((f64::INFINITY, 0.0), |processor| (processor.flops_per_second, processor.call_overhead_ns));
        let rate = known.and_then(|leaf| leaf.flops_per_second).unwrap_or(rate);
        let overhead_ns = known.and_then(|leaf| leaf.call_overhead_ns).unwrap_or(overhead_ns);
        let mut time = Time::from_ns(overhead_ns) + Time::at_rate(work.flops, rate);
        match known.and_then(|leaf| leaf.bytes_per_second).or(self.own_bytes_per_second) {
            Some(rate) => {
                time += Time::at_rate(work.bytes, rate);
                LeafCost { bytes: 0, time }
            }
            None => LeafCost { bytes: work.bytes.ceil() as u64, time },
        }
    }
}
