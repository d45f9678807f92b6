//! A word that threads wait for, a count or a set of bits: the one place where this crate spins, sleeps and wakes. SLEEP.md names the states
//! and proves that no wake-up is lost; the names in brackets below are those of its races.

use crate::abort::{Abort, Aborted};
use crate::spin::SpinLimit;
use crate::sync::{AtomicU64, Mutex, Ordering, Thread, current, lock, park, spin_loop};

/// Bit 0 of the word, whatever the others mean: a thread has announced that it is about to park, or has parked.
pub(crate) const SLEEPY: u64 = 1;

/// The count starts at bit 1. At a step a nanosecond its 63 bits last for 292 years.
const ONE_STEP: u64 = 2;

/// What no word is: as a count it would take centuries, as a set of bits the last is not used.
const NEVER: u64 = u64::MAX;

/// The count that a word holds.
#[inline]
pub(crate) const fn steps(word: u64) -> u64 {
    word / ONE_STEP
}

/// A count of steps, and the threads asleep until it has grown; or a set of bits, and the threads asleep until some of
/// them have changed (see `collective::register`).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Signal {
    /// First, so that what is published by a step can share its cache line by lying just before.
    word: AtomicU64,
    /// Threads that have announced themselves.
    sleepers: Mutex<Vec<Thread>>,
}

impl Signal {
    /// A count of zero. Up to `waiters` threads can sleep on it without allocation; with none, making it allocates
    /// nothing.
    pub(crate) fn new(waiters: usize) -> Signal {
        Signal { word: AtomicU64::new(0), sleepers: Mutex::new(Vec::with_capacity(waiters)) }
    }

    /// The steps so far. What happened before each of them is visible to the caller.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        // Acquire pairs with the Release in `advance`. The other writers of the word only ever modify what they read,
        // so they stay within the release sequence of the last step.
        self.word.load(Ordering::Acquire) / ONE_STEP
    }

    /// One step: what the caller did before is visible to whoever sees it. Returns the count after it.
    #[inline]
    pub(crate) fn advance(&self) -> u64 {
        // One read-modify-write both publishes the step and learns whether anybody sleeps [lost wake-up].
        let before = self.word.fetch_add(ONE_STEP, Ordering::Release);
        if before & SLEEPY != 0 {
            self.wake_all();
        }
        before / ONE_STEP + 1
    }

    /// As [`Signal::advance`], but of those that sleep only the one that fell asleep last is woken: for waiters of whom
    /// any can do what the step makes possible.
    #[inline]
    pub(crate) fn advance_for_one(&self) {
        let before = self.word.fetch_add(ONE_STEP, Ordering::Release);
        if before & SLEEPY != 0 {
            self.wake_one();
        }
    }

    /// Wakes one more of those that sleep, if any does, without a step.
    #[inline]
    pub(crate) fn pass_on(&self) {
        // Relaxed: whoever announces itself after this look has looked at the word after all that the caller saw.
        if self.word.load(Ordering::Relaxed) & SLEEPY != 0 {
            self.wake_one();
        }
    }

    /// Returns when the count has reached `target`, or when `abort` is raised before.
    #[inline]
    pub(crate) fn wait(&self, target: u64, spin: SpinLimit, abort: Option<&Abort>) -> Result<(), Aborted> {
        self.wait_until(|word| word / ONE_STEP >= target, spin, abort)
    }

    /// For a count that one thread only advances: up to `count`, which is more than it is. What the caller did before is
    /// visible to whoever sees it.
    #[inline]
    pub(crate) fn advance_to(&self, count: u64) {
        // Relaxed: of the count the caller sees its own last step; whether anybody sleeps is learnt by the addition.
        let steps = count - self.word.load(Ordering::Relaxed) / ONE_STEP;
        let before = self.word.fetch_add(steps * ONE_STEP, Ordering::Release);
        if before & SLEEPY != 0 {
            self.wake_all();
        }
    }

    /// For a word that is a set of bits instead of a count: flips `bits`, of which none is [`SLEEPY`]. What the caller
    /// did before is visible to whoever sees it.
    #[inline]
    pub(crate) fn flip(&self, bits: u64) {
        // As in `advance`: one operation publishes, and learns whether anybody sleeps.
        let before = self.word.fetch_xor(bits, Ordering::Release);
        if before & SLEEPY != 0 {
            self.wake_all();
        }
    }

    /// For a word that is a set of bits: sets `bits`, none of them [`SLEEPY`], and returns the word as it was. What the
    /// caller did before is visible to whoever sees them.
    #[inline]
    pub(crate) fn raise(&self, bits: u64) -> u64 {
        let before = self.word.fetch_or(bits, Ordering::Release);
        if before & SLEEPY != 0 {
            self.wake_all();
        }
        before
    }

    /// Clears `bits`, none of them [`SLEEPY`], and returns the word as it was. What the caller did before is visible to
    /// whoever sees them cleared, and what was done before they were set is visible to the caller.
    #[inline]
    pub(crate) fn lower(&self, bits: u64) -> u64 {
        let before = self.word.fetch_and(!bits, Ordering::AcqRel);
        if before & SLEEPY != 0 {
            self.wake_all();
        }
        before
    }

    /// Clears the bit `from` and sets the bit `to` in one step, if `from` is set: then true, and what was done before it
    /// was set is visible to the caller. Wakes nobody.
    #[inline]
    pub(crate) fn turn(&self, from: u64, to: u64) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & from != 0 {
            match self.word.compare_exchange_weak(word, word & !from | to, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// The word, [`SLEEPY`] included. What was done before each of its bits was set is visible to the caller.
    #[inline]
    pub(crate) fn word(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }

    /// Returns when the word satisfies `ready`, which must not look at [`SLEEPY`], or when `abort` is raised before.
    #[inline]
    pub(crate) fn wait_until(
        &self,
        ready: impl Fn(u64) -> bool,
        spin: SpinLimit,
        abort: Option<&Abort>,
    ) -> Result<(), Aborted> {
        if self.spin_until(&ready, spin, abort)? { Ok(()) } else { self.sleep(&ready, abort) }
    }

    /// As [`Signal::wait_until`], but false instead of parking: then the caller may look at something else before it goes
    /// on with [`Signal::sleep_until`].
    #[inline]
    pub(crate) fn spin_until(
        &self,
        ready: impl Fn(u64) -> bool,
        spin: SpinLimit,
        abort: Option<&Abort>,
    ) -> Result<bool, Aborted> {
        // Acquire as in `count`.
        self.spin(|word| word.load(Ordering::Acquire), ready, spin, abort)
    }

    /// As [`Signal::spin_until`], for the one thread that waits here and next writes on this cache line: each look asks for
    /// the line as for writing, so that it comes once and not twice.
    #[inline]
    pub(crate) fn spin_owning(
        &self,
        ready: impl Fn(u64) -> bool,
        spin: SpinLimit,
        abort: Option<&Abort>,
    ) -> Result<bool, Aborted> {
        // An exchange that never succeeds; Acquire as in `count`.
        let look = |word: &AtomicU64| match word.compare_exchange(NEVER, NEVER, Ordering::Acquire, Ordering::Acquire) {
            Ok(now) | Err(now) => now,
        };
        self.spin(look, ready, spin, abort)
    }

    #[inline(always)]
    fn spin(
        &self,
        look: impl Fn(&AtomicU64) -> u64,
        ready: impl Fn(u64) -> bool,
        spin: SpinLimit,
        abort: Option<&Abort>,
    ) -> Result<bool, Aborted> {
        let mut polls = spin.polls();
        loop {
            if ready(look(&self.word)) {
                return Ok(true);
            }
            if abort.is_some_and(Abort::is_raised) {
                return Err(Aborted);
            }
            if polls == 0 {
                return Ok(false);
            }
            polls -= 1;
            spin_loop();
        }
    }

    /// As [`Signal::wait_until`], without spinning.
    #[cold]
    pub(crate) fn sleep_until(&self, ready: impl Fn(u64) -> bool, abort: Option<&Abort>) -> Result<(), Aborted> {
        self.sleep(&ready, abort)
    }

    #[cold]
    #[inline(never)]
    fn sleep(&self, ready: &dyn Fn(u64) -> bool, abort: Option<&Abort>) -> Result<(), Aborted> {
        let me = current();
        loop {
            if !self.announce(ready, &me) {
                return Ok(());
            }
            if !abort.is_none_or(|abort| abort.announce(&me)) {
                self.retract(&me);
                return Err(Aborted);
            }
            // Between the announcements and here the thread may already have been unparked; then this returns at
            // once [early unpark]. It may also return for no reason, or for an old one [stale unpark]: look again.
            park();
            self.retract(&me);
            if let Some(abort) = abort {
                abort.retract(&me);
            }
            if ready(self.word.load(Ordering::Acquire)) {
                return Ok(());
            }
            if abort.is_some_and(Abort::is_raised) {
                return Err(Aborted);
            }
        }
    }

    /// Enters the calling thread among the sleepers, unless the word is `ready`: then false.
    fn announce(&self, ready: &dyn Fn(u64) -> bool, me: &Thread) -> bool {
        // The lock is held from before the bit is set until the thread is in the list, so that a step that finds the
        // bit finds the thread [empty list].
        let mut sleepers = lock(&self.sleepers);
        let mut seen = self.word.load(Ordering::Acquire);
        loop {
            if ready(seen) {
                return false;
            }
            // The bit is set in the very state of the word that was found not ready [lost wake-up]. Relaxed is
            // enough on success: the bit carries no data, the lock carries the list. Acquire on failure as in `count`.
            match self.word.compare_exchange_weak(seen, seen | SLEEPY, Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        sleepers.push(me.clone());
        true
    }

    /// Takes the calling thread off the sleepers. Leaves the bit: at worst one step finds an empty list.
    fn retract(&self, me: &Thread) {
        lock(&self.sleepers).retain(|sleeper| sleeper.id() != me.id());
    }

    #[cold]
    #[inline(never)]
    fn wake_one(&self) {
        let mut sleepers = lock(&self.sleepers);
        let woken = sleepers.pop();
        if sleepers.is_empty() {
            // As in `wake_all`.
            self.word.fetch_and(!SLEEPY, Ordering::Relaxed);
        }
        drop(sleepers);
        if let Some(woken) = woken {
            woken.unpark();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_all(&self) {
        let mut sleepers = lock(&self.sleepers);
        // Relaxed: whoever announces later does so under the lock; whoever reads the count is synchronised by the step.
        self.word.fetch_and(!SLEEPY, Ordering::Relaxed);
        sleepers.drain(..).for_each(|sleeper| sleeper.unpark());
    }
}
