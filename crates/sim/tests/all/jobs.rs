//! Independent jobs in virtual time: against what can be worked out by hand, and against threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use multigrain_schedule::jobs::{Batching, Dispatch, Rules};
use multigrain_sim::Time;
use multigrain_sim::offload::jobs::{Costs, HandOut, Load, Outcome, run};
use multigrain_team::jobs::{JobOptions, Order};
use multigrain_team::{SpinLimit, Team, TeamOptions};
use proptest::prelude::*;

fn us(us: f64) -> Time {
    Time::from_ns(1000.0 * us)
}

fn rules(dispatch: Dispatch, batch: u32, workers: u32, host_works: bool) -> Rules {
    Rules { dispatch, batch: Batching::Fixed(batch), in_flight: 64, workers, host_works }
}

fn alike(rules: Rules, jobs: usize, length: Time) -> Load {
    Load { rules, ordered: false, jobs: vec![length; jobs] }
}

#[test]
fn jobs_take_their_share_and_what_handing_out_costs() {
    for dispatch in [Dispatch::Queue, Dispatch::Mailbox] {
        let end = |costs, load: &Load| run(costs, load).end;
        assert_eq!(end(Costs::default(), &alike(rules(dispatch, 1, 2, false), 10, us(3.0))), us(15.0));
        // One worker, one job after the other, each with its way there and back: only the mailbox waits for that.
        let costs = Costs { message: us(1.0), ..Costs::default() };
        let expected = if dispatch == Dispatch::Queue { us(32.0) } else { us(50.0) };
        assert_eq!(end(costs, &alike(rules(dispatch, 1, 1, false), 10, us(3.0))), expected);
        // Batches of five: the way is taken twice.
        let expected = if dispatch == Dispatch::Queue { us(32.0) } else { us(34.0) };
        assert_eq!(end(costs, &alike(rules(dispatch, 5, 1, false), 10, us(3.0))), expected);
    }
}

/// Figure 5.8 of the thesis: six workers and a host that works as well. By the queue it is a seventh worker; by mailboxes
/// workers wait until it has executed its own job.
#[test]
fn a_host_that_works_starves_mailboxes_only() {
    let costs = Costs { source: us(0.1), hand_over: us(0.3), message: us(0.5), sink: us(0.1) };
    // 80 us in the mean, in an order of no pattern.
    let mut random = multigrain_sim::Random::new(1);
    let jobs: Vec<Time> = (0..7000).map(|_| us(40.0 + (random.bits() % 81) as f64)).collect();
    let total = jobs.iter().fold(Time::ZERO, |sum, job| sum + *job).seconds();
    // Shares of the time that so many workers would need without any cost.
    let shares = |dispatch, host_works| {
        let load = Load { rules: rules(dispatch, 1, 6, host_works), ordered: false, jobs: jobs.clone() };
        run(costs, &load).end.seconds() / (total / f64::from(load.rules.executors()))
    };
    let [queue, mailbox] = [Dispatch::Queue, Dispatch::Mailbox].map(|dispatch| shares(dispatch, true));
    assert!(queue < 1.03, "{queue}");
    assert!(mailbox > 1.2 * queue, "{mailbox} by mailboxes, {queue} by the queue");
    // While the host only hands out, both are near.
    let [queue, mailbox] = [Dispatch::Queue, Dispatch::Mailbox].map(|dispatch| shares(dispatch, false));
    assert!(queue < 1.03 && mailbox < 1.06, "{mailbox} by mailboxes, {queue} by the queue");
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let batching = prop_oneof![Just(Batching::Adaptive), (1..20_u32).prop_map(Batching::Fixed)];
    (any::<bool>(), batching, 1..100_u32, 0..9_u32, any::<bool>()).prop_map(
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
    fn every_job_is_executed_once_and_none_before_its_time(
        rules in any_rules(), ordered: bool, lengths in prop::collection::vec(0..50_000_u64, 0..200),
    ) {
        let jobs: Vec<Time> = lengths.iter().map(|ns| Time::from_ns(*ns as f64)).collect();
        let total = jobs.iter().fold(Time::ZERO, |sum, job| sum + *job);
        let costs = Costs { source: us(0.05), hand_over: us(0.2), message: us(0.3), sink: us(0.02) };
        let load = Load { rules, ordered, jobs };
        let outcome = run(costs, &load);
        prop_assert_eq!(&run(costs, &load), &outcome);
        let mut next = 0;
        for hand_out in &outcome.hand_outs {
            prop_assert_eq!(hand_out.first, next);
            next += u64::from(hand_out.jobs);
        }
        prop_assert_eq!(next, lengths.len() as u64);
        let mut done = outcome.done.clone();
        done.sort_unstable();
        prop_assert_eq!(done, (0..outcome.hand_outs.len() as u64).collect::<Vec<_>>());
        prop_assert!(outcome.in_flight <= rules.in_flight);
        prop_assert_eq!(outcome.busy + outcome.host_busy, total);
        prop_assert!(outcome.end * u64::from(rules.executors()) >= total);
    }
}

/// What threads hand to whom, where batches are done in the order in which they were in the simulation: a job goes on only
/// when the host has handed out everything that it had before this job's end there.
fn on_threads(load: &Load, simulated: &Outcome) -> Vec<HandOut> {
    let Rules { dispatch, batch, in_flight, workers, host_works } = load.rules;
    let Batching::Fixed(size) = batch else { panic!("sizes that are measured differ") };
    let options = JobOptions { dispatch, batch, order: Order::Unordered, in_flight, host_works };
    let spin = SpinLimit::from_polls(50);
    let team = Team::new(TeamOptions { workers: workers as usize + 1, bind: false, spin }).unwrap();
    let batches = simulated.hand_outs.len() as u64;
    // The place of each batch among those that are done, and how many had been taken from the source by then.
    let mut place = vec![0; batches as usize];
    simulated.done.iter().enumerate().for_each(|(at, batch)| place[*batch as usize] = at as u64);
    let (given, seen) = (AtomicU64::new(0), AtomicU64::new(0));
    let by = Mutex::new(vec![None; batches as usize]);
    let total = load.jobs.len() as u64;
    let source = || {
        let job = given.load(Ordering::Relaxed);
        if job == total {
            return Ok::<_, ()>(None);
        }
        given.store(job + 1, Ordering::Release);
        Ok(Some(job))
    };
    let work = |worker: &mut usize, job: u64| {
        let batch = job / u64::from(size);
        let earlier = place[batch as usize];
        let handed_out = (earlier + u64::from(workers)).min(batches) * u64::from(size);
        while seen.load(Ordering::Acquire) < earlier || given.load(Ordering::Acquire) < handed_out.min(total) {
            std::thread::yield_now();
        }
        by.lock().unwrap()[batch as usize] = Some(*worker as u32 - 1);
        Ok(job)
    };
    let sink = |job: u64| {
        // The last job of a batch.
        if (job + 1).is_multiple_of(u64::from(size)) || job + 1 == total {
            seen.fetch_add(1, Ordering::Release);
        }
        Ok(())
    };
    team.jobs(&options, source, |worker| worker, work, sink).unwrap();
    let by = by.into_inner().unwrap();
    let hand_out = |(batch, by): (usize, &Option<u32>)| {
        let first = batch as u64 * u64::from(size);
        HandOut { first, jobs: (total - first).min(u64::from(size)) as u32, by: *by }
    };
    by.iter().enumerate().map(hand_out).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// By mailboxes, who gets what follows from the order in which batches are done.
    #[test]
    fn threads_hand_out_as_the_simulation_does(
        workers in 1..5_u32, size in 1..5_u32, lengths in prop::collection::vec(1_000..90_000_u64, 1..60),
    ) {
        // No two batches are done at one time: each length has a share of its own below a microsecond.
        let jobs = lengths.iter().enumerate().map(|(at, ns)| Time::from_ps(1000 * (1000 * ns + at as u64))).collect();
        let load = Load { rules: rules(Dispatch::Mailbox, size, workers, false), ordered: false, jobs };
        let simulated = run(Costs::default(), &load);
        prop_assert_eq!(on_threads(&load, &simulated), simulated.hand_outs);
    }
}
