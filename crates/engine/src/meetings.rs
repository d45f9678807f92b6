//! Where all children of a plan meet: the team's collective barrier, by the algorithm that its table chooses for so many,
//! and its collective broadcast, by that for so many children and bytes.
//!
//! Unlike the end of a phase (see `phase`), at which work is waited for and not workers, a barrier is between children that
//! keep to their own steps, so each of them has to come.

use crate::error::EngineError;
use multigrain_machine::{Branch, Layout};
use multigrain_plan::cost::BROADCAST_BUFFER_BYTES;
use multigrain_plan::{Body, Op, Plan};
use multigrain_schedule::{ScheduleError, Topology};
use multigrain_team::collective::{Collective, CollectiveError, CollectiveOptions};
use multigrain_team::{Abort, SpinLimit};
use multigrain_trace::Tick;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Nobody moves bytes at a barrier, but a group has room for the areas of all operations of its table: so much, or more where many
/// children need it.
const BARRIER_BUFFER_BYTES: u64 = 4096;

/// The children of one memory as a group.
pub(crate) struct Meeting {
    group: Collective,
    /// For barriers of even and odd number, the child that came last. Written before a child tells the others that it is
    /// there.
    last_child: [AtomicU32; 2],
    /// For broadcasts of even and odd number, when the root came. Written before the root hands its block out.
    root_came: [AtomicU64; 2],
}

impl Meeting {
    /// Meets the others at the barrier of that number; gives the child that came last.
    #[inline]
    pub(crate) fn meet(&self, child: usize, number: u32, abort: &Abort) -> Result<usize, CollectiveError> {
        let last = &self.last_child[number as usize % 2];
        // Relaxed: published by the barrier. Whoever is at the barrier after the next writes it again, and by then
        // everybody has read it. Two who come at the same time may be told apart wrongly.
        last.store(child as u32, Ordering::Relaxed);
        self.group.barrier_until(child as u32, abort)?;
        Ok(last.load(Ordering::Relaxed) as usize)
    }

    /// Takes part in the broadcast of that number, at a moment; gives when the root came, or the same moment if it was before.
    pub(crate) fn broadcast(
        &self,
        (child, root): (usize, usize),
        number: u32,
        at: Tick,
        bytes: &mut [u8],
        abort: &Abort,
    ) -> Result<Tick, CollectiveError> {
        let came = &self.root_came[number as usize % 2];
        if child == root {
            // Relaxed: published by the broadcast. A root two broadcasts later may write it before everybody has read it,
            // and is then taken for this one: a moment in the records only.
            came.store(at.0, Ordering::Relaxed);
        }
        self.group.broadcast_until(child as u32, root as u32, bytes, abort)?;
        Ok(Tick(came.load(Ordering::Relaxed).max(at.0)))
    }
}

/// What the children of one memory meet for, in any plan.
#[derive(Clone, Copy, Default)]
struct Meets {
    barriers: bool,
    broadcasts: bool,
}

/// For each edge, the groups of children of its memories; none where no plan has a barrier or broadcast.
pub(crate) struct Meetings {
    edges: Vec<Vec<Meeting>>,
}

impl Meetings {
    /// Groups for all barriers and broadcasts of a plan and of those in it.
    pub(crate) fn reserve(plan: &Plan, layout: &Layout, spin: SpinLimit) -> Result<Meetings, EngineError> {
        let mut found = vec![Meets::default(); layout.branches().len()];
        collect(plan, &mut found);
        let of_edge = |(edge, (branch, meets)): (usize, (&Branch, Meets))| {
            let Meets { barriers, broadcasts } = meets;
            let buffer_bytes = if broadcasts { BROADCAST_BUFFER_BYTES } else { BARRIER_BUFFER_BYTES };
            let fault = |source: CollectiveError| EngineError::Barrier { edge, source };
            let group = || -> Result<Meeting, EngineError> {
                let group = group(branch.children as u32, buffer_bytes, spin).map_err(|e| fault(e.into()))?;
                Ok(Meeting { group, last_child: Default::default(), root_came: Default::default() })
            };
            (0..if barriers || broadcasts { branch.parents } else { 0 }).map(|_| group()).collect()
        };
        let edges = layout.branches().iter().zip(found).enumerate().map(of_edge).collect::<Result<_, _>>()?;
        Ok(Meetings { edges })
    }

    /// The group of the children of a memory.
    pub(crate) fn of(&self, edge: usize, parent: usize) -> Option<&Meeting> {
        self.edges.get(edge)?.get(parent)
    }
}

/// A group of so many with so much room or, where the areas of an operation need more, with as much as they do.
fn group(children: u32, buffer_bytes: u64, spin: SpinLimit) -> Result<Collective, ScheduleError> {
    let mut options = CollectiveOptions { buffer_bytes, spin, ..CollectiveOptions::new(Topology::flat(children)?) };
    loop {
        match Collective::new(options.clone()) {
            Err(ScheduleError::BufferTooSmall { need, .. }) if need > options.buffer_bytes => {
                options.buffer_bytes = need
            }
            made => return made,
        }
    }
}

/// For each edge, what the children of any of its plans meet for.
fn collect(plan: &Plan, edges: &mut [Meets]) {
    if let Some(edge) = edges.get_mut(plan.edge) {
        for op in plan.children.iter().flat_map(|child| &child.ops) {
            edge.barriers |= matches!(op, Op::Barrier);
            edge.broadcasts |= matches!(op, Op::Broadcast { .. });
        }
    }
    for class in &plan.classes {
        if let Body::Inner(inner) = &class.body {
            collect(inner, edges);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_children_there_are_they_meet() {
        for children in [2, 3, 24, 33, 48, 63, 64, 65, 100] {
            let group = group(children, BARRIER_BUFFER_BYTES, SpinLimit::default()).unwrap();
            let abort = Abort::default();
            std::thread::scope(|scope| {
                for child in 0..children {
                    let (group, abort) = (&group, &abort);
                    scope.spawn(move || (0..3).for_each(|_| group.barrier_until(child, abort).unwrap()));
                }
            });
        }
    }
}
