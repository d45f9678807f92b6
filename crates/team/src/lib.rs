//! Worker threads bound to processors: fork and join, point-to-point progress, claims of chains, and the end of a run.
//!
//! In come jobs (closures that take a worker index) and ranges of workers to execute them on. Out go their
//! completion, or the panic of the first worker that failed. A [`Team`] owns the threads, [`Steps`] lets one worker
//! wait for another's steps, [`collective::Collective`] executes barriers, broadcasts and reductions, [`ChainQueue`]
//! balances load in one address space, [`Abort`] ends every wait of a run.
//! [`jobs`] hands out independent jobs to all workers and takes in their results.
//! [`strands`] executes programs of more than one grain under a scheduling policy.
//! [`contexts`] lets more functions than processors have these in turns.
//! Waiting is always the same protocol, spin and then park, described and model-checked in `SLEEP.md` beside this
//! crate. This crate never decides what to compute or who computes it, never yields in a loop, and allocates nothing on
//! the path of a fork.
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! use multigrain_team::{Team, TeamOptions};
//!
//! let team = Team::new(TeamOptions { workers: 2, ..TeamOptions::default() })?;
//! let sum = AtomicUsize::new(0);
//! team.run(|| team.fork(0..2, &|worker| { sum.fetch_add(worker + 1, Ordering::Relaxed); }))?;
//! assert_eq!(sum.into_inner(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abort;
mod bind;
mod chains;
pub mod collective;
#[cfg_attr(loom, allow(dead_code))]
pub mod contexts;
mod fork;
#[cfg_attr(loom, allow(dead_code))]
pub mod jobs;
mod mailbox;
mod pad;
mod panic;
mod place;
mod signal;
mod spin;
mod steps;
#[cfg_attr(loom, allow(dead_code))]
pub mod strands;
mod sync;
mod team;

pub use abort::{Abort, Aborted};
pub use chains::ChainQueue;
pub use pad::Padded;
pub use panic::{WorkerPanic, are_panics_caught, catches_panics, panic_message};
pub use spin::SpinLimit;
pub use steps::Steps;
pub use team::{Team, TeamOptions};
