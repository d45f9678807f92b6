//! The proof by visiting every reachable state.

use super::program::{Action, Move, Program, Transfers};
use super::value::{NOTHING, Value, Values};
use super::{Fault, Wrong};
use crate::Schedules;
use std::collections::HashSet;

/// What was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Transitions between them.
    pub transitions: usize,
}

/// Visits every state that any interleaving reaches, transfers included: see [`crate::check`].
///
/// # Errors
/// The first fault met; [`Wrong::TooManyStates`] if there are more than `states_max`.
pub fn every_interleaving(sequence: &[Schedules], transfers: Transfers, states_max: usize) -> Result<Explored, Fault> {
    visit(&Program::new(sequence, transfers)?, states_max)
}

/// Visits every state of a program.
pub(super) fn visit(program: &Program, states_max: usize) -> Result<Explored, Fault> {
    let mut values = Values::default();
    let first = State::first(program);
    let mut visited: HashSet<State> = HashSet::from([first.clone()]);
    let mut open = vec![first];
    let mut transitions = 0;
    while let Some(state) = open.pop() {
        let mut stuck = true;
        for rank in 0..program.n {
            for successor in [state.act(program, &mut values, rank)?].into_iter().chain(state.transfers(rank).map(Some))
            {
                let Some(successor) = successor else { continue };
                stuck = false;
                transitions += 1;
                if !visited.contains(&successor) {
                    if visited.len() == states_max {
                        let (round, step) = state.position(program, rank).unwrap_or((0, 0));
                        return Err(Fault { rank, round, step, what: Wrong::TooManyStates });
                    }
                    visited.insert(successor.clone());
                    open.push(successor);
                }
            }
        }
        if stuck {
            state.end(program)?;
        }
    }
    Ok(Explored { states: visited.len(), transitions })
}

/// Everything that the future depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    next: Vec<u16>,
    /// For each slot 0, or one more than round times participants plus sender.
    set: Vec<u16>,
    counts: Vec<u16>,
    content: Vec<Value>,
    /// Transfers that have not happened: source, target, with whom, sorted.
    under_way: Vec<Vec<(u32, u32, u32)>>,
    /// For each place one more than the last round that transferred something to it.
    arrived: Vec<u16>,
}

impl State {
    fn first(program: &Program) -> State {
        let n = program.n as usize;
        State {
            next: vec![0; n],
            set: vec![0; program.receivers.len()],
            counts: vec![0; program.counts()],
            content: vec![NOTHING; program.owners.len()],
            under_way: vec![Vec::new(); n],
            arrived: vec![0; program.owners.len()],
        }
    }

    fn position(&self, program: &Program, rank: u32) -> Option<(u32, u32)> {
        let (round, step, _) = program.actions[rank as usize].get(usize::from(self.next[rank as usize]))?;
        Some((*round, *step))
    }

    /// The state after the next action of a rank; none if it is over or has to wait.
    fn act(&self, program: &Program, values: &mut Values, rank: u32) -> Result<Option<State>, Fault> {
        let me = rank as usize;
        let Some(&(round, step, action)) = program.actions[me].get(usize::from(self.next[me])) else { return Ok(None) };
        let fault = |what| Err(Fault { rank, round, step, what });
        let waits = |which: &dyn Fn(&(u32, u32, u32)) -> bool| self.under_way[me].iter().any(which);
        let mut after = self.clone();
        after.next[me] += 1;
        match action {
            Action::Reach { count, least } if u32::from(self.counts[count as usize]) < least => return Ok(None),
            Action::Reach { .. } => {}
            Action::Raise { count, to } => after.counts[count as usize] = to as u16,
            Action::Enter(place) => {
                if let Some(place) = place {
                    after.content[place as usize] = values.contribution(round, rank);
                }
            }
            Action::Signal { to, slot } => {
                if self.set[slot as usize] != 0 {
                    return fault(Wrong::SetTwice { at: to });
                }
                after.set[slot as usize] = (1 + round * program.n + rank) as u16;
            }
            Action::Await { from, slot } => {
                let Some(mark) = u32::from(self.set[slot as usize]).checked_sub(1) else { return Ok(None) };
                let (sender, of) = (mark % program.n, mark / program.n);
                if (sender, of) != (from, round) {
                    return fault(Wrong::Mixed { sender, round: of, expected: from });
                }
                after.set[slot as usize] = 0;
            }
            Action::Start(Move { other, source, target }) => {
                let transfer = (source, target, other);
                let list = &mut after.under_way[me];
                let at = list.partition_point(|known| *known < transfer);
                list.insert(at, transfer);
                if std::mem::replace(&mut after.arrived[target as usize], round as u16 + 1) == round as u16 + 1 {
                    return fault(Wrong::ArrivesTwice { owner: program.owners[target as usize] });
                }
            }
            Action::Copy(Move { source, target, .. }) => {
                if self.content[source as usize] == NOTHING {
                    return fault(Wrong::Empty);
                }
                after.content[target as usize] = self.content[source as usize];
                if std::mem::replace(&mut after.arrived[target as usize], round as u16 + 1) == round as u16 + 1 {
                    return fault(Wrong::ArrivesTwice { owner: program.owners[target as usize] });
                }
            }
            Action::Flush if waits(&|_| true) => return Ok(None),
            Action::Complete { with } if waits(&|transfer| transfer.2 == with) => return Ok(None),
            Action::Flush | Action::Complete { .. } => {}
            Action::Combine { into, left, right } => {
                if waits(&|transfer| transfer.1 == left || transfer.1 == right) {
                    return Ok(None);
                }
                let (a, b) = (self.content[left as usize], self.content[right as usize]);
                if a == NOTHING || b == NOTHING {
                    return fault(Wrong::Empty);
                }
                after.content[into as usize] = values.combined(a, b);
            }
            Action::Leave(place) => {
                if waits(&|_| true) {
                    return fault(Wrong::LeavesTransfer);
                }
                for other in (0..program.n).filter(|_| program.synchronises(round)) {
                    // Entering is an action: whoever is about to enter has not entered.
                    let entered = usize::from(self.next[other as usize])
                        .checked_sub(1)
                        .is_some_and(|last| program.actions[other as usize][last].0 >= round);
                    if !entered {
                        return fault(Wrong::LeavesEarly { rank: other });
                    }
                }
                if let Some(place) = place
                    && !program.is_result(values, round, self.content[place as usize])
                {
                    return fault(Wrong::WrongResult);
                }
            }
        }
        Ok(Some(after))
    }

    /// The states after a transfer of a rank has happened.
    fn transfers(&self, rank: u32) -> impl Iterator<Item = State> {
        (0..self.under_way[rank as usize].len()).map(move |i| {
            let mut after = self.clone();
            let (source, target, _) = after.under_way[rank as usize].remove(i);
            // Nothing may lie there, in a wrong schedule: then nothing arrives, which is found by whoever uses it.
            after.content[target as usize] = self.content[source as usize];
            after
        })
    }

    fn end(&self, program: &Program) -> Result<(), Fault> {
        for rank in 0..program.n {
            if let Some((round, step)) = self.position(program, rank) {
                return Err(Fault { rank, round, step, what: Wrong::Stuck });
            }
        }
        match self.set.iter().position(|&mark| mark != 0) {
            None => Ok(()),
            Some(slot) => {
                let round = (u32::from(self.set[slot]) - 1) / program.n;
                Err(Fault { rank: program.receivers[slot], round, step: 0, what: Wrong::LeftOver })
            }
        }
    }
}
