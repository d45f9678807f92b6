//! What can be wrong with a machine, and where.

use crate::units::UnitError;
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// A machine that cannot be used: where, and why. The message names the file, the line where the text gives one, the
/// memory and the key.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{place}{problem}")]
pub struct MachineError {
    /// Where it is.
    pub place: Box<Place>,
    /// What it is.
    pub problem: Problem,
}

/// Where in a machine something is wrong; each part is given as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The file, as it was named by the caller.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<usize>,
    /// The name of the memory.
    pub memory: Option<String>,
    /// The key, with its table: `capacity`, `edge.read`.
    pub key: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}")?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            write!(f, ": ")?;
        }
        if let Some(memory) = &self.memory {
            write!(f, "memory \"{memory}\": ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        Ok(())
    }
}

/// What is wrong with a machine.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// What the operating system said.
        reason: String,
    },
    /// The text is not TOML.
    #[error("not TOML: {message}")]
    Syntax {
        /// What the TOML parser said.
        message: String,
    },
    /// A key that machine files do not have.
    #[error("unknown key; here can stand: {known}")]
    UnknownKey {
        /// The keys that can stand here.
        known: String,
    },
    /// A value of the wrong type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The type that is right, with an example.
        expected: String,
        /// The TOML type that was found.
        found: String,
    },
    /// A text that is not the right quantity.
    #[error(transparent)]
    Unit(UnitError),
    /// A driver that does not exist.
    #[error("unknown driver \"{found}\"; drivers: {known}")]
    UnknownDriver {
        /// The text that was found.
        found: String,
        /// What is registered.
        known: String,
    },
    /// Something that the driver of an edge is not told.
    #[error("driver \"{driver}\" has no setting \"{found}\"; settings: {known}")]
    UnknownSetting {
        /// The driver.
        driver: String,
        /// The key that was found.
        found: String,
        /// Those that it has.
        known: String,
    },
    /// A memory below one whose contents only its own processor can touch.
    #[error(
        "what lies in memory \"{parent}\" can be touched by its own processor alone (driver \"{driver}\"): no memory can lie below"
    )]
    BelowOwnProcessor {
        /// The memory above.
        parent: String,
        /// The driver of the edge above that.
        driver: String,
    },
    /// Two drivers of one name.
    #[error("another driver is registered as \"{name}\"")]
    DriverTaken {
        /// The name.
        name: String,
    },
    /// A kind of processor that does not exist.
    #[error("unknown kind of processor \"{found}\"; kinds: cpu, spe, gpu")]
    UnknownProcessor {
        /// The text that was found.
        found: String,
    },
    /// A scheduler that does not exist.
    #[error("unknown scheduler \"{found}\"; schedulers: {known}")]
    UnknownScheduler {
        /// The text that was found.
        found: String,
        /// Those that there are.
        known: String,
    },
    /// Contexts of a processor that there is not.
    #[error("contexts need a [memory.processor] to share")]
    ContextsWithout,
    /// A network where there is none.
    #[error("a network lies between the nodes of a cluster: it needs a [memory.edge] with driver = \"mpi\"")]
    NetworkWithout,
    /// A shape that does not exist.
    #[error("unknown shape \"{found}\"; shapes: crossbar, fat tree, torus, dragonfly")]
    UnknownShape {
        /// The text that was found.
        found: String,
    },
    /// A network that does not connect so many nodes.
    #[error("there are {nodes} nodes (count), but {found}; write {write}")]
    NetworkMisfit {
        /// Nodes that there are.
        nodes: usize,
        /// What the shape has.
        found: String,
        /// What would fit.
        write: String,
    },
    /// A key that must be given.
    #[error("missing; give it, for example {example}")]
    Missing {
        /// A line that would be right.
        example: &'static str,
    },
    /// A number outside its range.
    #[error("is {found}, but must be {expected}")]
    OutOfRange {
        /// The number.
        found: String,
        /// The range in words.
        expected: &'static str,
    },
    /// A name that is empty or has control characters.
    #[error("\"{found}\" is not a name; a name is one line and not empty")]
    BadName {
        /// The name, escaped.
        found: String,
    },
    /// No memory at all.
    #[error("no memory; a machine needs at least one [[memory]] table with name, capacity and [memory.processor]")]
    Empty,
    /// Every memory has a parent.
    #[error("no root: every memory has a parent ({}); leave out `parent` of the topmost one", .through.join(" -> "))]
    NoRoot {
        /// The names along the cycle that the parents form; the first is repeated at the end.
        through: Vec<String>,
    },
    /// Two memories without a parent.
    #[error("two roots, \"{first}\" and \"{second}\"; give one of them a `parent`")]
    TwoRoots {
        /// The first root.
        first: String,
        /// The second root.
        second: String,
    },
    /// Memories that are each other's parents.
    #[error("the parents form a cycle: {}", .through.join(" -> "))]
    Cycle {
        /// The names along the cycle; the first is repeated at the end.
        through: Vec<String>,
    },
    /// A parent that no memory is called.
    #[error("no memory is called \"{parent}\"; memories: {known}")]
    UnknownParent {
        /// The name that was given.
        parent: String,
        /// The names that there are.
        known: String,
    },
    /// A memory that was named by the caller, `root` or `replaces` and does not exist.
    #[error("no memory is called \"{name}\"; memories: {known}")]
    UnknownMemory {
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Two memories of one name.
    #[error("a second memory of this name{}; rename one of them", .first_line.map_or(String::new(), |line| format!(" (the first is in line {line})")))]
    DuplicateName {
        /// The line of the first, where known.
        first_line: Option<usize>,
    },
    /// A memory without children that has nothing to execute tasks.
    #[error("a memory without children needs a [memory.processor] to execute leaf tasks")]
    NoProcessor,
    /// The directory of a memory is not one.
    #[error("{} is not a directory; create it or name another", .path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// A path that TOML cannot hold.
    #[error("{} is not UTF-8 text; a machine file could not name it", .path.display())]
    PathNotText {
        /// The path.
        path: PathBuf,
    },
    /// An edge at the root.
    #[error("the root has no parent and so no edge; remove [memory.edge] or give a `parent`")]
    EdgeAtRoot,
    /// A count other than one at the root.
    #[error("is {found}, but there is one root")]
    CountAtRoot {
        /// The count.
        found: usize,
    },
    /// A memory that stands before its parent.
    #[error("stands before its parent; list parents before children")]
    ParentAfterChild,
    /// A base that does not exist.
    #[error(
        "unknown base \"{found}\"; a base is \"this computer\", the path of a machine file, or a shipped machine: {known}"
    )]
    UnknownBase {
        /// The text that was found.
        found: String,
        /// The names of those that are shipped.
        known: String,
    },
    /// Machine files that are each other's bases.
    #[error("the bases form a circle: {}", .through.join(" -> "))]
    BaseCircle {
        /// The files along the circle; the first is repeated at the end.
        through: Vec<String>,
    },
    /// `replaces` without a base.
    #[error("there is nothing to replace without a `base`")]
    NeedsBase,
    /// A memory whose arrays lie in files for one kind of children, and not for another.
    #[error(
        "memory \"{parent}\" keeps its arrays in files for \"{reader}\", which this driver cannot reach; put \"{other}\" below \
         a memory that reads files"
    )]
    FilesBesideOthers {
        /// The memory above.
        parent: String,
        /// Who reads files.
        reader: String,
        /// Who does not.
        other: String,
    },
    /// No shipped machine of this name.
    #[error("no shipped machine is called \"{name}\"; shipped: {known}")]
    UnknownShipped {
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Something that the operating system did not tell.
    #[error("cannot detect {what}: {reason}")]
    Detection {
        /// What was to be found.
        what: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// A measurement that failed.
    #[error("cannot measure {what}: {reason}")]
    Probe {
        /// What was to be measured.
        what: &'static str,
        /// What went wrong.
        reason: String,
    },
}

impl From<Problem> for MachineError {
    fn from(problem: Problem) -> MachineError {
        MachineError { place: Box::default(), problem }
    }
}

impl MachineError {
    /// The same error, in this file if it is in none yet.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> MachineError {
        self.place.file.get_or_insert_with(|| file.into());
        self
    }

    /// The same error, at this place of a file if it is in no file yet.
    pub(crate) fn at(self, file: &str, line: usize, key: &str) -> MachineError {
        match self.place.file {
            Some(_) => self,
            None => self.in_file(file).at_line(Some(line)).at_key(key),
        }
    }

    pub(crate) fn at_line(mut self, line: Option<usize>) -> MachineError {
        self.place.line = self.place.line.or(line);
        self
    }

    pub(crate) fn in_memory(mut self, memory: &str) -> MachineError {
        self.place.memory.get_or_insert_with(|| memory.into());
        self
    }

    pub(crate) fn at_key(mut self, key: &str) -> MachineError {
        self.place.key.get_or_insert_with(|| key.into());
        self
    }
}
