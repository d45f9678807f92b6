//! The stream of events that explains a run, and the time breakdown computed from it.
//!
//! In come intervals: each worker owns a [`Recorder`] and tells it when a leaf, a wait or a transfer ended. Out go
//! sums ([`Totals`]), a [`Breakdown`] of the worker time of a run into leaf work, waiting at each edge and runtime
//! overhead, and, when asked for, every interval as a 32-byte [`Record`] in memory or in a file ([`Trace`],
//! [`Spill`]). Measured and simulated runs write the same records. This crate never takes part in a run: its one
//! thread writes files, its one lock is taken once every 4096 records, and it never decides anything. Switched off, it
//! costs one predictable branch an event.
//!
//! ```
//! use multigrain_trace::{Breakdown, Mode, Recorder};
//!
//! let edges = ["disk-dram".to_string()];
//! let mut recorder = Recorder::new(Mode::Totals, 0, edges.len());
//! let begin = std::time::Instant::now();
//! let t = recorder.start();
//! let t = recorder.wait(t, 0, 0, 7); // waited for transfer 7 of worker 0 on edge 0
//! recorder.leaf(t, 0, 0, 12); //        then executed call 12 of plan 0, of task 0
//! let wall_seconds = begin.elapsed().as_secs_f64();
//! let breakdown = Breakdown::new(wall_seconds, 1, recorder.totals(), &edges);
//! assert!(breakdown.leaf_seconds <= breakdown.worker_seconds());
//! ```
//!
//! `docs/format.md` beside the sources draws the file.

pub mod analysis;
pub mod export;

mod breakdown;
mod clock;
mod error;
mod file;
mod format;
mod header;
mod observed;
mod part;
mod record;
mod recorder;
mod spill;
mod totals;
mod units;

pub use analysis::Analysis;
pub use breakdown::Breakdown;
pub use clock::{Tick, now, ticks_per_second};
pub use error::TraceError;
pub use file::{Trace, rate};
pub use format::End;
pub use header::{ArrayInfo, ClockInfo, EdgeInfo, Header, PlanInfo, SlotInfo, StrandsInfo, Use};
pub use observed::{KernelInfo, KernelSource, Observed, Other};
pub use part::{Part, Shift};
pub use record::{
    Activity, BARRIER_SIGNAL, Decided, Flow, Idleness, Kind, NO_INDEX, NO_SUBJECT, NO_TASK, NO_TRANSFER, RECORD_BYTES,
    Record, Taken,
};
pub use recorder::{Mode, Recorder};
pub use spill::Spill;
pub use totals::{Sum, Totals};
