//! The stream of events that explains a run, and the time breakdown computed from it.
//!
//! In come intervals: each worker owns a [`Recorder`] and tells it when a leaf, a wait or a transfer ended. Out go
//! sums ([`Totals`]), a [`Breakdown`] of the worker time of a run into leaf work, waiting at each edge and runtime
//! overhead, and, when asked for, every interval as a 32-byte [`Record`] in a file ([`Trace`]). Measured and
//! simulated runs write the same records. This crate never starts a thread, never takes a lock and never decides
//! anything about a run; switched off, it costs one predictable branch an event.
//!
//! ```
//! use multigrain_trace::{Breakdown, Mode, Recorder};
//!
//! let edges = ["disk-dram".to_string()];
//! let mut recorder = Recorder::new(Mode::Totals, 0, edges.len());
//! let begin = std::time::Instant::now();
//! let t = recorder.start();
//! let t = recorder.wait(t, 0, 7); // waited for transfer 7 on edge 0
//! recorder.leaf(t, 12); //           then executed call 12
//! let wall_seconds = begin.elapsed().as_secs_f64();
//! let breakdown = Breakdown::new(wall_seconds, 1, recorder.totals(), &edges);
//! assert!(breakdown.leaf_seconds <= breakdown.worker_seconds());
//! ```

mod breakdown;
mod clock;
mod file;
mod record;
mod recorder;
mod totals;

pub use breakdown::Breakdown;
pub use clock::{Tick, now, ticks_per_second};
pub use file::{Trace, TraceError};
pub use record::{Kind, NO_INDEX, RECORD_BYTES, Record};
pub use recorder::{Mode, Recorder};
pub use totals::{Sum, Totals};
