//! One participant executing its steps.

use super::compile::{Act, At, Plan};
use super::eager::Name;
use super::element::Element;
use super::operator::Operator;
use super::register::Mark;
use super::{Collective, CollectiveError};
use crate::abort::Abort;

impl Collective {
    /// Executes the plan of a barrier, or of any operation without its bytes.
    #[inline]
    pub(super) fn synchronise(&self, plan: &Plan, rank: u32, abort: &Abort) -> Result<(), CollectiveError> {
        self.begin(rank, plan.mark);
        self.only_signals(plan, rank, Name { mark: plan.mark, bytes: 0 }, abort)
    }

    #[inline]
    fn only_signals(&self, plan: &Plan, rank: u32, name: Name, abort: &Abort) -> Result<(), CollectiveError> {
        let round = self.round(rank);
        for act in &plan.acts {
            self.signals(act, plan, rank, round % 2 == 1, name, abort)?;
        }
        self.set_round(rank, round + 1);
        Ok(())
    }

    /// Executes the plan of an operation on `data`, in as many rounds as it takes. The result, if there is one here, is
    /// stored only if it is to be kept.
    pub(super) fn execute<T: Element, O: Operator<T>>(
        &self,
        plan: &Plan,
        rank: u32,
        data: &mut [T],
        operator: &O,
        keep: bool,
        abort: &Abort,
    ) -> Result<(), CollectiveError> {
        let bytes = size_of_val(data) as u64;
        let mark = mark(plan, bytes, T::NAME, operator.name());
        let name = Name { mark, bytes };
        self.begin(rank, mark);
        if data.is_empty() {
            // Nobody contributes anything: what is left of the schedule are its signals, and where it has none, those of
            // a barrier.
            let signals = if plan.eager { self.plans.barrier(rank).unwrap_or(plan) } else { plan };
            return self.only_signals(signals, rank, name, abort);
        }
        if plan.eager {
            return self.execute_eager(plan, rank, data, operator, (name, abort));
        }
        for segment in data.chunks_mut(plan.segment_bytes as usize / size_of::<T>()) {
            self.execute_round(plan, rank, segment, operator, keep, (name, abort))?;
        }
        Ok(())
    }

    fn execute_round<T: Element>(
        &self,
        plan: &Plan,
        rank: u32,
        segment: &mut [T],
        operator: &impl Operator<T>,
        keep: bool,
        (name, abort): (Name, &Abort),
    ) -> Result<(), CollectiveError> {
        let round = self.round(rank);
        let odd = round % 2 == 1;
        let own = &self.buffers[rank as usize];
        if let Some(at) = plan.contribution {
            own.load_from(at.line(odd.into()), segment);
        }
        for act in &plan.acts {
            match *act {
                Act::Signal { .. } | Act::Await { .. } => self.signals(act, plan, rank, odd, name, abort)?,
                _ => self.moves(act, rank, segment, operator, odd.into()),
            }
        }
        if let Some(at) = plan.result
            && keep
        {
            own.store_to(at.line(odd.into()), segment);
        }
        self.set_round(rank, round + 1);
        Ok(())
    }

    /// Copies and combinations among buffers, of as many elements as `segment` has.
    #[inline(always)]
    pub(super) fn moves<T: Element>(
        &self,
        act: &Act,
        rank: u32,
        segment: &[T],
        operator: &impl Operator<T>,
        copy: u32,
    ) {
        let buffer = |at: At| (&self.buffers[at.rank as usize], at.line(copy));
        match *act {
            Act::Copy { source, target } => {
                let ((from, first), (to, into)) = (buffer(source), buffer(target));
                to.copy_from(into, from, first, size_of_val(segment));
            }
            Act::Combine { into, left, right } => {
                let own = &self.buffers[rank as usize];
                own.combine_from(into.line(copy), buffer(left), buffer(right), segment.len(), operator);
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn signals(
        &self,
        act: &Act,
        plan: &Plan,
        rank: u32,
        odd: bool,
        name: Name,
        abort: &Abort,
    ) -> Result<(), CollectiveError> {
        match *act {
            Act::Signal { bit } => self.registers.signal(bit, odd, name.mark),
            Act::Await { from, bit } => {
                let aborted = |_| CollectiveError::Aborted { rank, operation: plan.kind };
                let look = || self.same_operation(plan, rank, name.bytes, from);
                let theirs = self.registers.wait(bit, odd, self.spin, abort, aborted, look)?;
                if theirs != name.mark {
                    return Err(self.mismatch(plan, rank, name.bytes, from));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Tells what a participant is doing from anything else, but for one chance in four thousand million.
fn mark(plan: &Plan, bytes: u64, element: &'static str, operator: &str) -> Mark {
    let mix = |hash: u64, value: u64| (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let text = |text: &str| text.bytes().fold(0u64, |hash, byte| hash << 5 ^ hash >> 59 ^ u64::from(byte));
    let hash = mix(mix(mix(u64::from(plan.mark), bytes), text(element)), text(operator));
    (hash >> 32) as Mark
}
