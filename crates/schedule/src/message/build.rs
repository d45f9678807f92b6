//! How scripts are put together: messages for all ranks at once, in the order in which they would be sent.

use super::{Local, Message, Piece, Round, Script};
use crate::order::Terms;
use crate::{Area, Copies, Order, Span, Step};
use std::ops::Range;

/// A message with both of its ends.
pub(super) struct Sent {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) out: Vec<Piece>,
    pub(super) into: Vec<Piece>,
}

impl Sent {
    pub(super) fn one(from: u32, to: u32, out: Piece, into: Piece) -> Sent {
        Sent { from, to, out: vec![out], into: vec![into] }
    }

    pub(super) fn signal(from: u32, to: u32) -> Sent {
        Sent { from, to, out: Vec::new(), into: Vec::new() }
    }
}

pub(super) struct Build {
    pub(super) n: u32,
    pub(super) blocks: u32,
    ranks: Vec<Script>,
}

impl Build {
    pub(super) fn new(n: u32, blocks: u32) -> Build {
        let script = |rank| Script { rank, rounds: Vec::new(), areas: vec![0..blocks; 2] };
        Build { n, blocks, ranks: (0..n).map(script).collect() }
    }

    pub(super) fn finish(self) -> Vec<Script> {
        self.ranks
    }

    /// All blocks of an area.
    pub(super) fn all(&self, area: u32) -> Piece {
        Piece { area, first: 0, end: self.blocks }
    }

    /// Another area of a rank.
    pub(super) fn area(&mut self, rank: u32, blocks: Range<u32>) -> u32 {
        let areas = &mut self.ranks[rank as usize].areas;
        areas.push(blocks);
        areas.len() as u32 - 1
    }

    /// Messages that are under way at the same time: for whoever sends or receives any, the next round.
    pub(super) fn exchange(&mut self, messages: impl IntoIterator<Item = Sent>) {
        let mut begun = vec![false; self.n as usize];
        let mut round = |ranks: &mut Vec<Script>, rank: u32| {
            let rounds = &mut ranks[rank as usize].rounds;
            if !std::mem::replace(&mut begun[rank as usize], true) {
                rounds.push(Round::default());
            }
            rounds.len() - 1
        };
        for Sent { from, to, out, into } in messages {
            let at = round(&mut self.ranks, from);
            self.ranks[from as usize].rounds[at].sends.push(Message { with: to, pieces: out });
            let at = round(&mut self.ranks, to);
            self.ranks[to as usize].rounds[at].receives.push(Message { with: from, pieces: into });
        }
    }

    /// What a rank does after what it has done so far.
    pub(super) fn then(&mut self, rank: u32, local: Local) {
        let rounds = &mut self.ranks[rank as usize].rounds;
        if rounds.is_empty() {
            rounds.push(Round::default());
        }
        if let Some(round) = rounds.last_mut() {
            round.then.push(local);
        }
    }

    /// Gives two areas of a rank each other's number. They have room for the same blocks.
    fn swap(&mut self, rank: u32, a: u32, b: u32) {
        let swap = |piece: &mut Piece| {
            piece.area = if piece.area == a {
                b
            } else if piece.area == b {
                a
            } else {
                piece.area
            };
        };
        for round in &mut self.ranks[rank as usize].rounds {
            round.sends.iter_mut().chain(&mut round.receives).flat_map(|m| &mut m.pieces).for_each(swap);
            for local in &mut round.then {
                match local {
                    Local::Combine { into, left, right } => [into, left, right].into_iter().for_each(swap),
                    Local::Copy { into, from } => [into, from].into_iter().for_each(swap),
                }
            }
        }
    }
}

/// What a rank has combined so far of some blocks: partial results, nodes of the canonical tree, each in an area.
pub(super) struct Partial {
    rank: u32,
    blocks: Range<u32>,
    terms: Terms,
    /// Areas that nothing is needed of any more.
    free: Vec<u32>,
}

impl Partial {
    /// The rank's own contribution.
    pub(super) fn own(build: &Build, rank: u32, order: Order, blocks: Range<u32>) -> Partial {
        let own = Area { index: 0, copies: Copies::One };
        let terms = Terms::new(build.n, matches!(order, Order::Free(_)), (rank, own));
        // Area 1 is where a result goes, and has room for partial ones until then.
        Partial { rank, blocks, terms, free: vec![1] }
    }

    fn piece(&self, area: u32) -> Piece {
        Piece { area, first: self.blocks.start, end: self.blocks.end }
    }

    /// The message by which this rank's contribution to some blocks, or all it has combined, is handed to another.
    pub(super) fn handed_to(&self, build: &mut Build, other: &mut Partial) -> (Sent, Vec<(Span, Area)>) {
        let mut sent = Sent::signal(self.rank, other.rank);
        let mut terms = Vec::new();
        for &(span, area) in self.terms.items() {
            let index = other.free.pop().unwrap_or_else(|| build.area(other.rank, other.blocks.clone()));
            // What both combine of: the rank's own blocks may be more.
            sent.out.push(Piece { area: area.index, ..other.piece(0) });
            sent.into.push(other.piece(index));
            terms.push((span, Area { index, copies: Copies::One }));
        }
        (sent, terms)
    }

    /// Combines what has come with what is there.
    pub(super) fn take(&mut self, build: &mut Build, come: &[(Span, Area)]) {
        let (mut steps, free) = (Vec::new(), &mut self.free);
        self.terms.take(come, &mut steps, |left, right| {
            // Nobody else needs operands that are no contribution: one holds the result, the other is free.
            match (left.index, right.index) {
                (0, 0) => Area { index: free.pop().unwrap_or(1), copies: Copies::One },
                (0, _) => right,
                (_, 0) => left,
                (_, index) => {
                    free.push(index);
                    left
                }
            }
        });
        for step in steps {
            if let Step::Combine { into, left, right } = step {
                let [into, left, right] = [into, left, right].map(|area| self.piece(area.index));
                build.then(self.rank, Local::Combine { into, left, right });
            }
        }
    }

    /// The area of the one result.
    fn result(&self) -> u32 {
        self.terms.items().first().map_or(0, |(_, area)| area.index)
    }

    /// Sees that the one result lies in area 1, and nothing else was done there on the way that would be wrong.
    pub(super) fn settle(&self, build: &mut Build) {
        match self.result() {
            0 => build.then(self.rank, Local::Copy { into: self.piece(1), from: self.piece(0) }),
            1 => {}
            // A scratch area of the same blocks changes places with area 1.
            area if self.blocks == (0..build.blocks) => build.swap(self.rank, 1, area),
            area => build.then(self.rank, Local::Copy { into: self.piece(1), from: self.piece(area) }),
        }
    }
}

/// Hands on all that some ranks have combined, each to another, at the same time; the others combine.
pub(super) fn hand_on(build: &mut Build, partials: &mut [Partial], pairs: &[(usize, usize)]) {
    let (mut messages, mut come) = (Vec::new(), Vec::new());
    for &(from, to) in pairs {
        let (low, high) = (from.min(to), from.max(to));
        let (head, tail) = partials.split_at_mut(high);
        let (a, b) = (&mut head[low], &mut tail[0]);
        let (sent, terms) = if from < to { a.handed_to(build, b) } else { b.handed_to(build, a) };
        messages.push(sent);
        come.push((to, terms));
    }
    build.exchange(messages);
    for (to, terms) in come {
        partials[to].take(build, &terms);
    }
}
