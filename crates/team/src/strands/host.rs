//! One thread of a run: it executes strands if it is a host, and tasks if it is a worker. One of the modules of this
//! crate with `unsafe` in it.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use multigrain_schedule::policy::{Part, Start};
use multigrain_schedule::strands::{Next, Slice, Tallies};
use multigrain_trace::Tick;

use crate::place;

use super::head::Head;
use super::log::Log;
use super::seat::{Post, Served};
use super::share::share;
use super::state::{Orders, Shared};
use super::statistics::Statistics;

/// A strand's stack and registers. What passes at a switch is nothing.
pub(super) type Fiber = Coroutine<(), (), (), DefaultStack>;

/// What a strand sees of its own switch.
pub(super) type Switch = Yielder<(), ()>;

/// A thread of a run.
#[derive(Debug)]
pub(super) struct Host<'r> {
    pub(super) shared: &'r Shared,
    /// Its seat.
    pub(super) thread: usize,
    /// Its number among the hosts.
    pub(super) number: usize,
    /// Whether it executes strands, tasks.
    is_host: bool,
    is_worker: bool,
    pub(super) tallies: RefCell<Tallies>,
    pub(super) counts: RefCell<Statistics>,
    /// The task that a strand executes on its own thread at this moment, for messages.
    pub(super) doing: Cell<Option<&'static str>>,
    /// When another strand should have its turn.
    pub(super) slice: Cell<Slice>,
    /// When the strand that runs was switched in.
    pub(super) since: Cell<u64>,
    /// What was chosen when the strand gave way that was switched out last.
    pub(super) chosen: Cell<Option<Next>>,
    orders: RefCell<Orders>,
    /// What it writes down, if the run is traced.
    pub(super) log: Option<RefCell<Log>>,
    /// Those who share the loop under way, the leader first.
    participants: RefCell<Vec<u32>>,
    ends: RefCell<Vec<u32>>,
    parts: RefCell<Vec<Part>>,
}

pub(super) fn clock() -> u64 {
    multigrain_trace::now().0
}

impl<'r> Host<'r> {
    pub(super) fn new(shared: &'r Shared, thread: usize, workers: usize, traced: bool) -> Host<'r> {
        let is_worker = thread < workers;
        Host {
            shared,
            thread,
            number: if shared.shared || is_worker { thread } else { thread - workers },
            is_host: shared.shared || !is_worker,
            is_worker,
            tallies: RefCell::default(),
            counts: RefCell::default(),
            doing: Cell::new(None),
            slice: Cell::default(),
            since: Cell::new(0),
            chosen: Cell::new(None),
            orders: RefCell::default(),
            log: traced.then(RefCell::default),
            participants: RefCell::default(),
            ends: RefCell::default(),
            parts: RefCell::default(),
        }
    }

    /// Serves until the run is over. `begin` makes the strand of a number; it is told the place where it will be, and given
    /// a stack that is free again, if there is one. Where it makes none, the strand has ended.
    pub(super) fn serve(&self, begin: &mut dyn FnMut(u32, usize, Option<DefaultStack>) -> Option<Fiber>) {
        let mut fibers: Vec<Option<Fiber>> = Vec::new();
        let mut stacks: Vec<DefaultStack> = Vec::new();
        let seat = &self.shared.seats[self.thread];
        let me = std::ptr::from_ref(self).cast();
        loop {
            // Who goes on with a strand has no post: its worker is occupied since that was chosen.
            let next = match self.chosen.take() {
                Some(next @ (Next::Begin(_) | Next::Resume(_))) => next,
                _ => {
                    if self.is_worker {
                        // SAFETY: this is the seat of this thread alone; the posts of a run take a `Host`.
                        match unsafe { seat.serve(me) } {
                            Served::Nothing => {}
                            Served::Whole => continue,
                            Served::Share => {
                                seat.wait(self.shared.spin);
                                continue;
                            }
                        }
                    }
                    seat.hear();
                    if !self.is_host {
                        if self.shared.is_over() {
                            return;
                        }
                        seat.wait(self.shared.spin);
                        continue;
                    }
                    let now = clock();
                    self.since.set(now);
                    let next = self.shared.next(now, self.number, &mut self.orders.borrow_mut());
                    self.post_orders(None);
                    next
                }
            };
            match next {
                Next::Begin(strand) => {
                    let place = fibers.iter().position(Option::is_none).unwrap_or_else(|| {
                        fibers.push(None);
                        fibers.len() - 1
                    });
                    fibers[place] = begin(strand, place, stacks.pop());
                    match fibers[place] {
                        Some(_) => self.go_on(&mut fibers[place], &mut stacks),
                        None => self.strand_ended(),
                    }
                }
                Next::Resume(place) => self.go_on(&mut fibers[place], &mut stacks),
                Next::Wait => seat.wait(self.shared.spin),
                Next::Finished => return,
            }
        }
    }

    fn go_on(&self, place: &mut Option<Fiber>, stacks: &mut Vec<DefaultStack>) {
        let Some(fiber) = place else { unreachable!("only strands that have not ended are in line") };
        self.counts.borrow_mut().switches += 1;
        let here = place::current();
        let result = fiber.resume(());
        place::go_back(here);
        if let CoroutineResult::Return(()) = result {
            stacks.extend(place.take().map(Fiber::into_stack));
            self.strand_ended();
        }
    }

    fn strand_ended(&self) {
        self.shared.end(self.number, &mut self.orders.borrow_mut());
        self.post_orders(None);
    }

    /// Sends out what was decided, except for the task that the caller executes itself, which is returned.
    pub(super) fn post_orders(&self, own: Option<&Head<'_>>) -> Option<Start> {
        let mut mine = None;
        for order in &self.orders.borrow().starts {
            if let Some(log) = &self.log {
                // SAFETY: the head lives: its task has not started.
                let kind = unsafe { (*order.head).kind };
                log.borrow_mut().start(clock(), self.thread, kind, &order.start);
            }

            let is_own = own.is_some_and(|own| std::ptr::addr_eq(own, order.head));
            if is_own && order.start.master as usize == self.number && self.shared.shared {
                mine = Some(order.start);
                continue;
            }
            // SAFETY: the strand waits for this task, which starts here and nowhere else, so the head lives and nobody
            // else uses its record.
            unsafe { (*(*order.head).record.get()).start = Some(order.start) };
            let post = Post { run: execute_whole, data: order.head.cast(), part: 0, leaves_first: true };
            // SAFETY: the machine gave this worker to this task alone, so it is idle and its seat empty. The head lives
            // until the worker puts the strand in line.
            unsafe { self.shared.seats[order.start.master as usize].post(post) };
        }
        mine
    }

    pub(super) fn orders(&self) -> std::cell::RefMut<'_, Orders> {
        self.orders.borrow_mut()
    }

    /// Executes a task as the one who leads it, beginning at that tick.
    pub(super) fn execute(&self, head: &Head<'_>, start: &Start, begin: u64) {
        let (outcome, end, busy_ticks, unaided);
        if start.workers.len() == 1 {
            outcome = catch_unwind(AssertUnwindSafe(|| (head.whole)()));
            end = clock();
            (busy_ticks, unaided) = (Tick(end).since(Tick(begin)), false);
            if let Some(log) = &self.log {
                log.borrow_mut().computed([begin, end], start.master, head.kind, start.task, head.chunks);
            }
        } else {
            let (mut workers, mut ends) = (self.participants.borrow_mut(), self.ends.borrow_mut());
            workers.clear();
            workers.push(start.master);
            workers.extend(start.workers.iter().filter(|&worker| worker != start.master));
            let seats = &self.shared.seats;
            let mut tallies = self.tallies.borrow_mut();
            let tally = tallies.of(head.kind.number, head.iterations);
            tally.ends(workers.len(), head.chunks, &mut ends);
            // SAFETY: the machine gave these workers to this task alone, or keeps them for its strand, so their seats are empty.
            (end, outcome) = unsafe { share(seats, &workers, &ends, head.chunk, begin, clock, self.shared.spin) };
            let portions = workers.iter().map(|&worker| &seats[worker as usize].portion);
            let mut parts = self.parts.borrow_mut();
            parts.clear();
            parts.extend(portions.clone().map(|portion| portion.part(begin, end)));
            let (busy, alone) = tally.learn(&parts);
            (busy_ticks, unaided) = (busy as u64, alone);
            if let Some(log) = &self.log {
                for ((portion, &worker), part) in portions.zip(&*workers).zip(&*parts) {
                    if let Some(times) = portion.times() {
                        log.borrow_mut().computed(times, worker, head.kind, start.task, part.chunks);
                    }
                }
            }
        }
        // SAFETY: only the thread that leads the task uses its record until the task is done.
        let record = unsafe { &mut *head.record.get() };
        (record.begin_ticks, record.end_ticks) = (begin, end);
        (record.busy_ticks, record.unaided) = (busy_ticks, unaided);
        record.thrown = outcome.err();
    }
}

/// What a worker does with a task that it was posted.
///
/// # Safety
/// `head` points to the head of a suspended strand's task, whose start is in its record, and `me` to this thread's
/// `Host`.
unsafe fn execute_whole(head: *const (), _part: u32, me: *const ()) {
    let head = head.cast::<Head<'_>>();
    // SAFETY: by the caller.
    let me = unsafe { &*me.cast::<Host<'_>>() };
    {
        // SAFETY: by the caller; the head lives until it is left among those done, below.
        let head = unsafe { &*head };
        // SAFETY: the poster wrote it before it posted.
        let Some(start) = (unsafe { (*head.record.get()).start }) else { unreachable!("a task without workers") };
        me.execute(head, &start, clock());
        me.counts.borrow_mut().count(start.workers.len());
    }
    // SAFETY: executed just now, as the post said. The head is not used afterwards.
    unsafe { me.shared.leave_done(head, &mut me.orders.borrow_mut()) };
    me.post_orders(None);
}
