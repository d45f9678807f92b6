//! Broadcasts: the schedule that the team executes on threads, executed by the children of a plan.
//!
//! Each child counts the rounds of all broadcasts, as the team does. What it offers, and what it has taken, others find one
//! latency of the edge later. Bytes go from one child's memory to another's over the ports of both.

use super::{Event, Interpreter};
use crate::time::{Time, tick};
use multigrain_plan::cost::{BROADCAST_BUFFER_BYTES, broadcast_algorithm};
use multigrain_schedule::choice::Table;
use multigrain_schedule::{Operation, Request, Ring, Schedules, Step, Topology, schedules};
use multigrain_trace::{BARRIER_SIGNAL, Idleness, Kind as RecordKind, NO_TRANSFER};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// The schedules of broadcasts, by children, root and bytes.
pub(super) type Messages = HashMap<(usize, u32, u64), Rc<Schedules>>;

/// The steps of a broadcast, by the algorithm that the engine's team would take.
fn schedules_of(children: usize, root: u32, bytes: u64) -> Option<Schedules> {
    let request = Request {
        operation: Operation::Broadcast { root, bytes },
        algorithm: broadcast_algorithm(&Table::assumed(), children, bytes)?,
        topology: Topology::flat(u32::try_from(children).ok()?).ok()?,
        buffer_bytes: BROADCAST_BUFFER_BYTES,
        ring: Ring::USUAL.0,
    };
    schedules(&request).ok()
}

/// The children of an execution in its broadcasts.
pub(super) struct Exchange {
    /// The frame of each child.
    frames: Vec<u32>,
    at: Vec<At>,
    /// For broadcasts of even and odd number, when the root came.
    root_came: [Time; 2],
}

/// A count of rounds that a child raises and others wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    Offered,
    Taken,
}

/// One child.
#[derive(Default)]
struct At {
    /// The broadcast that it takes part in.
    schedules: Option<Rc<Schedules>>,
    /// Broadcasts that it has left.
    number: u64,
    /// Of this broadcast, and of all.
    round: u64,
    rounds: u64,
    step: usize,
    since: Time,
    /// For each of the two counts the last values, with when they were reached.
    told: [VecDeque<(u64, Time)>; 2],
    /// For each place of the ring, one more than the round that used it last, and in which broadcast.
    used: [Option<(u64, Rc<Schedules>)>; Ring::USUAL.0 as usize],
    /// Whom it has expected something from, and not told that it was taken.
    owes: bool,
    /// The count of another that it waits for.
    waits: Option<(u32, Count, u64)>,
    /// Its transfer is under way.
    moving: bool,
}

impl Exchange {
    pub(super) fn new(frames: Vec<u32>) -> Exchange {
        Exchange { at: frames.iter().map(|_| At::default()).collect(), frames, root_came: [Time::ZERO; 2] }
    }

    /// When a count of a child reached a value, if it has.
    fn reached(&self, child: u32, count: Count, least: u64) -> Option<Time> {
        self.at[child as usize].told[count as usize].iter().find(|(value, _)| *value >= least).map(|(_, at)| *at)
    }

    /// A child raises a count of its own; gives the frames of those who waited for it.
    fn tell(&mut self, child: u32, count: Count, value: u64, now: Time) -> Vec<u32> {
        let told = &mut self.at[child as usize].told[count as usize];
        told.push_back((value, now));
        // Nobody waits for what was told a ring of rounds ago.
        while told.len() > 2 * Ring::USUAL.0 as usize {
            told.pop_front();
        }
        let waits_for_it =
            |at: &At| at.waits.is_some_and(|(whose, which, least)| (whose, which) == (child, count) && least <= value);
        let mut woken = Vec::new();
        for (at, &frame) in self.at.iter_mut().zip(&self.frames).filter(|(at, _)| waits_for_it(at)) {
            at.waits = None;
            woken.push(frame);
        }
        woken
    }
}

impl Interpreter<'_> {
    /// A child comes to a broadcast; gives it if it leaves at once.
    pub(super) fn broadcast(&mut self, id: u32, root: u32, slot: u32) -> Option<u32> {
        let now = self.now();
        let frame = self.frames[id as usize].as_ref().expect("it comes");
        let (execution, child, worker, edge) = (frame.execution, frame.child, frame.worker, frame.plan.edge);
        let (children, bytes) = (frame.plan.children.len(), frame.steps.slots[slot as usize].bytes);
        let schedules = match self.messages.entry((children, root, bytes)) {
            Entry::Occupied(known) => known.get().clone(),
            // Without a schedule nobody goes on, and the run is reported as stuck.
            Entry::Vacant(fresh) => fresh.insert(Rc::new(schedules_of(children, root, bytes)?)).clone(),
        };
        let exchange = self.executions[execution as usize].as_mut().and_then(|at| at.exchange.as_mut())?;
        let at = &mut exchange.at[child];
        at.since = now;
        at.schedules = Some(schedules);
        if child == root as usize {
            exchange.root_came[(exchange.at[child].number % 2) as usize] = now;
            if self.traces() {
                let (at, subject) = (tick(now), child as u32);
                self.recorders[worker].interval(RecordKind::Signal, at, at, edge as u16, subject, BARRIER_SIGNAL, 0);
            }
        }
        self.pass(id)
    }

    /// The transfer of a child in a broadcast is complete.
    pub(super) fn passed(&mut self, id: u32) {
        let frame = self.frames[id as usize].as_ref().expect("it takes part");
        let (execution, child) = (frame.execution, frame.child);
        if let Some(exchange) = &mut self.execution(execution).exchange {
            exchange.at[child].moving = false;
        }
        if let Some(id) = self.pass(id) {
            self.steps(id);
        }
    }

    /// What a child waited for in a broadcast has reached it.
    pub(super) fn told(&mut self, id: u32) {
        if let Some(id) = self.pass(id) {
            self.steps(id);
        }
    }

    /// A child goes on in a broadcast; gives it if it leaves.
    fn pass(&mut self, id: u32) -> Option<u32> {
        let now = self.now();
        let frame = self.frames[id as usize].as_ref().expect("it takes part");
        let (execution, child, instance) = (frame.execution, frame.child as u32, frame.instance);
        let edge = self.hardware.edge(frame.plan.edge);
        let latency = edge.latency;
        let exchange = self.executions[execution as usize].as_mut().and_then(|at| at.exchange.as_mut())?;
        let schedules = exchange.at[child as usize].schedules.clone()?;
        let schedule = &schedules.participants[child as usize];
        loop {
            let at = &mut exchange.at[child as usize];
            let place = Ring::USUAL.place(at.rounds) as usize;
            let Some(step) = schedule.steps.get(at.step) else {
                (at.step, at.round, at.rounds) = (0, at.round + 1, at.rounds + 1);
                if at.round < schedule.segments.rounds() {
                    continue;
                }
                at.round = 0;
                break;
            };
            // The counts that have to be there, if any.
            let mut needed = Vec::new();
            match *step {
                Step::Reserve => {
                    if let Some((used, before)) = &at.used[place] {
                        let readers = &before.participants[child as usize].readers;
                        needed.extend(readers.iter().map(|&reader| (reader, Count::Taken, *used)));
                    }
                }
                Step::Expect { from } => needed.push((from, Count::Offered, Ring::count(at.rounds))),
                Step::Flush if at.moving => return None,
                _ => {}
            }
            for (whose, count, least) in needed {
                match exchange.reached(whose, count, least) {
                    Some(told) if told + latency <= now => {}
                    Some(told) => {
                        self.sim.at(told + latency, Event::Told(id));
                        return None;
                    }
                    None => {
                        exchange.at[child as usize].waits = Some((whose, count, least));
                        return None;
                    }
                }
            }
            let at = &mut exchange.at[child as usize];
            let rounds = Ring::count(at.rounds);
            let mut woken = Vec::new();
            match *step {
                Step::Expect { .. } => at.owes = true,
                Step::Get { from, .. } => {
                    at.moving = true;
                    let round = schedule.segments.round(at.round);
                    let from = instance - child as usize + from as usize;
                    edge.pass(&mut self.sim, (from, instance), round.end - round.start, Event::Passed(id));
                }
                Step::Offer => {
                    at.used[place] = Some((rounds, schedules.clone()));
                    woken = exchange.tell(child, Count::Offered, rounds, now);
                }
                Step::Taken if at.owes && Ring::USUAL.tells(at.rounds) => {
                    at.owes = false;
                    woken = exchange.tell(child, Count::Taken, rounds, now);
                }
                _ => {}
            }
            exchange.at[child as usize].step += 1;
            for waits in woken {
                self.sim.after(latency, Event::Told(waits));
            }
        }
        let at = &mut exchange.at[child as usize];
        at.number += 1;
        at.schedules = None;
        let (since, came) = (at.since, exchange.root_came[((at.number - 1) % 2) as usize]);
        let root = schedules.request.operation.root().unwrap_or(child);
        self.record_broadcast(id, root, since, came);
        Some(id)
    }

    /// A child leaves a broadcast: it waited for the root to come, and then for the bytes.
    fn record_broadcast(&mut self, id: u32, root: u32, since: Time, came: Time) {
        let now = self.now();
        let frame = self.frames[id as usize].as_ref().expect("it leaves");
        let (worker, edge) = (frame.worker, frame.plan.edge);
        let other = self.sibling(frame, root as usize);
        let came = came.clamp(since, now);
        if came > since {
            self.idle(worker, since, came, edge, Idleness::Signal, other, BARRIER_SIGNAL);
        }
        let (from, to) = (tick(came), tick(now));
        self.recorders[worker].interval(RecordKind::Wait, from, to, edge as u16, other as u32, NO_TRANSFER, 0);
    }
}
