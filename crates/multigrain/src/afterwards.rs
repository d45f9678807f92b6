//! Work on the results of a run, told in its trace.
//!
//! Such work is no part of the program: how much there is depends on the results. So it is in neither the plan nor the
//! breakdown of the run. In a trace it follows the run, as leaves of the worker that did it.

use multigrain_trace::{NO_SUBJECT, Recorder, Spill};
use std::sync::Arc;

/// Work under one name. Without a trace nothing is recorded.
#[derive(Debug)]
pub struct Afterwards {
    /// Where to, and the number of the name.
    trace: Option<(Arc<Spill>, u16)>,
}

/// One worker's share of it. What it did is in the trace when this is dropped.
#[derive(Debug)]
pub struct AfterwardsWorker {
    recorder: Option<(Arc<Spill>, u16, Recorder)>,
}

impl Afterwards {
    pub(crate) fn new(trace: Option<(Arc<Spill>, u16)>) -> Afterwards {
        Afterwards { trace }
    }

    /// For the thread that works as `worker`, one of the machine's.
    pub fn worker(&self, worker: usize) -> AfterwardsWorker {
        let recorder = self.trace.as_ref().and_then(|(spill, task)| {
            let recorder = spill.recorder(worker)?;
            Some((Arc::clone(spill), *task, recorder))
        });
        AfterwardsWorker { recorder }
    }
}

impl AfterwardsWorker {
    /// Does piece number `number` of the work.
    pub fn leaf<R>(&mut self, number: u32, work: impl FnOnce() -> R) -> R {
        let Some((_, task, recorder)) = &mut self.recorder else { return work() };
        let since = recorder.start();
        let result = work();
        recorder.leaf(since, *task, NO_SUBJECT, number);
        result
    }
}

impl Drop for AfterwardsWorker {
    fn drop(&mut self) {
        if let Some((spill, _, recorder)) = self.recorder.take() {
            spill.add(recorder);
        }
    }
}
