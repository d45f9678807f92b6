//! Which worker the current thread is, and which workers it may lead.
//!
//! The workers that a thread leads are always a contiguous range that begins with itself. A fork hands disjoint parts
//! of that range to the workers it starts, for as long as it lasts, so at any time every worker is led by exactly
//! one thread. That is what makes a mailbox safe to write without a lock.
//!
//! A place belongs to a stack: where a thread has several, each is at its own place whenever it goes on.

use std::cell::Cell;

use crate::sync::thread_local;

/// The current thread's place in a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Address of the team's shared state; zero for a thread that is in no team.
    pub(crate) team: usize,
    /// The worker that this thread acts as.
    pub(crate) worker: usize,
    /// The thread leads `worker..lead_end`.
    pub(crate) lead_end: usize,
}

const NOWHERE: Place = Place { team: 0, worker: 0, lead_end: 0 };

#[cfg(not(loom))]
thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(NOWHERE) };
}

#[cfg(loom)]
thread_local! {
    static PLACE: Cell<Place> = Cell::new(NOWHERE);
}

/// The current thread's place.
#[inline]
pub(crate) fn current() -> Place {
    PLACE.with(Cell::get)
}

/// Puts the thread at a place that it had before: a stack of its own, which another has left since, goes on.
#[inline]
pub(crate) fn go_back(place: Place) {
    PLACE.with(|cell| cell.set(place));
}

/// Takes a place until it is dropped; then the thread is back where it was.
#[derive(Debug)]
pub(crate) struct Placed {
    before: Place,
}

impl Placed {
    #[inline]
    pub(crate) fn new(place: Place) -> Placed {
        Placed { before: PLACE.with(|cell| cell.replace(place)) }
    }
}

impl Drop for Placed {
    #[inline]
    fn drop(&mut self) {
        PLACE.with(|cell| cell.set(self.before));
    }
}
