//! The I/O thread: takes transfer lists, cuts them into operations, keeps the backend busy, completes tickets.
//!
//! One thread owns all state, so there are no locks between operations; `docs/transfers.md` names the states.

mod completing;
mod cut;
mod edges;
mod operation;
mod promptness;
mod run;
mod staging;
mod thread;

pub(crate) use run::Runner;
pub(crate) use staging::Staging;
pub(crate) use thread::{Inbox, Job, Message, TicketState, serve};

#[cfg(test)]
mod tests;
