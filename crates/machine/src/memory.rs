//! What a memory of a machine is: its capacity, who computes below it, and the edge to its children.

use crate::costs::Costs;
use crate::driver::Driver;
use crate::host::{Contexts, Host};
use crate::network::Network;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Which memory of a machine: its index, the root being 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct MemoryId(pub usize);

/// A place that holds bytes: one kind of memory, of which each parent has `count`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// The name, unique in its machine.
    pub name: String,
    /// The memory above; `None` only at the root.
    pub parent: Option<MemoryId>,
    /// How many of these memories each parent has, at least 1.
    pub count: usize,
    /// The bytes that each of them holds.
    pub capacity_bytes: u64,
    /// The edge to the parent; `None` only at the root.
    pub edge: Option<Edge>,
    /// What executes leaf tasks in this memory; every memory without children has one.
    pub processor: Option<Processor>,
    /// The directory, for a disk.
    pub path: Option<PathBuf>,
    /// What its driver is told besides, key and value; sorted by key.
    pub settings: Vec<(String, String)>,
    /// Where the capacity and the count come from.
    pub source: Option<String>,
    /// Where the constants of the edge come from: `measured`, `assumed`, a publication.
    pub edge_source: Option<String>,
    /// What lies between these memories, where that is described.
    pub network: Option<Network>,
    /// Where the constants of the processor come from.
    pub processor_source: Option<String>,
    /// How fast the processor executes the leaf variants of tasks, where that is known; by name of the task. Plans do not
    /// depend on it: only the simulator looks at it. Sorted by task.
    pub leaves: Vec<LeafRate>,
    /// Who runs the operating system for what lies below this memory, where that is described.
    pub host: Option<Host>,
    /// How several contexts share the processor, where they can.
    pub contexts: Option<Contexts>,
}

/// How fast a processor executes the leaf variant of one task, besides starting it.
///
/// A leaf takes the time of its arithmetic at `flops_per_second` and the time of what it touches at `bytes_per_second`, while
/// all processors of its memory are at work. What is not known is the processor's rate, and what the memory's bus gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeafRate {
    /// Name of the task.
    pub task: String,
    /// Floating-point operations per second, as the task counts them; finite and above 0.
    pub flops_per_second: Option<f64>,
    /// Bytes per second, as the task counts what it touches; finite and above 0.
    pub bytes_per_second: Option<f64>,
    /// What starting one costs, nanoseconds, instead of what the processor says; finite, at least 0.
    pub call_overhead_ns: Option<f64>,
    /// Where these constants come from.
    pub source: Option<String>,
}

impl Memory {
    /// A memory without parent, count 1, and nothing else.
    pub fn root(name: &str, capacity_bytes: u64) -> Memory {
        Memory {
            name: name.into(),
            parent: None,
            count: 1,
            capacity_bytes,
            edge: None,
            processor: None,
            path: None,
            settings: Vec::new(),
            source: None,
            edge_source: None,
            network: None,
            processor_source: None,
            leaves: Vec::new(),
            host: None,
            contexts: None,
        }
    }

    /// `count` memories below each `parent`.
    pub fn child(name: &str, parent: MemoryId, count: usize, capacity_bytes: u64, edge: Edge) -> Memory {
        Memory { parent: Some(parent), count, edge: Some(edge), ..Memory::root(name, capacity_bytes) }
    }

    /// How fast its processor executes the leaf variant of a task, where the machine file says it. What is said of `fft3d`
    /// is said of `fft3d-planes-into` too, unless that, or `fft3d-planes`, has an entry of its own.
    pub fn leaf(&self, task: &str) -> Option<&LeafRate> {
        let mut name = task;
        loop {
            if let Some(found) = self.leaves.iter().find(|leaf| leaf.task == name) {
                return Some(found);
            }
            name = name.rsplit_once('-')?.0;
        }
    }

    /// What its driver is told under a key, if anything.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == key).map(|(_, value)| &**value)
    }

    /// The same memory with a processor.
    #[must_use]
    pub fn with_processor(self, processor: Processor) -> Memory {
        Memory { processor: Some(processor), ..self }
    }
}

/// The edges between one memory and its children of one kind. Bandwidths are what all these children get together:
/// the bus of a DRAM whose cores share it, the sum of the links of a cluster's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Edge {
    /// What moves the bytes.
    pub driver: Driver,
    /// From parent to child, bytes per second; finite and above 0.
    pub read_bytes_per_second: f64,
    /// From child to parent, bytes per second; finite and above 0.
    pub write_bytes_per_second: f64,
    /// From issue to the first byte, nanoseconds; finite, at least 0.
    pub latency_ns: f64,
    /// What moving costs besides bytes and latency.
    pub costs: Costs,
    /// What one child can read out of the memory of another of the same parent, bytes per second, while it is read out of
    /// itself as fast, and each other pair too; finite and above 0. `None` where children do not reach each other.
    pub sibling_bytes_per_second: Option<f64>,
    /// What a transfer along this edge must obey.
    pub rules: TransferRules,
}

impl Edge {
    /// An edge with equal bandwidth both ways, its driver's costs and no rules.
    pub fn new(driver: Driver, bytes_per_second: f64, latency_ns: f64) -> Edge {
        Edge {
            driver,
            read_bytes_per_second: bytes_per_second,
            write_bytes_per_second: bytes_per_second,
            latency_ns,
            costs: driver.costs,
            sibling_bytes_per_second: None,
            rules: TransferRules::default(),
        }
    }
}

/// What a transfer along an edge must obey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct TransferRules {
    /// Addresses and sizes are multiples of this; 1 is no rule.
    pub alignment_bytes: u64,
    /// The largest single transfer, if there is a limit.
    pub transfer_bytes_max: Option<u64>,
    /// The longest transfer list, if there is a limit.
    pub list_entries_max: Option<u64>,
    /// The most transfers in flight for one child, if there is a limit.
    pub in_flight_max: Option<u64>,
    /// Whether the rules are enforced as the Cell's hardware does, with a fault, not smoothed over by copies.
    pub strict: bool,
}

impl TransferRules {
    /// No rules.
    pub const NONE: TransferRules = TransferRules {
        alignment_bytes: 1,
        transfer_bytes_max: None,
        list_entries_max: None,
        in_flight_max: None,
        strict: false,
    };
}

impl Default for TransferRules {
    fn default() -> TransferRules {
        TransferRules::NONE
    }
}

/// What executes leaf tasks in a memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Processor {
    /// Which leaf variant it executes.
    pub kind: ProcessorKind,
    /// Peak single-precision floating-point operations per second of one processor; finite and above 0.
    pub flops_per_second: f64,
    /// What starting one leaf task costs, nanoseconds; finite, at least 0.
    pub call_overhead_ns: f64,
    /// What code takes from the memory's capacity, bytes.
    pub code_bytes: u64,
}

/// A kind of processor; a task has a leaf variant for each kind it can run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessorKind {
    /// A core of a general-purpose processor.
    Cpu,
    /// A synergistic processing element of a Cell.
    Spe,
    /// A GPU.
    Gpu,
}

impl ProcessorKind {
    /// All kinds.
    pub const ALL: [ProcessorKind; 3] = [ProcessorKind::Cpu, ProcessorKind::Spe, ProcessorKind::Gpu];

    /// The name in machine files.
    pub fn name(self) -> &'static str {
        match self {
            ProcessorKind::Cpu => "cpu",
            ProcessorKind::Spe => "spe",
            ProcessorKind::Gpu => "gpu",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<ProcessorKind> {
        ProcessorKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ProcessorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
