//! More contexts than processors, on threads. Nothing is timed: where a test needs a turn to be over it waits for what follows from that.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use multigrain_team::contexts::{Contexts, RunError, Sharing, Turn, look, run};
use proptest::prelude::*;

const ALL: [Sharing; 4] = [Sharing::Fifo, Sharing::Slices, Sharing::HandOff, Sharing::System];

/// Each context of so many steps writes its number at each, with a look behind it.
fn steps(shared: &Contexts, steps: &[usize]) -> Vec<usize> {
    let log = Mutex::new(Vec::new());
    let body = |(context, steps): (usize, &usize)| {
        let (log, steps) = (&log, *steps);
        move || {
            for _ in 0..steps {
                log.lock().unwrap().push(context);
                look();
            }
        }
    };
    run(shared, steps.iter().enumerate().map(body).collect()).unwrap();
    log.into_inner().unwrap()
}

#[test]
fn turns_on_one_processor_are_those_that_can_be_counted_by_hand() {
    let on_one = |sharing, looks| Contexts { processors: 1, sharing, turn: Turn::Looks(looks) };
    assert_eq!(steps(&on_one(Sharing::HandOff, 2), &[3, 5, 2]), [0, 0, 1, 1, 2, 2, 0, 1, 1, 1]);
    assert_eq!(steps(&on_one(Sharing::HandOff, 1), &[2, 3, 1]), [0, 1, 2, 0, 1, 1]);
    assert_eq!(steps(&on_one(Sharing::Fifo, 1), &[2, 3, 1]), [0, 0, 1, 1, 1, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// On one processor a context that waits behind `i` others has it after `i + 1` turns at most, the one under way among them (the bound of
    /// `schedule::contexts`), whatever the others have to do: among `n` contexts after `n - 1`.
    #[test]
    fn nobody_starves_on_threads(work in prop::collection::vec(1..30usize, 1..8), looks in 1..5u32) {
        let shared = Contexts { processors: 1, sharing: Sharing::HandOff, turn: Turn::Looks(looks) };
        let log = steps(&shared, &work);
        prop_assert_eq!(log.len(), work.iter().sum::<usize>());
        let others_at_most = (work.len() - 1) * looks as usize;
        for context in 0..work.len() {
            let mut last = None;
            for (at, _) in log.iter().enumerate().filter(|(_, who)| **who == context) {
                let waited = last.map_or(at, |last| at - last - 1);
                prop_assert!(waited <= others_at_most, "{} waited for {} steps: {:?}", context, waited, log);
                last = Some(at);
            }
        }
    }
}

/// A turn that is longer than clocks count never ends.
#[test]
fn a_turn_may_be_of_any_length() {
    for turn in [Turn::Clock(Duration::MAX), Turn::Timer(Duration::MAX)] {
        let shared = Contexts { processors: 1, sharing: Sharing::HandOff, turn };
        assert_eq!(steps(&shared, &[3, 2]), [0, 0, 0, 1, 1]);
    }
}

#[test]
fn all_get_to_their_ends_and_no_more_than_processors_run_at_once() {
    for sharing in ALL {
        for processors in 1..4 {
            let inside = AtomicUsize::new(0);
            let body = |context: usize| {
                let inside = &inside;
                move || {
                    for _ in 0..50 + 10 * context {
                        let others = inside.fetch_add(1, Ordering::SeqCst);
                        assert!(others < processors || sharing == Sharing::System, "{others} others on {processors}");
                        std::hint::spin_loop();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        look();
                    }
                    context
                }
            };
            let shared = Contexts { processors, sharing, turn: Turn::Looks(3) };
            let outcome = run(&shared, (0..7).map(body).collect()).unwrap();
            assert_eq!(outcome.results, (0..7).collect::<Vec<_>>());
            assert!(outcome.did.iter().all(|did| did.bound >= 1), "{sharing:?}");
        }
    }
}

#[test]
fn one_that_computes_for_ever_is_preempted() {
    for turn in [Turn::Timer(Duration::from_micros(200)), Turn::Clock(Duration::from_micros(200))] {
        let released = AtomicBool::new(false);
        let body = |context: usize| {
            let released = &released;
            move || match context {
                // Ends only if the other, which has no processor, gets this one.
                0 => {
                    while !released.load(Ordering::Relaxed) {
                        look();
                    }
                }
                _ => released.store(true, Ordering::Relaxed),
            }
        };
        let shared = Contexts { processors: 1, sharing: Sharing::HandOff, turn };
        let outcome = run(&shared, (0..2).map(body).collect()).unwrap();
        let by_timer = cfg!(all(target_os = "linux", not(miri))) && matches!(turn, Turn::Timer(_));
        assert!(outcome.did.iter().all(|did| did.timer == by_timer));
        assert_eq!((outcome.did[0].bound, outcome.did[0].late_ns.len()), (2, 1));
        assert_eq!((outcome.did[1].bound, outcome.did[1].hand_over_ns.len()), (1, 1));
    }
}

#[test]
fn a_panic_is_told_and_leaves_the_processor_to_the_others() {
    for sharing in ALL {
        let ended = AtomicUsize::new(0);
        let body = |context: usize| {
            let ended = &ended;
            move || {
                (0..10).for_each(|_| look());
                assert_ne!(context, 1, "of all numbers");
                ended.fetch_add(1, Ordering::Relaxed);
            }
        };
        let shared = Contexts { processors: 1, sharing, turn: Turn::Looks(1) };
        match run(&shared, (0..4).map(body).collect()).unwrap_err() {
            RunError::Panic { context: 1, message } => assert!(message.contains("of all numbers"), "{message}"),
            other => panic!("{other}"),
        }
        assert_eq!(ended.into_inner(), 3);
    }
}

#[test]
fn nothing_is_done_with_nothing() {
    look();
    let none = Contexts { processors: 0, sharing: Sharing::HandOff, turn: Turn::Looks(1) };
    assert!(matches!(run(&none, vec![|| ()]), Err(RunError::Processors)));
    let one = Contexts { processors: 1, ..none };
    assert!(run(&one, Vec::<fn()>::new()).unwrap().results.is_empty());
}
