//! One job at a time from a leader to a worker, and word back when it is done. One of the two modules of this crate
//! with `unsafe` in it.

use std::ops::Range;

use crate::pad::Padded;
use crate::panic::WorkerPanic;
use crate::signal::Signal;
use crate::spin::SpinLimit;
use crate::sync::{Mutex, UnsafeCell};

/// What lies in a mailbox: the part of a fork that begins with the mailbox's worker. The pointers are into the stack
/// frame of the thread that called `fork`, which outlives every part (see `fork::run`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    /// Calls the job's closure; `None` tells the worker's thread to end.
    pub(crate) call: Option<unsafe fn(*const (), usize)>,
    /// The job's closure.
    pub(crate) job: *const (),
    /// Where the first panic is written.
    pub(crate) panic: *const Mutex<Option<WorkerPanic>>,
    /// The workers that each position of the fork leads; null if position `p` is just worker `base + p`.
    pub(crate) groups: *const Range<usize>,
    /// Zero for groups. The job of position `p` is told `base + p`: to find that in the post, and not in a closure on
    /// the leader's stack, saves the worker a cache miss.
    pub(crate) base: u32,
    /// The positions of this part.
    pub(crate) first: u32,
    pub(crate) end: u32,
}

impl Post {
    /// Tells the worker's thread to end.
    pub(crate) fn stop() -> Post {
        Post {
            call: None,
            job: std::ptr::null(),
            panic: std::ptr::null(),
            groups: std::ptr::null(),
            base: 0,
            first: 0,
            end: 0,
        }
    }
}

/// A worker's mailbox. Post and count of posts share one cache line, which only the leader writes; the count of jobs
/// done has its own, which only the worker writes. So handing over a job moves one line there and one back.
///
/// The life of one post: *empty* (posted = done), written by the leader, *posted* (posted = done + 1), read and
/// executed by the worker, *empty*.
#[derive(Debug)]
pub(crate) struct Mailbox {
    inbox: Padded<Inbox>,
    done: Padded<Signal>,
}

#[derive(Debug)]
#[repr(C)]
struct Inbox {
    post: UnsafeCell<Post>,
    posted: Signal,
}

/// One cache line carries a job: the post and the count that publishes it, which is the first word of the signal.
#[cfg(not(loom))]
const _: () = assert!(std::mem::offset_of!(Inbox, posted) + size_of::<u64>() <= 64);

// SAFETY: the cell is written only by the thread that leads the worker, while the mailbox is empty, and read only by
// the worker, between the count of posts that publishes it and the count of jobs done that hands it back. `place`
// makes the leader unique at any time; each new leader got the worker from the last by a chain of such hand-overs.
// The pointers in a post are shared with another thread by design; `fork` answers for what they point to.
unsafe impl Sync for Mailbox {}
// SAFETY: as above: a mailbox holds no data that is tied to the thread that made it.
unsafe impl Send for Mailbox {}

impl Mailbox {
    pub(crate) fn new() -> Mailbox {
        let inbox = Inbox { post: UnsafeCell::new(Post::stop()), posted: Signal::new(1) };
        Mailbox { inbox: Padded(inbox), done: Padded(Signal::new(1)) }
    }

    /// Hands the worker a post, and wakes it if it sleeps.
    ///
    /// # Safety
    /// The caller leads this worker, and has seen the end ([`Mailbox::await_done`]) of everything posted before.
    #[inline]
    pub(crate) unsafe fn post(&self, post: Post) {
        // SAFETY: the mailbox is empty, so the worker does not read the cell; the caller is the only leader.
        self.inbox.post.with_mut(|cell| unsafe { cell.write(post) });
        self.inbox.posted.advance();
    }

    /// For the worker: its `number`th post, counted from 1.
    ///
    /// # Safety
    /// The caller is the worker, and has called [`Mailbox::done`] for all posts before `number`.
    #[inline]
    pub(crate) unsafe fn receive(&self, number: u64, spin: SpinLimit) -> Post {
        // Without an abort flag a wait has no way to fail.
        let _ = self.inbox.posted.wait(number, spin, None);
        // SAFETY: posted and not yet done, so the leader does not write the cell; its write is visible by the wait.
        self.inbox.post.with(|cell| unsafe { cell.read() })
    }

    /// For the worker: the last post received is done, nothing of it will be touched again.
    #[inline]
    pub(crate) fn done(&self) {
        self.done.advance();
    }

    /// For the leader: returns when everything posted is done.
    #[inline]
    pub(crate) fn await_done(&self, spin: SpinLimit) {
        // Only the leader, this thread, changes the count of posts.
        let _ = self.done.wait(self.inbox.posted.count(), spin, None);
    }
}
