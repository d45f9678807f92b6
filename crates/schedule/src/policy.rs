//! Policies: who runs which task on how many workers, decided while the program runs.
//!
//! The picture: *strands* are light threads of control, each with at most one *task* off-loaded at any time. A task
//! has a loop, whose iterations one worker can execute alone, or several together as a loop team. There are
//! a few workers. Which grain to run in parallel, tasks or loops, depends on how many strands there are at this very
//! moment; a policy decides it at each *arrival* (a strand off-loads a task) and each *departure* (a task is done).
//!
//! A [`Machine`] is the state machine: events in, [`Decision`]s out, each with its [`Reason`]. It knows no threads and
//! no clock: time is a number that comes with the event. Threads and the simulator drive the same machine, so
//! what a policy would do on another computer can be simulated, and a measured run can be replayed.
//!
//! Beside the policies, as pure: [`Granularity`] says whether it pays to off-load at all, [`Shares`] how a loop's iterations
//! are shared out. Both learn from measurements that their caller makes.
//!
//! | name | what it does | waits although a worker is idle |
//! |---|---|---|
//! | `static` | strand `s` has worker `s mod P`, as processes pinned by hand have | yes |
//! | `edtlp` | each task on one worker, whichever is idle: event-driven task-level parallelism | never |
//! | `llp:k` | one strand in progress at a time, its loops on `k` workers | yes |
//! | `hybrid:k` | `P / k` strands in progress, the loops of each on `k` workers: static EDTLP-LLP | yes |
//! | `mgps` | edtlp or loop parallelism, by the task parallelism of the last `P` off-loads | never |
//! | `marginal` | as many workers as the strands leave idle, and as measurement says are worth while | never |
//!
//! All but `marginal` are those of Blagojevic, Nikolopoulos, Stamatakis and Antonopoulos, "Dynamic multigrain
//! parallelization on the Cell Broadband Engine" (PPoPP 2007), section 5. `mgps.rs` and `marginal.rs` say how the text
//! was read, and why the last one is better.
//!
//! ```
//! use multigrain_schedule::policy::{Arrival, Decision, Machine, Policy};
//!
//! let mut machine = Machine::new("hybrid:4".parse::<Policy>()?, 8)?;
//! let mut decisions = Vec::new();
//! machine.strand_begins();
//! let arrival = Arrival { task: 0, strand: 0, kind: 0, iterations: 228, near: None };
//! machine.arrive(0, arrival, &mut decisions);
//! let [Decision::Start(start)] = &decisions[..] else { panic!("{decisions:?}") };
//! assert_eq!(start.workers.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod estimate;
mod event;
mod fixed;
mod granularity;
mod machine;
mod marginal;
mod mgps;
mod name;
mod rule;
mod shares;
mod workers;

pub use event::{Arrival, Decision, Departure, Reason, Start};
pub use granularity::{Granularity, Side};
pub use machine::Machine;
pub use mgps::TIMER_NS;
pub use name::{Policy, PolicyError};
pub use shares::{Part, Shares};
pub use workers::{WORKERS_MAX, Workers};
