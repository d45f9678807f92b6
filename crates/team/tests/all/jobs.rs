//! Jobs on real threads: each is executed once, results come as they were asked for, every error ends the call and
//! nothing hangs.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use multigrain_team::jobs::{Batching, Dispatch, JobOptions, JobsError, Order};
use multigrain_team::{SpinLimit, Team, TeamOptions};
use proptest::prelude::*;

fn team(workers: usize) -> Team {
    Team::new(TeamOptions { workers, bind: false, spin: SpinLimit::from_polls(100) }).unwrap()
}

const JOBS: u64 = if cfg!(miri) { 20 } else { 500 };

/// Every way to hand out and take in, some with little room.
fn all_options() -> Vec<JobOptions> {
    let mut all = Vec::new();
    for dispatch in [Dispatch::Queue, Dispatch::Mailbox] {
        for batch in [Batching::Fixed(1), Batching::Fixed(7), Batching::Adaptive] {
            for order in [Order::Ordered, Order::Unordered] {
                for host_works in [false, true] {
                    for in_flight in [1, 5, 64] {
                        all.push(JobOptions { dispatch, batch, order, in_flight, host_works });
                    }
                }
            }
        }
    }
    all
}

#[test]
fn each_job_is_executed_once_and_results_come_as_asked_for() {
    for workers in if cfg!(miri) { 2..4 } else { 1..6 } {
        let team = team(workers);
        for options in all_options() {
            let (executed, states) = (AtomicU64::new(0), AtomicUsize::new(0));
            let (mut next, in_flight, most, results) = (0, Cell::new(0_u32), Cell::new(0), RefCell::new(Vec::new()));
            let statistics = team
                .jobs(
                    &options,
                    || {
                        if next == JOBS {
                            return Ok::<_, String>(None);
                        }
                        in_flight.set(in_flight.get() + 1);
                        most.set(most.get().max(in_flight.get()));
                        next += 1;
                        Ok(Some(next - 1))
                    },
                    |worker| {
                        assert!(worker < workers);
                        states.fetch_add(1, Ordering::Relaxed);
                        0_u64
                    },
                    |state, job: u64| {
                        *state += 1;
                        executed.fetch_add(1, Ordering::Relaxed);
                        Ok(job * job)
                    },
                    |result| {
                        in_flight.set(in_flight.get() - 1);
                        results.borrow_mut().push(result);
                        Ok(())
                    },
                )
                .unwrap();
            let mut results = results.into_inner();
            if options.order == Order::Unordered {
                results.sort_unstable();
            }
            assert_eq!(results, (0..JOBS).map(|job| job * job).collect::<Vec<_>>(), "{workers} {options:?}");
            assert_eq!((executed.into_inner(), statistics.jobs), (JOBS, JOBS));
            assert!(most.get() <= options.in_flight, "{} in flight, {options:?}", most.get());
            assert!(states.into_inner() <= workers);
            if !options.host_works && workers > 1 {
                assert_eq!(statistics.by_host, 0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 300 }, ..ProptestConfig::default() })]

    /// Source, work and sink fail or panic at random jobs: in order, what the sink has seen and what is returned is that
    /// of a loop; as they come, the error is one of those.
    #[test]
    fn whatever_fails_ends_the_call(
        workers in 1..5_usize,
        mailbox: bool, ordered: bool, host_works: bool, batch in 0..9_u32, in_flight in 1..40_u32,
        jobs in 0..60_u64,
        source_fails in prop::option::of(0..60_u64),
        work_fails in prop::collection::btree_set(0..60_u64, 0..3),
        panics in prop::collection::btree_set(0..60_u64, 0..3),
        sink_fails in prop::option::of(0..60_u64),
    ) {
        let options = JobOptions {
            dispatch: if mailbox { Dispatch::Mailbox } else { Dispatch::Queue },
            batch: if batch == 0 { Batching::Adaptive } else { Batching::Fixed(batch) },
            order: if ordered { Order::Ordered } else { Order::Unordered },
            in_flight,
            host_works,
        };
        // Each job holds a count of the living: none may be leaked.
        let alive = Arc::new(());
        let (mut next, mut seen) = (0, Vec::new());
        let outcome = team(workers).jobs(
            &options,
            || {
                let job = next;
                next += 1;
                match job {
                    job if source_fails == Some(job) => Err(format!("source {job}")),
                    job if job >= jobs => Ok(None),
                    job => Ok(Some((job, Arc::clone(&alive)))),
                }
            },
            |_| (),
            |(), (job, life)| {
                assert!(!panics.contains(&job), "panic {job}");
                if work_fails.contains(&job) { Err(format!("work {job}")) } else { Ok((job, life)) }
            },
            |(job, _)| {
                if sink_fails == Some(job) {
                    return Err(format!("sink {job}"));
                }
                seen.push(job);
                Ok(())
            },
        );
        prop_assert_eq!(Arc::strong_count(&alive), 1);
        let outcome = outcome.map(|statistics| statistics.jobs).map_err(|error| match error {
            JobsError::Failed(text) => text,
            JobsError::Panic(panic) => panic.message,
        });
        let (mut expected, mut possible, mut end) = (Ok(0), BTreeSet::new(), None);
        for job in 0..60 {
            let failure = match job {
                _ if source_fails == Some(job) => format!("source {job}"),
                _ if job >= jobs => break,
                _ if panics.contains(&job) => format!("panic {job}"),
                _ if work_fails.contains(&job) => format!("work {job}"),
                _ if sink_fails == Some(job) => format!("sink {job}"),
                _ => {
                    if end.is_none() {
                        expected = Ok(job + 1);
                    }
                    continue;
                }
            };
            let from_source = failure.starts_with("source");
            possible.insert(failure.clone());
            if end.is_none() {
                end = Some(job);
                expected = Err(failure);
            }
            if from_source {
                break;
            }
        }
        if ordered {
            prop_assert_eq!(&outcome, &expected);
            prop_assert_eq!(seen, (0..end.unwrap_or(jobs.min(60))).collect::<Vec<_>>());
        } else if let Err(text) = outcome {
            prop_assert!(possible.contains(&text), "{} is none of {:?}", text, possible);
        } else {
            prop_assert!(possible.is_empty());
            prop_assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len() as u64, jobs);
        }
    }
}

#[test]
fn a_panic_of_source_or_sink_goes_on_when_no_job_runs() {
    let team = team(3);
    for sink_panics in [false, true] {
        let (running, mut next) = (AtomicUsize::new(0), 0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            team.jobs(
                &JobOptions { in_flight: 8, ..JobOptions::default() },
                || {
                    next += 1;
                    assert!(sink_panics || next < 20, "the source");
                    Ok::<_, ()>(Some(next))
                },
                |_| (),
                |(), job: u32| {
                    running.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                    running.fetch_sub(1, Ordering::Relaxed);
                    Ok(job)
                },
                |job| {
                    assert!(!sink_panics || job < 10, "the sink");
                    Ok(())
                },
            )
        }));
        let text = *caught.unwrap_err().downcast::<&str>().unwrap();
        assert_eq!(text, if sink_panics { "the sink" } else { "the source" });
        assert_eq!(running.into_inner(), 0);
        // The team can be used again.
        team.fork(0..3, &|_| {}).unwrap();
    }
}

#[test]
fn jobs_of_a_job_are_executed_by_its_worker() {
    let team = team(3);
    let sum = |from: u64| {
        let (mut next, mut sum) = (from, 0);
        let source = || {
            next += 1;
            Ok(Some(next).filter(|next| *next <= from + 10))
        };
        let sink = |result: u64| {
            sum += result;
            Ok::<_, ()>(())
        };
        team.jobs(&JobOptions::default(), source, |_| (), |(), job| Ok(job), sink).map(|_| sum)
    };
    let (mut next, mut total) = (0, 0);
    let source = || {
        next += 1;
        Ok(Some(next * 100).filter(|_| next <= 20))
    };
    let sink = |result: u64| {
        total += result;
        Ok::<_, ()>(())
    };
    let work = |(): &mut (), job| sum(job).map_err(|_| ());
    team.jobs(&JobOptions::default(), source, |_| (), work, sink).unwrap();
    assert_eq!(total, (1..=20).map(|job| 10 * job * 100 + 55).sum::<u64>());
}
