//! Phases of a balanced plan: batches that any child may claim, and the point at which all of them are done.
//!
//! What the point waits for is work, not workers: a child that has not begun, or that the system has set aside before it
//! claimed anything, holds nobody up.

use multigrain_plan::Plan;
use multigrain_team::{ChainQueue, SpinLimit, Steps};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU32, Ordering};

/// Batches that are claimed, and that all must be done before those of the next phase begin.
pub(crate) struct Phase {
    queue: ChainQueue,
    left: AtomicU32,
    /// The child that was the last to finish a batch. Written before `over` is signalled.
    last_child: AtomicU32,
    /// Signalled once, by whoever finishes the last batch.
    pub(crate) over: Steps,
}

impl Phase {
    /// A phase of a balanced plan, nothing of it claimed.
    pub(crate) fn new(plan: &Plan, phase: usize, spin: SpinLimit) -> Phase {
        let lengths: SmallVec<[u32; 16]> = plan.children.iter().map(|c| c.phase(phase).len() as u32).collect();
        let over = Steps::new(spin);
        let left: u32 = lengths.iter().sum();
        if left == 0 {
            over.signal();
        }
        Phase { queue: ChainQueue::new(&lengths), left: left.into(), last_child: AtomicU32::new(0), over }
    }

    /// The next batch for `child`: its owner, and its number among the owner's of this phase.
    pub(crate) fn claim(&self, child: usize) -> Option<(usize, usize)> {
        self.queue.claim(child)
    }

    /// A batch that `child` claimed is done; whether it was the phase's last.
    pub(crate) fn finished_one(&self, child: usize) -> bool {
        // Release: what the batch wrote, to whoever finishes the last; acquire: there, of all others. Waiters get it from
        // `over`, which the last one signals.
        let last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            self.last_child.store(child as u32, Ordering::Relaxed);
        }
        last
    }

    /// Which child finished the last batch; meaningful once `over` has been waited for.
    pub(crate) fn last_child(&self) -> usize {
        self.last_child.load(Ordering::Relaxed) as usize
    }
}
