//! Collective operations on threads, beside a plain reference.
#![cfg(not(loom))]

use multigrain_schedule::choice::{Sample, Table};
use multigrain_schedule::{Algorithm, Kind, Laws, ScheduleError, Topology};
use multigrain_team::collective::{Collective, CollectiveError, CollectiveOptions, Element, Max, Min, Operator, Sum};
use multigrain_team::{Abort, SpinLimit};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// What rank `rank` contributes at `i`: sums of these depend on the order in which they are rounded.
fn contribution(rank: u32, i: usize) -> f32 {
    let x = (rank.wrapping_mul(2_654_435_761) ^ (i as u32).wrapping_mul(40_503)) % 100_003;
    (x as f32 - 50_000.0) * 1.37e-3 * 2f32.powi((x % 23) as i32 - 11)
}

/// The canonical order, written down again: cut after the largest power of two below the length.
fn canonical(values: &[f32]) -> f32 {
    match values {
        [value] => *value,
        _ => {
            let cut = values.len().next_power_of_two() / 2;
            canonical(&values[..cut]) + canonical(&values[cut..])
        }
    }
}

fn expected(n: u32, length: usize) -> Vec<f32> {
    (0..length).map(|i| canonical(&(0..n).map(|rank| contribution(rank, i)).collect::<Vec<_>>())).collect()
}

fn group(topology: &Topology, kind: Kind, algorithm: Algorithm, buffer_bytes: u64) -> Collective {
    let table = Table::constant(&[(kind, algorithm)]);
    let options = CollectiveOptions { table, buffer_bytes, ..CollectiveOptions::new(topology.clone()) };
    Collective::new(options).unwrap_or_else(|e| panic!("{} of {topology}: {e}", algorithm.name(kind)))
}

/// Runs `body` as every rank at once.
fn together<R: Send>(n: u32, body: impl Fn(u32) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = (0..n).map(|rank| scope.spawn(move || body(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn bits(data: &[f32]) -> Vec<u32> {
    data.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn no_algorithm_topology_or_root_changes_a_bit() {
    // Lengths within a line, of a line, and of several rounds, none of them whole lines.
    let lengths = if cfg!(miri) { vec![3] } else { vec![1, 32, 33, 1999] };
    let sizes = if cfg!(miri) { vec![2, 3] } else { vec![1, 2, 3, 5, 8, 13] };
    for n in sizes {
        for topology in [Topology::flat(n).unwrap(), Topology::packed(n, &[2, 3, 3]).unwrap()] {
            for kind in [Kind::Broadcast, Kind::Reduce, Kind::Allreduce] {
                for (a, algorithm) in Algorithm::all(kind, &[2, 3]).into_iter().enumerate() {
                    let group = group(&topology, kind, algorithm, if algorithm.eager { 16 << 10 } else { 4096 });
                    let root = a as u32 % n;
                    let results = together(n, |rank| {
                        let mut results = Vec::new();
                        for &length in &lengths {
                            let mut data: Vec<f32> = (0..length).map(|i| contribution(rank, i)).collect();
                            match kind {
                                Kind::Broadcast => group.broadcast(rank, root, &mut data).unwrap(),
                                Kind::Reduce => group.reduce(rank, root, &mut data, &Sum).unwrap(),
                                _ => group.allreduce(rank, &mut data, &Sum).unwrap(),
                            }
                            results.push(data);
                        }
                        results
                    });
                    for (rank, results) in (0..n).zip(results) {
                        for (data, &length) in results.iter().zip(&lengths) {
                            let own = |rank| (0..length).map(|i| contribution(rank, i)).collect::<Vec<_>>();
                            let expected = match kind {
                                Kind::Broadcast => own(root),
                                Kind::Reduce if rank != root => own(rank),
                                _ => expected(n, length),
                            };
                            let name = algorithm.name(kind);
                            assert_eq!(bits(data), bits(&expected), "{name} of {topology}, root {root}, rank {rank}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn nobody_leaves_a_barrier_early_with_more_threads_than_processors() {
    let rounds = if cfg!(miri) { 3 } else { 50 };
    for n in if cfg!(miri) { vec![3] } else { vec![2, 7, 32, 48] } {
        let topology = Topology::packed(n, &[2, 32]).unwrap();
        for algorithm in Algorithm::all(Kind::Barrier, &[2, 4]) {
            let group = group(&topology, Kind::Barrier, algorithm, 8192);
            let entered = AtomicU32::new(0);
            together(n, |rank| {
                for round in 1..=rounds {
                    entered.fetch_add(1, Ordering::Relaxed);
                    group.barrier(rank).unwrap();
                    let seen = entered.load(Ordering::Relaxed);
                    assert!((n * round..=n * (round + 1)).contains(&seen), "{}: {seen}", algorithm.name(Kind::Barrier));
                }
            });
        }
    }
}

/// Operations of all kinds in one sequence, on one collective.
#[derive(Clone, Debug)]
enum Call {
    Barrier,
    Broadcast(u32, usize),
    Reduce(u32, usize, bool),
    Allreduce(usize, bool),
}

fn calls() -> impl Strategy<Value = (u32, Vec<Call>, Vec<(usize, usize, u32)>)> {
    let call = prop_oneof![
        Just(Call::Barrier),
        (any::<u32>(), 0..600usize).prop_map(|(root, length)| Call::Broadcast(root, length)),
        (any::<u32>(), 0..600usize, any::<bool>()).prop_map(|(root, length, float)| Call::Reduce(root, length, float)),
        (0..600usize, any::<bool>()).prop_map(|(length, float)| Call::Allreduce(length, float)),
    ];
    let times = prop::collection::vec((0..3usize, 0..100usize, 1..1000u32), 0..30);
    (1..8u32, prop::collection::vec(call, 1..20), times)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 60 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Tables as they come out of arbitrary measurements: every way to execute an operation has its turn.
    #[test]
    fn mixed_operations_by_any_table((n, calls, times) in calls()) {
        let samples: Vec<Sample> = times
            .into_iter()
            .map(|(kind, algorithm, ns)| {
                let kind = [Kind::Broadcast, Kind::Reduce, Kind::Allreduce][kind];
                let all = Algorithm::all(kind, &[2]);
                let (algorithm, bytes) = (all[algorithm % all.len()], 256 * u64::from(ns % 4));
                Sample { kind, algorithm, size: n, bytes, latency_ns: f64::from(ns) }
            })
            .collect();
        let table = Table::measured(&samples);
        let topology = Topology::packed(n, &[2, 4]).unwrap();
        let options = CollectiveOptions { table, buffer_bytes: 8192, ..CollectiveOptions::new(topology) };
        let group = Collective::new(options).unwrap();
        let all = together(n, |rank| {
            for call in &calls {
                match *call {
                    Call::Barrier => group.barrier(rank).unwrap(),
                    Call::Broadcast(root, length) => {
                        let root = root % n;
                        let mut data: Vec<u16> = (0..length).map(|i| (i as u32 * 7 + rank) as u16).collect();
                        group.broadcast(rank, root, &mut data).unwrap();
                        assert!(data.into_iter().eq((0..length).map(|i| (i as u32 * 7 + root) as u16)));
                    }
                    Call::Reduce(root, length, float) => {
                        let root = root % n;
                        reduced(rank, length, float, rank == root, n, |data, exact| match exact {
                            Some(exact) => group.reduce(rank, root, exact, &Sum).unwrap(),
                            None => group.reduce(rank, root, data, &Sum).unwrap(),
                        });
                    }
                    Call::Allreduce(length, float) => {
                        reduced(rank, length, float, true, n, |data, exact| match exact {
                            Some(exact) => group.allreduce(rank, exact, &Sum).unwrap(),
                            None => group.allreduce(rank, data, &Sum).unwrap(),
                        });
                    }
                }
            }
        });
        prop_assert_eq!(all.len() as u32, n);
    }
}

/// Reduces floats or integers and compares with the reference.
fn reduced(
    rank: u32,
    length: usize,
    float: bool,
    receives: bool,
    n: u32,
    reduce: impl FnOnce(&mut [f32], Option<&mut [i64]>),
) {
    let mut floats: Vec<f32> = (0..length).map(|i| contribution(rank, i)).collect();
    let mut integers: Vec<i64> = (0..length).map(|i| i64::from(rank) << (i % 60)).collect();
    if float {
        reduce(&mut floats, None);
        if receives {
            assert_eq!(bits(&floats), bits(&expected(n, length)));
        }
    } else {
        reduce(&mut [], Some(&mut integers));
        if receives {
            let sum: i64 = (0..i64::from(n)).sum();
            assert!(integers.into_iter().eq((0..length).map(|i| sum << (i % 60))));
        }
    }
}

/// Keeps the left operand: associative, not commutative, so that the order of ranks shows.
struct First;

impl<T: Element> Operator<T> for First {
    fn name(&self) -> &str {
        "first"
    }

    fn laws(&self) -> Laws {
        Laws { associative: true, commutative: false }
    }

    fn combine(&self, left: T, _: T) -> T {
        left
    }
}

fn the_first_wins<T: Element>(values: [T; 3]) {
    for name in ["ATOAllred", "TTAllredB_Opt(2)", "PEAllred"] {
        let group = group(&Topology::flat(3).unwrap(), Kind::Allreduce, name.parse().unwrap(), 4096);
        let results = together(3, |rank| {
            let mut data = [values[rank as usize]; 19];
            group.allreduce(rank, &mut data, &First).unwrap();
            data
        });
        assert_eq!(results, [[values[0]; 19]; 3], "{name}");
    }
}

#[test]
fn all_elements_and_operators() {
    macro_rules! check {
        ($($type:ident)*) => {$(
            the_first_wins([1 as $type, 2 as $type, 3 as $type]);
            assert_eq!(Operator::<$type>::combine(&Sum, 1 as $type, 2 as $type), 3 as $type);
            assert_eq!(Operator::<$type>::combine(&Max, 1 as $type, 2 as $type), 2 as $type);
            assert_eq!(Operator::<$type>::combine(&Min, 1 as $type, 2 as $type), 1 as $type);
        )*};
    }
    check!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);
    let min = |a: f32, b: f32| Operator::<f32>::combine(&Min, a, b);
    assert!(min(0.0, -0.0).is_sign_negative() && min(-0.0, 0.0).is_sign_negative());
    assert!(min(f32::NAN, 1.0).is_nan() && min(1.0, f32::NAN).is_nan());
    assert_eq!(Operator::<i8>::combine(&Sum, 127, 1), -128);
}

#[test]
fn who_is_outside_the_group_is_refused() {
    let group = Collective::new(CollectiveOptions::new(Topology::flat(2).unwrap())).unwrap();
    let outside = |what, rank| Err(CollectiveError::from(ScheduleError::OutsideGroup { what, rank, last: 1 }));
    assert_eq!(group.barrier(2), outside("rank", 2));
    assert_eq!(group.broadcast(2, 0, &mut [0u8]), outside("rank", 2));
    assert_eq!(group.reduce(0, 7, &mut [0u8], &Sum), outside("root", 7));
    assert_eq!(group.allreduce(u32::MAX, &mut [0u8], &Sum), outside("rank", u32::MAX));
}

#[test]
fn a_buffer_without_room_for_the_group_is_refused() {
    let table = Table::constant(&[(Kind::Reduce, "ATORed".parse().unwrap())]);
    let topology = Topology::flat(9).unwrap();
    let options = CollectiveOptions { table, buffer_bytes: 128, ..CollectiveOptions::new(topology) };
    assert!(matches!(Collective::new(options), Err(ScheduleError::BufferTooSmall { need: 1024, .. })));
}

#[test]
fn different_operations_are_found_out() {
    type Other = fn(&Collective) -> Result<(), CollectiveError>;
    let other: [Other; 4] = [
        |group| group.allreduce(1, &mut [0f32; 4], &Max),
        |group| group.allreduce(1, &mut [0f32; 5], &Sum),
        |group| group.allreduce(1, &mut [0i32; 4], &Sum),
        |group| group.barrier(1),
    ];
    for other in other {
        let group = Collective::new(CollectiveOptions::new(Topology::flat(2).unwrap())).unwrap();
        let results = together(2, |rank| match rank {
            0 => group.allreduce(0, &mut [0f32; 4], &Sum),
            _ => other(&group),
        });
        let mismatch = |result: &Result<(), _>| matches!(result, Err(CollectiveError::Mismatch { .. }));
        assert!(results.iter().any(mismatch), "{results:?}");
        assert!(results.iter().all(Result::is_err), "{results:?}");
        assert!(group.abort().is_raised());
    }
}

#[test]
fn an_eager_operation_and_a_barrier_are_told_apart() {
    let table = Table::constant(&[(Kind::Reduce, "ATORed_Eager".parse().unwrap())]);
    let options = CollectiveOptions {
        table,
        spin: SpinLimit::from_polls(100),
        ..CollectiveOptions::new(Topology::flat(2).unwrap())
    };
    let group = Collective::new(options).unwrap();
    // The root waits for a contribution, the other for the root's signal.
    let results = together(2, |rank| match rank {
        0 => group.reduce(0, 0, &mut [0f32; 4], &Sum),
        _ => group.barrier(1),
    });
    assert!(results.iter().any(|result| matches!(result, Err(CollectiveError::Mismatch { .. }))), "{results:?}");
    assert!(results.iter().all(Result::is_err), "{results:?}");
}

/// Roots, algorithms and sizes change from one eager operation to the next, and the one that is ahead meets places of its
/// ring that others still need.
#[test]
fn eager_operations_of_all_kinds_follow_each_other() {
    let rounds = if cfg!(miri) { 10 } else { 400 };
    for (n, red, bcast) in [(2, "ATORed_Eager", "ATOBcast_Eager"), (5, "BTRed_Eager", "TTBcast_Eager(2)")] {
        let ways = [(Kind::Reduce, red), (Kind::Broadcast, bcast)].map(|(kind, name)| (kind, name.parse().unwrap()));
        let topology = Topology::flat(n).unwrap();
        let options = CollectiveOptions { table: Table::constant(&ways), ..CollectiveOptions::new(topology) };
        let group = Collective::new(options).unwrap();
        together(n, |rank| {
            for round in 0..rounds {
                let (root, length) = (round * 7 / 3 % n, [1, 40, 3000][round as usize % 3]);
                let mut data: Vec<f32> = (0..length).map(|i| contribution(rank + round, i)).collect();
                group.reduce(rank, root, &mut data, &Sum).unwrap();
                let sums = |i| canonical(&(0..n).map(|rank| contribution(rank + round, i)).collect::<Vec<_>>());
                if rank == root {
                    assert_eq!(bits(&data), bits(&(0..length).map(sums).collect::<Vec<_>>()));
                }
                if round % 5 == 0 {
                    group.barrier(rank).unwrap();
                }
                group.broadcast(rank, (root + round) % n, &mut data[..1]).unwrap();
                let from = (root + round) % n;
                let first = if from == root { sums(0) } else { contribution(from + round, 0) };
                assert_eq!(data[0].to_bits(), first.to_bits());
            }
        });
    }
}

#[test]
fn a_broadcast_is_ended_by_the_flag_it_was_given() {
    for polls in [0, 1000] {
        let options = CollectiveOptions {
            spin: SpinLimit::from_polls(polls),
            ..CollectiveOptions::new(Topology::flat(3).unwrap())
        };
        let (group, abort) = (Collective::new(options).unwrap(), Abort::new());
        let results = together(3, |rank| {
            // More than the ring holds, so that the root waits too; one never comes.
            let mut data = vec![rank as u8; 300_000];
            if rank == 2 {
                abort.raise();
                return Ok(());
            }
            group.broadcast_until(rank, 0, &mut data, &abort)
        });
        for (rank, result) in results[..2].iter().enumerate() {
            let is_it = matches!(result, Err(CollectiveError::Aborted { rank: of, .. }) if *of as usize == rank);
            // Who gets everything that was offered before may be done.
            assert!(is_it || rank == 1 && result.is_ok(), "{results:?}");
        }
        assert!(results[0].is_err() && !group.abort().is_raised());
    }
}

#[test]
fn an_abort_ends_every_wait() {
    for polls in [0, 1000] {
        let options = CollectiveOptions {
            spin: SpinLimit::from_polls(polls),
            ..CollectiveOptions::new(Topology::flat(3).unwrap())
        };
        let group = Collective::new(options).unwrap();
        let results = together(3, |rank| match rank {
            2 => {
                group.abort().raise();
                Ok(())
            }
            _ => group.barrier(rank),
        });
        let aborted = |rank| Err(CollectiveError::Aborted { rank, operation: Kind::Barrier });
        assert_eq!(results, [aborted(0), aborted(1), Ok(())]);
    }
}
