//! The team on real threads: every worker does its part once, panics stay contained, more workers than processors
//! get on, an abort ends every wait.
#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use multigrain_team::{Abort, Aborted, ChainQueue, SpinLimit, Steps, Team, TeamOptions};

fn team(workers: usize) -> Team {
    Team::new(TeamOptions { workers, bind: false, spin: SpinLimit::from_polls(100) }).unwrap()
}

fn counters(n: usize) -> Vec<AtomicUsize> {
    (0..n).map(|_| AtomicUsize::new(0)).collect()
}

fn values(counters: &[AtomicUsize]) -> Vec<usize> {
    counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect()
}

const REPEATS: usize = if cfg!(miri) { 3 } else { 200 };

#[test]
fn every_worker_of_the_range_runs_the_job_once() {
    for workers in 1..=9 {
        let team = team(workers);
        for start in 0..workers {
            for end in start..=workers {
                let calls = counters(workers);
                team.fork(start..end, &|worker| {
                    calls[worker].fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
                let expected: Vec<_> = (0..workers).map(|worker| usize::from((start..end).contains(&worker))).collect();
                assert_eq!(values(&calls), expected);
            }
        }
    }
}

#[test]
fn each_worker_keeps_its_thread() {
    let team = team(4);
    let ids = || {
        let ids: Vec<_> = (0..4).map(|_| std::sync::Mutex::new(None)).collect();
        team.fork(0..4, &|worker| *ids[worker].lock().unwrap() = Some(std::thread::current().id())).unwrap();
        ids.into_iter().map(|id| id.into_inner().unwrap().unwrap()).collect::<Vec<_>>()
    };
    let first = ids();
    assert_eq!(first[0], std::thread::current().id());
    assert_eq!(first, ids());
    assert_eq!(first.iter().collect::<std::collections::HashSet<_>>().len(), 4);
}

#[test]
fn what_a_job_writes_is_visible_after_the_fork() {
    let team = team(4);
    let mut cells = vec![0_u64; 4];
    for round in 1..=REPEATS as u64 {
        let parts: Vec<_> = cells.iter_mut().map(std::sync::Mutex::new).collect();
        team.fork(0..4, &|worker| **parts[worker].lock().unwrap() += round * worker as u64).unwrap();
    }
    let rounds: u64 = (1..=REPEATS as u64).sum();
    assert_eq!(cells, [0, rounds, 2 * rounds, 3 * rounds]);
}

#[test]
fn groups_lead_their_workers_and_nest() {
    let team = team(7);
    let calls = counters(7);
    let outer = counters(3);
    for _ in 0..REPEATS {
        team.run(|| {
            team.fork_groups(&[0..3, 3..4, 4..7], &|child| {
                outer[child].fetch_add(1, Ordering::Relaxed);
                let led = [0..3, 3..4, 4..7][child].clone();
                for _ in 0..2 {
                    team.fork(led.clone(), &|worker| {
                        calls[worker].fetch_add(1, Ordering::Relaxed);
                        // A worker that leads itself only may still fork over itself.
                        team.fork(worker..worker + 1, &|_| {}).unwrap();
                    })
                    .unwrap();
                }
            })
        })
        .unwrap();
    }
    assert_eq!(values(&outer), [REPEATS; 3]);
    assert_eq!(values(&calls), [2 * REPEATS; 7]);
}

#[test]
fn three_levels_of_groups() {
    let team = team(8);
    let calls = counters(8);
    team.fork_groups(&[0..4, 4..8], &|half| {
        let start = 4 * half;
        team.fork_groups(&[start..start + 2, start + 2..start + 4], &|quarter| {
            let start = start + 2 * quarter;
            team.fork(start..start + 2, &|worker| {
                calls[worker].fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        })
        .unwrap();
    })
    .unwrap();
    assert_eq!(values(&calls), [1; 8]);
}

#[test]
fn a_panic_is_reported_and_the_others_finish() {
    let team = team(4);
    let calls = counters(4);
    for round in 0..REPEATS {
        let bad = round % 4;
        let failed = team.fork(0..4, &|worker| {
            assert!(worker != bad, "leaf {worker} of round {round}");
            calls[worker].fetch_add(1, Ordering::Relaxed);
        });
        let failed = failed.unwrap_err();
        assert_eq!((failed.worker, failed.message), (bad, format!("leaf {bad} of round {round}")));
    }
    assert_eq!(values(&calls).iter().sum::<usize>(), 3 * REPEATS);
    team.fork(0..4, &|_| {}).unwrap();
}

#[test]
fn a_panic_without_a_text_and_one_in_a_nested_fork() {
    let team = team(4);
    let odd = team.fork(0..2, &|worker| {
        if worker == 1 {
            std::panic::panic_any(17_u32);
        }
    });
    assert_eq!(odd.unwrap_err().message, "a panic without a text");
    let nested = team.fork_groups(&[0..2, 2..4], &|child| {
        let inner = team.fork(2 * child..2 * child + 2, &|worker| assert!(worker != 3, "three"));
        if let Err(panic) = inner {
            panic!("{panic}");
        }
    });
    let nested = nested.unwrap_err();
    assert_eq!((nested.worker, nested.message.as_str()), (2, "worker 3 panicked: three"));
}

#[test]
fn a_fork_over_workers_that_are_not_led_is_refused() {
    let team = team(4);
    let refused = team.fork(0..2, &|worker| {
        if worker == 1 {
            let _ = team.fork(1..3, &|_| {});
        }
    });
    assert_eq!(refused.unwrap_err().message, "worker 1 leads workers 1..2 and cannot fork over 1..3");
    let overlapping = std::panic::catch_unwind(|| team.fork_groups(&[0..2, 1..3], &|_| {}));
    assert!(overlapping.is_err());
    let beyond = std::panic::catch_unwind(|| team.fork(2..5, &|_| {}));
    assert!(beyond.is_err());
    team.fork(0..4, &|_| {}).unwrap();
}

#[test]
fn threads_outside_take_turns() {
    let team = team(3);
    let (busy, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..REPEATS {
                    team.run(|| {
                        assert!(!busy.swap(true, Ordering::Relaxed));
                        team.fork(0..3, &|_| {
                            calls.fetch_add(1, Ordering::Relaxed);
                        })
                        .unwrap();
                        assert!(busy.swap(false, Ordering::Relaxed));
                    });
                }
            });
        }
    });
    assert_eq!(calls.into_inner(), 3 * 3 * REPEATS);
}

#[test]
fn more_workers_than_processors_get_on() {
    let workers = if cfg!(miri) { 4 } else { 24 };
    let team = Team::new(TeamOptions { workers, ..TeamOptions::default() }).unwrap();
    let steps: Vec<_> = (0..workers).map(|_| Steps::new(team.spin())).collect();
    let abort = Abort::new();
    // Each step of a worker waits for the same step of its neighbour: a barrier would be no stricter a test.
    team.fork(0..workers, &|worker| {
        for step in 1..=REPEATS as u64 {
            steps[worker].signal();
            steps[(worker + 1) % workers].wait_for(step, &abort).unwrap();
        }
    })
    .unwrap();
    assert!(steps.iter().all(|steps| steps.count() == REPEATS as u64));
}

#[test]
fn a_team_without_spinning_gets_on() {
    let team = Team::new(TeamOptions { workers: 3, bind: false, spin: SpinLimit::from_polls(0) }).unwrap();
    let calls = AtomicUsize::new(0);
    for _ in 0..REPEATS {
        team.fork(0..3, &|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    }
    assert_eq!(calls.into_inner(), 3 * REPEATS);
}

#[test]
fn an_abort_ends_every_wait() {
    let (never, abort) = (Steps::new(SpinLimit::SHORT), Arc::new(Abort::new()));
    std::thread::scope(|scope| {
        let waits: Vec<_> = (1..5)
            .map(|value| {
                scope.spawn({
                    let (never, abort) = (&never, &abort);
                    move || never.wait_for(value, abort)
                })
            })
            .collect();
        std::thread::yield_now();
        abort.raise();
        assert!(waits.into_iter().all(|wait| wait.join().unwrap() == Err(Aborted)));
    });
    assert!(abort.is_raised());
    assert_eq!(never.wait_for(1, &abort), Err(Aborted));
    never.signal();
    assert_eq!(never.wait_for(1, &abort), Ok(()));
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn the_callers_processors_are_as_before() {
    let team = Team::new(TeamOptions { workers: 2, ..TeamOptions::default() }).unwrap();
    let mask = || rustix::thread::sched_getaffinity(None).unwrap();
    let before = mask();
    team.run(|| team.fork(0..2, &|_| {})).unwrap();
    assert!(mask() == before);
    let processors = before.count() as usize;
    if team.bound() {
        team.fork(0..2, &|worker| assert!(worker == 0 || mask().count() == 1)).unwrap();
        team.run(|| assert_eq!(mask().count(), 1));
    } else {
        // Nothing is bound on a machine of one processor, nor where the system refuses it.
        assert!(processors < 2 || team.run(|| mask().count() as usize) <= processors);
    }
}

/// Whatever other teams of the process may use.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn a_team_keeps_to_the_processors_of_who_made_it() {
    let mask = || rustix::thread::sched_getaffinity(None).unwrap();
    let all = mask();
    let each = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&processor| all.is_set(processor));
    for processor in each {
        // A thread of its own, whose processors nobody else's are.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut only = rustix::thread::CpuSet::new();
                only.set(processor);
                rustix::thread::sched_setaffinity(None, &only).unwrap();
                let team = Team::new(TeamOptions { workers: 1, ..TeamOptions::default() }).unwrap();
                assert!(team.run(|| mask() == only), "on processor {processor}");
                assert_eq!(Team::new(TeamOptions { workers: 3, ..TeamOptions::default() }).unwrap().at_once(), 1);
            });
        });
    }
}

#[test]
fn chains_are_claimed_exactly_once() {
    let team = team(4);
    let lengths = [50_u32, 0, 7, 120];
    let mut queue = ChainQueue::new(&lengths);
    for _ in 0..REPEATS {
        let claims: Vec<_> = lengths.iter().map(|length| counters(*length as usize)).collect();
        team.fork(0..4, &|worker| {
            while let Some((owner, chain)) = queue.claim(worker) {
                claims[owner][chain].fetch_add(1, Ordering::Relaxed);
            }
        })
        .unwrap();
        assert!(claims.iter().flatten().all(|claims| claims.load(Ordering::Relaxed) == 1));
        queue.refill(&lengths);
    }
}
