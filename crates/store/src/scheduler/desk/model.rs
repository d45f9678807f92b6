//! Model checks of the desk: every way in which callers, the attendant and a device can meet.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p multigrain-store --release --lib desk
//! ```

use std::collections::VecDeque;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::{Desk, Device, News};

/// The device itself: operations that it has, and those that it is done with and nobody has taken.
#[derive(Clone, Default)]
struct Kernel(Arc<Mutex<(VecDeque<Job>, Vec<Job>)>>);

impl Kernel {
    fn complete_one(&self) {
        let mut queues = self.0.lock().unwrap();
        let first = queues.0.pop_front();
        queues.1.extend(first);
    }
}

impl News for Kernel {
    fn wait(&self) {
        // A device gets ready in the end: here, at the latest when somebody blocks at it. Blocking while it has nothing
        // would be for ever.
        let mut queues = self.0.lock().unwrap();
        if queues.1.is_empty() {
            let first = queues.0.pop_front().expect("blocked at a device that has nothing to do");
            queues.1.push(first);
        }
    }
}

/// A transfer of some operations, one after the other.
struct Job {
    operations: usize,
    done: Arc<AtomicBool>,
    /// Raised with `done`, for a test that waits somewhere else than at the desk.
    bell: Arc<(Mutex<bool>, Condvar)>,
}

struct Model {
    kernel: Kernel,
    waiting: VecDeque<Job>,
    in_flight: usize,
    /// Operations in flight whose completion makes another one possible.
    followed: usize,
}

/// One operation at a time: whatever is submitted meanwhile waits for attention.
const IN_FLIGHT_MAX: usize = 1;

impl Model {
    fn submit(&mut self, job: Job) {
        self.waiting.push_back(job);
        self.start();
    }

    fn start(&mut self) {
        while self.in_flight < IN_FLIGHT_MAX
            && let Some(job) = self.waiting.pop_front()
        {
            self.in_flight += 1;
            self.followed += usize::from(job.operations > 1);
            self.kernel.0.lock().unwrap().0.push_back(job);
        }
    }
}

impl Device for Model {
    fn progress(&mut self) -> bool {
        let complete = std::mem::take(&mut self.kernel.0.lock().unwrap().1);
        let any = !complete.is_empty();
        for mut job in complete {
            self.in_flight -= 1;
            self.followed -= usize::from(job.operations > 1);
            job.operations -= 1;
            if job.operations > 0 {
                self.waiting.push_front(job);
            } else {
                job.done.store(true, Ordering::Release);
                *job.bell.0.lock().unwrap() = true;
                job.bell.1.notify_one();
            }
        }
        self.start();
        any
    }

    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.waiting.is_empty()
    }

    fn needs_attention(&self) -> bool {
        !self.waiting.is_empty() || self.followed > 0
    }
}

type ModelDesk = Desk<Model, Kernel>;

/// Submits a transfer of so many operations; the result says when it is done.
fn submit(desk: &ModelDesk, operations: usize) -> Arc<AtomicBool> {
    let done = Arc::new(AtomicBool::new(false));
    desk.with(|model| model.submit(Job { operations, done: done.clone(), bell: Arc::default() }));
    done
}

fn wait(desk: &ModelDesk, done: &AtomicBool) {
    desk.wait_until(|| done.load(Ordering::Acquire));
}

/// Explores `body`, run beside an attendant, and beside a device that completes `early` operations by itself at any
/// moment.
fn check(preemptions: Option<usize>, early: usize, body: impl Fn(Arc<ModelDesk>) + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(preemptions);
    model.check(move || {
        let kernel = Kernel::default();
        let device = Model { kernel: kernel.clone(), waiting: VecDeque::new(), in_flight: 0, followed: 0 };
        let desk = Arc::new(Desk::new(device, kernel.clone()));
        let attended = desk.clone();
        let attendant = thread::spawn(move || attended.attend());
        let ready = (early > 0).then(|| {
            thread::spawn(move || {
                for _ in 0..early {
                    kernel.complete_one();
                }
            })
        });
        body(desk.clone());
        desk.stop();
        attendant.join().unwrap();
        if let Some(ready) = ready {
            ready.join().unwrap();
        }
        desk.with(|model| assert!(model.is_idle(), "the attendant left before the device was idle"));
    });
}

/// Hunts the stolen completion and the follower's last look: two callers, each waits for its own transfer, and the
/// device takes one at a time. Three preemptions.
#[test]
fn two_callers_wait_for_their_own() {
    check(Some(3), 0, |desk| {
        let theirs = desk.clone();
        let other = thread::spawn(move || {
            let done = submit(&theirs, 1);
            wait(&theirs, &done);
        });
        let done = submit(&desk, 1);
        wait(&desk, &done);
        other.join().unwrap();
    });
}

/// Hunts the orphaned device: one caller's transfer has more operations than the other's, so a driver leaves while work
/// of others is left. Two preemptions.
#[test]
fn a_driver_leaves_before_the_other_is_done() {
    check(Some(2), 0, |desk| {
        let theirs = desk.clone();
        let other = thread::spawn(move || {
            let done = submit(&theirs, 2);
            wait(&theirs, &done);
        });
        let done = submit(&desk, 1);
        wait(&desk, &done);
        other.join().unwrap();
    });
}

/// A transfer that nobody waits for is carried through by the attendant. Every interleaving.
#[test]
fn nobody_waits() {
    check(None, 1, |desk| {
        let done = submit(&desk, 2);
        desk.stop();
        drop(done);
    });
}

/// Hunts the orphaned device again: work that needs attention is done although nobody comes to the desk any more, and
/// before it is closed. Every interleaving.
#[test]
fn the_attendant_is_called() {
    check(None, 0, |desk| {
        let bell = Arc::new((Mutex::new(false), Condvar::new()));
        let done = Arc::new(AtomicBool::new(false));
        desk.with(|model| model.submit(Job { operations: 2, done, bell: bell.clone() }));
        // Waits behind it: the device takes one at a time.
        desk.with(|model| model.submit(Job { operations: 1, done: Arc::default(), bell: Arc::default() }));
        let mut rung = bell.0.lock().unwrap();
        while !*rung {
            rung = bell.1.wait(rung).unwrap();
        }
    });
}

/// A caller that looks now and then, and another one that waits. The device is ready early, once. Two preemptions.
#[test]
fn one_looks_and_one_waits() {
    check(Some(2), 1, |desk| {
        let theirs = desk.clone();
        let other = thread::spawn(move || {
            let done = submit(&theirs, 1);
            theirs.look();
            wait(&theirs, &done);
        });
        let done = submit(&desk, 1);
        desk.look();
        wait(&desk, &done);
        other.join().unwrap();
    });
}
