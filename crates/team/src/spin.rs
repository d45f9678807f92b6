//! How long a worker looks before it sleeps.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::sync::spin_loop;

/// How often a wait looks at what it waits for before it parks its thread.
///
/// To spin for as long as falling asleep and being woken costs is at most twice as expensive as knowing the length of
/// the wait beforehand (Karlin, Li, Manasse, Owicki, "Empirical studies of competitive spinning", SOSP 1991).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinLimit {
    polls: u32,
}

/// What parking a thread and waking it costs on current machines, 5 to 50 us, the upper end in virtual machines.
const SLEEP_AND_WAKE_NS: u64 = 50_000;

impl SpinLimit {
    /// Parks almost at once. For more workers than processors: whoever spins then takes the processor from the worker
    /// it waits for.
    pub const SHORT: SpinLimit = SpinLimit { polls: 16 };

    /// Looks `polls` times, with a pause of the processor in between.
    pub const fn from_polls(polls: u32) -> SpinLimit {
        SpinLimit { polls }
    }

    /// Looks for about `spin_ns` nanoseconds. The first call takes some 100 us to find what one look costs here.
    pub fn from_ns(spin_ns: u64) -> SpinLimit {
        SpinLimit { polls: u32::try_from(spin_ns / poll_ns()).unwrap_or(u32::MAX) }
    }

    /// How often a wait looks before it parks.
    pub const fn polls(self) -> u32 {
        self.polls
    }
}

impl Default for SpinLimit {
    /// As long as sleeping and waking costs, about 50 us.
    fn default() -> SpinLimit {
        SpinLimit::from_ns(SLEEP_AND_WAKE_NS)
    }
}

/// What one look costs, in nanoseconds: nearly all of it the processor's pause instruction, 10 to 140 cycles.
fn poll_ns() -> u64 {
    static POLL_NS: OnceLock<u64> = OnceLock::new();
    const POLLS: u32 = 1000;
    *POLL_NS.get_or_init(|| {
        if cfg!(any(loom, miri)) {
            return 1_000;
        }
        // The quickest of several tries: being preempted makes a try longer, nothing makes it shorter.
        let once = || {
            let begin = Instant::now();
            (0..POLLS).for_each(|_| spin_loop());
            begin.elapsed()
        };
        let quickest = (0..5).map(|_| once()).min().unwrap_or(Duration::ZERO);
        (quickest.as_nanos() as u64 / u64::from(POLLS)).max(1)
    })
}
