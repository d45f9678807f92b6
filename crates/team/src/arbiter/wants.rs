//! Whether this process computes: what its runs say, and what the agent has said to others of it.

use crate::sync::{AtomicU32, Ordering};

#[derive(Debug)]
pub(crate) struct Wants {
    /// Workers of the runs under way.
    at_work: AtomicU32,
    /// Cores that the agent has said to others are wanted.
    said: AtomicU32,
}

// All of it is sequentially consistent: a run says that it works and then looks at what is said, the agent says it and then looks who works. One of
// the two sees the other [unsaid].
impl Wants {
    pub(crate) fn new() -> Wants {
        Wants { at_work: AtomicU32::new(0), said: AtomicU32::new(0) }
    }

    /// A run begins on so many workers; whether the agent must be woken to say so.
    pub(crate) fn begin(&self, workers: u32) -> bool {
        self.at_work.fetch_add(workers, Ordering::SeqCst);
        self.said.load(Ordering::SeqCst) == 0
    }

    /// A run on so many workers has ended.
    pub(crate) fn end(&self, workers: u32) {
        self.at_work.fetch_sub(workers, Ordering::SeqCst);
    }

    /// Workers of the runs under way.
    pub(crate) fn at_work(&self) -> u32 {
        self.at_work.load(Ordering::SeqCst)
    }

    /// For the agent: how many of so many cores this process wants, which is said from now on. Who is between two runs, since the last has only just
    /// ended, still wants what it wanted.
    pub(crate) fn now(&self, cores: u32, is_between: bool) -> u32 {
        loop {
            let wanted = match self.at_work().min(cores) {
                0 if is_between => self.said.load(Ordering::SeqCst),
                at_work => at_work,
            };
            self.said.store(wanted, Ordering::SeqCst);
            if wanted > 0 || self.at_work() == 0 {
                return wanted;
            }
        }
    }
}
