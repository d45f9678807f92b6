//! Who accessed which cell of the parent memory, and whether one access comes before another in every execution.
//!
//! Threads are what executes steps in order: the children or, in a balanced plan, the batches, which come in phases. The
//! order between children is kept in vector clocks (Fidge 1988, Mattern 1989): entry `t` of a thread's clock says how many steps of
//! thread `t` are complete wherever this thread stands. For each cell only the last write and the reads since are
//! kept (Flanagan and Freund 2009): whatever was before them comes before them.

use super::problem::Direction;
use smallvec::SmallVec;
use std::rc::Rc;

/// An access of the parent memory, by the step at which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) thread: u32,
    /// The access is over when this step is complete.
    pub(super) end: u32,
}

const NOBODY: Point = Point { thread: u32::MAX, end: 0 };

/// What the threads know of each other.
pub(super) struct Clocks {
    /// Shared with the signals given since it last changed. Empty when threads come in phases.
    known: Vec<Rc<Vec<u32>>>,
    /// For each thread and each of its signals: the step, and what it knew.
    signals: Vec<Vec<(u32, Rc<Vec<u32>>)>>,
    /// The phase of each thread, which comes after all threads of the phases before. Empty when threads wait for each
    /// other.
    phases: Vec<u32>,
}

impl Clocks {
    /// Of threads that wait for each other's signals.
    pub(super) fn new(threads: usize) -> Clocks {
        let nothing = Rc::new(vec![0; threads]);
        Clocks { known: vec![nothing; threads], signals: vec![Vec::new(); threads], phases: Vec::new() }
    }

    /// Of threads that never wait, each in a phase.
    pub(super) fn in_phases(phases: Vec<u32>) -> Clocks {
        Clocks { known: Vec::new(), signals: Vec::new(), phases }
    }

    pub(super) fn signal(&mut self, thread: usize, step: u32) {
        self.signals[thread].push((step, Rc::clone(&self.known[thread])));
    }

    /// Number of signals given by a thread.
    pub(super) fn given(&self, thread: usize) -> u32 {
        self.signals[thread].len() as u32
    }

    /// `thread` has seen signal number `signals` (from 1) of `other`.
    pub(super) fn wait(&mut self, thread: usize, other: usize, signals: u32) {
        let Some(at) = (signals as usize).checked_sub(1) else { return };
        let (step, knew) = self.signals[other][at].clone();
        let known = Rc::make_mut(&mut self.known[thread]);
        for (mine, theirs) in known.iter_mut().zip(knew.iter()) {
            *mine = (*mine).max(*theirs);
        }
        known[other] = known[other].max(step);
    }

    /// All threads meet, each at that step of its own.
    pub(super) fn barrier(&mut self, steps: &[usize]) {
        let mut all: Vec<u32> = steps.iter().map(|&step| step as u32).collect();
        for known in &self.known {
            all.iter_mut().zip(known.iter()).for_each(|(most, step)| *most = (*most).max(*step));
        }
        self.known.fill(Rc::new(all));
    }

    /// All threads take part in a broadcast of `root`, each at that step of its own: the others know what the root knew, and
    /// that it has come so far. The root learns nothing.
    pub(super) fn broadcast(&mut self, root: usize, steps: &[usize]) {
        let mut told = Vec::clone(&self.known[root]);
        told[root] = told[root].max(steps[root] as u32);
        for (_, known) in self.known.iter_mut().enumerate().filter(|(thread, _)| *thread != root) {
            let known = Rc::make_mut(known);
            known.iter_mut().zip(&told).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
        }
    }

    /// Whether an access is over, in every execution, before step `step` of `thread` begins.
    fn is_over(&self, access: Point, thread: u32, step: u32) -> bool {
        if access.thread == thread {
            return access.end < step;
        }
        if let (Some(earlier), Some(mine)) = (self.phases.get(access.thread as usize), self.phases.get(thread as usize))
        {
            return earlier < mine;
        }
        self.known.get(thread as usize).is_some_and(|known| known[access.thread as usize] > access.end)
    }
}

/// The accesses of one cell that still matter.
#[derive(Clone)]
struct Last {
    write: Point,
    reads: SmallVec<[Point; 1]>,
}

/// The accesses of all cells.
pub(super) struct History {
    cells: Vec<Last>,
}

/// An earlier access that is not ordered before the present one.
pub(super) struct Unordered {
    pub(super) with: Point,
    pub(super) writes: bool,
}

impl History {
    pub(super) fn new(cells: usize) -> History {
        History { cells: vec![Last { write: NOBODY, reads: SmallVec::new() }; cells] }
    }

    /// Records an access that begins at step `step` and ends at `access.end`, a fetch for a read, a store for a write.
    pub(super) fn access(
        &mut self,
        clocks: &Clocks,
        cell: u32,
        access: Point,
        step: u32,
        direction: Direction,
    ) -> Result<(), Unordered> {
        let last = &mut self.cells[cell as usize];
        let over = |earlier: Point| clocks.is_over(earlier, access.thread, step);
        if last.write != NOBODY && !over(last.write) {
            return Err(Unordered { with: last.write, writes: true });
        }
        if direction == Direction::Store {
            if let Some(&with) = last.reads.iter().find(|&&read| !over(read)) {
                return Err(Unordered { with, writes: false });
            }
            last.reads.clear();
            last.write = access;
        } else {
            // The newest is last, so that many reads of one thread are found at once.
            match last.reads.iter_mut().rev().find(|read| read.thread == access.thread) {
                Some(read) => read.end = read.end.max(access.end),
                None => last.reads.push(access),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_passes_on_through_a_third_thread() {
        let mut clocks = Clocks::new(3);
        let mut history = History::new(1);
        let access = |thread, end| Point { thread, end };
        assert!(history.access(&clocks, 0, access(0, 3), 1, Direction::Store).is_ok());
        clocks.signal(0, 2);
        clocks.signal(0, 4);
        clocks.wait(1, 0, 2);
        clocks.signal(1, 1);
        assert!(history.access(&clocks, 0, access(2, 5), 5, Direction::Fetch).is_err_and(|e| e.writes));
        clocks.wait(2, 1, 1);
        assert!(history.access(&clocks, 0, access(2, 5), 5, Direction::Fetch).is_ok());
        let unordered = history.access(&clocks, 0, access(1, 2), 2, Direction::Store);
        assert!(unordered.is_err_and(|e| e.with == access(2, 5) && !e.writes));
    }

    #[test]
    fn a_barrier_orders_all_threads() {
        let mut clocks = Clocks::new(3);
        let mut history = History::new(1);
        let access = |thread, end| Point { thread, end };
        assert!(history.access(&clocks, 0, access(0, 3), 1, Direction::Store).is_ok());
        assert!(history.access(&clocks, 0, access(2, 7), 7, Direction::Fetch).is_err_and(|e| e.writes));
        clocks.barrier(&[4, 9, 6]);
        assert!(history.access(&clocks, 0, access(2, 8), 7, Direction::Fetch).is_ok());
        assert!(history.access(&clocks, 0, access(1, 10), 10, Direction::Store).is_err_and(|e| !e.writes));
        // A transfer that is awaited behind the barrier is not over before it.
        clocks.barrier(&[5, 10, 8]);
        assert!(history.access(&clocks, 0, access(1, 11), 11, Direction::Store).is_err_and(|e| !e.writes));
        clocks.barrier(&[6, 11, 9]);
        assert!(history.access(&clocks, 0, access(1, 12), 12, Direction::Store).is_ok());
    }

    #[test]
    fn a_broadcast_orders_the_root_before_the_others() {
        let mut clocks = Clocks::new(3);
        let mut history = History::new(2);
        let access = |thread, end| Point { thread, end };
        assert!(history.access(&clocks, 0, access(1, 2), 1, Direction::Store).is_ok());
        assert!(history.access(&clocks, 1, access(0, 2), 1, Direction::Store).is_ok());
        clocks.broadcast(1, &[3, 3, 3]);
        assert!(history.access(&clocks, 0, access(2, 4), 4, Direction::Fetch).is_ok());
        assert!(history.access(&clocks, 0, access(0, 4), 4, Direction::Fetch).is_ok());
        // Neither the root nor another child has heard of what the first did.
        for thread in [1, 2] {
            assert!(history.access(&clocks, 1, access(thread, 4), 4, Direction::Fetch).is_err_and(|e| e.writes));
        }
        // What others did before they came, the second root may pass on.
        clocks.broadcast(0, &[5, 5, 5]);
        assert!(history.access(&clocks, 1, access(1, 6), 6, Direction::Fetch).is_ok());
        assert!(history.access(&clocks, 0, access(0, 6), 6, Direction::Store).is_err_and(|e| !e.writes));
    }

    #[test]
    fn threads_of_one_phase_are_not_ordered() {
        let clocks = Clocks::in_phases(vec![0, 0, 1]);
        let mut history = History::new(1);
        let access = |thread, step| Point { thread, end: step };
        assert!(history.access(&clocks, 0, access(0, 0), 0, Direction::Store).is_ok());
        assert!(history.access(&clocks, 0, access(1, 9), 9, Direction::Fetch).is_err_and(|e| e.writes));
        assert!(history.access(&clocks, 0, access(2, 1), 1, Direction::Store).is_ok());
        assert!(history.access(&clocks, 0, access(1, 9), 9, Direction::Fetch).is_err(), "a phase before");
    }

    #[test]
    fn a_transfer_is_over_when_awaited_not_when_issued() {
        let mut clocks = Clocks::new(2);
        let mut history = History::new(1);
        assert!(history.access(&clocks, 0, Point { thread: 0, end: 5 }, 1, Direction::Store).is_ok());
        clocks.signal(0, 3);
        clocks.wait(1, 0, 1);
        assert!(history.access(&clocks, 0, Point { thread: 1, end: 1 }, 1, Direction::Fetch).is_err());
        assert!(history.access(&clocks, 0, Point { thread: 0, end: 4 }, 4, Direction::Fetch).is_err());
        assert!(history.access(&clocks, 0, Point { thread: 0, end: 6 }, 6, Direction::Fetch).is_ok());
    }
}
