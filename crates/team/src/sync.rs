//! The primitives that the protocols of this crate are written in: those of `std`, or, under `--cfg loom`, those of
//! the model checker. The protocol code itself is the same under both.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Arc, Mutex, MutexGuard},
    thread::{Builder, JoinHandle, yield_now},
    thread_local,
};

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Arc, Mutex, MutexGuard},
    thread::{Builder, JoinHandle, yield_now},
    thread_local,
};

#[cfg(loom)]
pub(crate) use park::{Thread, current, park};

#[cfg(not(loom))]
pub(crate) use std::thread::{Thread, current, park};

/// Parking for the model checker. The one that loom 0.7 brings wakes a thread that is blocked on a lock, too, as if
/// it had got the lock; so here a token, a lock and a condition variable do what `std` promises: an unpark before the
/// park is kept, several count as one.
#[cfg(loom)]
mod park {
    use loom::sync::{Arc, Condvar, Mutex};

    #[derive(Clone, Debug)]
    pub(crate) struct Thread {
        token: Arc<(Mutex<bool>, Condvar)>,
        id: loom::thread::ThreadId,
    }

    loom::thread_local! {
        static CURRENT: Thread = Thread {
            token: Arc::new((Mutex::new(false), Condvar::new())),
            id: loom::thread::current().id(),
        };
    }

    impl Thread {
        pub(crate) fn id(&self) -> loom::thread::ThreadId {
            self.id
        }

        pub(crate) fn unpark(&self) {
            *self.token.0.lock().unwrap() = true;
            self.token.1.notify_one();
        }
    }

    pub(crate) fn current() -> Thread {
        CURRENT.with(Thread::clone)
    }

    pub(crate) fn park() {
        let token = current().token;
        let mut given = token.0.lock().unwrap();
        while !*given {
            given = token.1.wait(given).unwrap();
        }
        *given = false;
    }
}

/// `std`'s cell with the interface of loom's, which lets loom see every access.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// Locks. No code of this crate panics while it holds a lock, and the data behind each stays valid at every step, so
/// a lock that is poisoned all the same is taken as it is.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
