//! Who runs the operating system, and how more contexts than processors share these. Plans do not depend on either: only the
//! simulator looks at them.

use serde::Serialize;

/// The processors that run the operating system and the control threads of what lies below a memory: a Cell's PPE.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Cores, at least 1.
    pub cores: u32,
    /// Hardware threads of a core, at least 1.
    pub threads_per_core: u32,
    /// How the operating system shares them among threads.
    pub scheduler: ThreadScheduler,
    /// Interrupts of its timer, 100 to 10000.
    pub interrupts_per_second: u32,
    /// Where these constants come from.
    pub source: Option<String>,
}

/// How an operating system shares hardware threads among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ThreadScheduler {
    /// The fair scheduler of Linux 2.6.24, on siblings of a core.
    #[serde(rename = "linux-2.6.24")]
    Linux2624,
}

/// That a processor can be taken from what it computes, which goes on later: several contexts share it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contexts {
    /// How they share it.
    pub scheduler: ContextScheduler,
    /// Binding a context to a processor and taking it away, nanoseconds of the host; finite, at least 0.
    pub switch_ns: f64,
    /// Waking up and looking for a processor, nanoseconds of the host; finite, at least 0.
    pub look_ns: f64,
    /// Making a context, its control thread and loading its program, nanoseconds of the host; finite, at least 0.
    pub spawn_ns: f64,
    /// How far each of these times is from the mean at most, as a share of it, from 0 to 1.
    pub spread: f64,
    /// Where these constants come from.
    pub source: Option<String>,
}

/// How contexts share processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ContextScheduler {
    /// Linux's of SPEs as of 2.6.24: what is taken away is free, and goes to whose control thread comes first.
    #[serde(rename = "spufs-2.6.24")]
    Spufs2624,
    /// As of 2.6.25: it goes to who has waited longest.
    #[serde(rename = "spufs-2.6.25")]
    Spufs2625,
}

impl ThreadScheduler {
    /// All of them.
    pub const ALL: [ThreadScheduler; 1] = [ThreadScheduler::Linux2624];

    /// The name in machine files.
    pub fn name(self) -> &'static str {
        match self {
            ThreadScheduler::Linux2624 => "linux-2.6.24",
        }
    }
}

impl ContextScheduler {
    /// All of them.
    pub const ALL: [ContextScheduler; 2] = [ContextScheduler::Spufs2624, ContextScheduler::Spufs2625];

    /// The name in machine files.
    pub fn name(self) -> &'static str {
        match self {
            ContextScheduler::Spufs2624 => "spufs-2.6.24",
            ContextScheduler::Spufs2625 => "spufs-2.6.25",
        }
    }
}
