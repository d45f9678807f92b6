//! One participant executing its steps.

use super::compile::{Act, Plan};
use super::element::Element;
use super::operator::Operator;
use super::register::Mark;
use super::{Collective, CollectiveError};

impl Collective {
    /// Executes the plan of a barrier, or of any operation without its bytes.
    #[inline]
    pub(super) fn synchronise(&self, plan: &Plan, rank: u32) -> Result<(), CollectiveError> {
        let round = self.round(rank);
        for act in &plan.acts {
            self.signals(act, plan, rank, round % 2 == 1, plan.mark, 0)?;
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
    ) -> Result<(), CollectiveError> {
        let bytes = size_of_val(data) as u64;
        let mark = mark(plan, bytes, T::NAME, operator.name());
        if data.is_empty() {
            // Nobody contributes anything: what is left of the schedule are its signals.
            let round = self.round(rank);
            for act in plan.acts.iter().filter(|act| matches!(act, Act::Signal { .. } | Act::Await { .. })) {
                self.signals(act, plan, rank, round % 2 == 1, mark, 0)?;
            }
            self.set_round(rank, round + 1);
            return Ok(());
        }
        for segment in data.chunks_mut(plan.segment_bytes as usize / size_of::<T>()) {
            self.execute_round(plan, rank, segment, operator, keep, (mark, bytes))?;
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
        (mark, bytes): (Mark, u64),
    ) -> Result<(), CollectiveError> {
        let round = self.round(rank);
        let odd = round % 2 == 1;
        let own = &self.buffers[rank as usize];
        if let Some(at) = plan.contribution {
            own.load_from(at.line(odd), segment);
        }
        for act in &plan.acts {
            match *act {
                Act::Signal { .. } | Act::Await { .. } => self.signals(act, plan, rank, odd, mark, bytes)?,
                Act::Copy { source, target } => {
                    let from = &self.buffers[source.rank as usize];
                    let to = &self.buffers[target.rank as usize];
                    to.copy_from(target.line(odd), from, source.line(odd), size_of_val(segment));
                }
                Act::Combine { into, left, right } => {
                    let operand = |at: super::compile::At| (&self.buffers[at.rank as usize], at.line(odd));
                    own.combine_from(into.line(odd), operand(left), operand(right), segment.len(), operator);
                }
            }
        }
        if let Some(at) = plan.result
            && keep
        {
            own.store_to(at.line(odd), segment);
        }
        self.set_round(rank, round + 1);
        Ok(())
    }

    #[inline(always)]
    fn signals(
        &self,
        act: &Act,
        plan: &Plan,
        rank: u32,
        odd: bool,
        mark: Mark,
        bytes: u64,
    ) -> Result<(), CollectiveError> {
        match *act {
            Act::Signal { bit } => self.registers.signal(bit, odd, mark),
            Act::Await { from, bit } => match self.registers.wait(bit, odd, self.spin, &self.abort) {
                Ok(theirs) if theirs == mark => {}
                Ok(_) => return Err(self.mismatch(plan, rank, bytes, from)),
                Err(_) => return Err(CollectiveError::Aborted { rank, operation: plan.kind }),
            },
            Act::Copy { .. } | Act::Combine { .. } => {}
        }
        Ok(())
    }

    #[cold]
    fn mismatch(&self, plan: &Plan, rank: u32, bytes: u64, other: u32) -> CollectiveError {
        self.abort.raise();
        CollectiveError::Mismatch { rank, operation: plan.kind, bytes, other }
    }
}

/// Tells what a participant is doing from anything else, but for one chance in four thousand million.
fn mark(plan: &Plan, bytes: u64, element: &'static str, operator: &str) -> Mark {
    let mix = |hash: u64, value: u64| (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let text = |text: &str| text.bytes().fold(0u64, |hash, byte| hash << 5 ^ hash >> 59 ^ u64::from(byte));
    let hash = mix(mix(mix(u64::from(plan.mark), bytes), text(element)), text(operator));
    (hash >> 32) as Mark
}
