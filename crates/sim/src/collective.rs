//! Collective operations in virtual time: the step lists of the schedule room, executed by participants that have signal
//! registers and DMA engines.
//!
//! A participant executes its steps one after the other, as an SPE does. A signal is sent and on its way at once. An await
//! looks at the bits that were read before; if its bit is not among them, it reads the register, which stalls while that is
//! empty, and gives and clears all bits that have come. Signals and transfers are given to the participant's DMA engine,
//! which begins one after the other, and cross the links between the two participants. Whoever has left an operation enters the next one.
//! In eager rounds, an offer is a signal to each of those who expect it, and what was taken is told by one to each of those
//! who offered.

mod fabric;

use crate::simulation::Simulation;
use crate::time::Time;
pub use fabric::{Costs, Fabric, Tier};
use fabric::{Wires, distances};
use multigrain_schedule::{Area, Registers, Ring, Schedules, Step};
use std::collections::VecDeque;

/// Why a collective operation has no virtual time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveError {
    /// The fabric says nothing about participants that are so far apart.
    #[error("the group has domains in {depth} levels, but the fabric has {tiers} tiers: give one for each distance")]
    Tiers {
        /// Tiers that are needed.
        depth: usize,
        /// Tiers that there are.
        tiers: usize,
    },
    /// The operations are of different groups.
    #[error("operation {operation} is for {found} participants, the first for {expected}: all must be of one group")]
    Group {
        /// Which operation, counted from 0.
        operation: usize,
        /// Its participants.
        found: usize,
        /// Those of the first operation.
        expected: usize,
    },
    /// Participants wait for each other for ever. Schedules that passed their checker never do.
    #[error("operation {operation} never ends: participant {rank} waits at step {step} for ever")]
    Stuck {
        /// The first participant that waits.
        rank: usize,
        /// In which operation, counted from 0.
        operation: usize,
        /// At which of its steps.
        step: usize,
    },
}

/// When everybody left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// For each operation and each participant, when it left.
    pub left: Vec<Vec<Time>>,
    /// Signals that were sent.
    pub signals: u64,
    /// For each distance, bytes that were moved between participants so far apart.
    pub moved_bytes: Vec<u64>,
    /// What happened in the simulation, counted.
    pub events: u64,
}

impl Outcome {
    /// When the last participant left an operation.
    pub fn end(&self, operation: usize) -> Time {
        self.left[operation].iter().copied().max().unwrap_or(Time::ZERO)
    }

    /// Time for one operation in a loop of equal ones: from the end of operation `warm - 1` (or the beginning) to the last
    /// end, by the number of operations between.
    pub fn mean(&self, warm: usize) -> Time {
        let Some(last) = self.left.len().checked_sub(1) else { return Time::ZERO };
        let begin = if warm == 0 { Time::ZERO } else { self.end(warm - 1) };
        Time::from_ps((self.end(last) - begin).ps() / (last + 1 - warm.min(last)) as u64)
    }
}

#[derive(Clone, Copy)]
enum Event {
    /// The participant goes on.
    Go(u32),
    /// A signal has come.
    Signal { to: u32, bit: u32 },
    /// A count of another, offered or taken, has come.
    Told { to: u32, count: Count },
    /// A transfer is complete.
    Moved { by: u32, with: u32, into: Option<Area> },
}

/// A count of eager rounds as one participant tells it to another.
#[derive(Clone, Copy)]
struct Count {
    of: u32,
    taken: bool,
    rounds: u64,
}

/// What a participant of eager rounds knows.
#[derive(Clone, Default)]
struct Eager {
    rounds: u64,
    /// For each other what it has offered and taken: what has come, and what of it was read.
    come: Vec<[u64; 2]>,
    read: Vec<[u64; 2]>,
    /// For each place of the ring how many rounds there were when it was used last, and in which operation.
    used: Vec<Option<(u64, usize)>>,
    /// Whom it has expected something from and not told that it was taken.
    owes: VecDeque<u32>,
    /// Whom a step that tells several has told already.
    told: usize,
}

/// What a participant does until it goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its processor is busy until a `Go`.
    Busy,
    /// The register was empty when it was read.
    ForSignal,
    /// It waits for transfers.
    ForTransfers,
    Done,
}

struct Participant {
    state: State,
    operation: usize,
    round: u64,
    step: usize,
    /// Rounds of all operations so far: they alternate halves of the register.
    rounds: u64,
    /// Bits that have come and were not read; bits that were read and not awaited yet.
    register: Vec<bool>,
    read: Vec<bool>,
    /// Transfers that were started and not found to be complete.
    moving: Vec<Moving>,
    eager: Eager,
}

struct Moving {
    with: u32,
    /// The area of one's own that it fills.
    into: Option<Area>,
    complete: bool,
}

struct Group<'a> {
    sim: Simulation<Event>,
    fabric: &'a Fabric,
    wires: Wires,
    operations: &'a [&'a Schedules],
    participants: Vec<Participant>,
    register: Registers,
    outcome: Outcome,
}

/// Executes operations one after the other, all by the same group, whose participants begin at once.
///
/// # Errors
/// See [`CollectiveError`].
pub fn collectives(operations: &[&Schedules], fabric: &Fabric) -> Result<Outcome, CollectiveError> {
    let Some(first) = operations.first() else {
        return Ok(Outcome { left: Vec::new(), signals: 0, moved_bytes: Vec::new(), events: 0 });
    };
    let expected = first.participants.len();
    for (operation, schedules) in operations.iter().enumerate() {
        let found = schedules.participants.len();
        if found != expected || schedules.request.topology != first.request.topology {
            return Err(CollectiveError::Group { operation, found, expected });
        }
    }
    let topology = &first.request.topology;
    let depth = distances(topology);
    if depth > fabric.tiers.len() {
        return Err(CollectiveError::Tiers { depth, tiers: fabric.tiers.len() });
    }
    let bits = operations.iter().map(|o| o.bits).max().unwrap_or(0);
    let mut sim = Simulation::new();
    let wires = Wires::build(&mut sim, topology, fabric);
    let others = if operations.iter().any(|o| o.participants.iter().any(|p| p.eager)) { expected } else { 0 };
    let eager = || Eager { come: vec![[0; 2]; others], read: vec![[0; 2]; others], ..Eager::default() };
    let participant = || Participant {
        state: State::Busy,
        operation: 0,
        round: 0,
        step: 0,
        rounds: 0,
        register: vec![false; 2 * bits as usize],
        read: vec![false; 2 * bits as usize],
        moving: Vec::new(),
        eager: eager(),
    };
    let mut group = Group {
        sim,
        fabric,
        wires,
        operations,
        participants: (0..expected).map(|_| participant()).collect(),
        register: Registers { half_bits: bits.max(1), registers: 1 },
        outcome: Outcome {
            left: vec![vec![Time::ZERO; expected]; operations.len()],
            signals: 0,
            moved_bytes: vec![0; depth],
            events: 0,
        },
    };
    group.run()?;
    Ok(group.outcome)
}

impl Group<'_> {
    fn run(&mut self) -> Result<(), CollectiveError> {
        for rank in 0..self.participants.len() as u32 {
            self.sim.after(self.fabric.costs.enter, Event::Go(rank));
        }
        while let Some(event) = self.sim.next() {
            match event {
                Event::Go(rank) => self.go(rank),
                Event::Signal { to, bit } => {
                    let participant = &mut self.participants[to as usize];
                    participant.register[bit as usize] = true;
                    if participant.state == State::ForSignal {
                        self.read(to);
                    }
                }
                Event::Told { to, count: Count { of, taken, rounds } } => {
                    let participant = &mut self.participants[to as usize];
                    let known = &mut participant.eager.come[of as usize][usize::from(taken)];
                    *known = rounds.max(*known);
                    if participant.state == State::ForSignal {
                        self.read(to);
                    }
                }
                Event::Moved { by, with, into } => {
                    let participant = &mut self.participants[by as usize];
                    let is_it = |m: &&mut Moving| (m.with, m.into, m.complete) == (with, into, false);
                    if let Some(moving) = participant.moving.iter_mut().find(is_it) {
                        moving.complete = true;
                    }
                    if participant.state == State::ForTransfers {
                        self.go(by);
                    }
                }
            }
        }
        self.outcome.events = self.sim.events();
        match self.participants.iter().position(|p| p.state != State::Done) {
            None => Ok(()),
            Some(rank) => {
                let Participant { operation, step, .. } = self.participants[rank];
                Err(CollectiveError::Stuck { rank, operation, step })
            }
        }
    }

    /// The processor of a participant is busy for so long, and then goes on.
    fn busy(&mut self, rank: u32, time: Time) {
        self.participants[rank as usize].state = State::Busy;
        self.sim.after(time, Event::Go(rank));
    }

    /// Reads the register, which is not empty.
    fn read(&mut self, rank: u32) {
        let participant = &mut self.participants[rank as usize];
        for (read, bit) in participant.read.iter_mut().zip(&mut participant.register) {
            *read |= std::mem::take(bit);
        }
        participant.eager.read.clone_from(&participant.eager.come);
        self.busy(rank, self.fabric.costs.read);
    }

    /// Executes the steps of a participant up to the next one that takes time or has to wait.
    fn go(&mut self, rank: u32) {
        let costs = self.fabric.costs;
        let operations = self.operations;
        loop {
            let at = &mut self.participants[rank as usize];
            let schedule = &operations[at.operation].participants[rank as usize];
            let Some(step) = schedule.steps.get(at.step) else {
                at.step = 0;
                at.round += 1;
                *(if schedule.eager { &mut at.eager.rounds } else { &mut at.rounds }) += 1;
                if at.round < schedule.segments.rounds() {
                    continue;
                }
                at.round = 0;
                self.outcome.left[at.operation][rank as usize] = self.sim.now();
                at.operation += 1;
                if at.operation == operations.len() {
                    at.state = State::Done;
                    return;
                }
                return self.busy(rank, costs.enter);
            };
            let (rounds, bytes) = (at.rounds, {
                let round = schedule.segments.round(at.round);
                round.end - round.start
            });
            match *step {
                Step::Signal { to, bit } => {
                    at.step += 1;
                    return self.signal(rank, to, self.register.place(bit, rounds).bit, Time::ZERO);
                }
                Step::Reserve => {
                    let place = Ring(operations[at.operation].request.ring).place(at.eager.rounds) as usize;
                    if let Some(&Some((used, operation))) = at.eager.used.get(place) {
                        let readers = &operations[operation].participants[rank as usize].readers;
                        if let Some(&late) = readers.iter().find(|&&of| at.eager.read[of as usize][1] < used) {
                            return self.look(rank, late, true);
                        }
                    }
                    at.step += 1;
                }
                Step::Expect { from } => {
                    if at.eager.read[from as usize][0] < Ring::count(at.eager.rounds) {
                        return self.look(rank, from, false);
                    }
                    if !at.eager.owes.contains(&from) {
                        at.eager.owes.push_back(from);
                    }
                    at.step += 1;
                    return self.busy(rank, costs.test);
                }
                Step::Offer => {
                    let (rounds, ring) = (Ring::count(at.eager.rounds), Ring(operations[at.operation].request.ring));
                    at.eager.used.resize(ring.0.max(1) as usize, None);
                    at.eager.used[ring.place(at.eager.rounds) as usize] = Some((rounds, at.operation));
                    if let Some(&to) = schedule.readers.get(at.eager.told) {
                        at.eager.told += 1;
                        return self.tell(rank, to, false, rounds);
                    }
                    at.eager.told = 0;
                    at.step += 1;
                }
                Step::Taken => {
                    let rounds = Ring::count(at.eager.rounds);
                    if Ring(operations[at.operation].request.ring).tells(at.eager.rounds)
                        && let Some(to) = at.eager.owes.pop_front()
                    {
                        return self.tell(rank, to, true, rounds);
                    }
                    at.step += 1;
                }
                Step::Release { to, bit } => {
                    let Some(found) = self.found(rank, |m| m.with == to) else { return };
                    return self.signal(rank, to, self.register.place(bit, rounds).bit, found);
                }
                Step::Await { bit, .. } => {
                    let index = self.register.place(bit, rounds).bit as usize;
                    let at = &mut self.participants[rank as usize];
                    if std::mem::take(&mut at.read[index]) {
                        at.step += 1;
                        return self.busy(rank, costs.test);
                    }
                    if at.register.contains(&true) {
                        return self.read(rank);
                    }
                    at.state = State::ForSignal;
                    return;
                }
                Step::Put { to, .. } => {
                    at.step += 1;
                    return self.transfer(rank, (rank, to), None, bytes);
                }
                Step::Get { from, target, .. } => {
                    at.step += 1;
                    return self.transfer(rank, (from, rank), Some(target), bytes);
                }
                Step::Flush => {
                    let Some(found) = self.found(rank, |_| true) else { return };
                    return self.busy(rank, found);
                }
                Step::Combine { left, right, .. } => {
                    let operand = |m: &Moving| m.into == Some(left) || m.into == Some(right);
                    let Some(found) = self.found(rank, operand) else { return };
                    let time = Time::at_rate(bytes as f64, costs.combine_bytes_per_second);
                    return self.busy(rank, found + costs.combine + time);
                }
            }
        }
    }

    /// A step that waits for some transfers of a participant: what it costs to find that they are complete, and on to the
    /// next step; `None` if some are not, and the participant waits.
    fn found(&mut self, rank: u32, which: impl Fn(&Moving) -> bool) -> Option<Time> {
        let at = &mut self.participants[rank as usize];
        if at.moving.iter().any(|m| which(m) && !m.complete) {
            at.state = State::ForTransfers;
            return None;
        }
        let before = at.moving.len();
        at.moving.retain(|m| !which(m));
        at.step += 1;
        Some(if at.moving.len() < before { self.fabric.costs.flush } else { Time::ZERO })
    }

    fn signal(&mut self, from: u32, to: u32, bit: u32, before: Time) {
        let wait = before + self.fabric.costs.send;
        self.wires.signal(&mut self.sim, self.fabric, (from, to), wait, Event::Signal { to, bit });
        self.outcome.signals += 1;
        self.busy(from, wait);
    }

    /// Waits for a count of another: reads what has come, or until something comes.
    fn look(&mut self, rank: u32, of: u32, taken: bool) {
        let at = &mut self.participants[rank as usize];
        let index = usize::from(taken);
        if at.eager.come[of as usize][index] > at.eager.read[of as usize][index] {
            return self.read(rank);
        }
        at.state = State::ForSignal;
    }

    /// Tells another a count of one's own, by a signal.
    fn tell(&mut self, from: u32, to: u32, taken: bool, rounds: u64) {
        let told = Event::Told { to, count: Count { of: from, taken, rounds } };
        self.wires.signal(&mut self.sim, self.fabric, (from, to), self.fabric.costs.send, told);
        self.outcome.signals += 1;
        self.busy(from, self.fabric.costs.send);
    }

    fn transfer(&mut self, by: u32, (from, to): (u32, u32), into: Option<Area>, bytes: u64) {
        let with = if by == from { to } else { from };
        self.outcome.moved_bytes[self.wires.distance(from, to)] += bytes;
        self.participants[by as usize].moving.push(Moving { with, into, complete: false });
        self.wires.transfer(&mut self.sim, self.fabric, by, (from, to), bytes, Event::Moved { by, with, into });
        self.busy(by, self.fabric.costs.start);
    }
}
