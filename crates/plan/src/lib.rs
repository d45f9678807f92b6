//! From a program and a machine to a plan: for each edge, what every child does in order.
//!
//! In come a program (arrays, calls, sequential meaning) and a machine (a tree of memories with capacities and
//! edges). Out comes a [`Plan`]: data that can be printed, checked, costed, run and simulated. The passes are pure
//! functions; nothing here touches a file, a thread or a clock.

mod apart;
mod arena;
mod barriers;
mod broadcasts;
mod candidates;
pub mod check;
pub mod cost;
pub mod dependence;
mod division;
mod edge;
mod error;
mod estimate;
mod facts;
mod flow;
mod formula;
mod grouping;
mod held;
mod looking;
mod looks;
mod loops;
mod mapping;
pub mod names;
mod numbered;
pub mod order;
mod parts;
pub mod placement;
mod plan;
mod planner;
mod remaining;
mod report;
mod rooms;
mod rules;
mod scope;
mod search;
mod stages;
mod staging;
mod steps;
#[cfg(feature = "testing")]
pub mod testing;
mod ways;

pub use error::{Enough, PlanError};
pub use mapping::Mapping;
pub use numbered::{Numbered, hash_calls};
pub use plan::{
    Body, CallClass, ChildPlan, Op, PassReport, Places, Plan, Slot, SourceCall, TEMPORARY_ALIGN_BYTES, Traffic,
};
pub use planner::{PlanOptions, Planner};
pub use remaining::{Left, Stored, without};
pub use report::{EdgeTraffic, MemoryUse};
pub use ways::{OtherWays, Ways};
