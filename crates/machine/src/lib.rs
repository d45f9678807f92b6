//! The tree of memories.
//!
//! This room says which memories a machine has, what each holds, how bytes move between a memory and its parent, and
//! what executes in it. A machine comes in as the text of a machine file with units in it ([`Machine::parse`]), as what
//! the operating system tells ([`Machine::detect`]), or as one of the files that are shipped ([`Machine::shipped`]);
//! probing ([`probe`]) replaces assumed constants by measured ones. A checked [`Machine`] goes out: plain data, to be
//! printed, written back, hashed and planned for. This room never moves a program's data and never starts its work.

mod check;
mod costs;
pub mod detect;
mod draft;
mod driver;
mod error;
mod host;
mod layout;
mod memory;
mod network;
pub mod probe;
mod read;
mod render;
mod shipped;
mod tree;
mod units;
mod write;

pub use costs::Costs;
pub use driver::{Driver, DriverFacts, Wire};
pub use error::{MachineError, Place, Problem};
pub use host::{ContextScheduler, Contexts, Host, ThreadScheduler};
pub use layout::{Branch, Layout};
pub use memory::{Edge, LeafRate, Memory, MemoryId, Processor, ProcessorKind, TransferRules};
pub use network::{Network, Shape};
pub use read::THIS_COMPUTER;
pub use tree::Machine;
pub use units::{
    UnitError, approximate_bandwidth, approximate_bytes, approximate_flops, approximate_time, format_bandwidth,
    format_bytes, format_flops, format_time, parse_bandwidth, parse_bytes, parse_flops, parse_time, readable_bytes,
};
