//! Steps of one task, each of which reads what the one before has written, as a task.
//!
//! For stencils this is blocking over time (overlapped tiling: Krishnamoorthy et al., PLDI 2007): a block of the last
//! step is computed from a block of the first with a halo that is as many times wider, and what lies between never leaves
//! the memory of the leaf. Each element is computed by the same leaf variant from the same elements as step by step, those
//! near the edges of blocks several times; so the bits are the same.
//!
//! ```text
//!            before  block   after            what is read of the first step's array
//!           |<------|-------|------>|
//!             |<----|-------|---->|           what step 1 makes of it, in scratch memory
//!               |<--|-------|-->|             step 2, from that
//!                   |-------|                 the last step, which goes to the block that is written
//! ```
//!
//! Where the array ends the halo is cut off, in all steps alike: what a step reads begins there as the array does, so the
//! task's own windows tell an end of the array from that of a block.

use crate::notation::{Dimension, along, around, whole};
use crate::{
    Access, CallShape, DynTask, IoBound, LeafContext, Notation, Param, RawView, Region, Scalars, Shape, SplitError,
    SplitProblem, SubCall, Tunable, Tunables, Work, blocks,
};
use smallvec::SmallVec;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Buffers between steps begin at multiples of this, a cache line.
const ALIGN_BYTES: u64 = 64;
/// The part of a leaf's memory that buffers may take.
const SCRATCH_SHARE: u64 = 2;
/// What the task itself is told that its memory holds, whatever it does: so it asks for the same when it is planned and when
/// it is run.
const OWN_CAPACITY_BYTES: u64 = 256 << 10;
/// What beginning a row costs, in elements.
const ROW_ELEMENTS: f64 = 16.0;

/// Some steps of a task as one.
pub struct Steps {
    task: Arc<dyn DynTask>,
    count: u64,
    /// The parameter that holds what the step before has written.
    state: usize,
    /// The one that is written.
    written: usize,
    params: Vec<Param>,
    /// How far the state's windows reach before and after, for each axis.
    reach: SmallVec<[(u64, u64); 4]>,
    /// How the task itself cuts its parameters.
    narrow: Vec<SmallVec<[Dimension; 4]>>,
    /// How all steps together cut them.
    wide: Vec<SmallVec<[Dimension; 4]>>,
    notation: Notation,
    /// What the leaf's memory holds, as far as it is known.
    capacity_bytes: u64,
}

/// One axis of a call: its length, and how much of the array is there before and after.
#[derive(Clone, Copy, Debug)]
struct Span {
    extent: u64,
    before: u64,
    after: u64,
}

impl Steps {
    /// Steps of a task that is called with these shapes and is given, as parameter `state`, what it has written in the step
    /// before. `capacity_bytes` is what a leaf's memory holds: it is told what such a leaf does again at the edges of its
    /// blocks.
    ///
    /// `None` where that is no chain of blocks: the task has no notation, or folds or reduces; it writes more than one
    /// parameter, or updates one; what it writes is not cut as its state is; or blocks may end at some places only.
    pub fn of(
        task: &Arc<dyn DynTask>,
        call: &CallShape,
        state: usize,
        count: u64,
        capacity_bytes: u64,
    ) -> Option<Steps> {
        let (notation, params) = (task.notation()?, task.params());
        let extents = notation.extents(call).ok()?;
        let written = params.iter().position(|param| param.access.writes())?;
        let is_chain = count > 0
            && params.get(state).is_some_and(|param| param.access == Access::Read)
            && params
                .iter()
                .enumerate()
                .all(|(n, p)| p.access == if n == written { Access::Write } else { Access::Read })
            && (params[state].element, call.shapes[state]) == (params[written].element, call.shapes[written])
            && notation.folded(params).is_empty()
            && notation.tunables(&extents).iter().all(|axis| axis.multiple <= 1);
        if !is_chain {
            return None;
        }
        let narrow = notation.dimensions(call);
        let mut reach: SmallVec<[(u64, u64); 4]> = SmallVec::from_elem((0, 0), extents.len());
        for (read, made) in narrow[state].iter().zip(&narrow[written]) {
            match (*read, *made) {
                (Dimension::Whole, Dimension::Whole) => {}
                (Dimension::Axis(axis), Dimension::Axis(same)) if axis == same => {}
                (Dimension::Window { axis, reach: far, .. }, Dimension::Axis(same)) if axis == same => {
                    reach[axis] = far
                }
                _ => return None,
            }
        }
        let names: SmallVec<[&'static str; 4]> = notation.axis_names().collect();
        let mut together = Notation::axes(names.iter().copied());
        for (number, (name, dims)) in notation.param_names().zip(&narrow).enumerate() {
            let more = |axis: usize| match number == written {
                true => (0, 0),
                false => ((count - 1).saturating_mul(reach[axis].0), (count - 1).saturating_mul(reach[axis].1)),
            };
            let index = |dimension: &Dimension| match *dimension {
                Dimension::Whole => whole(),
                Dimension::Axis(axis) if more(axis) == (0, 0) => along(names[axis]),
                Dimension::Axis(axis) => around(names[axis], more(axis).0, more(axis).1),
                Dimension::Window { axis, reach: (before, after), .. } => {
                    around(names[axis], before.saturating_add(more(axis).0), after.saturating_add(more(axis).1))
                }
            };
            together = together.param(name, dims.iter().map(index));
        }
        let wide = together.dimensions(call);
        Some(Steps {
            task: task.clone(),
            count,
            state,
            written,
            params: params.to_vec(),
            reach,
            narrow,
            wide,
            notation: together,
            capacity_bytes,
        })
    }

    /// The axes of a call.
    fn spans(&self, call: &CallShape) -> Result<SmallVec<[Span; 4]>, String> {
        let extents = self.notation.extents(call)?;
        let mut spans: SmallVec<[Span; 4]> =
            extents.iter().map(|&extent| Span { extent, before: 0, after: 0 }).collect();
        for (dimension, &len) in self.wide[self.state].iter().zip(call.shapes[self.state].dims()) {
            if let Dimension::Window { axis, window, .. } = *dimension {
                let before = call.scalars.before(window);
                spans[axis].before = before;
                spans[axis].after = len - before - spans[axis].extent;
            }
        }
        Ok(spans)
    }

    /// What step `step` of `1..=count` makes beyond a block of the last one, along an axis: elements before and after it.
    fn beyond(&self, axis: usize, span: Span, (first, len): (u64, u64), step: u64) -> (u64, u64) {
        let (before, after) = self.reach[axis];
        let steps = self.count - step;
        let behind = span.extent - first - len;
        (
            (span.before + first).min(steps.saturating_mul(before)),
            (span.after + behind).min(steps.saturating_mul(after)),
        )
    }

    /// What a step takes of the blocks of the call to make its part of a block of the last one: for each parameter the
    /// region (of the state: for the first step), for the one that is written only its shape counts; and its scalars.
    fn step(
        &self,
        call: &CallShape,
        spans: &[Span],
        block: &[(u64, u64)],
        step: u64,
    ) -> (SmallVec<[Region; 4]>, Scalars) {
        let windows = self.narrow.iter().flatten().filter(|d| matches!(d, Dimension::Window { .. })).count();
        let mut befores: SmallVec<[u64; 4]> = SmallVec::from_elem(0, windows);
        let mut regions = SmallVec::new();
        for (number, shape) in call.shapes.iter().enumerate() {
            let (mut start, mut len) = (SmallVec::<[u64; 4]>::new(), SmallVec::<[u64; 4]>::new());
            let dims = self.narrow[number].iter().zip(&self.wide[number]).zip(shape.dims());
            for ((narrow, wide), &extent) in dims {
                let (axis, window, reach) = match *narrow {
                    Dimension::Whole => {
                        start.push(0);
                        len.push(extent);
                        continue;
                    }
                    Dimension::Axis(axis) => (axis, None, (0, 0)),
                    Dimension::Window { axis, window, reach } => (axis, Some(window), reach),
                };
                let (first, many) = block[axis];
                let (before, after) = self.beyond(axis, spans[axis], block[axis], step);
                if number == self.written {
                    start.push(first);
                    len.push(before + many + after);
                    continue;
                }
                // How much of this parameter lies before the first element of the call's own block, and behind its last.
                let there = match *wide {
                    Dimension::Window { window, .. } => call.scalars.before(window),
                    _ => 0,
                };
                let behind = extent - there - spans[axis].extent;
                let own = reach.0.min(there + first - before);
                let rest = reach.1.min((behind + (spans[axis].extent - first - many)).saturating_sub(after));
                start.push(there + first - before - own);
                len.push(own + before + many + after + rest);
                if let Some(window) = window {
                    befores[window] = own;
                }
            }
            regions.push(Region::new(&start, &len));
        }
        (regions, call.scalars.clone().with_before(&befores))
    }

    /// Elements along an axis of what the first step makes for a block of so many elements, where it is most.
    fn widest(&self, axis: usize, span: Span, len: u64, step: u64) -> u64 {
        let (before, after) = self.reach[axis];
        let steps = self.count - step;
        let most =
            span.extent + span.before.min(steps.saturating_mul(before)) + span.after.min(steps.saturating_mul(after));
        len.saturating_add(steps.saturating_mul(before.saturating_add(after))).min(most)
    }

    /// Bytes of all buffers for blocks of these lengths.
    fn buffer_bytes(&self, call: &CallShape, spans: &[Span], lengths: &[u64]) -> u64 {
        let dims = self.narrow[self.written].iter().zip(call.shapes[self.written].dims());
        let elements = dims.fold(1u64, |elements, (dimension, &len)| match *dimension {
            Dimension::Axis(axis) => elements.saturating_mul(self.widest(axis, spans[axis], lengths[axis], 1)),
            _ => elements.saturating_mul(len),
        });
        let bytes = elements.saturating_mul(self.params[self.written].element.size_bytes());
        let one = bytes.checked_next_multiple_of(ALIGN_BYTES).unwrap_or(u64::MAX);
        one.saturating_mul((self.count - 1).min(2))
    }

    /// The blocks that a leaf takes one after the other, so that its buffers have room: those that it does least again for.
    fn cut(&self, call: &CallShape, spans: &[Span], room_bytes: u64) -> SmallVec<[u64; 4]> {
        let mut counts: SmallVec<[u64; 4]> = SmallVec::from_elem(1, spans.len());
        let length = |axis: usize, count: u64| spans[axis].extent.div_ceil(count);
        let last = self.narrow[self.written].iter().rev().find_map(|d| match *d {
            Dimension::Axis(axis) => Some(axis),
            _ => None,
        });
        let lengths = |counts: &[u64]| -> SmallVec<[u64; 4]> {
            counts.iter().enumerate().map(|(axis, &count)| length(axis, count)).collect()
        };
        while self.buffer_bytes(call, spans, &lengths(&counts)) > room_bytes {
            // Of cuts that shorten something, the one after which a step makes least elements for one that is wanted.
            let cost = |axis: usize| {
                let mut more = counts.clone();
                while length(axis, more[axis]) == length(axis, counts[axis]) {
                    more[axis] += 1;
                }
                let lengths = lengths(&more);
                let made = |axis: usize| self.widest(axis, spans[axis], lengths[axis], self.count.div_ceil(2)) as f64;
                let again: f64 = (0..spans.len()).map(|axis| made(axis) / lengths[axis] as f64).product();
                let rows = last.map_or(1.0, |axis| 1.0 + ROW_ELEMENTS / made(axis));
                (again * rows, more)
            };
            let axes = (0..spans.len()).filter(|&axis| length(axis, counts[axis]) > 1);
            match axes.map(cost).min_by(|a, b| a.0.total_cmp(&b.0)) {
                Some((_, more)) => counts = more,
                None => break,
            }
        }
        lengths(&counts)
    }

    /// Scratch memory of the task itself in its largest step.
    fn own_scratch_bytes(&self, call: &CallShape, spans: &[Span]) -> u64 {
        let all: SmallVec<[(u64, u64); 4]> = spans.iter().map(|span| (0, span.extent)).collect();
        let (regions, scalars) = self.step(call, spans, &all, 1);
        let shape = CallShape { shapes: regions.iter().map(Region::shape).collect(), scalars };
        self.task.scratch_bytes(&shape, OWN_CAPACITY_BYTES)
    }
}

// SAFETY: it is made of a task that keeps the contract, and its split follows from the notation of that.
unsafe impl DynTask for Steps {
    /// That of the task.
    fn name(&self) -> &'static str {
        self.task.name()
    }

    fn version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.task.version(), self.count, self.state).hash(&mut hasher);
        hasher.finish()
    }

    fn params(&self) -> &[Param] {
        &self.params
    }

    fn notation(&self) -> Option<&Notation> {
        Some(&self.notation)
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        self.notation.extents(call).map_or_else(|_| Vec::new(), |extents| self.notation.tunables(&extents))
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Result<Vec<SubCall>, SplitError> {
        let calls = self.notation.split(call, tunables, &[], None);
        if calls.is_empty() { Err(SplitError::of(self, call, SplitProblem::Empty)) } else { Ok(calls) }
    }

    fn stages(&self, _: &CallShape) -> Result<Vec<SubCall>, SplitError> {
        Ok(Vec::new())
    }

    fn check_leaf(&self, _: &CallShape) -> Result<(), SplitError> {
        Ok(())
    }

    /// Buffers for two steps and what the task itself wants. It is the more the larger the blocks are, up to a share of the
    /// memory: a leaf takes a larger block in pieces.
    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        let Ok(spans) = self.spans(call) else { return 0 };
        let extents: SmallVec<[u64; 4]> = spans.iter().map(|span| span.extent).collect();
        let least: SmallVec<[u64; 4]> = SmallVec::from_elem(1, spans.len());
        let bytes = |lengths: &[u64]| self.buffer_bytes(call, &spans, lengths);
        let room = (capacity_bytes / SCRATCH_SHARE).max(bytes(&least));
        let own = self.own_scratch_bytes(call, &spans);
        bytes(&extents).min(room).saturating_add(own)
    }

    /// What all steps do, with what they do several times. Of a call that a leaf takes in pieces, that of all pieces.
    fn work(&self, call: &CallShape) -> Work {
        let Ok(spans) = self.spans(call) else { return Work::default() };
        let lengths = self.cut(call, &spans, self.capacity_bytes / SCRATCH_SHARE);
        let pieces: f64 = spans.iter().zip(&lengths).map(|(span, &len)| span.extent as f64 / len as f64).product();
        let middle: SmallVec<[(u64, u64); 4]> =
            spans.iter().zip(&lengths).map(|(span, &len)| ((span.extent - len) / 2, len)).collect();
        let one = |step: u64| {
            let (regions, scalars) = self.step(call, &spans, &middle, step);
            self.task.work(&CallShape { shapes: regions.iter().map(Region::shape).collect(), scalars })
        };
        // Simpson's rule: what a step does is a product of lengths, each of which is linear in its number.
        let of = [one(1), one(self.count.div_ceil(2)), one(self.count)];
        let sum = |f: fn(&Work) -> f64| pieces * self.count as f64 * (f(&of[0]) + 4.0 * f(&of[1]) + f(&of[2])) / 6.0;
        Work { flops: sum(|work| work.flops), bytes: sum(|work| work.bytes) }
    }

    fn io_lower_bound(&self, call: &CallShape, _: u64) -> IoBound {
        let bytes = |writes: bool| {
            let some = self.params.iter().zip(&call.shapes).filter(|(param, _)| param.access.writes() == writes);
            some.map(|(param, shape)| shape.elements().saturating_mul(param.element.size_bytes())).sum()
        };
        IoBound { bytes_down: bytes(false), bytes_up: bytes(true) }
    }

    unsafe fn leaf(&self, given: &[RawView], context: &mut LeafContext<'_>) {
        assert_eq!(given.len(), self.params.len(), "blocks of a call of {}", self.name());
        let call = CallShape { shapes: given.iter().map(RawView::shape).collect(), scalars: context.scalars.clone() };
        let spans = self.spans(&call).unwrap_or_else(|why| panic!("steps of {}: {why}", self.name()));
        let extents: SmallVec<[u64; 4]> = spans.iter().map(|span| span.extent).collect();
        let least: SmallVec<[u64; 4]> = SmallVec::from_elem(1, spans.len());
        let whole = self.buffer_bytes(&call, &spans, &extents);
        let given_bytes = context.scratch.len() as u64;
        let room = whole.min(given_bytes.saturating_sub(self.own_scratch_bytes(&call, &spans)));
        let fewest = self.buffer_bytes(&call, &spans, &least);
        assert!(fewest.min(whole) <= room, "scratch memory for steps of {}: {room} bytes of {fewest}", self.name());
        let lengths = self.cut(&call, &spans, room);
        let buffers = self.buffer_bytes(&call, &spans, &lengths);
        let processor = context.processor();
        let (between, scratch) = context.scratch.split_at_mut(buffers as usize);
        let element = self.params[self.written].element;
        let between: *mut u8 = between.as_mut_ptr();
        let buffer = |step: u64, shape: Shape| {
            let offset = if step.is_multiple_of(2) { buffers / 2 } else { 0 };
            RawView::dense(between.wrapping_add(offset as usize), element, shape)
        };
        for_each_block(&spans, &lengths, &mut |block| {
            let mut made: Option<RawView> = None;
            for step in 1..=self.count {
                let (regions, scalars) = self.step(&call, &spans, block, step);
                let mut views: SmallVec<[RawView; 4]> = SmallVec::new();
                for (number, region) in regions.iter().enumerate() {
                    let view = match made {
                        Some(made) if number == self.state => Some(made),
                        _ if number == self.written && step < self.count => Some(buffer(step, region.shape())),
                        _ => given[number].part(region),
                    };
                    views.push(view.unwrap_or_else(|| panic!("step {step} of {} leaves its blocks", self.name())));
                }
                // SAFETY: blocks and their parts are what the caller vouches for. A buffer is scratch memory, which is
                // initialised and ours alone: `buffer_bytes` has room for the largest step of the largest block, and a
                // step reads the one that it does not write. Types and ranks are those of the parameters.
                unsafe { self.task.leaf(&views, &mut LeafContext::new(&scalars, scratch).on(processor)) };
                made = Some(views[self.written]);
            }
        });
    }
}

/// The blocks of these lengths, row-major: for each axis the first element and how many.
fn for_each_block(spans: &[Span], lengths: &[u64], each: &mut impl FnMut(&[(u64, u64)])) {
    fn nest(spans: &[Span], lengths: &[u64], at: &mut SmallVec<[(u64, u64); 4]>, each: &mut impl FnMut(&[(u64, u64)])) {
        let axis = at.len();
        if axis == spans.len() {
            return each(at);
        }
        for block in blocks(spans[axis].extent, lengths[axis]) {
            at.push(block);
            nest(spans, lengths, at, each);
            at.pop();
        }
    }
    nest(spans, lengths, &mut SmallVec::new(), each);
}
