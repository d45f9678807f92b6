//! What a run of contexts is told.

use std::time::Duration;

/// How contexts are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contexts {
    /// How many have a processor at a time. These are the first that the process may use; if it may use fewer, nothing is bound.
    pub processors: usize,
    /// Who has them.
    pub sharing: Sharing,
    /// When a turn is over.
    pub turn: Turn,
}

/// Who has a processor that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Sharing {
    /// The context that has waited longest, and each keeps its processor to its end.
    Fifo,
    /// Whoever comes first: who gives a processor up wakes the context that has waited longest, lets the operating system choose who runs, and
    /// asks again. As Linux let SPEs be shared until 2.6.24; contexts may starve.
    Slices,
    /// The context that has waited longest; nobody starves, and no processor is free while somebody waits.
    #[default]
    HandOff,
    /// All at once, as the operating system lets them: plain threads on these processors, for comparison.
    System,
}

/// When a context's turn is over, if another waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// After so many looks, one at least.
    Looks(u32),
    /// After this time, by the clock: each look reads it.
    Clock(Duration),
    /// After this time, by a timer that raises a flag; by the clock where there is no such timer.
    Timer(Duration),
}
