//! Runs a plan on real memories: an interpreter of plans over drivers and teams.
//!
//! In come a plan, a machine, the homes of the program's arrays (memory, or what drivers reach) and a team of workers. Out goes a
//! [`Report`]: the arrays hold the results, and the report says where the time went; or an [`EngineError`] that names
//! the task and the block. All staging and scratch memory is reserved before the first step ([`Memories`]). This room
//! decides nothing: what is fetched when, and who runs what, stands in the plan.

mod child;
mod error;
mod home;
mod interpreter;
mod meet;
mod meetings;
mod memory;
mod parts;
mod phase;
mod ranks;
mod run;
mod tracing;

pub use error::{CallName, EngineError};
pub use home::{Home, Sides, StoreLog};
pub use memory::{Memories, MemoryBytes, Part};
pub use multigrain_driver::ranks::Progress;
pub use run::{Report, RunOptions, run};
