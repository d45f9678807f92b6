//! Predicted times: of a leaf, and of what one child does over an edge.

use crate::plan::{ChildPlan, Op, Plan};
use multigrain_machine::{Driver, Edge, Processor};
use multigrain_program::{ArrayDecl, Work};

/// Time that one more fragment costs a disk, in seconds: submission, completion and the ends that are read in vain.
const DISK_FRAGMENT_SECONDS: f64 = 4e-6;

/// Predicted time of a leaf in seconds, when `share_bytes_per_second` of the parent's bandwidth is its own. Computing
/// and first touch of the arguments are added, not overlapped: packing and cache misses stand in a kernel's way.
pub(crate) fn leaf_seconds(work: Work, processor: &Processor, share_bytes_per_second: f64) -> f64 {
    work.flops / processor.flops_per_second + work.bytes / share_bytes_per_second + processor.call_overhead_ns * 1e-9
}

/// Predicted time in seconds that one of `children` children takes for its steps, waits for siblings left out.
pub(crate) fn child_seconds(
    child: &ChildPlan,
    arrays: &[ArrayDecl],
    call_seconds: &dyn Fn(usize) -> f64,
    edge: &Edge,
    children: usize,
) -> f64 {
    let share = 1.0 / children as f64;
    let latency = edge.latency_ns * 1e-9;
    let synchronous = edge.driver == Driver::Local;
    let (mut now, mut channel) = (0.0f64, 0.0f64);
    let mut done: Vec<f64> = Vec::new();
    for op in &child.ops {
        match *op {
            Op::Fetch { slot, .. } | Op::Store { slot, .. } => {
                let slot = &child.slots[slot as usize];
                let (fragments, _) = slot.block.region.fragments(arrays[slot.block.array as usize].shape);
                let rate = match op {
                    Op::Fetch { .. } => edge.read_bytes_per_second,
                    _ => edge.write_bytes_per_second,
                } * share;
                let mut busy = slot.bytes as f64 / rate;
                if edge.driver == Driver::Disk {
                    busy += fragments as f64 * DISK_FRAGMENT_SECONDS;
                }
                channel = channel.max(now) + busy;
                if synchronous {
                    channel += latency;
                    now = channel;
                }
                done.push(channel + latency);
            }
            Op::Await { transfer } if !synchronous => now = now.max(done[transfer as usize]),
            Op::Run { call, .. } => now += call_seconds(call as usize),
            Op::Await { .. } | Op::Signal | Op::Wait { .. } => {}
        }
    }
    now
}

impl Plan {
    /// Predicted time of the plan in seconds, from the machine's constants: the longest child, with transfers
    /// overlapping runs as the steps allow.
    pub fn predicted_seconds(&self) -> f64 {
        self.seconds
    }
}
