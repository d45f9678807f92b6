//! Independent jobs in virtual time: an interpreter of the very [`Dispatcher`] that decides for threads.
//!
//! Host and workers have a processor each. What is modelled beside the jobs is what host and workers cost: taking a job
//! from the source, handing a batch over, giving a result to the sink, and the way of a batch there and back.

use std::collections::VecDeque;

use multigrain_schedule::jobs::{Dispatch, Dispatcher, Next, Rules, To};

use crate::{Simulation, Time};

/// What handing out costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// A job from the source, on the host.
    pub source: Time,
    /// A batch that the host hands over, on the host.
    pub hand_over: Time,
    /// A batch on its way to a worker, or back.
    pub message: Time,
    /// A result to the sink, on the host.
    pub sink: Time,
}

/// Jobs to be handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// How.
    pub rules: Rules,
    /// Whether results wait for those of earlier jobs.
    pub ordered: bool,
    /// How long each job takes.
    pub jobs: Vec<Time>,
}

/// A batch that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOut {
    /// Its first job.
    pub first: u64,
    /// How many jobs.
    pub jobs: u32,
    /// The worker that executed it; `None` is the host.
    pub by: Option<u32>,
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When the last result was given to the sink.
    pub end: Time,
    /// Batches in the order of the source.
    pub hand_outs: Vec<HandOut>,
    /// Batches, as numbers in `hand_outs`, in the order in which the host saw them done.
    pub done: Vec<u64>,
    /// The most jobs that were in flight.
    pub in_flight: u32,
    /// Time that workers executed jobs, all together; and that of the host.
    pub busy: Time,
    /// Time that the host executed jobs.
    pub host_busy: Time,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The host has done what it did.
    Host,
    /// The host has executed this batch.
    HostDone { batch: u64 },
    /// A batch is in the queue, or in the mailbox.
    Handed { batch: u64, to: To },
    /// A worker has executed it.
    Done { batch: u64 },
    /// The host can see that.
    Back { batch: u64 },
}

struct Run<'a> {
    costs: Costs,
    load: &'a Load,
    sim: Simulation<Event>,
    dispatcher: Dispatcher,
    next: u64,
    queue: VecDeque<u64>,
    /// Workers that wait at the queue; who came last is served first.
    idle: Vec<u32>,
    back: VecDeque<u64>,
    waiting: bool,
    in_flight: u32,
    /// Of each batch whether it is done; those before `delivered` have been given to the sink, if results are ordered.
    seen: Vec<bool>,
    delivered: usize,
    outcome: Outcome,
}

/// Executes jobs in virtual time.
pub fn run(costs: Costs, load: &Load) -> Outcome {
    let mut run = Run {
        costs,
        load,
        sim: Simulation::new(),
        dispatcher: Dispatcher::new(load.rules),
        next: 0,
        queue: VecDeque::new(),
        idle: (0..load.rules.workers).rev().collect(),
        back: VecDeque::new(),
        waiting: false,
        in_flight: 0,
        seen: Vec::new(),
        delivered: 0,
        outcome: Outcome::default(),
    };
    run.sim.after(Time::ZERO, Event::Host);
    while let Some(event) = run.sim.next() {
        run.handle(event);
    }
    run.outcome
}

impl Run<'_> {
    fn handle(&mut self, event: Event) {
        match event {
            Event::Host => self.host(),
            Event::HostDone { batch } => {
                let sinks = self.completed(batch);
                self.sim.after(sinks, Event::Host);
            }
            Event::Handed { batch, to: To::Worker(worker) } => self.execute(batch, worker),
            Event::Handed { batch, .. } => {
                self.queue.push_back(batch);
                if let Some(worker) = self.idle.pop() {
                    self.take(worker);
                }
            }
            Event::Done { batch } => {
                self.sim.after(self.costs.message, Event::Back { batch });
                if let (Dispatch::Queue, Some(worker)) =
                    (self.load.rules.dispatch, self.outcome.hand_outs[batch as usize].by)
                {
                    self.take(worker);
                }
            }
            Event::Back { batch } => {
                self.back.push_back(batch);
                if std::mem::take(&mut self.waiting) {
                    self.host();
                }
            }
        }
    }

    /// A worker takes the next batch from the queue, or waits there.
    fn take(&mut self, worker: u32) {
        match self.queue.pop_front() {
            Some(batch) => self.execute(batch, worker),
            None => self.idle.push(worker),
        }
    }

    fn span(&self, batch: u64) -> Time {
        let HandOut { first, jobs, .. } = self.outcome.hand_outs[batch as usize];
        let jobs = &self.load.jobs[first as usize..][..jobs as usize];
        jobs.iter().fold(Time::ZERO, |sum, job| sum + *job)
    }

    fn execute(&mut self, batch: u64, worker: u32) {
        let span = self.span(batch);
        self.outcome.hand_outs[batch as usize].by = Some(worker);
        self.outcome.busy += span;
        self.sim.after(span, Event::Done { batch });
    }

    /// The host executes a batch itself.
    fn execute_here(&mut self, batch: u64, before: Time) {
        let span = self.span(batch);
        self.outcome.host_busy += span;
        self.sim.after(before + span, Event::HostDone { batch });
    }

    /// The host takes in what is done, and does what the state machine says.
    fn host(&mut self) {
        let mut spent = Time::ZERO;
        while let Some(batch) = self.back.pop_front() {
            spent += self.completed(batch);
        }
        match self.dispatcher.next() {
            Next::Fill { jobs: asked, to } => {
                let jobs = u64::from(asked).min(self.load.jobs.len() as u64 - self.next) as u32;
                let source = self.costs.source * u64::from(jobs);
                self.dispatcher.filled(to, asked, jobs, source.ps() / 1000);
                let batch = self.outcome.hand_outs.len() as u64;
                if jobs > 0 {
                    self.outcome.hand_outs.push(HandOut { first: self.next, jobs, by: None });
                    self.seen.push(false);
                    self.next += u64::from(jobs);
                    self.in_flight += jobs;
                    self.outcome.in_flight = self.outcome.in_flight.max(self.in_flight);
                    if to == To::Host {
                        return self.execute_here(batch, spent + source);
                    }
                    let handed = spent + source + self.costs.hand_over;
                    self.sim.after(handed + self.costs.message, Event::Handed { batch, to });
                    spent = handed;
                }
                self.sim.after(spent, Event::Host);
            }
            Next::Take => {
                let taken = self.queue.pop_front();
                self.dispatcher.took(taken.is_some());
                match taken {
                    Some(batch) => self.execute_here(batch, spent),
                    None => self.sim.after(spent, Event::Host),
                }
            }
            Next::Wait if spent > Time::ZERO => self.sim.after(spent, Event::Host),
            Next::Wait => self.waiting = true,
            Next::End => self.outcome.end = self.sim.now() + spent,
        }
    }

    /// The host sees that a batch is done: the time that it takes to give results to the sink.
    fn completed(&mut self, batch: u64) -> Time {
        let (span, HandOut { jobs, by, .. }) = (self.span(batch), self.outcome.hand_outs[batch as usize]);
        self.dispatcher.completed(by, jobs, span.ps() / 1000);
        self.outcome.done.push(batch);
        self.seen[batch as usize] = true;
        let mut delivered = 0;
        if self.load.ordered {
            while self.seen.get(self.delivered) == Some(&true) {
                delivered += self.outcome.hand_outs[self.delivered].jobs;
                self.delivered += 1;
            }
        } else {
            delivered = jobs;
        }
        self.dispatcher.delivered(delivered);
        self.in_flight -= delivered;
        self.costs.sink * u64::from(delivered)
    }
}
