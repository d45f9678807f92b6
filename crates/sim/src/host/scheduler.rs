//! How an operating system shares hardware threads: which thread next, and when to look again.

use crate::time::Time;
use std::collections::VecDeque;

/// How an operating system shares hardware threads among threads.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheduler {
    /// Whoever came first runs until it sleeps: Linux's SCHED_FIFO at one priority.
    Fifo,
    /// All take turns of one length; who has had its turn goes to the end of one queue. Linux's SCHED_RR, and what
    /// publications mean by a time quantum.
    RoundRobin {
        /// Length of a turn.
        quantum: Time,
    },
}

/// Threads that wait for a hardware thread, and what decides among them.
pub(crate) struct RunQueue {
    quantum: Option<Time>,
    waiting: VecDeque<u32>,
}

impl RunQueue {
    pub(crate) fn new(scheduler: &Scheduler, _cpus: usize) -> RunQueue {
        let quantum = match scheduler {
            Scheduler::Fifo => None,
            Scheduler::RoundRobin { quantum } => Some((*quantum).max(Time::from_ps(1))),
        };
        RunQueue { quantum, waiting: VecDeque::new() }
    }

    /// One more thread, asleep.
    pub(crate) fn add(&mut self, _weight: u32) {}

    /// A thread had a hardware thread for so long.
    pub(crate) fn ran(&mut self, _cpu: usize, _thread: u32, _time: Time) {}

    /// The thread that a hardware thread has goes to sleep.
    pub(crate) fn sleeps(&mut self, _cpu: usize, _thread: u32) {}

    /// A sleeping thread wants to run. Gives the hardware thread that is to be taken from another for it, if any.
    pub(crate) fn wake(&mut self, thread: u32, _running: &[Option<u32>], _siblings: usize) -> Option<usize> {
        self.waiting.push_back(thread);
        None
    }

    /// A thread was made to give up its hardware thread.
    pub(crate) fn put_back(&mut self, _cpu: usize, thread: u32) {
        self.waiting.push_back(thread);
    }

    /// A thread for one of the idle hardware threads, which come with the load of their cores, best first. `last` is what
    /// each had last; a thread goes where it was if that is as good.
    pub(crate) fn pick(&mut self, idle: &[(usize, usize)], last: &[Option<u32>]) -> Option<(usize, u32)> {
        let thread = self.waiting.pop_front()?;
        let (load, first) = idle[0];
        let same = idle.iter().find(|(l, cpu)| *l == load && last[*cpu] == Some(thread));
        Some((same.map_or(first, |(_, cpu)| *cpu), thread))
    }

    /// When to look at a hardware thread again that was given away or looked at now.
    pub(crate) fn tick_after(&self, _now: Time) -> Option<Time> {
        self.quantum
    }

    /// Looks: whether the thread has to give up its hardware thread.
    pub(crate) fn tick(&mut self, _cpu: usize, _thread: u32, _now: Time) -> bool {
        !self.waiting.is_empty()
    }
}
