//! The host: it asks the state machine what to do next, and does it. And what each worker does: batch after batch.

use std::collections::VecDeque;

use multigrain_schedule::jobs::{Dispatch, Dispatcher, Next, Rules, To};
use multigrain_trace as trace;

use super::batch::{Batch, Executor, nanoseconds};
use super::fifo::Fifo;
use super::{JobStatistics, JobsError, Order};
use crate::spin::SpinLimit;
use crate::sync::{AtomicBool, Ordering};

type Boxed<J, R, E> = Box<Batch<J, R, E>>;

/// The ways of batches: to the workers, by one queue or by a mailbox for each, which is a queue with one place; and back.
pub(super) struct Line<J, R, E> {
    dispatch: Dispatch,
    out: Box<[Fifo<Boxed<J, R, E>>]>,
    back: Fifo<Boxed<J, R, E>>,
}

impl<J, R, E> Line<J, R, E> {
    pub(super) fn new(rules: &Rules, spin: SpinLimit) -> Self {
        let batches = rules.in_flight as usize;
        let (queues, places) = match rules.dispatch {
            Dispatch::Queue => (1, batches),
            Dispatch::Mailbox => (rules.workers as usize, 1),
        };
        let out = (0..queues).map(|_| Fifo::new(places, spin)).collect();
        Line { dispatch: rules.dispatch, out, back: Fifo::new(batches, spin) }
    }

    fn to(&self, worker: u32) -> &Fifo<Boxed<J, R, E>> {
        match self.dispatch {
            Dispatch::Queue => &self.out[0],
            Dispatch::Mailbox => &self.out[worker as usize],
        }
    }

    /// Executes what comes to this worker, counted from 0 without the host, until the host closes the line.
    pub(super) fn serve<S, I: Fn(usize) -> S, W: Fn(&mut S, J) -> Result<R, E>>(
        &self,
        worker: u32,
        executor: &mut Executor<'_, S, I, W>,
    ) {
        while let Some(mut batch) = self.to(worker).pull() {
            executor.execute(&mut batch);
            batch.worker = Some(worker);
            // There is room for every batch, and nobody closes this way; were it closed, nobody would want the batch.
            let _ = self.back.push(batch);
        }
    }
}

/// Closes the line and stops the workers, however the host ends.
struct Close<'a, J, R, E> {
    line: &'a Line<J, R, E>,
    stopped: &'a AtomicBool,
}

impl<J, R, E> Drop for Close<'_, J, R, E> {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.line.out.iter().for_each(Fifo::close);
    }
}

pub(super) struct Host<'a, J, R, S, E, I, W, Source, Sink> {
    dispatcher: Dispatcher,
    order: Order,
    line: &'a Line<J, R, E>,
    executor: Executor<'a, S, I, W>,
    source: Source,
    sink: Sink,
    /// Batches that are not in use.
    free: Vec<Boxed<J, R, E>>,
    /// The number of the next batch from the source.
    next: u64,
    /// Batches that are done and come later than one that is not; the first has the number `first`.
    ahead: VecDeque<Option<Boxed<J, R, E>>>,
    first: u64,
    /// The source has failed; told when its turn comes.
    failure: Option<E>,
    statistics: JobStatistics,
}

impl<'a, J, R, S, E, I, W, Source, Sink> Host<'a, J, R, S, E, I, W, Source, Sink>
where
    I: Fn(usize) -> S,
    W: Fn(&mut S, J) -> Result<R, E>,
    Source: FnMut() -> Result<Option<J>, E>,
    Sink: FnMut(R) -> Result<(), E>,
{
    pub(super) fn new(
        rules: Rules,
        order: Order,
        line: &'a Line<J, R, E>,
        executor: Executor<'a, S, I, W>,
        source: Source,
        sink: Sink,
    ) -> Self {
        Host {
            dispatcher: Dispatcher::new(rules),
            order,
            line,
            executor,
            source,
            sink,
            free: Vec::new(),
            next: 0,
            ahead: VecDeque::new(),
            first: 0,
            failure: None,
            statistics: JobStatistics::default(),
        }
    }

    pub(super) fn run(mut self) -> Result<JobStatistics, JobsError<E>> {
        let _close = Close { line: self.line, stopped: self.executor.stopped };
        loop {
            while let Some(batch) = self.line.back.try_pull() {
                self.done(batch)?;
            }
            match self.dispatcher.next() {
                Next::Fill { jobs, to } => self.fill(jobs, to)?,
                Next::Take => {
                    let taken = self.line.out[0].try_pull();
                    self.dispatcher.took(taken.is_some());
                    if let Some(batch) = taken {
                        self.execute(batch)?;
                    }
                }
                Next::Wait => match self.line.back.pull() {
                    Some(batch) => self.done(batch)?,
                    None => unreachable!("nobody closes the way back"),
                },
                Next::End => break,
            }
        }
        match self.failure {
            None => Ok(self.statistics),
            Some(error) => Err(JobsError::Failed(error)),
        }
    }

    /// Takes a batch from the source and hands it over.
    fn fill(&mut self, asked: u32, to: To) -> Result<(), JobsError<E>> {
        let mut batch = self.free.pop().unwrap_or_else(|| Box::new(Batch::new()));
        let begin = trace::now();
        while batch.jobs.len() < asked as usize {
            match (self.source)() {
                Ok(Some(job)) => batch.jobs.push(job),
                Ok(None) => break,
                Err(error) if self.order == Order::Unordered => return Err(JobsError::Failed(error)),
                Err(error) => {
                    self.failure = Some(error);
                    break;
                }
            }
        }
        let jobs = batch.jobs.len() as u32;
        self.dispatcher.filled(to, asked, jobs, nanoseconds(begin));
        if jobs == 0 {
            self.free.push(batch);
            return Ok(());
        }
        (batch.number, batch.size, batch.worker) = (self.next, jobs, None);
        self.next += 1;
        match to {
            To::Host => return self.execute(batch),
            // There is room, and the line is open as long as the host runs.
            To::Queue => drop(self.line.out[0].push(batch)),
            To::Worker(worker) => drop(self.line.to(worker).push(batch)),
        }
        Ok(())
    }

    fn execute(&mut self, mut batch: Boxed<J, R, E>) -> Result<(), JobsError<E>> {
        self.executor.execute(&mut batch);
        self.statistics.by_host += u64::from(batch.size);
        self.done(batch)
    }

    /// A batch has come back.
    fn done(&mut self, batch: Boxed<J, R, E>) -> Result<(), JobsError<E>> {
        self.dispatcher.completed(batch.worker, batch.size, batch.span_ns);
        self.statistics.batches += 1;
        if self.order == Order::Unordered {
            return self.deliver(batch);
        }
        let place = (batch.number - self.first) as usize;
        if self.ahead.len() <= place {
            self.ahead.resize_with(place + 1, || None);
        }
        self.ahead[place] = Some(batch);
        while let Some(batch) = self.ahead.front_mut().and_then(Option::take) {
            self.ahead.pop_front();
            self.first += 1;
            self.deliver(batch)?;
        }
        Ok(())
    }

    /// Gives the results of a batch to the sink.
    fn deliver(&mut self, mut batch: Boxed<J, R, E>) -> Result<(), JobsError<E>> {
        for result in batch.results.drain(..) {
            (self.sink)(result).map_err(JobsError::Failed)?;
            self.statistics.jobs += 1;
        }
        if let Some(failure) = batch.failure.take() {
            return Err(failure);
        }
        self.dispatcher.delivered(batch.size);
        self.free.push(batch);
        Ok(())
    }
}
