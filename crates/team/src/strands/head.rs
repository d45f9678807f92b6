//! A task that has been off-loaded, as those see it who do not know its type. One of the modules of this crate with
//! `unsafe` in it.
//!
//! It lies on the stack of its strand. The strand does not go on before the task's end: it executes the task itself, or it
//! is suspended until the worker that leads the task has left it among those done (`done.rs`), which is the worker's last use
//! of the head [frame gone].

use std::cell::UnsafeCell;

use multigrain_schedule::policy::{Departure, Start};
use multigrain_trace::Tick;

use super::done::Link;
use super::share::Thrown;
use super::task::TaskKind;

#[repr(C)]
pub(super) struct Head<'a> {
    /// First, so that a pointer to the one is a pointer to the other.
    pub(super) link: Link,
    /// Executes one chunk of the loop; each is executed once.
    pub(super) chunk: &'a (dyn Fn(u32) + Sync),
    /// Executes the whole task as its worker variant does.
    pub(super) whole: &'a (dyn Fn() + Sync),
    pub(super) chunks: u32,
    pub(super) iterations: u64,
    pub(super) kind: TaskKind,
    /// Where the strand is: its host, and its place there.
    pub(super) host: usize,
    pub(super) slot: usize,
    /// Used by one thread at a time: whoever decides writes the start before it posts; the worker that leads reads it, and
    /// writes the outcome before it leaves the task among those done; whoever takes it from there reads, then the strand.
    pub(super) record: UnsafeCell<Record>,
}

/// What happened to a task.
#[derive(Default)]
pub(super) struct Record {
    pub(super) start: Option<Start>,
    pub(super) begin_ticks: u64,
    pub(super) end_ticks: u64,
    /// The times that its workers computed, added up.
    pub(super) busy_ticks: u64,
    /// Whether it was to be shared, and nobody came.
    pub(super) unaided: bool,
    pub(super) thrown: Option<Thrown>,
}

impl Record {
    /// What the policy is told of a task of that number. `ns` makes nanoseconds of ticks.
    pub(super) fn departure(&self, task: u64, ns: impl Fn(u64) -> f64) -> Departure {
        let span_ticks = Tick(self.end_ticks).since(Tick(self.begin_ticks));
        Departure { task, span_ns: ns(span_ticks) as u64, busy_ns: ns(self.busy_ticks) as u64 }
    }
}

impl std::fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "task {} of {} chunks", self.kind.name, self.chunks)
    }
}
