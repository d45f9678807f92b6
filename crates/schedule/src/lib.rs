//! What is decided about parallel work, without a thread or a clock: collective operations and scheduling policies.
//!
//! [`policy`] holds state machines that turn arrivals and departures of tasks into decisions: which task, on how many
//! workers, and why; [`strands`] what threads decide by beside them. [`contexts`] shares out processors among more contexts than there are. [`jobs`] is the one that hands out independent jobs: how many at once, to whom;
//! [`division`] makes such jobs of tasks that can be split, evenly by predicted work. The rest are collective operations as data: barrier, broadcast, reduce and allreduce. In comes a
//! [`Request`]: operation, algorithm, group with its [`Topology`], root, bytes. Out comes, for each participant, a
//! [`Schedule`]: a list of [`Step`]s (signal, await, put, get, flush, combine, release; reserve, offer, expect, taken) that whoever moves the bytes
//! executes literally, be it threads in shared memory or a simulator in virtual time. [`check`] proves such lists, for
//! all interleavings of small groups and by happens-before for large ones; [`choice`] holds tables that say which
//! algorithm serves a size best. [`message`] has the same, and all-gather and all-to-all, for ranks that send each other messages. [`claim`] says whose work is taken first. [`contributions`] is the tree by which all reductions combine, for those that make their
//! contributions one after the other. This crate never starts a thread, moves a byte, or reads a clock.
//!
//! `docs/collectives.md` beside this crate describes the algorithms with their sources, how consecutive operations
//! share the signal registers, the order in which reductions combine, and what is proved.
//!
//! ```
//! use multigrain_schedule::{Algorithm, Operation, Request, Topology, schedule};
//!
//! // The barrier of a dual-Cell blade, two chips of eight, as its fourth participant executes it.
//! let request = Request {
//!     operation: Operation::Barrier,
//!     algorithm: "ATOBarB".parse::<Algorithm>()?,
//!     topology: Topology::packed(16, &[2, 8])?,
//!     buffer_bytes: 16 << 10,
//!     ring: 4,
//! };
//! let steps = schedule(&request, 3)?.steps;
//! assert_eq!(steps.iter().map(|step| step.to_string()).collect::<Vec<_>>(), ["signal 0 bit 2", "await 0 bit 0"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod algorithm;
mod build;
pub mod check;
pub mod choice;
mod claims;
pub mod contexts;
pub mod contributions;
pub mod division;
mod error;
mod exchange;
pub mod jobs;
pub mod message;
mod operation;
mod order;
pub mod policy;
mod registers;
mod ring;
mod segments;
mod step;
pub mod strands;
mod topology;
mod tree;

pub use algorithm::{Algorithm, Shape};
pub use build::{Request, Schedule, Schedules, schedule, schedules};
pub use claims::{End, claim};
pub use error::ScheduleError;
pub use operation::{Kind, Laws, Operation, Order};
pub use order::Span;
pub use registers::{Place, Registers};
pub use ring::Ring;
pub use segments::Segments;
pub use step::{Area, Bit, Copies, Step};
pub use topology::{Domain, Topology};
