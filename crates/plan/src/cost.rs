//! Predicted times: of a leaf, and of what one child does over an edge.

use crate::plan::{ChildPlan, Op, Plan};
use multigrain_machine::{Driver, Edge, Processor};
use multigrain_program::{ArrayDecl, Region, Work};

/// Time that one more fragment costs a disk, in seconds: 40 000 to 60 000 a second were measured for rows of 4 to 32 KiB.
pub const DISK_FRAGMENT_SECONDS: f64 = 12e-6;
/// Processor time that one more fragment costs, in seconds, taken from the workers: 3.3 to 6.3 us were measured.
const DISK_FRAGMENT_PROCESSOR_SECONDS: f64 = 5e-6;
/// What a transfer costs a disk besides bytes and fragments, in seconds, however many are in flight. Measured with blocks of
/// 2 to 8 MiB that stream through a virtual disk, as the time that fewer and larger transfers save: 70 to 190 us.
const DISK_TRANSFER_SECONDS: f64 = 1e-4;
/// What it costs a disk besides the bytes that its queue runs empty, in seconds: from the last completion to the next
/// operation. Measured on a virtual disk: 30 us from one thread to the device, 70 to 120 us with a worker woken in between.
/// A disk may answer everything in flight at once, so this is shared by the transfers that are.
const DISK_QUEUE_SECONDS: f64 = 1e-4;
/// What it costs to hand work to workers that sleep because all wait for a disk, in seconds, until the last of them is
/// done: a message between processors there, and one back, while nobody starts the disk's next operation. Measured with
/// calls on 3 MiB: 300 to 390 us more than on one worker.
pub(crate) const WAKE_SECONDS: f64 = 3e-4;
/// Slots of this many bytes in all stay in the last cache between the disk and the processors: each then overwrites what
/// is cached.
const CACHED_STAGING_BYTES: f64 = 4.0 * 1048576.0;
/// What a byte costs whose slot has left the cache when the disk overwrites it, in seconds. Measured with direct reads
/// into 4, 16 and 32 MiB of buffers: 2.72, 2.54 and 2.38 GB/s where the disk gave its best, no difference where not.
const UNCACHED_BYTE_SECONDS: f64 = 1.0 / 40e9;
/// How fast untouched memory becomes usable: the system clears every page.
const FIRST_TOUCH_BYTES_PER_SECOND: f64 = 2e9;
/// A copy moves whole cache lines, and one more where a fragment does not begin with one.
const LINE_BYTES: u64 = 64;
/// What a byte is worth: a plan that moves 20 % less may be 5 % slower. Predictions are no better than this, and every
/// byte moved takes memory bandwidth and processor time from the leaves, and the disk's from everybody.
const BYTES_EXPONENT: f64 = 0.25;
/// How unevenly workers of a shared machine run: the share of the longest step that is lost waiting for the last. Between
/// nothing, for steps that begin together and take equally long, and the quarter that two workers lose on average which
/// end at random; with this share blocks are as small as they can be without the kernels noticing (measured with sgemv,
/// gravity, hmmer and sgemm).
pub(crate) const UNEVEN: f64 = 0.15;

/// How much faster a leaf reads its local store than the store is filled: second-level cache against memory, measured
/// at 100 GB/s against 10 a core.
pub const LOCAL_READS_PER_COPY: f64 = 10.0;
/// By what plans of one thing are chosen: the lowest price is best.
pub(crate) fn price(seconds: f64, bytes: u64) -> f64 {
    seconds * (bytes.max(1) as f64).powf(BYTES_EXPONENT)
}

/// Predicted time of a leaf in seconds, when `share_bytes_per_second` of the parent's bandwidth is its own. Computing
/// and first touch of the arguments are added, not overlapped: packing and cache misses stand in a kernel's way.
pub(crate) fn leaf_seconds(work: Work, processor: &Processor, share_bytes_per_second: f64) -> f64 {
    work.flops / processor.flops_per_second + work.bytes / share_bytes_per_second + processor.call_overhead_ns * 1e-9
}

/// What a transfer costs a disk besides bytes and fragments, in seconds, when so many are in flight.
pub fn disk_transfer_seconds(in_flight: f64) -> f64 {
    DISK_TRANSFER_SECONDS + DISK_QUEUE_SECONDS / in_flight
}

/// Predicted time in seconds to move a region of an array of shape `array` at `bytes_per_second`, when the edge's queue
/// does not run empty.
pub fn moving_seconds(driver: Driver, region: &Region, array: &ArrayDecl, bytes_per_second: f64) -> f64 {
    let (fragments, elements) = region.fragments(array.shape);
    let run_bytes = elements * array.element.size_bytes();
    match driver {
        Driver::Disk => (fragments * run_bytes) as f64 / bytes_per_second + fragments as f64 * DISK_FRAGMENT_SECONDS,
        _ => (fragments * (run_bytes.div_ceil(LINE_BYTES) + 1) * LINE_BYTES) as f64 / bytes_per_second,
    }
}

/// Processor time in seconds that moving a region takes from each of `workers`.
pub fn stolen_seconds(driver: Driver, region: &Region, array: &ArrayDecl, workers: usize) -> f64 {
    match driver {
        Driver::Disk => region.fragments(array.shape).0 as f64 * DISK_FRAGMENT_PROCESSOR_SECONDS / workers as f64,
        _ => 0.0,
    }
}

/// Additional time in seconds that a disk's edge takes when `bytes` pass through `staging_bytes` of slots: the first
/// touch of the slots, and the cache that they do not fit into.
pub(crate) fn staging_seconds(bytes: u64, staging_bytes: u64) -> f64 {
    first_touch_seconds(staging_bytes) + uncached_seconds(bytes, staging_bytes)
}

/// Time in seconds until untouched memory is usable.
pub fn first_touch_seconds(bytes: u64) -> f64 {
    bytes as f64 / FIRST_TOUCH_BYTES_PER_SECOND
}

/// Additional time in seconds that `bytes` take which pass through `staging_bytes` of slots, because these do not stay in
/// the cache.
pub fn uncached_seconds(bytes: u64, staging_bytes: u64) -> f64 {
    let uncached = (1.0 - CACHED_STAGING_BYTES / staging_bytes.max(1) as f64).max(0.0);
    uncached * bytes as f64 * UNCACHED_BYTE_SECONDS
}

/// Predicted time in seconds that one of `children` children takes for its steps, waits for siblings left out.
pub(crate) fn child_seconds(
    child: &ChildPlan,
    arrays: &[ArrayDecl],
    call_seconds: &dyn Fn(usize) -> f64,
    edge: &Edge,
    children: usize,
    workers: usize,
) -> f64 {
    let share = 1.0 / children as f64;
    let latency = edge.latency_ns * 1e-9;
    let synchronous = edge.driver == Driver::Local;
    let (mut now, mut channel) = (0.0f64, 0.0f64);
    let mut done: Vec<f64> = Vec::new();
    let mut in_flight_from = 0;
    for op in &child.ops {
        match *op {
            Op::Fetch { slot, .. } | Op::Store { slot, .. } => {
                let slot = &child.slots[slot as usize];
                let rate = match op {
                    Op::Fetch { .. } => edge.read_bytes_per_second,
                    _ => edge.write_bytes_per_second,
                } * share;
                let array = &arrays[slot.block.array as usize];
                let mut busy = moving_seconds(edge.driver, &slot.block.region, array, rate);
                if edge.driver == Driver::Disk {
                    // Transfers are done in the order of their numbers.
                    in_flight_from += done[in_flight_from..].iter().take_while(|&&end| end <= now).count();
                    busy += disk_transfer_seconds((done.len() - in_flight_from + 1) as f64);
                }
                now += stolen_seconds(edge.driver, &slot.block.region, array, workers);
                channel = channel.max(now) + busy;
                if synchronous {
                    channel += latency;
                    now = channel;
                }
                done.push(channel + latency);
            }
            Op::Await { transfer } if !synchronous => now = now.max(done[transfer as usize]),
            Op::Run { call, .. } => now += call_seconds(call as usize),
            Op::Await { .. } | Op::Signal | Op::Wait { .. } | Op::Barrier => {}
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
