//! More contexts than processors, on threads: what [`multigrain_schedule::contexts`] decides, executed.
//!
//! A context is a function on a thread of its own, and a processor is what it has to have to go on. Which context has which
//! processor is decided by the very state machine that the simulator drives (`multigrain_sim::contexts`). A context that computes for
//! long calls [`look`] between its tiles, or chunks of a loop; there it gives its processor up when its turn is over. Who gives a
//! processor up says who has it next and, under [`Sharing::HandOff`], also binds that context's thread to it before it wakes it, so no other scheduler has a
//! say in it.
//!
//! *Why these are no strands.* A strand never leaves the thread on which it began, so that thread-locals stay sound, and a processor that
//! is given up could go to strands of that thread alone. Contexts change processors; and what [`Sharing::Slices`] is about is which of two threads
//! the operating system lets come first. So the switch between contexts is the system's.
//!
//! *When a turn is over* is told by a timer of the context's own thread ([`Turn::Timer`]): its signal raises a flag, and [`look`] is one
//! load of it. Where the system has no such timer the clock is looked at ([`Turn::Clock`]).
//!
//! CONTEXTS.md beside this crate names the states and the races.
//!
//! ```
//! use multigrain_team::contexts::{Contexts, Sharing, Turn, look, run};
//!
//! // Three sums on two processors, each of which looks at the flag every thousand terms.
//! let sum = |upto: u64| move || (0..=upto).inspect(|i| if i % 1000 == 0 { look() }).sum::<u64>();
//! let shared = Contexts { processors: 2, sharing: Sharing::HandOff, turn: Turn::Looks(3) };
//! let outcome = run(&shared, [10_000, 20_000, 30_000].map(sum).into())?;
//! assert_eq!(outcome.results, [50_005_000, 200_010_000, 450_015_000]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod did;
#[cfg(not(loom))]
mod here;
mod line;
#[cfg(all(test, loom))]
mod model;
#[cfg(not(loom))]
mod run;
mod sharing;
#[cfg(not(loom))]
mod timer;

pub use {
    did::Did,
    sharing::{Contexts, Sharing, Turn},
};
#[cfg(not(loom))]
pub use {
    here::look,
    run::{Outcome, RunError, run},
};
