//! Model checks of the protocols in STRANDS.md: seats, shared loops, tasks that are done. The code is that of a run, without
//! the stacks, which the checker cannot follow: it is run on plain threads.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p multigrain-team --release --lib`

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicBool;
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::done::{Done, Link};
use super::seat::{Seat, Served};
use super::share::share;
use crate::pad::Padded;
use crate::spin::SpinLimit;
use crate::sync::Ordering;

/// As in `tests/model`: so many involuntary switches of threads, or as many as `LOOM_MAX_PREEMPTIONS` says.
fn check(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.check(body);
}

fn polls(count: u32) -> SpinLimit {
    SpinLimit::from_polls(count)
}

/// A plain value: the checker reports an access that is not ordered after the one before it.
struct Plain(UnsafeCell<u32>);

// SAFETY: the values are what the tests are about; the checker itself reports unordered accesses.
unsafe impl Sync for Plain {}
// SAFETY: as above.
unsafe impl Send for Plain {}

impl Plain {
    fn new(value: u32) -> Plain {
        Plain(UnsafeCell::new(value))
    }

    fn get(&self) -> u32 {
        // SAFETY: the checker reports it if somebody writes at once.
        self.0.with(|value| unsafe { *value })
    }

    fn set(&self, new: u32) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// Seats of some workers, and whether they may go home.
struct Room {
    seats: Vec<Padded<Seat>>,
    over: AtomicBool,
}

impl Room {
    fn new(workers: usize) -> Arc<Room> {
        Arc::new(Room { seats: (0..workers).map(|_| Padded(Seat::new())).collect(), over: AtomicBool::new(false) })
    }

    /// What a worker that is no host does, as in `host.rs`.
    fn serve(&self, worker: usize, spin: SpinLimit) {
        let seat = &self.seats[worker];
        loop {
            // SAFETY: the only thread of this seat; the posts of these tests do not use their last argument.
            if unsafe { seat.serve(std::ptr::null()) } != Served::Nothing {
                seat.wait(spin);
                continue;
            }
            seat.hear();
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            seat.wait(spin);
        }
    }

    fn close(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.seats.iter().for_each(|seat| seat.ring());
    }
}

fn clock() -> u64 {
    0
}

/// Loops, one after the other, on a leader and its helpers. What the bodies read lies where the leader writes at once
/// afterwards, as the next frame on its stack would.
fn loops(rounds: u32, workers: usize, spin: SpinLimit) {
    let room = Room::new(workers);
    let threads: Vec<_> = (1..workers)
        .map(|helper| {
            let room = Arc::clone(&room);
            thread::spawn(move || room.serve(helper, spin))
        })
        .collect();
    let everybody: Vec<u32> = (0..workers as u32).collect();
    let frame = Plain(UnsafeCell::new(0));
    for round in 1..=rounds {
        let results: Vec<Plain> = (0..workers).map(|_| Plain::new(0)).collect();
        let body = |chunk: u32| {
            let result = &results[chunk as usize];
            result.set(result.get() + frame.get() + 1);
        };
        let ends: Vec<u32> = (1..=workers as u32).collect();
        // SAFETY: nobody else posts, and each loop is over before the next.
        let (_, outcome) = unsafe { share(&room.seats, &everybody, &ends, &body, 0, clock, spin) };
        outcome.unwrap_or_else(|_| panic!("threw"));
        assert!(results.iter().all(|result| result.get() == round), "each chunk once");
        frame.set(round);
    }
    room.close();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Hunts a helper that comes late and reads a post that was withdrawn, or a frame that is gone; a leader that returns before
/// its helper has left; a chunk executed twice or not at all. Two threads, two preemptions: one to hold the helper
/// back at its turn, one at its leave.
#[test]
fn a_late_helper_finds_nothing() {
    check(2, || loops(1, 2, polls(0)));
}

/// The same when the leader is in its next loop already: one preemption, which holds the helper back.
#[test]
fn a_late_helper_does_not_enter_the_next_loop() {
    check(1, || loops(2, 2, polls(0)));
}

/// The same with a look before parking.
#[test]
fn a_late_helper_that_spins() {
    check(2, || loops(1, 2, polls(1)));
}

/// With two helpers a chunk may be taken from a helper by the other one. One preemption: what is new beside the test of
/// two threads is who takes from whom.
#[test]
fn two_helpers_take_from_each_other() {
    check(1, || loops(1, 3, polls(0)));
}

/// A host that sleeps is rung for a strand: hunts a ring between its look and its sleep. Two threads, every interleaving
/// up to four preemptions.
#[test]
fn a_ring_while_looking_is_heard() {
    check(4, || {
        let room = Room::new(1);
        let line = Arc::new(Mutex::new(0));
        let host = {
            let (room, line) = (Arc::clone(&room), Arc::clone(&line));
            thread::spawn(move || {
                let mut seen = 0;
                while seen < 2 {
                    room.seats[0].hear();
                    let ready = std::mem::take(&mut *line.lock().unwrap());
                    seen += ready;
                    if ready == 0 {
                        room.seats[0].wait(polls(0));
                    }
                }
            })
        };
        for _ in 0..2 {
            *line.lock().unwrap() += 1;
            room.seats[0].ring();
        }
        host.join().unwrap();
    });
}

/// A task as the list of those done sees it.
#[repr(C)]
struct Task {
    link: Link,
    outcome: Plain,
}

/// Pushes a task from each worker, while the thread that holds the lock begins to wait for a worker: each task must depart,
/// by whoever, and with its outcome.
fn everybody_departs(workers: u32) {
    let tasks: Arc<Vec<Task>> =
        Arc::new((0..workers).map(|_| Task { link: Link::new(), outcome: Plain::new(0) }).collect());
    let done = Arc::new(Done::new());
    // Under the lock: what departed, and whether a task waits.
    let state = Arc::new(Mutex::new((0, false)));
    let depart = |done: &Done, state: &mut (u32, bool)| {
        let each = |link: *mut Link| {
            // SAFETY: the link is the first field of a task that lives to the end of the test.
            state.0 += unsafe { &*link.cast::<Task>() }.outcome.get();
        };
        // SAFETY: under the lock.
        unsafe { done.take(state.1, each) };
    };
    let threads: Vec<_> = (0..workers as usize)
        .map(|worker| {
            let (tasks, done, state) = (Arc::clone(&tasks), Arc::clone(&done), Arc::clone(&state));
            thread::spawn(move || {
                let task = &raw const tasks[worker];
                tasks[worker].outcome.set(10);
                // SAFETY: it lives to the end of the test, and is pushed once.
                if unsafe { done.push(task.cast_mut().cast()) } {
                    depart(&done, &mut state.lock().unwrap());
                }
            })
        })
        .collect();
    {
        let mut state = state.lock().unwrap();
        state.1 = true;
        depart(&done, &mut state);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(state.lock().unwrap().0, 10 * workers, "every task has departed without anybody looking again");
}

/// Hunts a worker that does not hear that a task waits, when its own task is not seen either. Two threads, every
/// interleaving up to four preemptions.
#[test]
fn a_task_departs_when_another_waits() {
    check(4, || everybody_departs(1));
}

/// Two workers that push at once; two preemptions.
#[test]
fn two_tasks_depart_when_another_waits() {
    check(2, || everybody_departs(2));
}
