//! In which order work is claimed that lies in lists, one of each worker: what threads and the simulator both go by.

use std::ops::Range;

/// Which end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where the owner takes from.
    Front,
    /// Where others take from.
    Back,
}

impl End {
    /// What is taken from this end of a list, which is a range of numbers.
    #[inline]
    pub fn take(self, list: &mut Range<u32>) -> Option<u32> {
        match self {
            End::Front => list.next(),
            End::Back => list.next_back(),
        }
    }
}

/// What `take` finds first of the `lists`, and in which: the front of the worker's own, then the backs of the others', the
/// next worker's first. So owners keep their order, and with it what lies in their caches, for as long as possible. A worker
/// without a list only takes from others.
#[inline]
pub fn claim<T>(worker: usize, lists: usize, mut take: impl FnMut(usize, End) -> Option<T>) -> Option<(usize, T)> {
    if worker < lists
        && let Some(found) = take(worker, End::Front)
    {
        return Some((worker, found));
    }
    // Owners, who are nearly all, are spared a division. For one the last of these is its own list, found empty before and
    // empty for ever.
    let first = if worker < lists { worker + 1 } else { (worker + 1) % lists.max(1) };
    (first..lists).chain(0..first).find_map(|owner| take(owner, End::Back).map(|found| (owner, found)))
}
