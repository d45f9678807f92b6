//! What holds whenever jobs are handed out, whatever the order in which they are done.

use multigrain_schedule::jobs::{BATCH_NS, Batching, Dispatch, Dispatcher, Next, Rules, To};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Batches under way: who has them, or the queue.
#[derive(Default)]
struct World {
    queue: VecDeque<u32>,
    workers: Vec<Option<u32>>,
    /// Done, and not yet given to the sink.
    in_flight: u32,
    executed: u64,
    batches: Vec<(To, u32)>,
}

impl World {
    /// A worker that has nothing to do takes from the queue.
    fn take(&mut self) {
        for worker in &mut self.workers {
            if worker.is_none() {
                *worker = self.queue.pop_front();
            }
        }
    }
}

/// Drives a dispatcher to its end; `choices` says who is done next, `length_ns` how long a job takes.
fn drive(rules: Rules, mut jobs: u64, choices: &[usize], length_ns: u64) -> World {
    let total = jobs;
    let mut dispatcher = Dispatcher::new(rules);
    let mut world = World { workers: vec![None; rules.workers as usize], ..World::default() };
    let mut choices = choices.iter().cycle();
    let limit = rules.in_flight.max(1);
    for _ in 0..20 * total + 100 {
        match dispatcher.next() {
            Next::Fill { jobs: asked, to } => {
                assert!(asked > 0 && world.in_flight + asked <= limit, "{asked} more of {limit}, {rules:?}");
                let given = u64::from(asked).min(jobs) as u32;
                jobs -= u64::from(given);
                dispatcher.filled(to, asked, given, 0);
                if given == 0 {
                    continue;
                }
                world.in_flight += given;
                world.batches.push((to, given));
                match to {
                    To::Queue => world.queue.push_back(given),
                    To::Worker(worker) => {
                        assert_eq!(world.workers[worker as usize].replace(given), None, "a mailbox filled twice");
                    }
                    To::Host => {
                        assert!(rules.host_executes());
                        dispatcher.completed(None, given, u64::from(given) * length_ns);
                        dispatcher.delivered(given);
                        world.in_flight -= given;
                        world.executed += u64::from(given);
                    }
                }
            }
            Next::Take => {
                assert!(rules.host_executes() && rules.dispatch == Dispatch::Queue);
                let taken = world.queue.pop_front();
                dispatcher.took(taken.is_some());
                if let Some(given) = taken {
                    dispatcher.completed(None, given, u64::from(given) * length_ns);
                    dispatcher.delivered(given);
                    world.in_flight -= given;
                    world.executed += u64::from(given);
                }
            }
            Next::Wait => {
                world.take();
                // Whoever waits waits for somebody.
                let busy: Vec<usize> = (0..world.workers.len()).filter(|w| world.workers[*w].is_some()).collect();
                assert!(!busy.is_empty(), "the host waits for nobody: {rules:?}");
                let worker = busy[choices.next().unwrap_or(&0) % busy.len()];
                let given = world.workers[worker].take().unwrap();
                dispatcher.completed(Some(worker as u32), given, u64::from(given) * length_ns);
                dispatcher.delivered(given);
                world.in_flight -= given;
                world.executed += u64::from(given);
            }
            Next::End => {
                assert_eq!((world.in_flight, world.executed, jobs), (0, total, 0));
                return world;
            }
        }
        // At any moment some worker may take from the queue.
        if choices.next().is_some_and(|choice| choice % 2 == 0) {
            world.take();
        }
    }
    panic!("no end: {rules:?}");
}

fn rules() -> impl Strategy<Value = Rules> {
    let batching = prop_oneof![Just(Batching::Adaptive), (0..40_u32).prop_map(Batching::Fixed)];
    (any::<bool>(), batching, 0..200_u32, 0..9_u32, any::<bool>()).prop_map(
        |(mailbox, batch, in_flight, workers, host_works)| Rules {
            dispatch: if mailbox { Dispatch::Mailbox } else { Dispatch::Queue },
            batch,
            in_flight,
            workers,
            host_works,
        },
    )
}

proptest! {
    #[test]
    fn every_job_is_executed_and_no_more_are_in_flight_than_may_be(
        rules in rules(),
        jobs in 0..400_u64,
        choices in prop::collection::vec(0..100_usize, 1..50),
        length_ns in prop_oneof![Just(0_u64), 1..100_u64, 1_000..100_000_u64],
    ) {
        drive(rules, jobs, &choices, length_ns);
    }

    /// What is decided depends on nothing but what was told.
    #[test]
    fn the_same_events_give_the_same_decisions(
        rules in rules(), jobs in 0..200_u64, choices in prop::collection::vec(0..100_usize, 1..20),
    ) {
        let (one, other) = (drive(rules, jobs, &choices, 100), drive(rules, jobs, &choices, 100));
        prop_assert_eq!(one.batches, other.batches);
    }

    /// After enough jobs of one length a batch takes as long as it is meant to, as far as there is room; never longer,
    /// unless one job does.
    #[test]
    fn batches_of_adaptive_size_last_as_long_as_they_are_meant_to(
        length_ns in 1..100_000_u64, workers in 1..8_u32, mailbox: bool,
    ) {
        let rules = Rules {
            dispatch: if mailbox { Dispatch::Mailbox } else { Dispatch::Queue },
            batch: Batching::Adaptive,
            in_flight: 1024,
            workers,
            host_works: false,
        };
        let world = drive(rules, 10_000, &[0, 1, 2, 3, 5], length_ns);
        let most = world.batches.iter().map(|(_, jobs)| *jobs).max().unwrap();
        let wanted = (BATCH_NS / length_ns).clamp(1, u64::from(rules.batch_max())) as u32;
        prop_assert_eq!(most, wanted);
        prop_assert!(world.batches[..workers as usize].iter().all(|(_, jobs)| *jobs == 1), "the first are single jobs");
    }
}

/// A source that is slow gives its jobs one by one, however short they are.
#[test]
fn jobs_do_not_wait_for_a_slow_source() {
    let rules =
        Rules { dispatch: Dispatch::Queue, batch: Batching::Adaptive, in_flight: 1024, workers: 2, host_works: false };
    let mut dispatcher = Dispatcher::new(rules);
    for _ in 0..100 {
        let Next::Fill { jobs, to } = dispatcher.next() else { panic!("{:?}", dispatcher.next()) };
        assert_eq!(jobs, 1);
        dispatcher.filled(to, 1, 1, 1_000_000);
        dispatcher.completed(Some(0), 1, 10);
        dispatcher.delivered(1);
    }
}

/// Which worker's mailbox is filled: first each in turn, then whoever was done last.
#[test]
fn who_was_done_last_is_filled_first() {
    let rules =
        Rules { dispatch: Dispatch::Mailbox, batch: Batching::Fixed(2), in_flight: 100, workers: 3, host_works: false };
    let mut dispatcher = Dispatcher::new(rules);
    let fill = |dispatcher: &mut Dispatcher| match dispatcher.next() {
        Next::Fill { jobs: 2, to: To::Worker(worker) } => {
            dispatcher.filled(To::Worker(worker), 2, 2, 0);
            Some(worker)
        }
        _ => None,
    };
    assert_eq!([(); 4].map(|()| fill(&mut dispatcher)), [Some(0), Some(1), Some(2), None]);
    for worker in [2, 0] {
        dispatcher.completed(Some(worker), 2, 10);
        dispatcher.delivered(2);
    }
    assert_eq!([(); 3].map(|()| fill(&mut dispatcher)), [Some(0), Some(2), None]);
}
