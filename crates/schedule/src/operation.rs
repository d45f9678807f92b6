//! What is to be done, and what an operator allows.

use crate::ScheduleError;
use std::fmt;

/// Which collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Nobody leaves before everybody has entered.
    Barrier,
    /// The root's bytes reach everybody.
    Broadcast,
    /// Everybody's elements are combined, one by one, for the root.
    Reduce,
    /// Everybody's elements are combined, one by one, for everybody.
    Allreduce,
}

impl Kind {
    /// All kinds, the cheapest first.
    pub const ALL: [Kind; 4] = [Kind::Barrier, Kind::Broadcast, Kind::Reduce, Kind::Allreduce];

    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Barrier => "barrier",
            Kind::Broadcast => "broadcast",
            Kind::Reduce => "reduce",
            Kind::Allreduce => "allreduce",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An operation with its sizes. All of them synchronise (nobody leaves before everybody has entered), but for broadcasts
/// and reductions by an eager algorithm, whose participants leave when they have what they get and have given what they
/// give. An operation on zero bytes is a barrier by another name, whatever the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// See [`Kind::Barrier`].
    Barrier,
    /// See [`Kind::Broadcast`].
    Broadcast {
        /// Whose bytes.
        root: u32,
        /// How many.
        bytes: u64,
    },
    /// See [`Kind::Reduce`].
    Reduce {
        /// Who gets the result.
        root: u32,
        /// Bytes of one contribution, and of the result.
        bytes: u64,
        /// Bytes of an element; segments hold whole elements.
        element_bytes: u64,
        /// Which operand is combined with which.
        order: Order,
    },
    /// See [`Kind::Allreduce`].
    Allreduce {
        /// Bytes of one contribution, and of the result.
        bytes: u64,
        /// Bytes of an element; segments hold whole elements.
        element_bytes: u64,
        /// Which operand is combined with which.
        order: Order,
    },
}

impl Operation {
    /// Which operation it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Operation::Barrier => Kind::Barrier,
            Operation::Broadcast { .. } => Kind::Broadcast,
            Operation::Reduce { .. } => Kind::Reduce,
            Operation::Allreduce { .. } => Kind::Allreduce,
        }
    }

    /// Bytes of a contribution or message; 0 for a barrier.
    pub const fn bytes(&self) -> u64 {
        match *self {
            Operation::Barrier => 0,
            Operation::Broadcast { bytes, .. }
            | Operation::Reduce { bytes, .. }
            | Operation::Allreduce { bytes, .. } => bytes,
        }
    }

    /// The root, where the operation has one.
    pub const fn root(&self) -> Option<u32> {
        match *self {
            Operation::Broadcast { root, .. } | Operation::Reduce { root, .. } => Some(root),
            Operation::Barrier | Operation::Allreduce { .. } => None,
        }
    }

    /// Bytes that may not be torn apart: an element, or one byte.
    pub(crate) const fn element_bytes(&self) -> u64 {
        match *self {
            Operation::Reduce { element_bytes, .. } | Operation::Allreduce { element_bytes, .. } => element_bytes,
            Operation::Barrier | Operation::Broadcast { .. } => 1,
        }
    }

    /// In which order a reduction combines.
    pub(crate) const fn order(&self) -> Order {
        match *self {
            Operation::Reduce { order, .. } | Operation::Allreduce { order, .. } => order,
            Operation::Barrier | Operation::Broadcast { .. } => Order::Fixed,
        }
    }
}

/// Which operands of a reduction are combined with which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By the canonical tree over ranks, which depends on the number of participants and on nothing else: see
    /// [`crate::Span`]. The result is the same for every algorithm, topology and root.
    #[default]
    Fixed,
    /// As the algorithm likes, which sends fewer partial results. Only for operators that are associative and
    /// commutative: made by [`Laws::reordered`].
    Free(Reorderable),
}

/// Says that the operator's laws allow reordering; made by [`Laws::reordered`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorderable(());

/// What an operator declares about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Laws {
    /// (a b) c = a (b c), to the bit.
    pub associative: bool,
    /// a b = b a, to the bit.
    pub commutative: bool,
}

impl Laws {
    /// The order that lets the algorithm choose, for an operator called `operator` in the refusal.
    ///
    /// # Errors
    /// [`ScheduleError::Reordered`] unless the operator is associative and commutative.
    pub fn reordered(self, operator: &str) -> Result<Order, ScheduleError> {
        let laws = match (self.associative, self.commutative) {
            (true, true) => return Ok(Order::Free(Reorderable(()))),
            (false, true) => "not associative",
            (true, false) => "not commutative",
            (false, false) => "neither associative nor commutative",
        };
        Err(ScheduleError::Reordered { operator: operator.to_owned(), laws })
    }

    /// The cheapest order that gives one result: free where the laws allow it, else fixed.
    pub fn order(self) -> Order {
        self.reordered("").unwrap_or(Order::Fixed)
    }
}
