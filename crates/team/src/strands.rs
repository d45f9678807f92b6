//! Strands, off-loads and loop teams: programs of more than one grain under a policy.
//!
//! A *strand* is a light thread of control on a stack of its own. It *off-loads* tasks, from anywhere in its calls. A
//! *policy* ([`multigrain_schedule::policy`]) decides at each off-load how many workers the task's loop is shared by;
//! which is why three searches keep two processors busy. STRANDS.md beside this crate names the states and races.
//!
//! *How much to off-load at once.* A loop that several workers share costs half a microsecond, whatever it does. A kernel of
//! 3 us gains a fifth from a second worker, one of 10 us a third and more, one of 40 us nearly half. Where kernels follow
//! one another over the same iterations (the likelihoods of a traversal, all by alignment column), off-load the
//! sequence as one loop whose body executes all of them on its range. What does not pay all the same is executed by
//! the strand itself: that is measured, by kind of task and length, and looked at again now and then.
//!
//! ```
//! use multigrain_team::strands::{Rows, Scheduler, SchedulerOptions, TaskKind};
//!
//! const SCALE: TaskKind = TaskKind::new(0, "scale");
//! const SUM: TaskKind = TaskKind::new(1, "sum");
//!
//! // Three searches of some steps each; what a step computes is a loop over an array.
//! let search = |strand: &multigrain_team::strands::Strand<'_>| {
//!     let mut array = vec![1.0 + strand.index() as f64; 4096];
//!     let mut best = 0.0;
//!     for _ in 0..10 {
//!         // Each chunk of 256 iterations gets its own rows, here of one number each, to write.
//!         strand.offload(SCALE, 4096, 256, Rows::new(&mut array, 1),
//!             |_range, rows| rows.iter_mut().for_each(|x| *x *= 1.01), |(), ()| ());
//!         // A reduction: chunks are combined in a fixed order, so the sum does not depend on who computed what.
//!         best = strand.offload(SUM, 4096, 256, (), |range, ()| array[range].iter().sum::<f64>(), |a, b| a + b)
//!             .unwrap_or(0.0);
//!     }
//!     best
//! };
//! let scheduler = Scheduler::new(SchedulerOptions { policy: "mgps".parse()?, workers: 2, ..Default::default() })?;
//! let outcome = scheduler.run(vec![search; 3])?;
//! assert_eq!(outcome.results.len(), 3);
//! # let again = Scheduler::new(SchedulerOptions { policy: "edtlp".parse()?, workers: 1, ..Default::default() })?;
//! # assert_eq!(again.run(vec![search; 3])?.results, outcome.results);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod done;
#[cfg(not(loom))]
mod head;
#[cfg(not(loom))]
mod host;
#[cfg(not(loom))]
mod log;
#[cfg(all(test, loom))]
mod model;
#[cfg(not(loom))]
mod parts;
#[cfg(not(loom))]
mod scheduler;
mod seat;
mod share;
#[cfg(not(loom))]
mod state;
#[cfg(not(loom))]
mod statistics;
#[cfg(not(loom))]
mod strand;
#[cfg(not(loom))]
mod task;

pub use multigrain_schedule::policy::{Policy, PolicyError};
#[cfg(not(loom))]
pub use {
    parts::{Parts, Rows},
    scheduler::{Hosts, Outcome, RunError, Scheduler, SchedulerError, SchedulerOptions},
    statistics::Statistics,
    strand::Strand,
    task::{Task, TaskKind},
};
