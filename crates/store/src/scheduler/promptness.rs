//! Waking in time: the attendant runs for microseconds at a time, among workers that compute for seconds.

/// How long the attendant wants to run at a time, in nanoseconds: the least that the system knows.
#[cfg(all(target_os = "linux", not(miri)))]
const SLICE_NANOSECONDS: u64 = 100_000;

/// Asks the system to run the calling thread as soon as it is woken, although others compute: a thread that asks for
/// short slices is put before one that has a longer slice under way (Linux 6.12 and later, sched_setattr(2) and
/// Documentation/scheduler/sched-eevdf). Without it the disk stands idle for up to a slice of 3 ms each time.
///
/// Only a wish: it needs no privilege, and where it is refused or unknown, nothing changes.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn run_soon_after_waking() {
    // SAFETY: reads a number of the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SLICE_NANOSECONDS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the attributes live during the call, which reads as many bytes of them as they say; thread 0 is the
    // calling one.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// See above: not known here.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn run_soon_after_waking() {}
