//! What happens to a machine, and what it decides.

use super::workers::Workers;
use std::fmt;

/// A strand off-loads a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The task's name, chosen by whoever drives the machine: no other task that waits or runs has it.
    pub task: u64,
    /// The strand. It has no other task that waits or runs.
    pub strand: u32,
    /// Which function it is: tasks of one kind and about as many iterations take about as long.
    pub kind: u32,
    /// Parts of the task's loop that can be executed at once: iterations, or chunks of them. 0 or 1 if there is no
    /// loop; then the task has one worker whatever the policy.
    pub iterations: u32,
    /// The worker on which the task is best begun, if it is idle: the one that executes the strand.
    pub near: Option<u32>,
}

/// A task is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its name.
    pub task: u64,
    /// From the start of the task to its end, measured.
    pub span_ns: u64,
    /// The time that its workers computed in, all of them together; at most `span_ns` times their number. What is
    /// missing is what they waited.
    pub busy_ns: u64,
}

/// What a machine decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A task starts now.
    Start(Start),
    /// The task that has just arrived does not start yet.
    Wait {
        /// The task.
        task: u64,
        /// Its strand.
        strand: u32,
        /// Why not.
        reason: Reason,
    },
}

/// A task starts on these workers, which were idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The task.
    pub task: u64,
    /// Its strand.
    pub strand: u32,
    /// The worker that leads: [`Arrival::near`] where that was idle.
    pub master: u32,
    /// All of its workers, the master among them; more than one only for a loop.
    pub workers: Workers,
    /// Why so many.
    pub reason: Reason,
}

/// Why a task starts on so many workers, or does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The task has no loop, or one of a single part.
    NoLoop,
    /// The policy gives every task one worker.
    OneEach,
    /// The policy gives the strand this worker and no other.
    Home,
    /// The policy gives every loop so many workers.
    Fixed {
        /// Workers of a loop.
        workers: u32,
    },
    /// mgps has not seen enough off-loads yet.
    Unseen,
    /// mgps: task parallelism uses more than half of the workers.
    TaskParallelism {
        /// U: tasks executed at once in the last window.
        at_once: u32,
    },
    /// mgps: at most half of the workers were used, so loops are spread.
    LoopParallelism {
        /// U: tasks executed at once in the last window.
        at_once: u32,
        /// T: tasks that wanted workers at once in it.
        wanting: u32,
    },
    /// marginal: as many workers as this strand's share of them.
    Share {
        /// Workers that the share allows.
        workers: u32,
    },
    /// marginal: fewer than the share, since more were measured to be slower.
    Slower {
        /// Workers that the share allows.
        workers: u32,
    },
    /// marginal: a number of workers whose time is not known, or has not been looked at for long.
    Trial {
        /// Workers that the share allows.
        workers: u32,
    },
    /// Fewer workers than the policy wanted, because the others are not idle.
    FewIdle {
        /// Workers that the policy wanted.
        wanted: u32,
    },
    /// Not started: no worker is idle, or not the strand's own.
    NoneIdle,
    /// Not started: the policy waits until so many are idle.
    TeamIncomplete {
        /// Workers that the policy wants.
        wanted: u32,
    },
    /// Not started: a task that arrived before waits for its workers.
    Behind,
}

impl Reason {
    /// A number for traces: the same in every version.
    pub fn code(self) -> u8 {
        match self {
            Reason::NoLoop => 0,
            Reason::OneEach => 1,
            Reason::Home => 2,
            Reason::Fixed { .. } => 3,
            Reason::Unseen => 4,
            Reason::TaskParallelism { .. } => 5,
            Reason::LoopParallelism { .. } => 6,
            Reason::Share { .. } => 7,
            Reason::Slower { .. } => 8,
            Reason::Trial { .. } => 9,
            Reason::FewIdle { .. } => 10,
            Reason::NoneIdle => 11,
            Reason::TeamIncomplete { .. } => 12,
            Reason::Behind => 13,
        }
    }

    /// What each code means, in words without the numbers.
    pub const NAMES: [&str; 14] = [
        "no loop to share",
        "one worker for each task",
        "the strand's own worker",
        "a fixed number of workers for each loop",
        "one worker until a window of off-loads has been seen",
        "tasks at once keep over half of the workers busy",
        "tasks at once leave half of the workers idle",
        "the strand's share of the workers",
        "fewer workers than the share are faster",
        "measures another number of workers than the share",
        "the other workers wanted are busy",
        "waits: no worker is idle",
        "waits for an idle team",
        "waits behind a task that arrived before",
    ];

    /// The numbers behind it, for traces: zero where there is none.
    pub fn numbers(self) -> [u32; 2] {
        match self {
            Reason::TaskParallelism { at_once } => [at_once, 0],
            Reason::LoopParallelism { at_once, wanting } => [at_once, wanting],
            Reason::Fixed { workers }
            | Reason::Share { workers }
            | Reason::Slower { workers }
            | Reason::Trial { workers }
            | Reason::FewIdle { wanted: workers }
            | Reason::TeamIncomplete { wanted: workers } => [workers, 0],
            Reason::NoLoop | Reason::OneEach | Reason::Home | Reason::Unseen | Reason::NoneIdle | Reason::Behind => {
                [0, 0]
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoLoop => write!(f, "no loop to share"),
            Reason::OneEach => write!(f, "one worker for each task"),
            Reason::Home => write!(f, "the strand's own worker"),
            Reason::Fixed { workers } => write!(f, "{workers} workers for each loop"),
            Reason::Unseen => write!(f, "one worker until a window of off-loads has been seen"),
            Reason::TaskParallelism { at_once } => {
                write!(f, "{at_once} tasks at once keep over half of the workers busy")
            }
            Reason::LoopParallelism { at_once, wanting } => {
                write!(f, "{at_once} tasks at once leave half of the workers idle, {wanting} want them")
            }
            Reason::Share { workers } => write!(f, "{workers} workers are the strand's share"),
            Reason::Slower { workers } => write!(f, "its share is {workers} workers, fewer are faster"),
            Reason::Trial { workers } => write!(f, "measures another number of workers than its share of {workers}"),
            Reason::FewIdle { wanted } => write!(f, "{wanted} workers wanted, the others are busy"),
            Reason::NoneIdle => write!(f, "waits: no worker is idle"),
            Reason::TeamIncomplete { wanted } => write!(f, "waits: {wanted} idle workers wanted"),
            Reason::Behind => write!(f, "waits: behind a task that arrived before"),
        }
    }
}
