//! From a request to the steps of every participant.

mod data;
mod eager;
mod sync;

use crate::exchange::Exchange;
use crate::tree::Trees;
use crate::{Algorithm, Area, Copies, Kind, Operation, Order, ScheduleError, Segments, Shape, Step, Topology};

/// What schedules are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub operation: Operation,
    /// By which algorithm.
    pub algorithm: Algorithm,
    /// The group and where its participants live.
    pub topology: Topology,
    /// Bytes of a participant's buffer: the most that one round moves. Broadcasts use one such buffer, reductions a
    /// second for what is got from others, pairwise exchange two of its own, and eager operations a ring as large.
    pub buffer_bytes: u64,
    /// Places of the ring of eager operations, at least one: so many eager rounds a participant can be ahead of those who
    /// take what it offers. The same for all operations of a group.
    pub ring: u32,
}

/// What one participant does in each round of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Whose steps.
    pub rank: u32,
    /// The steps of one round; every round has the same.
    pub steps: Vec<Step>,
    /// The rounds.
    pub segments: Segments,
    /// Where the participant's segment must lie before the first step of a round (but [`Step::Reserve`]), if it
    /// contributes one.
    pub contribution: Option<Area>,
    /// Where the segment of the result lies after the last step (but [`Step::Taken`]), if the participant receives one.
    pub result: Option<Area>,
    /// Whether the rounds are eager: see [`Algorithm::eager`]. They are numbered apart from the others.
    pub eager: bool,
    /// Who expects something from this participant in an eager round, in ascending order.
    pub readers: Vec<u32>,
    /// Areas that other participants get, in ascending order.
    pub shared: Vec<Area>,
    buffer_bytes: u64,
    ring: u32,
}

/// Places of a ring begin at multiples of this, a line of the Cell's DMA and two cache lines elsewhere.
const PLACE_BYTES: u64 = 128;

/// Bytes of a place of a ring.
const fn place_bytes(buffer_bytes: u64, ring: u32) -> u64 {
    let bytes = buffer_bytes / if ring == 0 { 1 } else { ring as u64 };
    if bytes >= PLACE_BYTES { bytes - bytes % PLACE_BYTES } else { bytes - bytes % ALIGNMENT_BYTES }
}

impl Schedule {
    /// How many bytes of memory a participant needs for the areas of any schedule with such a buffer.
    pub const fn memory_bytes(buffer_bytes: u64) -> u64 {
        5 * buffer_bytes
    }

    /// Whether whoever shares memory with the others may leave what is got into `area` where it lies, and read it
    /// there: it is not handed on, only combined here, or it is the result of an eager round.
    pub fn reads_in_place(&self, area: Area) -> bool {
        let combined =
            |step: &Step| matches!(step, Step::Combine { left, right, .. } if area == *left || area == *right);
        self.shared.binary_search(&area).is_err()
            && (self.eager && self.result == Some(area) || self.steps.iter().any(combined))
    }

    /// Where copy `copy` of an area begins in that memory: see [`Copies`].
    pub const fn offset_bytes(&self, area: Area, copy: u32) -> u64 {
        let (index, segment_bytes) = (area.index as u64, self.segments.segment_bytes());
        match (area.copies, index) {
            (Copies::One, 0) => 0,
            (Copies::One, _) => self.buffer_bytes + (index - 1) * segment_bytes,
            (Copies::Two, _) => (2 + copy as u64) * self.buffer_bytes + index * segment_bytes,
            (Copies::Ring, _) => {
                4 * self.buffer_bytes + copy as u64 * place_bytes(self.buffer_bytes, self.ring) + index * segment_bytes
            }
        }
    }
}

/// The schedules of a whole group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedules {
    /// What they perform.
    pub request: Request,
    /// Of each rank.
    pub participants: Vec<Schedule>,
    /// The most bits of half a register that a participant uses: see [`crate::Registers::hold`].
    pub bits: u32,
}

/// The steps of one participant.
///
/// # Errors
/// [`ScheduleError`], if the request makes no sense or does not fit.
pub fn schedule(request: &Request, rank: u32) -> Result<Schedule, ScheduleError> {
    in_group("rank", rank, request.topology.size())?;
    Ok(schedules(request)?.participants.swap_remove(rank as usize))
}

/// The steps of all participants.
///
/// # Errors
/// As [`schedule`].
pub fn schedules(request: &Request) -> Result<Schedules, ScheduleError> {
    let (operation, n) = (request.operation, request.topology.size());
    request.algorithm.performs(operation.kind())?;
    let root = operation.root().unwrap_or(0);
    in_group("root", root, n)?;
    let (bytes, element_bytes) = (operation.bytes(), operation.element_bytes());
    if element_bytes == 0 || !bytes.is_multiple_of(element_bytes) {
        return Err(ScheduleError::PartElement { bytes, element_bytes });
    }
    let group = Group::of(request, root);
    let lists = match operation.kind() {
        _ if bytes == 0 => sync::barrier(&group),
        Kind::Barrier => sync::barrier(&group),
        Kind::Broadcast if request.algorithm.eager => eager::broadcast(&group),
        Kind::Broadcast => data::broadcast(&group),
        Kind::Reduce if request.algorithm.eager => eager::reduce(&group),
        Kind::Reduce => data::reduce(&group, false),
        Kind::Allreduce if group.exchanges() => data::exchange(&group),
        Kind::Allreduce => data::reduce(&group, true),
    };
    let segments = Segments::new(bytes, segment_bytes(request, &lists)?);
    let mut shared = vec![Vec::new(); lists.ranks.len()];
    let mut readers = vec![Vec::new(); lists.ranks.len()];
    for (rank, list) in (0..).zip(&lists.ranks) {
        for step in &list.steps {
            match *step {
                Step::Get { from, source, .. } => shared[from as usize].push(source),
                Step::Expect { from } => readers[from as usize].push(rank),
                _ => {}
            }
        }
    }
    let others = shared.into_iter().zip(readers);
    let participants = lists.ranks.into_iter().zip(others).zip(0..).map(|((list, (mut shared, readers)), rank)| {
        shared.sort_unstable();
        shared.dedup();
        let moves = bytes > 0;
        let contributes = operation.kind() != Kind::Broadcast || rank == root;
        let receives = match operation.kind() {
            Kind::Barrier => false,
            Kind::Broadcast => rank != root,
            Kind::Reduce => rank == root,
            Kind::Allreduce => true,
        };
        Schedule {
            rank,
            steps: list.steps,
            segments,
            contribution: (moves && contributes).then_some(list.payload),
            result: (moves && receives).then_some(list.result),
            eager: moves && request.algorithm.eager,
            readers,
            shared,
            buffer_bytes: request.buffer_bytes,
            ring: request.ring,
        }
    });
    let bits = if bytes > 0 && request.algorithm.eager { 0 } else { group.bits() };
    Ok(Schedules { request: request.clone(), participants: participants.collect(), bits })
}

fn in_group(what: &'static str, rank: u32, size: u32) -> Result<(), ScheduleError> {
    if rank < size { Ok(()) } else { Err(ScheduleError::OutsideGroup { what, rank, last: size - 1 }) }
}

/// Segments begin at multiples of this, as transfers between local stores must (16 bytes on the Cell).
const ALIGNMENT_BYTES: u64 = 16;

/// Bytes of a round, if a buffer and a place of the ring must hold the areas of these lists.
fn segment_bytes(request: &Request, lists: &Lists) -> Result<u64, ScheduleError> {
    let (operation, buffer_bytes) = (request.operation, request.buffer_bytes);
    if operation.bytes() == 0 {
        return Ok(0);
    }
    let element_bytes = operation.element_bytes();
    let least = element_bytes.checked_mul(ALIGNMENT_BYTES / gcd(element_bytes, ALIGNMENT_BYTES));
    let in_buffer = buffer_bytes / lists.areas.max(1);
    let in_place = place_bytes(buffer_bytes, request.ring).checked_div(lists.ring_areas);
    let most = in_place.map_or(in_buffer, |bytes| bytes.min(in_buffer));
    match least.map(|least| most - most % least) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => {
            let algorithm = request.algorithm.name(operation.kind());
            let least = least.unwrap_or(u64::MAX);
            let places = u64::from(request.ring.max(1));
            let of_ring = least.saturating_mul(lists.ring_areas).checked_next_multiple_of(PLACE_BYTES);
            let of_ring = of_ring.unwrap_or(u64::MAX).saturating_mul(places);
            let of_buffer = least.saturating_mul(lists.areas.max(1));
            let areas = if of_ring > of_buffer { lists.ring_areas * places } else { lists.areas.max(1) };
            let need = of_buffer.max(of_ring);
            Err(ScheduleError::BufferTooSmall { algorithm, areas, least, buffer_bytes, need })
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Steps of all ranks, before they are cut into rounds.
struct Lists {
    ranks: Vec<List>,
    /// Segments that one buffer must hold.
    areas: u64,
    /// Segments that one place of the ring must hold.
    ring_areas: u64,
}

/// Steps of one rank.
struct List {
    steps: Vec<Step>,
    payload: Area,
    result: Area,
}

impl List {
    fn new(payload: Area) -> List {
        List { steps: Vec::new(), payload, result: payload }
    }
}

/// Who signals whom, for one request.
struct Group {
    trees: Trees,
    optimised: bool,
    /// Whether partial results may be combined in any order.
    free: bool,
}

impl Group {
    fn of(request: &Request, root: u32) -> Group {
        let Algorithm { shape, blade, optimised, .. } = request.algorithm;
        let topology = &request.topology;
        let trees = match (shape, request.operation.kind()) {
            (Shape::Exchange, _) => Trees::of_single_ranks(topology.size()),
            (_, Kind::Barrier) if blade => Trees::of_domains(topology, shape),
            _ => Trees::rooted(topology, shape, blade, root),
        };
        Group { trees, optimised, free: matches!(request.operation.order(), Order::Free(_)) }
    }

    /// Whether several leaders meet as equals.
    fn exchanges(&self) -> bool {
        self.trees.leaders().len() > 1
    }

    fn exchange(&self) -> Exchange {
        Exchange::among(self.trees.leaders().len())
    }

    /// The most bits that one participant uses.
    fn bits(&self) -> u32 {
        let exchange = self.exchange();
        let leaders = (0..).zip(self.trees.leaders());
        let of_leaders = leaders.map(|(i, &rank)| self.trees.bit_after_children(rank) + exchange.bits(i));
        let others = (0..self.trees.size()).filter(|&rank| self.trees.parent(rank).is_some());
        others.map(|rank| self.trees.bit_after_children(rank) + 1).chain(of_leaders).max().unwrap_or(0)
    }
}
