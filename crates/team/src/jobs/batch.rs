//! Jobs on their way to a worker, and what it found on their way back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use multigrain_trace as trace;

use super::JobsError;
use crate::panic::{WorkerPanic, panic_message};
use crate::sync::{AtomicBool, Ordering};

/// Some jobs that are handed over at once; afterwards their results, and why there are no more.
pub(super) struct Batch<J, R, E> {
    /// Its place among all batches, in the order of the source.
    pub(super) number: u64,
    pub(super) jobs: Vec<J>,
    /// How many jobs there were when it was handed over.
    pub(super) size: u32,
    pub(super) results: Vec<R>,
    pub(super) failure: Option<JobsError<E>>,
    /// Who executed it, counted from 0 without the host, which is nobody; and for how long.
    pub(super) worker: Option<u32>,
    pub(super) span_ns: u64,
}

impl<J, R, E> Batch<J, R, E> {
    pub(super) fn new() -> Self {
        Batch { number: 0, jobs: Vec::new(), size: 0, results: Vec::new(), failure: None, worker: None, span_ns: 0 }
    }
}

/// What executes jobs on one worker: the function, and the state that it keeps there.
pub(super) struct Executor<'a, S, I, W> {
    pub(super) worker: usize,
    pub(super) state: Option<S>,
    pub(super) init: &'a I,
    pub(super) work: &'a W,
    /// Raised when no result is wanted any more.
    pub(super) stopped: &'a AtomicBool,
}

impl<S, I: Fn(usize) -> S, W> Executor<'_, S, I, W> {
    /// Executes the jobs of a batch up to the first that fails.
    pub(super) fn execute<J, R, E>(&mut self, batch: &mut Batch<J, R, E>)
    where
        W: Fn(&mut S, J) -> Result<R, E>,
    {
        let begin = trace::now();
        let Batch { jobs, results, .. } = batch;
        let all = || {
            let worker = self.worker;
            let state = self.state.get_or_insert_with(|| (self.init)(worker));
            for job in jobs.drain(..) {
                // Relaxed: a late look costs a job that nobody wants.
                if self.stopped.load(Ordering::Relaxed) {
                    break;
                }
                results.push((self.work)(state, job)?);
            }
            Ok(())
        };
        batch.failure = match catch_unwind(AssertUnwindSafe(all)) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(JobsError::Failed(error)),
            Err(payload) => {
                Some(JobsError::Panic(WorkerPanic { worker: self.worker, message: panic_message(payload) }))
            }
        };
        batch.span_ns = nanoseconds(begin);
    }
}

/// Since a moment.
pub(super) fn nanoseconds(begin: trace::Tick) -> u64 {
    (trace::now().since(begin) as f64 * 1e9 / trace::ticks_per_second()) as u64
}
