//! Why there is no schedule.

use thiserror::Error;

/// A refusal: the request has no schedule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// A topology without participants, or with a domain that has none.
    #[error("a group needs at least one participant in every domain; domain {domain} of the topology has none")]
    EmptyDomain {
        /// The domain, counted from 0 in the order of ranks.
        domain: usize,
    },
    /// More participants than a rank can name, or than the places of a topology.
    #[error("a group of {asked} was asked for, but {what} holds at most {limit}")]
    GroupTooLarge {
        /// Participants asked for.
        asked: u64,
        /// Participants that are possible.
        limit: u64,
        /// What sets the limit.
        what: &'static str,
    },
    /// A root or rank that is not in the group.
    #[error("{what} {rank} is outside the group: its ranks are 0 to {last}")]
    OutsideGroup {
        /// "root" or "rank".
        what: &'static str,
        /// The rank asked for.
        rank: u32,
        /// The largest rank.
        last: u32,
    },
    /// An algorithm that does not perform this operation, or not in this form.
    #[error("{algorithm} is no algorithm for a {operation}: {why}")]
    WrongAlgorithm {
        /// Algorithm asked for.
        algorithm: String,
        /// Operation asked for.
        operation: &'static str,
        /// What it can do, or what to ask for.
        why: &'static str,
    },
    /// A name that is no algorithm's.
    #[error(
        "'{text}' names no algorithm; write ATO, TT(d), BT or PE, then Bar, Bcast, Red or Allred, then B for the blade \
         variant, then _Opt for the optimised or _Eager for the eager one, as in TTBcastB_Opt(2)"
    )]
    UnknownAlgorithm {
        /// The name.
        text: String,
    },
    /// A name that is no message algorithm's.
    #[error("'{text}' names no algorithm for messages; there are {known}")]
    UnknownMessageAlgorithm {
        /// The name.
        text: String,
        /// Those that there are.
        known: String,
    },
    /// A tree whose nodes have no children.
    #[error("a tree of degree {degree} cannot hold a group; its degree is 1 to {limit}")]
    Degree {
        /// Degree asked for.
        degree: u32,
        /// Largest degree.
        limit: u32,
    },
    /// The buffer holds less than one element for each area that the schedule needs.
    #[error(
        "{algorithm} needs {areas} areas of at least {least} bytes each in the buffer of a participant, which has \
         {buffer_bytes} bytes; give it at least {need} bytes, or choose an algorithm with fewer senders a receiver"
    )]
    BufferTooSmall {
        /// Algorithm asked for.
        algorithm: String,
        /// Areas that a participant's buffer must hold.
        areas: u64,
        /// Bytes of the smallest area.
        least: u64,
        /// Bytes of the buffer.
        buffer_bytes: u64,
        /// Bytes that would do.
        need: u64,
    },
    /// A payload that does not consist of whole elements.
    #[error("{bytes} bytes are not a whole number of elements of {element_bytes} bytes")]
    PartElement {
        /// Bytes of the payload.
        bytes: u64,
        /// Bytes of an element.
        element_bytes: u64,
    },
    /// An operator that is not associative and commutative, asked to be reordered.
    #[error(
        "{operator} is {laws}, so reordering its operands would change the result; ask for the fixed order, which every \
         algorithm keeps"
    )]
    Reordered {
        /// Operator.
        operator: String,
        /// Which law it lacks, in words.
        laws: &'static str,
    },
    /// More senders than the registers have bits.
    #[error(
        "a participant of this schedule awaits {bits} senders, but {registers} registers with halves of {half_bits} bits \
         tell {limit} apart; take more registers, or an algorithm with fewer senders a receiver"
    )]
    TooFewBits {
        /// Bits that the schedule uses in one half.
        bits: u32,
        /// Registers of a participant.
        registers: u32,
        /// Bits in half a register.
        half_bits: u32,
        /// Senders that can be told apart.
        limit: u64,
    },
}
