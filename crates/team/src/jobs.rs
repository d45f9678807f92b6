//! Independent jobs: a host hands them out, the workers of a team execute them, the host takes in what they found.
//!
//! [`Team::jobs`] is the whole of it: a source gives jobs one after the other, a function on the workers makes a result of
//! each, and a sink takes the results, in the order of the jobs or as they come. Source and sink are called on the calling
//! thread alone, which is the host and worker 0; so they may be bound to it (files, a progress bar), and they may share
//! what they need, such as buffers to be used again. At most [`JobOptions::in_flight`] jobs are between source and
//! sink, so memory is bounded whatever the source holds. While there is nothing to hand out or take in, the host executes
//! jobs, too, unless it is told not to.
//!
//! Which way jobs are handed out, and how many at once, is decided by [`multigrain_schedule::jobs`]; this module moves
//! them. The workers are those of the team: nothing is started, and workers that find nothing to do sleep.
//!
//! ```
//! use multigrain_team::jobs::{JobOptions, Order};
//! use multigrain_team::{Team, TeamOptions};
//!
//! // Checksums of blocks, in the order of the blocks; the buffers are used again.
//! let team = Team::new(TeamOptions { workers: 2, ..TeamOptions::default() })?;
//! let buffers = std::cell::RefCell::new(Vec::<Vec<u8>>::new());
//! let (mut blocks, mut sums) = (0..100_u8, Vec::new());
//! let statistics = team.jobs(
//!     &JobOptions { order: Order::Ordered, in_flight: 8, ..JobOptions::default() },
//!     || {
//!         let Some(block) = blocks.next() else { return Ok(None) };
//!         let mut buffer = buffers.borrow_mut().pop().unwrap_or_default();
//!         buffer.clear();
//!         buffer.resize(1000, block);
//!         Ok(Some(buffer))
//!     },
//!     |_worker| 0_u32, // how many this worker has made
//!     |made: &mut u32, buffer: Vec<u8>| {
//!         *made += 1;
//!         Ok((buffer.iter().map(|byte| u32::from(*byte)).sum::<u32>(), buffer))
//!     },
//!     |(sum, buffer)| {
//!         buffers.borrow_mut().push(buffer);
//!         sums.push(sum);
//!         Ok::<(), std::io::Error>(())
//!     },
//! )?;
//! assert_eq!(statistics.jobs, 100);
//! assert!(buffers.borrow().len() <= 8);
//! assert_eq!(sums, (0..100).map(|block| 1000 * block).collect::<Vec<u32>>());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod fifo;
mod host;
#[cfg(all(test, loom))]
mod model;

pub use fifo::{Fifo, NotPushed};
pub use multigrain_schedule::jobs::{BATCH_NS, Batching, Dispatch, UnknownDispatch};

use multigrain_schedule::jobs::Rules;
use thiserror::Error;

use crate::panic::WorkerPanic;
use crate::sync::AtomicBool;
use crate::team::Team;
use batch::Executor;
use host::{Host, Line};

/// Jobs in flight at most: each has a place of sixteen bytes in two queues.
pub const IN_FLIGHT_MAX: u32 = 1 << 20;

/// How jobs are handed out and taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOptions {
    /// By a queue or by mailboxes.
    pub dispatch: Dispatch,
    /// How many jobs are handed over at once.
    pub batch: Batching,
    /// In which order results are given to the sink.
    pub order: Order,
    /// At most so many jobs have been taken from the source and not yet been given to the sink as results; zero is taken
    /// as one, and more than [`IN_FLIGHT_MAX`] as that. With a queue, what is more than all workers have in their hands is what keeps them busy while the host
    /// is.
    pub in_flight: u32,
    /// Whether the host executes jobs while there is nothing to hand out or to take in. In a team of one it always does.
    pub host_works: bool,
}

impl Default for JobOptions {
    /// A queue, batches of adaptive size, results as they come, 8192 jobs in flight, a host that works. So many last some
    /// microseconds each for as long as a host that shares its processor with three other threads waits for its turn.
    fn default() -> JobOptions {
        JobOptions {
            dispatch: Dispatch::Queue,
            batch: Batching::Adaptive,
            order: Order::Unordered,
            in_flight: 8192,
            host_works: true,
        }
    }
}

/// In which order results come to the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// As the jobs came from the source. The first error in this order ends the call, when all results before it have
    /// been given to the sink: so what the sink has seen, and which error is returned, do not depend on the workers.
    Ordered,
    /// As they are ready. The first error that is seen ends the call at once.
    #[default]
    Unordered,
}

/// Why a call of [`Team::jobs`] ended before its time. Jobs that had not begun are dropped; none runs any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobsError<E> {
    /// What source, work or sink returned.
    #[error("{0}")]
    Failed(E),
    /// A job panicked.
    #[error(transparent)]
    Panic(WorkerPanic),
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct JobStatistics {
    /// Jobs whose results the sink took.
    pub jobs: u64,
    /// Batches in which they were handed over.
    pub batches: u64,
    /// Jobs that the host executed.
    pub by_host: u64,
}

impl Team {
    /// Executes `work` for each job of `source` on the workers that the calling thread leads (all of the team, if it is
    /// not in it), and gives the results to `sink`. Source and sink are called on this thread; `state(worker)` on
    /// each worker before its first job, for what it keeps from job to job, and again where it panicked.
    ///
    /// # Errors
    /// [`JobsError::Failed`] with the error of source, work or sink; [`JobsError::Panic`] if a job panicked. A panic of
    /// the source or the sink goes on when no job runs any more.
    pub fn jobs<J: Send, R: Send, S, E: Send>(
        &self,
        options: &JobOptions,
        source: impl FnMut() -> Result<Option<J>, E>,
        state: impl Fn(usize) -> S + Sync,
        work: impl Fn(&mut S, J) -> Result<R, E> + Sync,
        sink: impl FnMut(R) -> Result<(), E>,
    ) -> Result<JobStatistics, JobsError<E>> {
        let led = self.led();
        let (leader, others) = (led.start, led.len() as u32 - 1);
        let rules = Rules {
            dispatch: options.dispatch,
            batch: options.batch,
            in_flight: options.in_flight.clamp(1, IN_FLIGHT_MAX),
            workers: others,
            host_works: options.host_works,
        };
        let stopped = AtomicBool::new(false);
        let line = Line::new(&rules, self.spin());
        let executor = |worker| Executor { worker, state: None::<S>, init: &state, work: &work, stopped: &stopped };
        let (outcome, others) = self
            .fork_beside(&|worker| line.serve((worker - leader - 1) as u32, &mut executor(worker)), || {
                Host::new(rules, options.order, &line, executor(leader), source, sink).run()
            });
        let statistics = outcome?;
        // What is dropped on a worker (a job that nobody wants, its state) may panic as well.
        others.map_err(JobsError::Panic)?;
        Ok(statistics)
    }
}
