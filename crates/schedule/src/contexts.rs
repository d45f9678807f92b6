//! More contexts than processors: which context has which processor, when it loses it, and who has it then.
//!
//! A *context* is work that can be taken from its processor and go on later: what runs on an SPE, a task on a worker. It
//! belongs to an owner, which asks for a processor and is told; somebody else, the *ticker*, looks at the processors at every
//! tick. [`Contexts`] is the state machine of both: calls in, who is bound and who has to be woken out. It knows neither threads nor
//! a clock, only ticks, so threads and the simulator drive the same machine.
//!
//! A context has a [`Class`]: a priority, and whether it has its processor for a slice or to its end. Those that wait stand in a
//! queue for each priority, the best one first. What becomes of a processor whose context's slice is over is the [`Release`]:
//!
//! | release | the processor | who can starve |
//! |---|---|---|
//! | [`Release::Free`] | is free; the next context's owner is woken, and the last one's, and whoever comes first has it | any but those that some other scheduler lets come first |
//! | [`Release::Bind`] | is bound to the next context by the ticker itself | nobody, see below |
//! | [`Release::Gang`] | the same, but contexts of one gang have processors together or not at all | nobody |
//!
//! The first is Linux's scheduler of SPEs as of 2.6.24, the second as of 2.6.25 (arch/powerpc/platforms/cell/spufs/sched.c); gangs are
//! those of Ousterhout, "Scheduling techniques for concurrent systems" (1982), in order of arrival.
//!
//! **A bound.** Let all contexts be of one priority with slices of `s` ticks on `p` processors, released by `Bind`. A context that
//! waits behind `i` others has a processor within `(i / p + 1) s` ticks: whoever has a processor loses it within `s` ticks while
//! somebody waits, so in `s` ticks each of the `p` processors goes to the head of the queue at least once; and nobody joins the queue but at its
//! end. So among `n` contexts nobody waits for longer than `((n - p - 1) / p + 1) s` ticks, and no processor is free while somebody waits.
//! `tests/all/contexts.rs` holds both.

mod machine;

pub use machine::{Contexts, Entered, Handed};

/// How good a context is, and whether it shares its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// 0 is best; those below 100 are real time: they take a processor from a worse one rather than wait. 120 is usual.
    priority: u8,
    sliced: bool,
}

/// Priorities that there are. Source: Linux, `MAX_PRIO`.
const PRIORITIES: u8 = 140;
/// Priorities before this are real time. Source: Linux, `MAX_RT_PRIO`.
const REAL_TIME: u8 = 100;
/// The priority of nice level 0.
const USUAL: u8 = 120;

impl Class {
    /// Takes turns, by how nice it is, from -20 to 19; beyond as these.
    pub fn normal(nice: i8) -> Class {
        Class { priority: USUAL.saturating_add_signed(nice.clamp(-20, 19)), sliced: true }
    }

    /// Has a processor to its end: real time, of a priority from 1 to 99, more is better; beyond as these.
    pub fn fifo(priority: u8) -> Class {
        Class { priority: REAL_TIME - 1 - priority.clamp(1, 99), sliced: false }
    }

    /// Real time as [`Class::fifo`], and takes turns with others of its priority.
    pub fn round_robin(priority: u8) -> Class {
        Class { sliced: true, ..Class::fifo(priority) }
    }

    /// Whether it takes a processor from a worse context.
    pub fn is_real_time(self) -> bool {
        self.priority < REAL_TIME
    }
}

/// What becomes of a processor whose context has had its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// It is free, and goes to whoever comes first.
    Free,
    /// It goes to the context that has waited longest.
    Bind,
    /// It goes to the gang that has waited longest, once all of that fits.
    Gang,
}

/// The length of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slices {
    /// So many ticks for all, one at least.
    Equal(u32),
    /// As Linux gives them to SPEs: at nice 0 what is next to 100 ms, by priority from 5 to 800 ms, in ticks of ten interrupts.
    Linux {
        /// Interrupts of the timer a second: HZ.
        interrupts_per_second: u32,
    },
}

impl Slices {
    /// Ticks of a context of this class.
    pub fn ticks(self, class: Class) -> u32 {
        match self {
            Slices::Equal(ticks) => ticks.max(1),
            Slices::Linux { interrupts_per_second: hz } => {
                let (least, usual) = ((5 * hz / 10_000).max(1), 100 * hz / 10_000);
                let usual = if class.priority < USUAL { 4 * usual } else { usual };
                (usual * u32::from(PRIORITIES - class.priority) / 20).max(least)
            }
        }
    }
}
