//! The proof by happens-before: one interleaving, with vector clocks.

use super::program::{Action, Move, Place, Program, Transfers};
use super::value::{NOTHING, Value, Values};
use super::{Fault, Wrong};
use crate::Schedules;

/// Proves the sequence for every interleaving from one: see [`crate::check`].
///
/// # Errors
/// The first fault met.
pub fn happens_before(sequence: &[Schedules], transfers: Transfers) -> Result<(), Fault> {
    prove(&Program::new(sequence, transfers)?)
}

/// Proves a program for every interleaving from one.
pub(super) fn prove(program: &Program) -> Result<(), Fault> {
    let mut run = Run::new(program);
    loop {
        let mut moved = false;
        for rank in 0..program.n {
            while run.act(rank)? {
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    run.end()
}

/// One count of actions for each rank.
type Clock = Box<[u32]>;

/// One access to an area by one participant, from its start to the action that knows it complete.
#[derive(Clone, Copy, Debug)]
struct Access {
    actor: u32,
    writes: bool,
    /// The actor's own count when it was known complete; none while it is under way.
    complete: Option<u32>,
    /// Which transfer of the actor it belongs to.
    transfer: u32,
}

#[derive(Debug, Default)]
struct Slot {
    /// Who set it, in which round, with which clock.
    set: Option<(u32, u32, Clock)>,
    /// Who cleared it last: the receiver's count then.
    cleared: u32,
}

struct Run<'a> {
    program: &'a Program,
    values: Values,
    next: Vec<usize>,
    clocks: Vec<Clock>,
    slots: Vec<Slot>,
    content: Vec<Value>,
    accesses: Vec<Vec<Access>>,
    /// For each count how it grew: to what, by a participant with which clock.
    counts: Vec<Vec<(u32, Clock)>>,
    /// For each place the last round that transferred something to it.
    arrived: Vec<Option<u32>>,
    /// Transfers under way of each rank, with their numbers.
    under_way: Vec<Vec<(u32, Move)>>,
    transfers: u32,
    /// For each rank the count of its own that entered a round.
    entered: Vec<Vec<u32>>,
}

impl Run<'_> {
    fn new(program: &Program) -> Run<'_> {
        let n = program.n as usize;
        Run {
            program,
            values: Values::default(),
            next: vec![0; n],
            clocks: vec![vec![0; n].into(); n],
            slots: program.receivers.iter().map(|_| Slot::default()).collect(),
            content: vec![NOTHING; program.owners.len()],
            accesses: vec![Vec::new(); program.owners.len()],
            counts: vec![Vec::new(); program.counts()],
            arrived: vec![None; program.owners.len()],
            under_way: vec![Vec::new(); n],
            transfers: 0,
            entered: vec![Vec::new(); n],
        }
    }

    /// One action of a rank; false if it is over or has to wait.
    fn act(&mut self, rank: u32) -> Result<bool, Fault> {
        let me = rank as usize;
        let Some(&(round, step, action)) = self.program.actions[me].get(self.next[me]) else { return Ok(false) };
        let fault = |what| Fault { rank, round, step, what };
        if let Action::Await { slot, .. } = action
            && self.slots[slot as usize].set.is_none()
        {
            return Ok(false);
        }
        let mut reached = None;
        if let Action::Reach { count, least } = action {
            // Whoever waits may see a later step of the count, but can rely on this one only.
            let grown = &self.counts[count as usize];
            let Some((_, clock)) = grown.get(grown.partition_point(|(to, _)| *to < least)) else { return Ok(false) };
            reached = Some(clock.clone());
        }
        self.next[me] += 1;
        self.clocks[me][me] += 1;
        match action {
            Action::Reach { .. } => self.learn(me, &reached.unwrap_or_default()),
            Action::Raise { count, to } => self.counts[count as usize].push((to, self.clocks[me].clone())),
            Action::Enter(place) => {
                self.entered[me].push(self.clocks[me][me]);
                if let Some(place) = place {
                    let value = self.values.contribution(round, rank);
                    self.at_once(rank, place, true).map_err(fault)?;
                    self.content[place as usize] = value;
                }
            }
            Action::Signal { to, slot } => {
                let slot = &mut self.slots[slot as usize];
                if slot.set.is_some() || slot.cleared > self.clocks[me][to as usize] {
                    return Err(fault(Wrong::SetTwice { at: to }));
                }
                slot.set = Some((rank, round, self.clocks[me].clone()));
            }
            Action::Await { from, slot } => {
                let slot = &mut self.slots[slot as usize];
                if let Some((sender, of, clock)) = slot.set.take() {
                    slot.cleared = self.clocks[me][me];
                    if (sender, of) != (from, round) {
                        return Err(fault(Wrong::Mixed { sender, round: of, expected: from }));
                    }
                    self.learn(me, &clock);
                }
            }
            Action::Start(transfer) => {
                let number = self.start(rank, round, transfer).map_err(fault)?;
                self.under_way[me].push((number, transfer));
            }
            Action::Copy(transfer) => {
                let number = self.start(rank, round, transfer).map_err(fault)?;
                self.complete(rank, number, transfer);
            }
            Action::Flush => self.complete_where(rank, |_| true),
            Action::Complete { with } => self.complete_where(rank, |transfer| transfer.other == with),
            Action::Combine { into, left, right } => {
                self.complete_where(rank, |transfer| transfer.target == left || transfer.target == right);
                for operand in [left, right] {
                    self.at_once(rank, operand, false).map_err(fault)?;
                }
                let (a, b) = (self.content[left as usize], self.content[right as usize]);
                if a == NOTHING || b == NOTHING {
                    return Err(fault(Wrong::Empty));
                }
                self.at_once(rank, into, true).map_err(fault)?;
                self.content[into as usize] = self.values.combined(a, b);
            }
            Action::Leave(place) => {
                if !self.under_way[me].is_empty() {
                    return Err(fault(Wrong::LeavesTransfer));
                }
                let clock = &self.clocks[me];
                let entered = |other: &u32| {
                    self.entered[*other as usize]
                        .get(round as usize)
                        .is_some_and(|&count| clock[*other as usize] >= count)
                };
                let missing = (0..self.program.n).find(|other| !entered(other));
                if let Some(missing) = missing.filter(|_| self.program.synchronises(round)) {
                    return Err(fault(Wrong::LeavesEarly { rank: missing }));
                }
                if let Some(place) = place {
                    self.at_once(rank, place, false).map_err(fault)?;
                    let value = self.content[place as usize];
                    if !self.program.is_result(&mut self.values, round, value) {
                        return Err(fault(Wrong::WrongResult));
                    }
                }
            }
        }
        Ok(true)
    }

    /// What is known to another is known to a rank.
    fn learn(&mut self, rank: usize, clock: &Clock) {
        for (mine, theirs) in self.clocks[rank].iter_mut().zip(clock) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Checks that every conflicting access to a place is complete before what `actor` does now.
    fn ordered(&self, actor: u32, place: Place, writes: bool) -> Result<(), Wrong> {
        let clock = &self.clocks[actor as usize];
        let conflict = |access: &&Access| {
            (access.writes || writes) && access.complete.is_none_or(|count| clock[access.actor as usize] < count)
        };
        match self.accesses[place as usize].iter().find(conflict) {
            None => Ok(()),
            Some(access) => Err(Wrong::Race { owner: self.program.owners[place as usize], other: access.actor }),
        }
    }

    fn note(&mut self, actor: u32, place: Place, writes: bool, complete: Option<u32>, transfer: u32) {
        let accesses = &mut self.accesses[place as usize];
        if writes {
            // All earlier accesses were just found complete before this one: it stands for them.
            accesses.clear();
        }
        accesses.push(Access { actor, writes, complete, transfer });
    }

    fn at_once(&mut self, actor: u32, place: Place, writes: bool) -> Result<(), Wrong> {
        self.ordered(actor, place, writes)?;
        let now = self.clocks[actor as usize][actor as usize];
        self.note(actor, place, writes, Some(now), 0);
        Ok(())
    }

    fn start(&mut self, actor: u32, round: u32, transfer: Move) -> Result<u32, Wrong> {
        self.transfers += 1;
        let Move { source, target, .. } = transfer;
        self.ordered(actor, source, false)?;
        self.ordered(actor, target, true)?;
        if self.content[source as usize] == NOTHING {
            return Err(Wrong::Empty);
        }
        if self.arrived[target as usize].replace(round) == Some(round) {
            return Err(Wrong::ArrivesTwice { owner: self.program.owners[target as usize] });
        }
        self.note(actor, source, false, None, self.transfers);
        self.note(actor, target, true, None, self.transfers);
        // Whoever touches source or target before it is complete is found to race.
        self.content[target as usize] = self.content[source as usize];
        Ok(self.transfers)
    }

    fn complete(&mut self, actor: u32, number: u32, transfer: Move) {
        let now = self.clocks[actor as usize][actor as usize];
        for place in [transfer.source, transfer.target] {
            for access in &mut self.accesses[place as usize] {
                if access.transfer == number {
                    access.complete = Some(now);
                }
            }
        }
    }

    fn complete_where(&mut self, actor: u32, which: impl Fn(&Move) -> bool) {
        let under_way = std::mem::take(&mut self.under_way[actor as usize]);
        let (complete, rest): (Vec<_>, Vec<_>) = under_way.into_iter().partition(|(_, transfer)| which(transfer));
        self.under_way[actor as usize] = rest;
        for (number, transfer) in complete {
            self.complete(actor, number, transfer);
        }
    }

    /// When nobody can go on: everybody is through, and no bit is left.
    fn end(&self) -> Result<(), Fault> {
        for rank in 0..self.program.n {
            if let Some(&(round, step, _)) = self.program.actions[rank as usize].get(self.next[rank as usize]) {
                return Err(Fault { rank, round, step, what: Wrong::Stuck });
            }
        }
        let left = self.slots.iter().position(|slot| slot.set.is_some());
        match left {
            None => Ok(()),
            Some(slot) => {
                let rank = self.program.receivers[slot];
                let round = self.slots[slot].set.as_ref().map_or(0, |set| set.1);
                Err(Fault { rank, round, step: 0, what: Wrong::LeftOver })
            }
        }
    }
}
