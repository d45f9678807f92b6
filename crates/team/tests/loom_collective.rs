//! Model checks of collective operations on threads: registers, marks, buffers and parking as a run uses them. That the
//! schedules are right is proved elsewhere (`multigrain_schedule::check`); here it is whether the executor does what they
//! say, whatever the threads and the memory do.
#![cfg(loom)]

mod model;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use model::check;
use multigrain_schedule::choice::Table;
use multigrain_schedule::{Algorithm, Kind, Topology};
use multigrain_team::SpinLimit;
use multigrain_team::collective::{Collective, CollectiveError, CollectiveOptions, Sum};

/// A group, and for each rank a plain cell that a barrier guards: the checker reports an access that is not ordered after
/// the write before it.
struct Group {
    collective: Collective,
    cells: Vec<UnsafeCell<u32>>,
}

// SAFETY: the cells are what the tests are about; the checker itself reports unordered accesses.
unsafe impl Sync for Group {}
// SAFETY: as above.
unsafe impl Send for Group {}

fn group(n: u32, name: &str, polls: u32) -> Arc<Group> {
    let (kind, algorithm) = Algorithm::parse(name).unwrap();
    // Every kind by one algorithm, so that as little as possible is made in each execution.
    let all = [(Kind::Broadcast, "ATOBcast"), (Kind::Reduce, "ATORed"), (Kind::Allreduce, "ATOAllred")];
    let mut ways: Vec<(Kind, Algorithm)> = all.map(|(kind, name)| (kind, name.parse().unwrap())).to_vec();
    ways.retain(|way| way.0 != kind);
    ways.push((kind, algorithm));
    let options = CollectiveOptions {
        table: Table::constant(&ways),
        // Two places of a ring under the model checker, each a line.
        buffer_bytes: 384,
        spin: SpinLimit::from_polls(polls),
        ..CollectiveOptions::new(Topology::flat(n).unwrap())
    };
    let collective = Collective::new(options).unwrap();
    Arc::new(Group { collective, cells: (0..n).map(|_| UnsafeCell::new(0)).collect() })
}

/// Runs `body` as every rank; the first on the calling thread.
fn together(group: &Arc<Group>, body: impl Fn(&Group, u32) + Send + Sync + Copy + 'static) {
    let others: Vec<_> = (1..group.collective.size())
        .map(|rank| {
            let group = group.clone();
            thread::spawn(move || body(&group, rank))
        })
        .collect();
    body(group, 0);
    for other in others {
        other.join().unwrap();
    }
}

impl Group {
    /// Writes one's own cell, and after a barrier reads everybody's; another barrier, and all again.
    fn write_and_read(&self, rank: u32, rounds: u32) {
        for round in 1..=rounds {
            // SAFETY: the one writer of this cell; readers of the round before are past the barrier after it.
            self.cells[rank as usize].with_mut(|cell| unsafe { *cell = round });
            self.collective.barrier(rank).unwrap();
            for cell in &self.cells {
                // SAFETY: written before the barrier.
                assert_eq!(cell.with(|cell| unsafe { *cell }), round);
            }
            if round < rounds {
                self.collective.barrier(rank).unwrap();
            }
        }
    }
}

/// Hunts a signal that is lost between two uses of a register, and a participant that parks although its bit was flipped.
/// Three barriers: the third uses the bits of the first. Two threads with two preemptions: a signal lost between two
/// uses takes one in the sender and one in the receiver, a lost wake-up too.
#[test]
fn pairs_meet_again_and_again_and_see_each_others_data() {
    for polls in [0, 1] {
        check(Some(2), move || {
            together(&group(2, "PEBar", polls), |group, rank| group.write_and_read(rank, 2));
        });
    }
}

/// The same through a root: the bits of several senders in one word, flipped and announced at once. Three threads with two
/// preemptions: a lost wake-up takes one in the waiter (between look and park) and one in a sender (between flip and wake).
#[test]
fn a_root_hears_all_its_senders() {
    check(Some(2), || {
        together(&group(3, "ATOBar", 0), |group, rank| group.write_and_read(rank, 1));
    });
}

/// Hunts a contribution that is read before it is stored, a result that is read before it is combined, and a buffer that
/// the next operation overwrites too early. Two threads; two operations in a row.
#[test]
fn sums_are_complete_and_do_not_mix() {
    for name in ["ATOAllred_Opt", "PEAllred"] {
        check(Some(3), move || {
            together(&group(2, name, 1), |group, rank| {
                for round in 1..=2u64 {
                    let mut data = [round << (8 * rank)];
                    group.collective.allreduce(rank, &mut data, &Sum).unwrap();
                    assert_eq!(data, [round | round << 8]);
                }
            });
        });
    }
}

/// Hunts a broadcast that overtakes the one before, and a reduce that releases a contributor too early. Two threads.
#[test]
fn messages_and_contributions_arrive() {
    check(Some(3), || {
        together(&group(2, "ATORed_Opt", 1), |group, rank| {
            let mut data = [u64::from(rank) + 1];
            group.collective.reduce(rank, 1, &mut data, &Sum).unwrap();
            assert_eq!(data, [if rank == 1 { 3 } else { 1 }]);
            group.collective.broadcast(rank, 1, &mut data).unwrap();
            assert_eq!(data, [3]);
        });
    });
}

/// Hunts an offer that is seen before what it offers, a place that is written while its reader still reads, and a reader
/// that parks although something was offered. Two threads; one round more than the ring has places, so that the one that is
/// ahead has to wait, and a reduction the other way, which the other has room for.
#[test]
fn whoever_is_ahead_waits_for_room() {
    check(Some(2), || {
        together(&group(2, "ATORed_Eager", 0), |group, rank| {
            for (round, root) in [(1u64, 0), (2, 0), (3, 0), (4, 1)] {
                let mut data = [round << (8 * rank)];
                group.collective.reduce(rank, root, &mut data, &Sum).unwrap();
                let own = round << (8 * rank);
                assert_eq!(data, [if rank == root { round | round << 8 } else { own }]);
            }
        });
    });
}

/// The same from a root to its reader, with a barrier in between, whose bits and rounds are its own.
#[test]
fn messages_run_ahead_of_their_reader() {
    check(Some(2), || {
        together(&group(2, "ATOBcast_Eager", 0), |group, rank| {
            for round in 1..=3u64 {
                let mut data = [round * u64::from(rank == 0)];
                group.collective.broadcast(rank, 0, &mut data).unwrap();
                assert_eq!(data, [round]);
                if round == 1 {
                    group.collective.barrier(rank).unwrap();
                }
            }
        });
    });
}

/// Hunts two who wait for each other in different operations, of which none notices. Two threads, three preemptions.
#[test]
fn an_eager_operation_against_a_barrier_ends_both() {
    check(Some(3), || {
        together(&group(2, "ATORed_Eager", 0), |group, rank| {
            let result = match rank {
                0 => group.collective.reduce(0, 0, &mut [1u64], &Sum),
                _ => group.collective.barrier(1),
            };
            assert!(
                matches!(result, Err(CollectiveError::Mismatch { .. } | CollectiveError::Aborted { .. })),
                "{result:?}"
            );
        });
    });
}

/// Hunts the mismatch that one participant finds and the other sleeps through. Two threads, three preemptions.
#[test]
fn a_mismatch_ends_both() {
    check(Some(3), || {
        together(&group(2, "PEAllred", 0), |group, rank| {
            let mut data = [0u64; 2];
            let length = 1 + rank as usize;
            let result = group.collective.allreduce(rank, &mut data[..length], &Sum);
            assert!(
                matches!(result, Err(CollectiveError::Mismatch { .. } | CollectiveError::Aborted { .. })),
                "{result:?}"
            );
        });
    });
}
