//! What all threads of a run share, and the part of it that is under one lock.

use std::collections::VecDeque;

use multigrain_schedule::jobs::Dispatch;
use multigrain_schedule::policy::{Arrival, Decision, Departure, Machine, Policy, Reason, Start, Workers};

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
    /// No task waits, and no worker is idle or the policy gives each task one: an off-load could only get the worker it
    /// comes from. A hint: a late look
    /// at it costs one off-load its helpers.
    quiet: AtomicBool,
    /// All strands have ended.
    over: AtomicBool,
    /// The run ends before its time: strands unwind at their next off-load.
    pub(super) stopping: AtomicBool,
    /// Workers execute the strands.
    pub(super) shared: bool,
    /// Tasks for which off-loading does not pay are executed by the host.
    pub(super) throttle: bool,
    /// How a task that waits gets to a worker that is done.
    dispatch: Dispatch,
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

/// A task that does not depart when it is done: its strand is alone, and the policy would start the next one of as many
/// chunks in the same way ([`Machine::repeats`]), which it therefore is without lock or policy. Nobody else wants the workers
/// meanwhile. The task departs when its strand off-loads another sort of loop, or ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    start: Start,
    /// Chunks of its loop, as far as they matter: no more than there are workers.
    chunks: u32,
}

/// Under the lock.
#[derive(Debug)]
pub(super) struct State {
    machine: Machine,
    decisions: Vec<Decision>,
    /// Tasks that have arrived and not started.
    waiting: Vec<(u64, *const Head<'static>)>,
    /// Strands that can go on, by host.
    ready: Vec<VecDeque<usize>>,
    ready_count: usize,
    /// Strands that have not begun: one line for all hosts, or one for each.
    fresh: Vec<VecDeque<u32>>,
    fresh_count: usize,
    live: usize,
    live_max: usize,
    /// Strands that have begun and not ended, by host.
    live_of: Vec<u32>,
    /// Hosts are workers.
    shared: bool,
    next_task: u64,
    now_ns: u64,
    /// What workers were told: a task waits for one of them.
    wanted: bool,
}

// SAFETY: the pointers are to tasks on the stacks of suspended strands; `head.rs` says why they can be used by whoever
// starts the task.
unsafe impl Send for State {}

/// What a host does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Begins this strand.
    Begin(u32),
    /// Goes on with the strand in this place of its own list.
    Resume(usize),
    /// Waits.
    Wait,
    /// Ends.
    Finished,
}

/// How a run is set up.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) machine: Machine,
    pub(super) threads: usize,
    pub(super) hosts: usize,
    pub(super) shared: bool,
    pub(super) strands: u32,
    pub(super) live_max: usize,
    pub(super) spin: SpinLimit,
    pub(super) throttle: bool,
    pub(super) dispatch: Dispatch,
}

impl Shared {
    pub(super) fn new(setup: Setup) -> Shared {
        let (policy, workers) = (setup.machine.policy(), setup.machine.workers());
        let homes = setup.shared && policy.home(0, workers).is_some();
        let mut fresh = vec![VecDeque::new(); if homes { setup.hosts } else { 1 }];
        for strand in 0..setup.strands {
            let line = policy.home(strand, workers).filter(|_| homes).unwrap_or(0);
            fresh[line as usize].push_back(strand);
        }
        let state = State {
            machine: setup.machine,
            decisions: Vec::new(),
            waiting: Vec::new(),
            ready: vec![VecDeque::new(); setup.hosts],
            ready_count: 0,
            fresh,
            fresh_count: setup.strands as usize,
            live: 0,
            live_max: setup.live_max.max(1),
            live_of: vec![0; setup.hosts],
            shared: setup.shared,
            next_task: 0,
            now_ns: 0,
            wanted: false,
        };
        Shared {
            state: Mutex::new(state),
            seats: (0..setup.threads).map(|_| Padded(Seat::new())).collect(),
            workers: workers as usize,
            spin: setup.spin,
            done: Padded(Done::new()),
            quiet: AtomicBool::new(false),
            over: AtomicBool::new(setup.strands == 0),
            stopping: AtomicBool::new(false),
            shared: setup.shared,
            throttle: setup.throttle,
            dispatch: setup.dispatch,
            origin_ticks: multigrain_trace::now().0,
            ns_per_tick: 1e9 / multigrain_trace::ticks_per_second(),
        }
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
        // The clocks of two processors may differ by a little; the machine's time does not run backwards.
        let since = ticks.saturating_sub(self.origin_ticks);
        state.now_ns = state.now_ns.max(self.ns(since) as u64);
        let now_ns = state.now_ns;
        // Decisions are made at events only, so a tick that was due since the last one is as good now.
        if state.machine.next_tick_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            state.machine.tick(now_ns);
        }
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
            state.line_up(head.host, head.slot);
            state.machine.depart(state.now_ns, departure, &mut state.decisions);
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
        let wanted = |state: &State| self.dispatch == Dispatch::Queue && state.machine.waiting() > 0;
        while state.wanted != wanted(state) {
            state.wanted = wanted(state);
            self.departures(state);
        }
        orders.starts.clear();
        orders.waits = None;
        for decision in state.decisions.drain(..) {
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
        // Under these a task has one worker, and the strand's own is one.
        let alone = matches!(state.machine.policy(), Policy::Edtlp | Policy::Static);
        let quiet = self.shared && state.waiting.is_empty() && (alone || state.machine.idle().is_empty());
        if quiet != self.is_quiet() {
            self.quiet.store(quiet, Ordering::Relaxed);
        }
        if state.ready_count > 0 || state.more_could_begin() {
            state.who_can_go_on(self.shared, me).iter().for_each(|host| self.host_seat(host as usize).ring());
        }
    }

    /// How a task of so many chunks starts after the one that was kept, if it starts as that one.
    #[inline]
    pub(super) fn again(&self, kept: Option<Kept>, chunks: u32) -> Option<Start> {
        kept.filter(|kept| kept.chunks == chunks.min(self.workers as u32)).map(|kept| kept.start)
    }

    /// Lets the task depart that was kept, if one was. What it took would teach the policy nothing.
    fn settle(&self, state: &mut State, me: usize, orders: &mut Orders) {
        if let Some(kept) = orders.kept.take() {
            let departure = Departure { task: kept.start.task, span_ns: 0, busy_ns: 0 };
            state.machine.depart(state.now_ns, departure, &mut state.decisions);
            state.occupy(me);
        }
    }

    fn host_seat(&self, host: usize) -> &Seat {
        let first = if self.shared { 0 } else { self.workers };
        &self.seats[first + host]
    }

    /// A task arrives, now, in ticks; see [`Machine::arrive`]. Returns its number.
    pub(super) fn arrive(&self, now: u64, me: usize, arrival: Arrival, head: &Head<'_>, orders: &mut Orders) -> u64 {
        let mut guard = self.enter(now);
        let state = &mut *guard;
        self.settle(state, me, orders);
        let task = state.next_task;
        state.next_task += 1;
        state.waiting.push((task, std::ptr::from_ref(head).cast()));
        state.machine.arrive(state.now_ns, Arrival { task, ..arrival }, &mut state.decisions);
        let keeps = self.shared && state.live == 1 && !state.more_could_begin() && state.machine.repeats();
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
        let state = &mut *guard;
        state.machine.depart(state.now_ns, departure, &mut state.decisions);
        let goes_on = state.occupy(me);
        if !goes_on {
            state.line_up(me, slot);
        }
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
        let state = &mut *guard;
        orders.starts.clear();
        // Whose task is kept is alone, so has nobody to give way to.
        if !state.can_go_on(me) {
            return None;
        }
        state.line_up(me, slot);
        if self.shared {
            state.machine.vacate(state.now_ns, me as u32, &mut state.decisions);
        }
        let next = self.choose(state, me);
        self.leave(guard, me, orders);
        Some(next)
    }

    /// A strand of this host has ended.
    pub(super) fn end(&self, me: usize, orders: &mut Orders) {
        let mut guard = self.enter(multigrain_trace::now().0);
        let state = &mut *guard;
        self.settle(state, me, orders);
        state.machine.strand_ends();
        state.live -= 1;
        state.live_of[me] -= 1;
        if self.stopping.load(Ordering::Relaxed) {
            state.fresh.iter_mut().for_each(VecDeque::clear);
            state.fresh_count = 0;
        }
        let over = state.live == 0 && state.fresh_count == 0;
        self.over.store(over, Ordering::Relaxed);
        if self.shared {
            state.machine.vacate(state.now_ns, me as u32, &mut state.decisions);
        }
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
        let next = self.choose(&mut guard, me);
        self.leave(guard, me, orders);
        next
    }

    fn choose(&self, state: &mut State, me: usize) -> Next {
        if self.is_over() {
            Next::Finished
        } else if !state.can_go_on(me) || self.shared && !state.occupy(me) {
            Next::Wait
        } else if state.can_begin(me) {
            // Before those that have begun: all that may be in progress have their turns.
            let line = state.line_of(me);
            let Some(strand) = state.fresh[line].pop_front() else { unreachable!("there was one") };
            state.fresh_count -= 1;
            state.live += 1;
            state.live_of[me] += 1;
            state.machine.strand_begins();
            Next::Begin(strand)
        } else {
            let Some(slot) = state.ready[me].pop_front() else { unreachable!("there was one") };
            state.ready_count -= 1;
            Next::Resume(slot)
        }
    }
}

impl State {
    /// Whether there is a strand that this host could go on with or begin.
    fn can_go_on(&self, host: usize) -> bool {
        !self.ready[host].is_empty() || self.can_begin(host)
    }

    fn more_could_begin(&self) -> bool {
        self.fresh_count > 0 && self.live < self.live_max
    }

    fn can_begin(&self, host: usize) -> bool {
        self.live < self.live_max && !self.fresh[self.line_of(host)].is_empty() && !self.leaves_to_others(host)
    }

    /// Strands stay where they begin. So who has some leaves one that has not begun to a worker that is idle and has fewer:
    /// else two would have their turns on one worker for ever, beside one that does nothing.
    fn leaves_to_others(&self, host: usize) -> bool {
        let has_fewer = |worker: u32| self.live_of[worker as usize] < self.live_of[host];
        self.shared && self.fresh.len() == 1 && !self.machine.is_held() && self.machine.idle().iter().any(has_fewer)
    }

    fn line_of(&self, host: usize) -> usize {
        if self.fresh.len() == 1 { 0 } else { host }
    }

    fn line_up(&mut self, host: usize, slot: usize) {
        self.ready[host].push_back(slot);
        self.ready_count += 1;
    }

    /// Takes the worker of a host for strands, if it is idle and nobody waits for it.
    fn occupy(&mut self, worker: usize) -> bool {
        self.machine.idle().contains(worker as u32) && self.machine.occupy(worker as u32)
    }

    /// Hosts other than `me` that might sleep although there is a strand for them.
    fn who_can_go_on(&self, shared: bool, me: usize) -> Workers {
        if shared {
            if self.machine.is_held() {
                return Workers::default();
            }
            return self.machine.idle().iter().filter(|&w| w as usize != me && self.can_go_on(w as usize)).collect();
        }
        (0..self.ready.len()).filter(|&host| host != me && self.can_go_on(host)).map(|host| host as u32).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Two strands and two workers, of which the second comes late: the first one has its own strand only.
    #[test]
    fn who_has_a_strand_leaves_the_next_to_who_has_none() {
        let shared = Shared::new(Setup {
            machine: Machine::new(Policy::Marginal, 2).unwrap(),
            threads: 2,
            hosts: 2,
            shared: true,
            strands: 3,
            live_max: 3,
            spin: SpinLimit::default(),
            throttle: false,
            dispatch: Dispatch::Queue,
        });
        let mut orders = Orders::default();
        let now = multigrain_trace::now().0;
        assert_eq!(shared.next(now, 0, &mut orders), Next::Begin(0));
        assert_eq!(shared.give_way(now, 0, 0, &mut orders), None, "the second worker is idle");
        assert_eq!(shared.next(now, 1, &mut orders), Next::Begin(1));
        assert_eq!(shared.give_way(now, 0, 0, &mut orders), Some(Next::Begin(2)), "nobody is idle");
    }
}
