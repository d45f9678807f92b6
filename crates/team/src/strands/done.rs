//! Tasks that are done and have not departed yet. One of the modules of this crate with `unsafe` in it.
//!
//! A worker that has executed a whole task need not take the lock for it: it leaves the task here, and whoever takes the
//! lock next lets it depart. So with one host the state under the lock stays in that host's cache. Only where a task
//! waits for a worker, the worker is told so, in the very operation that leaves its task, and takes the lock itself
//! [nobody departs].

use crate::sync::{AtomicPtr, Ordering, UnsafeCell};

/// Bit 0 of the word: a task waits for a worker.
const WANTED: usize = 1;

/// What links a task into the list; part of it.
#[derive(Debug)]
#[repr(align(8))]
pub(crate) struct Link {
    next: UnsafeCell<*mut Link>,
}

impl Link {
    pub(crate) fn new() -> Link {
        Link { next: UnsafeCell::new(std::ptr::null_mut()) }
    }
}

/// A list that all may push to, and one at a time takes as a whole.
#[derive(Debug)]
pub(crate) struct Done {
    word: AtomicPtr<Link>,
}

impl Done {
    pub(crate) fn new() -> Done {
        Done { word: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Leaves a task. True if a task waits for a worker, and the caller is to see that this one departs. What the caller
    /// did before is visible to whoever takes the task.
    ///
    /// # Safety
    /// The link lives until the task is taken, and nobody else uses it. After this call it may be gone.
    pub(crate) unsafe fn push(&self, link: *mut Link) -> bool {
        let mut before = self.word.load(Ordering::Relaxed);
        loop {
            let wanted = before.addr() & WANTED;
            // SAFETY: the link is the caller's until the exchange succeeds.
            unsafe { (*link).next.with_mut(|next| *next = before.map_addr(|address| address & !WANTED)) };
            let after = link.map_addr(|address| address | wanted);
            match self.word.compare_exchange_weak(before, after, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return wanted != 0,
                Err(now) => before = now,
            }
        }
    }

    /// Whether there is anything to take; a hint.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.word.load(Ordering::Relaxed).addr() & !WANTED == 0
    }

    /// Says whether tasks wait for workers from now on, and takes all that was left, the first first. What was done before
    /// each was left is visible to the caller.
    ///
    /// # Safety
    /// One thread at a time calls this.
    pub(crate) unsafe fn take(&self, wanted: bool, mut each: impl FnMut(*mut Link)) {
        let empty = std::ptr::null_mut::<Link>().map_addr(|address| address | usize::from(wanted));
        let mut rest = self.word.swap(empty, Ordering::AcqRel).map_addr(|address| address & !WANTED);
        let mut first = std::ptr::null_mut();
        while !rest.is_null() {
            // SAFETY: taken off the list, so it is this thread's, and it lives: its task has not departed.
            let next = unsafe { (*rest).next.with_mut(|next| std::mem::replace(&mut *next, first)) };
            (first, rest) = (rest, next);
        }
        while !first.is_null() {
            // SAFETY: as above; read before the task departs.
            let next = unsafe { (*first).next.with(|next| *next) };
            each(first);
            first = next;
        }
    }
}
