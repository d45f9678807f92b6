//! The interpreter: executions of plans, and the children that take part in them.

use super::RunError;
use super::hardware::{Direction, Hardware};
use super::leaves::{LeafCost, Leaves};
use super::record::tick;
use crate::dma::Transfer;
use crate::network::LinkId;
use crate::simulation::Simulation;
use crate::time::Time;
use multigrain_machine::Driver;
use multigrain_plan::names::Names;
use multigrain_plan::{Body, CallClass, ChildPlan, Op, Plan};
use multigrain_program::Region;
use multigrain_trace::{Idleness, Kind, NO_INDEX, NO_SUBJECT, Recorder};
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
    /// A transfer of a child is complete.
    Moved { frame: u32, transfer: u32 },
    /// What a leaf touches has come through its memory.
    Touched(u32),
    /// A leaf is done.
    Leaf(u32),
    /// The leader of an execution learns that all children are done.
    Joined(u32),
}

/// What is known of a plan before it is executed.
struct Facts {
    /// For each class of calls, what its leaf costs.
    costs: Vec<Option<LeafCost>>,
    /// For each child of a plan whose batches any child may take, how many there are.
    batches: Vec<u32>,
    /// The only child that has work, if the others are not woken for it.
    only: Option<usize>,
    /// For each array, whether no element of it is used by two children.
    divided: Vec<bool>,
}

impl Facts {
    fn of(plan: &Plan, leaves: &Leaves<'_>) -> Facts {
        let cost = |class: &CallClass| match class.body {
            Body::Leaf { .. } => Some(leaves.cost(plan, class)),
            Body::Inner(_) => None,
        };
        let children = plan.children.len();
        let batches: Vec<u32> = plan.children.iter().map(|child| child.batches.len() as u32).collect();
        let several = batches.iter().sum::<u32>() > 1;
        let mut busy = (0..children).filter(|child| !plan.children[*child].ops.is_empty());
        let only = match (busy.next(), busy.next()) {
            _ if children == 1 => Some(0),
            (Some(only), None) if plan.balanced && !several => Some(only),
            _ => None,
        };
        let batches = if plan.balanced && several { batches } else { Vec::new() };
        let divided = match plan.driver {
            Driver::Mpi => divided(plan),
            _ => vec![false; plan.arrays.len()],
        };
        Facts { costs: plan.classes.iter().map(cost).collect(), batches, only, divided }
    }
}

/// For each array of a plan, whether no element of it is used by two children: blocks are used by one child each, and
/// together have no more elements than the array.
fn divided(plan: &Plan) -> Vec<bool> {
    let mut users: HashMap<(u32, &Region), usize> = HashMap::new();
    let mut elements = vec![0u64; plan.arrays.len()];
    let mut divided = vec![true; plan.arrays.len()];
    for (child, steps) in plan.children.iter().enumerate() {
        for slot in &steps.slots {
            let (array, region) = (slot.block.array, &slot.block.region);
            match users.insert((array, region), child) {
                None => elements[array as usize] += region.elements(),
                Some(user) if user != child => divided[array as usize] = false,
                Some(_) => {}
            }
        }
    }
    for ((divided, elements), array) in divided.iter_mut().zip(elements).zip(&plan.arrays) {
        *divided &= elements <= array.shape.elements();
    }
    divided
}

/// One execution of a plan.
struct Execution<'p> {
    plan: &'p Plan,
    facts: Rc<Facts>,
    /// The child whose call this is; none for the whole program.
    parent: Option<u32>,
    worker: usize,
    since: Time,
    /// Children that are not done.
    left: usize,
    /// Signals that each child has given.
    signals: Vec<u32>,
    /// Children that wait for signals: frame, whose, how many.
    waiting: Vec<(u32, u32, u32)>,
    /// For each child, batches that nobody has claimed, from front to back.
    queue: Vec<Range<u32>>,
}

/// One child in one execution.
struct Frame<'p> {
    execution: u32,
    plan: &'p Plan,
    facts: Rc<Facts>,
    steps: &'p ChildPlan,
    child: usize,
    instance: usize,
    worker: usize,
    /// Steps to be done.
    ops: Range<usize>,
    transfers: Vec<Issued>,
    /// Transfers that are not complete.
    moving: u32,
    /// The transfer that it waits for.
    awaits: Option<u32>,
    /// Everything is done but its transfers.
    ends: bool,
    begun: Time,
    /// When what it is doing, or waiting for, began.
    since: Time,
    call: u32,
}

#[derive(Clone, Copy)]
struct Issued {
    complete: bool,
    number: u32,
    slot: u32,
    up: bool,
    at: Time,
    started: Option<Time>,
}

/// Executes plans of all depths.
pub(super) struct Interpreter<'p> {
    sim: Simulation<Event>,
    hardware: Hardware,
    leaves: Leaves<'p>,
    pub(super) recorders: Vec<Recorder>,
    names: Option<&'p Names>,
    /// By depth, how many workers are in or below one memory.
    each: Vec<usize>,
    facts: HashMap<usize, Rc<Facts>>,
    /// For each worker the buses to what its leaves touch.
    buses: Vec<Vec<LinkId>>,
    frames: Vec<Option<Frame<'p>>>,
    free_frames: Vec<u32>,
    executions: Vec<Option<Execution<'p>>>,
    free_executions: Vec<u32>,
    done: bool,
}

impl<'p> Interpreter<'p> {
    pub(super) fn new(
        sim: Simulation<Event>,
        hardware: Hardware,
        leaves: Leaves<'p>,
        each: Vec<usize>,
        recorders: Vec<Recorder>,
        names: Option<&'p Names>,
    ) -> Interpreter<'p> {
        Interpreter {
            buses: (0..recorders.len()).map(|leaf| hardware.buses(leaf)).collect(),
            sim,
            hardware,
            leaves,
            recorders,
            names,
            each,
            facts: HashMap::new(),
            frames: Vec::new(),
            free_frames: Vec::new(),
            executions: Vec::new(),
            free_executions: Vec::new(),
            done: false,
        }
    }

    pub(super) fn run(&mut self, plan: &'p Plan, go_on: Option<&dyn Fn() -> bool>) -> Result<(), RunError> {
        let first = self.execute(plan, None, 0, 0);
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

    /// Recorders, the last instant and the number of events.
    pub(super) fn finish(self) -> (Vec<Recorder>, Time, u64) {
        (self.recorders, self.sim.now(), self.sim.events())
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
        frame.worker..frame.worker + self.each[frame.plan.level + 1]
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Begin(id) => {
                let now = self.now();
                let frame = self.frame(id);
                frame.begun = now;
                let (execution, edge) = (frame.execution, frame.plan.level);
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
                let each = self.each[frame.plan.level + 1];
                let other = frame.worker - frame.child * each + child as usize * each;
                let (worker, since, edge) = (frame.worker, frame.since, frame.plan.level);
                let now = self.now();
                self.idle(worker, since, now, edge, Idleness::Signal, other, signals);
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

    /// Begins an execution of a plan in a memory; gives the child that the leading worker goes on with.
    fn execute(&mut self, plan: &'p Plan, parent: Option<u32>, instance: usize, worker: usize) -> u32 {
        let address = std::ptr::from_ref(plan).addr();
        let leaves = &self.leaves;
        let facts = self.facts.entry(address).or_insert_with(|| Rc::new(Facts::of(plan, leaves))).clone();
        let children = plan.children.len();
        let (now, only) = (self.now(), facts.only);
        let execution = self.free_executions.pop().unwrap_or_else(|| {
            self.executions.push(None);
            (self.executions.len() - 1) as u32
        });
        self.executions[execution as usize] = Some(Execution {
            plan,
            facts: facts.clone(),
            parent,
            worker,
            since: now,
            left: if only.is_some() { 1 } else { children },
            signals: vec![0; children],
            waiting: Vec::new(),
            queue: facts.batches.iter().map(|batches| 0..*batches).collect(),
        });
        let each = self.each[plan.level + 1];
        let mut frame_of = |child: usize, worker: usize| {
            let id = self.free_frames.pop().unwrap_or_else(|| {
                self.frames.push(None);
                (self.frames.len() - 1) as u32
            });
            let steps = &plan.children[child];
            // Where batches are claimed, there are no other steps.
            let ops = if facts.batches.is_empty() { 0..steps.ops.len() } else { 0..0 };
            self.frames[id as usize] = Some(Frame {
                execution,
                plan,
                facts: facts.clone(),
                steps,
                child,
                instance: instance * children + child,
                worker,
                ops,
                transfers: Vec::new(),
                moving: 0,
                awaits: None,
                ends: false,
                begun: now,
                since: now,
                call: 0,
            });
            id
        };
        match only {
            Some(only) => frame_of(only, worker),
            None => {
                let first = frame_of(0, worker);
                let others: Vec<u32> = (1..children).map(|child| frame_of(child, worker + child * each)).collect();
                let latency = self.hardware.above(plan.level + 1).latency;
                for frame in others {
                    self.sim.after(latency, Event::Begin(frame));
                }
                first
            }
        }
    }

    /// Executes steps of a child, and of whom it calls, up to what takes time.
    fn steps(&mut self, id: u32) {
        let mut current = Some(id);
        while let Some(id) = current {
            current = self.step(id);
        }
    }

    /// Executes one step; gives who goes on at this instant.
    fn step(&mut self, id: u32) -> Option<u32> {
        let now = self.sim.now();
        let frame = self.frames[id as usize].as_mut().expect("a child that goes on is in use");
        let Some(at) = frame.ops.next() else { return self.claim(id) };
        match frame.steps.ops[at] {
            Op::Fetch { transfer, slot } => self.issue(id, transfer, slot, Direction::Down),
            Op::Store { transfer, slot } => self.issue(id, transfer, slot, Direction::Up),
            Op::Await { transfer } => {
                if frame.transfers.get(transfer as usize).is_none_or(|issued| issued.complete) {
                    return Some(id);
                }
                (frame.awaits, frame.since) = (Some(transfer), now);
                None
            }
            Op::Run { call, .. } => self.call(id, call),
            Op::Signal => {
                let (execution, child, worker, edge) = (frame.execution, frame.child, frame.worker, frame.plan.level);
                let at = self.executions[execution as usize].as_mut().expect("its children are not done");
                at.signals[child] += 1;
                let given = at.signals[child];
                let latency = self.hardware.above(edge + 1).latency;
                let sim = &mut self.sim;
                at.waiting.retain(|(frame, whose, wanted)| {
                    let reached = *whose as usize == child && given >= *wanted;
                    if reached {
                        sim.after(latency, Event::Signalled(*frame));
                    }
                    !reached
                });
                if self.traces() {
                    let at = tick(now);
                    self.recorders[worker].interval(Kind::Signal, at, at, edge as u16, child as u32, given, 0);
                }
                Some(id)
            }
            Op::Wait { child, signals } => {
                let execution = frame.execution;
                frame.since = now;
                let at = self.execution(execution);
                if at.signals[child as usize] >= signals {
                    return Some(id);
                }
                at.waiting.push((id, child, signals));
                None
            }
        }
    }

    fn issue(&mut self, id: u32, transfer: u32, slot: u32, way: Direction) -> Option<u32> {
        let now = self.sim.now();
        let frame = self.frames[id as usize].as_mut().expect("a child that issues is in use");
        debug_assert_eq!(frame.transfers.len(), transfer as usize, "transfers are numbered in the order of issue");
        let (plan, depth) = (frame.plan, frame.plan.level + 1);
        let block = &frame.steps.slots[slot as usize];
        let edge = self.hardware.above(depth);
        let array = &plan.arrays[block.block.array as usize];
        let divided = frame.facts.divided[block.block.array as usize];
        let load = edge.load(&block.block.region, array, divided, way, frame.steps.staging_bytes, self.each[depth]);
        let end = block.offset_bytes + block.bytes;
        let done = Event::Moved { frame: id, transfer };
        let started = edge.issue(&mut self.sim, frame.instance, load, way, end, done);
        let number = self.recorders[frame.worker].next_transfer();
        let numbers = self.names.and_then(|names| names.of_plan(plan));
        let slot = numbers.map_or(NO_SUBJECT, |numbers| numbers.slot(frame.child, slot));
        let up = way == Direction::Up;
        frame.transfers.push(Issued { complete: false, number, slot, up, at: now, started });
        frame.moving += 1;
        if edge.is_synchronous() {
            (frame.awaits, frame.since) = (Some(transfer), now);
            return None;
        }
        if load.stolen > Time::ZERO {
            self.sim.after(load.stolen, Event::Go(id));
            return None;
        }
        Some(id)
    }

    fn moved(&mut self, id: u32, transfer: u32) {
        let now = self.sim.now();
        let frame = self.frames[id as usize].as_mut().expect("a child with transfers is in use");
        let issued = &mut frame.transfers[transfer as usize];
        issued.complete = true;
        let issued = *issued;
        frame.moving -= 1;
        let (worker, edge, since) = (frame.worker, frame.plan.level, frame.since);
        let goes_on = frame.awaits == Some(transfer);
        if goes_on {
            frame.awaits = None;
        }
        let ended = frame.ends && frame.moving == 0;
        if goes_on {
            let frame = self.frames[id as usize].as_ref().expect("it waited");
            let led = self.led(frame);
            self.record_wait(led, since, edge, issued.number);
        }
        if self.traces() {
            let times = [issued.at, issued.started.unwrap_or(issued.at), now];
            self.record_transfer(worker, times, edge, issued.number, issued.slot, issued.up);
        }
        if goes_on || ended {
            self.steps(id);
        }
    }

    fn call(&mut self, id: u32, call: u32) -> Option<u32> {
        let now = self.sim.now();
        let frame = self.frames[id as usize].as_mut().expect("a child that calls is in use");
        (frame.call, frame.since) = (call, now);
        let class = frame.plan.class_of[call as usize] as usize;
        if let Body::Inner(inner) = &frame.plan.classes[class].body {
            let (instance, worker) = (frame.instance, frame.worker);
            return Some(self.execute(inner, Some(id), instance, worker));
        }
        let Some(cost) = frame.facts.costs[class] else { return Some(id) };
        let path = &self.buses[frame.worker];
        if cost.bytes == 0 || path.is_empty() {
            self.sim.after(cost.time, Event::Leaf(id));
            return None;
        }
        self.sim.transfer(Transfer::new(path, cost.bytes), Event::Touched(id));
        None
    }

    /// A child has no more steps: its next batch, its own or another's, or the end of its part.
    fn claim(&mut self, id: u32) -> Option<u32> {
        let frame = self.frames[id as usize].as_mut().expect("a child that claims is in use");
        let execution = frame.execution;
        let (child, plan) = (frame.child, frame.plan);
        let queue = &mut self.executions[execution as usize].as_mut().expect("its children are not done").queue;
        let owners = queue.len();
        let claimed = match queue.get_mut(child).and_then(Iterator::next) {
            Some(batch) => Some((child, batch)),
            // From the back of another's, the next one's first.
            None => (1..=owners)
                .map(|distance| (child + distance) % owners)
                .find_map(|owner| queue[owner].next_back().map(|batch| (owner, batch))),
        };
        if let Some((owner, batch)) = claimed {
            frame.steps = &plan.children[owner];
            let batch = &frame.steps.batches[batch as usize];
            frame.ops = batch.start as usize..batch.end as usize;
            return Some(id);
        }
        if frame.moving > 0 {
            frame.ends = true;
            return None;
        }
        let (worker, begun) = (frame.worker, frame.begun);
        let frame = self.frames[id as usize].take().expect("it ends");
        let led = self.led(&frame);
        self.record_scope(plan, child, led, begun);
        self.free_frames.push(id);
        let at = self.execution(execution);
        at.left -= 1;
        if at.left > 0 {
            return None;
        }
        if worker == at.worker {
            return self.joined(execution);
        }
        let latency = self.hardware.above(plan.level + 1).latency;
        self.sim.after(latency, Event::Joined(execution));
        None
    }

    /// An execution is over; gives the child whose call it was.
    fn joined(&mut self, id: u32) -> Option<u32> {
        let Execution { plan, facts, parent, worker, since, .. } =
            self.executions[id as usize].take().expect("it is joined once");
        self.free_executions.push(id);
        let each = self.each[plan.level + 1];
        let workers = worker..worker + plan.children.len() * each;
        match facts.only {
            None => self.record_join(plan.level, workers),
            Some(only) if self.traces() => {
                let (now, busy) = (self.now(), worker..worker + each);
                for spare in workers.filter(|w| !busy.contains(w)) {
                    self.idle(spare, since, now, plan.level, Idleness::Spare, worker, only as u32);
                }
            }
            Some(_) => {}
        }
        let Some(parent) = parent else {
            self.done = true;
            return None;
        };
        if self.traces() {
            let frame = self.frames[parent as usize].as_ref().expect("its call was executed");
            let (plan, task) = self.numbers(frame.plan, frame.call);
            let (since, call, led) = (tick(frame.since), frame.call, self.led(frame));
            let now = tick(self.now());
            debug_assert_ne!(task, NO_INDEX);
            for worker in led {
                self.recorders[worker].interval(Kind::Call, since, now, task, plan, call, 0);
            }
        }
        Some(parent)
    }
}
