//! A bounded queue, first in, first out, for any number of threads at both ends, which wait where it is full or empty.
//! JOBS.md has the states and the races; the names in brackets are those of the races. One of the modules of this crate
//! with `unsafe` in it.

use std::mem::MaybeUninit;

use crate::pad::Padded;
use crate::signal::{Signal, steps};
use crate::spin::SpinLimit;
use crate::sync::{AtomicU64, Ordering, UnsafeCell};

/// Bit 0 of the tail: nothing more is pushed.
const CLOSED: u64 = 1;
/// Tickets of the tail start at bit 1.
const ONE_TICKET: u64 = 2;

/// A bounded queue. Its ring is Vyukov's ("Bounded MPMC queue", 1024cores.net, 2010): whoever pushes or pulls takes a
/// ticket, and the stamp of a place says to which ticket it belongs. Beside it each end counts what has been done there,
/// and that is what the other end waits for, by the protocol of SLEEP.md.
///
/// ```
/// use multigrain_team::SpinLimit;
/// use multigrain_team::jobs::Fifo;
///
/// let fifo = Fifo::new(2, SpinLimit::default());
/// let sum: u32 = std::thread::scope(|scope| {
///     let puller = scope.spawn(|| std::iter::from_fn(|| fifo.pull()).sum());
///     (1..=100).for_each(|number| fifo.push(number).unwrap());
///     fifo.close();
///     puller.join().unwrap()
/// });
/// assert_eq!(sum, 5050);
/// ```
#[derive(Debug)]
pub struct Fifo<T> {
    tail: Padded<End>,
    head: Padded<End>,
    slots: Box<[Slot<T>]>,
    /// Of the number of slots, a power of two.
    log2: u32,
    spin: SpinLimit,
}

/// One end: the next ticket, and how many items have gone through.
#[derive(Debug)]
#[repr(C)]
struct End {
    ticket: AtomicU64,
    done: Signal,
}

#[derive(Debug)]
struct Slot<T> {
    /// Twice the lap while it is empty for that lap, one more while it is full.
    stamp: AtomicU64,
    item: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: an item is moved in by the one thread that has the ticket of the tail, published by the stamp, and moved out by
// the one thread that has the ticket of the head: items go from thread to thread, and no two threads are in one slot.
unsafe impl<T: Send> Sync for Fifo<T> {}
// SAFETY: as above; a queue holds nothing else that is tied to a thread.
unsafe impl<T: Send> Send for Fifo<T> {}

/// An item was not pushed, and is given back: the queue is full, or closed.
#[derive(Debug, PartialEq, Eq)]
pub struct NotPushed<T>(pub T);

impl<T> Fifo<T> {
    /// A queue with room for `capacity` items, rounded up to a power of two, whose waits spin so long before they park.
    pub fn new(capacity: usize, spin: SpinLimit) -> Fifo<T> {
        let capacity = capacity.max(1).next_power_of_two();
        let end = || Padded(End { ticket: AtomicU64::new(0), done: Signal::new(0) });
        let slot = || Slot { stamp: AtomicU64::new(0), item: UnsafeCell::new(MaybeUninit::uninit()) };
        let slots = (0..capacity).map(|_| slot()).collect();
        Fifo { tail: end(), head: end(), slots, log2: capacity.ilog2(), spin }
    }

    /// How many items there is room for.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, ticket: u64) -> (&Slot<T>, u64) {
        (&self.slots[ticket as usize & (self.slots.len() - 1)], ticket >> self.log2)
    }

    /// Puts an item at the end, if there is room.
    ///
    /// # Errors
    /// [`NotPushed`] if the queue is full or closed.
    pub fn try_push(&self, item: T) -> Result<(), NotPushed<T>> {
        let mut tail = self.tail.ticket.load(Ordering::Relaxed);
        loop {
            if tail & CLOSED != 0 {
                return Err(NotPushed(item));
            }
            let (slot, lap) = self.slot(tail / ONE_TICKET);
            // Acquire: whoever emptied the slot has moved its item out.
            let stamp = slot.stamp.load(Ordering::Acquire);
            if stamp == 2 * lap {
                // Relaxed: a ticket is only a number; the stamp orders the use of the slot.
                let taken = self.tail.ticket.compare_exchange_weak(
                    tail,
                    tail + ONE_TICKET,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                match taken {
                    Ok(_) => {
                        // SAFETY: the ticket makes this thread the only one in the slot until the stamp changes.
                        slot.item.with_mut(|cell| unsafe { (*cell).write(item) });
                        // Release: whoever sees the stamp sees the item.
                        slot.stamp.store(2 * lap + 1, Ordering::Release);
                        self.tail.done.advance_for_one();
                        return Ok(());
                    }
                    Err(now) => tail = now,
                }
            } else {
                let now = self.tail.ticket.load(Ordering::Relaxed);
                // The slot has the item of a lap before, and nobody took this ticket meanwhile: full.
                if stamp < 2 * lap && now == tail {
                    return Err(NotPushed(item));
                }
                tail = now;
            }
        }
    }

    /// Takes the item at the front, if there is one.
    pub fn try_pull(&self) -> Option<T> {
        let mut head = self.head.ticket.load(Ordering::Relaxed);
        loop {
            let (slot, lap) = self.slot(head);
            // Acquire: the item is there.
            let stamp = slot.stamp.load(Ordering::Acquire);
            if stamp == 2 * lap + 1 {
                // Relaxed: as in `try_push`.
                match self.head.ticket.compare_exchange_weak(head, head + 1, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => {
                        // SAFETY: the stamp says that an item is in the slot, the ticket that it is this thread's.
                        let item = slot.item.with(|cell| unsafe { (*cell).assume_init_read() });
                        // Release: whoever fills the slot again does so after the item was moved out.
                        slot.stamp.store(2 * lap + 2, Ordering::Release);
                        self.head.done.advance_for_one();
                        return Some(item);
                    }
                    Err(now) => head = now,
                }
            } else {
                let now = self.head.ticket.load(Ordering::Relaxed);
                if stamp < 2 * lap + 1 && now == head {
                    return None;
                }
                head = now;
            }
        }
    }

    /// Puts an item at the end, when there is room.
    ///
    /// # Errors
    /// [`NotPushed`] if the queue is closed, also while this waits.
    pub fn push(&self, item: T) -> Result<(), NotPushed<T>> {
        match self.try_push(item) {
            Ok(()) => Ok(()),
            Err(NotPushed(item)) => self.push_waiting(item),
        }
    }

    #[cold]
    fn push_waiting(&self, mut item: T) -> Result<(), NotPushed<T>> {
        loop {
            // What is pulled after this look ends the wait [looked too early].
            let seen = self.head.done.count();
            match self.try_push(item) {
                Ok(()) => {
                    // Another may have been left asleep [step in vain].
                    self.head.done.pass_on();
                    return Ok(());
                }
                Err(NotPushed(back)) => item = back,
            }
            if self.tail.ticket.load(Ordering::Relaxed) & CLOSED != 0 {
                return Err(NotPushed(item));
            }
            // Without an abort flag a wait has no way to fail.
            let _ = self.head.done.wait_until(|word| steps(word) != seen, self.spin, None);
        }
    }

    /// Takes the item at the front, when there is one; `None` when the queue is closed and all items are taken.
    pub fn pull(&self) -> Option<T> {
        match self.try_pull() {
            Some(item) => Some(item),
            None => self.pull_waiting(),
        }
    }

    #[cold]
    fn pull_waiting(&self) -> Option<T> {
        loop {
            // What is pushed after this look ends the wait [looked too early].
            let seen = self.tail.done.count();
            if let Some(item) = self.try_pull() {
                // Another may have been left asleep [step in vain].
                self.tail.done.pass_on();
                return Some(item);
            }
            let tail = self.tail.ticket.load(Ordering::Relaxed);
            if tail & CLOSED != 0 && self.head.ticket.load(Ordering::Relaxed) == tail / ONE_TICKET {
                // The step that woke this thread may have been for another, who sleeps [woken in another's place].
                self.tail.done.pass_on();
                return None;
            }
            let _ = self.tail.done.wait_until(|word| steps(word) != seen, self.spin, None);
        }
    }

    /// Nothing more is pushed: whoever waits for room gives up, whoever waits for items does when the last is taken.
    pub fn close(&self) {
        self.tail.ticket.fetch_or(CLOSED, Ordering::Relaxed);
        // The steps wake all, and whoever sees them sees that it is closed.
        self.tail.done.advance();
        self.head.done.advance();
    }
}

impl<T> Drop for Fifo<T> {
    fn drop(&mut self) {
        while self.try_pull().is_some() {}
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn fifo<T>(capacity: usize) -> Fifo<T> {
        Fifo::new(capacity, SpinLimit::from_polls(10))
    }

    #[test]
    fn items_come_in_order_lap_after_lap() {
        for capacity in [1, 2, 3, 4] {
            let fifo = fifo(capacity);
            for round in 0..10 {
                for item in 0..fifo.capacity() {
                    assert_eq!(fifo.try_push((round, item)), Ok(()));
                }
                assert_eq!(fifo.try_push((0, 0)), Err(NotPushed((0, 0))));
                for item in 0..fifo.capacity() {
                    assert_eq!(fifo.try_pull(), Some((round, item)));
                }
                assert_eq!(fifo.try_pull(), None);
            }
        }
    }

    #[test]
    fn a_closed_queue_gives_what_it_has() {
        let fifo = fifo(2);
        assert_eq!(fifo.push(1), Ok(()));
        fifo.close();
        assert_eq!(fifo.push(2), Err(NotPushed(2)));
        assert_eq!((fifo.pull(), fifo.pull(), fifo.pull()), (Some(1), None, None));
    }

    #[test]
    fn what_was_not_pulled_is_dropped_once() {
        let item = Arc::new(());
        let fifo = fifo(4);
        (0..3).for_each(|_| assert!(fifo.push(Arc::clone(&item)).is_ok()));
        drop(fifo.pull());
        assert_eq!(Arc::strong_count(&item), 3);
        drop(fifo);
        assert_eq!(Arc::strong_count(&item), 1);
    }

    #[test]
    fn many_threads_at_both_ends_move_every_item_once() {
        let each: u64 = if cfg!(miri) { 20 } else { 20_000 };
        for (pushers, pullers, capacity) in [(1, 1, 1), (1, 4, 2), (4, 1, 2), (3, 3, 4)] {
            let fifo = fifo(capacity);
            let sum: u64 = std::thread::scope(|scope| {
                let pullers: Vec<_> =
                    (0..pullers).map(|_| scope.spawn(|| std::iter::from_fn(|| fifo.pull()).sum::<u64>())).collect();
                let pushers: Vec<_> =
                    (0..pushers).map(|_| scope.spawn(|| (1..=each).for_each(|n| fifo.push(n).unwrap()))).collect();
                pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
                fifo.close();
                pullers.into_iter().map(|puller| puller.join().unwrap()).sum()
            });
            assert_eq!(sum, pushers * each * (each + 1) / 2);
        }
    }

    #[test]
    fn closing_wakes_who_waits_at_either_end() {
        let (full, empty) = (fifo(1), fifo::<u32>(1));
        full.push(1).unwrap();
        std::thread::scope(|scope| {
            let pusher = scope.spawn(|| full.push(2));
            let puller = scope.spawn(|| empty.pull());
            full.close();
            empty.close();
            assert_eq!(pusher.join().unwrap(), Err(NotPushed(2)));
            assert_eq!(puller.join().unwrap(), None);
        });
    }
}
