//! Direct N-body: particles that attract each other, by velocity Verlet with softened forces.
//!
//! In come particles from a file or a seed, a number of steps and their length; out go snapshots and a picture of the
//! orbits, the same to the last bit on one thread or many, in any memory budget, on any machine. All steps are one
//! program, so particles stay where they are from step to step. This room never decides where blocks lie.

pub mod app;
mod check;
pub mod kernel;
pub mod particles;
mod picture;
pub mod plummer;
pub mod simulation;
pub mod task;
