//! The leaf variant of a task that reduces, on a block of many spans: one contribution a span, combined by the tree.

use super::reduction::Reduction;
use crate::{
    CallShape, Callee, DynTask, LeafContext, RawView, Region, SplitError, SplitProblem, SubCall, Tunable, Tunables,
};
use multigrain_schedule::contributions::{depth, depth_max, merges};
use smallvec::SmallVec;

/// So many sub-calls are made at once, a power of two: the lists stay short however many spans there are.
const FAN: u64 = 64;
/// Alignment of blocks in scratch memory.
const LINE_BYTES: u64 = 64;

/// What a task that reduces makes of one span.
pub(crate) trait OneSpan: DynTask {
    /// Scratch memory for it.
    fn one_scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64;

    /// The task's own leaf variant.
    ///
    /// # Safety
    /// As for [`DynTask::leaf`].
    unsafe fn one(&self, blocks: &[RawView], context: &mut LeafContext<'_>);
}

/// A task that reduces, and its call.
pub(crate) struct Spans<'a> {
    pub(crate) task: &'a dyn OneSpan,
    /// For each parameter, how it is reduced.
    pub(crate) reductions: &'a [Option<Reduction>],
}

impl Spans<'_> {
    /// The axis that is reduced.
    fn axis(task: &dyn DynTask, call: &CallShape) -> Option<Tunable> {
        let name = task.reduced_axis()?;
        task.tunables(call).into_iter().find(|t| t.name == name)
    }

    /// The parts of a call, at most [`FAN`], each a node of the tree; none when the call is one span.
    ///
    /// The task's inner variant is asked again wherever a call is executed, so what it says is checked wherever it is
    /// used: a part lies within the call's blocks, is given the whole of all that is reduced, and is no longer than was asked for,
    /// so that parts of parts end soon.
    fn parts(&self, call: &CallShape) -> Result<Vec<SubCall>, SplitError> {
        let Some(axis) = Self::axis(self.task, call) else { return Ok(Vec::new()) };
        let spans = axis.extent.div_ceil(axis.multiple);
        if spans <= 1 {
            return Ok(Vec::new());
        }
        let mut each: u64 = 1;
        while each.saturating_mul(FAN) < spans {
            each *= FAN;
        }
        let asked = axis.multiple.saturating_mul(each);
        let mut tunables = Tunables::new();
        tunables.set(axis.name, asked);
        let parts = self.task.split(call, &tunables)?;
        for (number, sub) in parts.iter().enumerate() {
            let refuse = |problem| Err(SplitError::of(self.task, call, problem));
            for (param, _) in self.reductions.iter().enumerate().filter(|(_, reduction)| reduction.is_some()) {
                let name = self.task.params()[param].name;
                let given = sub.args.iter().find(|(given, _)| *given == param);
                match given.map(|(_, region)| *region) {
                    None => return refuse(SplitProblem::Missing { call: number, param: name }),
                    Some(region) if region != Region::whole(call.shapes[param]) => {
                        return refuse(SplitProblem::Cut { call: number, param: name, region });
                    }
                    Some(_) => {}
                }
            }
            let its = Self::axis(sub.callee.of(self.task), &sub.shape()).map_or(0, |its| its.extent);
            if its > asked {
                return refuse(SplitProblem::Endless { axis: axis.name, asked, call: number, length: its });
            }
        }
        Ok(parts)
    }

    /// See [`DynTask::check_leaf`].
    pub(crate) fn check(&self, call: &CallShape) -> Result<(), SplitError> {
        let mut seen: Vec<(*const (), CallShape)> = Vec::new();
        for sub in self.parts(call)? {
            let (task, shape) = (sub.callee.of(self.task), sub.shape());
            let key = (std::ptr::from_ref(task).cast(), shape);
            if !seen.contains(&key) {
                task.check_leaf(&key.1)?;
                seen.push(key);
            }
        }
        Ok(())
    }

    /// Bytes of the blocks that wait to be combined while a call of several parts is executed, one of each parameter.
    fn waiting_bytes(&self, call: &CallShape) -> u64 {
        (0..self.reductions.len()).map(|param| self.block_bytes(call, param)).sum()
    }

    /// Bytes of one of them; none for a parameter that is not reduced.
    fn block_bytes(&self, call: &CallShape, param: usize) -> u64 {
        let size_bytes = self.task.params()[param].element.size_bytes();
        self.reductions[param].map_or(0, |_| (call.shapes[param].elements() * size_bytes).next_multiple_of(LINE_BYTES))
    }

    /// Scratch memory for a call, of which a task's own is that of one span.
    pub(crate) fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        // What cannot be split is refused before it is executed.
        let parts = self.parts(call).unwrap_or_default();
        let below = |sub: &SubCall| match &sub.callee {
            Callee::Itself => self.scratch_bytes(&sub.shape(), capacity_bytes),
            Callee::Task(other) => other.scratch_bytes(&sub.shape(), capacity_bytes),
        };
        match &parts[..] {
            [] => self.task.one_scratch_bytes(call, capacity_bytes),
            // All but the last are of one shape.
            [first, .., last] => {
                depth_max(parts.len() as u64) as u64 * self.waiting_bytes(call) + below(first).max(below(last))
            }
            [only] => below(only),
        }
    }

    /// Executes a call.
    ///
    /// # Panics
    /// When the inner variant makes calls that cannot be, or scratch memory is missing.
    ///
    /// # Safety
    /// As for [`DynTask::leaf`].
    pub(crate) unsafe fn leaf(&self, blocks: &[RawView], context: &mut LeafContext<'_>) {
        let shapes = blocks.iter().map(RawView::shape).collect();
        let (call, processor) = (CallShape { shapes, scalars: context.scalars.clone() }, context.processor());
        let parts = self.parts(&call).unwrap_or_else(|error| panic!("{error}"));
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
            let before: u64 = (0..param).map(|before| self.block_bytes(&call, before)).sum();
            let at = base.wrapping_add((depth - 1) * each_bytes + before as usize);
            RawView::dense(at, blocks[param].element(), call.shapes[param])
        };
        let count = parts.len() as u64;
        for (i, sub) in (0..).zip(&parts) {
            let view = |&(param, region): &(usize, Region)| match self.reductions[param] {
                Some(_) => Some(place(param, depth(i))),
                None => blocks[param].part(&region),
            };
            let views: SmallVec<[RawView; 6]> = sub.args.iter().filter_map(view).collect();
            let mut inner = LeafContext::new(&sub.scalars, &mut *scratch).on(processor);
            match &sub.callee {
                // SAFETY: parts of the caller's blocks, as checked: within them, none that is written twice or that the
                // caller only reads. A block that is reduced is the caller's or lies in scratch memory that nobody else
                // uses, and is wholly written by the call.
                Callee::Itself => unsafe { self.leaf(&views, &mut inner) },
                // SAFETY: as above.
                Callee::Task(other) => unsafe { other.leaf(&views, &mut inner) },
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
