//! An emulated discrete memory: what a GPU looks like, on any computer.
//!
//! A memory below an edge of the driver `device` is an arena that nobody can touch but its own copy engine and its own
//! processor. Transfers are asynchronous: they are issued on streams, each a thread that copies one block
//! after the other; those of different streams end in any order. Leaves are executed by the processor, a thread of the
//! device. How fast bytes move, how long each transfer takes besides, which one fails and how fast leaves are executed stand in
//! the machine file: a transfer of n bytes is over no sooner than after the edge's latency and n bytes at the child's share of its
//! bandwidth.
//!
//! The arena is mapped twice, at addresses that everybody knows and at others that only the copy engine does. The known ones are
//! protected but while the processor executes a leaf, so whoever else touches what lies there is ended by the system. To open 64 MiB
//! for a leaf and to close them again takes up to 2 ms, which no real device has to pay and no plan knows of; where a device is to be
//! as fast as it says (`machines/cpu+device.toml`), the setting `guard = false` leaves the memory open.
//!
//! In come transfers and leaves, out go receipts. The threads know each other by channels alone. This room decides nothing
//! and knows nobody: a command registers it in one line, [`register`].

mod arena;
mod processor;
mod streams;

use arena::Arena;
use multigrain::Machine;
use multigrain::driver::{Child, Driver, DriverFacts, Receipt, Site, Span, StoreError, Transfer, Wire};
use multigrain::rooms::machine::{Costs, MachineError};
use processor::Processor;
use std::sync::Arc;
use streams::{Pace, Streams};

/// What planning knows of a device. A transfer costs a command besides its bytes and the link's latency, 5 us.
pub const FACTS: DriverFacts = DriverFacts {
    name: "device",
    queued: true,
    synchronous: false,
    own_processor: true,
    wire: Wire::Links,
    costs: Costs { fragment_ns: 20.0, transfer_ns: 5e3, ..Costs::NONE },
    settings: &[STREAMS, FAIL, SLOWER, GUARD],
    ..DriverFacts::COPIES
};

/// The setting that says how many streams there are, 2 unless given.
const STREAMS: &str = "streams";
/// The setting that says which transfer of each memory fails, counted from 1; none unless given.
const FAIL: &str = "fail";

/// The setting that says how many times as long as its thread takes the processor works on a leaf, 1 unless given.
const SLOWER: &str = "slower";

/// The setting that says whether others who touch the memory are noticed, true unless given. To open the memory for each leaf and
/// to close it takes as long as its pages are many, up to 2 ms for 64 MiB; a device that computes beside others has no such cost.
const GUARD: &str = "guard";

/// The driver of emulated devices.
pub struct DeviceDriver;

/// Makes machine files and runs know the driver, and the machines `device` and `cpu+device`.
///
/// # Errors
/// Another driver has its name.
pub fn register() -> Result<(), MachineError> {
    multigrain::driver::register(Arc::new(DeviceDriver))?;
    Machine::ship("device", include_str!("../device.toml"));
    Machine::ship("cpu+device", include_str!("../cpu+device.toml"));
    Ok(())
}

pub(crate) fn fault(what: String) -> StoreError {
    StoreError::Driver { driver: FACTS.name.into(), what }
}

impl Driver for DeviceDriver {
    fn facts(&self) -> &'static DriverFacts {
        &FACTS
    }

    fn reserve(&self, site: &Site<'_>) -> Result<Option<Box<dyn Child>>, StoreError> {
        let number = |key: &str| -> Result<Option<u64>, StoreError> {
            let Some(value) = site.memory.setting(key) else { return Ok(None) };
            let number = value.parse().ok().filter(|&number| number > 0);
            let wrong =
                || fault(format!("{key} = {value} in memory {}: a number from 1 on is needed", site.memory.name));
            number.map(Some).ok_or_else(wrong)
        };
        let (count, fails, slower) = (number(STREAMS)?.unwrap_or(2), number(FAIL)?, number(SLOWER)?.unwrap_or(1));
        let share = |bytes_per_second: f64| bytes_per_second / site.memory.count as f64;
        let pace = Pace {
            read_bytes_per_second: share(site.edge.read_bytes_per_second),
            write_bytes_per_second: share(site.edge.write_bytes_per_second),
            latency_ns: site.edge.latency_ns,
        };
        let guarded = match site.memory.setting(GUARD) {
            None | Some("true") => true,
            Some("false") => false,
            Some(other) => {
                return Err(fault(format!(
                    "{GUARD} = {other} in memory {}: true or false is needed",
                    site.memory.name
                )));
            }
        };
        let arena = Arc::new(Arena::new(site.memory.capacity_bytes.min(site.bytes.max(1)), guarded)?);
        let streams = Streams::new(Arc::clone(&arena), count.min(STREAMS_MAX) as usize, pace, fails)?;
        let processor = Processor::new(Arc::clone(&arena), slower)?;
        Ok(Some(Box::new(Device { arena, streams, processor })))
    }
}

/// More do not overlap more.
const STREAMS_MAX: u64 = 64;

/// One device. Its threads end with it, before the arena does.
struct Device {
    arena: Arc<Arena>,
    streams: Streams,
    processor: Processor,
}

// SAFETY: the arena is its own and outlives the streams, which check that blocks lie in it; a receipt waits for its stream.
unsafe impl Child for Device {
    fn span(&self) -> Span {
        Span { start: self.arena.start(), len_bytes: self.arena.len() as u64 }
    }

    unsafe fn issue(&self, transfer: &Transfer<'_>) -> Result<Option<Box<dyn Receipt>>, StoreError> {
        self.streams.issue(transfer).map(Some)
    }

    unsafe fn run(&self, leaf: &mut (dyn FnMut() + Send)) -> std::thread::Result<()> {
        self.processor.run(leaf)
    }
}
