//! Scripts of messages, proved as the other schedules are.
//!
//! A message is lowered to its rendezvous: on beginning a round the receiver sets a bit at each sender; the sender awaits
//! it, copies, and sets a bit at the receiver, one message after the other; the receiver awaits that. Each message has two
//! bits of its own. So what is proved holds for whoever sends one message of a round after the other and keeps none in
//! between, and all the more for those who begin them together, or buffer: in any of these, every wait ends no later.
//! Every block is an area. Nothing is lost, doubled or left over, no block is used and written at the same time, and every
//! rank leaves with the stated blocks, reductions combined in the stated order.

use super::program::{Action, Leaves, Move, Place, Program, Slot};
use super::{Explored, Fault, Wrong, explore, ordered};
use crate::message::{Local, Operation, Piece, Round, Scripts};
use std::collections::HashMap;

/// Proves scripts for every interleaving from one.
///
/// # Errors
/// The first fault met. Its step is the round of that rank, from 1; its round the block that is left with.
pub fn happens_before(scripts: &Scripts) -> Result<(), Fault> {
    let lowered = Lowered::new(scripts)?;
    ordered::prove(&lowered.program).map_err(|fault| lowered.told(fault))
}

/// Visits every state that any interleaving reaches.
///
/// # Errors
/// As [`happens_before`], and [`Wrong::TooManyStates`] if there are more than `states_max`.
pub fn every_interleaving(scripts: &Scripts, states_max: usize) -> Result<Explored, Fault> {
    let lowered = Lowered::new(scripts)?;
    explore::visit(&lowered.program, states_max).map_err(|fault| lowered.told(fault))
}

/// A message, by its receiver.
struct Receipt {
    number: u32,
    /// The bit that says that it may be sent, and the one that says that it was.
    ready: Slot,
    sent: Slot,
    into: Vec<Place>,
}

struct Lowered {
    program: Program,
    /// What messages and copies are numbered from on: entering and leaving are numbered before.
    numbers: u32,
    /// For each rank and area the place of block 0, which may not exist.
    places: Vec<Vec<i64>>,
}

impl Lowered {
    fn new(scripts: &Scripts) -> Result<Lowered, Fault> {
        let (n, operation) = (scripts.ranks.len() as u32, scripts.request.operation);
        let mut program = Program::empty(n);
        let mut places = Vec::new();
        for (script, rank) in scripts.ranks.iter().zip(0..) {
            let fault = |(step, what)| Fault { rank, round: 0, step, what };
            script.well_formed(operation, n).map_err(fault)?;
            let mut areas = Vec::new();
            for blocks in &script.areas {
                areas.push(program.owners.len() as i64 - i64::from(blocks.start));
                program.owners.extend(blocks.clone().map(|_| rank));
            }
            places.push(areas);
        }
        let mut lowered = Lowered { program, numbers: 0, places };
        lowered.enter(scripts);
        let leaving = lowered.leaving(scripts);
        lowered.numbers = lowered.program.rounds.len() as u32;
        lowered.messages(scripts)?;
        for (actions, leaving) in lowered.program.actions.iter_mut().zip(leaving) {
            actions.extend(leaving);
        }
        Ok(lowered)
    }

    /// A fault as it is told: numbers of messages are nobody's business.
    fn told(&self, fault: Fault) -> Fault {
        Fault { round: if fault.round < self.numbers { fault.round } else { 0 }, ..fault }
    }

    fn place(&self, rank: u32, area: u32, block: u32) -> Place {
        (self.places[rank as usize][area as usize] + i64::from(block)) as Place
    }

    fn all(&self, rank: u32, pieces: &[Piece]) -> Vec<Place> {
        let blocks = |piece: &Piece| (piece.first..piece.end).map(|b| (b, piece.area)).collect::<Vec<_>>();
        pieces.iter().flat_map(blocks).map(|(block, area)| self.place(rank, area, block)).collect()
    }

    /// Everybody enters a round for each block, or one without a block.
    fn enter(&mut self, scripts: &Scripts) {
        let operation = scripts.request.operation;
        for block in 0..scripts.blocks.max(1) {
            self.program.rounds.push((Leaves::Nothing, operation == Operation::Barrier));
            for rank in 0..self.program.n {
                let contributes = match operation {
                    Operation::Barrier => false,
                    Operation::Broadcast { root } => rank == root,
                    Operation::Allgather => rank == block,
                    Operation::Reduce { .. } | Operation::Allreduce { .. } | Operation::Alltoall => true,
                };
                let place = contributes.then(|| self.place(rank, 0, block));
                self.program.actions[rank as usize].push((block, 0, Action::Enter(place)));
            }
        }
    }

    /// What everybody leaves with.
    fn leaving(&mut self, scripts: &Scripts) -> Vec<Vec<(u32, u32, Action)>> {
        let operation = scripts.request.operation;
        let leave = |rank: u32| {
            let end = scripts.ranks[rank as usize].rounds.len() as u32 + 1;
            let Some(area) = operation.result(rank) else { return vec![(0, end, Action::Leave(None))] };
            let each = (0..scripts.blocks).map(|block| {
                let leaves = match operation {
                    Operation::Barrier => Leaves::Nothing,
                    Operation::Broadcast { root } => Leaves::Contribution { round: block, rank: root },
                    Operation::Allgather => Leaves::Contribution { round: block, rank: block },
                    Operation::Alltoall => Leaves::Contribution { round: rank, rank: block },
                    Operation::Reduce { order, .. } | Operation::Allreduce { order } => {
                        Leaves::Combined { round: block, order }
                    }
                };
                self.program.rounds.push((leaves, false));
                (self.program.rounds.len() as u32 - 1, end, Action::Leave(Some(self.place(rank, area, block))))
            });
            each.collect()
        };
        (0..scripts.ranks.len() as u32).map(leave).collect()
    }

    /// The bits, copies and combinations of all rounds.
    fn messages(&mut self, scripts: &Scripts) -> Result<(), Fault> {
        // The k-th message from one rank to another, as the receiver knows it.
        let mut receipts: HashMap<(u32, u32), Vec<Receipt>> = HashMap::new();
        let mut number = self.numbers;
        for script in &scripts.ranks {
            for message in script.rounds.iter().flat_map(|round| &round.receives) {
                let into = self.all(script.rank, &message.pieces);
                let (ready, sent) = (self.slot(message.with), self.slot(script.rank));
                let come = receipts.entry((message.with, script.rank)).or_default();
                come.push(Receipt { number, ready, sent, into });
                number += 1;
            }
        }
        let mut sends: HashMap<(u32, u32), usize> = HashMap::new();
        for (script, rank) in scripts.ranks.iter().zip(0..) {
            let mut received: HashMap<u32, usize> = HashMap::new();
            for (Round { sends: out, receives, then }, step) in script.rounds.iter().zip(1..) {
                let mut actions = Vec::new();
                let mut come = Vec::new();
                for message in receives {
                    let at = received.entry(message.with).or_default();
                    let Receipt { number, ready, sent, .. } = receipts[&(message.with, rank)][*at];
                    *at += 1;
                    actions.push((number, step, Action::Signal { to: message.with, slot: ready }));
                    come.push((number, step, Action::Await { from: message.with, slot: sent }));
                }
                for message in out {
                    let to = message.with;
                    let at = sends.entry((rank, to)).or_default();
                    let Some(receipt) = receipts.get(&(rank, to)).and_then(|all| all.get(*at)) else {
                        // Nobody receives it.
                        let slot = self.slot(rank);
                        actions.push((number, step, Action::Await { from: to, slot }));
                        continue;
                    };
                    *at += 1;
                    let sources = self.all(rank, &message.pieces);
                    if sources.len() != receipt.into.len() {
                        return Err(Fault { rank, round: 0, step, what: Wrong::Unlike { with: to } });
                    }
                    let number = receipt.number;
                    actions.push((number, step, Action::Await { from: to, slot: receipt.ready }));
                    let moves = sources.into_iter().zip(&receipt.into);
                    actions
                        .extend(moves.map(|(source, &target)| {
                            (number, step, Action::Start(Move { other: to, source, target }))
                        }));
                    actions.push((number, step, Action::Complete { with: to }));
                    actions.push((number, step, Action::Signal { to, slot: receipt.sent }));
                }
                actions.append(&mut come);
                for local in then {
                    match *local {
                        Local::Combine { into, left, right } => {
                            let [into, left, right] = [into, left, right].map(|piece| self.all(rank, &[piece]));
                            for ((into, left), right) in into.into_iter().zip(left).zip(right) {
                                actions.push((number, step, Action::Combine { into, left, right }));
                            }
                        }
                        Local::Copy { into, from } => {
                            let (into, from) = (self.all(rank, &[into]), self.all(rank, &[from]));
                            let moves = into.into_iter().zip(from);
                            actions.extend(moves.map(|(target, source)| {
                                (number, step, Action::Copy(Move { other: rank, source, target }))
                            }));
                        }
                    }
                    // Copies of one number may not write to a place twice.
                    number += 1;
                }
                self.program.actions[rank as usize].append(&mut actions);
            }
        }
        Ok(())
    }

    fn slot(&mut self, at: u32) -> Slot {
        self.program.receivers.push(at);
        self.program.receivers.len() as Slot - 1
    }
}
