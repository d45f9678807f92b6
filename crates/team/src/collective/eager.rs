//! One participant executing eager rounds: nobody waits for anybody but for what it gets, and for room.

use super::compile::{Act, PLACES, Plan, RING};
use super::element::Element;
use super::operator::Operator;
use super::register::Mark;
use super::ring::Count;
use super::{Collective, CollectiveError};
use crate::abort::Abort;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use multigrain_schedule::Ring as Counted;

/// What a participant knows about its own ring. Only its own thread uses it.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Eager rounds that it has executed.
    rounds: AtomicU64,
    used: [Place; PLACES],
}

/// How a place of the ring was used last.
#[derive(Debug, Default)]
struct Place {
    /// One more than the round in which something was offered.
    rounds: AtomicU64,
    /// By which plan.
    plan: AtomicU32,
}

/// What an operation is called by those who find that others are in another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) mark: Mark,
    pub(super) bytes: u64,
}

impl Collective {
    /// Executes the plan of an eager operation on `data`, in as many rounds as it takes.
    pub(super) fn execute_eager<T: Element, O: Operator<T>>(
        &self,
        plan: &Plan,
        rank: u32,
        data: &mut [T],
        operator: &O,
        (name, abort): (Name, &Abort),
    ) -> Result<(), CollectiveError> {
        let own = &self.own[rank as usize].ring;
        for segment in data.chunks_mut(plan.segment_bytes as usize / size_of::<T>()) {
            // Relaxed, here and below: only the participant's own thread uses it.
            let round = own.rounds.load(Ordering::Relaxed);
            self.eager_round(plan, rank, segment, operator, (round, name), abort)?;
            own.rounds.store(Counted::count(round), Ordering::Relaxed);
            if plan.takes && RING.tells(round) {
                self.rings.tell_taken(rank, Counted::count(round));
            }
        }
        Ok(())
    }

    fn eager_round<T: Element>(
        &self,
        plan: &Plan,
        rank: u32,
        segment: &mut [T],
        operator: &impl Operator<T>,
        (round, name): (u64, Name),
        abort: &Abort,
    ) -> Result<(), CollectiveError> {
        let (copy, count) = (RING.place(round), Counted::count(round));
        let place = &self.own[rank as usize].ring.used[copy as usize];
        if plan.reserves {
            self.reserve(plan, rank, place, name, abort)?;
        }
        if let Some(at) = plan.contribution {
            self.buffers[rank as usize].load_from(at.line(copy), segment);
        }
        for act in &plan.acts {
            match *act {
                Act::Expect { from } => {
                    self.reach(plan, rank, (Count::Offered, from, count), name, abort)?;
                    if self.rings.mark(rank, from, round) != name.mark {
                        return Err(self.mismatch(plan, rank, name.bytes, from));
                    }
                }
                Act::Offer => {
                    place.rounds.store(count, Ordering::Relaxed);
                    place.plan.store(plan.number, Ordering::Relaxed);
                    self.rings.offer(rank, round, name.mark);
                }
                Act::Fold { with, right } => {
                    self.buffers[with.rank as usize].fold_into(with.line(copy), segment, right, operator);
                }
                Act::Copy { .. } | Act::Combine { .. } => self.moves(act, rank, segment, operator, copy),
                Act::Signal { .. } | Act::Await { .. } => {}
            }
        }
        if let Some(at) = plan.result {
            self.buffers[at.rank as usize].store_to(at.line(copy), segment);
        }
        Ok(())
    }

    /// Waits until all who expected what was last offered in this place have taken it.
    #[inline]
    fn reserve(&self, plan: &Plan, rank: u32, place: &Place, name: Name, abort: &Abort) -> Result<(), CollectiveError> {
        let used = place.rounds.load(Ordering::Relaxed);
        if used == 0 {
            return Ok(());
        }
        let before = self.plans.numbered(place.plan.load(Ordering::Relaxed), rank);
        for &reader in before.map_or(&[][..], |before| &before.readers) {
            self.reach(plan, rank, (Count::Taken, reader, used), name, abort)?;
        }
        Ok(())
    }

    /// Waits until a count of another has reached so much.
    #[inline]
    fn reach(
        &self,
        plan: &Plan,
        rank: u32,
        (count, other, least): (Count, u32, u64),
        name: Name,
        abort: &Abort,
    ) -> Result<(), CollectiveError> {
        if self.rings.is_known(rank, count, other, least) {
            return Ok(());
        }
        let signal = self.rings.signal(count, other);
        let aborted = |_| CollectiveError::Aborted { rank, operation: plan.kind };
        let reached = |word| crate::signal::steps(word) >= least;
        if !signal.spin_until(reached, self.spin, Some(abort)).map_err(aborted)? {
            self.same_operation(plan, rank, name.bytes, other)?;
            signal.sleep_until(reached, Some(abort)).map_err(aborted)?;
        }
        self.rings.learn(rank, count, other);
        Ok(())
    }
}
