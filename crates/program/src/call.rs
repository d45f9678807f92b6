//! What is known of a call before it is executed: parameters, arguments, lengths, and what it costs.

use crate::{Args, ElementType, Scalars, Shape};
use smallvec::SmallVec;

/// What a task does with a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// The region is read.
    Read,
    /// Every element of the region is written, none is read before.
    Write,
    /// The region is read and written.
    Update,
    /// Sub-calls contribute to the region; it ends as what an associative operator combines their contributions to by
    /// a fixed tree. Seen from outside every element is written and none is read before.
    Reduce,
}

impl Access {
    /// Whether the old content is needed.
    pub fn reads(self) -> bool {
        matches!(self, Access::Read | Access::Update)
    }

    /// Whether new content is produced.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// A declared parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name, for messages.
    pub name: &'static str,
    /// What the task does with it.
    pub access: Access,
    /// Type of the elements.
    pub element: ElementType,
    /// Number of dimensions.
    pub rank: usize,
}

/// A task applied to regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Number of the task in its scope.
    pub task: u32,
    /// Regions, in the order of the task's parameters.
    pub args: Args,
    /// Scalar arguments.
    pub scalars: Scalars,
}

impl Call {
    /// Shapes and scalars of the call.
    pub fn shape(&self) -> CallShape {
        CallShape { shapes: self.args.iter().map(|a| a.region.shape()).collect(), scalars: self.scalars.clone() }
    }
}

/// The shapes and scalars of a call: all that splitting, costing and caching may depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallShape {
    /// Shape of each argument, in declared order.
    pub shapes: SmallVec<[Shape; 3]>,
    /// Scalar arguments.
    pub scalars: Scalars,
}

/// What a call costs, whatever the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes of arguments touched at least once.
    pub bytes: f64,
}

/// A lower bound on the bytes that must cross the edge above a memory of a given capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoBound {
    /// Bytes from the parent to the child.
    pub bytes_down: u64,
    /// Bytes from the child to the parent.
    pub bytes_up: u64,
}

/// A named number by which an inner variant splits: block length along one axis of the iteration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Name, as it stands in a mapping.
    pub name: &'static str,
    /// Length of the axis: the largest useful value.
    pub extent: u64,
    /// Values are multiples of this, or the extent itself. What fixes places in the iteration space (where partial
    /// sums end) is stated here, so that no mapping can move it.
    pub multiple: u64,
}

/// The loops of a split, from the outermost to the innermost: the axis, and the length of its blocks there. An axis may
/// stand twice (blocks of blocks); one that is missing is whole. For a task without [notation](crate::Task::notation) they are
/// values of its tunables, and their order means nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tunables {
    loops: SmallVec<[(&'static str, u64); 5]>,
    /// Whether all tunables of a task are there, so that another name is none.
    complete: bool,
}

impl Tunables {
    /// No values: every tunable takes its extent.
    pub fn new() -> Tunables {
        Tunables::default()
    }

    /// Sets the value of a tunable: that of its innermost loop, or of a new one inside all others.
    pub fn set(&mut self, name: &'static str, value: u64) {
        match self.loops.iter_mut().rev().find(|(n, _)| *n == name) {
            Some(entry) => entry.1 = value,
            None => self.loops.push((name, value)),
        }
    }

    /// Adds a loop inside all others.
    pub fn push(&mut self, name: &'static str, value: u64) {
        self.loops.push((name, value));
    }

    /// The value of a tunable, or `extent` when none was chosen: the length of the blocks in its innermost loop.
    ///
    /// # Panics
    /// When a [split](crate::Task::split) asks for a tunable that its task does not have: a mistake in the task, not in its
    /// input.
    pub fn get(&self, name: &str, extent: u64) -> u64 {
        match self.loops.iter().rev().find(|(n, _)| *n == name) {
            Some(&(_, value)) => value.clamp(1, extent.max(1)),
            None if self.complete => {
                let names: Vec<&str> = self.loops.iter().map(|(name, _)| *name).collect();
                panic!("a split asks for the tunable {name}; its task has {}", names.join(", "))
            }
            None => extent,
        }
    }

    /// The same with the extents of all tunables that have no value.
    pub(crate) fn completed(&self, tunables: &[Tunable]) -> Tunables {
        let mut all = self.clone();
        let missing = tunables.iter().filter(|tunable| self.loops.iter().all(|(name, _)| *name != tunable.name));
        all.loops.extend(missing.map(|tunable| (tunable.name, tunable.extent)));
        all.complete = true;
        all
    }

    /// The loops.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, u64)> + '_ {
        self.loops.iter().copied()
    }
}

impl FromIterator<(&'static str, u64)> for Tunables {
    fn from_iter<I: IntoIterator<Item = (&'static str, u64)>>(loops: I) -> Tunables {
        Tunables { loops: loops.into_iter().collect(), complete: false }
    }
}
