//! A strand, as the program in it sees it: the handle through which it off-loads.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::resume_unwind;

use multigrain_schedule::Span;
use multigrain_schedule::policy::{Arrival, Start};
use multigrain_schedule::strands::{Done, Slice, Way};
use multigrain_trace::Tick;

use crate::place;
use crate::sync::Ordering;

use super::done::Link;
use super::head::{Head, Record};
use super::host::{Host, Switch, clock};
use super::parts::Parts;
use super::task::{Chunks, Handed, Loop, Task, TaskKind, combined};

/// Results of chunks up to this number are kept on the stack: room for more takes longer to clear, in every off-load, than
/// memory takes to be had, beside more chunks of a microsecond each.
const CHUNKS_ON_STACK: usize = 8;

/// A light thread of control: a function on a stack of its own, which off-loads tasks to workers.
///
/// While a task of it is executed elsewhere a strand is switched out, and its host goes on with another; so an off-load
/// looks like a call, from anywhere in a deep recursion. A strand is never moved to another thread once it has begun:
/// thread-locals and values that are not [`Send`] are safe to hold across an off-load. A lock is not safe to hold across
/// one: another strand of the same thread that wants it would wait for ever.
pub struct Strand<'a> {
    pub(super) host: &'a Host<'a>,
    pub(super) switch: &'a Switch,
    pub(super) number: u32,
    pub(super) place: usize,
}

impl fmt::Debug for Strand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "strand {}", self.number)
    }
}

/// What unwinds a strand of a run that ends before its time. Not a panic: nothing is printed.
pub(super) struct Stopped;

/// A task threw: its kind's name, and what it threw.
pub(super) struct TaskThrew {
    pub(super) task: &'static str,
    pub(super) thrown: super::share::Thrown,
}

impl Strand<'_> {
    /// Its place in the list of strands that the run was given.
    pub fn index(&self) -> usize {
        self.number as usize
    }

    /// Off-loads a loop and returns the combination of its results.
    ///
    /// The loop of `iterations` iterations is cut into chunks of `chunk`. `body` computes the result of a chunk from its
    /// range and from its part of `parts`, arrays that the loop writes ([`Rows`](super::Rows), tuples of them, or `()`).
    /// `combine` joins the results of neighbours, in an order that depends on the number of chunks only. So the result
    /// does not depend on who executed what, and nothing needs to be associative. A loop without iterations has no
    /// result.
    ///
    /// # Panics
    /// If `chunk` is zero, or there are fewer rows than iterations. A panic of `body` or `combine` ends the run with an
    /// error that names the task.
    pub fn offload<P, R>(
        &self,
        kind: TaskKind,
        iterations: usize,
        chunk: usize,
        parts: P,
        body: impl Fn(Range<usize>, P::Part) -> R + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> Option<R>
    where
        P: Parts,
        R: Send,
    {
        assert!(chunk > 0, "task {}: chunks of no iterations", kind.name);
        let rows = parts.iterations().unwrap_or(iterations);
        assert!(rows >= iterations, "task {}: {iterations} iterations, but {rows} rows", kind.name);
        if iterations == 0 {
            return None;
        }
        let parts = Handed(parts);
        let task = Loop { kind, iterations, chunk, parts, body: &body, combine: &combine, result: PhantomData };
        Some(self.offload_task(&task))
    }

    /// Off-loads a task without a loop.
    pub fn offload_call<R: Send>(&self, kind: TaskKind, body: impl Fn() -> R + Sync) -> R {
        let body = move |_: Range<usize>, (): ()| body();
        let combine = |left, _| left;
        let parts = Handed(());
        let task = Loop { kind, iterations: 1, chunk: 1, parts, body: &body, combine: &combine, result: PhantomData };
        self.offload_task(&task)
    }

    /// Off-loads a task with variants of its own.
    pub fn offload_task<T: Task>(&self, task: &T) -> T::Output {
        let host = self.host;
        if host.shared.stopping.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
        let (kind, iterations) = (task.kind(), task.iterations().max(1) as u64);
        // Whose task is kept has helpers, though nobody is idle.
        let quiet = host.shared.is_quiet() && host.orders().kept.is_none();
        let throttle = host.shared.throttle;
        match Way::of(quiet, throttle, || host.tallies.borrow_mut().side(kind.number, iterations)) {
            Way::Call => {
                host.counts.borrow_mut().calls += 1;
                let begin = if host.log.is_some() { clock() } else { 0 };
                let result = self.call(task);
                let end = if host.log.is_some() { clock() } else { 0 };
                self.look_around();
                if let Some(log) = &host.log {
                    log.borrow_mut().call([begin, end, clock()], host.thread, task, self.number, true);
                }
                result
            }
            Way::OnHost => {
                host.counts.borrow_mut().on_host += 1;
                let begin = clock();
                let result = self.call(task);
                let end = clock();
                let taken_ns = host.shared.ns(Tick(end).since(Tick(begin)));
                host.tallies.borrow_mut().on_host(kind.number, iterations, taken_ns);
                if let Some(log) = &host.log {
                    log.borrow_mut().call([begin, end, end], host.thread, task, self.number, false);
                }
                result
            }
            Way::Offload => self.offload_now(task),
        }
    }

    /// Lets the other strands of this host go on, if there are any; this one has its turn again after them.
    pub fn give_way(&self) {
        let (host, now) = (self.host, clock());
        let next = host.shared.give_way(now, host.number, self.place, &mut host.orders());
        host.post_orders(None);
        if let Some(next) = next {
            host.since.set(now);
            host.chosen.set(Some(next));
            self.switch_out();
        }
    }

    /// Executes a task on the strand's own stack.
    fn call<T: Task>(&self, task: &T) -> T::Output {
        self.host.doing.set(Some(task.kind().name));
        let result = task.on_host();
        self.host.doing.set(None);
        result
    }

    /// Gives way when the slice is over. Looks at the clock only now and then.
    #[inline]
    fn look_around(&self) {
        let mut slice = self.host.slice.get();
        let is_due = slice.called();
        self.host.slice.set(slice);
        if is_due {
            self.give_way_after_slice(clock());
        }
    }

    /// Gives way if the slice is over by now.
    fn give_way_after_slice(&self, now: u64) {
        let went_on = Tick(now).since(Tick(self.host.since.get()));
        if Slice::is_over(self.host.shared.ns(went_on)) {
            self.host.since.set(clock());
            self.give_way();
        }
    }

    fn switch_out(&self) {
        // Other strands of this thread take and leave places meanwhile.
        let here = place::current();
        self.switch.suspend(());
        place::go_back(here);
    }

    fn offload_now<T: Task>(&self, task: &T) -> T::Output {
        let chunks = Chunks::of(task);
        let count = chunks.count();
        let whole = Slot::new();
        let on_stack = [const { Slot::new() }; CHUNKS_ON_STACK];
        let on_heap: Vec<Slot<T::Output>>;
        let slots = if count as usize <= CHUNKS_ON_STACK {
            &on_stack[..count as usize]
        } else {
            on_heap = (0..count).map(|_| Slot::new()).collect();
            &on_heap[..]
        };
        let head = Head {
            link: Link::new(),
            chunk: &|chunk| {
                let result = task.part(chunks.range(chunk as usize));
                // SAFETY: each chunk is executed once.
                unsafe { slots[chunk as usize].set(result) };
            },
            whole: &|| {
                let result = task.on_worker();
                // SAFETY: the task is executed once.
                unsafe { whole.set(result) };
            },
            chunks: count,
            iterations: task.iterations().max(1) as u64,
            kind: task.kind(),
            host: self.host.number,
            slot: self.place,
            record: UnsafeCell::default(),
        };
        self.run(&head);
        // SAFETY: the task is done, and what its workers did is visible here.
        if let Some(result) = unsafe { whole.take() } {
            return result;
        }
        combined(task, Span::whole(count), &mut |chunk| {
            // SAFETY: as above.
            unsafe { slots[chunk as usize].take() }.unwrap_or_else(|| unreachable!("every chunk was executed"))
        })
    }

    /// Returns when the task is done, on whichever workers.
    fn run(&self, head: &Head<'_>) {
        let (host, shared) = (self.host, self.host.shared);
        let called = clock();
        let again = shared.again(host.orders().kept, head.chunks);
        let (mut workers, mut task) = (1, 0);
        match again.or_else(|| self.arrive(head, called, &mut task)) {
            Some(start) => {
                host.execute(head, &start, called);
                workers = start.workers.len();
                host.counts.borrow_mut().count(workers);
                // SAFETY: the strand executed the task itself, so nobody else uses its record.
                let record = unsafe { &*head.record.get() };
                let now = record.end_ticks;
                let goes_on = host.orders().kept.is_some() || {
                    let departure = record.departure(start.task, |ticks| shared.ns(ticks));
                    let goes_on = shared.depart_and_go_on(now, host.number, self.place, departure, &mut host.orders());
                    host.post_orders(None);
                    goes_on
                };
                if !goes_on {
                    self.switch_out();
                } else {
                    self.give_way_after_slice(now);
                }
            }
            None => {
                host.counts.borrow_mut().waits += 1;
                self.switch_out();
            }
        }
        // SAFETY: the strand goes on, so whoever led the task has used the record for the last time, before it put the
        // strand in line under the lock under which it was taken out.
        let record = unsafe { &mut *head.record.get() };
        if let Some(thrown) = record.thrown.take() {
            resume_unwind(Box::new(TaskThrew { task: head.kind.name, thrown }));
        }
        if shared.throttle {
            self.learn(head, record, called, workers);
        }
        if let Some(log) = &host.log {
            let chunk = head.iterations.div_ceil(u64::from(head.chunks));
            log.borrow_mut().offloaded([called, clock()], host.thread, head.kind, task, chunk);
        }
    }

    /// Asks the policy; how the task starts if the strand is to execute it itself.
    fn arrive(&self, head: &Head<'_>, called: u64, task: &mut u64) -> Option<Start> {
        let (host, kind) = (self.host, head.kind);
        let near = host.shared.shared.then_some(host.number as u32);
        let arrival = Arrival { task: 0, strand: self.number, kind: kind.number.into(), iterations: head.chunks, near };
        *task = host.shared.arrive(called, host.number, arrival, head, &mut host.orders());
        if let Some(log) = &host.log {
            // Each decision is written down, so it is made.
            let mut orders = host.orders();
            orders.kept = None;
            if let Some(reason) = orders.waits {
                log.borrow_mut().wait(called, host.thread, kind, *task, self.number, reason);
            }
        }
        host.post_orders(Some(head))
    }

    fn learn(&self, head: &Head<'_>, record: &Record, called: u64, workers: u32) {
        let shared = self.host.shared;
        let ns = |from: u64, to: u64| shared.ns(Tick(to).since(Tick(from)));
        let away = |now| [ns(called, record.begin_ticks), ns(record.end_ticks, now)];
        let done = Done {
            taken_ns: ns(record.begin_ticks, record.end_ticks),
            away_ns: record.start.is_some().then(|| away(clock())),
            workers,
            unaided: record.unaided,
        };
        self.host.tallies.borrow_mut().offloaded(head.kind.number, head.iterations, done);
    }
}

/// The result of a chunk, or of a task: written by one thread, then read by another.
struct Slot<T>(UnsafeCell<Option<T>>);

// SAFETY: `set` is called once, by one thread, before anybody calls `take`; the value can be sent.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    const fn new() -> Slot<T> {
        Slot(UnsafeCell::new(None))
    }

    /// # Safety
    /// Nobody else uses the slot meanwhile.
    unsafe fn set(&self, value: T) {
        // SAFETY: by the caller.
        unsafe { *self.0.get() = Some(value) };
    }

    /// # Safety
    /// Nobody else uses the slot meanwhile, and what was done by whoever set it is visible.
    unsafe fn take(&self) -> Option<T> {
        // SAFETY: by the caller.
        unsafe { (*self.0.get()).take() }
    }
}
