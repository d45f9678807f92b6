//! How an operating system shares hardware threads: which thread next, and when to look again.

use super::class::Class;
use super::fair::{Fair, FairQueues, Pick};
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
    /// Linux's SCHED_NORMAL, with its real-time classes before: see [`Fair`].
    Fair(Fair),
}

/// Threads that wait for a hardware thread, and what decides among them.
pub(super) enum RunQueue {
    /// One queue for all.
    Turns { quantum: Option<Time>, waiting: VecDeque<u32> },
    /// A queue for each hardware thread.
    Fair(FairQueues),
}

impl RunQueue {
    pub(super) fn new(scheduler: &Scheduler, cpus: usize) -> RunQueue {
        let turns = |quantum| RunQueue::Turns { quantum, waiting: VecDeque::new() };
        match scheduler {
            Scheduler::Fifo => turns(None),
            Scheduler::RoundRobin { quantum } => turns(Some((*quantum).max(Time::from_ps(1)))),
            Scheduler::Fair(fair) => RunQueue::Fair(FairQueues::new(*fair, cpus)),
        }
    }

    /// One more thread, asleep.
    pub(super) fn add(&mut self, class: Class) {
        if let RunQueue::Fair(fair) = self {
            fair.add(class);
        }
    }

    /// A thread had a hardware thread for so long.
    pub(super) fn ran(&mut self, cpu: usize, thread: u32, time: Time, now: Time) {
        if let RunQueue::Fair(fair) = self {
            fair.ran(cpu, thread, time, now);
        }
    }

    /// A sleeping thread is to count as if it had run for so long.
    pub(super) fn charge(&mut self, thread: u32, time: Time) {
        if let RunQueue::Fair(fair) = self {
            fair.charge(thread, time);
        }
    }

    /// The thread that a hardware thread has goes to sleep.
    pub(super) fn sleeps(&mut self, cpu: usize, thread: u32, now: Time) {
        if let RunQueue::Fair(fair) = self {
            fair.sleeps(cpu, thread, now);
        }
    }

    /// A sleeping thread wants to run, woken by the one that has the hardware thread `waker`. Gives the hardware thread that is
    /// to be taken from another for it, if any.
    pub(super) fn wake(&mut self, thread: u32, waker: Option<usize>) -> Option<usize> {
        match self {
            RunQueue::Turns { waiting, .. } => {
                waiting.push_back(thread);
                None
            }
            RunQueue::Fair(fair) => fair.wake(thread, waker),
        }
    }

    /// A thread wants to run for the first time, made by the one that has the hardware thread `parent`. Gives the hardware thread
    /// that has to decide anew, if any.
    pub(super) fn fork(&mut self, thread: u32, parent: usize) -> Option<usize> {
        match self {
            RunQueue::Turns { .. } => self.wake(thread, None),
            RunQueue::Fair(fair) => fair.fork(thread, parent),
        }
    }

    /// A thread was made to give up its hardware thread.
    pub(super) fn put_back(&mut self, cpu: usize, thread: u32) {
        match self {
            RunQueue::Turns { waiting, .. } => waiting.push_back(thread),
            RunQueue::Fair(fair) => fair.put_back(cpu, thread),
        }
    }

    /// A thread for one of the idle hardware threads, which come with the load of their cores, best first. `last` is what
    /// each had last; a thread goes where it was if that is as good.
    pub(super) fn pick(&mut self, idle: &[(usize, usize)], last: &[Option<u32>], now: Time) -> Option<Pick> {
        match self {
            RunQueue::Turns { waiting, .. } => {
                let thread = waiting.pop_front()?;
                let &(load, first) = idle.first()?;
                let same = idle.iter().find(|(l, cpu)| *l == load && last[*cpu] == Some(thread));
                Some(Pick { cpu: same.map_or(first, |(_, cpu)| *cpu), thread })
            }
            RunQueue::Fair(fair) => fair.pick(idle, now),
        }
    }

    /// When to look at a hardware thread again that was given away or looked at now.
    pub(super) fn tick_after(&self) -> Option<Time> {
        match self {
            RunQueue::Turns { quantum, .. } => *quantum,
            RunQueue::Fair(fair) => Some(fair.tick_after()),
        }
    }

    /// Looks: whether the thread has to give up its hardware thread.
    pub(super) fn tick(&mut self, cpu: usize, thread: u32) -> bool {
        match self {
            RunQueue::Turns { waiting, .. } => !waiting.is_empty(),
            RunQueue::Fair(fair) => fair.tick(cpu, thread),
        }
    }

    /// When an idle hardware thread looks for work that waits for another one, if there is some.
    pub(super) fn balance_after(&self, cpu: usize) -> Option<Time> {
        match self {
            RunQueue::Turns { .. } => None,
            RunQueue::Fair(fair) => fair.balance_after(cpu),
        }
    }

    /// It looks.
    pub(super) fn balance(&mut self, cpu: usize) {
        if let RunQueue::Fair(fair) = self {
            fair.balance(cpu);
        }
    }
}
