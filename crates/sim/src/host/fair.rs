//! Linux's completely fair scheduler, as of 2.6.24: every hardware thread has a queue ordered by virtual run time, which
//! passes more slowly for heavier threads; the one that is farthest behind runs.
//!
//! Source: kernel/sched.c and kernel/sched_fair.c at v2.6.24, with the features that are on there: new fair sleepers,
//! wake-up preemption, start debit.

use super::scheduler::Pick;
use crate::time::Time;
use std::collections::BTreeSet;

/// The weight of a thread of usual priority (nice 0).
pub const WEIGHT_USUAL: u32 = 1024;

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
    /// How long a hardware thread is idle before it takes work from another queue.
    pub balance: Time,
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
        }
    }
}

struct Thread {
    weight: u64,
    /// Virtual run time, picoseconds at the usual weight.
    virtual_ps: u64,
    /// The queue that it is in, or was in last; none before it was first woken.
    cpu: Option<usize>,
}

#[derive(Default)]
struct Queue {
    /// Threads that wait, by virtual run time; of equals, the one that came first in number.
    waiting: BTreeSet<(u64, u32)>,
    current: Option<u32>,
    least_ps: u64,
    /// Of the current thread and those that wait.
    weight: u64,
    /// For how long the current thread has run.
    ran: Time,
}

impl Queue {
    fn runnable(&self) -> u64 {
        self.waiting.len() as u64 + u64::from(self.current.is_some())
    }
}

pub(super) struct FairQueues {
    fair: Fair,
    threads: Vec<Thread>,
    queues: Vec<Queue>,
}

impl FairQueues {
    pub(super) fn new(fair: Fair, cpus: usize) -> FairQueues {
        FairQueues { fair, threads: Vec::new(), queues: (0..cpus).map(|_| Queue::default()).collect() }
    }

    pub(super) fn add(&mut self, weight: u32) {
        self.threads.push(Thread { weight: u64::from(weight.max(1)), virtual_ps: 0, cpu: None });
    }

    /// In which time every one of so many threads should run once.
    fn period(&self, threads: u64) -> Time {
        let few = (self.fair.latency.ps() / self.fair.granularity.ps().max(1)).max(1);
        if threads <= few { self.fair.latency } else { Time::from_ps(self.fair.latency.ps() * threads / few) }
    }

    pub(super) fn ran(&mut self, cpu: usize, thread: u32, time: Time) {
        let of = &mut self.threads[thread as usize];
        of.virtual_ps += scaled(time, of.weight);
        let current = of.virtual_ps;
        let queue = &mut self.queues[cpu];
        queue.ran += time;
        let first = queue.waiting.first().map_or(current, |(first, _)| current.min(*first));
        queue.least_ps = queue.least_ps.max(first);
    }

    pub(super) fn sleeps(&mut self, cpu: usize, thread: u32) {
        let queue = &mut self.queues[cpu];
        queue.current = None;
        queue.weight -= self.threads[thread as usize].weight;
    }

    /// See [`super::scheduler::RunQueue::wake`].
    pub(super) fn wake(&mut self, thread: u32) -> Option<usize> {
        let idle = |queue: &Queue| queue.runnable() == 0;
        let known = self.threads[thread as usize].cpu;
        let fewest = || (0..self.queues.len()).min_by_key(|cpu| self.queues[*cpu].weight).unwrap_or(0);
        let cpu = match known {
            Some(cpu) if idle(&self.queues[cpu]) => cpu,
            Some(cpu) => self.queues.iter().position(idle).unwrap_or(cpu),
            None => fewest(),
        };
        let (fair, queue) = (self.fair, &self.queues[cpu]);
        let of = &self.threads[thread as usize];
        let virtual_ps = match known {
            // What is new begins behind everybody's turn.
            None => queue.least_ps + scaled(self.period(queue.runnable() + 1), queue.weight + of.weight),
            // Who slept gets a little credit, but no more than it left with.
            Some(_) => of.virtual_ps.max(queue.least_ps.saturating_sub(fair.latency.ps())),
        };
        let weight = of.weight;
        let of = &mut self.threads[thread as usize];
        (of.virtual_ps, of.cpu) = (virtual_ps, Some(cpu));
        let queue = &mut self.queues[cpu];
        queue.waiting.insert((virtual_ps, thread));
        queue.weight += weight;
        let current = self.threads[queue.current? as usize].virtual_ps;
        (virtual_ps + scaled(fair.wakeup_granularity, weight) < current).then_some(cpu)
    }

    pub(super) fn put_back(&mut self, cpu: usize, thread: u32) {
        let queue = &mut self.queues[cpu];
        queue.current = None;
        queue.waiting.insert((self.threads[thread as usize].virtual_ps, thread));
    }

    pub(super) fn pick(&mut self, idle: &[(usize, usize)]) -> Option<Pick> {
        let &(_, cpu) = idle.iter().find(|(_, cpu)| !self.queues[*cpu].waiting.is_empty())?;
        let queue = &mut self.queues[cpu];
        let (_, thread) = queue.waiting.pop_first()?;
        (queue.current, queue.ran) = (Some(thread), Time::ZERO);
        Some(Pick { cpu, thread })
    }

    pub(super) fn tick_after(&self) -> Time {
        self.fair.tick
    }

    pub(super) fn tick(&mut self, cpu: usize, thread: u32) -> bool {
        let queue = &self.queues[cpu];
        let period = self.period(queue.runnable()).ps();
        let slice = period * self.threads[thread as usize].weight / queue.weight.max(1);
        !queue.waiting.is_empty() && queue.ran.ps() > slice
    }

    /// How long an idle hardware thread waits before it looks for work elsewhere, if there is some.
    pub(super) fn balance_after(&self, cpu: usize) -> Option<Time> {
        let nothing = self.queues[cpu].runnable() == 0;
        (nothing && self.queues.iter().any(|queue| queue.runnable() > 1)).then_some(self.fair.balance)
    }

    /// An idle hardware thread takes a waiting thread of the queue with the most weight.
    pub(super) fn balance(&mut self, cpu: usize) {
        if self.balance_after(cpu).is_none() {
            return;
        }
        let busiest = (0..self.queues.len())
            .filter(|other| self.queues[*other].runnable() > 1)
            .max_by_key(|other| (self.queues[*other].weight, std::cmp::Reverse(*other)));
        let Some(busiest) = busiest else { return };
        let Some((virtual_ps, thread)) = self.queues[busiest].waiting.pop_last() else { return };
        let of = &mut self.threads[thread as usize];
        self.queues[busiest].weight -= of.weight;
        // Its place among the others goes with it.
        of.virtual_ps = (virtual_ps + self.queues[cpu].least_ps).saturating_sub(self.queues[busiest].least_ps);
        of.cpu = Some(cpu);
        self.queues[cpu].waiting.insert((of.virtual_ps, thread));
        self.queues[cpu].weight += of.weight;
    }
}

/// Virtual time of so much real time at a weight, picoseconds.
fn scaled(time: Time, weight: u64) -> u64 {
    (u128::from(time.ps()) * u128::from(WEIGHT_USUAL) / u128::from(weight.max(1))) as u64
}
