//! What all threads of a run share, and the part of it that is under one lock.

use multigrain_schedule::policy::{Arrival, Decision, Departure, PolicyError, Reason, Start};
use multigrain_schedule::strands::{Lines, LinesOptions, Next};

use crate::pad::Padded;
use crate::spin::SpinLimit;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, lock};

use super::done::{Done, Link};
use super::head::Head;
use super::seat::Seat;

/// What all threads of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// By thread: the workers first, then the hosts that are no workers.
    pub(super) seats: Box<[Padded<Seat>]>,
    /// How many of them are workers'.
    workers: usize,
    pub(super) spin: SpinLimit,
    done: Padded<Done>,
    /// [`Lines::is_quiet`]. A hint: a late look at it costs one off-load its helpers.
    quiet: AtomicBool,
    /// All strands have ended.
    over: AtomicBool,
    /// The run ends before its time: strands unwind at their next off-load.
    pub(super) stopping: AtomicBool,
    /// Workers execute the strands.
    pub(super) shared: bool,
    /// Tasks for which off-loading does not pay are executed by the host.
    pub(super) throttle: bool,
    origin_ticks: u64,
    ns_per_tick: f64,
}

/// A task that is to be executed, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) start: Start,
    pub(super) head: *const Head<'static>,
}

/// What is to be done after the lock was let go.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) starts: Vec<Order>,
    /// Why the task that has just arrived waits.
    pub(super) waits: Option<Reason>,
    pub(super) kept: Option<Kept>,
}

/// A task that does not depart when it is done ([`Lines::keeps`]): the next one starts as it did, without lock or policy. It
/// departs when its strand off-loads another sort of loop, or ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    start: Start,
    /// Chunks of its loop, as far as they matter: no more than there are workers.
    chunks: u32,
}

/// Under the lock.
#[derive(Debug)]
pub(super) struct State {
    lines: Lines,
    /// Tasks that have arrived and not started.
    waiting: Vec<(u64, *const Head<'static>)>,
    next_task: u64,
    /// What workers were told: a task waits for one of them.
    wanted: bool,
}

// SAFETY: the pointers are to tasks on the stacks of suspended strands; `head.rs` says why they can be used by whoever
// starts the task.
unsafe impl Send for State {}

impl Shared {
    /// For so many threads, the workers first.
    pub(super) fn new(options: LinesOptions, threads: usize, spin: SpinLimit) -> Result<Shared, PolicyError> {
        let state = State { lines: Lines::new(options)?, waiting: Vec::new(), next_task: 0, wanted: false };
        Ok(Shared {
            state: Mutex::new(state),
            seats: (0..threads).map(|_| Padded(Seat::new())).collect(),
            workers: options.workers as usize,
            spin,
            done: Padded(Done::new()),
            quiet: AtomicBool::new(false),
            over: AtomicBool::new(options.strands == 0),
            stopping: AtomicBool::new(false),
            shared: options.own_hosts.is_none(),
            throttle: options.throttle,
            origin_ticks: multigrain_trace::now().0,
            ns_per_tick: 1e9 / multigrain_trace::ticks_per_second(),
        })
    }

    /// Ticks as nanoseconds.
    #[inline]
    pub(super) fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// Whether an off-load could get no other worker, as far as is known.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    #[inline]
    fn enter(&self, ticks: u64) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        state.lines.advance(self.ns(ticks.saturating_sub(self.origin_ticks)) as u64);
        if !self.done.is_empty() {
            self.departures(&mut state);
        }
        state
    }

    /// Lets all tasks depart that were left by their workers.
    fn departures(&self, state: &mut State) {
        let wanted = state.wanted;
        let each = |link: *mut Link| {
            // SAFETY: the link is the first field of a head, which lives until its strand goes on; that is in line only now,
            // and needs the lock. The worker's last use was the push.
            let head = unsafe { &*link.cast::<Head<'static>>() };
            // SAFETY: as above, this thread is the only one that uses the record.
            let record = unsafe { &*head.record.get() };
            let Some(start) = record.start else { unreachable!("a task is done that was not started") };
            let departure = record.departure(start.task, |ticks| self.ns(ticks));
            state.lines.depart(departure, head.host, head.slot);
        };
        // SAFETY: under the lock.
        unsafe { self.done.take(wanted, each) };
    }

    /// Before the lock is let go: who starts what, and who should look around.
    #[inline]
    fn leave(&self, mut state: MutexGuard<'_, State>, me: usize, orders: &mut Orders) {
        let state = &mut *state;
        // Workers are told, or told no more, that a task waits; one that left its task before it could hear of it is
        // heard here [nobody departs].
        while state.wanted != state.lines.is_wanted() {
            state.wanted = state.lines.is_wanted();
            self.departures(state);
        }
        orders.starts.clear();
        orders.waits = None;
        for decision in state.lines.decided() {
            let start = match decision {
                Decision::Start(start) => start,
                Decision::Wait { reason, .. } => {
                    orders.waits = Some(reason);
                    continue;
                }
            };
            let found = state.waiting.iter().position(|(task, _)| *task == start.task);
            let Some(found) = found else { unreachable!("task {} starts, but has not arrived", start.task) };
            let (_, head) = state.waiting.swap_remove(found);
            orders.starts.push(Order { start, head });
        }
        let quiet = state.lines.is_quiet();
        if quiet != self.is_quiet() {
            self.quiet.store(quiet, Ordering::Relaxed);
        }
        state.lines.to_ring(me).iter().for_each(|host| self.host_seat(host as usize).ring());
    }

    /// How a task of so many chunks starts after the one that was kept, if it starts as that one.
    #[inline]
    pub(super) fn again(&self, kept: Option<Kept>, chunks: u32) -> Option<Start> {
        kept.filter(|kept| kept.chunks == chunks.min(self.workers as u32)).map(|kept| kept.start)
    }

    fn host_seat(&self, host: usize) -> &Seat {
        let first = if self.shared { 0 } else { self.workers };
        &self.seats[first + host]
    }

    /// A task arrives, now, in ticks; see [`Lines::arrive`]. Returns its number.
    pub(super) fn arrive(&self, now: u64, me: usize, arrival: Arrival, head: &Head<'_>, orders: &mut Orders) -> u64 {
        let mut guard = self.enter(now);
        let state = &mut *guard;
        if let Some(kept) = orders.kept.take() {
            state.lines.settle(kept.start.task, me);
        }
        let task = state.next_task;
        state.next_task += 1;
        state.waiting.push((task, std::ptr::from_ref(head).cast()));
        state.lines.arrive(Arrival { task, ..arrival });
        let keeps = state.lines.keeps();
        self.leave(guard, me, orders);
        if let (true, [order]) = (keeps, &orders.starts[..])
            && order.start.master as usize == me
        {
            orders.kept = Some(Kept { start: order.start, chunks: arrival.iterations.min(self.workers as u32) });
        }
        task
    }

    /// A task departs that the strand on this host executed itself; true if the host is to go on with the strand at
    /// once, otherwise the strand is in line.
    pub(super) fn depart_and_go_on(
        &self,
        now: u64,
        me: usize,
        slot: usize,
        departure: Departure,
        orders: &mut Orders,
    ) -> bool {
        let mut guard = self.enter(now);
        let goes_on = guard.lines.depart_and_go_on(departure, me, slot);
        self.leave(guard, me, orders);
        goes_on
    }

    /// A worker has executed a whole task. The host of its strand is rung.
    ///
    /// # Safety
    /// The task was started on this worker, with its start and outcome in its record. Its head may be gone when this
    /// returns.
    pub(super) unsafe fn leave_done(&self, head: *const Head<'_>, orders: &mut Orders) {
        // SAFETY: it lives until the push.
        let host = unsafe { (*head).host };
        let link = head.cast_mut().cast();
        orders.starts.clear();
        // SAFETY: the strand is suspended until the task is taken from the list, and the worker is the only one that uses
        // the head.
        if unsafe { self.done.push(link) } {
            let guard = self.enter(multigrain_trace::now().0);
            self.leave(guard, usize::MAX, orders);
        }
        self.host_seat(host).ring();
    }

    /// The strand in this place gives way to others of its host: what the host does next; `None` if there are none.
    pub(super) fn give_way(&self, now: u64, me: usize, slot: usize, orders: &mut Orders) -> Option<Next> {
        let mut guard = self.enter(now);
        let next = guard.lines.give_way(me, slot);
        self.leave(guard, me, orders);
        next
    }

    /// A strand of this host has ended.
    pub(super) fn end(&self, me: usize, orders: &mut Orders) {
        let mut guard = self.enter(multigrain_trace::now().0);
        if let Some(kept) = orders.kept.take() {
            guard.lines.settle(kept.start.task, me);
        }
        if self.stopping.load(Ordering::Relaxed) {
            guard.lines.stop();
        }
        let over = guard.lines.end(me);
        self.over.store(over, Ordering::Relaxed);
        self.leave(guard, me, orders);
        if over {
            self.seats.iter().for_each(|seat| seat.ring());
        }
    }

    /// Whether all strands have ended. Whoever is rung for it sees it.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// What a host does next.
    pub(super) fn next(&self, now: u64, me: usize, orders: &mut Orders) -> Next {
        let mut guard = self.enter(now);
        let next = guard.lines.next(me);
        self.leave(guard, me, orders);
        next
    }
}
