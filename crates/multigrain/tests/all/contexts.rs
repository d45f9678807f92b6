//! One rule, executed twice: the order of turns of contexts on threads is that of the simulator.

use multigrain::rooms::machine::ContextScheduler;
use multigrain::rooms::sim::contexts::{Costs, Did, Load, Machine, Policy, run as simulate};
use multigrain::rooms::sim::{Fair, Host, Scheduler, Time};
use multigrain::rooms::team::contexts::{Contexts, Sharing, Turn, look, run};
use proptest::prelude::*;
use std::sync::Mutex;

/// A slice there: two ticks of 40 ms.
const SLICE_MS: u32 = 80;
/// What a step is there.
const STEP_MS: u32 = 20;
const STEPS: u32 = SLICE_MS / STEP_MS;

/// One processor, whose control threads take no time, and are made one after the other.
fn machine() -> Machine {
    let scheduler = Scheduler::Fair(Fair::linux_2_6_24(2));
    Machine {
        processors: 1,
        host: Host { cores: 1, speeds: vec![1.0, 1.0], switch: Time::ZERO, scheduler },
        interrupts_per_second: 250,
        scheduler: ContextScheduler::Spufs2624,
        costs: Costs { spawn: Time::from_seconds(1e-3), look: Time::ZERO, switch: Time::ZERO, spread: 0.0 },
    }
}

/// Who has the processor, turn after turn, in virtual time.
fn simulated(tasks: usize, steps: u32, policy: Policy) -> Vec<usize> {
    let work = Time::from_seconds(f64::from(steps * STEP_MS) * 1e-3);
    let mut ran: Vec<_> = simulate(&machine(), &Load::loops(tasks, work, policy)).unwrap().intervals;
    ran.retain(|interval| matches!(interval.what, Did::Ran(_)) && interval.from < interval.to);
    ran.sort_by_key(|interval| interval.from);
    turns(ran.into_iter().map(|interval| interval.task as usize))
}

/// The same on threads, where a step is a look.
fn executed(tasks: usize, steps: u32, sharing: Sharing) -> Vec<usize> {
    let log = Mutex::new(Vec::new());
    let body = |context: usize| {
        let log = &log;
        move || {
            for _ in 0..steps {
                log.lock().unwrap().push(context);
                look();
            }
        }
    };
    let shared = Contexts { processors: 1, sharing, turn: Turn::Looks(STEPS) };
    run(&shared, (0..tasks).map(body).collect()).unwrap();
    turns(log.into_inner().unwrap().into_iter())
}

fn turns(who: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut turns: Vec<usize> = who.collect();
    turns.dedup();
    turns
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn turns_on_threads_are_those_in_virtual_time(tasks in 1..9usize, slices in 0..12u32) {
        // There one clock ticks for all, so a context that begins between two ticks has a tick and a part; here each has its own turn. One
        // step beside whole slices is less than either.
        let steps = slices * STEPS + 1;
        prop_assert_eq!(executed(tasks, steps, Sharing::HandOff), simulated(tasks, steps, Policy::HandOff));
        prop_assert_eq!(executed(tasks, steps, Sharing::Fifo), simulated(tasks, steps, Policy::Fifo));
    }
}
