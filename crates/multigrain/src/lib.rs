//! The facade: a machine and a program give a plan, a run, a report.
//!
//! In come a [`Job`] (a program, where its arrays come from and where its results go) and [`Options`] (machine,
//! memory budget, threads, mapping). Out come the plan as data or, from a run, the results under their final names
//! and an [`Outcome`] that says where the time went. This room only composes: it decides which part of the machine
//! the arrays start in, opens and publishes files, keeps the journal of a run, and calls the planner and the engine.
//!
//! ```
//! use multigrain::prelude::*;
//!
//! /// y = 2 x, element by element.
//! struct Double;
//! impl Task for Double {
//!     type Params = (Read<f32, 1>, Write<f32, 1>);
//!     fn name(&self) -> &'static str {
//!         "double"
//!     }
//!     fn param_names(&self) -> &'static [&'static str] {
//!         &["x", "y"]
//!     }
//!     fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
//!         vec![Tunable { name: "n", extent: call.shapes[0].elements(), multiple: 1 }]
//!     }
//!     fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
//!         let n = call.shapes[0].elements();
//!         blocks(n, tunables.get("n", n))
//!             .map(|(start, len)| {
//!                 let part = Region::new(&[start], &[len]);
//!                 SubCall::itself([(0, part), (1, part)], &call.scalars)
//!             })
//!             .collect()
//!     }
//!     fn leaf(&self, (x, mut y): (View<'_, f32, 1>, ViewMut<'_, f32, 1>), _: &mut LeafContext<'_>) {
//!         y.row_mut(&[]).iter_mut().zip(x.row(&[])).for_each(|(y, x)| *y = 2.0 * x);
//!     }
//!     fn work(&self, call: &CallShape) -> Work {
//!         let n = call.shapes[0].elements() as f64;
//!         Work { flops: n, bytes: 8.0 * n }
//!     }
//! }
//!
//! let mut program = Program::new();
//! let double = program.task(Double);
//! let x = program.array::<f32, 1>("x", [1000], Role::Input)?;
//! let y = program.array::<f32, 1>("y", [1000], Role::Output)?;
//! program.call(double, (x.all(), y.all()), Scalars::new())?;
//! let job = Job::new("double", program).with_source(x.index(), Source::Generated { seed: 1 });
//! let runtime = Runtime::new(Options::default())?;
//! let outcome = runtime.run(&job, Settings::default())?;
//! assert_eq!(outcome.read_f32(y.index(), &Region::new(&[5], &[1]))?[0], 2.0 * generate::f32_at(1, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod afterwards;
pub mod app;
mod choose;
mod error;
pub mod generate;
mod guard;
mod homes;
mod job;
mod journal;
mod outcome;
mod planning;
mod resume;
mod runtime;
mod simulate;
pub mod testing;

pub use afterwards::{Afterwards, AfterwardsWorker};
pub use choose::main_memory;
pub use error::Error;
pub use job::{Job, Sink, Source};
pub use multigrain_engine::{Progress, Report};
pub use multigrain_machine::{Machine, format_bytes, parse_bytes, readable_bytes};
pub use multigrain_plan::{EdgeTraffic, Mapping, MemoryUse, Plan};
pub use multigrain_team::{Abort, strands};
pub use multigrain_trace::{Breakdown, Mode};
pub use multigrain_whole as whole;
pub use outcome::Outcome;
pub use planning::Planned;
pub use runtime::{MachineChoice, Options, Prepared, Runtime, Settings};
pub use simulate::{Simulated, Simulation, fit_leaf_rates};

/// Independent jobs on the workers of a team: [`jobs::Team::jobs`].
pub mod jobs {
    pub use multigrain_team::jobs::*;
    pub use multigrain_team::{SpinLimit, Team, TeamOptions, WorkerPanic};
}

/// The rooms below, for those who need more than the facade.
pub mod rooms {
    pub use multigrain_engine as engine;
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
    pub use crate::{Abort, Error, Job, Machine, Mode, Options, Outcome, Runtime, Settings, Sink, Source, generate};
    pub use multigrain_program::*;
}
