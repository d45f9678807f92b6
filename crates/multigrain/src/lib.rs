//! The facade: a machine and a program give a plan, a run, a report.
//!
//! In come a [`Job`] (a program, where its arrays come from and where its results go) and [`Options`] (machine,
//! memory budget, threads, mapping). Out come the plan as data or, from a run, the results under their final names
//! and an [`Outcome`] that says where the time went. This room only composes: it decides which part of the machine
//! the arrays start in, opens and publishes files, keeps the journal of a run, and calls the planner and the engine.
//!
//! What needs no task of its own is said in a line (see [`lazy`]):
//!
//! ```
//! use multigrain::prelude::*;
//!
//! let runtime = Runtime::with_memory("16MiB")?;
//! let x = runtime.generated::<f32, 1>([1000], 1);
//! let y = runtime.values(&x.map(|x| 2.0 * x))?;
//! assert_eq!(y[5], 2.0 * generate::f32_at(1, 5));
//! # Ok::<(), Error>(())
//! ```
//!
//! A task is a function on blocks with a notation (see [`macro@task`]); a [`Program`](prelude::Program) calls tasks on
//! arrays. `docs/guide.md` in the repository leads there from a loop nest, and `examples/` of this crate has whole programs.

mod across;
mod afterwards;
pub mod app;
mod blocks;
mod choose;
mod clocks;
mod cluster;
mod declared;
mod ending;
mod error;
mod found;
pub mod generate;
mod guard;
mod homes;
mod identity;
mod job;
mod journal;
mod journals;
mod keeps;
pub mod lazy;
mod ledger;
mod limits;
mod means;
mod merged;
mod names;
mod options;
mod outcome;
mod planning;
mod rank_files;
mod resume;
mod run;
mod runtime;
mod samples;
mod sides;
mod simulate;
#[cfg(feature = "testing")]
pub mod testing;
mod together;
mod wire;

pub use afterwards::{Afterwards, AfterwardsWorker};
pub use declared::task;
pub use error::Error;
pub use job::{Job, Sink, Source};
pub use lazy::{Lazy, Save};
pub use limits::main_memory;
pub use multigrain_engine::{Progress, Report};
pub use multigrain_machine::{Machine, format_bytes, parse_bytes, readable_bytes};
pub use multigrain_plan::{EdgeTraffic, Enough, Mapping, MemoryUse, Plan};
pub use multigrain_schedule::division;
pub use multigrain_team::{Abort, strands};
pub use multigrain_trace::{Breakdown, Mode};
pub use multigrain_whole as whole;
pub use names::is_beside;
pub use options::{MachineChoice, Options, Settings};
pub use outcome::Outcome;
pub use planning::Planned;
pub use runtime::{Prepared, Runtime};
pub use simulate::{Simulated, Simulation, fit_leaf_rates};
pub use wire::Wire;

/// Independent jobs on the workers of a team: [`jobs::Team::jobs`].
pub mod jobs {
    pub use multigrain_team::jobs::*;
    pub use multigrain_team::{SpinLimit, Team, TeamOptions, WorkerPanic};
}

/// What moves bytes along the edges of a machine: what somebody needs who brings another kind of memory.
///
/// A driver that is registered ([`driver::register`]) is known by its name to machine files; [`Options::drivers`] takes the place
/// of those of the same names in one runtime. `examples/custom-driver` in the repository has one in a file.
pub mod driver {
    pub use multigrain_driver::*;
    pub use multigrain_team::{are_panics_caught, catches_panics};
}

/// The processes of a cluster that execute runs together.
pub mod ranks {
    pub use crate::across::trace_path;
    pub use crate::together::{OfRank, same};
    pub use multigrain_driver::ranks::*;
}

/// The code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide.md")]
struct Guide;

/// The rooms below, for those who need more than the facade.
pub mod rooms {
    pub use multigrain_engine as engine;
    pub use multigrain_kernel as kernel;
    pub use multigrain_machine as machine;
    pub use multigrain_plan as plan;
    pub use multigrain_program as program;
    pub use multigrain_sim as sim;
    pub use multigrain_store as store;
    pub use multigrain_team as team;
    pub use multigrain_trace as trace;
}

/// Everything that a program needs.
pub mod prelude {
    pub use crate::{
        Abort, Error, Job, Lazy, Machine, Mode, Options, Outcome, Runtime, Settings, Sink, Source, generate, task,
    };
    pub use multigrain_program::*;
}
