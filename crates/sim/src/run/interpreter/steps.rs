//! The steps of one child.

use super::super::hardware::Direction;
use super::execution::{Issued, Parent};
use super::{Event, Interpreter, tick};
use crate::dma::Transfer;
use crate::time::Time;
use multigrain_plan::{Body, Op};
use multigrain_trace::{Kind, NO_SUBJECT};

impl Interpreter<'_> {
    /// Executes steps of a child, and of whom it calls, up to what takes time.
    pub(super) fn steps(&mut self, id: u32) {
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
                let (execution, child, worker, edge) = (frame.execution, frame.child, frame.worker, frame.plan.edge);
                let at = self.executions[execution as usize].as_mut().expect("its children are not done");
                at.signals[child] += 1;
                let given = at.signals[child];
                let latency = self.hardware.latency(edge);
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
            Op::Barrier => {
                self.come(id);
                self.barrier(id)
            }
            Op::Broadcast { root, slot } => self.broadcast(id, root, slot),
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
        let plan = frame.plan;
        let block = &frame.steps.slots[slot as usize];
        let edge = self.hardware.edge(plan.edge);
        let array = &frame.facts.arrays[block.block.array as usize];
        let divided = frame.facts.divided[block.block.array as usize];
        let workers = self.layout.branch(plan.edge).workers(frame.child);
        let load = edge.load(&block.block.region, array, divided, way, frame.steps.staging_bytes, workers);
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

    pub(super) fn moved(&mut self, id: u32, transfer: u32) {
        let now = self.sim.now();
        let frame = self.frames[id as usize].as_mut().expect("a child with transfers is in use");
        let issued = &mut frame.transfers[transfer as usize];
        issued.complete = true;
        let issued = *issued;
        frame.moving -= 1;
        let (worker, edge, since) = (frame.worker, frame.plan.edge, frame.since);
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
            return Some(self.execute(inner, Parent::Frame(id), instance, worker));
        }
        let Some(cost) = frame.facts.costs[class] else { return Some(id) };
        let path = &self.buses[frame.plan.edge][frame.instance];
        if cost.bytes == 0 || path.is_empty() {
            self.sim.after(cost.time, Event::Leaf(id));
            return None;
        }
        self.sim.transfer(Transfer::new(path, cost.bytes), Event::Touched(id));
        None
    }
}
