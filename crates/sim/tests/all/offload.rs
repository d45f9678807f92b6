//! Off-loading in virtual time against what can be worked out by hand.

use multigrain_schedule::jobs::Dispatch;
use multigrain_schedule::policy::Policy;
use multigrain_sim::Time;
use multigrain_sim::offload::{Load, Machine, OffloadError, Program, Waiting, run};

fn us(us: f64) -> Time {
    Time::from_ns(1000.0 * us)
}

/// One core of two hardware threads, four workers; everything but work is free.
fn machine() -> Machine {
    Machine::free(1, 2, 4)
}

/// Ten tasks of 100 us, 10 us of host time before each; 80 us are a loop of 100 iterations.
fn load(programs: u32, policy: &str) -> Load {
    let program =
        Program { tasks: 10, burst: us(10.0), task: us(100.0), spread: 0.0, loop_share: 0.8, iterations: 100 };
    let policy: Policy = policy.parse().unwrap();
    Load { program, programs, policy, dispatch: Dispatch::Queue, waiting: Waiting::Switches, seed: 1 }
}

fn end(machine: &Machine, load: &Load) -> Time {
    let outcome = run(machine, load).unwrap();
    assert_eq!(outcome.tasks, u64::from(load.programs) * load.program.tasks);
    assert_eq!(run(machine, load).unwrap(), outcome, "another time, another outcome");
    outcome.end
}

#[test]
fn one_program_takes_the_sum_of_its_parts() {
    assert_eq!(end(&machine(), &load(1, "edtlp")), us(1100.0));
    // Messages there and back.
    assert_eq!(end(&Machine { message: us(1.0), ..machine() }, &load(1, "edtlp")), us(1120.0));
}

#[test]
fn loops_are_shared_and_cost_their_teams() {
    // 20 us alone, 80 us by four.
    assert_eq!(end(&machine(), &load(1, "llp:4")), us(10.0 * (10.0 + 20.0 + 20.0)));
    let costly = Machine { fork: us(1.0), join: us(2.0), sharing: us(0.5), ..machine() };
    assert_eq!(end(&costly, &load(1, "llp:4")), us(10.0 * (10.0 + 20.0 + 0.5 + 3.0 + 20.0 + 6.0)));
    // A hundred iterations by three: 33 of the master, which starts two and takes in two, and of the last.
    assert_eq!(end(&costly, &load(1, "llp:3")), us(10.0 * (10.0 + 20.5 + 2.0 + 0.8 * 33.0 + 4.0)));
}

#[test]
fn programs_share_workers_and_hardware_threads() {
    // Four on four workers, two on each hardware thread: the second begins 10 us later.
    assert_eq!(end(&machine(), &load(4, "edtlp")), us(1110.0));
    // One strand after the other where the policy has one in progress at a time.
    assert_eq!(end(&machine(), &load(3, "llp:4")), us(1500.0));
    // Eight wait for workers, not for the host: 80 tasks of 100 us by four at least.
    let eight = end(&machine(), &load(8, "edtlp"));
    assert!(eight >= us(2000.0) && eight < us(2300.0), "{eight}");
}

#[test]
fn who_polls_keeps_its_hardware_thread() {
    let polls = Load { waiting: Waiting::Polls { quantum: us(5000.0) }, ..load(4, "edtlp") };
    // Two and two, one after the other.
    assert_eq!(end(&machine(), &polls), us(2200.0));
    // Switches and caches: each of two programs on a hardware thread switches at each of its bursts, and fills what the
    // other three have emptied.
    let costly = Machine { switch: us(1.0), refill: us(2.0), ..machine() };
    let outcome = run(&costly, &load(4, "edtlp")).unwrap();
    assert_eq!(outcome.switches, 40);
    assert!(outcome.end > us(10.0 * (100.0 + 10.0 + 6.0)), "{}", outcome.end);
}

/// A task that waits starts when the host next looks into the mailboxes, by the queue when a worker is done.
#[test]
fn a_host_that_computes_starves_mailboxes_only() {
    // Four programs whose loops take each other's workers, and whose host computes half as long as they do.
    let by = |dispatch| {
        let mut load = Load { dispatch, ..load(4, "mgps") };
        load.program = Program { burst: us(50.0), spread: 0.5, iterations: 3, tasks: 200, ..load.program };
        end(&Machine { threads_per_core: 1, ..machine() }, &load)
    };
    let (queue, mailbox) = (by(Dispatch::Queue), by(Dispatch::Mailbox));
    assert!(mailbox > queue, "{mailbox} by mailboxes, {queue} by the queue");
    // One program sees to its own mailbox: nothing differs.
    let alone = |dispatch| end(&machine(), &Load { dispatch, ..load(1, "edtlp") });
    assert_eq!(alone(Dispatch::Queue), alone(Dispatch::Mailbox));
}

#[test]
fn what_cannot_be_is_refused() {
    let none = Machine { cores: 0, ..machine() };
    assert!(matches!(run(&none, &load(1, "edtlp")), Err(OffloadError::NoHost { cores: 0, .. })));
    assert!(matches!(run(&machine(), &load(1, "llp:5")), Err(OffloadError::Policy(_))));
    let mut odd = load(1, "edtlp");
    odd.program.spread = 1.5;
    assert!(matches!(run(&machine(), &odd), Err(OffloadError::Spread { .. })));
    assert_eq!(end(&machine(), &load(0, "edtlp")), Time::ZERO);
}
