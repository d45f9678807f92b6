//! The state machine of a host that hands out jobs.

use super::batching::Size;
use super::rules::{Dispatch, Rules};

/// Where a batch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum To {
    /// Into the queue.
    Queue,
    /// Into this worker's mailbox; workers are counted from 0, the host is none of them.
    Worker(u32),
    /// To the host itself.
    Host,
}

/// What the host does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// Take up to so many jobs from the source and hand them over, or execute them if they are its own; then
    /// [`Dispatcher::filled`].
    Fill {
        /// Jobs of the batch.
        jobs: u32,
        /// Where it goes.
        to: To,
    },
    /// Take a batch from the queue, if there is one, and execute it: [`Dispatcher::took`].
    Take,
    /// Wait until a batch is done.
    Wait,
    /// Nothing: the source is empty and every job is done and given to the sink.
    End,
}

/// Decides what the host does. What it is told must have happened: that is asserted.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    rules: Rules,
    size: Size,
    /// Taken from the source and not yet given to the sink.
    in_flight: u32,
    /// Batches handed over and not yet done.
    batches: u32,
    /// Workers with an empty mailbox; the last is filled next.
    idle: Vec<u32>,
    /// The host found the queue empty, and has not filled it since.
    empty: bool,
    ended: bool,
}

impl Dispatcher {
    /// All workers idle, nothing in flight.
    pub fn new(rules: Rules) -> Dispatcher {
        let rules = Rules { in_flight: rules.in_flight.max(1), ..rules };
        Dispatcher {
            size: Size::new(rules.batch, rules.batch_max(), rules.in_flight),
            rules,
            in_flight: 0,
            batches: 0,
            idle: (0..rules.workers).rev().collect(),
            empty: true,
            ended: false,
        }
    }

    /// What the host does next. Who was done last, and has the most of the program in its caches, is filled first.
    pub fn next(&self) -> Next {
        let Rules { dispatch, in_flight, .. } = self.rules;
        let host_executes = self.rules.host_executes();
        let jobs = self.size.jobs();
        // No slivers: what is left of the room is filled when there is room for a whole batch.
        let room = !self.ended && (self.in_flight == 0 || jobs <= in_flight.saturating_sub(self.in_flight));
        // Nor a room full of single jobs before the length of one is known.
        let room = room && (self.size.is_known() || self.batches < 2 * self.rules.executors());
        match dispatch {
            Dispatch::Queue if room && self.rules.workers > 0 => return Next::Fill { jobs, to: To::Queue },
            Dispatch::Queue if host_executes && !self.empty => return Next::Take,
            Dispatch::Mailbox if room && !self.idle.is_empty() => {
                let worker = self.idle[self.idle.len() - 1];
                return Next::Fill { jobs, to: To::Worker(worker) };
            }
            _ if room && host_executes => return Next::Fill { jobs, to: To::Host },
            _ => {}
        }
        if self.ended && self.in_flight == 0 { Next::End } else { Next::Wait }
    }

    /// The source gave so many jobs of those `asked` for, in so many nanoseconds, and they have been handed over; fewer
    /// than asked for: the source is empty.
    pub fn filled(&mut self, to: To, asked: u32, jobs: u32, span_ns: u64) {
        self.ended |= jobs < asked;
        if jobs == 0 {
            return;
        }
        self.in_flight += jobs;
        self.batches += 1;
        self.size.filled(jobs, span_ns);
        match to {
            To::Queue => self.empty = false,
            To::Worker(worker) => {
                assert_eq!(self.idle.pop(), Some(worker), "the mailbox that was filled is not the one that was empty");
            }
            To::Host => {}
        }
    }

    /// The host took a batch from the queue, or found none.
    pub fn took(&mut self, found: bool) {
        self.empty = !found;
    }

    /// A batch is done: by this worker, or by the host, so many jobs in so many nanoseconds.
    pub fn completed(&mut self, by: Option<u32>, jobs: u32, span_ns: u64) {
        assert!(self.batches > 0, "a batch is done that was not handed over");
        self.batches -= 1;
        self.size.completed(jobs, span_ns);
        if let (Dispatch::Mailbox, Some(worker)) = (self.rules.dispatch, by) {
            self.idle.push(worker);
        }
    }

    /// The results of so many jobs have been given to the sink.
    pub fn delivered(&mut self, jobs: u32) {
        assert!(jobs <= self.in_flight, "{jobs} results were given to the sink, of {} jobs", self.in_flight);
        self.in_flight -= jobs;
    }
}
