//! The algorithms, and what each performs.

use super::{Operation, nodes};
use crate::{Order, ScheduleError, Topology};
use std::fmt;
use std::str::FromStr;

/// How messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Everybody signals whoever is 1, 2, 4 ... further (Hensgen, Finkel, Manber 1988).
    Dissemination,
    /// A binomial tree from the root; of reductions the canonical tree, each of whose nodes is one message.
    Binomial,
    /// The root's blocks are scattered down a binomial tree, then go round a ring (van de Geijn; Thakur, Rabenseifner,
    /// Gropp, IJHPCA 19, 2005).
    ScatterRing,
    /// Pairs at distances 1, 2, 4 ... hand each other all they have.
    Doubling,
    /// Rabenseifner's: pairs at distances 1, 2, 4 ... divide what they have left to combine, then hand back. The nearest
    /// first, so that operands are neighbours in the canonical tree.
    Halving,
    /// Blocks go round, combined on their way.
    Ring,
    /// Each rank is sent all contributions to its own block and combines them by the tree; then blocks are gathered. As few
    /// bytes as a ring, in the fixed order.
    Direct,
    /// Distances 1, 2, 4 ... in one direction, for any number of ranks (Bruck et al., IEEE TPDS 8, 1997).
    Bruck,
    /// One partner after the other.
    Pairwise,
    /// All partners at once.
    Linear,
    /// One rank of each node speaks for it, so that few messages cross between nodes.
    ByNode,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 11] = [
        Algorithm::Dissemination,
        Algorithm::Binomial,
        Algorithm::ScatterRing,
        Algorithm::Doubling,
        Algorithm::Halving,
        Algorithm::Ring,
        Algorithm::Direct,
        Algorithm::Bruck,
        Algorithm::Pairwise,
        Algorithm::Linear,
        Algorithm::ByNode,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Dissemination => "dissemination",
            Algorithm::Binomial => "binomial",
            Algorithm::ScatterRing => "scatter-ring",
            Algorithm::Doubling => "doubling",
            Algorithm::Halving => "halving",
            Algorithm::Ring => "ring",
            Algorithm::Direct => "direct",
            Algorithm::Bruck => "bruck",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Linear => "linear",
            Algorithm::ByNode => "by-node",
        }
    }

    /// Those that perform an operation among these ranks.
    pub fn performing(operation: Operation, topology: &Topology) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.into_iter().filter(move |algorithm| algorithm.performs(operation, topology).is_ok())
    }

    /// Whether it performs an operation among these ranks.
    ///
    /// # Errors
    /// [`ScheduleError::WrongAlgorithm`] with the reason.
    pub fn performs(self, operation: Operation, topology: &Topology) -> Result<(), ScheduleError> {
        use Algorithm::*;
        let refuse = |why| {
            let (algorithm, operation) = (self.name().to_owned(), operation.name());
            Err(ScheduleError::WrongAlgorithm { algorithm, operation, why })
        };
        let power = topology.size().is_power_of_two();
        match (operation, self) {
            (_, ByNode) if nodes(topology).len() < 2 => refuse("its ranks are all on one node"),
            (_, ByNode)
            | (Operation::Barrier, Dissemination)
            | (Operation::Broadcast { .. }, Binomial | ScatterRing)
            | (Operation::Reduce { .. }, Binomial | Direct)
            | (Operation::Allreduce { .. }, Doubling | Direct)
            | (Operation::Allgather, Ring | Bruck)
            | (Operation::Alltoall, Pairwise | Bruck | Linear) => Ok(()),
            (Operation::Allreduce { .. }, Halving) | (Operation::Allgather, Doubling) if power => Ok(()),
            (Operation::Allreduce { .. }, Halving) | (Operation::Allgather, Doubling) => {
                refuse("the number of ranks is no power of two")
            }
            (Operation::Allreduce { order: Order::Free(_) }, Ring) => Ok(()),
            (Operation::Allreduce { .. }, Ring) => {
                refuse("it adds in the order of the ring, which begins elsewhere for each block; take 'direct'")
            }
            _ => refuse("it performs other operations"),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Algorithm, ScheduleError> {
        let found = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == text);
        found.ok_or_else(|| {
            let known = Algorithm::ALL.map(Algorithm::name).join(", ");
            ScheduleError::UnknownMessageAlgorithm { text: text.to_owned(), known }
        })
    }
}
