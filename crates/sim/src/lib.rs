//! Machines in virtual time.
//!
//! In come a machine, as things that take time (links, DMA engines, processors, disks, hosts with an operating system),
//! and a model that uses them. Out comes when everything happens: [`Simulation::next`] gives the model's events in the
//! order of (time, sequence), with time in whole picoseconds, so that a run is the same to the bit wherever it is made.
//! This room never looks at a real clock, starts no thread and moves no bytes.
//!
//! | a model needs | it asks for | it gets |
//! |---|---|---|
//! | bytes over a bus, a network | [`Simulation::link`], [`Simulation::transfer`] | latency, then bandwidth shared max-min fairly with all flows |
//! | bytes from node to node of a cluster | [`Routes`] | the links that they cross, and what each carries of them |
//! | the DMA queue of a processor | [`Simulation::dma`], [`Simulation::issue`] | the same, with so many transfers under way at once |
//! | an SPE, a GPU, a lock | [`Simulation::server`], [`Simulation::serve`] | one request after the other |
//! | a disk | [`Simulation::disk`], [`Simulation::access`] | the same, with seeks |
//! | processes on a PPE, a server | [`Simulation::host`], [`Simulation::thread`], [`Simulation::compute`] | hardware threads that slow each other down, shared by an operating system |
//! | a process that polls | [`Simulation::spin`], [`Simulation::end_spin`] | a busy hardware thread |
//! | a barrier, a broadcast, a reduction | [`collective::collectives`] | the steps of [`multigrain_schedule`], one list a participant |
//! | chance | [`Random`] | the same numbers for the same seed |
//!
//! On these stand interpreters of what is executed elsewhere on real machines: [`run`] of plans, [`collective`] of the
//! schedule room's step lists, [`offload`] of its policies, [`strands`] of what a team of threads does by them. [`papers`] has published machines, and holds the room against their figures.

pub mod calibrate;
pub mod collective;
pub mod contexts;
mod dma;
mod host;
mod network;
pub mod offload;
pub mod papers;
mod queue;
mod random;
mod routes;
pub mod run;
mod server;
mod simulation;
pub mod strands;
mod time;

pub use dma::{Dma, DmaId, Transfer};
pub use host::{Class, Fair, Features, Host, HostId, HostUse, Scheduler, ThreadId};
pub use network::{LinkId, WHOLE};
pub use random::Random;
pub use routes::{Path, Routes, Way};
pub use server::{Disk, DiskId, ServerId};
pub use simulation::Simulation;
pub use time::Time;
