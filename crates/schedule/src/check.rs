//! Proves schedules: nobody leaves early, nobody waits for ever, every byte arrives once, contributions are combined
//! once each and in the stated order, and consecutive operations do not mix.
//!
//! Two proofs that share only the meaning of the steps:
//!
//! - [`happens_before`] executes one interleaving with vector clocks (Mattern 1989) and proves from it the same for
//!   all others. A list of steps has no choices: if every bit is cleared, in the order of causes, before it is set again,
//!   then no signal is ever lost, every interleaving has the same causes and effects, and so the same partial order; if
//!   furthermore any two accesses to one area of which one writes are ordered in it, all interleavings read the same
//!   values. It takes time proportional to the steps and the group, so it serves groups of any size.
//! - [`every_interleaving`] does not rely on that argument: it visits every reachable state, in which also each
//!   transfer may happen at any time between its start and the step that waits for it. It serves small groups.
//!
//! [`messages`] gives scripts of messages to both.
//!
//! The steps of a sequence of operations are checked together, as one group executes them one after the other.

mod explore;
pub mod messages;
mod ordered;
mod program;
mod value;

pub use explore::{Explored, every_interleaving};
pub use ordered::happens_before;
pub use program::Transfers;

use thiserror::Error;

/// What is wrong with a schedule, and where it shows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("rank {rank}, round {round}, step {step}: {what}")]
pub struct Fault {
    /// Who meets it.
    pub rank: u32,
    /// In which round, counted over the sequence.
    pub round: u32,
    /// At which step of the round, from 1; 0 on entering, one more than the steps on leaving.
    pub step: u32,
    /// What is wrong.
    pub what: Wrong,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Error)]
pub enum Wrong {
    /// Waits for ever.
    #[error("waits for a bit that nobody is going to set")]
    Stuck,
    /// A signal that is lost, or might be.
    #[error("sets a bit at {at} that may not have been cleared yet")]
    SetTwice {
        /// Whose register.
        at: u32,
    },
    /// A bit of another round or sender.
    #[error("takes the bit of {sender} in round {round} for that of {expected} in this round")]
    Mixed {
        /// Who set the bit.
        sender: u32,
        /// When.
        round: u32,
        /// Who was awaited.
        expected: u32,
    },
    /// Left before `rank` has entered.
    #[error("may leave before {rank} has entered")]
    LeavesEarly {
        /// Who is missing.
        rank: u32,
    },
    /// Two accesses to one area without an order, one of which writes.
    #[error("accesses an area of {owner} that {other} may be accessing at the same time")]
    Race {
        /// Whose area.
        owner: u32,
        /// Who else.
        other: u32,
    },
    /// A combination or transfer of what has not arrived.
    #[error("uses an area that nothing of this round lies in")]
    Empty,
    /// The same bytes transferred again.
    #[error("transfers to an area of {owner} that something was transferred to in this round already")]
    ArrivesTwice {
        /// Whose area.
        owner: u32,
    },
    /// Wrong bytes, contributions missing, doubled, or combined in another order than stated.
    #[error("leaves with a wrong result")]
    WrongResult,
    /// A transfer nobody waits for.
    #[error("leaves while a transfer of its own is under way")]
    LeavesTransfer,
    /// A bit that is set when everything is over.
    #[error("has a bit set that nobody awaited")]
    LeftOver,
    /// The participants do not execute the same number of rounds.
    #[error("executes other rounds than the rest of the group")]
    OtherRounds,
    /// The two ends of a message that do not fit each other.
    #[error("exchanges a message with {with} whose ends differ in their blocks")]
    Unlike {
        /// Who has the other end.
        with: u32,
    },
    /// Pieces outside of areas, messages to oneself, blocks that two messages of a round touch, a contribution that is
    /// overwritten.
    #[error("cannot be followed: pieces are outside of their areas, or are written while they are used")]
    Malformed,
    /// More states than were allowed.
    #[error("has too many states to visit them all")]
    TooManyStates,
}
