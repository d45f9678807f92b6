//! Eager operations: no ready and go phases. Who has something for others leaves it in a place of its own ring, and goes
//! on; who gets something waits for it, and tells now and then what it has taken, so that places can be used again.

use super::data::{Gather, into_payload_or_left, used};
use super::{Group, List, Lists};
use crate::order::Terms;
use crate::{Area, Copies, Step};

const RING: Area = Area { index: 0, copies: Copies::Ring };

/// The message goes down the tree from ring to ring.
pub(super) fn broadcast(group: &Group) -> Lists {
    let ranks = (0..group.trees.size()).map(|rank| {
        let (parent, offers) = (group.trees.parent(rank), !group.trees.children(rank).is_empty());
        let mut list = List::new(if offers { RING } else { Area::PAYLOAD });
        if offers {
            list.steps.push(Step::Reserve);
        }
        if let Some(from) = parent {
            let get = Step::Get { from, source: RING, target: list.payload };
            list.steps.extend([Step::Expect { from }, get, Step::Flush]);
        }
        if offers {
            list.steps.push(Step::Offer);
        }
        if offers || parent.is_some() {
            list.steps.push(Step::Taken);
        }
        list
    });
    Lists { ranks: ranks.collect(), areas: 1, ring_areas: 1 }
}

/// Contributions and partial results go up the tree from ring to ring. Children are served in their order; what has come
/// is combined at once.
pub(super) fn reduce(group: &Group) -> Lists {
    let n = group.trees.size();
    let mut ranks: Vec<List> = (0..n).map(|_| List::new(Area::PAYLOAD)).collect();
    let mut held: Vec<Option<Terms>> = vec![None; n as usize];
    let (mut areas, mut ring_areas) = (1, 1);
    for rank in group.trees.upwards() {
        let offers = group.trees.parent(rank).is_some();
        let own = if offers { RING } else { Area::PAYLOAD };
        let mut list = List::new(own);
        if offers {
            list.steps.push(Step::Reserve);
        }
        let mut gather = Gather::new(Terms::new(n, group.free, (rank, own)), own.copies);
        let mut got = Vec::new();
        // Each transfer starts as soon as its child has offered; what came before is combined after that.
        let mut inboxes = Vec::new();
        for &child in group.trees.children(rank) {
            list.steps.push(Step::Expect { from: child });
            inboxes.push(gather.get_held(child, &mut held, &mut list.steps));
        }
        for inbox in inboxes {
            gather.terms.take(&inbox, &mut list.steps, into_payload_or_left);
            got.extend(inbox);
        }
        // What is handed on uncombined must have arrived.
        if got.iter().any(|(_, area)| !used(&list.steps, *area)) {
            list.steps.push(Step::Flush);
        }
        if offers {
            list.steps.push(Step::Offer);
        }
        if n > 1 {
            list.steps.push(Step::Taken);
        }
        // One's own has a buffer of its own beside that of what is got; in a ring both lie in one place.
        match own.copies {
            Copies::Ring => ring_areas = ring_areas.max(u64::from(gather.next)),
            _ => areas = areas.max(u64::from(gather.next - 1)),
        }
        held[rank as usize] = Some(gather.terms);
        ranks[rank as usize] = list;
    }
    Lists { ranks, areas, ring_areas }
}
