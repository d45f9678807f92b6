//! Predicted times: of a leaf, and of what one child does over an edge.

use crate::plan::{ChildPlan, Op, Plan};
use multigrain_machine::{Driver, Edge, Processor};
use multigrain_program::{ArrayDecl, Region, Work};

/// Time that one more fragment costs a disk, in seconds: submission, completion and the ends that are read in vain.
const DISK_FRAGMENT_SECONDS: f64 = 4e-6;
/// A copy moves whole cache lines, and one more where a fragment does not begin with one.
const LINE_BYTES: u64 = 64;
/// How much slower a plan may be predicted to be if it moves fewer bytes: predictions are no better than this, and
/// every byte moved takes memory bandwidth and processor time from the leaves, and the disk's from everybody.
pub(crate) const SLOWER_FOR_FEWER_BYTES: f64 = 1.05;
/// How unevenly workers of a shared machine run: the share of the longest step that is lost waiting for the last.
pub(crate) const UNEVEN: f64 = 0.06;

/// By what plans of one thing are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Price {
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
}

impl Price {
    /// Whether this is the better price: faster, or nearly as fast and moving less.
    pub(crate) fn beats(&self, other: &Price) -> bool {
        if self.bytes == other.bytes {
            return self.seconds < other.seconds;
        }
        let (less, more) = if self.bytes < other.bytes { (self, other) } else { (other, self) };
        (less.seconds <= more.seconds * SLOWER_FOR_FEWER_BYTES) == (self.bytes < other.bytes)
    }
}

/// Predicted time of a leaf in seconds, when `share_bytes_per_second` of the parent's bandwidth is its own. Computing
/// and first touch of the arguments are added, not overlapped: packing and cache misses stand in a kernel's way.
pub(crate) fn leaf_seconds(work: Work, processor: &Processor, share_bytes_per_second: f64) -> f64 {
    work.flops / processor.flops_per_second + work.bytes / share_bytes_per_second + processor.call_overhead_ns * 1e-9
}

/// Predicted time in seconds to move a region of an array of shape `array` at `bytes_per_second`.
pub(crate) fn moving_seconds(driver: Driver, region: &Region, array: &ArrayDecl, bytes_per_second: f64) -> f64 {
    let (fragments, elements) = region.fragments(array.shape);
    let run_bytes = elements * array.element.size_bytes();
    match driver {
        Driver::Disk => (fragments * run_bytes) as f64 / bytes_per_second + fragments as f64 * DISK_FRAGMENT_SECONDS,
        _ => (fragments * (run_bytes.div_ceil(LINE_BYTES) + 1) * LINE_BYTES) as f64 / bytes_per_second,
    }
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
                let rate = match op {
                    Op::Fetch { .. } => edge.read_bytes_per_second,
                    _ => edge.write_bytes_per_second,
                } * share;
                let array = &arrays[slot.block.array as usize];
                let busy = moving_seconds(edge.driver, &slot.block.region, array, rate);
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
