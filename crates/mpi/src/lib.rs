//! Ranks of a cluster, over MPI: a thin safe layer, and collective operations between ranks.
//!
//! In come the ranks that `mpirun` has started. Out go messages, windows that others read and write, and collective
//! operations that execute the scripts of [`multigrain_schedule::message`]: for each operation and size the cheapest, or
//! MPI's own where that was measured to be faster and promises the same bits. All of it is behind the feature `mpi`, since
//! it needs an MPI to be compiled with; without it this crate is empty. A process that was not started by `mpirun` is one
//! rank. This room never decides what is computed where, and knows no plan.
//!
//! MPI is reached through `shim.c`, which MPI's own compiler compiles (`MPICC`, or `mpicc`): so one binary goes with one
//! MPI. All of MPI is called by the thread that started it; nothing here can be sent to another.
//!
//! An error of MPI within an operation ends the run on all ranks, after a message that names rank and node: buffers may
//! still be written by then, so nothing could go on. A panic does the same.

#[cfg(feature = "mpi")]
mod choice;
#[cfg(feature = "mpi")]
mod collective;
#[cfg(feature = "mpi")]
mod comm;
#[cfg(any(feature = "mpi", test))]
mod cores;
#[cfg(feature = "mpi")]
mod error;
#[cfg(feature = "mpi")]
mod ffi;
#[cfg(feature = "mpi")]
mod measure;
#[cfg(feature = "mpi")]
mod post;
#[cfg(feature = "mpi")]
mod prepared;
#[cfg(feature = "mpi")]
mod start;
#[cfg(feature = "mpi")]
mod window;

#[cfg(feature = "mpi")]
pub use choice::{Choice, Row, Way};
#[cfg(feature = "mpi")]
pub use collective::Collectives;
#[cfg(feature = "mpi")]
pub use comm::Comm;
#[cfg(feature = "mpi")]
pub use error::MpiError;
#[cfg(feature = "mpi")]
pub use measure::{costs, rows};
#[cfg(feature = "mpi")]
pub use post::{Post, is_launched};
#[cfg(feature = "mpi")]
pub use start::{Mpi, Threads};
#[cfg(feature = "mpi")]
pub use window::Window;

/// The program that starts ranks of whoever is linked with this MPI.
#[cfg(feature = "mpi")]
pub const MPIRUN: &str = env!("MULTIGRAIN_MPIRUN");
