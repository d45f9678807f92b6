//! What moves bytes along edges: drivers, as a machine file names them and as planning knows them. A driver is a word and
//! facts; who acts on it is looked up by the word, in rooms above.

use crate::costs::Costs;
use crate::error::{MachineError, Problem};
use serde::{Serialize, Serializer};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{PoisonError, RwLock};

/// What everybody else needs to know of a driver, stated by itself. Nobody decides anything by its name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DriverFacts {
    /// The word in machine files.
    pub name: &'static str,
    /// Children address what lies in their parent: their blocks are views of it, and nothing is moved. Else blocks are
    /// copied into slots of the child.
    pub views: bool,
    /// The parent keeps arrays in files, and transfers go through buffers that are counted in the child's memory.
    pub files: bool,
    /// Transfers wait in the queue of a device: each of them and each of its fragments costs what [`Costs`] says, and it is
    /// worth having more in flight. Else a fragment costs the cache line that it touches besides its bytes.
    pub queued: bool,
    /// A transfer is over when it has been issued, since the worker itself copies.
    pub synchronous: bool,
    /// What is moved best as a whole, in bytes: slots of large memories lie at multiples of it and own what they touch of
    /// it, and long fragments lie in it as they do in the parent. 1: nothing.
    pub unit_bytes: u64,
    /// Children can hand blocks to each other (broadcasts).
    pub siblings: bool,
    /// The code of leaves lies in the child memory, and is counted there.
    pub code: bool,
    /// What lies in the child memory can be touched by a processor of its own alone: leaves are executed there, and no memory
    /// can lie below.
    pub own_processor: bool,
    /// Somebody can move bytes along such an edge on this computer. Else it is described, planned for and simulated.
    pub executable: bool,
    /// What bytes go through, as planner and simulator take it.
    pub wire: Wire,
    /// The keys of `[memory.settings]` that it understands.
    pub settings: &'static [&'static str],
    /// What moving costs besides bytes and latency where the machine file says nothing.
    pub costs: Costs,
}

/// What the bytes of an edge go through, for planner and simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// One bus a parent, which its children share.
    Bus,
    /// One device a parent, which serves one transfer after the other.
    Device,
    /// A link a child.
    Links,
    /// A link a child, whose memories together are the parent: a block that one child alone uses lies there already.
    Aggregate,
}

impl DriverFacts {
    /// Copies by the worker that needs them, into a memory that everybody can address: what is true of most, to be
    /// altered.
    pub const COPIES: DriverFacts = DriverFacts {
        name: "",
        views: false,
        files: false,
        queued: false,
        synchronous: true,
        unit_bytes: 1,
        siblings: false,
        code: false,
        own_processor: false,
        executable: true,
        wire: Wire::Bus,
        settings: &[],
        costs: Costs::NONE,
    };
}

/// What moves bytes along an edge: one of the drivers that are registered, with its facts.
#[derive(Clone, Copy)]
pub struct Driver(&'static DriverFacts);

impl Driver {
    /// Parent and child share one address space: views, no copies.
    pub const SHARED: Driver =
        Driver(&DriverFacts { name: "shared", views: true, synchronous: false, ..DriverFacts::COPIES });
    /// Groups of children of one parent, which keeps its arrays in files: nothing is moved between them and it.
    pub(crate) const SHARED_FILES: Driver =
        Driver(&DriverFacts { name: "shared", views: true, files: true, synchronous: false, ..DriverFacts::COPIES });
    /// Files, read and written by direct asynchronous I/O.
    pub const DISK: Driver = Driver(&DriverFacts {
        name: "disk",
        files: true,
        queued: true,
        synchronous: false,
        unit_bytes: 4096,
        wire: Wire::Device,
        costs: Costs::DISK,
        ..DriverFacts::COPIES
    });
    /// A worker's private arena, filled and emptied by copies.
    pub const LOCAL: Driver = Driver(&DriverFacts { name: "local", siblings: true, code: true, ..DriverFacts::COPIES });
    /// A GPU's memory. Described, not yet executable.
    pub const CUDA: Driver = Driver(&DriverFacts { name: "cuda", ..DriverFacts::DESCRIBED });
    /// The memories of the nodes of a cluster. Described, not yet executable.
    pub const MPI: Driver = Driver(&DriverFacts { name: "mpi", wire: Wire::Aggregate, ..DriverFacts::DESCRIBED });
    /// A link between two chips. Described, not yet executable.
    pub const LINK: Driver = Driver(&DriverFacts { name: "link", ..DriverFacts::DESCRIBED });

    /// Those that need no registration.
    const KNOWN: [Driver; 6] = [Driver::SHARED, Driver::DISK, Driver::LOCAL, Driver::CUDA, Driver::MPI, Driver::LINK];

    /// Makes a driver known to machine files that are read from here on. Registering the same again changes nothing.
    ///
    /// # Errors
    /// Another driver has the name, or it is none that a machine file could have.
    pub fn register(facts: &'static DriverFacts) -> Result<Driver, MachineError> {
        let (name, driver) = (facts.name, Driver(facts));
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return Err(Problem::BadName { found: name.escape_debug().to_string() }.into());
        }
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        match Driver::KNOWN.iter().chain(&*registered).find(|other| other.name == name) {
            Some(other) if *other.0 == *facts => {}
            Some(_) => return Err(Problem::DriverTaken { name: name.into() }.into()),
            None => registered.push(driver),
        }
        Ok(driver)
    }

    /// All that are registered, those of this room first.
    pub fn all() -> Vec<Driver> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        Driver::KNOWN.iter().chain(&*registered).copied().collect()
    }

    /// What it states of itself.
    pub const fn facts(self) -> &'static DriverFacts {
        self.0
    }

    /// The driver of this name.
    pub fn named(name: &str) -> Option<Driver> {
        Driver::all().into_iter().find(|driver| driver.name == name)
    }
}

static REGISTERED: RwLock<Vec<Driver>> = RwLock::new(Vec::new());

impl DriverFacts {
    /// What nobody can execute: a link of its own for each child, which works while the processor computes.
    const DESCRIBED: DriverFacts =
        DriverFacts { synchronous: false, siblings: true, executable: false, wire: Wire::Links, ..DriverFacts::COPIES };
}

impl Deref for Driver {
    type Target = DriverFacts;

    fn deref(&self) -> &DriverFacts {
        self.0
    }
}

/// Names are given once.
impl PartialEq for Driver {
    fn eq(&self, other: &Driver) -> bool {
        self.name == other.name
    }
}

impl Eq for Driver {}

impl Hash for Driver {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Serialize for Driver {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver({})", self.name)
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once() {
        static TAPE: DriverFacts = DriverFacts { name: "tape", ..DriverFacts::COPIES };
        static OTHER: DriverFacts = DriverFacts { name: "tape", views: true, ..DriverFacts::COPIES };
        static LOCAL: DriverFacts = DriverFacts { name: "local", ..DriverFacts::COPIES };
        static SPACE: DriverFacts = DriverFacts { name: "two words", ..DriverFacts::COPIES };
        assert_eq!(Driver::named("tape"), None);
        let tape = Driver::register(&TAPE).unwrap();
        assert_eq!(Driver::register(&TAPE).unwrap(), tape);
        assert_eq!(Driver::named("tape"), Some(tape));
        assert_eq!(Driver::all().iter().filter(|driver| driver.name == "tape").count(), 1);
        for taken in [&OTHER, &LOCAL] {
            let error = Driver::register(taken).unwrap_err().to_string();
            assert!(error.contains(taken.name) && error.contains("another"), "{error}");
        }
        assert!(Driver::register(&SPACE).is_err());
    }
}
