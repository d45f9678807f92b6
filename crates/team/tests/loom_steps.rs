//! Model checks of the signal under `Steps` and of `Abort`: the code that a run uses, with the model checker's
//! atomics, locks and parking underneath.
#![cfg(loom)]

mod model;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use model::check;
use multigrain_team::{Abort, Aborted, SpinLimit, Steps};

/// A count, an abort flag, and a plain cell for each signaller that the count guards: the checker reports an access
/// that is not ordered after the write before it.
struct Step {
    steps: Steps,
    abort: Abort,
    data: [UnsafeCell<u32>; 2],
}

// SAFETY: the cells are what the tests are about; the checker itself reports unordered accesses.
unsafe impl Sync for Step {}
// SAFETY: as above.
unsafe impl Send for Step {}

fn step(polls: u32) -> Arc<Step> {
    Arc::new(Step {
        steps: Steps::new(SpinLimit::from_polls(polls)),
        abort: Abort::new(),
        data: [UnsafeCell::new(0), UnsafeCell::new(0)],
    })
}

impl Step {
    fn write_and_signal(&self, cell: usize) {
        // SAFETY: the one writer of this cell; readers wait for the signal.
        self.data[cell].with_mut(|data| unsafe { *data = 7 });
        self.steps.signal();
    }

    fn wait_and_read(&self, value: u64, cell: usize) {
        self.steps.wait_for(value, &self.abort).unwrap();
        // SAFETY: written before the step that was waited for.
        assert_eq!(self.data[cell].with(|data| unsafe { *data }), 7);
    }
}

/// Hunts the lost wake-up: the waiter finds the count too small; then the signaller steps and finds nobody to wake;
/// then the waiter parks for ever. Two threads, so every interleaving is explored.
#[test]
fn a_parking_waiter_is_woken_and_sees_the_data() {
    check(None, || {
        let step = step(0);
        let signaller = thread::spawn({
            let step = step.clone();
            move || step.write_and_signal(0)
        });
        step.wait_and_read(1, 0);
        signaller.join().unwrap();
    });
}

/// The same with a look before parking. Hunts a step that a spinning waiter sees before the data: neither lock nor
/// park is between the two threads then, only the orderings of the word.
#[test]
fn a_spinning_waiter_sees_the_data() {
    check(None, || {
        let step = step(1);
        let signaller = thread::spawn({
            let step = step.clone();
            move || step.write_and_signal(0)
        });
        step.wait_and_read(1, 0);
        signaller.join().unwrap();
    });
}

/// Hunts the stale unpark: the first wait is satisfied while spinning or announcing, the unpark of its step arrives
/// later and ends the park of the second wait too early; and the waker of the first step clearing the announcement
/// of the second wait. Two threads, every interleaving.
#[test]
fn one_waiter_waits_for_one_step_after_the_other() {
    check(None, || {
        let step = step(0);
        let signaller = thread::spawn({
            let step = step.clone();
            move || {
                step.write_and_signal(0);
                step.write_and_signal(1);
            }
        });
        step.wait_and_read(1, 0);
        step.wait_and_read(2, 1);
        signaller.join().unwrap();
    });
}

/// Hunts a waker that takes one waiter's announcement for both: one waits for the first step and one for the second.
/// Three threads with three preemptions: a lost wake-up takes one in each waiter (between look and park) and one in
/// the waker (between step and wake).
#[test]
fn two_waiters_for_different_steps() {
    check(Some(3), || {
        let step = step(0);
        let waiter = thread::spawn({
            let step = step.clone();
            move || step.wait_and_read(2, 1)
        });
        let signaller = thread::spawn({
            let step = step.clone();
            move || {
                step.write_and_signal(0);
                step.write_and_signal(1);
            }
        });
        step.wait_and_read(1, 0);
        waiter.join().unwrap();
        signaller.join().unwrap();
    });
}

/// Hunts a broken release sequence: the count reads 2, but the data of the signaller that stepped first is not
/// visible, because the second step, or the bit set and cleared between them, hid it. Three threads, three
/// preemptions: one in each.
#[test]
fn the_steps_of_two_signallers_carry_both_their_data() {
    check(Some(3), || {
        let step = step(1);
        let signallers = [0, 1].map(|cell| {
            let step = step.clone();
            thread::spawn(move || step.write_and_signal(cell))
        });
        step.wait_and_read(2, 0);
        step.wait_and_read(2, 1);
        for signaller in signallers {
            signaller.join().unwrap();
        }
    });
}

/// Hunts the abort that nobody hears: the flag is raised after the waiter looked at it and before it parks. Two
/// threads, every interleaving.
#[test]
fn an_abort_wakes_a_waiter_whose_step_never_comes() {
    check(None, || {
        let step = step(0);
        let raiser = thread::spawn({
            let step = step.clone();
            move || step.abort.raise()
        });
        assert_eq!(step.steps.wait_for(1, &step.abort), Err(Aborted));
        raiser.join().unwrap();
    });
}

/// Hunts a waiter that, registered with both, is lost by both: a step for another waiter and an abort arrive at once.
/// One waits for a step that comes, one for a step that never comes. Three threads, three preemptions as above.
#[test]
fn an_abort_and_a_step_at_once() {
    check(Some(3), || {
        let step = step(0);
        let waiter = thread::spawn({
            let step = step.clone();
            move || assert_eq!(step.steps.wait_for(2, &step.abort), Err(Aborted))
        });
        let signaller = thread::spawn({
            let step = step.clone();
            move || {
                step.steps.signal();
                step.abort.raise();
            }
        });
        let _ = step.steps.wait_for(1, &step.abort);
        waiter.join().unwrap();
        signaller.join().unwrap();
    });
}

/// Hunts a flag that is seen before the reason: a spinning waiter is told by the flag alone, no lock in between. Two
/// threads, every interleaving.
#[test]
fn whoever_sees_the_flag_sees_why_it_was_raised() {
    check(None, || {
        let step = step(1);
        let raiser = thread::spawn({
            let step = step.clone();
            move || {
                // SAFETY: the one writer; the reader waits for the flag.
                step.data[0].with_mut(|data| unsafe { *data = 7 });
                step.abort.raise();
            }
        });
        assert_eq!(step.steps.wait_for(1, &step.abort), Err(Aborted));
        // SAFETY: written before the flag that was seen.
        assert_eq!(step.data[0].with(|data| unsafe { *data }), 7);
        raiser.join().unwrap();
    });
}
