//! One loop, shared by a few workers: fork and join within a task. One of the modules of this crate with `unsafe` in it.
//!
//! A loop is cut into chunks that do not depend on how many share it. Each participant owns a range of them and, when
//! it is done, takes chunks from the ends of the others' ranges. So the shares need only be about right, and nobody waits
//! for a worker that has not even begun: its post is withdrawn, its chunks are taken.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use multigrain_schedule::claim;
use multigrain_schedule::policy::Part;

use crate::chains::{claim_at, range};
use crate::pad::Padded;
use crate::spin::SpinLimit;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

use super::seat::{Post, Seat};

/// The ranges of the loop that one worker leads; made once, used for every loop.
#[derive(Debug)]
pub(crate) struct Board {
    places: Box<[Padded<Place>]>,
}

/// One participant's.
#[derive(Debug)]
struct Place {
    /// Front and back of the chunks that nobody has claimed, as in `ChainQueue`.
    chunks: AtomicU64,
    /// When it began and when it found nothing more to do, in ticks.
    begin: AtomicU64,
    end: AtomicU64,
    /// Chunks that it executed; 0 if it did not come.
    done: AtomicU64,
}

/// The value that a panicking body threw.
pub(crate) type Thrown = Box<dyn Any + Send>;

impl Board {
    /// For loops of up to so many participants.
    pub(crate) fn new(participants: usize) -> Board {
        let word = || AtomicU64::new(0);
        let place = || Padded(Place { chunks: word(), begin: word(), end: word(), done: word() });
        Board { places: (0..participants).map(|_| place()).collect() }
    }

    /// What a participant did in the last loop, which took from `begin` to `end`, in ticks.
    pub(crate) fn part(&self, participant: usize, begin: u64, end: u64) -> Part {
        let place = &self.places[participant];
        // Relaxed: the leader has seen the participant leave.
        let chunks = place.done.load(Ordering::Relaxed) as u32;
        if chunks == 0 {
            return Part { idle_before: end.saturating_sub(begin) as f64, busy: 0.0, chunks };
        }
        let (began, ended) = (place.begin.load(Ordering::Relaxed), place.end.load(Ordering::Relaxed));
        Part { idle_before: began.saturating_sub(begin) as f64, busy: ended.saturating_sub(began) as f64, chunks }
    }

    /// When a participant of the last loop began and ended, in ticks, if it did anything.
    pub(crate) fn times(&self, participant: usize) -> Option<[u64; 2]> {
        let place = &self.places[participant];
        let times = [place.begin.load(Ordering::Relaxed), place.end.load(Ordering::Relaxed)];
        (place.done.load(Ordering::Relaxed) > 0).then_some(times)
    }

    #[inline]
    fn claim(&self, me: usize, participants: usize) -> Option<u32> {
        let claimed = claim(me, participants, |owner, end| claim_at(&self.places[owner].chunks, end));
        claimed.map(|(_, chunk)| chunk)
    }
}

/// A loop under way, on its leader's stack.
struct Job<'a> {
    board: &'a Board,
    participants: usize,
    body: &'a (dyn Fn(u32) + Sync),
    clock: fn() -> u64,
    thrown: Mutex<Option<Thrown>>,
}

impl Job<'_> {
    /// Executes chunks until none is left.
    fn work(&self, me: usize, begin: u64) {
        let mut done = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            while let Some(chunk) = self.board.claim(me, self.participants) {
                (self.body)(chunk);
                done += 1;
            }
        }));
        // Relaxed: read by the leader after it has seen this worker leave.
        let place = &self.board.places[me];
        place.begin.store(begin, Ordering::Relaxed);
        place.end.store((self.clock)(), Ordering::Relaxed);
        place.done.store(done, Ordering::Relaxed);
        if let Err(thrown) = outcome {
            lock(&self.thrown).get_or_insert(thrown);
        }
    }

    /// # Safety
    /// `job` points to a `Job` that lives until the worker has left its seat.
    unsafe fn enter(job: *const (), part: u32, _me: *const ()) {
        // SAFETY: by the caller. The lifetime is shortened to this call.
        let job = unsafe { &*job.cast::<Job<'_>>() };
        job.work(part as usize, (job.clock)());
    }
}

/// Calls `body` once for each chunk below `ends`' last, on the calling thread and on the workers in the seats of
/// `helpers`: participant `i` owns the chunks from `ends[i - 1]` to less than `ends[i]`, participant 0 being the caller.
/// `begin` is when it began, in the ticks of `clock`. Returns when all are done and no helper uses the body any more.
///
/// # Errors
/// What a body threw, the first if several did; then some chunks may not have been executed.
///
/// # Safety
/// The seats of the helpers are empty, and the caller is their only poster and the only user of the board.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn share(
    board: &Board,
    seats: &[Padded<Seat>],
    helpers: &[u32],
    ends: &[u32],
    body: &(dyn Fn(u32) + Sync),
    begin: u64,
    clock: fn() -> u64,
    spin: SpinLimit,
) -> Result<(), Thrown> {
    assert_eq!(ends.len(), helpers.len() + 1, "each participant has a range");
    let mut first = 0;
    for (place, &end) in board.places.iter().zip(ends) {
        // Relaxed: the helpers see it by the post.
        place.chunks.store(range(first, end), Ordering::Relaxed);
        place.done.store(0, Ordering::Relaxed);
        first = end;
    }
    let job = Job { board, participants: ends.len(), body, clock, thrown: Mutex::new(None) };
    for (number, &helper) in helpers.iter().enumerate() {
        let data = (&raw const job).cast();
        let post = Post { run: Job::enter, data, part: number as u32 + 1, leaves_first: false };
        // SAFETY: the seat by the caller. The job lives until each helper has left or was withdrawn, below; nothing
        // in between unwinds, since `work` catches.
        unsafe { seats[helper as usize].post(post) };
    }
    job.work(0, begin);
    for &helper in helpers {
        seats[helper as usize].withdraw_or_wait(spin);
    }
    job.thrown.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err)
}
