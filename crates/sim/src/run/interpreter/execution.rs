//! Executions of plans: forks, batches that children claim, joins.

use super::barrier::Meeting;
use super::broadcast::Exchange;
use super::facts::Facts;
use super::{Event, Interpreter, tick};
use crate::time::Time;
use multigrain_plan::{Body, ChildPlan, Plan};
use multigrain_program::ArrayDecl;
use multigrain_schedule::claim;
use multigrain_trace::{Idleness, Kind, NO_INDEX};
use std::ops::Range;
use std::rc::Rc;

/// Whose call an execution is.
#[derive(Clone, Copy)]
pub(super) enum Parent {
    /// Nobody's: it is the whole program.
    Nobody,
    /// That of the child in a frame.
    Frame(u32),
    /// One of the calls of a plan in parts.
    Parts(u32),
}

/// A plan in parts that is executed.
pub(super) struct Parts<'p> {
    plan: &'p Plan,
    /// Its arrays, with the shapes of those that they are blocks of.
    arrays: Vec<ArrayDecl>,
    parent: Parent,
    instance: usize,
    worker: usize,
    /// The call that is executed, and since when.
    call: u32,
    since: Time,
}

/// One execution of a plan.
pub(super) struct Execution<'p> {
    pub(super) plan: &'p Plan,
    pub(super) facts: Rc<Facts>,
    /// Whose call this is.
    pub(super) parent: Parent,
    pub(super) worker: usize,
    pub(super) since: Time,
    /// Children that are not done.
    pub(super) left: usize,
    /// Signals that each child has given.
    pub(super) signals: Vec<u32>,
    /// Children that wait for signals: frame, whose, how many.
    pub(super) waiting: Vec<(u32, u32, u32)>,
    /// Where its children meet, if the plan has barriers.
    pub(super) meeting: Option<Meeting>,
    /// What they know of each other in broadcasts, if the plan has any.
    pub(super) exchange: Option<Exchange>,
    /// The phase whose batches are claimed.
    pub(super) phase: usize,
    /// For each child, batches of it that nobody has claimed, from front to back.
    pub(super) queue: Vec<Range<u32>>,
    /// Batches of it that are not done.
    pub(super) unfinished: usize,
    /// The worker that finished the last batch of the phase before.
    pub(super) last: usize,
    /// Children that wait for its end.
    pub(super) between: Vec<u32>,
}

impl Execution<'_> {
    /// Begins a phase, or the next one in which there is anything to do.
    fn begin_phase(&mut self, phase: usize) {
        let rest = self.facts.phases.iter().enumerate().skip(phase);
        let next = rest.clone().find(|(_, batches)| batches.iter().any(|batches| !batches.is_empty()));
        if let Some((phase, batches)) = next.or(rest.last()) {
            (self.phase, self.queue) = (phase, batches.clone());
            self.unfinished = batches.iter().map(Range::len).sum();
        }
    }
}

/// One child in one execution.
pub(super) struct Frame<'p> {
    pub(super) execution: u32,
    pub(super) plan: &'p Plan,
    pub(super) facts: Rc<Facts>,
    pub(super) steps: &'p ChildPlan,
    pub(super) child: usize,
    pub(super) instance: usize,
    pub(super) worker: usize,
    /// Steps to be done.
    pub(super) ops: Range<usize>,
    pub(super) transfers: Vec<Issued>,
    /// Transfers that are not complete.
    pub(super) moving: u32,
    /// The transfer that it waits for.
    pub(super) awaits: Option<u32>,
    /// Everything is done but its transfers.
    pub(super) ends: bool,
    /// It executes a batch that it claimed.
    pub(super) in_batch: bool,
    pub(super) begun: Time,
    /// When what it is doing, or waiting for, began.
    pub(super) since: Time,
    pub(super) call: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Issued {
    pub(super) complete: bool,
    pub(super) number: u32,
    pub(super) slot: u32,
    pub(super) up: bool,
    pub(super) at: Time,
    pub(super) started: Option<Time>,
}

impl<'p> Interpreter<'p> {
    /// Begins an execution of a plan in a memory; gives the child that the leading worker goes on with.
    pub(super) fn execute(&mut self, plan: &'p Plan, parent: Parent, instance: usize, worker: usize) -> u32 {
        if plan.is_in_parts() {
            let arrays = self.lying(plan, parent);
            let begun = Parts { plan, arrays, parent, instance, worker, call: 0, since: self.now() };
            let id = self.free_parts.pop().unwrap_or_else(|| {
                self.parts.push(None);
                (self.parts.len() - 1) as u32
            });
            self.parts[id as usize] = Some(begun);
            return self.part(id).expect("a plan in parts has a part");
        }
        let address = std::ptr::from_ref(plan).addr();
        let child = self.layout.branch(plan.edge).child.map(|id| self.machine.memory(id));
        let facts = match self.facts.get(&address) {
            Some(facts) => facts.clone(),
            None => {
                let facts = Rc::new(Facts::of(plan, child, self.lying(plan, parent)));
                self.facts.entry(address).or_insert(facts).clone()
            }
        };
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
            meeting: None,
            exchange: None,
            phase: 0,
            queue: Vec::new(),
            unfinished: 0,
            last: worker,
            between: Vec::new(),
        });
        self.execution(execution).begin_phase(0);
        let branch = self.layout.branch(plan.edge);
        let mut frame_of = |child: usize, worker: usize| {
            let id = self.free_frames.pop().unwrap_or_else(|| {
                self.frames.push(None);
                (self.frames.len() - 1) as u32
            });
            let steps = &plan.children[child];
            // Where batches are claimed, there are no other steps.
            let ops = if facts.phases.is_empty() { 0..steps.ops.len() } else { 0..0 };
            self.frames[id as usize] = Some(Frame {
                execution,
                plan,
                facts: facts.clone(),
                steps,
                child,
                instance: branch.instance(instance, child),
                worker,
                ops,
                transfers: Vec::new(),
                moving: 0,
                awaits: None,
                ends: false,
                in_batch: false,
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
                let others = (1..children).map(|child| frame_of(child, branch.first_worker(worker, child)));
                let others: Vec<u32> = others.collect();
                let frames: Vec<u32> = std::iter::once(first).chain(others.iter().copied()).collect();
                let at = self.execution(execution);
                at.exchange = facts.broadcasts.then(|| Exchange::new(frames.clone()));
                at.meeting = facts.barrier.as_ref().map(|barrier| Meeting::new(barrier.clone(), frames));
                let latency = self.hardware.latency(plan.edge);
                for frame in others {
                    self.sim.after(latency, Event::Begin(frame));
                }
                first
            }
        }
    }

    /// The arrays of a plan as their blocks lie in the memory above. What a part is given are blocks of larger arrays, whose rows lie
    /// as far apart as these have them; parts that share a plan take those of the first.
    fn lying(&self, plan: &Plan, parent: Parent) -> Vec<ArrayDecl> {
        let mut arrays = plan.arrays.clone();
        if let Parent::Parts(id) = parent
            && let Some(parts) = &self.parts[id as usize]
        {
            let args = &parts.plan.calls[parts.call as usize].args;
            for (array, arg) in arrays.iter_mut().zip(args) {
                array.shape = parts.arrays[arg.array as usize].shape;
            }
        }
        arrays
    }

    /// A child has no more steps: its next batch, its own or another's, or the end of its part.
    pub(super) fn claim(&mut self, id: u32) -> Option<u32> {
        let now = self.now();
        let frame = self.frames[id as usize].as_mut().expect("a child that claims is in use");
        let execution = frame.execution;
        let (child, plan) = (frame.child, frame.plan);
        if std::mem::take(&mut frame.in_batch) {
            self.batch_done(id);
        }
        let frame = self.frames[id as usize].as_mut().expect("a child that claims is in use");
        let queue = &mut self.executions[execution as usize].as_mut().expect("its children are not done").queue;
        let claimed = claim(child, queue.len(), |owner, end| end.take(&mut queue[owner]));
        if let Some((owner, batch)) = claimed {
            frame.steps = &plan.children[owner];
            let batch = &frame.steps.batches[batch as usize];
            frame.ops = batch.start as usize..batch.end as usize;
            frame.in_batch = true;
            return Some(id);
        }
        let at = self.executions[execution as usize].as_mut().expect("its children are not done");
        if at.phase + 1 < at.facts.phases.len() {
            frame.since = now;
            at.between.push(id);
            return None;
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
        let latency = self.hardware.latency(plan.edge);
        self.sim.after(latency, Event::Joined(execution));
        None
    }

    /// A child has done a batch. With the last of a phase the next begins, and whoever waits for it learns so.
    fn batch_done(&mut self, id: u32) {
        let now = tick(self.now());
        let frame = self.frames[id as usize].as_ref().expect("it did a batch");
        let (worker, child, plan) = (frame.worker, frame.child as u32, frame.plan);
        let at = self.executions[frame.execution as usize].as_mut().expect("its children are not done");
        at.unfinished -= 1;
        if at.unfinished > 0 || at.phase + 1 >= at.facts.phases.len() {
            return;
        }
        at.last = worker;
        at.begin_phase(at.phase + 1);
        let latency = self.hardware.latency(plan.edge);
        for waits in at.between.drain(..) {
            self.sim.after(latency, Event::PhaseBegun(waits));
        }
        if self.names.is_some() {
            let number = at.phase as u32;
            self.recorders[worker].interval(Kind::Signal, now, now, plan.edge as u16, child, number, 0);
        }
    }

    /// An execution is over; gives the child whose call it was.
    pub(super) fn joined(&mut self, id: u32) -> Option<u32> {
        let Execution { plan, facts, parent, worker, since, .. } =
            self.executions[id as usize].take().expect("it is joined once");
        self.free_executions.push(id);
        let branch = self.layout.branch(plan.edge);
        let workers = branch.all(worker);
        match facts.only {
            None => self.record_join(plan.edge, workers),
            Some(only) if self.traces() => {
                let (now, busy) = (self.now(), worker..worker + branch.workers(only));
                for spare in workers.filter(|w| !busy.contains(w)) {
                    self.idle(spare, since, now, plan.edge, Idleness::Spare, worker, only as u32);
                }
            }
            Some(_) => {}
        }
        self.returned(parent)
    }

    /// A call is over; gives the child that goes on.
    fn returned(&mut self, parent: Parent) -> Option<u32> {
        match parent {
            Parent::Nobody => {
                self.done = true;
                None
            }
            Parent::Frame(id) => {
                let frame = self.frames[id as usize].as_ref().expect("its call was executed");
                let (plan, call, since, led) = (frame.plan, frame.call, frame.since, self.led(frame));
                self.record_call(plan, call, since, led);
                Some(id)
            }
            Parent::Parts(id) => {
                let now = self.now();
                let parts = self.parts[id as usize].as_mut().expect("its call was executed");
                let (plan, call, since, worker) = (parts.plan, parts.call, parts.since, parts.worker);
                (parts.call, parts.since) = (call + 1, now);
                self.record_call(plan, call, since, self.layout.branch(plan.edge).led(worker, 0));
                self.part(id)
            }
        }
    }

    /// Begins the next part, or returns behind the last; gives the child that goes on.
    fn part(&mut self, id: u32) -> Option<u32> {
        let &Parts { plan, parent, instance, worker, call, .. } = self.parts[id as usize].as_ref().expect("it goes on");
        let Some(&class) = plan.class_of.get(call as usize) else {
            self.parts[id as usize] = None;
            self.free_parts.push(id);
            return self.returned(parent);
        };
        let Body::Inner(inner) = &plan.classes[class as usize].body else { return None };
        Some(self.execute(inner, Parent::Parts(id), instance, worker))
    }

    fn record_call(&mut self, plan: &Plan, call: u32, since: Time, led: Range<usize>) {
        if self.traces() {
            let (plan, task) = self.numbers(plan, call);
            let now = tick(self.now());
            debug_assert_ne!(task, NO_INDEX);
            for worker in led {
                self.recorders[worker].interval(Kind::Call, tick(since), now, task, plan, call, 0);
            }
        }
    }
}
