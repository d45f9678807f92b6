//! Takes transfer lists, cuts them into operations, keeps the backend busy, completes tickets.
//!
//! All state is under one lock that nobody holds while blocked; `docs/transfers.md` names the states, and who does the
//! work.

mod completing;
mod cut;
mod desk;
mod operation;
mod promptness;
mod run;
mod staging;
mod ticket;

pub(crate) use desk::{Desk, Device, News};
pub(crate) use promptness::run_soon_after_waking;
pub(crate) use run::Runner;
pub(crate) use staging::Staging;
pub(crate) use ticket::{Job, TicketState};

#[cfg(test)]
mod tests;
