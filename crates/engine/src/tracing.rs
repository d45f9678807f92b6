//! What the interpreter records besides leaves and waits, when every record is kept: who served which plan, who had
//! nothing to do and because of whom, and which block each transfer moved.

use crate::interpreter::{ChildAt, ChildState, Interpreter, Issued};
use multigrain_driver::{Direction, Receipt};
use multigrain_plan::Plan;
use multigrain_trace::{Activity, Flow, Idleness, Kind, Tick};
use std::ops::Range;

impl Interpreter<'_, '_> {
    /// Whether every record is kept.
    #[inline]
    pub(crate) fn traces(&self) -> bool {
        self.names.is_some()
    }

    /// The present moment, if every record is kept.
    #[inline]
    pub(crate) fn moment(&self) -> Tick {
        if self.traces() { multigrain_trace::now() } else { Tick::default() }
    }

    /// The workers in or below a child of a plan.
    pub(crate) fn led(&self, plan: &Plan, at: ChildAt) -> Range<usize> {
        at.worker..at.worker + self.memories.branch(plan).workers(at.child)
    }

    /// A child begins a part that its leader handed out at `since`.
    pub(crate) fn record_begin(&self, plan: &Plan, at: ChildAt, since: Tick) -> Tick {
        if !self.traces() {
            return Tick::default();
        }
        let now = self.moment();
        if at.worker != at.leader {
            for worker in self.led(plan, at) {
                let (edge, cause) = (plan.edge as u16, Idleness::Start as u8);
                self.recorder(worker).interval(Kind::Idle, since, now, edge, at.leader as u32, 0, cause);
            }
        }
        now
    }

    /// A child's part is over.
    pub(crate) fn record_scope(&self, plan: &Plan, at: ChildAt, since: Tick) {
        let Some(numbers) = self.names.as_ref().and_then(|names| names.of_plan(plan)) else { return };
        let now = self.moment();
        for worker in self.led(plan, at) {
            let (edge, child) = (plan.edge as u16, at.child as u32);
            let recorder = self.recorder(worker);
            recorder.interval(Kind::Scope, since, now, edge, numbers.plan, child, 0);
            recorder.left(now);
        }
    }

    /// All children have come together again: each worker waited for the last. To be called by the leader.
    pub(crate) fn record_join(&self, plan: &Plan, worker: usize) {
        if !self.traces() {
            return;
        }
        let now = self.moment();
        let workers = self.memories.branch(plan).all(worker);
        let Some(last) = workers.clone().max_by_key(|&w| self.recorder(w).has_left()) else { return };
        for worker in workers {
            let recorder = self.recorder(worker);
            let left = recorder.has_left();
            let (edge, cause) = (plan.edge as u16, Idleness::Join as u8);
            recorder.interval(Kind::Idle, left, now.max(left), edge, last as u32, 0, cause);
        }
    }

    /// One child alone had work, since `since`: the workers of the others did nothing.
    pub(crate) fn record_spare(&self, plan: &Plan, leader: usize, only: usize, since: Tick) {
        if !self.traces() {
            return;
        }
        let now = self.moment();
        let branch = self.memories.branch(plan);
        let busy = leader..leader + branch.workers(only);
        for worker in branch.all(leader).filter(|w| !busy.contains(w)) {
            let (edge, cause) = (plan.edge as u16, Idleness::Spare as u8);
            self.recorder(worker).interval(Kind::Idle, since, now, edge, leader as u32, only as u32, cause);
        }
    }

    /// The inner variant of a call is over.
    pub(crate) fn record_call(&self, plan: &Plan, led: Range<usize>, call: u32, since: Tick) {
        let Some(numbers) = self.names.as_ref().and_then(|names| names.of_plan(plan)) else { return };
        let now = self.moment();
        let task = numbers.task(plan.calls[call as usize].task);
        for worker in led {
            self.recorder(worker).interval(Kind::Call, since, now, task, numbers.plan, call, 0);
        }
    }

    /// This child has given a signal: its `number`-th.
    pub(crate) fn record_signal(&self, state: &ChildState<'_>, number: u32) {
        if self.traces() {
            let now = self.moment();
            let recorder = self.recorder(state.at.worker);
            recorder.interval(Kind::Signal, now, now, state.plan.edge as u16, state.at.child as u32, number, 0);
        }
    }

    /// The number of a transfer that is about to be issued, and whatever else the records will say about it.
    pub(crate) fn issued(&self, state: &ChildState<'_>, slot: u32, direction: Direction, at: Tick) -> Issued {
        let number = self.recorder(state.at.worker).next_transfer();
        let slot = state.numbers.map_or(multigrain_trace::NO_SUBJECT, |n| n.slot(state.at.child, slot));
        let flow = if direction == Direction::Read { Flow::Down } else { Flow::Up };
        Issued { at, number, slot, flow }
    }

    /// A transfer is over.
    pub(crate) fn record_transfer(&self, state: &ChildState<'_>, issued: Issued, receipt: &dyn Receipt) {
        if self.traces()
            && let Some([started, ended]) = receipt.times()
        {
            let times = [issued.at, started, ended];
            let edge = state.plan.edge as u16;
            self.recorder(state.at.worker).transfer(times, edge, issued.number, issued.slot, issued.flow);
        }
    }

    /// What was done since `since` besides what has a record of its own.
    pub(crate) fn record_overhead(&self, plan: &Plan, worker: usize, activity: Activity, since: Tick) {
        if self.traces() {
            let now = self.moment();
            let (edge, none) = (plan.edge as u16, multigrain_trace::NO_SUBJECT);
            self.recorder(worker).interval(Kind::Overhead, since, now, edge, none, 0, activity as u8);
        }
    }
}
