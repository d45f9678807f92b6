//! Strands on threads: who executes which when, where a task is executed, and what is learnt from it.
//!
//! The picture: *hosts* are threads that execute strands, *workers* threads that execute tasks; often they are the same.
//! What a policy's [`Machine`](crate::policy::Machine) does not decide is decided here: [`Lines`] says which strand a host
//! begins or goes on with, and who has to look around; [`Tallies`], one of each host, whether a task is off-loaded at all
//! and how its loop is shared out, from what earlier ones took; [`Slice`] when others have their turn.
//!
//! Neither knows threads or a clock: times come with the events. So a team of threads and the simulator execute the same
//! rules, and what threads did can be repeated in virtual time.

mod lines;
mod tallies;

pub use lines::{Lines, LinesOptions, Next};
pub use tallies::{Done, Tallies, Tally, Way};

/// How long a strand goes on before others of its host have their turn, where its off-loads do not switch anyway: 5 ms.
/// Beside it the misses in caches that a switch leads to are nothing.
const SLICE_NS: f64 = 5e6;

/// After so many off-loads as plain calls it is looked whether the slice is over.
const CALLS_A_LOOK: u32 = 64;

/// When a strand that is executed gives way. Of each host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice {
    /// Calls since the last look.
    unlooked: u32,
}

impl Slice {
    /// A task was a plain call; whether it is time to look how long the strand has gone on.
    #[inline]
    pub fn called(&mut self) -> bool {
        let unlooked = self.unlooked + 1;
        self.unlooked = unlooked % CALLS_A_LOOK;
        unlooked == CALLS_A_LOOK
    }

    /// Whether a strand that has gone on for so long gives way.
    #[inline]
    pub fn is_over(went_on_ns: f64) -> bool {
        went_on_ns > SLICE_NS
    }
}
