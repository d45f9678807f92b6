//! Operations that move bytes between the ready and go phases.

use super::{Group, List, Lists};
use crate::exchange::Meeting;
use crate::order::{Span, Terms};
use crate::{Area, Copies, Step};

/// Messages go down the tree with the go phase, after everybody was ready.
pub(super) fn broadcast(group: &Group) -> Lists {
    let ranks = (0..group.trees.size()).map(|rank| {
        let children = group.trees.children(rank);
        let mut list = List::new(Area::PAYLOAD);
        let overlapped = group.optimised && group.trees.parent(rank).is_none();
        for &child in children {
            list.steps.push(group.await_child(child));
            if overlapped {
                list.steps.push(put_payload(child));
            }
        }
        list.steps.extend(group.signal_parent(rank));
        list.steps.extend(group.await_parent(rank));
        hand_down(group, &mut list, children, !overlapped);
        list
    });
    Lists { ranks: ranks.collect(), areas: 1, ring_areas: 0 }
}

fn put_payload(to: u32) -> Step {
    Step::Put { to, source: Area::PAYLOAD, target: Area::PAYLOAD }
}

/// The payload to the children, unless it is under way already, and go.
fn hand_down(group: &Group, list: &mut List, children: &[u32], put: bool) {
    if put {
        list.steps.extend(children.iter().map(|&child| put_payload(child)));
    }
    if group.optimised {
        list.steps.extend(children.iter().map(|&child| group.release_child(child)));
    } else if !children.is_empty() {
        list.steps.push(Step::Flush);
        list.steps.extend(children.iter().map(|&child| group.signal_child(child)));
    }
}

/// Contributions go up the tree with the ready phase. With `all`, the result goes down with the go phase.
pub(super) fn reduce(group: &Group, all: bool) -> Lists {
    let n = group.trees.size();
    let mut ranks: Vec<List> = (0..n).map(|_| List::new(Area::PAYLOAD)).collect();
    let mut held: Vec<Option<Terms>> = vec![None; n as usize];
    let mut areas = 1;
    for rank in group.trees.upwards() {
        let children = group.trees.children(rank);
        let list = &mut ranks[rank as usize];
        let mut gather = Gather::new(Terms::new(n, group.free, (rank, Area::PAYLOAD)), Copies::One);
        let inboxes = if group.optimised {
            // Each get starts as soon as its child is ready.
            gather.get_each(group, children, &mut held, &mut list.steps)
        } else {
            list.steps.extend(children.iter().map(|&child| group.await_child(child)));
            let inboxes = gather.get_all(children, &mut held, &mut list.steps);
            if !children.is_empty() {
                list.steps.push(Step::Flush);
            }
            inboxes
        };
        let top = group.trees.parent(rank).is_none();
        let (mut arrived, mut released) = (0, 0);
        for inbox in &inboxes {
            gather.terms.take(inbox, &mut list.steps, into_payload_or_left);
            arrived += 1;
            // At the top everybody is known to have entered, so a child may leave once its part is used.
            while top && !all && group.optimised && released < arrived {
                if inboxes[released].iter().any(|(_, area)| !used(&list.steps, *area)) {
                    break;
                }
                list.steps.push(group.release_child(children[released]));
                released += 1;
            }
        }
        if let Some(signal) = group.signal_parent(rank) {
            // What is handed on uncombined must have arrived.
            if group.optimised && inboxes.iter().flatten().any(|(_, area)| !used(&list.steps, *area)) {
                list.steps.push(Step::Flush);
            }
            list.steps.push(signal);
        }
        list.steps.extend(group.await_parent(rank));
        match all {
            true => hand_down(group, list, children, true),
            false if group.optimised => {
                list.steps.extend(children[released..].iter().map(|&child| group.release_child(child)));
            }
            false => list.steps.extend(children.iter().map(|&child| group.signal_child(child))),
        }
        areas = areas.max(u64::from(gather.next - 1));
        held[rank as usize] = Some(gather.terms);
    }
    Lists { ranks, areas, ring_areas: 0 }
}

/// The result of a combination with one's own payload stays there; others stay on the left.
pub(super) fn into_payload_or_left(left: Area, right: Area) -> Area {
    // Index 0 is one's own, in whatever kind of area.
    if right.index == 0 { right } else { left }
}

/// Whether an area was an operand.
pub(super) fn used(steps: &[Step], area: Area) -> bool {
    steps.iter().any(|step| matches!(step, Step::Combine { left, right, .. } if area == *left || area == *right))
}

/// What one participant gets from others.
pub(super) struct Gather {
    pub(super) terms: Terms,
    copies: Copies,
    /// The next area that nothing lies in.
    pub(super) next: u32,
}

impl Gather {
    pub(super) fn new(terms: Terms, copies: Copies) -> Gather {
        Gather { terms, copies, next: 1 }
    }

    fn area(&mut self) -> Area {
        let index = self.next;
        self.next += 1;
        Area { index, copies: self.copies }
    }

    /// Gets all terms of `from`; returns them where they will lie.
    fn get(&mut self, from: u32, terms: &[(Span, Area)], steps: &mut Vec<Step>) -> Vec<(Span, Area)> {
        let mut got = Vec::with_capacity(terms.len());
        for &(span, source) in terms {
            let target = self.area();
            steps.push(Step::Get { from, source, target });
            got.push((span, target));
        }
        got
    }

    fn get_all(
        &mut self,
        children: &[u32],
        held: &mut [Option<Terms>],
        steps: &mut Vec<Step>,
    ) -> Vec<Vec<(Span, Area)>> {
        children.iter().map(|&child| self.get_held(child, held, steps)).collect()
    }

    fn get_each(
        &mut self,
        group: &Group,
        children: &[u32],
        held: &mut [Option<Terms>],
        steps: &mut Vec<Step>,
    ) -> Vec<Vec<(Span, Area)>> {
        let mut inboxes = Vec::with_capacity(children.len());
        for &child in children {
            steps.push(group.await_child(child));
            inboxes.push(self.get_held(child, held, steps));
        }
        inboxes
    }

    /// Children come before their parents, so theirs are known; each has one parent, so they are taken.
    pub(super) fn get_held(
        &mut self,
        child: u32,
        held: &mut [Option<Terms>],
        steps: &mut Vec<Step>,
    ) -> Vec<(Span, Area)> {
        let terms = held[child as usize].take();
        self.get(child, terms.as_ref().map_or(&[], Terms::items), steps)
    }
}

/// Pairwise exchange of partial results: both of a pair combine, so both hold the same. A partner may still read an
/// area when its owner has left; so no area is written twice in a round, and the areas alternate between rounds.
pub(super) fn exchange(group: &Group) -> Lists {
    let (n, exchange) = (group.trees.size(), group.exchange());
    let own = Area { index: 0, copies: Copies::Two };
    let mut ranks: Vec<List> = (0..n).map(|_| List::new(own)).collect();
    let gather = |rank| Gather::new(Terms::new(n, group.free, (rank, own)), Copies::Two);
    let mut gathers: Vec<Gather> = (0..n).map(gather).collect();
    let meetings: Vec<Vec<Meeting>> = (0..n).map(|rank| exchange.meetings(rank)).collect();
    let met = |with: fn(Meeting) -> bool| {
        let meetings = &meetings;
        (0..n).filter(move |&rank| meetings[rank as usize].iter().any(|&m| with(m)))
    };
    // Those outside the core hand in.
    for rank in met(|m| matches!(m, Meeting::Enter(_))) {
        if let [Meeting::Enter(inside)] = meetings[rank as usize][..] {
            ranks[rank as usize].steps.push(group.signal_leader(rank, inside));
            ranks[inside as usize].steps.push(group.await_leader(inside, rank));
            let terms = gathers[rank as usize].terms.clone();
            take_in(&mut gathers[inside as usize], &mut ranks[inside as usize].steps, rank, &terms);
        }
    }
    // The core swaps, one distance after the other.
    let swaps = |rank: u32| {
        meetings[rank as usize].iter().filter_map(|m| match *m {
            Meeting::Swap(partner) => Some(partner),
            _ => None,
        })
    };
    let distances = swaps(0).count();
    for distance in 0..distances {
        let before: Vec<Terms> = gathers.iter().map(|gather| gather.terms.clone()).collect();
        for rank in 0..n {
            let Some(partner) = swaps(rank).nth(distance) else { continue };
            let steps = &mut ranks[rank as usize].steps;
            let handed_on = |(_, area): &(Span, Area)| *area != own && got_unused(steps, *area);
            if before[rank as usize].items().iter().any(handed_on) {
                steps.push(Step::Flush);
            }
            steps.push(group.signal_leader(rank, partner));
            steps.push(group.await_leader(rank, partner));
            take_in(&mut gathers[rank as usize], steps, partner, &before[partner as usize]);
        }
    }
    for rank in 0..n {
        if let [(_, area)] = gathers[rank as usize].terms.items() {
            ranks[rank as usize].result = *area;
        }
    }
    // Those outside the core get the result.
    for rank in met(|m| matches!(m, Meeting::Enter(_))) {
        if let [Meeting::Enter(inside)] = meetings[rank as usize][..] {
            let source = ranks[inside as usize].result;
            ranks[inside as usize].steps.push(group.signal_leader(inside, rank));
            let target = gathers[rank as usize].area();
            let list = &mut ranks[rank as usize];
            list.steps.push(group.await_leader(rank, inside));
            list.steps.extend([Step::Get { from: inside, source, target }, Step::Flush]);
            list.result = target;
        }
    }
    Lists { ranks, areas: gathers.iter().map(|gather| gather.next.into()).max().unwrap_or(1), ring_areas: 0 }
}

/// Gets the terms of a partner and combines what can be, always into areas that nothing lies in.
fn take_in(gather: &mut Gather, steps: &mut Vec<Step>, from: u32, terms: &Terms) {
    let got = gather.get(from, terms.items(), steps);
    let Gather { terms, next, copies } = gather;
    terms.take(&got, steps, |_, _| {
        let index = *next;
        *next += 1;
        Area { index, copies: *copies }
    });
}

/// Whether an area was got and has not been waited for by a combination.
fn got_unused(steps: &[Step], area: Area) -> bool {
    steps.iter().any(|step| matches!(step, Step::Get { target, .. } if *target == area)) && !used(steps, area)
}
