//! What a thread is to an operating system's scheduler: how nice it is, or that it is real time.

/// The scheduling class of a thread and its rank in it. Schedulers that know no classes treat all threads alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Linux's SCHED_NORMAL: a share of the processor by how nice it is, from -20 to 19; 0 is usual.
    Normal {
        /// The nice level; less is more.
        nice: i8,
    },
    /// Real time: runs before all normal threads, and until it sleeps before all of no higher priority.
    RealTime {
        /// 1 to 99; more is more.
        priority: u8,
        /// Whether threads of one priority take turns (SCHED_RR), or whoever came first goes on (SCHED_FIFO).
        turns: bool,
    },
}

impl Default for Class {
    fn default() -> Class {
        Class::Normal { nice: 0 }
    }
}

/// Weights of the nice levels -20 to 19: each step is a quarter more or less, so that it moves a tenth of the processor.
/// Source: Linux 2.6.24, `prio_to_weight`.
const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight of a thread of nice 0.
pub(super) const WEIGHT_USUAL: u64 = 1024;

impl Class {
    /// What it counts for where the load of hardware threads is compared, and for its share if it is normal. Nice levels beyond
    /// -20 and 19 count as these.
    pub(super) fn weight(self) -> u64 {
        match self {
            Class::Normal { nice } => WEIGHTS[(nice.clamp(-20, 19) + 20) as usize],
            Class::RealTime { .. } => 2 * WEIGHTS[0],
        }
    }

    /// Where it stands among real-time threads, the first first; `None` if it is none.
    pub(super) fn real_time(self) -> Option<u8> {
        match self {
            Class::Normal { .. } => None,
            Class::RealTime { priority, .. } => Some(99 - priority.clamp(1, 99)),
        }
    }
}
