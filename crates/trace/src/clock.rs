//! The clock of the records: the processor's time-stamp counter where it runs at a constant rate, the operating
//! system's monotonic clock in nanoseconds everywhere else.
//!
//! A read of the counter takes about 8 ns on current x86-64 processors, a read of the monotonic clock about 25. The
//! choice is made once per process; the rate is found when it is asked for, from all the time that has passed since. The counters of the cores are taken to agree, as the operating
//! system arranges for processors that report an invariant counter.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A moment, in ticks of the clock of this process. Only differences mean anything; see [`ticks_per_second`].
///
/// The default, zero, is what a recorder that is off hands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(pub u64);

impl Tick {
    /// Ticks from `earlier` to this moment; zero if `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// How long the counter is compared with the monotonic clock, at least, to find its rate. The two reads at either end are
/// uncertain by some 50 ns together, so 4 ms give the rate to about one part in 80,000.
const CALIBRATION: Duration = Duration::from_millis(4);

/// Which clock is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// True for the time-stamp counter.
    pub(crate) counter: bool,
}

/// The clock of this process, and what both clocks said when it was chosen.
struct Chosen {
    clock: Clock,
    begin: (Instant, u64),
}

fn chosen() -> &'static Chosen {
    static CHOSEN: OnceLock<Chosen> = OnceLock::new();
    CHOSEN.get_or_init(|| Chosen { clock: Clock { counter: counter_is_invariant() }, begin: both_clocks() })
}

impl Clock {
    /// The clock of this process.
    pub(crate) fn get() -> Clock {
        chosen().clock
    }

    /// The present moment.
    #[inline]
    pub(crate) fn now(self) -> Tick {
        if self.counter { Tick(read_counter()) } else { Tick(monotonic_ns()) }
    }
}

/// The present moment on the clock of this process.
pub fn now() -> Tick {
    Clock::get().now()
}

/// The rate of [`Tick`]s in this process. The first call takes up to 4 ms, less by the time since the first moment was asked for.
pub fn ticks_per_second() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let chosen = chosen();
        if chosen.clock.counter { calibrate(chosen.begin) } else { 1e9 }
    })
}

fn monotonic_ns() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn calibrate((begin, begin_ticks): (Instant, u64)) -> f64 {
    while begin.elapsed() < CALIBRATION {
        std::hint::spin_loop();
    }
    let (end, end_ticks) = both_clocks();
    end_ticks.wrapping_sub(begin_ticks).max(1) as f64 / end.duration_since(begin).as_secs_f64()
}

/// Both clocks at one moment: of several tries the one in which the least time passed around the read of the
/// monotonic clock, so that being preempted between the two reads does not spoil the rate.
fn both_clocks() -> (Instant, u64) {
    const TRIES: usize = 16;
    let once = || {
        let before = read_counter();
        let moment = Instant::now();
        let width = read_counter().wrapping_sub(before);
        (width, moment, before.wrapping_add(width / 2))
    };
    let mut best = once();
    for _ in 1..TRIES {
        let next = once();
        if next.0 < best.0 {
            best = next;
        }
    }
    (best.1, best.2)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn read_counter() -> u64 {
    // SAFETY: the instruction exists on every x86-64 processor and only writes registers.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Whether the processor says that its counter runs at one rate in every power state ("invariant TSC", leaf
/// 8000_0007h of CPUID, EDX bit 8; AMD64 manual volume 3, Intel manual volume 3 section 19.17.1).
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn counter_is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    const HIGHEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    // Compilers from 1.94 on take the intrinsic for safe, earlier ones do not.
    #[allow(unused_unsafe)]
    // SAFETY: the instruction exists on every x86-64 processor and only writes registers.
    unsafe {
        __cpuid(HIGHEST).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
    }
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
fn read_counter() -> u64 {
    monotonic_ns()
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
fn counter_is_invariant() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_runs_backwards_on_one_thread() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn slept_time_is_in_the_ticks() {
        let begin = now();
        std::thread::sleep(Duration::from_millis(10));
        let seconds = now().since(begin) as f64 / ticks_per_second();
        // The rate is known to better than one part in a hundred even on a busy machine.
        assert!(seconds > 0.0099, "{seconds}");
    }

    #[test]
    fn differences_do_not_underflow() {
        assert_eq!(Tick(3).since(Tick(5)), 0);
    }
}
