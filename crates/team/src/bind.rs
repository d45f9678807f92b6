//! Binding threads to processors. Where the system refuses it, or does not know it, nothing is bound and all else
//! works.

#[cfg(all(target_os = "linux", not(any(loom, miri))))]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// A set of processors on which a thread may run.
    pub(crate) type Mask = CpuSet;

    /// The processors of the calling thread; `None` if the system does not say.
    pub(crate) fn current() -> Option<Mask> {
        sched_getaffinity(None).ok()
    }

    /// The processors of a mask, in ascending order.
    pub(crate) fn processors(mask: &Mask) -> Vec<usize> {
        (0..CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect()
    }

    /// Binds the calling thread to one processor; whether the system did.
    pub(crate) fn to(processor: usize) -> bool {
        let mut mask = CpuSet::new();
        mask.set(processor);
        restore(&mask)
    }

    /// Binds another thread of this process, by the number that the system has for it; whether the system did.
    pub(crate) fn other_to(thread: u32, processor: usize) -> bool {
        let mut mask = CpuSet::new();
        mask.set(processor);
        let thread = rustix::thread::Pid::from_raw(thread.cast_signed());
        thread.is_some_and(|thread| sched_setaffinity(Some(thread), &mask).is_ok())
    }

    /// Lets the calling thread run on these processors only; whether the system did.
    pub(crate) fn among(processors: &[usize]) -> bool {
        let mut mask = CpuSet::new();
        processors.iter().for_each(|processor| mask.set(*processor));
        restore(&mask)
    }

    /// Gives the calling thread a mask back; whether the system did.
    pub(crate) fn restore(mask: &Mask) -> bool {
        sched_setaffinity(None, mask).is_ok()
    }

    /// The number that the system has for the calling thread.
    pub(crate) fn thread() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
    }
}

#[cfg(not(all(target_os = "linux", not(any(loom, miri)))))]
mod system {
    /// A set of processors on which a thread may run: not known here.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Mask;

    pub(crate) fn current() -> Option<Mask> {
        None
    }

    pub(crate) fn processors(_: &Mask) -> Vec<usize> {
        Vec::new()
    }

    pub(crate) fn to(_: usize) -> bool {
        false
    }

    pub(crate) fn other_to(_: u32, _: usize) -> bool {
        false
    }

    pub(crate) fn among(_: &[usize]) -> bool {
        false
    }

    pub(crate) fn restore(_: &Mask) -> bool {
        false
    }

    pub(crate) fn thread() -> u32 {
        0
    }
}

pub(crate) use system::{among, other_to, thread, to};

/// The processors that the calling thread may use, in ascending order; empty if the system does not say.
pub(crate) fn allowed() -> Vec<usize> {
    system::current().map_or_else(Vec::new, |mask| system::processors(&mask))
}

/// Binds the calling thread until it is dropped; then its former mask is back.
#[derive(Debug)]
pub(crate) struct Bound {
    before: Option<system::Mask>,
}

impl Bound {
    pub(crate) fn to(processor: usize) -> Bound {
        // Without the former mask there would be no way back, so nothing is bound.
        let before = system::current().filter(|_| system::to(processor));
        Bound { before }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some(mask) = &self.before {
            system::restore(mask);
        }
    }
}
