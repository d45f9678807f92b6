//! From a request to the steps of every participant.

mod data;
mod sync;

use crate::exchange::Exchange;
use crate::tree::Trees;
use crate::{Algorithm, Area, Kind, Operation, Order, ScheduleError, Segments, Shape, Step, Topology};

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
    /// second for what is got from others, and pairwise exchange two of its own.
    pub buffer_bytes: u64,
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
    /// Where the participant's segment must lie before the first step of a round, if it contributes one.
    pub contribution: Option<Area>,
    /// Where the segment of the result lies after the last step, if the participant receives one.
    pub result: Option<Area>,
    /// Areas that other participants get, in ascending order.
    pub shared: Vec<Area>,
    buffer_bytes: u64,
}

impl Schedule {
    /// How many bytes of memory a participant needs for the areas of any schedule with such a buffer.
    pub const fn memory_bytes(buffer_bytes: u64) -> u64 {
        4 * buffer_bytes
    }

    /// Whether whoever shares memory with the others may leave what is got into `area` where it lies, and read it
    /// there: it is only combined here, not handed on.
    pub fn reads_in_place(&self, area: Area) -> bool {
        let combined =
            |step: &Step| matches!(step, Step::Combine { left, right, .. } if area == *left || area == *right);
        self.shared.binary_search(&area).is_err() && self.steps.iter().any(combined)
    }

    /// Where an area begins in that memory, in rounds of even or odd number.
    pub const fn offset_bytes(&self, area: Area, odd: bool) -> u64 {
        let (index, segment_bytes) = (area.index as u64, self.segments.segment_bytes());
        match (area.alternates, index) {
            (false, 0) => 0,
            (false, _) => self.buffer_bytes + (index - 1) * segment_bytes,
            (true, _) => (if odd { 3 } else { 2 }) * self.buffer_bytes + index * segment_bytes,
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
        Kind::Broadcast => data::broadcast(&group),
        Kind::Reduce => data::reduce(&group, false),
        Kind::Allreduce if group.exchanges() => data::exchange(&group),
        Kind::Allreduce => data::reduce(&group, true),
    };
    let segments = Segments::new(bytes, segment_bytes(request, lists.areas)?);
    let mut shared = vec![Vec::new(); lists.ranks.len()];
    for step in lists.ranks.iter().flat_map(|list| &list.steps) {
        if let Step::Get { from, source, .. } = *step {
            shared[from as usize].push(source);
        }
    }
    let participants = lists.ranks.into_iter().zip(shared).zip(0..).map(|((list, mut shared), rank)| {
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
            shared,
            buffer_bytes: request.buffer_bytes,
        }
    });
    Ok(Schedules { request: request.clone(), participants: participants.collect(), bits: group.bits() })
}

fn in_group(what: &'static str, rank: u32, size: u32) -> Result<(), ScheduleError> {
    if rank < size { Ok(()) } else { Err(ScheduleError::OutsideGroup { what, rank, last: size - 1 }) }
}

/// Segments begin at multiples of this, as transfers between local stores must (16 bytes on the Cell).
const ALIGNMENT_BYTES: u64 = 16;

/// Bytes of a round, if a buffer must hold `areas` segments.
fn segment_bytes(request: &Request, areas: u64) -> Result<u64, ScheduleError> {
    let (operation, buffer_bytes) = (request.operation, request.buffer_bytes);
    if operation.bytes() == 0 {
        return Ok(0);
    }
    let areas = areas.max(1);
    let element_bytes = operation.element_bytes();
    let least = element_bytes.checked_mul(ALIGNMENT_BYTES / gcd(element_bytes, ALIGNMENT_BYTES));
    let most = buffer_bytes / areas;
    match least.map(|least| most - most % least) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => {
            let algorithm = request.algorithm.name(operation.kind());
            let least = least.unwrap_or(u64::MAX);
            let need = least.saturating_mul(areas);
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
        let Algorithm { shape, blade, optimised } = request.algorithm;
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
