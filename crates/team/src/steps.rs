//! Steps of one worker that other workers wait for.

use crate::abort::{Abort, Aborted};
use crate::pad::Padded;
use crate::signal::Signal;
use crate::spin::SpinLimit;

/// A count of steps on a cache line of its own: the children of a plan each have one, signal it after every step that
/// another child depends on, and wait for the counts of the others.
///
/// ```
/// use multigrain_team::{Abort, Steps, SpinLimit};
///
/// let (filled, abort) = (Steps::new(SpinLimit::default()), Abort::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| filled.signal());
///     filled.wait_for(1, &abort)
/// })?;
/// # Ok::<(), multigrain_team::Aborted>(())
/// ```
#[derive(Debug)]
pub struct Steps {
    signal: Padded<Signal>,
    spin: SpinLimit,
}

impl Steps {
    /// A count of zero, on which a wait spins up to `spin` before it parks; [`crate::Team::spin`] is a good choice.
    /// Allocates nothing; the first wait that parks does.
    pub fn new(spin: SpinLimit) -> Steps {
        Steps { signal: Padded(Signal::new(0)), spin }
    }

    /// One step more. Whatever the caller did before is visible to whoever waits for this step, or sees it in
    /// [`Steps::count`]. Wakes the waiting threads if any is parked. Returns the count after the step.
    #[inline]
    pub fn signal(&self) -> u64 {
        self.signal.advance()
    }

    /// The steps so far.
    #[inline]
    pub fn count(&self) -> u64 {
        self.signal.count()
    }

    /// Returns when the count has reached `value`: at once if it has already.
    ///
    /// # Errors
    /// [`Aborted`] if `abort` is raised while the count is smaller.
    #[inline]
    pub fn wait_for(&self, value: u64, abort: &Abort) -> Result<(), Aborted> {
        self.signal.wait(value, self.spin, Some(abort))
    }

    /// Back to zero, for the next run.
    pub fn reset(&mut self) {
        *self = Steps::new(self.spin);
    }
}

impl Default for Steps {
    fn default() -> Steps {
        Steps::new(SpinLimit::default())
    }
}
