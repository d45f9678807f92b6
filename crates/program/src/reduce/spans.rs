//! The leaf variant of a task that reduces, on a block of many spans: one contribution a span, combined by the tree.

use super::operator::Reduction;
use crate::task::Erased;
use crate::{CallShape, Callee, DynTask, LeafContext, RawView, SubCall, Task, Tunables};
use multigrain_schedule::contributions::{depth, depth_max, merges};
use smallvec::SmallVec;

/// So many sub-calls are made at once, a power of two: the lists stay short however many spans there are.
const FAN: u64 = 64;
/// Alignment of blocks in scratch memory.
const LINE_BYTES: u64 = 64;

/// A task that reduces, and its call.
pub(crate) struct Spans<'a, T: Task> {
    pub(crate) task: &'a Erased<T>,
    /// For each parameter, how it is reduced.
    pub(crate) reductions: &'a [Option<Reduction>],
}

impl<T: Task> Spans<'_, T> {
    /// The parts of a call, at most [`FAN`], each a node of the tree; none when the call is one span.
    fn parts(&self, call: &CallShape) -> Vec<SubCall> {
        let name = self.task.reduced_axis().unwrap_or_default();
        let Some(axis) = self.task.tunables(call).into_iter().find(|t| t.name == name) else {
            return Vec::new();
        };
        let span = axis.multiple.max(1);
        let spans = axis.extent.div_ceil(span);
        if spans <= 1 {
            return Vec::new();
        }
        let mut each = 1;
        while each * FAN < spans {
            each *= FAN;
        }
        let mut tunables = Tunables::new();
        tunables.set(axis.name, span * each);
        self.task.split(call, &tunables)
    }

    /// Bytes of the blocks that wait to be combined while a call of `parts` parts is executed, one of each parameter.
    fn waiting_bytes(&self, call: &CallShape) -> u64 {
        let bytes = |(i, reduction): (usize, &Option<Reduction>)| {
            let size_bytes = self.task.params()[i].element.size_bytes();
            reduction.map_or(0, |_| (call.shapes[i].elements() * size_bytes).next_multiple_of(LINE_BYTES))
        };
        self.reductions.iter().enumerate().map(bytes).sum()
    }

    /// Scratch memory for a call, of which a task's own is that of one span.
    pub(crate) fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        let parts = self.parts(call);
        let below = |sub: &SubCall| {
            let shapes = sub.args.iter().map(|(_, region)| region.shape()).collect();
            let shape = CallShape { shapes, scalars: sub.scalars.clone() };
            match &sub.callee {
                Callee::Itself => self.scratch_bytes(&shape, capacity_bytes),
                Callee::Task(other) => other.scratch_bytes(&shape, capacity_bytes),
            }
        };
        match &parts[..] {
            [] => self.task.task.scratch_bytes(call, capacity_bytes),
            // All but the last are of one shape.
            [first, .., last] => {
                depth_max(parts.len() as u64) as u64 * self.waiting_bytes(call) + below(first).max(below(last))
            }
            [only] => below(only),
        }
    }

    /// Executes a call.
    ///
    /// # Safety
    /// As for [`DynTask::leaf`].
    pub(crate) unsafe fn leaf(&self, blocks: &[RawView], context: &mut LeafContext<'_>) {
        let shapes = blocks.iter().map(|block| block.shape).collect();
        let call = CallShape { shapes, scalars: context.scalars.clone() };
        let parts = self.parts(&call);
        if parts.is_empty() {
            for (block, reduction) in blocks.iter().zip(self.reductions) {
                if let Some(reduction) = reduction {
                    // SAFETY: passed on to the caller.
                    unsafe { reduction.fill(block) };
                }
            }
            // SAFETY: passed on to the caller.
            return unsafe { self.task.one(blocks, context) };
        }
        let each_bytes = self.waiting_bytes(&call) as usize;
        let waiting_bytes = depth_max(parts.len() as u64) * each_bytes;
        let (waiting, scratch) = context.scratch.split_at_mut(waiting_bytes);
        let base = waiting.as_mut_ptr();
        // Where the contribution that comes at this depth lies.
        let place = |param: usize, depth: usize| {
            if depth == 0 {
                return blocks[param];
            }
            let before: u64 = (0..param)
                .filter(|&p| self.reductions[p].is_some())
                .map(|p| {
                    let bytes = call.shapes[p].elements() * self.task.params()[p].element.size_bytes();
                    bytes.next_multiple_of(LINE_BYTES)
                })
                .sum();
            RawView::dense(base.wrapping_add((depth - 1) * each_bytes + before as usize), call.shapes[param])
        };
        let count = parts.len() as u64;
        for (i, sub) in (0..).zip(&parts) {
            let mut views: SmallVec<[RawView; 6]> = SmallVec::new();
            for &(param, region) in &sub.args {
                let size_bytes = self.task.params()[param].element.size_bytes();
                views.push(if self.reductions[param].is_some() {
                    assert_eq!(region.shape(), call.shapes[param], "{}: what is reduced is whole", self.task.name());
                    place(param, depth(i))
                } else {
                    blocks[param].part(region.start(), region.shape(), size_bytes)
                });
            }
            let mut inner = LeafContext::new(&sub.scalars, &mut *scratch);
            match &sub.callee {
                // SAFETY: parts of the caller's blocks, as the split says; a block that is reduced is the caller's or
                // lies in scratch memory that nobody else uses, and is wholly written by the call.
                Callee::Itself => unsafe { self.leaf(&views, &mut inner) },
                Callee::Task(other) => {
                    assert!(
                        sub.args.iter().zip(other.params()).all(|(&(param, _), declared)| {
                            self.reductions[param].is_none() || !declared.access.reads()
                        }),
                        "{}: {} reads what is being reduced",
                        self.task.name(),
                        other.name()
                    );
                    // SAFETY: as above.
                    unsafe { other.leaf(&views, &mut inner) };
                }
            }
            for (left, right) in merges(i, count) {
                for (param, reduction) in self.reductions.iter().enumerate() {
                    if let Some(reduction) = reduction {
                        // SAFETY: both were written by the calls before, do not overlap, and have one shape.
                        unsafe { reduction.combine(&place(param, depth(left)), &place(param, depth(right))) };
                    }
                }
            }
        }
    }
}
