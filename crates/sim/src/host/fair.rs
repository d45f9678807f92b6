//! Linux's completely fair scheduler, as of 2.6.24: every hardware thread has a queue ordered by virtual run time, which
//! passes more slowly for heavier threads; the one that is farthest behind runs. Real-time threads run before all of them.
//!
//! Sources: kernel/sched.c, kernel/sched_fair.c, kernel/sched_rt.c and the sibling domain of include/linux/topology.h at v2.6.24.
//! All hardware threads of a host are one domain. Which of them a thread goes to is in [`super::placement`].

use super::class::{Class, WEIGHT_USUAL};

use crate::time::Time;
use std::collections::BTreeSet;

/// Constants of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fair {
    /// Every thread of a queue should run once in this time.
    pub latency: Time,
    /// But not for less than this.
    pub granularity: Time,
    /// By so much virtual time a woken thread must be behind to take the processor of another.
    pub wakeup_granularity: Time,
    /// How often a queue is looked at.
    pub tick: Time,
    /// How long a hardware thread is idle before it takes work from another queue; one that is busy looks a 64th as often.
    pub balance: Time,
    /// What can be switched on and off.
    pub features: Features,
    /// Whether a new thread runs before the one that made it, if both are on one hardware thread.
    pub child_runs_first: bool,
    /// Whether a thread is woken on an idle hardware thread if there is one, as among siblings of a core (CONFIG_SCHED_SMT).
    pub wakes_idle: bool,
}

/// Features of the scheduler: `kernel.sched_features`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Who slept is given the latency as credit.
    pub new_fair_sleepers: bool,
    /// Who wakes may take the processor from another.
    pub wakeup_preempt: bool,
    /// Who is new begins behind everybody's turn.
    pub start_debit: bool,
    /// Who is placed, is placed half way to the last of the queue.
    pub tree_avg: bool,
    /// Who is placed, is placed half a slice later, which is about the same.
    pub approx_avg: bool,
}

impl Features {
    /// What is switched on in Linux 2.6.24.
    pub const USUAL: Features = Features {
        new_fair_sleepers: true,
        wakeup_preempt: true,
        start_debit: true,
        tree_avg: false,
        approx_avg: false,
    };
}

impl Fair {
    /// The constants of Linux 2.6.24 with a tick of 4 ms: 20, 4 and 10 ms, times 1 + log2 of the hardware threads.
    pub fn linux_2_6_24(cpus: usize) -> Fair {
        let factor = 1 + u64::from(cpus.max(1).ilog2());
        let ms = |ms: u64| Time::from_ps(ms * 1_000_000_000);
        Fair {
            latency: ms(20) * factor,
            granularity: ms(4) * factor,
            wakeup_granularity: ms(10) * factor,
            tick: ms(4),
            balance: ms(1),
            features: Features::USUAL,
            child_runs_first: true,
            wakes_idle: true,
        }
    }
}

/// A turn of a real-time thread that takes turns. Source: Linux 2.6.24, `DEF_TIMESLICE`.
const TURN: Time = Time::from_ps(100_000_000_000);

#[derive(Clone, Copy)]
pub(super) struct Thread {
    pub(super) class: Class,
    pub(super) weight: u64,
    /// Virtual run time, picoseconds at the usual weight. It may begin below zero.
    pub(super) virtual_ps: i64,
    /// The queue that it is in, or was in last; none before it was first woken.
    pub(super) cpu: Option<usize>,
    /// When it last began or ceased to run.
    pub(super) touched: Time,
}

/// Where a thread stands in a queue: its key, and of equals the one that came first.
type Entry = (i64, i64, u32);

#[derive(Default)]
pub(super) struct Queue {
    /// Normal threads that wait, by virtual run time.
    pub(super) waiting: BTreeSet<Entry>,
    /// Real-time threads that wait, by priority.
    real_time: BTreeSet<Entry>,
    pub(super) current: Option<u32>,
    pub(super) least_ps: i64,
    /// Of the current thread and those that wait: of all, and of the normal ones.
    pub(super) load: u64,
    weight: u64,
    /// Threads, and those of them that are normal.
    pub(super) runnable: u64,
    normal: u64,
    /// For how long the current thread has run.
    ran: Time,
    /// Ticks since a busy hardware thread last looked at the others.
    pub(super) ticks: u64,
}

pub(super) struct FairQueues {
    pub(super) fair: Fair,
    pub(super) threads: Vec<Thread>,
    pub(super) queues: Vec<Queue>,
    sequence: i64,
}

impl FairQueues {
    pub(super) fn new(fair: Fair, cpus: usize) -> FairQueues {
        FairQueues { fair, threads: Vec::new(), queues: (0..cpus).map(|_| Queue::default()).collect(), sequence: 0 }
    }

    pub(super) fn add(&mut self, class: Class) {
        let weight = class.weight();
        self.threads.push(Thread { class, weight, virtual_ps: 0, cpu: None, touched: Time::ZERO });
    }

    /// In which time every one of so many threads should run once, picoseconds.
    fn period_ps(&self, threads: u64) -> u64 {
        let few = self.fair.latency.ps().div_ceil(self.fair.granularity.ps().max(1)).max(1);
        if threads <= few { self.fair.latency.ps() } else { self.fair.latency.ps() * threads / few }
    }

    /// The virtual time of a slice of a queue of so many threads and so much weight.
    fn slice_ps(&self, weight: u64, threads: u64) -> i64 {
        scaled(self.period_ps(threads), weight)
    }

    /// What a thread is charged for so much time, whether it ran or somebody ran for it.
    pub(super) fn charge(&mut self, thread: u32, time: Time) {
        let of = &mut self.threads[thread as usize];
        if of.class.real_time().is_none() {
            of.virtual_ps += scaled(time.ps(), of.weight);
        }
    }

    pub(super) fn ran(&mut self, cpu: usize, thread: u32, time: Time, now: Time) {
        self.charge(thread, time);
        let of = &mut self.threads[thread as usize];
        of.touched = now;
        let (current, normal) = (of.virtual_ps, of.class.real_time().is_none());
        let queue = &mut self.queues[cpu];
        queue.ran += time;
        if normal {
            let first = queue.waiting.first().map_or(current, |(first, ..)| current.min(*first));
            queue.least_ps = queue.least_ps.max(first);
        }
    }

    /// Sets the virtual time of a thread that comes to a queue, new or woken.
    fn place(&mut self, cpu: usize, thread: u32, new: bool) {
        let (fair, queue) = (self.fair, &self.queues[cpu]);
        let of = self.threads[thread as usize];
        let mut place = queue.least_ps;
        if fair.features.tree_avg {
            if let Some((last, ..)) = queue.waiting.last() {
                place = (place + last) / 2;
            }
        } else if fair.features.approx_avg && queue.normal > 0 {
            place += self.slice_ps(queue.weight, queue.normal) / 2;
        }
        if new && fair.features.start_debit {
            place += self.slice_ps(queue.weight + of.weight, queue.normal + 1);
        }
        if !new {
            if fair.features.new_fair_sleepers {
                place -= fair.latency.ps() as i64;
            }
            // Nobody gains by sleeping for a moment.
            place = place.max(of.virtual_ps);
        }
        self.threads[thread as usize].virtual_ps = place;
    }

    /// Counts a thread among those of a queue.
    pub(super) fn count(&mut self, cpu: usize, thread: u32, comes: bool) {
        let of = self.threads[thread as usize];
        let queue = &mut self.queues[cpu];
        let normal = of.class.real_time().is_none();
        let add = |to: &mut u64, n: u64| *to = if comes { *to + n } else { *to - n };
        add(&mut queue.load, of.weight);
        add(&mut queue.runnable, 1);
        if normal {
            add(&mut queue.weight, of.weight);
            add(&mut queue.normal, 1);
        }
    }

    /// A thread waits in the queue that it belongs to; one that was interrupted by a real-time thread, before its equals.
    fn enqueue(&mut self, cpu: usize, thread: u32, interrupted: bool) {
        self.sequence += 1;
        let of = self.threads[thread as usize];
        let queue = &mut self.queues[cpu];
        match of.class.real_time() {
            Some(rank) => {
                let sequence = if interrupted { -self.sequence } else { self.sequence };
                queue.real_time.insert((i64::from(rank), sequence, thread));
            }
            None => {
                queue.waiting.insert((of.virtual_ps, self.sequence, thread));
            }
        }
    }

    pub(super) fn sleeps(&mut self, cpu: usize, thread: u32, now: Time) {
        self.queues[cpu].current = None;
        self.count(cpu, thread, false);
        if self.queues[cpu].runnable == 0 {
            self.pull(cpu, Some(now));
        }
    }

    /// See [`super::scheduler::RunQueue::wake`].
    pub(super) fn wake(&mut self, thread: u32, waker: Option<usize>) -> Option<usize> {
        let Some(last) = self.threads[thread as usize].cpu else {
            return self.arrives(thread, self.least_loaded(), false);
        };
        let cpu = self.waking(thread, last, waker.unwrap_or(last));
        self.moves(thread, last, cpu);
        self.place(cpu, thread, false);
        self.count(cpu, thread, true);
        self.enqueue(cpu, thread, false);
        let queue = &self.queues[cpu];
        let (of, current) = (self.threads[thread as usize], self.threads[queue.current? as usize]);
        let preempts = match (of.class.real_time(), current.class.real_time()) {
            (Some(of), Some(current)) => of < current,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => {
                let granularity = scaled(self.fair.wakeup_granularity.ps(), current.weight);
                self.fair.features.wakeup_preempt && of.virtual_ps + granularity < current.virtual_ps
            }
        };
        preempts.then_some(cpu)
    }

    /// A new thread, made by the one that `parent` runs. Gives the hardware thread that has to decide again.
    pub(super) fn fork(&mut self, thread: u32, parent: usize) -> Option<usize> {
        let cpu = self.forking(parent);
        self.arrives(thread, cpu, cpu == parent)
    }

    /// A thread is new on a hardware thread, which its parent has now if `beside` says so.
    fn arrives(&mut self, thread: u32, cpu: usize, beside: bool) -> Option<usize> {
        self.threads[thread as usize].cpu = Some(cpu);
        self.place(cpu, thread, true);
        let current = self.queues[cpu].current;
        if let Some(parent) = current.filter(|_| beside && self.fair.child_runs_first) {
            let (old, new) = (self.threads[parent as usize].virtual_ps, self.threads[thread as usize].virtual_ps);
            if old < new {
                self.threads[parent as usize].virtual_ps = new;
                self.threads[thread as usize].virtual_ps = old;
            }
        }
        self.count(cpu, thread, true);
        self.enqueue(cpu, thread, false);
        current.map(|_| cpu)
    }

    pub(super) fn put_back(&mut self, cpu: usize, thread: u32) {
        self.queues[cpu].current = None;
        let turns = matches!(self.threads[thread as usize].class, Class::RealTime { turns: true, .. });
        let over = turns && self.queues[cpu].ran >= TURN;
        self.enqueue(cpu, thread, !over);
    }

    pub(super) fn pick(&mut self, idle: &[(usize, usize)], now: Time) -> Option<Pick> {
        let waits = |queue: &Queue| !queue.waiting.is_empty() || !queue.real_time.is_empty();
        let &(_, cpu) = idle.iter().find(|(_, cpu)| waits(&self.queues[*cpu]))?;
        let queue = &mut self.queues[cpu];
        let (.., thread) = queue.real_time.pop_first().or_else(|| queue.waiting.pop_first())?;
        (queue.current, queue.ran) = (Some(thread), Time::ZERO);
        self.threads[thread as usize].touched = now;
        Some(Pick { cpu, thread })
    }

    pub(super) fn tick_after(&self) -> Time {
        self.fair.tick
    }

    /// Looks at a hardware thread: whether the thread that has it has to give it up.
    pub(super) fn tick(&mut self, cpu: usize, thread: u32) -> bool {
        self.balance_busy(cpu);
        let (queue, of) = (&self.queues[cpu], self.threads[thread as usize]);
        if let Some(rank) = of.class.real_time() {
            let turns = matches!(of.class, Class::RealTime { turns: true, .. });
            let others = queue.real_time.first().is_some_and(|(first, ..)| *first <= i64::from(rank));
            return turns && others && queue.ran >= TURN;
        }
        let slice = self.period_ps(queue.normal) * of.weight / queue.weight.max(1);
        (queue.normal > 1 || !self.fair.features.wakeup_preempt) && !queue.waiting.is_empty() && queue.ran.ps() > slice
    }

    /// A thread goes from one queue to another: its place among the others goes with it.
    pub(super) fn moves(&mut self, thread: u32, from: usize, to: usize) {
        let of = &mut self.threads[thread as usize];
        of.virtual_ps += self.queues[to].least_ps - self.queues[from].least_ps;
        of.cpu = Some(to);
    }

    /// A thread that waits in one queue waits in another one.
    pub(super) fn migrate(&mut self, entry: Entry, from: usize, to: usize) {
        let (.., thread) = entry;
        self.queues[from].waiting.remove(&entry);
        self.count(from, thread, false);
        self.moves(thread, from, to);
        self.count(to, thread, true);
        self.enqueue(to, thread, false);
    }
}

/// Virtual time of so much real time at a weight, picoseconds.
fn scaled(ps: u64, weight: u64) -> i64 {
    (u128::from(ps) * u128::from(WEIGHT_USUAL) / u128::from(weight.max(1))) as i64
}

/// A thread gets a hardware thread.
pub(super) struct Pick {
    pub(super) cpu: usize,
    pub(super) thread: u32,
}
