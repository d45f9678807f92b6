//! The kinds of things a plan can get wrong.

use crate::plan::Traffic;
use multigrain_machine::Driver;
use multigrain_program::{Arg, ArrayDecl, Region, Shape};
use std::fmt;

/// A region of a named array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockName {
    /// Name of the array.
    pub array: String,
    /// Which part of it.
    pub region: Region,
}

impl BlockName {
    pub(super) fn new(arrays: &[ArrayDecl], arg: &Arg) -> BlockName {
        let array =
            arrays.get(arg.array as usize).map_or_else(|| format!("array {}", arg.array), |array| array.name.clone());
        BlockName { array, region: arg.region }
    }
}

/// Which call an element's content comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The content before the first call.
    Initial,
    /// What this call wrote.
    Call(u32),
}

impl Version {
    /// From the checker's own count: 0 is initial, `n + 1` is call `n`.
    pub(super) fn from_count(count: u32) -> Version {
        count.checked_sub(1).map_or(Version::Initial, Version::Call)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Initial => f.write_str("the initial content"),
            Version::Call(call) => write!(f, "what call {call} wrote"),
        }
    }
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the parent to the child.
    Fetch,
    /// From the child to the parent.
    Store,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Fetch => "fetch",
            Direction::Store => "store",
        })
    }
}

/// A step that waits for a signal that does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedWait {
    /// The child that waits.
    pub child: usize,
    /// Its step.
    pub op: usize,
    /// The child it waits for.
    pub on: u32,
    /// The number of signals it waits for.
    pub signals: u32,
    /// The number of signals given.
    pub given: u32,
}

fn list_waits(waits: &[BlockedWait]) -> String {
    let texts: Vec<String> = waits
        .iter()
        .map(|w| {
            let BlockedWait { child, op, on, signals, given } = w;
            format!("child {child}, step {op} waits for signal {signals} of child {on}, which has given {given}")
        })
        .collect();
    texts.join("; ")
}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No transfer rules for this edge.
    #[error("its edge is number {edge}, but transfer rules were given for {given} edges")]
    NoRules {
        /// That of the plan.
        edge: usize,
        /// Edges for which rules were given.
        given: usize,
    },
    /// A number that names nothing.
    #[error("names {what} {index}, but there are {count}")]
    BadIndex {
        /// What is named.
        what: &'static str,
        /// Its number.
        index: u64,
        /// How many there are.
        count: u64,
    },
    /// A list of the wrong length, or a total that is wrong.
    #[error("{what}: expected {expected}, found {found}")]
    Differs {
        /// Of what.
        what: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A block outside its array.
    #[error("lies outside its array, which has shape {shape}")]
    OutOfBounds {
        /// Shape of the array.
        shape: Shape,
    },
    /// An array that is given and not changed is written.
    #[error("is written, but its array is an input")]
    WritesInput,
    /// Two arguments of a call share elements and one is written.
    #[error("overlaps {other} of the same call, and one of them is written")]
    Aliased {
        /// The other block.
        other: BlockName,
    },
    /// An inner plan reads what no call of it has written and the caller does not give.
    #[error("is read before it is written, but the caller gives no content for it")]
    ReadsUndefined,
    /// An inner plan leaves a part of its result unwritten.
    #[error("is a result, but no call writes it")]
    NeverWritten,
    /// A reduction that is not the fixed tree over all its contributions.
    #[error("reduction of {task}: {what}: contributions {first} to {end} in {region:?} of array {array}")]
    Reduction {
        /// The task that reduces.
        task: String,
        /// Number of the array where they lie.
        array: u32,
        /// Which part of it.
        region: Region,
        /// What is wrong.
        what: &'static str,
        /// The first of the contributions.
        first: u64,
        /// One past the last.
        end: u64,
    },
    /// A slot at an address that its rules or its elements do not allow.
    #[error("slot {slot} begins at byte {offset_bytes}, which is not a multiple of {alignment_bytes}")]
    Misaligned {
        /// Number of the slot.
        slot: u32,
        /// Where it begins.
        offset_bytes: u64,
        /// What that must be a multiple of.
        alignment_bytes: u64,
    },
    /// A slot beyond the end of the staging memory.
    #[error("slot {slot} ends at byte {end_bytes}, but the child has {capacity_bytes} bytes of staging memory")]
    BeyondCapacity {
        /// Number of the slot.
        slot: u32,
        /// Where it ends.
        end_bytes: u64,
        /// Bytes of staging memory.
        capacity_bytes: u64,
    },
    /// What is set aside in a child is more than it has.
    #[error(
        "{capacity_bytes} bytes for blocks, {scratch_bytes} of scratch and {fixed_bytes} of buffers and code exceed \
         the child's {total_bytes}"
    )]
    PartsExceedTotal {
        /// Bytes for blocks.
        capacity_bytes: u64,
        /// Bytes of scratch memory.
        scratch_bytes: u64,
        /// Bytes of buffers and code.
        fixed_bytes: u64,
        /// Bytes of the child.
        total_bytes: u64,
    },
    /// Less scratch memory than the leaves take.
    #[error("its leaves take {need_bytes} bytes of scratch memory from the child, but {scratch_bytes} are set aside")]
    TooLittleScratch {
        /// Bytes that the leaves take at once.
        need_bytes: u64,
        /// Bytes set aside.
        scratch_bytes: u64,
    },
    /// A transfer whose runs do not lie alike on both sides of an edge that moves aligned units.
    #[error(
        "{runs} runs of {bytes} bytes, one of which begins {parent_bytes} bytes into a unit of {alignment_bytes} in the \
         parent and {slot_bytes} bytes into one in the slot; the edge moves only what is alike: choose blocks whose rows \
         begin and end at units"
    )]
    Unlike {
        /// Contiguous runs of the block.
        runs: u64,
        /// Bytes of each.
        bytes: u64,
        /// Where one begins within a unit of the parent memory.
        parent_bytes: u64,
        /// Where it begins within a unit of the slot.
        slot_bytes: u64,
        /// The unit.
        alignment_bytes: u64,
    },
    /// A part whose argument does not lie like an array of its own, on an edge that moves aligned units.
    #[error(
        "call {call} is a part, and {block}, or a row of it, begins {parent_bytes} bytes into a unit of {alignment_bytes} where its plan takes \
         it to begin {part_bytes} bytes into one; the edge moves only what is alike"
    )]
    UnlikePart {
        /// The part.
        call: usize,
        /// Its argument.
        block: BlockName,
        /// Where it begins within a unit of the parent memory.
        parent_bytes: u64,
        /// Where its plan takes it to begin.
        part_bytes: u64,
        /// The unit.
        alignment_bytes: u64,
    },
    /// A transfer issued twice.
    #[error("transfer {transfer} was issued before, in step {first}")]
    IssuedTwice {
        /// Number of the transfer.
        transfer: u32,
        /// The step that issued it first.
        first: usize,
    },
    /// A transfer awaited twice.
    #[error("transfer {transfer} was awaited before, in step {first}")]
    AwaitedTwice {
        /// Number of the transfer.
        transfer: u32,
        /// The step that awaited it first.
        first: usize,
    },
    /// A transfer awaited before it is issued.
    #[error("awaits transfer {transfer}, which no earlier step issues")]
    AwaitedUnissued {
        /// Number of the transfer.
        transfer: u32,
    },
    /// A transfer that is still in flight at the end.
    #[error("{direction} {transfer} is never awaited")]
    NeverAwaited {
        /// Number of the transfer.
        transfer: u32,
        /// Its direction.
        direction: Direction,
    },
    /// Too many transfers at once.
    #[error("{found} transfers in flight, but the edge allows {max}")]
    TooManyInFlight {
        /// Transfers in flight with this one.
        found: u64,
        /// The most allowed.
        max: u64,
    },
    /// A call that runs twice.
    #[error("runs a second time; it ran on child {child}, step {op}")]
    RunTwice {
        /// Child of the first run.
        child: usize,
        /// Step of the first run.
        op: usize,
    },
    /// A call that no child runs.
    #[error("no child runs it")]
    NeverRun,
    /// Views of a parent memory that the child cannot address.
    #[error("runs on views of the parent memory, but a child behind the {driver} driver does not share it")]
    ViewsNotShared {
        /// The edge's driver.
        driver: Driver,
    },
    /// A slot that holds another block than the call's argument.
    #[error("{param} is taken from slot {slot}, which holds {found}")]
    WrongBlock {
        /// Parameter of the task.
        param: String,
        /// Number of the slot.
        slot: u32,
        /// The slot's block.
        found: BlockName,
    },
    /// A slot is used while a transfer of it, or of a slot at the same bytes, is in flight.
    #[error("slot {slot} is used while the {direction} {transfer} of slot {other} is in flight at the same bytes")]
    InFlight {
        /// Number of the slot.
        slot: u32,
        /// Slot of the transfer; the same slot, or one that shares bytes with it.
        other: u32,
        /// Direction of the transfer.
        direction: Direction,
        /// Number of the transfer.
        transfer: u32,
    },
    /// A slot is read or stored that holds nothing.
    #[error("slot {slot} holds no content here{}", .lost_to.map_or(String::new(), |s| format!(": slot {s} took its bytes")))]
    NoContent {
        /// Number of the slot.
        slot: u32,
        /// The slot that was last filled at its bytes, if it ever had content.
        lost_to: Option<u32>,
    },
    /// A part of a block is read in the wrong version.
    #[error("its part {part} must hold {expected}, but holds {found}")]
    WrongVersion {
        /// The part.
        part: Region,
        /// What sequential execution would show.
        expected: Version,
        /// What is there.
        found: Version,
    },
    /// At the end, a part of a result is not what the last call wrote.
    #[error("its part {part} must end as {expected} in the parent memory, but ends as {found}")]
    WrongResult {
        /// The part.
        part: Region,
        /// What sequential execution would leave.
        expected: Version,
        /// What is left.
        found: Version,
    },
    /// Two arguments of a run lie at the same bytes and one is written.
    #[error("slots {slot} and {other} of the call share bytes, and one of them is written")]
    SharedBytes {
        /// Number of the slot.
        slot: u32,
        /// Number of the other slot.
        other: u32,
    },
    /// A slot is stored that has not been written since it was fetched or last stored.
    #[error("slot {slot} is stored, but nothing was written to it since it was fetched or last stored")]
    SuperfluousStore {
        /// Number of the slot.
        slot: u32,
    },
    /// Two accesses of the parent memory without an order.
    #[error(
        "{} {part} of the parent memory, which child {child}, step {op} {}; no signal and wait, and no await, orders \
         the two",
        if *.writes { "writes" } else { "reads" },
        if *.other_writes { "writes" } else { "reads" }
    )]
    Race {
        /// The part both access.
        part: BlockName,
        /// Whether this step writes it.
        writes: bool,
        /// Child of the other access.
        child: usize,
        /// The step at which the other access ends.
        op: usize,
        /// Whether the other step writes it.
        other_writes: bool,
    },
    /// Children wait for each other.
    #[error("nothing can proceed: {}", list_waits(.waits))]
    Deadlock {
        /// The waits.
        waits: Vec<BlockedWait>,
    },
    /// Some children come to a barrier or broadcast to which not all come.
    #[error("child {missing} never comes to a barrier or broadcast at which {} others wait for all, child {} among them", .met.len(), .met.first().copied().unwrap_or_default())]
    Unmet {
        /// The first child that does not come.
        missing: usize,
        /// Those that wait.
        met: Vec<usize>,
    },
    /// Two children come to different barriers or broadcasts.
    #[error(
        "is {found}, and child {other} is at {expected}: all children must come to the same barriers and broadcasts"
    )]
    OtherMeeting {
        /// What the child is at.
        found: String,
        /// The other child.
        other: usize,
        /// What that is at.
        expected: String,
    },
    /// A broadcast on an edge whose children have no memory of their own, or cannot reach each other's.
    #[error("is a broadcast, but the driver is {driver}, whose children move nothing between each other")]
    NotBetweenSiblings {
        /// The driver.
        driver: Driver,
    },
    /// A broadcast between slots that do not lie alike, on an edge that moves aligned units.
    #[error(
        "begins {slot_bytes} bytes into a unit of {alignment_bytes} in slot {slot} and {root_bytes} bytes into one at the \
         root; the edge moves only what is alike"
    )]
    UnlikeRoot {
        /// Number of the slot.
        slot: u32,
        /// Where it begins within a unit.
        slot_bytes: u64,
        /// Where the root's slot does.
        root_bytes: u64,
        /// The unit.
        alignment_bytes: u64,
    },
    /// A child waits for itself.
    #[error("waits for its own signal {signals}")]
    WaitsForItself {
        /// Number of the signal.
        signals: u32,
    },
    /// Batches that are not one after the other.
    #[error("batch {batch} covers steps {}..{}, but must begin at step {expected} and end within {steps}", .found.0, .found.1)]
    BatchRange {
        /// Number of the batch.
        batch: usize,
        /// First step and end of the batch.
        found: (u32, u32),
        /// Where it must begin.
        expected: u32,
        /// Number of steps.
        steps: usize,
    },
    /// Phases that are not those of the other children, or not of all batches.
    #[error(
        "its phases end at batches {found:?}, but there are {expected} phases, and the last ends at batch {batches}"
    )]
    Phases {
        /// Where the child's phases end.
        found: Vec<u32>,
        /// How many phases the plan has.
        expected: usize,
        /// How many batches the child has.
        batches: usize,
    },
    /// A step after the last batch.
    #[error("is in no batch, but the plan is balanced")]
    NoBatch,
    /// A step that another child cannot take over.
    #[error("only runs on views can be taken over by another child, but this step {step}")]
    NotMovable {
        /// What the step does.
        step: &'static str,
    },
    /// The stated traffic is not what the steps move.
    #[error(
        "states {} bytes down, {} up, {} between siblings and {} transfers, but its steps make {} down, {} up, {} between \
         siblings and {}",
        .stated.bytes_down, .stated.bytes_up, .stated.bytes_across, .stated.transfers,
        .counted.bytes_down, .counted.bytes_up, .counted.bytes_across, .counted.transfers
    )]
    Traffic {
        /// What the plan states.
        stated: Traffic,
        /// What was counted.
        counted: Traffic,
    },
}
