//! Collective operations between ranks that send each other messages: what each rank does, as data.
//!
//! In comes a [`Request`]: operation, algorithm, the ranks and the nodes that they live on. Out come [`Scripts`], for each
//! rank a list of [`Round`]s: messages that are begun together and all waited for, then combinations and copies in the
//! rank's own memory. A round of libNBC's schedules is the same (Hoefler, Lumsdaine, Rehm, "Implementation and performance
//! analysis of non-blocking collective operations for MPI", SC 2007). Between two ranks messages arrive in the order in
//! which they were sent. Scripts count blocks, not bytes, so one serves every size ([`Payload`] says how long a block is).
//!
//! ```text
//! area 0   what the rank contributes; broadcasts and all-gathers happen in it
//! area 1   what it receives, of the other operations
//! area 2.. scratch, each for a range of blocks
//! ```
//!
//! [`crate::check::messages`] proves scripts, [`Costs`] prices them, [`choose`] takes the cheapest. Reductions combine by
//! the canonical tree ([`crate::Span`]), but for algorithms that cannot, which ask for [`Order::Free`].

mod algorithm;
mod build;
mod cost;
mod exchanges;
mod gathers;
mod levels;
mod reductions;
mod rooted;

pub use algorithm::Algorithm;
pub use cost::{Candidate, Costs, Tier, choose};

use crate::check::Wrong;
use crate::topology::members;
use crate::{Domain, Order, ScheduleError, Topology};
use build::Build;
use std::fmt;
use std::ops::Range;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Nobody leaves before everybody has entered.
    Barrier,
    /// The root's blocks reach everybody.
    Broadcast {
        /// Whose.
        root: u32,
    },
    /// Everybody's blocks are combined, block by block, for the root.
    Reduce {
        /// For whom.
        root: u32,
        /// Which operand is combined with which.
        order: Order,
    },
    /// Everybody's blocks are combined, block by block, for everybody.
    Allreduce {
        /// Which operand is combined with which.
        order: Order,
    },
    /// Block r of rank r reaches everybody.
    Allgather,
    /// Block d of rank r becomes block r of rank d.
    Alltoall,
}

impl Operation {
    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Barrier => "barrier",
            Operation::Broadcast { .. } => "broadcast",
            Operation::Reduce { .. } => "reduce",
            Operation::Allreduce { .. } => "allreduce",
            Operation::Allgather => "all-gather",
            Operation::Alltoall => "all-to-all",
        }
    }

    /// Whether it happens in area 0, which then holds the result too.
    pub const fn in_place(self) -> bool {
        matches!(self, Operation::Broadcast { .. } | Operation::Allgather)
    }

    /// Whether there is a block a rank, all of one length, which may stand in for each other.
    pub const fn uniform(self) -> bool {
        matches!(self, Operation::Allgather | Operation::Alltoall)
    }

    /// The root, where there is one.
    pub const fn root(self) -> Option<u32> {
        match self {
            Operation::Broadcast { root } | Operation::Reduce { root, .. } => Some(root),
            _ => None,
        }
    }

    /// In which order it combines, if it does.
    pub const fn order(self) -> Option<Order> {
        match self {
            Operation::Reduce { order, .. } | Operation::Allreduce { order } => Some(order),
            _ => None,
        }
    }

    /// Which area holds the result of a rank, if it gets one.
    pub fn result(self, rank: u32) -> Option<u32> {
        match self {
            Operation::Barrier => None,
            Operation::Broadcast { .. } | Operation::Allgather => Some(0),
            Operation::Reduce { root, .. } => (rank == root).then_some(1),
            Operation::Allreduce { .. } | Operation::Alltoall => Some(1),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What scripts are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub operation: Operation,
    /// How.
    pub algorithm: Algorithm,
    /// The ranks; its outermost domains are nodes.
    pub topology: Topology,
}

/// Blocks `first..end` of an area of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Which area.
    pub area: u32,
    /// The first block.
    pub first: u32,
    /// One more than the last.
    pub end: u32,
}

impl Piece {
    /// How many blocks.
    pub const fn blocks(self) -> u32 {
        self.end - self.first
    }

    fn overlaps(self, other: Piece) -> bool {
        self.area == other.area && self.first < other.end && other.first < self.end
    }
}

/// A message, as the one end of it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The rank at the other end.
    pub with: u32,
    /// What is sent, or where it goes, in the order of the bytes of the message. Nothing: the message is a signal.
    pub pieces: Vec<Piece>,
}

/// What a rank does in its own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// `into` = `left` (+) `right`, element by element; `into` may be one of them.
    Combine {
        /// Where it goes.
        into: Piece,
        /// The operand of the lower ranks.
        left: Piece,
        /// The operand of the higher ranks.
        right: Piece,
    },
    /// `into` = `from`.
    Copy {
        /// Where it goes.
        into: Piece,
        /// What.
        from: Piece,
    },
}

/// Messages that are begun together; when all are over, what is done with what has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// What the rank sends.
    pub sends: Vec<Message>,
    /// What it receives.
    pub receives: Vec<Message>,
    /// What it does then, in this order.
    pub then: Vec<Local>,
}

/// What one rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Which rank.
    pub rank: u32,
    /// Its rounds, one after the other.
    pub rounds: Vec<Round>,
    /// The blocks that each of its areas has room for.
    pub areas: Vec<Range<u32>>,
}

/// What all ranks do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    /// What they perform.
    pub request: Request,
    /// How many blocks there are: with [`Operation::uniform`] one a rank, of a barrier none.
    pub blocks: u32,
    /// Of each rank.
    pub ranks: Vec<Script>,
}

/// How long the blocks are: `elements` elements are cut into blocks of whole elements, as even as can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Elements of all blocks together.
    pub elements: u64,
    /// Bytes of one.
    pub element_bytes: u64,
}

impl Payload {
    /// Where block `block` of `blocks` begins, in elements.
    pub const fn begin(self, block: u32, blocks: u32) -> u64 {
        match blocks {
            0 => 0,
            _ => (self.elements as u128 * block as u128 / blocks as u128) as u64,
        }
    }

    /// Bytes of the blocks of a piece.
    pub const fn bytes(self, piece: Piece, blocks: u32) -> u64 {
        (self.begin(piece.end, blocks) - self.begin(piece.first, blocks)) * self.element_bytes
    }
}

impl Script {
    /// Whether the rank can follow it at all: pieces lie in areas, messages are to others, no two messages of a round touch
    /// the same blocks but to read them, and what was contributed stays unless the operation happens in it.
    ///
    /// # Errors
    /// The round, counted from 1, and what is wrong with it.
    pub fn well_formed(&self, operation: Operation, ranks: u32) -> Result<(), (u32, Wrong)> {
        let inside = |piece: &Piece| {
            let blocks = self.areas.get(piece.area as usize);
            let there = piece.area != 1 || !operation.in_place();
            there && blocks.is_some_and(|b| b.start <= piece.first && piece.first <= piece.end && piece.end <= b.end)
        };
        let written = |piece: &Piece| inside(piece) && (piece.area != 0 || operation.in_place());
        for (round, at) in self.rounds.iter().zip(1..) {
            let others = |m: &Message| m.with != self.rank && m.with < ranks;
            let sent = round.sends.iter().flat_map(|m| &m.pieces);
            let received: Vec<&Piece> = round.receives.iter().flat_map(|m| &m.pieces).collect();
            let apart = received.iter().enumerate().all(|(i, piece)| {
                received[..i].iter().all(|other| !piece.overlaps(**other)) && sent.clone().all(|s| !s.overlaps(**piece))
            });
            let then = round.then.iter().all(|local| match *local {
                Local::Combine { into, left, right } => {
                    let alike = |p: Piece| p.blocks() == into.blocks() && (p == into || !p.overlaps(into));
                    [left, right].iter().all(|p| inside(p) && alike(*p)) && written(&into)
                }
                Local::Copy { into, from } => {
                    inside(&from) && written(&into) && from.blocks() == into.blocks() && !from.overlaps(into)
                }
            });
            let messages = round.sends.iter().chain(&round.receives).all(others);
            if !(messages && apart && then && sent.clone().all(inside) && received.iter().all(|p| written(p))) {
                return Err((at, Wrong::Malformed));
            }
        }
        Ok(())
    }
}

/// The nodes of a topology: the ranks of each of its outermost domains.
pub(crate) fn nodes(topology: &Topology) -> Vec<Range<u32>> {
    match topology.root() {
        Domain::Members(n) => std::iter::once(0..*n).collect(),
        Domain::Domains(inner) => {
            let ends = inner.iter().scan(0, |end, domain| {
                let first = *end;
                *end += members(domain);
                Some(first..*end)
            });
            ends.collect()
        }
    }
}

/// What all ranks do.
///
/// # Errors
/// The root is outside of the group, or the algorithm does not perform the operation there.
pub fn scripts(request: &Request) -> Result<Scripts, ScheduleError> {
    let (operation, n) = (request.operation, request.topology.size());
    if let Some(root) = operation.root().filter(|&root| root >= n) {
        return Err(ScheduleError::OutsideGroup { what: "root", rank: root, last: n - 1 });
    }
    request.algorithm.performs(operation, &request.topology)?;
    let blocks = match (operation, request.algorithm) {
        (Operation::Barrier, _) => 0,
        (Operation::Allgather | Operation::Alltoall, _) => n,
        (_, Algorithm::ScatterRing | Algorithm::Halving | Algorithm::Ring | Algorithm::Direct) => n,
        _ => 1,
    };
    let mut build = Build::new(n, blocks);
    let nodes = nodes(&request.topology);
    match (operation, request.algorithm) {
        (Operation::Barrier, Algorithm::ByNode) => levels::barrier(&mut build, &nodes),
        (Operation::Barrier, _) => rooted::dissemination(&mut build, &(0..n).collect::<Vec<_>>()),
        (Operation::Broadcast { root }, Algorithm::ByNode) => levels::broadcast(&mut build, &nodes, root),
        (Operation::Broadcast { root }, Algorithm::ScatterRing) => rooted::scatter_ring(&mut build, root),
        (Operation::Broadcast { root }, _) => {
            rooted::down(&mut build, &rooted::from_root(0..n, root), 0);
        }
        (Operation::Reduce { root, order }, Algorithm::ByNode) => levels::reduce(&mut build, &nodes, root, order),
        (Operation::Reduce { root, .. }, Algorithm::Direct) => reductions::direct_reduce(&mut build, root),
        (Operation::Reduce { root, .. }, _) => reductions::tree(&mut build, root),
        (Operation::Allreduce { order }, Algorithm::ByNode) => levels::allreduce(&mut build, &nodes, order),
        (Operation::Allreduce { .. }, Algorithm::Direct) => reductions::direct_allreduce(&mut build),
        (Operation::Allreduce { .. }, Algorithm::Halving) => reductions::halving(&mut build),
        (Operation::Allreduce { .. }, Algorithm::Ring) => reductions::ring(&mut build),
        (Operation::Allreduce { order }, _) => reductions::doubling(&mut build, order),
        (Operation::Allgather, Algorithm::ByNode) => levels::allgather(&mut build, &nodes),
        (Operation::Allgather, Algorithm::Bruck) => gathers::bruck(&mut build),
        (Operation::Allgather, Algorithm::Doubling) => gathers::doubling(&mut build),
        (Operation::Allgather, _) => {
            gathers::ring(&mut build, 0, &(0..n).map(|r| r..r + 1).collect::<Vec<_>>(), &(0..n).collect::<Vec<_>>())
        }
        (Operation::Alltoall, Algorithm::ByNode) => levels::alltoall(&mut build, &nodes),
        (Operation::Alltoall, Algorithm::Bruck) => exchanges::bruck(&mut build),
        (Operation::Alltoall, Algorithm::Linear) => exchanges::linear(&mut build),
        (Operation::Alltoall, _) => exchanges::pairwise(&mut build),
    }
    Ok(Scripts { request: request.clone(), blocks, ranks: build.finish() })
}
