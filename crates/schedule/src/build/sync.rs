//! The ready and go phases: signals up the trees, among leaders, and down again. Alone they are the barriers.

use super::{Group, List, Lists};
use crate::exchange::Meeting;
use crate::{Area, Bit, Step};

impl Group {
    /// Ready: awaits a child.
    pub(super) fn await_child(&self, child: u32) -> Step {
        Step::Await { from: child, bit: Bit::new(self.trees.bit_at_parent(child)) }
    }

    /// Ready: tells the parent. `None` at the top of a tree.
    pub(super) fn signal_parent(&self, rank: u32) -> Option<Step> {
        let to = self.trees.parent(rank)?;
        Some(Step::Signal { to, bit: Bit::new(self.trees.bit_at_parent(rank)) })
    }

    /// Go: awaits the parent. `None` at the top of a tree.
    pub(super) fn await_parent(&self, rank: u32) -> Option<Step> {
        let from = self.trees.parent(rank)?;
        Some(Step::Await { from, bit: Bit::new(self.trees.bit_after_children(rank)) })
    }

    /// Go: tells a child, which needs none of the parent's transfers.
    pub(super) fn signal_child(&self, child: u32) -> Step {
        Step::Signal { to: child, bit: Bit::new(self.trees.bit_after_children(child)) }
    }

    /// Go: tells a child once the transfers with it are complete.
    pub(super) fn release_child(&self, child: u32) -> Step {
        Step::Release { to: child, bit: Bit::new(self.trees.bit_after_children(child)) }
    }

    /// The signal of one leader to another, by their positions.
    pub(super) fn signal_leader(&self, from: u32, to: u32) -> Step {
        let rank = self.trees.leaders()[to as usize];
        Step::Signal { to: rank, bit: self.leader_bit(to, from) }
    }

    /// The wait of one leader for another, by their positions.
    pub(super) fn await_leader(&self, at: u32, from: u32) -> Step {
        Step::Await { from: self.trees.leaders()[from as usize], bit: self.leader_bit(at, from) }
    }

    fn leader_bit(&self, receiver: u32, sender: u32) -> Bit {
        let rank = self.trees.leaders()[receiver as usize];
        Bit::new(self.trees.bit_after_children(rank) + self.exchange().bit(receiver, sender))
    }

    /// What a leader does between ready and go.
    fn exchange_signals(&self, position: u32) -> Vec<Step> {
        let (signal, hear) = (|to| self.signal_leader(position, to), |from| self.await_leader(position, from));
        let meetings = self.exchange().meetings(position).into_iter();
        meetings
            .flat_map(|meeting| match meeting {
                Meeting::Enter(p) | Meeting::Swap(p) => vec![signal(p), hear(p)],
                Meeting::Admit(p) => vec![hear(p)],
                Meeting::Dismiss(p) => vec![signal(p)],
            })
            .collect()
    }
}

/// ATOBar, TTBar, BTBar, their blade variants, and PEBar, where everybody is a leader.
pub(super) fn barrier(group: &Group) -> Lists {
    let mut between = vec![Vec::new(); group.trees.size() as usize];
    for (position, &leader) in (0..).zip(group.trees.leaders()) {
        between[leader as usize] = group.exchange_signals(position);
    }
    let ranks = (0..).zip(between).map(|(rank, between)| {
        let children = group.trees.children(rank);
        let mut list = List::new(Area::PAYLOAD);
        list.steps.extend(children.iter().map(|&child| group.await_child(child)));
        list.steps.extend(group.signal_parent(rank));
        list.steps.extend(between);
        list.steps.extend(group.await_parent(rank));
        list.steps.extend(children.iter().map(|&child| group.signal_child(child)));
        list
    });
    Lists { ranks: ranks.collect(), areas: 0, ring_areas: 0 }
}
