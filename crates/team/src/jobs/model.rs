//! Model checks of the queue: JOBS.md names the races. Items are boxes, so that the checker sees what is leaked or used
//! before it was handed over.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p multigrain-team --release --lib jobs`

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::fifo::{Fifo, NotPushed};
use crate::spin::SpinLimit;

/// As in `tests/model`: so many involuntary switches of threads, or as many as `LOOM_MAX_PREEMPTIONS` says.
fn check(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.check(body);
}

/// A plain value that whoever has the item may change: the checker reports it if two may.
struct Item(UnsafeCell<u32>);

// SAFETY: the values are what the tests are about; the checker itself reports unordered accesses.
unsafe impl Send for Item {}

impl Item {
    fn new(value: u32) -> Box<Item> {
        Box::new(Item(UnsafeCell::new(value)))
    }
}

/// Adds one to what is in the item, and gives what was there.
fn touch(item: &Item) -> u32 {
    // SAFETY: the checker reports it if somebody else is there at once.
    item.0.with_mut(|value| unsafe {
        *value += 1;
        *value - 1
    })
}

fn fifo(capacity: usize, polls: u32) -> Arc<Fifo<Box<Item>>> {
    Arc::new(Fifo::new(capacity, SpinLimit::from_polls(polls)))
}

/// Pushes items, touched before, by a thread of its own.
fn pusher(fifo: &Arc<Fifo<Box<Item>>>, values: &'static [u32]) -> thread::JoinHandle<()> {
    let fifo = Arc::clone(fifo);
    thread::spawn(move || {
        for &value in values {
            let item = Item::new(value);
            touch(&item);
            assert!(fifo.push(item).is_ok());
        }
    })
}

/// Pulls so many items, or all, and gives the sum of their values.
fn puller(fifo: &Arc<Fifo<Box<Item>>>, most: usize) -> thread::JoinHandle<u32> {
    let fifo = Arc::clone(fifo);
    thread::spawn(move || (0..most).map_while(|_| fifo.pull()).map(|item| touch(&item) - 1).sum())
}

/// Hunts a lost wake-up at either end, and an item seen before it was written or overwritten before it was read: there
/// is room for one, so both sides wait. Two preemptions beside the waits.
#[test]
fn one_place_passes_items_on() {
    check(2, || {
        let fifo = fifo(1, 0);
        let pulled = puller(&fifo, 2);
        for value in [10, 20] {
            let item = Item::new(value);
            touch(&item);
            assert!(fifo.push(item).is_ok());
        }
        assert_eq!(pulled.join().unwrap(), 30);
    });
}

/// Hunts two pushers with one ticket, and one who waits for room and is not woken [step in vain].
#[test]
fn two_pushers_share_one_place() {
    check(1, || {
        let fifo = fifo(1, 0);
        let pushers = [pusher(&fifo, &[10]), pusher(&fifo, &[20])];
        let sum: u32 = (0..2).filter_map(|_| fifo.pull()).map(|item| touch(&item) - 1).sum();
        pushers.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(sum, 30);
    });
}

/// Hunts a second item whose step wakes nobody because the first woke the only one in the list; and a step in vain: the
/// later of two pushers is done first, its step wakes a puller that finds the place before still empty; the earlier one's
/// step wakes only one of both. Each puller must get an item although neither comes again. Three threads, one
/// preemption beside the waits.
#[test]
fn items_that_come_out_of_turn_reach_both_pullers() {
    check(1, || {
        let fifo = fifo(2, 0);
        let pushed = pusher(&fifo, &[10]);
        let pulled = puller(&fifo, 1);
        let item = Item::new(20);
        touch(&item);
        assert!(fifo.push(item).is_ok());
        let own = fifo.pull().map_or(0, |item| touch(&item) - 1);
        pushed.join().unwrap();
        assert_eq!(pulled.join().unwrap() + own, 30);
    });
}

/// Hunts whoever is not woken by the end, at both ends, and an item lost to it.
#[test]
fn closing_ends_every_wait() {
    check(3, || {
        let fifo = fifo(1, 0);
        let pulled = puller(&fifo, 2);
        let item = Item::new(10);
        touch(&item);
        assert!(fifo.push(item).is_ok());
        fifo.close();
        assert_eq!(pulled.join().unwrap(), 10);
    });
    check(3, || {
        let fifo = fifo(1, 0);
        assert!(fifo.push(Item::new(1)).is_ok());
        let closer = Arc::clone(&fifo);
        let closer = thread::spawn(move || closer.close());
        assert!(matches!(fifo.push(Item::new(2)), Err(NotPushed(_))));
        closer.join().unwrap();
        // What is left is dropped with the queue, once: the checker counts.
    });
}

/// Hunts a puller that sleeps for ever because the one step after the end woke another, who found the last item taken at
/// a first look and left [woken in another's place].
#[test]
fn the_last_step_after_the_end_reaches_all_pullers() {
    check(2, || {
        let fifo = fifo(1, 0);
        let pulled = puller(&fifo, 2);
        let pusher = Arc::clone(&fifo);
        let pushed = thread::spawn(move || {
            // Refused if the end comes first.
            let _ = pusher.try_push(Item::new(10));
            pusher.try_pull().map_or(0, |item| touch(&item))
        });
        fifo.close();
        let own = fifo.pull().map_or(0, |item| touch(&item));
        assert!(pulled.join().unwrap() + own + pushed.join().unwrap() <= 10);
    });
}

/// The same as the first with a look before parking: then stamps and counts alone order the item.
#[test]
fn one_place_passes_items_on_to_who_spins() {
    check(2, || {
        let fifo = fifo(1, 1);
        let pulled = puller(&fifo, 2);
        for value in [10, 20] {
            let item = Item::new(value);
            touch(&item);
            assert!(fifo.push(item).is_ok());
        }
        assert_eq!(pulled.join().unwrap(), 30);
    });
}
