//! Model checks of the protocol in CONTEXTS.md, on the code of a run without bodies.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p multigrain-team --release --lib contexts`

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::line::Line;
use super::sharing::Sharing;

/// As in `tests/model`: so many involuntary switches of threads, or as many as `LOOM_MAX_PREEMPTIONS` says.
fn check(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.check(body);
}

/// What lies in a processor: the checker reports an access that is not ordered after the one before it.
struct Processors(Vec<UnsafeCell<u32>>);

// SAFETY: that nobody else has the processor is what the tests are about; the checker reports it if somebody has.
unsafe impl Sync for Processors {}
// SAFETY: as above.
unsafe impl Send for Processors {}

/// Contexts of so many steps, each of which adds to what lies in the processor; behind each step is a look.
fn turns(sharing: Sharing, processors: usize, steps: &[u32]) {
    let line = Arc::new(Line::new(processors, steps.len(), sharing, 1, &[]));
    let memory = Arc::new(Processors((0..processors).map(|_| UnsafeCell::new(0)).collect()));
    let threads: Vec<_> = (0..)
        .zip(steps.iter().copied())
        .map(|(context, steps)| {
            let (line, memory) = (Arc::clone(&line), Arc::clone(&memory));
            thread::spawn(move || {
                let mut has = line.wait(context).unwrap().processor;
                for step in 1..=steps {
                    // SAFETY: the context has the processor; the checker reports it if another has it, too.
                    memory.0[has].with_mut(|word| unsafe { *word += 1 });
                    if step < steps && line.tick(context, 0) {
                        has = line.wait(context).unwrap().processor;
                    }
                }
                line.end(context, 0);
            })
        })
        .collect();
    line.begin();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // SAFETY: all threads have ended.
    let done: u32 = memory.0.iter().map(|word| word.with(|word| unsafe { *word })).sum();
    assert_eq!(done, steps.iter().sum::<u32>());
}

/// [lost wake-up, given once]: the next is given the processor while it still goes to sleep from its last turn; each end and each step
/// meets each sleep. Two threads with three switches cover every order of a step, a wait and an end.
#[test]
fn two_that_hand_one_processor_to_each_other() {
    check(3, || turns(Sharing::HandOff, 1, &[2, 2]));
}

/// Three, of which one waits behind another: nobody is passed over, and nobody is left asleep when others end.
#[test]
fn three_that_hand_one_processor_on() {
    check(2, || turns(Sharing::HandOff, 1, &[2, 1, 1]));
}

/// [who asks in vain]: a processor becomes free, and whoever is woken for it may find it taken, or a second one free.
#[test]
fn two_that_come_first_or_not() {
    check(3, || turns(Sharing::Slices, 1, &[2, 2]));
}

#[test]
fn three_that_come_first_or_not_on_two() {
    check(2, || turns(Sharing::Slices, 2, &[2, 1, 1]));
}

/// [called off]: threads that wait, and those that only will, are told.
#[test]
fn a_run_that_comes_to_nothing() {
    check(3, || {
        let line = Arc::new(Line::new(1, 2, Sharing::HandOff, 1, &[]));
        let threads: Vec<_> = (0..2)
            .map(|context| {
                let line = Arc::clone(&line);
                thread::spawn(move || assert_eq!(line.wait(context), None))
            })
            .collect();
        line.call_off();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
