//! What eager operations wait for: for each participant how far it has offered, and how far it has taken.
//!
//! Both are counts of eager rounds that one participant raises and others read, on lines of their own. A count is read
//! only when what was read before is not enough, so whoever lags behind finds several rounds at the price of one.

use super::compile::{PLACES, RING};
use super::register::Mark;
use crate::pad::Padded;
use crate::signal::Signal;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use multigrain_schedule::Ring;

/// How many others a participant remembers what it has read of; with more they share entries.
const KNOWN_MAX: u32 = 64;

/// What a participant offers.
#[derive(Debug)]
#[repr(C)]
struct Offered {
    /// For each place of the ring what the participant is doing; before the count, to share its cache line.
    marks: [AtomicU32; PLACES],
    /// One more than the last round in which it offered.
    count: Signal,
}

/// What a participant has read of another's counts. Only its own thread uses it.
#[derive(Debug, Default)]
struct Known {
    /// One more than the other's rank.
    of: AtomicU32,
    offered: AtomicU64,
    taken: AtomicU64,
    marks: [AtomicU32; PLACES],
}

/// The counts of a group.
#[derive(Debug)]
pub(super) struct Rings {
    offered: Box<[Padded<Offered>]>,
    taken: Box<[Padded<Signal>]>,
    known: Box<[Box<[Padded<Known>]>]>,
}

/// What a participant waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    Offered,
    Taken,
}

impl Rings {
    pub(super) fn new(size: u32) -> Rings {
        let marks = || std::array::from_fn(|_| AtomicU32::new(0));
        let known = || Padded(Known { marks: marks(), ..Known::default() });
        Rings {
            offered: (0..size).map(|_| Padded(Offered { marks: marks(), count: Signal::new(1) })).collect(),
            taken: (0..size).map(|_| Padded(Signal::new(1))).collect(),
            known: (0..size).map(|_| (0..size.min(KNOWN_MAX)).map(|_| known()).collect()).collect(),
        }
    }

    /// Offers what lies in a place of `rank`'s ring, in round `round`.
    #[inline]
    pub(super) fn offer(&self, rank: u32, round: u64, mark: Mark) {
        let offered = &self.offered[rank as usize];
        // Relaxed: published by the count. Whoever still needs the mark of an earlier round in this place has been
        // waited for, as for the place itself.
        offered.marks[RING.place(round) as usize].store(mark, Ordering::Relaxed);
        offered.count.advance_to(Ring::count(round));
    }

    /// Tells that `rank` needs nothing any more of what was offered in the first `rounds` rounds.
    #[inline]
    pub(super) fn tell_taken(&self, rank: u32, rounds: u64) {
        self.taken[rank as usize].advance_to(rounds);
    }

    /// What others wait for.
    #[inline]
    pub(super) fn signal(&self, count: Count, of: u32) -> &Signal {
        match count {
            Count::Offered => &self.offered[of as usize].count,
            Count::Taken => &self.taken[of as usize],
        }
    }

    /// Whether `rank` has read already that a count of another has reached `least`.
    #[inline]
    pub(super) fn is_known(&self, rank: u32, count: Count, of: u32, least: u64) -> bool {
        let known = self.known(rank, of);
        // Relaxed, here and below: only the participant's own thread uses it, and what was offered or taken became
        // visible to it when it read the count.
        known.of.load(Ordering::Relaxed) == of + 1 && known.count(count).load(Ordering::Relaxed) >= least
    }

    /// Reads a count of another anew, and remembers it.
    #[inline]
    pub(super) fn learn(&self, rank: u32, count: Count, of: u32) {
        let known = self.known(rank, of);
        if known.of.load(Ordering::Relaxed) != of + 1 {
            known.of.store(of + 1, Ordering::Relaxed);
            known.offered.store(0, Ordering::Relaxed);
            known.taken.store(0, Ordering::Relaxed);
        }
        known.count(count).store(self.signal(count, of).count(), Ordering::Relaxed);
        if let Count::Offered = count {
            for (mark, theirs) in known.marks.iter().zip(&self.offered[of as usize].marks) {
                mark.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    /// What another says that it is doing in a round whose offer is known.
    #[inline]
    pub(super) fn mark(&self, rank: u32, of: u32, round: u64) -> Mark {
        self.known(rank, of).marks[RING.place(round) as usize].load(Ordering::Relaxed)
    }

    #[inline]
    fn known(&self, rank: u32, of: u32) -> &Known {
        &self.known[rank as usize][(of % KNOWN_MAX) as usize]
    }
}

impl Known {
    #[inline]
    fn count(&self, count: Count) -> &AtomicU64 {
        match count {
            Count::Offered => &self.offered,
            Count::Taken => &self.taken,
        }
    }
}
