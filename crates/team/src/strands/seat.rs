//! Where a worker is handed work, and where it waits for it. STRANDS.md has the states and the races; the names in
//! brackets are those of the races. One of the modules of this crate with `unsafe` in it.

use multigrain_schedule::End;
use multigrain_schedule::policy::Part;

use crate::chains::{claim_at, range};
use crate::signal::Signal;
use crate::spin::SpinLimit;
use crate::sync::{AtomicU64, Ordering, UnsafeCell};

/// The worker is asked to look around: a strand of its own can go on, or the run is over.
const RUNG: u64 = 1 << 1;
/// A post lies in the seat; its poster may still withdraw it.
const POSTED: u64 = 1 << 2;
/// The worker has taken the post and has not left yet.
const TAKEN: u64 = 1 << 3;

/// Work for one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    /// Executes it: is given `data`, `part`, and whatever the worker's thread is known by ([`Seat::serve`]).
    pub(crate) run: unsafe fn(*const (), u32, *const ()),
    /// What is executed; it lives until the poster knows that nobody uses it any more.
    pub(crate) data: *const (),
    /// Which part of it.
    pub(crate) part: u32,
    /// Whether the worker leaves its seat before it executes: for whole tasks, whose end is told by other means.
    pub(crate) leaves_first: bool,
}

/// What a worker found in its seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// Nothing, or nothing any more.
    Nothing,
    /// A share of a loop: until the loop's task departs the worker is not idle, and whoever lets it depart rings.
    Share,
    /// A whole task.
    Whole,
}

/// What a worker is to do of a loop, and what it did: it comes with the post, on one line.
#[derive(Debug)]
pub(crate) struct Portion {
    /// Front and back of the chunks that nobody has claimed, as in `ChainQueue`.
    chunks: AtomicU64,
    /// When it began and when it found nothing more to do, in ticks.
    begin: AtomicU64,
    end: AtomicU64,
    /// Chunks that it executed; 0 if it did not come.
    done: AtomicU64,
}

impl Portion {
    pub(crate) fn new() -> Portion {
        let word = || AtomicU64::new(0);
        Portion { chunks: word(), begin: word(), end: word(), done: word() }
    }

    // Relaxed, here and below: the worker sees by the post what it is given, the leader by its leaving what it did.

    /// For the leader: gives the worker the chunks from `first` to less than `end`.
    #[inline]
    pub(crate) fn give(&self, first: u32, end: u32) {
        self.chunks.store(range(first, end), Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// For every participant: one of the chunks that are left, if any is.
    #[inline]
    pub(crate) fn claim(&self, end: End) -> Option<u32> {
        claim_at(&self.chunks, end)
    }

    /// For the worker: when it began and ended, and how many chunks it executed, its own or others'.
    #[inline]
    pub(crate) fn did(&self, begin: u64, end: u64, done: u32) {
        self.begin.store(begin, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.done.store(done.into(), Ordering::Relaxed);
    }

    /// What the participant did in the last loop, which took from `begin` to `end`, in ticks.
    pub(crate) fn part(&self, begin: u64, end: u64) -> Part {
        match self.times() {
            None => Part { idle_before: end.saturating_sub(begin) as f64, busy: 0.0, chunks: 0 },
            Some([began, ended]) => Part {
                idle_before: began.saturating_sub(begin) as f64,
                busy: ended.saturating_sub(began) as f64,
                chunks: self.done.load(Ordering::Relaxed) as u32,
            },
        }
    }

    /// When the participant began and ended in the last loop, in ticks, if it did anything.
    pub(crate) fn times(&self) -> Option<[u64; 2]> {
        let times = [self.begin.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed)];
        (self.done.load(Ordering::Relaxed) > 0).then_some(times)
    }
}

/// A worker's seat: one word, one post and the worker's portion of a shared loop, on one cache line; what is behind the word
/// is for those that sleep.
///
/// The life of a post: *empty*, written by the poster, *posted*, then either *withdrawn* by the poster (empty again) or
/// *taken* by the worker, which executes it and *leaves* (empty again).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Seat {
    pub(super) portion: Portion,
    post: UnsafeCell<Post>,
    signal: Signal,
}

#[cfg(not(loom))]
const _: () = assert!(std::mem::offset_of!(Seat, signal) + size_of::<u64>() <= 64);

// SAFETY: the cell is written by a poster, of which there is one at any time (the policy gives an idle worker to one
// task), while the seat is empty, and read by the worker between `turn` and `lower`, while it is taken. The
// pointers in a post go to another thread by design; whoever posts answers for what they point to.
unsafe impl Sync for Seat {}
// SAFETY: as above; a seat holds nothing that is tied to a thread.
unsafe impl Send for Seat {}

impl Seat {
    pub(crate) fn new() -> Seat {
        unsafe fn nothing(_: *const (), _: u32, _: *const ()) {}
        let post = Post { run: nothing, data: std::ptr::null(), part: 0, leaves_first: false };
        Seat { portion: Portion::new(), post: UnsafeCell::new(post), signal: Signal::new(2) }
    }

    /// Hands the worker a post, and wakes it if it sleeps.
    ///
    /// # Safety
    /// The seat is empty and the caller is its only poster. Until the post is withdrawn, or the worker has left, or for a
    /// post with `leaves_first` until its end is known, what `data` points to can be used by the worker's thread.
    #[inline]
    pub(crate) unsafe fn post(&self, post: Post) {
        // SAFETY: the seat is empty, so the worker does not read; the caller is the only poster.
        self.post.with_mut(|cell| unsafe { cell.write(post) });
        let before = self.signal.raise(POSTED);
        debug_assert_eq!(before & (POSTED | TAKEN), 0, "posted into a seat that was not empty");
    }

    /// For the poster: takes the post back if the worker has not taken it [late helper]; otherwise returns when it has
    /// left. Then nobody uses the post's data.
    #[inline]
    pub(crate) fn withdraw_or_wait(&self, spin: SpinLimit) {
        if self.signal.lower(POSTED) & POSTED == 0 {
            // Without an abort flag a wait has no way to fail.
            let _ = self.signal.wait_until(|word| word & TAKEN == 0, spin, None);
        }
    }

    /// Asks the worker to look around, now or as soon as it is back in its seat.
    #[inline]
    pub(crate) fn ring(&self) {
        self.signal.raise(RUNG);
    }

    /// For the worker: forgets that it was rung. To be called before it looks around [ring while looking].
    #[inline]
    pub(crate) fn hear(&self) {
        if self.signal.word() & RUNG != 0 {
            self.signal.lower(RUNG);
        }
    }

    /// For the worker: returns when it is rung, or something is posted.
    #[inline]
    pub(crate) fn wait(&self, spin: SpinLimit) {
        let _ = self.signal.wait_until(|word| word & (RUNG | POSTED) != 0, spin, None);
    }

    /// For the worker: executes what is posted.
    ///
    /// # Safety
    /// The calling thread is the seat's worker, and `me` is what the posts' functions take as their last argument.
    #[inline]
    pub(crate) unsafe fn serve(&self, me: *const ()) -> Served {
        if !self.signal.turn(POSTED, TAKEN) {
            return Served::Nothing;
        }
        // SAFETY: taken, so the poster neither writes nor withdraws; its write is visible by `turn`.
        let post = self.post.with(|cell| unsafe { cell.read() });
        if post.leaves_first {
            self.signal.lower(TAKEN);
        }
        // SAFETY: by the contract of `post` the data can be used; `me` by the caller.
        unsafe { (post.run)(post.data, post.part, me) };
        if post.leaves_first {
            return Served::Whole;
        }
        self.signal.lower(TAKEN);
        Served::Share
    }
}
