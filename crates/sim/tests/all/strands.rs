//! Strands in virtual time against what can be worked out by hand, against the other executor of policies, and read back
//! from a trace of threads.

use multigrain_schedule::jobs::Dispatch;
use multigrain_schedule::policy::Policy;
use multigrain_schedule::strands::LinesOptions;
use multigrain_sim::strands::{Costs, NotStrands, Outcome, Program, Recorded, Task, recorded, run};
use multigrain_sim::{Random, Time, offload};
use multigrain_team::strands::{Hosts, Scheduler, SchedulerOptions, Strand, TaskKind};
use multigrain_trace::Trace;

fn us(us: f64) -> Time {
    Time::from_ns(1000.0 * us)
}

/// Nothing takes time but work, and nobody sleeps.
const FREE: Costs = Costs {
    offload: [Time::ZERO; 2],
    call: Time::ZERO,
    hand_over: Time::ZERO,
    wake: Time::ZERO,
    spin: Time::MAX,
    switch: Time::ZERO,
};

fn options(policy: &str, workers: u32) -> LinesOptions {
    let policy = policy.parse().unwrap();
    LinesOptions {
        policy,
        workers,
        own_hosts: None,
        strands: 0,
        strands_max: None,
        throttle: false,
        dispatch: Dispatch::Queue,
    }
}

/// Ten tasks of 80 us in 8 chunks, 10 us before each and behind the last.
fn program() -> Program {
    let task = Task {
        before: us(10.0),
        kind: 0,
        iterations: 80,
        chunks: 8,
        chunk: us(10.0),
        met: Vec::new(),
        waited: Time::ZERO,
    };
    Program { tasks: vec![task; 10], after: us(10.0) }
}

fn simulated(options: &LinesOptions, costs: Costs, programs: &[Program]) -> Outcome {
    let outcome = run(options, costs, programs).unwrap();
    assert_eq!(run(options, costs, programs).unwrap(), outcome, "another time, another outcome");
    let tasks: usize = programs.iter().map(|program| program.tasks.len()).sum();
    assert_eq!(outcome.calls + outcome.on_host + outcome.on_one + outcome.on_teams, tasks as u64);
    outcome
}

#[test]
fn a_strand_takes_the_sum_of_its_parts() {
    let alone = simulated(&options("edtlp", 1), FREE, &[program()]);
    assert_eq!((alone.end, alone.busy, alone.calls), (us(910.0), us(800.0), 10));
    let costly = Costs { call: us(1.0), ..FREE };
    assert_eq!(simulated(&options("edtlp", 1), costly, &[program()]).end, us(920.0));
    // Three on two workers: two on one, whose slices are longer than they are.
    let three = vec![program(); 3];
    assert_eq!(simulated(&options("static", 2), FREE, &three).end, us(1820.0));
    assert_eq!(simulated(&options("edtlp", 2), FREE, &three).end, us(1820.0));
}

#[test]
fn loops_are_shared() {
    let half = simulated(&options("llp:2", 2), FREE, &[program()]);
    assert_eq!((half.end, half.busy, half.on_teams), (us(510.0), us(800.0), 10));
    // The helper comes 5 us later: four chunks of each, 2 us before the loop, 3 us behind.
    let costly = Costs { offload: [us(2.0), us(3.0)], hand_over: us(5.0), ..FREE };
    assert_eq!(simulated(&options("llp:2", 2), costly, &[program()]).end, us(10.0 * (10.0 + 2.0 + 45.0 + 3.0) + 10.0));
    // It sleeps, and comes when nothing is left.
    let asleep = Costs { wake: us(100.0), spin: Time::ZERO, ..FREE };
    let alone = simulated(&options("llp:2", 2), asleep, &[program()]);
    assert_eq!((alone.end, alone.on_teams), (us(910.0), 10));
    // So it does not pay, and that is found where it is looked for.
    let throttled = LinesOptions { throttle: true, ..options("llp:2", 2) };
    let long = Program { tasks: vec![program().tasks[0].clone(); 1000], after: Time::ZERO };
    let found = simulated(&throttled, Costs { offload: [us(1.0); 2], ..asleep }, &[long]);
    assert!(found.on_host > 800, "{found:?}");
}

/// A task of which nobody who could execute it is idle waits, and starts on whom the queue or the mailbox gives it to.
#[test]
fn who_waits_has_its_turn() {
    for policy in ["llp:2", "hybrid:2", "mgps", "marginal"] {
        for dispatch in [Dispatch::Queue, Dispatch::Mailbox] {
            let crowded = LinesOptions { strands_max: Some(5), dispatch, ..options(policy, 2) };
            let five = simulated(&crowded, FREE, &vec![program(); 5]);
            // Not faster than two processors are, nor slower than one.
            assert!(five.end >= us(5.0 * 455.0) && five.end <= us(5.0 * 910.0), "{policy} {dispatch}: {five:?}");
            assert_eq!(five.busy, us(4000.0));
        }
    }
}

/// Both executors drive one policy, the one with hosts that are processes of an operating system. Where neither this nor
/// anything else costs time, the same happens at the same time.
#[test]
fn hosts_of_their_own_are_those_of_off_loading_programs() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed);
    for round in 0..1000 {
        let mut below = |most: u64| 1 + random.below(most);
        let (workers, hosts) = (below(6) as u32, below(3) as u32);
        let (tasks, burst, chunk) = (below(12), 1_000 + below(50_000), 1_000 + below(30_000));
        let iterations = below(12) as u32;
        // Those that learn by times take a picosecond of rounding for a difference.
        let policy = match below(3) {
            1 => "edtlp".to_owned(),
            2 => format!("llp:{}", below(workers.into())),
            _ => format!("hybrid:{}", below(workers.into())),
        };
        // None waits to begin: a process begins the next program in its own place, a host that looks around any.
        let policy: Policy = policy.parse().unwrap();
        let programs = below(policy.strands_max(workers).into()) as u32;
        let chunk = Time::from_ps(1000 * chunk);
        let burst = Time::from_ps(1000 * burst);
        let task = Task {
            before: burst,
            kind: 0,
            iterations: iterations.into(),
            chunks: iterations,
            chunk,
            met: Vec::new(),
            waited: Time::ZERO,
        };
        let program = Program { tasks: vec![task; tasks as usize], after: Time::ZERO };
        let ours = simulated(
            &LinesOptions { own_hosts: Some(hosts), ..options(&policy.to_string(), workers) },
            FREE,
            &vec![program; programs as usize],
        );
        let machine = offload::Machine::free(hosts, 1, workers);
        let load = offload::Load {
            program: offload::Program {
                tasks,
                burst,
                task: chunk * u64::from(iterations),
                spread: 0.0,
                loop_share: 1.0,
                iterations,
            },
            programs,
            policy,
            dispatch: Dispatch::Queue,
            waiting: offload::Waiting::Switches,
            seed: 1,
        };
        let theirs = offload::run(&machine, &load).unwrap();
        let what = format!("seed {seed}, round {round}: {workers} workers, {hosts} hosts, {load:?}");
        assert_eq!(ours.on_one + ours.on_teams, theirs.tasks, "{what}");
        let apart = ours.end.ns() - theirs.end.ns();
        assert!(apart.abs() <= 1.0, "{what}: {} and {}", ours.end, theirs.end);
    }
}

const SUM: TaskKind = TaskKind::new(3, "sum");

/// Strands on threads, with a trace.
fn traced(policy: &str, hosts: Hosts, strands: usize) -> Trace {
    let policy = policy.parse().unwrap();
    let options = SchedulerOptions { policy, hosts, workers: 2, trace: true, bind: false, ..Default::default() };
    let strand = |strand: &Strand<'_>| {
        for round in 0..50 {
            let iterations = 30 + round % 3;
            let sum = strand.offload(SUM, iterations, 4, (), |range, ()| range.sum::<usize>(), |a, b| a + b);
            assert_eq!(sum, Some(iterations * (iterations - 1) / 2));
        }
    };
    Scheduler::new(options).unwrap().run(vec![strand; strands]).unwrap().trace.unwrap()
}

#[test]
fn what_threads_did_is_read_back() {
    for policy in ["static", "edtlp", "llp:2", "mgps", "marginal"] {
        for hosts in [Hosts::Workers, Hosts::Own(1)] {
            let trace = traced(policy, hosts, 3);
            let Recorded { options, costs, programs } = recorded(&trace).unwrap();
            assert_eq!((options.policy.to_string().as_str(), options.workers, programs.len()), (policy, 2, 3));
            assert_eq!(options.own_hosts, (hosts != Hosts::Workers).then_some(1));
            for program in &programs {
                assert_eq!(program.tasks.len(), 50, "{policy} {hosts:?}");
                assert!(program.tasks.iter().all(|t| (t.kind, t.chunks, t.iterations) == (3, 8, 32)), "{policy}");
            }
            let outcome = simulated(&options, costs, &programs);
            let work = |task: &Task| task.chunk * u64::from(task.chunks);
            let works = programs.iter().flat_map(|p| &p.tasks).map(work).sum::<Time>();
            assert!(outcome.end + us(1.0) >= Time::from_ps(works.ps() / 2), "two workers: {outcome:?}");
        }
    }
}

#[test]
fn traces_without_strands_are_refused() {
    let mut trace = traced("edtlp", Hosts::Workers, 2);
    trace.end.dropped = 5;
    assert_eq!(recorded(&trace), Err(NotStrands::Dropped { dropped: 5 }));
    trace.end.dropped = 0;
    trace.records.retain(|record| record.kind != multigrain_trace::Kind::Strand || record.subject != 1);
    assert_eq!(recorded(&trace), Err(NotStrands::NotWhole { strand: 1, what: "has no end" }));
    trace.header.strands = None;
    assert!(matches!(recorded(&trace), Err(NotStrands::None { .. })));
}
