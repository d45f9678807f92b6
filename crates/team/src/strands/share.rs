//! One loop, shared by a few workers: fork and join within a task. One of the modules of this crate with `unsafe` in it.
//!
//! A loop is cut into chunks that do not depend on how many share it. Each participant owns a range of them and, when
//! it is done, takes chunks from the ends of the others' ranges. So the shares need only be about right, and nobody waits
//! for a worker that has not even begun: its post is withdrawn, its chunks are taken.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use multigrain_schedule::claim;

use crate::pad::Padded;
use crate::spin::SpinLimit;
use crate::sync::{Mutex, lock};

use super::seat::{Portion, Post, Seat};

/// The value that a panicking body threw.
pub(crate) type Thrown = Box<dyn Any + Send>;

/// A loop under way, on its leader's stack.
struct Job<'a> {
    seats: &'a [Padded<Seat>],
    /// The workers who take part, the leader first.
    workers: &'a [u32],
    body: &'a (dyn Fn(u32) + Sync),
    clock: fn() -> u64,
    thrown: Mutex<Option<Thrown>>,
}

impl Job<'_> {
    #[inline]
    fn portion(&self, participant: usize) -> &Portion {
        &self.seats[self.workers[participant] as usize].portion
    }

    /// Executes chunks until none is left; returns how many.
    fn work(&self, me: usize) -> u32 {
        let mut done = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            while let Some((_, chunk)) = claim(me, self.workers.len(), |owner, end| self.portion(owner).claim(end)) {
                (self.body)(chunk);
                done += 1;
            }
        }));
        if let Err(thrown) = outcome {
            lock(&self.thrown).get_or_insert(thrown);
        }
        done
    }

    /// # Safety
    /// `job` points to a `Job` that lives until the worker has left its seat.
    unsafe fn enter(job: *const (), part: u32, _me: *const ()) {
        // SAFETY: by the caller. The lifetime is shortened to this call.
        let job = unsafe { &*job.cast::<Job<'_>>() };
        let begin = (job.clock)();
        let done = job.work(part as usize);
        job.portion(part as usize).did(begin, (job.clock)(), done);
    }
}

/// Calls `body` once for each chunk below `ends`' last on `workers`, by their seats; the calling thread is the first.
/// Participant `i` owns the chunks from `ends[i - 1]` to less than `ends[i]`.
/// `begin` is when it began, in the ticks of `clock`. Returns when all are done and no helper uses the body any more: at
/// which tick, and what a body threw, the first if several did; then some chunks may not have been executed.
///
/// # Safety
/// The seats of all workers are empty, and the caller is the only poster of the others.
pub(crate) unsafe fn share(
    seats: &[Padded<Seat>],
    workers: &[u32],
    ends: &[u32],
    body: &(dyn Fn(u32) + Sync),
    begin: u64,
    clock: fn() -> u64,
    spin: SpinLimit,
) -> (u64, Result<(), Thrown>) {
    assert_eq!(ends.len(), workers.len(), "each participant has a range");
    let job = Job { seats, workers, body, clock, thrown: Mutex::new(None) };
    let mut first = 0;
    for (participant, &end) in ends.iter().enumerate() {
        job.portion(participant).give(first, end);
        first = end;
    }
    let helpers = &workers[1..];
    for (number, &helper) in helpers.iter().enumerate() {
        let data = (&raw const job).cast();
        let post = Post { run: Job::enter, data, part: number as u32 + 1, leaves_first: false };
        // SAFETY: the seat by the caller. The job lives until each helper has left or was withdrawn, below; nothing
        // in between unwinds, since `work` catches.
        unsafe { seats[helper as usize].post(post) };
    }
    let done = job.work(0);
    // A leader that executed all chunks has hardly anybody to wait for: it reads the clock once.
    let ended = (ends.last() != Some(&done)).then(clock);
    for &helper in helpers {
        seats[helper as usize].withdraw_or_wait(spin);
    }
    let end = clock();
    job.portion(0).did(begin, ended.unwrap_or(end), done);
    (end, job.thrown.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err))
}
