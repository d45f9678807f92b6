//! Collective operations on threads: barrier, broadcast, reduce, allreduce.
//!
//! A [`Collective`] is made for a group and its topology. It executes the schedules of `multigrain-schedule` literally:
//! signals flip bits in registers on cache lines of their own, awaits spin and then park, transfers are copies between
//! buffers that the collective owns. Which algorithm is taken for which size stands in a table
//! ([`multigrain_schedule::choice`]), and never changes a bit of a result.
//!
//! All shared memory is atomic, so this module needs no unsafe code: a program whose participants call different
//! operations gets an error, a wait that [`Collective::abort`] ends, or a wrong result, but no undefined behaviour.

mod buffer;
mod compile;
mod eager;
mod element;
mod execute;
mod operator;
mod register;
mod ring;

pub use element::Element;
pub use operator::{Max, Min, Operator, Product, Sum, Union};

use crate::abort::Abort;
use crate::pad::Padded;
use crate::spin::SpinLimit;
use crate::sync::{AtomicU64, Ordering, fence};
use buffer::Buffer;
use compile::{Chosen, Plan, Plans, Roots};
use eager::Ring;
use multigrain_schedule::choice::Table;
use multigrain_schedule::{Kind, Order, ScheduleError, Topology};
use register::{Mark, RegisterFile};
use ring::Rings;
use thiserror::Error;

/// How a collective is made.
#[derive(Clone, Debug)]
pub struct CollectiveOptions {
    /// The group and where its participants live; participants are called by their ranks in it.
    pub topology: Topology,
    /// Which algorithm serves which operation and size.
    pub table: Table,
    /// The most bytes that one round moves; rounded up to whole cache lines. A participant's memory is five times that.
    /// Rounds of eager operations move an eighth.
    pub buffer_bytes: u64,
    /// How long waits spin before they park. With more participants than processors at most [`SpinLimit::SHORT`].
    pub spin: SpinLimit,
}

impl CollectiveOptions {
    /// Rounds of 64 KiB, which keeps both sides of a transfer in second level caches, and what is assumed about
    /// algorithms.
    pub fn new(topology: Topology) -> CollectiveOptions {
        let spin = SpinLimit::default();
        CollectiveOptions { topology, table: Table::assumed(), buffer_bytes: 64 << 10, spin }
    }
}

/// Why an operation did not come to its end. The collective is of no use afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CollectiveError {
    /// The collective was ended: see [`Collective::abort`].
    #[error("the collective was ended while rank {rank} was in a {operation}; whoever ended it knows why")]
    Aborted {
        /// Who found out.
        rank: u32,
        /// What it was doing.
        operation: Kind,
    },
    /// Two participants are in different operations.
    #[error(
        "rank {rank} is in a {operation} of {bytes} bytes, and rank {other} is in another operation or has another root, \
         size, element or operator; all participants must call the same operations in the same order"
    )]
    Mismatch {
        /// Who found out.
        rank: u32,
        /// What it was doing.
        operation: Kind,
        /// Of how many bytes.
        bytes: u64,
        /// Who does something else.
        other: u32,
    },
    /// The request has no schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// A group of threads that executes collective operations together. Each participant calls the same operations in the
/// same order with its own rank, from one thread at a time.
///
/// ```
/// use multigrain_schedule::Topology;
/// use multigrain_team::collective::{Collective, CollectiveOptions, Sum};
///
/// let group = Collective::new(CollectiveOptions::new(Topology::flat(3)?))?;
/// std::thread::scope(|scope| {
///     for rank in 0..3 {
///         let group = &group;
///         scope.spawn(move || {
///             let mut data = [rank as f32, 1.0];
///             group.allreduce(rank, &mut data, &Sum).unwrap();
///             assert_eq!(data, [3.0, 3.0]);
///         });
///     }
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Collective {
    topology: Topology,
    table: Table,
    spin: SpinLimit,
    abort: Abort,
    registers: RegisterFile,
    buffers: Box<[Buffer]>,
    rings: Rings,
    own: Box<[Padded<Own>]>,
    plans: Plans,
}

/// What a participant knows about itself.
#[derive(Debug, Default)]
struct Own {
    /// Rounds that it has executed, eager ones not counted. Only its own thread uses it.
    rounds: AtomicU64,
    /// What it is doing: the number of its operation in the upper half, counted from 1, and what that is in the lower. Its
    /// own thread writes it; those who wait for long read it.
    doing: AtomicU64,
    ring: Ring,
}

impl Collective {
    /// A collective for the group of `options.topology`.
    ///
    /// # Errors
    /// [`ScheduleError`] if an algorithm of the table cannot serve the group with such buffers.
    pub fn new(options: CollectiveOptions) -> Result<Collective, ScheduleError> {
        let CollectiveOptions { topology, table, buffer_bytes, spin } = options;
        let size = topology.size();
        let buffer_bytes = buffer_bytes.max(1).next_multiple_of(buffer::LINE_BYTES);
        let oversubscribed = std::thread::available_parallelism().is_ok_and(|at_once| size as usize > at_once.get());
        let spin = match oversubscribed {
            true => SpinLimit::from_polls(spin.polls().min(SpinLimit::SHORT.polls())),
            false => spin,
        };
        let plans = Plans::new(&topology, &table, buffer_bytes)?;
        Ok(Collective {
            registers: RegisterFile::new(size, plans.bits()),
            buffers: (0..size).map(|_| Buffer::new(buffer_bytes)).collect(),
            rings: Rings::new(size),
            own: (0..size).map(|_| Padded(Own::default())).collect(),
            abort: Abort::new(),
            topology,
            table,
            spin,
            plans,
        })
    }

    /// How many participants there are.
    pub fn size(&self) -> u32 {
        self.topology.size()
    }

    /// Which algorithm serves what, and why.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Ends every wait in this collective when it is raised, and every operation afterwards: for whoever knows that a
    /// participant is not going to come. A participant that finds a mismatch raises it itself.
    pub fn abort(&self) -> &Abort {
        &self.abort
    }

    /// Returns when every participant has called it: the only operation besides [`Collective::allreduce`] that promises it.
    ///
    /// # Errors
    /// [`CollectiveError`].
    #[inline]
    pub fn barrier(&self, rank: u32) -> Result<(), CollectiveError> {
        self.barrier_until(rank, &self.abort)
    }

    /// As [`Collective::barrier`], but ended by a flag that the caller owns, a run's for example, instead of the
    /// collective's own.
    ///
    /// # Errors
    /// [`CollectiveError`].
    #[inline]
    pub fn barrier_until(&self, rank: u32, abort: &Abort) -> Result<(), CollectiveError> {
        let Some(plan) = self.plans.barrier(rank) else { return Err(self.outside("rank", rank)) };
        self.synchronise(plan, rank, abort)
    }

    /// The root's elements reach everybody. Whoever has passed them on may return before others have called it.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn broadcast<T: Element>(&self, rank: u32, root: u32, data: &mut [T]) -> Result<(), CollectiveError> {
        self.broadcast_until(rank, root, data, &self.abort)
    }

    /// As [`Collective::broadcast`], but ended by a flag that the caller owns, a run's for example, instead of the
    /// collective's own.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn broadcast_until<T: Element>(
        &self,
        rank: u32,
        root: u32,
        data: &mut [T],
        abort: &Abort,
    ) -> Result<(), CollectiveError> {
        self.check("root", root)?;
        match self.plans.choose(Kind::Broadcast, size_of_val(data) as u64) {
            Some(Chosen::Allreduce(whole)) => {
                // The root's bits and zeros.
                if rank != root {
                    data.fill(T::ZERO);
                }
                self.execute(self.plan(whole, 0, Union.order(), rank)?, rank, data, &Union, true, abort)
            }
            Some(Chosen::Direct(roots) | Chosen::ReduceBroadcast(_, roots)) => {
                self.execute(self.plan(roots, root, Order::Fixed, rank)?, rank, data, &Union, true, abort)
            }
            None => Ok(()),
        }
    }

    /// Combines everybody's elements, one by one, in the canonical order of ranks (or, where the operator's laws allow
    /// it, any); the root's are replaced by the result, everybody else's stay. Whoever has contributed may return before
    /// others have called it.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn reduce<T: Element>(
        &self,
        rank: u32,
        root: u32,
        data: &mut [T],
        operator: &impl Operator<T>,
    ) -> Result<(), CollectiveError> {
        self.check("root", root)?;
        let abort = &self.abort;
        match self.plans.choose(Kind::Reduce, size_of_val(data) as u64) {
            Some(Chosen::Allreduce(whole)) => {
                self.execute(self.plan(whole, 0, operator.order(), rank)?, rank, data, operator, rank == root, abort)
            }
            Some(Chosen::Direct(roots) | Chosen::ReduceBroadcast(roots, _)) => {
                self.execute(self.plan(roots, root, operator.order(), rank)?, rank, data, operator, true, abort)
            }
            None => Ok(()),
        }
    }

    /// As [`Collective::reduce`], but everybody gets the result.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn allreduce<T: Element>(
        &self,
        rank: u32,
        data: &mut [T],
        operator: &impl Operator<T>,
    ) -> Result<(), CollectiveError> {
        let abort = &self.abort;
        match self.plans.choose(Kind::Allreduce, size_of_val(data) as u64) {
            Some(Chosen::Direct(roots) | Chosen::Allreduce(roots)) => {
                self.execute(self.plan(roots, 0, operator.order(), rank)?, rank, data, operator, true, abort)
            }
            Some(Chosen::ReduceBroadcast(up, down)) => {
                self.execute(self.plan(up, 0, operator.order(), rank)?, rank, data, operator, true, abort)?;
                self.execute(self.plan(down, 0, Order::Fixed, rank)?, rank, data, operator, true, abort)
            }
            None => Ok(()),
        }
    }

    #[inline]
    fn plan(&self, roots: Roots, root: u32, order: Order, rank: u32) -> Result<&Plan, CollectiveError> {
        self.check("rank", rank)?;
        Ok(&self.plans.get(roots, root, order)?[rank as usize])
    }

    fn check(&self, what: &'static str, rank: u32) -> Result<(), CollectiveError> {
        if rank < self.size() { Ok(()) } else { Err(self.outside(what, rank)) }
    }

    #[cold]
    fn outside(&self, what: &'static str, rank: u32) -> CollectiveError {
        ScheduleError::OutsideGroup { what, rank, last: self.size() - 1 }.into()
    }

    /// Begins an operation.
    #[inline]
    fn begin(&self, rank: u32, mark: Mark) {
        let doing = &self.own[rank as usize].doing;
        // Relaxed: a hint, and what is read of it is one word. Only the participant's own thread writes it.
        let number = (doing.load(Ordering::Relaxed) >> 32) + 1;
        doing.store(number << 32 | u64::from(mark), Ordering::Relaxed);
    }

    /// Before a participant parks: finds out whether the one that it waits for is in another operation instead of this
    /// one. Of two who wait for each other so at least one does.
    #[cold]
    fn same_operation(&self, plan: &Plan, rank: u32, bytes: u64, other: u32) -> Result<(), CollectiveError> {
        // Both have begun before their fence, and look after it.
        fence(Ordering::SeqCst);
        let [mine, theirs] = [rank, other].map(|rank| self.own[rank as usize].doing.load(Ordering::Relaxed));
        match mine >> 32 == theirs >> 32 && mine != theirs {
            true => Err(self.mismatch(plan, rank, bytes, other)),
            false => Ok(()),
        }
    }

    #[cold]
    fn mismatch(&self, plan: &Plan, rank: u32, bytes: u64, other: u32) -> CollectiveError {
        self.abort.raise();
        CollectiveError::Mismatch { rank, operation: plan.kind, bytes, other }
    }

    /// Rounds that a participant has executed, eager ones not counted.
    #[inline]
    fn round(&self, rank: u32) -> u64 {
        // Relaxed: only the participant's own thread writes it, and reads it.
        self.own[rank as usize].rounds.load(Ordering::Relaxed)
    }

    #[inline]
    fn set_round(&self, rank: u32, round: u64) {
        self.own[rank as usize].rounds.store(round, Ordering::Relaxed);
    }
}
