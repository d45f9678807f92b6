//! Who attends to a device: whoever waits for it anyway, and only where nobody does, a thread of its own.
//!
//! A wake-up of another thread costs more than many a transfer takes (50 to 100 us on a virtual machine, where it is a
//! message between processors). So there is no thread between a caller and the device: who submits hands its
//! operations over itself, and who waits blocks at the device itself and carries on whatever completes meanwhile. The
//! *attendant*, a thread of its own, steps in only while something would stand still otherwise: operations that are yet
//! to be started, bytes that are yet to be copied, and nobody who waits.
//!
//! At any time at most one thread is blocked at the device: the *driver*. Others that wait are *followers*; they are
//! woken whenever the driver comes back from the device, and the first of them that has to wait on drives. The lock is never held by a
//! blocked driver, so submitting never waits for the device.
//!
//! Named races, all hunted by `model` below under loom:
//! * **The stolen completion.** Who takes completions while another is blocked at the device may take the one that it is
//!   blocked for. So only the driver takes completions, or anybody while there is none.
//! * **The orphaned device.** A driver leaves when its own transfer is done, although others' are not. Who leaves with
//!   the lock leaves it to followers, who have been woken, else calls the attendant if there is a need.
//! * **The follower's last look.** A follower looks whether its transfer is done under the same lock under which
//!   transfers are completed, so it cannot fall asleep in between.

#[cfg(all(test, loom))]
mod model;

use std::sync::PoisonError;

use crate::sync::{Condvar, Mutex, MutexGuard};

/// What a desk attends to. All of it is called under the lock of the desk and must not block.
pub(crate) trait Device {
    /// Takes what is complete, carries it on, starts what can be started. Whether anything was complete.
    fn progress(&mut self) -> bool;

    /// Nothing is under way and nothing is left to start.
    fn is_idle(&self) -> bool;

    /// Whether something would stand still, or be seen too late, until somebody calls [`progress`](Self::progress).
    fn needs_attention(&self) -> bool;
}

/// Where a driver blocks.
pub(crate) trait News {
    /// Blocks until something is complete that [`Device::progress`] has not taken; may return early. Only called while
    /// something is under way.
    fn wait(&self);
}

/// A device and those who wait for it.
pub(crate) struct Desk<D, N> {
    state: Mutex<State<D>>,
    news: N,
    followers: Condvar,
    attendant: Condvar,
}

struct State<D> {
    device: D,
    /// Somebody is blocked at the device.
    driven: bool,
    /// How many wait for the driver.
    following: usize,
    /// The attendant ends once the device is idle.
    stop: bool,
}

impl<D: Device, N: News> Desk<D, N> {
    pub(crate) fn new(device: D, news: N) -> Desk<D, N> {
        let state = State { device, driven: false, following: 0, stop: false };
        Desk { state: Mutex::new(state), news, followers: Condvar::new(), attendant: Condvar::new() }
    }

    /// Does something with the device (submits a transfer) without waiting for it.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut D) -> R) -> R {
        let mut state = self.lock();
        let result = act(&mut state.device);
        if state.following > 0 {
            // The act may have completed what was refused.
            self.followers.notify_all();
        }
        self.pass_on(state);
        result
    }

    /// Carries on what is complete, if nobody else does.
    pub(crate) fn look(&self) {
        let mut state = self.lock();
        if !state.driven && state.device.progress() && state.following > 0 {
            self.followers.notify_all();
        }
        self.pass_on(state);
    }

    /// Blocks until `done`, which changes under the lock of the desk only, driving the device meanwhile.
    pub(crate) fn wait_until(&self, done: impl Fn() -> bool) {
        let mut state = self.lock();
        while !done() {
            state = if state.driven { self.follow(state) } else { self.drive(state) };
        }
        self.pass_on(state);
    }

    /// What the attendant does until [`stop`](Self::stop) is called and the device is idle.
    pub(crate) fn attend(&self) {
        let mut state = self.lock();
        while !(state.stop && state.device.is_idle()) {
            let others = state.driven || state.following > 0;
            let needed = !others && (state.stop || state.device.needs_attention());
            state = if needed { self.drive(state) } else { wait(&self.attendant, state) };
        }
    }

    /// Lets the attendant end once the device is idle.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.attendant.notify_one();
    }

    fn follow<'a>(&self, mut state: MutexGuard<'a, State<D>>) -> MutexGuard<'a, State<D>> {
        state.following += 1;
        let mut state = wait(&self.followers, state);
        state.following -= 1;
        state
    }

    /// Carries on what is complete; if nothing is, blocks at the device until something is.
    fn drive<'a>(&'a self, mut state: MutexGuard<'a, State<D>>) -> MutexGuard<'a, State<D>> {
        if !state.device.progress() {
            if state.device.is_idle() {
                // What was waited for failed before it was started.
                return state;
            }
            state.driven = true;
            drop(state);
            self.news.wait();
            state = self.lock();
            state.driven = false;
            state.device.progress();
        }
        if state.following > 0 {
            self.followers.notify_all();
        }
        state
    }

    /// Leaves the desk: the attendant may have to drive. Followers need no word here: whoever began to follow did so
    /// while somebody drove, and a driver wakes all of them when it stops.
    fn pass_on(&self, state: MutexGuard<'_, State<D>>) {
        let others = state.driven || state.following > 0;
        if !others && (state.stop || state.device.needs_attention()) {
            self.attendant.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
