//! What all threads of a run share, and the part of it that is under one lock.

use std::collections::VecDeque;

use multigrain_schedule::policy::{Arrival, Decision, Departure, Machine, Start, Workers};

use crate::pad::Padded;
use crate::spin::SpinLimit;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, lock};

use super::head::Head;
use super::seat::Seat;
use super::share::Board;

/// What all threads of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// By thread: the workers first, then the hosts that are no workers.
    pub(super) seats: Box<[Padded<Seat>]>,
    /// By worker: for the loops that it leads.
    pub(super) boards: Box<[Board]>,
    pub(super) spin: SpinLimit,
    /// No worker is idle and no task waits, so an off-load could only get the worker it comes from. A hint: a late look
    /// at it costs one off-load its helpers.
    quiet: AtomicBool,
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
    next_task: u64,
    now_ns: u64,
    finished: bool,
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
            next_task: 0,
            now_ns: 0,
            finished: setup.strands == 0,
        };
        Shared {
            state: Mutex::new(state),
            seats: (0..setup.threads).map(|_| Padded(Seat::new())).collect(),
            boards: (0..workers).map(|_| Board::new(workers as usize)).collect(),
            spin: setup.spin,
            quiet: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            shared: setup.shared,
            throttle: setup.throttle,
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
    fn enter(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        // The clocks of two processors may differ by a little; the machine's time does not run backwards.
        let ticks = multigrain_trace::now().0.saturating_sub(self.origin_ticks);
        state.now_ns = state.now_ns.max(self.ns(ticks) as u64);
        let now_ns = state.now_ns;
        // Decisions are made at events only, so a tick that was due since the last one is as good now.
        if state.machine.next_tick_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            state.machine.tick(now_ns);
        }
        state
    }

    /// Before the lock is let go: who starts what, and who should look around.
    #[inline]
    fn leave(&self, mut state: MutexGuard<'_, State>, me: usize, orders: &mut Vec<Order>) {
        let state = &mut *state;
        orders.clear();
        for decision in state.decisions.drain(..) {
            let Decision::Start(start) = decision else { continue };
            let found = state.waiting.iter().position(|(task, _)| *task == start.task);
            let Some(found) = found else { unreachable!("task {} starts, but has not arrived", start.task) };
            let (_, head) = state.waiting.swap_remove(found);
            orders.push(Order { start, head });
        }
        self.quiet.store(self.shared && state.machine.idle().is_empty() && state.waiting.is_empty(), Ordering::Relaxed);
        if state.ready_count > 0 || state.fresh_count > 0 && state.live < state.live_max {
            state.who_can_go_on(self.shared, me).iter().for_each(|host| self.host_seat(host as usize).ring());
        }
    }

    fn host_seat(&self, host: usize) -> &Seat {
        let first = if self.shared { 0 } else { self.boards.len() };
        &self.seats[first + host]
    }

    /// A task arrives; see [`Machine::arrive`]. `make` is told the task's number and gives its head.
    pub(super) fn arrive(&self, me: usize, arrival: Arrival, head: &Head<'_>, orders: &mut Vec<Order>) -> u64 {
        let mut guard = self.enter();
        let state = &mut *guard;
        let task = state.next_task;
        state.next_task += 1;
        state.waiting.push((task, std::ptr::from_ref(head).cast()));
        state.machine.arrive(state.now_ns, Arrival { task, ..arrival }, &mut state.decisions);
        self.leave(guard, me, orders);
        task
    }

    /// A task departs that the strand on this host executed itself; true if the host is to go on with the strand at
    /// once, otherwise the strand is in line.
    pub(super) fn depart_and_go_on(
        &self,
        me: usize,
        slot: usize,
        departure: Departure,
        orders: &mut Vec<Order>,
    ) -> bool {
        let mut guard = self.enter();
        let state = &mut *guard;
        state.machine.depart(state.now_ns, departure, &mut state.decisions);
        let goes_on = state.occupy(me);
        if !goes_on {
            state.line_up(me, slot);
        }
        self.leave(guard, me, orders);
        goes_on
    }

    /// A task departs that was executed for the strand in a place of that host.
    pub(super) fn depart(&self, host: usize, slot: usize, departure: Departure, orders: &mut Vec<Order>) {
        let mut guard = self.enter();
        let state = &mut *guard;
        state.machine.depart(state.now_ns, departure, &mut state.decisions);
        state.line_up(host, slot);
        self.leave(guard, usize::MAX, orders);
    }

    /// The strand in this place gives way to others of its host; false if there are none.
    pub(super) fn give_way(&self, me: usize, slot: usize, orders: &mut Vec<Order>) -> bool {
        let mut guard = self.enter();
        let state = &mut *guard;
        orders.clear();
        if state.ready[me].is_empty() {
            return false;
        }
        state.line_up(me, slot);
        if self.shared {
            state.machine.vacate(state.now_ns, me as u32, &mut state.decisions);
        }
        self.leave(guard, me, orders);
        true
    }

    /// A strand of this host has ended.
    pub(super) fn end(&self, me: usize, orders: &mut Vec<Order>) {
        let mut guard = self.enter();
        let state = &mut *guard;
        state.machine.strand_ends();
        state.live -= 1;
        if self.stopping.load(Ordering::Relaxed) {
            state.fresh.iter_mut().for_each(VecDeque::clear);
            state.fresh_count = 0;
        }
        state.finished = state.live == 0 && state.fresh_count == 0;
        if self.shared {
            state.machine.vacate(state.now_ns, me as u32, &mut state.decisions);
        }
        let finished = state.finished;
        self.leave(guard, me, orders);
        if finished {
            self.seats.iter().for_each(|seat| seat.ring());
        }
    }

    /// What a host does next.
    pub(super) fn next(&self, me: usize, is_host: bool) -> Next {
        let mut guard = self.enter();
        let state = &mut *guard;
        if state.finished {
            return Next::Finished;
        }
        if !is_host || !state.can_go_on(me) || self.shared && !state.occupy(me) {
            return Next::Wait;
        }
        let next = match state.ready[me].pop_front() {
            Some(slot) => {
                state.ready_count -= 1;
                Next::Resume(slot)
            }
            None => {
                let line = state.line_of(me);
                let Some(strand) = state.fresh[line].pop_front() else { unreachable!("there was one") };
                state.fresh_count -= 1;
                state.live += 1;
                state.machine.strand_begins();
                Next::Begin(strand)
            }
        };
        let quiet = self.shared && state.machine.idle().is_empty() && state.waiting.is_empty();
        self.quiet.store(quiet, Ordering::Relaxed);
        next
    }
}

impl State {
    /// Whether there is a strand that this host could go on with or begin.
    fn can_go_on(&self, host: usize) -> bool {
        !self.ready[host].is_empty() || self.live < self.live_max && !self.fresh[self.line_of(host)].is_empty()
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
