//! The interpreter: executions of plans, and the children that take part in them.

mod barrier;
mod broadcast;
mod execution;
mod facts;
mod steps;

use super::RunError;
use super::hardware::Hardware;

use crate::network::LinkId;
use crate::simulation::Simulation;
use crate::time::{Time, tick};
use broadcast::Messages;
use execution::{Execution, Frame, Parent, Parts};
use facts::Facts;
use multigrain_machine::{Layout, Machine};
use multigrain_plan::names::Names;
use multigrain_plan::{Op, Plan};
use multigrain_trace::{Idleness, Kind, Recorder};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// How many events pass between two looks at whether to go on.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 16;

#[derive(Clone, Copy)]
pub(super) enum Event {
    /// A child begins its part.
    Begin(u32),
    /// A child goes on with its next step.
    Go(u32),
    /// What a child waited for, a signal of another, has reached it.
    Signalled(u32),
    /// A signal of a barrier has reached a child.
    Came { execution: u32, child: u32, bit: u32 },
    /// What a child waited for in a broadcast, a count of another, has reached it.
    Told(u32),
    /// The transfer of a child in a broadcast is complete.
    Passed(u32),
    /// What a child waited for, the end of a phase, has reached it.
    PhaseBegun(u32),
    /// A transfer of a child is complete.
    Moved { frame: u32, transfer: u32 },
    /// What a leaf touches has come through its memory.
    Touched(u32),
    /// A leaf is done.
    Leaf(u32),
    /// The leader of an execution learns that all children are done.
    Joined(u32),
}

/// Executes plans of all depths.
pub(super) struct Interpreter<'p> {
    sim: Simulation<Event>,
    hardware: Hardware,
    machine: &'p Machine,
    layout: &'p Layout,
    pub(super) recorders: Vec<Recorder>,
    names: Option<&'p Names>,
    facts: HashMap<usize, Rc<Facts>>,
    messages: Messages,
    /// For each edge and each memory below it, the buses to what its leaves touch; of edges below which leaves are executed.
    buses: Vec<Vec<Vec<LinkId>>>,
    frames: Vec<Option<Frame<'p>>>,
    free_frames: Vec<u32>,
    executions: Vec<Option<Execution<'p>>>,
    free_executions: Vec<u32>,
    parts: Vec<Option<Parts<'p>>>,
    free_parts: Vec<u32>,
    done: bool,
}

impl<'p> Interpreter<'p> {
    pub(super) fn new(
        sim: Simulation<Event>,
        hardware: Hardware,
        (machine, layout): (&'p Machine, &'p Layout),
        recorders: Vec<Recorder>,
        names: Option<&'p Names>,
    ) -> Interpreter<'p> {
        let of_edge = |number: usize| {
            let branch = layout.branch(number);
            let leaves = if branch.below(0).is_none() { branch.parents * branch.children } else { 0 };
            (0..leaves).map(|instance| hardware.buses(layout, number, instance)).collect()
        };
        Interpreter {
            buses: (0..layout.branches().len()).map(of_edge).collect(),
            sim,
            hardware,
            machine,
            layout,
            recorders,
            names,
            facts: HashMap::new(),
            messages: Messages::new(),
            frames: Vec::new(),
            free_frames: Vec::new(),
            executions: Vec::new(),
            free_executions: Vec::new(),
            parts: Vec::new(),
            free_parts: Vec::new(),
            done: false,
        }
    }

    pub(super) fn run(&mut self, plan: &'p Plan, go_on: Option<&dyn Fn() -> bool>) -> Result<(), RunError> {
        let first = self.execute(plan, Parent::Nobody, 0, 0);
        self.steps(first);
        let mut look = EVENTS_BETWEEN_LOOKS;
        while let Some(event) = self.sim.next() {
            self.event(event);
            if self.sim.events() > look {
                look = self.sim.events() + EVENTS_BETWEEN_LOOKS;
                if go_on.is_some_and(|go_on| !go_on()) {
                    return Err(RunError::Interrupted);
                }
            }
        }
        if self.done { Ok(()) } else { Err(RunError::Stuck) }
    }

    /// Recorders, the last instant, the number of events, and the bytes that crossed each edge.
    pub(super) fn finish(self) -> (Vec<Recorder>, Time, u64, Vec<[u64; 2]>) {
        (self.recorders, self.sim.now(), self.sim.events(), self.hardware.crossed_bytes())
    }

    pub(super) fn now(&self) -> Time {
        self.sim.now()
    }

    pub(super) fn names(&self) -> Option<&'p Names> {
        self.names
    }

    /// Whether every record is kept.
    pub(super) fn traces(&self) -> bool {
        self.names.is_some()
    }

    fn frame(&mut self, frame: u32) -> &mut Frame<'p> {
        self.frames[frame as usize].as_mut().expect("a frame that something is planned for is in use")
    }

    fn execution(&mut self, execution: u32) -> &mut Execution<'p> {
        self.executions[execution as usize].as_mut().expect("an execution that something is planned for is in use")
    }

    /// The workers that a frame leads.
    fn led(&self, frame: &Frame<'_>) -> Range<usize> {
        frame.worker..frame.worker + self.layout.branch(frame.plan.edge).workers(frame.child)
    }

    /// The worker that leads another child of the execution of a frame.
    fn sibling(&self, frame: &Frame<'_>, child: usize) -> usize {
        let leader = self.executions[frame.execution as usize].as_ref().expect("its children are not done").worker;
        self.layout.branch(frame.plan.edge).first_worker(leader, child)
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Begin(id) => {
                let now = self.now();
                let frame = self.frame(id);
                frame.begun = now;
                let (execution, edge) = (frame.execution, frame.plan.edge);
                let frame = self.frames[id as usize].as_ref().expect("it begins");
                let led = self.led(frame);
                let at = self.execution(execution);
                let (leader, since) = (at.worker, at.since);
                self.record_begin(edge, led, leader, since);
                self.steps(id);
            }
            Event::Go(id) => self.steps(id),
            Event::Signalled(id) => {
                let frame = self.frames[id as usize].as_ref().expect("it waits");
                let Op::Wait { child, signals } = frame.steps.ops[frame.ops.start - 1] else { return };
                let (worker, since, edge) = (frame.worker, frame.since, frame.plan.edge);
                let (other, now) = (self.sibling(frame, child as usize), self.now());
                self.idle(worker, since, now, edge, Idleness::Signal, other, signals);
                self.steps(id);
            }
            Event::Came { execution, child, bit } => self.came(execution, child, bit),
            Event::Told(id) => self.told(id),
            Event::Passed(id) => self.passed(id),
            Event::PhaseBegun(id) => {
                let frame = self.frames[id as usize].as_ref().expect("it waits");
                let (execution, worker, since, edge) = (frame.execution, frame.worker, frame.since, frame.plan.edge);
                let at = self.execution(execution);
                let (last, phase) = (at.last, at.phase as u32);
                let now = self.now();
                self.idle(worker, since, now, edge, Idleness::Signal, last, phase);
                self.steps(id);
            }
            Event::Moved { frame, transfer } => self.moved(frame, transfer),
            Event::Touched(id) => {
                let frame = self.frames[id as usize].as_ref().expect("it computes");
                let class = frame.plan.class_of[frame.call as usize] as usize;
                let time = frame.facts.costs[class].map_or(Time::ZERO, |cost| cost.time);
                self.sim.after(time, Event::Leaf(id));
            }
            Event::Leaf(id) => {
                let now = tick(self.now());
                let frame = self.frames[id as usize].as_ref().expect("it computes");
                let (worker, since, call) = (frame.worker, tick(frame.since), frame.call);
                let (plan, task) = self.numbers(frame.plan, call);
                self.recorders[worker].interval(Kind::Leaf, since, now, task, plan, call, 0);
                self.steps(id);
            }
            Event::Joined(id) => {
                if let Some(parent) = self.joined(id) {
                    self.steps(parent);
                }
            }
        }
    }

    /// The numbers of a plan and of the task of a call in the records.
    fn numbers(&self, plan: &Plan, call: u32) -> (u32, u16) {
        match self.names.and_then(|names| names.of_plan(plan)) {
            Some(numbers) => (numbers.plan, numbers.task(plan.calls[call as usize].task)),
            None => (0, 0),
        }
    }
}
