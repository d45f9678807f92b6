//! Independent jobs: how many are handed over at once, to whom, and when whoever hands out works, too.
//!
//! The picture: a *host* takes jobs from a source, hands them to workers in *batches*, and gives what they found to a
//! sink. At most so many jobs are *in flight*: taken from the source and not yet given to the sink. There are two ways to
//! hand out:
//!
//! | name | what it does |
//! |---|---|
//! | `queue` | the host fills a bounded queue, each worker takes the next batch from it when it has nothing to do |
//! | `mailbox` | each worker has room for one batch, which the host fills again when it has seen the batch done |
//!
//! Both are those of chapter 5 of the thesis in whose figure 5.8 they are compared: with a host that works itself, workers
//! wait for it at their empty mailboxes, but not at a queue that it has filled ahead.
//!
//! A [`Dispatcher`] is the state machine: it is told what happened and says what the host does next. It knows no threads
//! and no clock, so threads and the simulator drive the same one.
//!
//! ```
//! use multigrain_schedule::jobs::{Batching, Dispatch, Dispatcher, Next, Rules, To};
//!
//! let rules = Rules {
//!     dispatch: "mailbox".parse::<Dispatch>()?,
//!     batch: Batching::Fixed(4),
//!     in_flight: 64,
//!     workers: 2,
//!     host_works: false,
//! };
//! let mut dispatcher = Dispatcher::new(rules);
//! for worker in 0..2 {
//!     assert_eq!(dispatcher.next(), Next::Fill { jobs: 4, to: To::Worker(worker) });
//!     dispatcher.filled(To::Worker(worker), 4, 4, 100);
//! }
//! assert_eq!(dispatcher.next(), Next::Wait);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batching;
mod dispatcher;
mod rules;

pub use batching::{BATCH_NS, Batching};
pub use dispatcher::{Dispatcher, Next, To};
pub use rules::{Dispatch, Rules, UnknownDispatch};
