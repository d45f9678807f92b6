//! Barriers: the schedule that the team executes on threads, executed by the children of a plan.
//!
//! A signal crosses the edge in its latency, as those between two children do, and sending and reading it take no more.
//! The children of one memory are a flat group; those of different memories never meet in one plan, so a group of several
//! domains does not arise.

use super::{Event, Interpreter};
use crate::time::{Time, tick};
use multigrain_schedule::choice::Table;
use multigrain_schedule::{Kind, Operation, Registers, Request, Schedules, Step, Topology, schedules};
use multigrain_trace::{BARRIER_SIGNAL, Idleness, Kind as RecordKind};
use std::rc::Rc;

/// The steps of a barrier among so many children, by the algorithm that the engine's team would take.
pub(super) fn schedules_of(children: usize) -> Option<Rc<Schedules>> {
    let size = u32::try_from(children).ok()?;
    let way = Table::assumed().pick(Kind::Barrier, size, 0).way;
    let (_, algorithm) = way.parts(Kind::Barrier).next()?;
    let topology = Topology::flat(size).ok()?;
    let request = Request { operation: Operation::Barrier, algorithm, topology, buffer_bytes: 64, ring: 1 };
    schedules(&request).ok().map(Rc::new)
}

/// The children of an execution at its barriers.
pub(super) struct Meeting {
    schedules: Rc<Schedules>,
    /// The frame of each child.
    frames: Vec<u32>,
    at: Vec<At>,
    /// For barriers of even and odd number, the worker that came last.
    last: [usize; 2],
}

/// One child.
struct At {
    /// Barriers that it has left.
    number: u64,
    step: usize,
    since: Time,
    /// Bits of both halves of its register.
    register: Vec<bool>,
    /// The bit that it waits for.
    awaits: Option<u32>,
}

impl Meeting {
    pub(super) fn new(schedules: Rc<Schedules>, frames: Vec<u32>) -> Meeting {
        let bits = 2 * schedules.bits as usize;
        let at = || At { number: 0, step: 0, since: Time::ZERO, register: vec![false; bits], awaits: None };
        Meeting { at: frames.iter().map(|_| at()).collect(), schedules, frames, last: [0; 2] }
    }
}

impl Interpreter<'_> {
    /// A child comes to a barrier.
    pub(super) fn come(&mut self, id: u32) {
        let now = self.now();
        let frame = self.frames[id as usize].as_ref().expect("it comes");
        let (execution, child, worker, edge) = (frame.execution, frame.child, frame.worker, frame.plan.edge);
        if let Some(meeting) = &mut self.execution(execution).meeting {
            let at = &mut meeting.at[child];
            at.since = now;
            meeting.last[(at.number % 2) as usize] = worker;
        }
        if self.traces() {
            let (at, subject) = (tick(now), child as u32);
            self.recorders[worker].interval(RecordKind::Signal, at, at, edge as u16, subject, BARRIER_SIGNAL, 0);
        }
    }

    /// A child goes on at a barrier; gives it if it leaves.
    pub(super) fn barrier(&mut self, id: u32) -> Option<u32> {
        let frame = self.frames[id as usize].as_ref().expect("it is at a barrier");
        let (execution, child, worker, edge) = (frame.execution, frame.child, frame.worker, frame.plan.edge);
        let latency = self.hardware.latency(edge);
        let meeting = self.executions[execution as usize].as_mut().and_then(|at| at.meeting.as_mut())?;
        let (schedules, at) = (meeting.schedules.clone(), &mut meeting.at[child]);
        let register = Registers { half_bits: schedules.bits.max(1), registers: 1 };
        for step in &schedules.participants[child].steps[at.step..] {
            match *step {
                Step::Signal { to, bit } => {
                    let bit = register.place(bit, at.number).bit;
                    self.sim.after(latency, Event::Came { execution, child: to, bit });
                }
                Step::Await { bit, .. } => {
                    let bit = register.place(bit, at.number).bit;
                    if !std::mem::take(&mut at.register[bit as usize]) {
                        at.awaits = Some(bit);
                        return None;
                    }
                }
                // A barrier moves nothing.
                _ => {}
            }
            at.step += 1;
        }
        at.step = 0;
        at.number += 1;
        let (since, last) = (at.since, meeting.last[((at.number - 1) % 2) as usize]);
        let now = self.now();
        if last != worker {
            self.idle(worker, since, now, edge, Idleness::Signal, last, BARRIER_SIGNAL);
        }
        Some(id)
    }

    /// A signal of a barrier reaches a child.
    pub(super) fn came(&mut self, execution: u32, child: u32, bit: u32) {
        let Some(meeting) = &mut self.execution(execution).meeting else { return };
        let at = &mut meeting.at[child as usize];
        at.register[bit as usize] = true;
        if at.awaits == Some(bit) {
            at.awaits = None;
            let frame = meeting.frames[child as usize];
            if let Some(frame) = self.barrier(frame) {
                self.steps(frame);
            }
        }
    }
}
