//! Model checks of fork, join and the mailboxes: the code that a run uses, threads included.
#![cfg(loom)]

mod model;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use model::check;
use multigrain_team::{SpinLimit, Team, TeamOptions};

fn team(workers: usize, polls: u32) -> Team {
    Team::new(TeamOptions { workers, bind: false, spin: SpinLimit::from_polls(polls) }).unwrap()
}

/// A plain cell for each worker: the checker reports an access that is not ordered after the write before it.
struct Cells(Vec<UnsafeCell<usize>>);

// SAFETY: the cells are what the tests are about; the checker itself reports unordered accesses.
unsafe impl Sync for Cells {}

impl Cells {
    fn new(workers: usize) -> Cells {
        Cells((0..workers).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, worker: usize, amount: usize) {
        // SAFETY: only the worker itself adds while a fork lasts.
        self.0[worker].with_mut(|cell| unsafe { *cell += amount });
    }

    fn values(&self) -> Vec<usize> {
        // SAFETY: read by the leader between forks.
        self.0.iter().map(|cell| cell.with(|cell| unsafe { *cell })).collect()
    }
}

/// Hunts a post overwritten before it was read, a second post that the worker misses because the wake-up of the first
/// is still under way, and results that the leader reads before they are written. Two threads, four preemptions: two
/// for each of the two hand-overs.
#[test]
fn two_forks_one_after_the_other() {
    check(Some(4), || {
        let (team, cells) = (team(2, 0), Cells::new(2));
        for round in 1..=2 {
            team.fork(0..2, &|worker| cells.add(worker, round)).unwrap();
            assert_eq!(cells.values(), vec![round * (round + 1) / 2; 2]);
        }
    });
}

/// The same with a look before parking: then only the orderings of the two counts are between leader and worker.
#[test]
fn two_forks_with_spinning_workers() {
    check(Some(3), || {
        let (team, cells) = (team(2, 1), Cells::new(2));
        for round in 1..=2 {
            team.fork(0..2, &|worker| cells.add(worker, round)).unwrap();
            assert_eq!(cells.values(), vec![round * (round + 1) / 2; 2]);
        }
    });
}

/// Hunts a leader that returns while a part of the tree is not done: with four workers, worker 2 hands a part on to
/// worker 3. Four threads, so one preemption: what is new beside the two-thread tests is who waits for whom, not the
/// hand-over itself.
#[test]
fn a_tree_of_four_workers() {
    check(Some(1), || {
        let (team, cells) = (team(4, 0), Cells::new(4));
        team.fork(0..4, &|worker| cells.add(worker, 1)).unwrap();
        assert_eq!(cells.values(), [1; 4]);
    });
}

/// Hunts a mailbox with two writers: worker 1 is led by worker 0, then by worker 0 as the leader of a group, then by
/// worker 0 again, and each must see the end of what the others posted. Three threads, one preemption as above.
#[test]
fn a_nested_fork_of_a_group() {
    check(Some(1), || {
        let (team, cells) = (team(3, 0), Cells::new(3));
        team.fork_groups(&[0..2, 2..3], &|child| {
            if child == 0 {
                team.fork(0..2, &|worker| cells.add(worker, 1)).unwrap();
            }
        })
        .unwrap();
        team.fork(0..3, &|worker| cells.add(worker, 1)).unwrap();
        assert_eq!(cells.values(), [2, 2, 1]);
    });
}

/// Hunts a panic that leaves the leader waiting or the worker gone. Two threads, two preemptions.
#[test]
fn a_panic_is_handed_over() {
    check(Some(2), || {
        let (team, calls) = (team(2, 0), AtomicUsize::new(0));
        let failed = team.fork(0..2, &|worker| {
            calls.fetch_add(1, Ordering::Relaxed);
            if worker == 1 {
                std::panic::resume_unwind(Box::new("leaf"));
            }
        });
        assert_eq!(failed.unwrap_err().message, "leaf");
        team.fork(0..2, &|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 4);
    });
}
