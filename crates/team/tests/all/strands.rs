//! Strands under every policy: results that depend on nothing, errors that name who failed.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use multigrain_team::jobs::Dispatch;
use multigrain_team::strands::{
    Hosts, Outcome, Policy, Rows, RunError, Scheduler, SchedulerError, SchedulerOptions, Statistics, Strand, Task,
    TaskKind,
};
use multigrain_team::{SpinLimit, Team, TeamOptions};
use multigrain_trace::{Kind, Record, Trace};
use proptest::prelude::*;

const GROW: TaskKind = TaskKind::new(0, "grow");
const SUM: TaskKind = TaskKind::new(1, "sum");
const CALL: TaskKind = TaskKind::new(2, "call");

fn options(policy: &str, workers: usize, hosts: Hosts) -> SchedulerOptions {
    let policy: Policy = policy.parse().unwrap();
    SchedulerOptions { policy, workers, hosts, ..SchedulerOptions::default() }
}

/// A search in miniature: arrays that are written, sums whose order shows in their last bits, a recursion.
fn search(strand: &Strand<'_>, steps: usize, length: usize, chunk: usize) -> (f64, f64, u64) {
    let mut array: Vec<f64> = (0..length).map(|i| 1.0 / (1 + i + strand.index()) as f64).collect();
    let mut counts = vec![0u32; length];
    let mut total = 0.0;
    for step in 0..steps {
        let rows = (Rows::new(&mut array, 1), Rows::new(&mut counts, 1));
        let grow = |range: Range<usize>, (values, counts): (&mut [f64], &mut [u32])| {
            for (i, (value, count)) in range.zip(values.iter_mut().zip(counts)) {
                *value = (*value * 1.37 + i as f64 * 1e-3).sqrt();
                *count += 1;
            }
        };
        strand.offload(GROW, length, chunk, rows, grow, |(), ()| ());
        let sum = strand.offload(SUM, length, chunk, (), |range, ()| array[range].iter().sum::<f64>(), |a, b| a + b);
        total += sum.unwrap_or(0.0) * (step + 1) as f64;
    }
    assert!(counts.iter().all(|&count| count as usize == steps), "every iteration once a step");
    (total, array.iter().sum(), depth(strand, 40))
}

fn depth(strand: &Strand<'_>, level: u64) -> u64 {
    if level == 0 {
        return strand.offload_call(CALL, || 1);
    }
    depth(strand, level - 1) + if level.is_multiple_of(8) { strand.offload_call(CALL, || level) } else { 0 }
}

fn run_searches(options: SchedulerOptions, strands: usize, steps: usize, length: usize) -> Outcome<(f64, f64, u64)> {
    let scheduler = Scheduler::new(options).unwrap();
    scheduler.run((0..strands).map(|_| |strand: &Strand<'_>| search(strand, steps, length, 16)).collect()).unwrap()
}

fn policy(workers: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        Just("static".to_owned()),
        Just("edtlp".to_owned()),
        (1..=workers).prop_map(|k| format!("llp:{k}")),
        (1..=workers).prop_map(|k| format!("hybrid:{k}")),
        Just("mgps".to_owned()),
        Just("marginal".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 48 }, ..ProptestConfig::default() })]

    /// Policy, workers, hosts, strands at once: none of them shows in a bit of the results.
    #[test]
    fn results_depend_on_nothing(
        (workers, policy) in (1..5usize).prop_flat_map(|workers| (Just(workers), policy(workers))),
        own_hosts in prop::option::of(1..3usize),
        strands in 0..9usize,
        strands_max in prop::option::of(1..9usize),
        length in prop_oneof![Just(0usize), 1..40usize, 900..1500usize],
        spin in prop_oneof![Just(0u32), Just(16), Just(2000)],
        dispatch in prop_oneof![Just(Dispatch::Queue), Just(Dispatch::Mailbox)],
    ) {
        let hosts = own_hosts.map_or(Hosts::Workers, Hosts::Own);
        let plain = run_searches(options("edtlp", 1, Hosts::Workers), strands, 12, length).results;
        let spin = SpinLimit::from_polls(spin);
        let options = SchedulerOptions { strands_max, spin, dispatch, ..options(&policy, workers, hosts) };
        let outcome = run_searches(options, strands, 12, length);
        prop_assert_eq!(outcome.results, plain);
    }
}

/// Results combine by the tree of pairwise summation, whoever computed them: checkpoints hold sums that were made by it.
#[test]
fn results_combine_by_the_canonical_tree() {
    let drawn = |strand: &Strand<'_>| {
        let draw = |chunks| {
            let join = |left, right| format!("({left} {right})");
            strand.offload(SUM, chunks, 1, (), |range, ()| range.start.to_string(), join)
        };
        [1, 2, 3, 6, 7, 11].map(draw).map(Option::unwrap)
    };
    let tree = ["0", "(0 1)", "((0 1) 2)", "(((0 1) (2 3)) (4 5))", "(((0 1) (2 3)) ((4 5) 6))"];
    for policy in ["edtlp", "llp:2"] {
        let options = SchedulerOptions { throttle: false, ..options(policy, 2, Hosts::Workers) };
        let outcome = Scheduler::new(options).unwrap().run(vec![drawn]).unwrap();
        assert_eq!(outcome.results[0][..5], tree);
        assert_eq!(outcome.results[0][5], "((((0 1) (2 3)) ((4 5) (6 7))) ((8 9) 10))");
    }
}

#[test]
fn thousands_of_strands_at_once_have_their_turns() {
    const STRANDS: usize = 2000;
    let options =
        SchedulerOptions { strands_max: Some(STRANDS), stack_bytes: 64 << 10, ..options("edtlp", 2, Hosts::Own(1)) };
    let begun = AtomicUsize::new(0);
    let strand = |strand: &Strand<'_>| {
        begun.fetch_add(1, Ordering::Relaxed);
        let first = strand.offload_call(CALL, || 1);
        // Round robin: by the time of the second turn everybody has had the first.
        strand.give_way();
        let seen = begun.load(Ordering::Relaxed);
        first + strand.offload_call(CALL, || seen)
    };
    let outcome = Scheduler::new(options).unwrap().run(vec![strand; STRANDS]).unwrap();
    let last = &outcome.results[STRANDS - 1];
    assert_eq!(*last, STRANDS + 1);
    assert!(outcome.results.iter().filter(|&&seen| seen > STRANDS / 2).count() > STRANDS / 2);
}

/// While the host computes, a task that waits is taken by the worker that is done; by mailboxes nobody hands it over.
#[test]
fn a_host_that_computes_starves_mailboxes_only() {
    for dispatch in [Dispatch::Queue, Dispatch::Mailbox] {
        let [computes, done, begun] = [(); 3].map(|()| AtomicBool::new(false));
        let wait_for = |flag: &AtomicBool| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while !flag.load(Ordering::Acquire) {
                assert!(Instant::now() < deadline, "by the {dispatch}");
                std::thread::yield_now();
            }
        };
        let strand = |strand: &Strand<'_>| match strand.index() {
            0 => strand.offload_call(CALL, || {
                wait_for(&computes);
                done.store(true, Ordering::Release);
            }),
            1 => strand.offload_call(CALL, || begun.store(true, Ordering::Release)),
            _ => {
                computes.store(true, Ordering::Release);
                wait_for(&done);
                match dispatch {
                    Dispatch::Queue => wait_for(&begun),
                    Dispatch::Mailbox => {
                        // Far more than a worker takes from one task to the next, if it can.
                        std::thread::sleep(Duration::from_millis(30));
                        assert!(!begun.load(Ordering::Acquire), "nobody has looked into the mailbox");
                    }
                }
            }
        };
        let own = options("edtlp", 1, Hosts::Own(1));
        let options = SchedulerOptions { strands_max: Some(3), throttle: false, dispatch, ..own };
        Scheduler::new(options).unwrap().run(vec![&strand; 3]).unwrap();
        assert!(begun.load(Ordering::Acquire));
    }
}

#[test]
fn a_strand_stays_on_its_thread() {
    thread_local!(static HERE: Cell<usize> = const { Cell::new(0) });
    for hosts in [Hosts::Workers, Hosts::Own(2)] {
        let options = SchedulerOptions { strands_max: Some(8), ..options("mgps", 2, hosts) };
        let strand = |strand: &Strand<'_>| {
            let thread = std::thread::current().id();
            let shared = Rc::new(RefCell::new(0));
            let held = Rc::clone(&shared);
            for _ in 0..200 {
                *held.borrow_mut() += strand.offload_call(CALL, || 1);
                HERE.with(|here| here.set(here.get() + 1));
                strand.give_way();
                assert_eq!(std::thread::current().id(), thread);
            }
            *shared.borrow()
        };
        let outcome = Scheduler::new(options).unwrap().run(vec![strand; 8]).unwrap();
        assert_eq!(outcome.results, [200; 8]);
    }
}

#[test]
fn loops_are_shared_and_tasks_are_called() {
    // Long enough that helpers come: some of a thousand loops of 64 chunks of some microseconds.
    let busy = |strand: &Strand<'_>| {
        for _ in 0..300 {
            let spin = |range: Range<usize>, ()| range.fold(1.0f64, |x, i| (x + i as f64).sqrt());
            strand.offload(SUM, 64 * 500, 500, (), spin, f64::max);
        }
    };
    let scheduler = Scheduler::new(options("llp:2", 2, Hosts::Own(1))).unwrap();
    let statistics = scheduler.run(vec![busy]).unwrap().statistics;
    assert_eq!(statistics.on_teams + statistics.on_host, 300);
    assert!(statistics.on_teams > 0 && statistics.team_workers == 2 * statistics.on_teams, "{statistics:?}");
    // On one worker that is the host there is nobody to ask.
    let scheduler = Scheduler::new(options("mgps", 1, Hosts::Workers)).unwrap();
    assert_eq!(scheduler.run(vec![busy; 2]).unwrap().statistics.calls, 600);
}

/// A strand that is alone keeps its helpers from one loop to the next: whatever it off-loads, and who begins when it has
/// ended, has as many workers as if each loop had asked for them.
#[test]
fn a_strand_that_is_alone_has_the_workers_of_its_policy() {
    let strand = |strand: &Strand<'_>| {
        for chunks in [2, 2, 1, 1, 5, 3, 2, 1, 4, 4] {
            let order = |range: Range<usize>, ()| range.start.to_string();
            let all = strand.offload(SUM, chunks, 1, (), order, |left, right| left + &right).unwrap();
            assert_eq!(all, "01234"[..chunks]);
            strand.give_way();
        }
    };
    for (policy, workers) in [("llp:2", 2), ("llp:2", 3), ("hybrid:2", 3)] {
        let options = SchedulerOptions { throttle: false, ..options(policy, workers, Hosts::Workers) };
        let outcome = Scheduler::new(options).unwrap().run(vec![strand; 3]).unwrap();
        let Statistics { calls, on_host, on_one, on_teams, team_workers, .. } = outcome.statistics;
        assert_eq!((calls, on_host, on_one, on_teams, team_workers), (0, 0, 9, 21, 42), "{policy} on {workers}");
    }
}

/// A task with three variants that say who they are.
struct Told;

impl Task for Told {
    type Output = &'static str;
    fn kind(&self) -> TaskKind {
        TaskKind::new(7, "told")
    }
    fn iterations(&self) -> usize {
        8
    }
    fn chunk(&self) -> usize {
        1
    }
    fn part(&self, _: Range<usize>) -> &'static str {
        "team"
    }
    fn combine(&self, left: &'static str, right: &'static str) -> &'static str {
        assert_eq!(left, right);
        left
    }
    fn on_worker(&self) -> &'static str {
        "worker"
    }
    fn on_host(&self) -> &'static str {
        "host"
    }
}

#[test]
fn the_variants_are_the_tasks_own() {
    let told = |strand: &Strand<'_>| strand.offload_task(&Told);
    for (policy, hosts, expected) in
        [("edtlp", Hosts::Own(1), "worker"), ("llp:2", Hosts::Own(1), "team"), ("llp:2", Hosts::Workers, "team")]
    {
        let scheduler = Scheduler::new(options(policy, 2, hosts)).unwrap();
        assert_eq!(scheduler.run(vec![told]).unwrap().results, [expected], "{policy}");
    }
    let scheduler = Scheduler::new(options("edtlp", 1, Hosts::Workers)).unwrap();
    assert_eq!(scheduler.run(vec![told]).unwrap().results, ["host"]);
}

#[test]
fn every_decision_is_in_the_trace() {
    for (policy, hosts) in [("llp:2", Hosts::Workers), ("mgps", Hosts::Own(1)), ("edtlp", Hosts::Workers)] {
        // Under llp:2 one strand at a time, so that there is somebody to share its loops.
        let strands_max = (policy != "llp:2").then_some(3);
        let options = SchedulerOptions { trace: true, strands_max, ..options(policy, 2, hosts) };
        let outcome = run_searches(options, 3, 20, 500);
        let (trace, statistics) = (outcome.trace.unwrap(), outcome.statistics);
        let decisions: Vec<_> = trace.records.iter().filter(|r| r.kind == Kind::Decision).collect();
        let starts = decisions.iter().filter(|r| r.subject >> 24 > 0).count() as u64;
        assert_eq!(starts, statistics.calls + statistics.on_host + statistics.on_one + statistics.on_teams, "{policy}");
        assert_eq!(starts, 3 * (20 * 2 + 6));
        let reason = |r: &Record| trace.header.reasons[usize::from(r.detail)].as_str();
        assert!(decisions.iter().all(|r| !reason(r).is_empty() && r.subject & 0xff_ffff < 3));
        if policy == "llp:2" {
            let team = decisions.iter().find(|r| r.subject >> 24 == 2).unwrap();
            assert_eq!(reason(team), "a fixed number of workers for each loop");
        }
        // Everything that was computed has its time and its name; the file is read back.
        let computed = trace.records.iter().filter(|r| r.kind == Kind::Leaf);
        assert!(computed.clone().count() as u64 >= starts);
        assert!(computed.clone().all(|r| ["grow", "sum", "call"].contains(&trace.header.task(r.index).as_str())));
        let mut file = Vec::new();
        trace.write(&mut file).unwrap();
        assert_eq!(Trace::read(&mut &file[..]).unwrap().records, trace.records);
    }
}

#[test]
fn whoever_panics_is_named_and_the_others_end() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut told = Vec::new();
    for (policy, workers, hosts) in [
        ("edtlp", 1, Hosts::Workers),
        ("mgps", 2, Hosts::Workers),
        ("llp:2", 2, Hosts::Workers),
        ("edtlp", 2, Hosts::Own(1)),
        ("llp:2", 2, Hosts::Own(2)),
    ] {
        let options = SchedulerOptions { strands_max: Some(4), ..options(policy, workers, hosts) };
        let scheduler = Scheduler::new(options).unwrap();
        let ended = AtomicUsize::new(0);
        let strand = |what: &'static str| {
            let ended = &ended;
            move |strand: &Strand<'_>| {
                struct Ends<'a>(&'a AtomicUsize);
                impl Drop for Ends<'_> {
                    fn drop(&mut self) {
                        self.0.fetch_add(1, Ordering::Relaxed);
                    }
                }
                let _ends = Ends(ended);
                for round in 0..1_000_000 {
                    let body = |range: Range<usize>, ()| {
                        assert!(strand_is_fine(what, round, range.start), "in the loop");
                    };
                    strand.offload(SUM, 64, 4, (), body, |(), ()| ());
                    assert!(what != "strand" || round != 50, "outside");
                }
            }
        };
        for (what, expected) in
            [("task", "task sum of strand 2 panicked: in the loop"), ("strand", "strand 2 panicked: outside")]
        {
            ended.store(0, Ordering::Relaxed);
            let error = scheduler.run(["", "", what, ""].map(strand).into()).unwrap_err();
            told.push((error.to_string(), expected, error));
        }
        // And it can be used again.
        let fine = scheduler.run(vec![|strand: &Strand<'_>| strand.offload_call(CALL, || 3); 3]);
        assert_eq!(fine.unwrap().results, [3; 3]);
    }
    std::panic::set_hook(quiet);
    for (text, expected, error) in told {
        assert_eq!(text, expected);
        assert!(matches!(error, RunError::Task { strand: 2, .. } | RunError::Strand { strand: 2, .. }));
    }
}

fn strand_is_fine(what: &str, round: usize, iteration: usize) -> bool {
    what != "task" || round != 50 || iteration != 40
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |options| Scheduler::new(options).unwrap_err();
    assert!(matches!(refused(options("llp:3", 2, Hosts::Workers)), SchedulerError::Policy(_)));
    assert!(matches!(refused(options("mgps", 0, Hosts::Workers)), SchedulerError::Policy(_)));
    assert!(matches!(refused(options("mgps", 1, Hosts::Own(0))), SchedulerError::Hosts { hosts: 0 }));
    let huge = SchedulerOptions { stack_bytes: 1 << 60, ..options("mgps", 1, Hosts::Workers) };
    let error = Scheduler::new(huge).unwrap().run(vec![|_: &Strand<'_>| ()]).unwrap_err();
    assert!(error.to_string().starts_with("no memory for the stack of strand 0"), "{error}");
}

/// A strand's program, and in which of two teams it is inside and after.
type InTeams<'a> = Box<dyn FnOnce(&Strand<'_>) -> [bool; 4] + Send + 'a>;

/// Two strands of one thread that are in two teams by turns, the one that is in last out first: neither is where the other is.
#[test]
fn a_strand_leaves_no_other_in_its_team() {
    let team = || {
        Team::new(TeamOptions { workers: 2, bind: false, spin: SpinLimit::from_ns(1000) })
            .expect("a team of two is made")
    };
    let (first, second) = (team(), team());
    let scheduler = Scheduler::new(SchedulerOptions { throttle: false, ..options("edtlp", 2, Hosts::Own(1)) }).unwrap();
    let [is_in, is_second_in, is_out] = [const { AtomicBool::new(false) }; 3];
    let until = |told: &AtomicBool| {
        while !told.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    };
    let strands: Vec<InTeams<'_>> = vec![
        Box::new(|me: &Strand<'_>| {
            let inside = first.run(|| {
                is_in.store(true, Ordering::SeqCst);
                me.offload_call(CALL, || until(&is_second_in));
                [first.is_here(), second.is_here()]
            });
            is_out.store(true, Ordering::SeqCst);
            [inside[0], inside[1], first.is_here(), second.is_here()]
        }),
        Box::new(|me: &Strand<'_>| {
            me.offload_call(CALL, || until(&is_in));
            let inside = second.run(|| {
                me.offload_call(CALL, || {
                    is_second_in.store(true, Ordering::SeqCst);
                    until(&is_out);
                });
                [second.is_here(), first.is_here()]
            });
            [inside[0], inside[1], second.is_here(), first.is_here()]
        }),
    ];
    let outcome = scheduler.run(strands).unwrap();
    assert_eq!(outcome.results, [[true, false, false, false]; 2]);
}
