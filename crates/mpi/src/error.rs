//! What can go wrong before anything is on its way.

use multigrain_schedule::ScheduleError;
use multigrain_schedule::check::Wrong;
use thiserror::Error;

/// A refusal, or an operation whose ranks did not agree.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MpiError {
    /// MPI is started once a process.
    #[error("MPI was started in this process before: it can be started once, and not again after its end")]
    Again,
    /// MPI refused.
    #[error("{what}: {text}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// What it says.
        text: String,
    },
    /// A rank that does not exist.
    #[error("rank {rank} is outside of the group, whose ranks are 0 to {last}")]
    NoSuchRank {
        /// Rank asked for.
        rank: u32,
        /// The largest rank.
        last: u32,
    },
    /// A message of another length than was expected: the ranks do not execute the same.
    #[error(
        "rank {from} sent {came} bytes where {expected} were expected: do all ranks execute the same operation on as many \
         elements?"
    )]
    OtherLength {
        /// Who sent.
        from: u32,
        /// Bytes that came.
        came: u64,
        /// Bytes that were to come.
        expected: u64,
    },
    /// Elements that cannot be dealt out evenly, or buffers that do not go together.
    #[error("{operation} among {ranks} ranks: {what}")]
    Elements {
        /// Which operation.
        operation: &'static str,
        /// Ranks.
        ranks: u32,
        /// What is wrong, with the numbers.
        what: String,
    },
    /// Bytes outside of a window.
    #[error("{bytes} bytes from {offset} on are not in the window of rank {rank}, which has {has} bytes")]
    OutsideWindow {
        /// Whose window.
        rank: u32,
        /// Where they would begin.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Bytes of that window.
        has: u64,
    },
    /// There is no script.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A script that cannot be followed, which none is that was proved.
    #[error("{algorithm}, round {round}: {wrong}")]
    Script {
        /// By which algorithm.
        algorithm: &'static str,
        /// In which round.
        round: u32,
        /// What is wrong.
        wrong: Wrong,
    },
}
