//! How children meet: at barriers, and where what all read of their parent is read by one of them and handed to the others.
//!
//! The bytes of a broadcast go through the buffers of the group, in rounds. So nobody touches a local store but its own worker,
//! and a root that has returned may change its slot.

use crate::error::{Ended, EngineError};
use crate::interpreter::{ChildState, Interpreter};
use multigrain_team::collective::CollectiveError;
use multigrain_trace::{BARRIER_SIGNAL, Idleness, Kind, NO_TRANSFER};

impl Interpreter<'_, '_> {
    /// A child meets all others.
    pub(crate) fn meet(&self, state: &mut ChildState<'_>) -> Result<(), Ended> {
        let edge = state.plan.edge;
        if let Some(ranks) = self.ranks_of(state.plan) {
            let t = self.recorder(state.at.worker).start();
            ranks.all.meet(self.abort).map_err(|_| Ended)?;
            self.recorder(state.at.worker).idle(
                t,
                edge as u16,
                Idleness::Signal,
                state.at.worker as u32,
                BARRIER_SIGNAL,
            );
            return Ok(());
        }
        let Some(meeting) = self.meetings.of(edge, state.at.parent) else {
            return Err(self.fail(EngineError::NoBarrier { edge }));
        };
        self.record_signal(state, BARRIER_SIGNAL);
        let t = self.recorder(state.at.worker).start();
        let met = meeting.meet(state.at.child, state.barriers, self.abort);
        state.barriers += 1;
        let last = met.map_err(|source| match source {
            CollectiveError::Aborted { .. } => Ended,
            source => self.fail(EngineError::Barrier { edge, source }),
        })?;
        if last != state.at.child {
            let other = self.sibling(state, last);
            self.recorder(state.at.worker).idle(t, edge as u16, Idleness::Signal, other as u32, BARRIER_SIGNAL);
        }
        Ok(())
    }

    /// A child takes part in a broadcast with a slot of its own.
    pub(crate) fn broadcast(&self, state: &mut ChildState<'_>, root: usize, index: u32) -> Result<(), Ended> {
        let (plan, edge) = (state.plan, state.plan.edge);
        let slot = state.steps.slots[index as usize];
        let own = self.memories.child(plan, state.at.instance);
        let meeting = self.meetings.of(edge, state.at.parent);
        let (Some(meeting), Some(own), None) = (meeting, own, self.ranks_of(plan)) else {
            return Err(self.fail(EngineError::NoBarrier { edge }));
        };
        let is_root = root == state.at.child;
        if is_root {
            self.record_signal(state, BARRIER_SIGNAL);
        }
        let since = self.recorder(state.at.worker).start();
        // SAFETY: this worker executes this child, so it alone uses the memory; the plan says that no transfer of the slot is
        // under way, and no leaf runs.
        let bytes = unsafe { own.child.exchange(slot.offset_bytes, slot.bytes, is_root) };
        let bytes = bytes.map_err(|e| self.store_fault(plan, &slot, e))?;
        let met = meeting.broadcast((state.at.child, root), state.broadcasts, since, bytes, self.abort);
        state.broadcasts += 1;
        let came = met.map_err(|source| match source {
            CollectiveError::Aborted { .. } => Ended,
            source => self.fail(EngineError::Barrier { edge, source }),
        })?;
        let other = self.sibling(state, root) as u32;
        let recorder = self.recorder(state.at.worker);
        let (edge, end) = (edge as u16, recorder.start());
        // First for the root to come, then for the bytes.
        let came = came.min(end);
        if came > since {
            recorder.interval(Kind::Idle, since, came, edge, other, BARRIER_SIGNAL, Idleness::Signal as u8);
        }
        recorder.interval(Kind::Wait, came, end, edge, other, NO_TRANSFER, 0);
        Ok(())
    }
}
