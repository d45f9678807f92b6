//! Predicted times: of a leaf, and of what one child does over an edge.

use crate::plan::{ChildPlan, Op, Plan, Slot};
use multigrain_machine::{Edge, Processor};
use multigrain_program::{ArrayDecl, Region, Work};
use multigrain_schedule::choice::Table;
use multigrain_schedule::{Algorithm, Kind, Ring, Shape};
use rustc_hash::FxHashSet;

/// A copy moves whole cache lines, and one more where a fragment does not begin with one.
const LINE_BYTES: u64 = 64;
/// What a byte is worth: a plan that moves 20 % less may be 5 % slower. Predictions are no better than this, and every
/// byte moved takes memory bandwidth and processor time from the leaves, and the disk's from everybody.
const BYTES_EXPONENT: f64 = 0.25;
/// However many bytes calls that are left undivided save, they may take so many times as long: what a byte costs is bounded by
/// the time in which it moves, and what children lose that wait for the one which has all is not.
pub(crate) const SLOWER_UNDIVIDED: f64 = 1.25;
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

/// The price of doing so many times what has this price.
pub(crate) fn repeated(price: f64, times: f64) -> f64 {
    price * times.powf(1.0 + BYTES_EXPONENT)
}

/// How many times longer the busiest child works than if all children had the same to do, of so many chains of calls: with
/// `whole`, children take so many each, rounded up, else idle children alone count.
pub(crate) fn unevenness(chains: f64, children: usize, whole: bool) -> f64 {
    let children = children as f64;
    if children <= 1.0 {
        return 1.0;
    }
    let most = if whole || chains < children { (chains / children).ceil() } else { chains / children };
    most * children / chains
}

/// Predicted time of a leaf in seconds, when `share_bytes_per_second` of the parent's bandwidth is its own. Computing
/// and first touch of the arguments are added, not overlapped: packing and cache misses stand in a kernel's way.
pub(crate) fn leaf_seconds(work: Work, processor: &Processor, share_bytes_per_second: f64) -> f64 {
    work.flops / processor.flops_per_second + work.bytes / share_bytes_per_second + processor.call_overhead_ns * 1e-9
}

/// What a transfer costs an edge besides bytes and fragments, in seconds, when so many are in flight.
pub fn transfer_seconds(edge: &Edge, in_flight: f64) -> f64 {
    (edge.costs.transfer_ns + edge.costs.queue_ns / in_flight) * 1e-9
}

/// Predicted time in seconds to move a region of an array of shape `array` at `bytes_per_second`, when the edge's queue
/// does not run empty.
pub fn moving_seconds(edge: &Edge, region: &Region, array: &ArrayDecl, bytes_per_second: f64) -> f64 {
    let (fragments, elements) = region.fragments(array.shape);
    let run_bytes = elements * array.element.size_bytes();
    match edge.driver.queued {
        true => (fragments * run_bytes) as f64 / bytes_per_second + fragments as f64 * edge.costs.fragment_ns * 1e-9,
        false => (fragments * (run_bytes.div_ceil(LINE_BYTES) + 1) * LINE_BYTES) as f64 / bytes_per_second,
    }
}

/// Processor time in seconds that moving a region takes from each of `workers`.
pub fn stolen_seconds(edge: &Edge, region: &Region, array: &ArrayDecl, workers: usize) -> f64 {
    stolen_fragment_seconds(edge, region.fragments(array.shape).0 as f64, workers)
}

/// What so many fragments take from each of `workers`, in seconds; see [`stolen_seconds`].
pub(crate) fn stolen_fragment_seconds(edge: &Edge, fragments: f64, workers: usize) -> f64 {
    fragments * edge.costs.fragment_processor_ns * 1e-9 / workers as f64
}

/// Additional time in seconds that an edge takes when `bytes` pass through `staging_bytes` of slots: the first touch of the
/// slots, and the cache that they do not fit into.
pub(crate) fn staging_seconds(edge: &Edge, bytes: u64, staging_bytes: u64) -> f64 {
    first_touch_seconds(edge, staging_bytes) + uncached_seconds(edge, bytes, staging_bytes)
}

/// Time in seconds until untouched memory is usable.
pub fn first_touch_seconds(edge: &Edge, bytes: u64) -> f64 {
    bytes as f64 / edge.costs.first_touch_bytes_per_second
}

/// Additional time in seconds that `bytes` take which pass through `staging_bytes` of slots, because these do not stay in
/// the cache.
pub fn uncached_seconds(edge: &Edge, bytes: u64, staging_bytes: u64) -> f64 {
    let uncached = (1.0 - edge.costs.cached_bytes / staging_bytes.max(1) as f64).max(0.0);
    uncached * bytes as f64 / edge.costs.uncached_bytes_per_second
}

/// Bytes of the buffer of a participant in a broadcast: each round of it moves an eighth. Both sides of a round then stay in
/// second-level caches, and rounds are long enough that what they cost besides bytes is little.
pub const BROADCAST_BUFFER_BYTES: u64 = 64 << 10;

/// How the team broadcasts among `children` children.
pub fn broadcast_algorithm(table: &Table, children: usize, bytes: u64) -> Option<Algorithm> {
    let size = u32::try_from(children).ok()?;
    let way = table.pick(Kind::Broadcast, size, bytes).way;
    way.parts(Kind::Broadcast).next().map(|(_, algorithm)| algorithm)
}

/// Predicted time in seconds of a broadcast among `children` children that read each other's memory at `bytes_per_second`.
///
/// A message in rounds goes down a tree. In each a participant is asked for the round's bytes by its children in the tree,
/// who share what can be read out of it; the first round passes all levels, the others follow each other.
pub(crate) fn broadcast_seconds(
    algorithm: Algorithm,
    children: usize,
    bytes: u64,
    bytes_per_second: f64,
    latency: f64,
) -> f64 {
    let others = (children - 1) as u64;
    let (degree, levels) = match algorithm.shape {
        Shape::AllToOne | Shape::Exchange => (others, 1),
        Shape::Tree(degree) => {
            let degree = u64::from(degree.max(1));
            let (mut levels, mut reached, mut next) = (0, 0, degree);
            while reached < others {
                (levels, reached, next) = (levels + 1, reached + next, next.saturating_mul(degree));
            }
            (degree.min(others), levels)
        }
        Shape::Binomial => {
            let levels = u64::from(children.next_power_of_two().trailing_zeros());
            (levels, levels)
        }
    };
    let rounds = bytes.div_ceil(BROADCAST_BUFFER_BYTES / u64::from(Ring::USUAL.0)).max(1);
    let round = degree as f64 * (bytes as f64 / rounds as f64) / bytes_per_second + latency;
    (rounds + levels.saturating_sub(1)) as f64 * round + levels as f64 * latency
}

/// Predicted time in seconds that the longest of the children takes for its steps. Waits for siblings are left out, but for
/// those in broadcasts.
pub(crate) fn children_seconds(
    children: &[ChildPlan],
    arrays: &[ArrayDecl],
    call_seconds: &dyn Fn(usize) -> f64,
    edge: &Edge,
    workers: usize,
) -> f64 {
    let facts = Facts { arrays, call_seconds, edge, children: children.len(), workers, table: Table::assumed() };
    let mut walks: Vec<Walk<'_>> =
        children.iter().enumerate().map(|(number, child)| Walk::new(number, child)).collect();
    loop {
        let met: Vec<Option<(u32, u32)>> = walks.iter_mut().map(|walk| walk.go_on(&facts)).collect();
        let Some(&Some((root, _))) = met.iter().find(|met| met.is_some()) else { break };
        let Some(Some((_, slot))) = met.get(root as usize) else { break };
        facts.broadcast(&mut walks, root as usize, *slot);
    }
    walks.iter().map(|walk| walk.now).fold(0.0, f64::max)
}

/// What all children have in common.
struct Facts<'a> {
    arrays: &'a [ArrayDecl],
    call_seconds: &'a dyn Fn(usize) -> f64,
    edge: &'a Edge,
    children: usize,
    workers: usize,
    table: Table,
}

impl Facts<'_> {
    fn is_synchronous(&self) -> bool {
        self.edge.driver.synchronous
    }

    fn moving_seconds(&self, slot: &Slot, rate: f64) -> f64 {
        moving_seconds(self.edge, &slot.block.region, &self.arrays[slot.block.array as usize], rate)
    }

    /// All children have come to a broadcast.
    fn broadcast(&self, walks: &mut [Walk<'_>], root: usize, number: u32) {
        let slot = &walks[root].child.slots[number as usize];
        let seconds = match (self.edge.sibling_bytes_per_second, slot.bytes) {
            (Some(rate), bytes) => broadcast_algorithm(&self.table, self.children, bytes).map_or(0.0, |algorithm| {
                broadcast_seconds(algorithm, self.children, bytes, rate, self.edge.latency_ns * 1e-9)
            }),
            (None, _) => 0.0,
        };
        let fetching = self.moving_seconds(slot, self.edge.read_bytes_per_second);
        let ready = walks[root].now;
        let fetched = walks[root].fetched.remove(&number);
        for (child, walk) in walks.iter_mut().enumerate() {
            // The parent gave its whole bandwidth to the root meanwhile.
            walk.channel += if child == root || !fetched { 0.0 } else { fetching };
            walk.now = walk.now.max(ready) + seconds;
        }
    }
}

/// One child on its way through its steps.
struct Walk<'a> {
    child: &'a ChildPlan,
    /// The next step.
    at: usize,
    now: f64,
    /// When the child's share of the edge is free.
    channel: f64,
    /// When each transfer is done.
    done: Vec<f64>,
    in_flight_from: usize,
    /// Slots whose blocks it broadcasts, and those of them that it has fetched since.
    roots: FxHashSet<u32>,
    fetched: FxHashSet<u32>,
}

impl<'a> Walk<'a> {
    fn new(number: usize, child: &'a ChildPlan) -> Walk<'a> {
        let broadcasts = child.ops.iter().filter_map(|op| match *op {
            Op::Broadcast { root, slot } if root as usize == number => Some(slot),
            _ => None,
        });
        let roots = broadcasts.collect();
        Walk {
            child,
            at: 0,
            now: 0.0,
            channel: 0.0,
            done: Vec::new(),
            in_flight_from: 0,
            roots,
            fetched: FxHashSet::default(),
        }
    }

    /// Goes on to the next broadcast, and gives its root and slot, or to the end.
    fn go_on(&mut self, facts: &Facts<'_>) -> Option<(u32, u32)> {
        let edge = facts.edge;
        let share = 1.0 / facts.children as f64;
        let latency = edge.latency_ns * 1e-9;
        let synchronous = facts.is_synchronous();
        while let Some(op) = self.child.ops.get(self.at) {
            self.at += 1;
            match *op {
                Op::Fetch { slot: number, .. } | Op::Store { slot: number, .. } => {
                    let slot = &self.child.slots[number as usize];
                    let rate = match op {
                        // What is broadcast is fetched by nobody else.
                        Op::Fetch { .. } if self.roots.contains(&number) => {
                            self.fetched.insert(number);
                            edge.read_bytes_per_second
                        }
                        Op::Fetch { .. } => edge.read_bytes_per_second * share,
                        _ => edge.write_bytes_per_second * share,
                    };
                    let array = &facts.arrays[slot.block.array as usize];
                    let mut busy = facts.moving_seconds(slot, rate);
                    if edge.driver.queued {
                        // Transfers are done in the order of their numbers.
                        let now = self.now;
                        self.in_flight_from +=
                            self.done[self.in_flight_from..].iter().take_while(|&&end| end <= now).count();
                        busy += transfer_seconds(edge, (self.done.len() - self.in_flight_from + 1) as f64);
                    }
                    self.channel = self.channel.max(self.now) + busy;
                    self.now += stolen_seconds(edge, &slot.block.region, array, facts.workers);
                    if synchronous {
                        self.channel += latency;
                        self.now = self.channel;
                    }
                    self.done.push(self.channel + latency);
                }
                Op::Await { transfer } if !synchronous => self.now = self.now.max(self.done[transfer as usize]),
                Op::Run { call, .. } => self.now += (facts.call_seconds)(call as usize),
                Op::Await { .. } | Op::Signal | Op::Wait { .. } | Op::Barrier => {}
                Op::Broadcast { root, slot } => return Some((root, slot)),
            }
        }
        None
    }
}

impl Plan {
    /// Predicted time of the plan in seconds, from the machine's constants: the longest child, with transfers
    /// overlapping runs as the steps allow.
    pub fn predicted_seconds(&self) -> f64 {
        self.seconds
    }
}

/// Prices this close may be the other way round in fact: then the plan that moves least is better.
pub(crate) const CLOSE: f64 = 1.02;
