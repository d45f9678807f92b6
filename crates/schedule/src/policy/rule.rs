//! What one policy adds to the machine: how many workers for this task, now.

use super::event::{Arrival, Departure, Reason};

/// What a rule may know.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) workers: u32,
    /// Workers that could start a task now.
    pub(super) idle: u32,
    /// Workers that execute strands, and so neither idle nor with a task.
    pub(super) occupied: u32,
    /// Strands that have begun and not ended.
    pub(super) strands: u32,
    /// Tasks that run.
    pub(super) running: u32,
    /// Tasks that wait, the one in question among them.
    pub(super) waiting: u32,
}

/// What a rule says about a task when at least one worker is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Start it on up to so many workers, on fewer if no more are idle.
    UpTo(u32, Reason),
    /// Start it on so many workers; until they are idle, nothing that arrived later starts.
    Exactly(u32, Reason),
    /// Start it on this worker; others may start before.
    On(u32, Reason),
}

/// A policy.
pub(super) trait Rule {
    /// For the task that is next in line.
    fn choose(&mut self, task: &Arrival, view: &View) -> Choice;

    /// A task has arrived; the view is that after it, before any decision about it.
    fn arrived(&mut self, _now_ns: u64, _view: &View) {}

    /// A task has started on so many workers; the view is that after it.
    fn started(&mut self, _task: &Arrival, _degree: u32, _view: &View) {}

    /// A task that had so many workers is done; the view is that after it.
    fn departed(&mut self, _now_ns: u64, _task: &Arrival, _degree: u32, _departure: &Departure, _view: &View) {}

    /// Whether it chooses by the task's strand, its number of iterations and the view alone, and learns from no departure.
    fn is_constant(&self) -> bool {
        false
    }

    /// Time has passed.
    fn tick(&mut self, _now_ns: u64, _view: &View) {}

    /// When it wants to be told that time has passed.
    fn next_tick_ns(&self) -> Option<u64> {
        None
    }
}
