//! The end of a run before its time. SLEEP.md, "Abort", says why no sleeper misses it.

use thiserror::Error;

use crate::sync::{AtomicBool, Mutex, Ordering, Thread, lock};

/// A wait ended because the run was ended: see [`Abort`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the run was ended before this wait was over; its first error says why")]
pub struct Aborted;

/// A flag that ends every wait of a run: raised when a transfer fails, a leaf panics or the user interrupts.
///
/// Raising wakes every thread that is parked in a wait that was given this flag, so a run never hangs on a step that
/// will not come. It stays raised; the next run gets a new one. Raising takes a lock, so it may be done from any
/// thread, but not from within a signal handler.
#[derive(Debug, Default)]
pub struct Abort {
    raised: AtomicBool,
    sleepers: Mutex<Vec<Thread>>,
}

impl Abort {
    /// A flag that is not raised.
    pub fn new() -> Abort {
        Abort { raised: AtomicBool::new(false), sleepers: Mutex::new(Vec::new()) }
    }

    /// Raises the flag and wakes whoever sleeps in one of this run's waits. Raising it again does nothing.
    pub fn raise(&self) {
        let mut sleepers = lock(&self.sleepers);
        // Release: whoever sees the flag sees why it was raised.
        self.raised.store(true, Ordering::Release);
        sleepers.drain(..).for_each(|sleeper| sleeper.unpark());
    }

    /// Whether the flag is raised; then what the raising thread did before is visible to the caller.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Enters the calling thread among the sleepers, unless the flag is raised: then false.
    pub(crate) fn announce(&self, me: &Thread) -> bool {
        // Flag and list change under one lock: either this sees the flag, or `raise` sees the thread.
        let mut sleepers = lock(&self.sleepers);
        if self.is_raised() {
            return false;
        }
        sleepers.push(me.clone());
        true
    }

    /// Takes the calling thread off the sleepers.
    pub(crate) fn retract(&self, me: &Thread) {
        lock(&self.sleepers).retain(|sleeper| sleeper.id() != me.id());
    }
}
