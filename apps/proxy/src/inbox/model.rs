//! Model checks of what is posted to a worker. A worker that waits while a message lies there waits for ever, which the checker reports.

use super::{Inbox, Wake};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// Behaves as an event descriptor does.
struct Flag {
    is_raised: Mutex<bool>,
    changes: Condvar,
}

impl Flag {
    fn wait(&self) {
        let mut is_raised = self.is_raised.lock().unwrap();
        while !*is_raised {
            is_raised = self.changes.wait(is_raised).unwrap();
        }
    }
}

impl Wake for Flag {
    fn raise(&self) {
        *self.is_raised.lock().unwrap() = true;
        self.changes.notify_all();
    }

    fn lower(&self) {
        *self.is_raised.lock().unwrap() = false;
    }
}

type Shared = Arc<Inbox<Box<usize>, Flag>>;

fn inbox(room: usize) -> Shared {
    let flag = Flag { is_raised: Mutex::new(false), changes: Condvar::new() };
    Arc::new(Inbox::waking(room, flag))
}

/// So many involuntary switches of threads, or as many as `LOOM_MAX_PREEMPTIONS` says: each race needs two at most.
fn check(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(3));
    model.check(body);
}

fn poster(inbox: &Shared, message: usize) -> thread::JoinHandle<bool> {
    let inbox = inbox.clone();
    thread::spawn(move || inbox.post(Box::new(message)).is_ok())
}

/// What a worker takes until it has so many.
fn worker(inbox: &Shared, count: usize) -> Vec<usize> {
    let mut taken = Vec::new();
    while taken.len() < count {
        inbox.wake.wait();
        taken.extend(inbox.come(true).map(|message| *message));
    }
    taken
}

/// All three races: two post, and each message is taken.
#[test]
fn what_is_posted_is_taken() {
    check(|| {
        let inbox = inbox(2);
        let posters = [poster(&inbox, 1), poster(&inbox, 2)];
        assert_eq!(worker(&inbox, 2).iter().sum::<usize>(), 3);
        assert!(posters.into_iter().all(|poster| poster.join().unwrap()));
    });
}

/// Where there is no room, what is refused comes back, and what is not is taken, in order.
#[test]
fn what_is_refused_comes_back() {
    check(|| {
        let inbox = inbox(1);
        let others = inbox.clone();
        let poster = thread::spawn(move || (1..=2).filter(|n| others.post(Box::new(*n)).is_ok()).collect::<Vec<_>>());
        let mut taken = worker(&inbox, 1);
        let posted = poster.join().unwrap();
        taken.extend(inbox.come(false).map(|message| *message));
        assert_eq!(taken, posted);
    });
}

/// What all know without a message, such as that there are other streams, is looked for when somebody is woken up.
#[test]
fn who_is_woken_up_sees_why() {
    check(|| {
        let (inbox, version) = (inbox(1), Arc::new(AtomicUsize::new(0)));
        let (others, known) = (inbox.clone(), version.clone());
        let waker = thread::spawn(move || {
            known.fetch_add(1, Ordering::Release);
            others.wake_up();
        });
        inbox.wake.wait();
        assert_eq!(inbox.come(true).count(), 0);
        assert_eq!(version.load(Ordering::Relaxed), 1);
        waker.join().unwrap();
    });
}
