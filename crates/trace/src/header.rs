//! What the numbers in the records stand for.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::{Clock, ticks_per_second};

/// The clock that ticks were read from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockInfo {
    /// `time-stamp counter`, `monotonic` or `virtual`.
    pub name: String,
    /// Its rate, as known when the run began.
    pub ticks_per_second: f64,
    /// A tick shortly before the run.
    pub tick: u64,
    /// The same moment in nanoseconds since 1970-01-01 UTC; 0 for a clock that has nothing to do with the world's.
    pub unix_ns: u64,
}

impl ClockInfo {
    /// The clock of this process.
    pub fn measured() -> ClockInfo {
        let clock = Clock::get();
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        ClockInfo {
            name: if clock.counter { "time-stamp counter" } else { "monotonic" }.into(),
            ticks_per_second: ticks_per_second(),
            tick: clock.now().0,
            unix_ns: since_1970.map_or(0, |d| d.as_nanos() as u64),
        }
    }
}

/// An edge of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeInfo {
    /// Parent and child: `disk - dram`.
    pub name: String,
    /// What moves the bytes: `shared`, `disk`, `local`, ...
    pub driver: String,
    /// Child memories of each parent.
    pub children: u32,
    /// Bytes that one child holds.
    pub capacity_bytes: u64,
    /// What the machine file says about fetches, in bytes a second; `None` if it says nothing.
    pub read_bytes_per_second: Option<f64>,
    /// The same for stores.
    pub write_bytes_per_second: Option<f64>,
    /// What the machine file says about the time before the first byte.
    pub latency_ns: Option<f64>,
}

/// An array of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrayInfo {
    /// The name; in the plan of a call, that of the parameter.
    pub name: String,
    /// Name of the element type.
    pub element: String,
    /// Lengths, slowest dimension first.
    pub shape: Vec<u64>,
}

/// A plan: what the children of one memory do for a program or for a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanInfo {
    /// The edge that it is for.
    pub edge: u16,
    /// The arrays that its calls use.
    pub arrays: Vec<ArrayInfo>,
    /// How many calls it has.
    pub calls: u32,
}

/// The names and sizes behind the numbers of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// What was run.
    pub program: String,
    /// Name of the machine.
    pub machine: String,
    /// Where the ticks come from.
    pub clock: ClockInfo,
    /// Names of the workers; a record's worker is an index.
    pub workers: Vec<String>,
    /// Edges from the root down; an index of records.
    pub edges: Vec<EdgeInfo>,
    /// Tasks by name; an index of leaves and calls.
    pub tasks: Vec<String>,
    /// Plans, the whole program's first; the subject of leaves, calls and scopes.
    pub plans: Vec<PlanInfo>,
    /// Reasons of decisions in words; the detail of decisions. Empty where no policy decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// How strands were executed, if any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strands: Option<StrandsInfo>,
}

/// How strands were executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrandsInfo {
    /// The policy, by its name.
    pub policy: String,
    /// How tasks that wait get to workers that are done, by its name.
    pub dispatch: String,
    /// Workers: the first of the threads.
    pub workers: u32,
    /// Threads that execute strands and are no workers; `None` if the workers execute them.
    pub own_hosts: Option<u32>,
    /// Strands.
    pub strands: u32,
    /// How many were in progress at most; `None` for as many as the policy says.
    pub strands_max: Option<u32>,
    /// Whether hosts executed what did not pay to be off-loaded.
    pub throttle: bool,
}

impl Header {
    /// The name of a worker.
    pub fn worker(&self, worker: u32) -> String {
        self.workers.get(worker as usize).cloned().unwrap_or_else(|| format!("worker {worker}"))
    }

    /// The name of an edge; `no edge` for an index beyond all.
    pub fn edge(&self, edge: u16) -> String {
        match self.edges.get(usize::from(edge)) {
            Some(info) => info.name.clone(),
            None if edge == crate::NO_INDEX => "no edge".into(),
            None => format!("edge {edge}"),
        }
    }

    /// The name of a task.
    pub fn task(&self, task: u16) -> String {
        self.tasks.get(usize::from(task)).cloned().unwrap_or_else(|| "task".into())
    }

    /// Why a policy decided as it did.
    pub fn reason(&self, detail: u8) -> String {
        self.reasons.get(usize::from(detail)).cloned().unwrap_or_else(|| format!("reason {detail}"))
    }

    /// The names of the edges.
    pub fn edge_names(&self) -> Vec<String> {
        self.edges.iter().map(|edge| edge.name.clone()).collect()
    }
}

/// A block's stay at fixed addresses of a child's staging memory: what a transfer fills or empties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotInfo {
    /// The plan.
    pub plan: u32,
    /// The child of that plan.
    pub child: u32,
    /// The array of the plan.
    pub array: u32,
    /// Where the block begins in the child's staging memory.
    pub offset_bytes: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its first index along each dimension.
    pub start: Vec<u64>,
    /// Its length along each dimension.
    pub len: Vec<u64>,
}

impl SlotInfo {
    /// Whether the two lie, at different times, at some same address.
    pub fn overlaps(&self, other: &SlotInfo) -> bool {
        (self.plan, self.child) == (other.plan, other.child)
            && self.offset_bytes < other.offset_bytes.saturating_add(other.bytes)
            && other.offset_bytes < self.offset_bytes.saturating_add(self.bytes)
    }
}

/// That a call works on the block in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The slot.
    pub slot: u32,
    /// The call of the slot's plan.
    pub call: u32,
}

/// A block as people read it: `A [0..512, 1024..1536]`.
pub(crate) struct BlockName<'a>(pub(crate) &'a Header, pub(crate) &'a SlotInfo);

impl fmt::Display for BlockName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockName(header, slot) = self;
        let array = header.plans.get(slot.plan as usize).and_then(|plan| plan.arrays.get(slot.array as usize));
        match array {
            Some(array) => write!(f, "{} [", array.name)?,
            None => write!(f, "array {} [", slot.array)?,
        }
        for (d, (start, len)) in slot.start.iter().zip(&slot.len).enumerate() {
            let comma = if d > 0 { ", " } else { "" };
            write!(f, "{comma}{start}..{}", start.saturating_add(*len))?;
        }
        f.write_str("]")
    }
}
