//! What a nest of loops costs at an edge, by formula: footprint, traffic and time of a call of a task with a notation,
//! before any list of calls exists.
//!
//! A block of a parameter is used again while only loops turn that do not cut it. For each parameter there is a choice:
//! keep what one turn of some loop needs of it, and load it once a turn, or keep less and load more often. For a product
//! in the loops `n, m, k, m` (blocks of rows within blocks of rows) a tile of C in strips stays while k turns, one panel
//! of B while a tile's strips turn, and strips of A stream: the sequential schedule of Kwasniewski et al. (COSMA, SC
//! 2019, arXiv 1908.09606). Among the choices that fit the one that takes least time counts; the walk that plans an edge
//! (see [`crate::staging`]) knows the future and does at least as well.

use crate::cost::{price, staging_seconds, transfer_seconds, unevenness};
use crate::facts::{EdgeFacts, TaskRef};
use crate::flow::{Flow, Moved, Stay, Ways};
use crate::loops::outer;
use crate::rules::{Ends, Movable, ends, movable_blocks, multiple};
use multigrain_program::notation::Dimension;
use multigrain_program::{Access, CallShape, Shape, Tunable};
use smallvec::SmallVec;

/// How many transfers are in a disk's queue.
const USUAL_QUEUE: f64 = 3.0;

/// Elements of which lengths of blocks are multiples: cache lines of the smallest usual elements.
pub(crate) const FRIENDLY: u64 = 16;

/// A loop: number of the axis, and length of its blocks.
pub(crate) type Loop = (usize, u64);

/// How often each loop turns, on average and at most.
type Turns = SmallVec<[(f64, u64); 6]>;

struct Parameter {
    dims: SmallVec<[Dimension; 4]>,
    shape: Shape,
    /// Of the array in which it lies.
    host: Shape,
    size_bytes: u64,
    access: Access,
}

impl Parameter {
    fn is_cut_by(&self, axis: usize) -> bool {
        self.dims.iter().any(|dimension| cuts(dimension, axis))
    }
}

fn cuts(dimension: &Dimension, axis: usize) -> bool {
    match *dimension {
        Dimension::Whole => false,
        Dimension::Axis(a) | Dimension::Window { axis: a, .. } => a == axis,
    }
}

/// A call of a task with a notation, at an edge.
pub(crate) struct Nest<'a> {
    facts: &'a EdgeFacts<'a>,
    task: &'a TaskRef,
    call: &'a CallShape,
    pub(crate) extents: SmallVec<[u64; 4]>,
    /// Of what lengths along each axis are multiples: what the task says, and what rules that are enforced do.
    pub(crate) every: SmallVec<[u64; 4]>,
    params: Vec<Parameter>,
}

/// What the loops cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) calls: u64,
    /// Bytes of the blocks of one call.
    pub(crate) footprint: u64,
    /// Bytes that are not for blocks: buffers, scratch memory, partial results of plans below.
    pub(crate) reserved: u64,
    /// Bytes of partial results of reductions in the parent memory.
    pub(crate) partials: u64,
    pub(crate) seconds: f64,
    /// Bytes over the edge.
    pub(crate) bytes: f64,
    pub(crate) price: f64,
}

/// Blocks of some length along each axis: what of a nest's cost does not depend on its loops.
pub(crate) struct Blocks {
    lengths: SmallVec<[u64; 4]>,
    /// The largest of a call's.
    largest: CallShape,
    /// A call's in the middle of the array.
    middle: CallShape,
    /// Bytes of the blocks of one call.
    footprint: u64,
    /// Bytes that are not for blocks.
    reserved: u64,
}

impl Blocks {
    /// All that a call needs, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.footprint.saturating_add(self.reserved)
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }
}

/// How many blocks of each parameter the best choice keeps, and what it promises.
pub(crate) struct Kept {
    /// For each parameter: how many, and whether others are needed for nearly every call.
    pub(crate) blocks: SmallVec<[(u64, bool); 6]>,
    /// Bytes over the edge.
    pub(crate) bytes: f64,
}

/// The best choice of what stays: time in seconds, bytes, and how each parameter's blocks are kept.
struct Choice {
    seconds: f64,
    bytes: f64,
    stays: SmallVec<[Stay; 6]>,
}

impl<'a> Nest<'a> {
    /// `None` for a task without notation.
    pub(crate) fn of(facts: &'a EdgeFacts<'a>, task: &'a TaskRef, call: &'a CallShape) -> Option<Nest<'a>> {
        let notation = task.notation()?;
        let extents = notation.extents(call).ok()?;
        let dims = notation.dimensions(call);
        let is_host = |(host, shape): (&Shape, &Shape)| host.rank() == shape.rank();
        let hosts = match facts.hosts.len() == call.shapes.len() && facts.hosts.iter().zip(&call.shapes).all(is_host) {
            true => facts.hosts,
            false => &call.shapes,
        };
        let params = dims.into_iter().zip(call.shapes.iter().zip(hosts)).zip(task.params());
        let params = params.map(|((dims, (&shape, &host)), param)| Parameter {
            dims,
            shape,
            host,
            size_bytes: param.element.size_bytes(),
            access: param.access,
        });
        let params: Vec<Parameter> = params.collect();
        // Rows of a matrix may be any number: where each begins and ends does not depend on it.
        let is_of_rows = |p: &Parameter, axis| p.dims.len() > 1 && !p.dims[1..].iter().any(|d| cuts(d, axis));
        let every = |(number, axis): (usize, &Tunable)| {
            let is_free = params.iter().filter(|p| p.is_cut_by(number)).all(|p| is_of_rows(p, number));
            if is_free { axis.multiple.max(1) } else { multiple(facts.row_unit_bytes(), &**task, axis.multiple) }
        };
        let every = task.tunables(call).iter().enumerate().map(every).collect();
        Some(Nest { facts, task, call, extents, every, params })
    }

    /// Axes that the written parameters lack, along which order is fixed.
    pub(crate) fn folded(&self) -> SmallVec<[usize; 2]> {
        let written = self.params.iter().filter(|p| p.access.writes());
        (0..self.extents.len()).filter(|&axis| written.clone().any(|p| !p.is_cut_by(axis))).collect()
    }

    pub(crate) fn call(&self) -> &'a CallShape {
        self.call
    }

    pub(crate) fn facts(&self) -> &'a EdgeFacts<'a> {
        self.facts
    }

    /// Whether the list of these loops may be longer than is planned at once, because parts can be made of it.
    pub(crate) fn may_be_long(&self, loops: &[Loop]) -> bool {
        if self.facts.is_part || !self.facts.may_be_parts(self.task) {
            return false;
        }
        if !self.facts.edge.rules.strict {
            return true;
        }
        // What a part is given must lie as an array of its own would: see [`EdgeFacts::may_be_part`].
        self.movable(&self.part(&self.extents, loops)) == Movable::Aligned
    }

    /// The lengths of the parts that the list of these loops over axes of such lengths is taken apart into.
    fn part(&self, extents: &[u64], loops: &[Loop]) -> SmallVec<[u64; 4]> {
        let mut specs = self.task.tunables(self.call);
        specs.iter_mut().zip(extents).for_each(|(spec, &extent)| spec.extent = extent);
        let named = loops.iter().map(|&(axis, length)| (specs[axis].name, length)).collect();
        let mut lengths = SmallVec::from_slice(extents);
        let (listed, children) = (self.facts.listed_max, self.facts.children as u64);
        for (name, length) in outer(self.task, &specs, &named, listed, children).iter() {
            for (spec, known) in specs.iter().zip(&mut lengths).filter(|(spec, _)| spec.name == name) {
                *known = length.min(spec.extent);
            }
        }
        lengths
    }

    /// How often loops turn within what is planned at once: a part of the list, or a part of that.
    fn inside_part(&self, loops: &[Loop]) -> Turns {
        let mut lengths = self.extents.clone();
        loop {
            let turns = Nest::turns(&lengths, loops);
            let calls = turns.iter().fold(1u64, |calls, &(_, most)| calls.saturating_mul(most));
            if calls <= self.facts.listed_max {
                return turns;
            }
            let part = self.part(&lengths, loops);
            if part == lengths {
                return turns;
            }
            lengths = part;
        }
    }

    /// Whether contributions along the axis are combined by a tree, so that its blocks are powers of two of spans.
    pub(crate) fn is_reduced(&self, axis: usize) -> bool {
        self.params.iter().any(|p| p.access == Access::Reduce && !p.is_cut_by(axis))
    }

    /// Orders of loops with innermost blocks of these lengths that may be worth it. In each, folded axes turn inside all
    /// others; or inside all but one, whose blocks lie within blocks as large as what they write may stay in `room` bytes.
    pub(crate) fn orders(&self, lengths: &[u64], room: u64) -> Vec<SmallVec<[Loop; 6]>> {
        let folded = self.folded();
        let inner = || folded.iter().map(|&axis| (axis, lengths[axis]));
        let outer: SmallVec<[usize; 4]> = (0..self.extents.len()).filter(|axis| !folded.contains(axis)).collect();
        let reduces = self.params.iter().any(|p| p.access == Access::Reduce);
        let mut orders = Vec::new();
        for first in 0..outer.len().max(1) {
            // The axes in declared order, but for one that turns outside of the others.
            let mut axes = outer.clone();
            if first > 0 {
                axes[..=first].rotate_right(1);
            }
            let plain = || axes.iter().map(|&axis| (axis, lengths[axis]));
            orders.push(plain().chain(inner()).collect());
            if !self.facts.stages() || reduces {
                break;
            }
            let Some((&last, before)) = axes.split_last().filter(|_| !folded.is_empty()) else { continue };
            // Blocks of one size rather than a short one at the end.
            let mut lengths: SmallVec<[u64; 4]> = SmallVec::from_slice(lengths);
            for &axis in before {
                lengths[axis] = self.even(axis, self.extents[axis], self.extents[axis].div_ceil(lengths[axis]));
            }
            let block = self.block(&lengths);
            let (mut others, mut written, mut streams, mut panels) = (0, 0, 0, 0);
            for (number, p) in self.params.iter().enumerate() {
                let bytes = self.block_bytes(&block, number);
                match (p.access.writes(), p.is_cut_by(last)) {
                    (true, _) => written += bytes,
                    (false, is_cut) => {
                        others += bytes;
                        streams += if is_cut { bytes } else { 0 };
                        panels += if is_cut { 0 } else { bytes };
                    }
                }
            }
            let mut before_length = 0;
            for ahead in [streams + panels, streams] {
                let (extent, most) = (self.extents[last], room.saturating_sub(others + ahead) / written.max(1));
                let large = lengths[last].saturating_mul(most).clamp(1, extent);
                let whole = extent.div_ceil(extent.div_ceil(large));
                let blocks = whole.div_ceil(lengths[last]);
                // Where cache lines begin, if that fits.
                let plain = whole.div_ceil(blocks).next_multiple_of(self.every[last]);
                let friendly = Some(self.even(last, whole, blocks)).filter(|length| length * blocks <= large);
                let inner_length = friendly.unwrap_or(plain).min(extent);
                let even = inner_length.saturating_mul(blocks).min(extent);
                if blocks < 2 || even == before_length {
                    continue;
                }
                before_length = even;
                let outside = before.iter().map(|&axis| (axis, lengths[axis])).chain([(last, even)]);
                orders.push(outside.chain(inner()).chain([(last, inner_length)]).collect());
            }
        }
        orders
    }

    /// The length of so many blocks of one size along an axis, that begin where cache lines do unless they are short.
    fn even(&self, axis: usize, extent: u64, count: u64) -> u64 {
        let (even, every) = (extent.div_ceil(count.max(1)), self.every[axis]);
        let friendly = if every == 1 && even >= 8 * FRIENDLY { FRIENDLY } else { every };
        even.next_multiple_of(friendly).min(extent)
    }

    /// The largest blocks of a call.
    fn block(&self, lengths: &[u64]) -> CallShape {
        let of = |p: &Parameter| {
            let length = |(dimension, &extent): (&Dimension, &u64)| match *dimension {
                Dimension::Whole => extent,
                Dimension::Axis(axis) => lengths[axis].min(extent),
                Dimension::Window { axis, reach, .. } => {
                    lengths[axis].saturating_add(reach.0).saturating_add(reach.1).min(extent)
                }
            };
            let dims: SmallVec<[u64; 4]> = p.dims.iter().zip(p.shape.dims()).map(length).collect();
            Shape::new(&dims)
        };
        CallShape { shapes: self.params.iter().map(of).collect(), scalars: self.call.scalars.clone() }
    }

    /// A call on blocks of these lengths from the middle of the array, where all of their halos is there.
    fn middle(&self, lengths: &[u64]) -> CallShape {
        let mut before: SmallVec<[u64; 4]> = SmallVec::new();
        let mut of = |p: &Parameter| {
            let mut length = |(dimension, &len): (&Dimension, &u64)| match *dimension {
                Dimension::Whole => len,
                Dimension::Axis(axis) => lengths[axis].min(len),
                Dimension::Window { axis, window, reach } => {
                    let (extent, there) = (self.extents[axis], self.call.scalars.before(window));
                    let inner = lengths[axis].min(extent);
                    let first = (extent - inner) / 2;
                    before.push(reach.0.min(there + first));
                    reach.0.min(there + first) + inner + reach.1.min(len - there - first - inner)
                }
            };
            let dims: SmallVec<[u64; 4]> = p.dims.iter().zip(p.shape.dims()).map(&mut length).collect();
            Shape::new(&dims)
        };
        let shapes = self.params.iter().map(&mut of).collect();
        CallShape { shapes, scalars: self.call.scalars.clone().with_before(&before) }
    }

    fn block_bytes(&self, block: &CallShape, param: usize) -> u64 {
        let bytes = block.shapes[param].elements().saturating_mul(self.params[param].size_bytes);
        bytes.checked_next_multiple_of(self.facts.align_bytes()).unwrap_or(u64::MAX)
    }

    /// Blocks of these lengths.
    pub(crate) fn blocks(&self, lengths: &[u64]) -> Blocks {
        let (largest, middle) = (self.block(lengths), self.middle(lengths));
        let footprint = (0..self.params.len()).fold(0u64, |sum, p| sum.saturating_add(self.block_bytes(&largest, p)));
        let of = |middle: &CallShape| self.facts.scratch_bytes(&**self.task, middle);
        let mut scratch = of(&middle).max(self.facts.scratch_least_bytes);
        // Short blocks at the end of an axis may need more than the others.
        if self.facts.scratch_users > 0 {
            for axis in 0..lengths.len() {
                let rest = self.extents[axis] % lengths[axis].max(1);
                if rest > 0 {
                    let mut last: SmallVec<[u64; 4]> = SmallVec::from_slice(lengths);
                    last[axis] = rest;
                    scratch = scratch.max(of(&self.middle(&last)));
                }
            }
        }
        let reserved = self.facts.fixed_bytes + self.facts.partials_bytes + scratch;
        Blocks { lengths: SmallVec::from_slice(lengths), largest, middle, footprint, reserved }
    }

    /// How rules that are enforced let the worst block pass when the blocks of each axis have these lengths.
    pub(crate) fn movable(&self, lengths: &[u64]) -> Movable {
        let rules = &self.facts.edge.rules;
        if !rules.strict {
            return Movable::Aligned;
        }
        let along = |axis: usize| ends(self.extents[axis], lengths[axis]);
        let of = |p: &Parameter| {
            let blocks = |(dimension, &len): (&Dimension, &u64)| match *dimension {
                Dimension::Whole => SmallVec::from_slice(&[(0, len)]),
                Dimension::Axis(axis) => along(axis),
                Dimension::Window { axis, window, reach } => {
                    let there = self.call.scalars.before(window);
                    let halo = |(start, length): (u64, u64)| {
                        let first: u64 = there + start - reach.0.min(there + start);
                        (first, (there + start + length).saturating_add(reach.1).min(len) - first)
                    };
                    along(axis).into_iter().map(halo).collect()
                }
            };
            let dims: SmallVec<[Ends; 4]> = p.dims.iter().zip(p.shape.dims()).map(blocks).collect();
            movable_blocks(
                rules,
                p.size_bytes,
                p.shape.dims().iter().zip(&dims).map(|(&extent, blocks)| (extent, &blocks[..])),
            )
        };
        self.params.iter().map(of).min().unwrap_or(Movable::Aligned)
    }

    /// The innermost length of each axis.
    pub(crate) fn lengths(&self, loops: &[Loop]) -> SmallVec<[u64; 4]> {
        let mut lengths = self.extents.clone();
        loops.iter().for_each(|&(axis, length)| lengths[axis] = length.min(self.extents[axis]));
        lengths
    }

    /// For each loop over axes of these extents: how often it turns on average, and at most.
    fn turns(extents: &[u64], loops: &[Loop]) -> Turns {
        let mut left: SmallVec<[(u64, f64); 4]> = extents.iter().map(|&e| (e, 1.0)).collect();
        loops
            .iter()
            .map(|&(axis, length)| {
                let (outer, blocks) = left[axis];
                let most = outer.div_ceil(length.max(1));
                // In all, over the blocks of the outer loop of the axis, of which the last may be shorter.
                let extent = extents[axis];
                let rest = (extent % outer).div_ceil(length.max(1));
                let total = (extent / outer) as f64 * most as f64 + rest as f64;
                left[axis] = (length.min(outer), total);
                (total / blocks, most)
            })
            .collect()
    }

    /// What these loops cost.
    pub(crate) fn estimate(&self, loops: &[Loop]) -> Estimate {
        self.chosen(loops, &self.blocks(&self.lengths(loops))).0
    }

    /// The same, where some blocks are known that may be those of the loops.
    pub(crate) fn estimate_with(&self, loops: &[Loop], known: &Blocks) -> Estimate {
        if self.lengths(loops) == known.lengths { self.chosen(loops, known).0 } else { self.estimate(loops) }
    }

    /// What the best choice keeps; `None` where blocks are not copied.
    pub(crate) fn kept(&self, loops: &[Loop]) -> Option<Kept> {
        let choice = self.chosen(loops, &self.blocks(&self.lengths(loops))).1?;
        let blocks = choice.stays.iter().map(|stay| (stay.kept.round() as u64, stay.streams)).collect();
        Some(Kept { blocks, bytes: choice.bytes })
    }

    fn chosen(&self, loops: &[Loop], blocks: &Blocks) -> (Estimate, Option<Choice>) {
        let facts = self.facts;
        let &Blocks { ref lengths, ref largest, ref middle, footprint, reserved } = blocks;
        let turns = Nest::turns(&self.extents, loops);
        let calls = turns.iter().map(|&(average, _)| average).product::<f64>().max(1.0);
        let run = facts.run_seconds(&**self.task, middle);
        let points = |lengths: &[u64]| lengths.iter().map(|&l| l as f64).product::<f64>();
        // Blocks at the ends are smaller; what a call costs besides its work they cost as well.
        let overhead = facts.call_overhead_ns * 1e-9;
        let full_calls = points(&self.extents) / points(lengths).max(1.0);
        let moved: SmallVec<[Moved; 6]> =
            (0..self.params.len()).map(|p| self.moved(p, largest, loops, &turns)).collect();
        let scattered = facts.scattered_seconds(moved.iter().map(|moved| moved.fragments));
        let busy = (full_calls * (run - overhead).max(0.0) + calls * (overhead + scattered)) / facts.children as f64;
        let chains = self.chains(loops, &turns);
        let uneven = unevenness(chains, facts.children, facts.stages());
        let busy = busy * uneven;
        let estimate = |seconds: f64, bytes: f64| Estimate {
            calls: calls.round() as u64,
            footprint,
            reserved,
            partials: self.partials(&turns, loops),
            seconds,
            bytes,
            price: price(seconds, bytes as u64),
        };
        if !facts.stages() {
            let idle = if calls < facts.children as f64 { run } else { 0.0 };
            let forking = if calls > 1.5 { crate::cost::UNEVEN * run + facts.fork_seconds() } else { 0.0 };
            return (estimate(busy + forking + idle, 1.0), None);
        }
        let capacity = facts.total_bytes.saturating_sub(reserved) as f64;
        // Nothing stays from one part to the next.
        let is_long = calls > facts.listed_max as f64 && self.may_be_long(loops);
        let inside = if is_long { self.inside_part(loops) } else { turns.clone() };
        let choice = self.moving(loops, [&turns, &inside], largest, &moved, capacity, busy, uneven);
        (estimate(choice.seconds, choice.bytes), Some(choice))
    }

    /// Blocks that are written, each by calls that stay with one child.
    fn chains(&self, loops: &[Loop], turns: &[(f64, u64)]) -> f64 {
        let Some(written) = self.params.iter().find(|p| p.access.writes()) else { return 1.0 };
        let of =
            |(&(axis, _), &(average, _)): (&Loop, &(f64, u64))| if written.is_cut_by(axis) { average } else { 1.0 };
        loops.iter().zip(turns).map(of).product::<f64>().max(1.0)
    }

    fn partials(&self, turns: &[(f64, u64)], loops: &[Loop]) -> u64 {
        let of = |p: &Parameter| {
            let contributions =
                loops.iter().zip(turns).filter(|((axis, _), _)| !p.is_cut_by(*axis)).map(|(_, &(average, _))| average);
            let more = contributions.product::<f64>().round() as u64;
            p.shape.elements().saturating_mul(p.size_bytes).saturating_mul(more.saturating_sub(1))
        };
        self.params.iter().filter(|p| p.access == Access::Reduce).map(of).fold(0, u64::saturating_add)
    }

    /// Among how many children the turns of each loop are divided: chains go to them in their order, so those of outer loops first. What
    /// all need may be broadcast where children reach each other: there it counts once.
    fn divided(&self, loops: &[Loop], turns: &[(f64, u64)]) -> SmallVec<[f64; 6]> {
        let edge = self.facts.edge;
        let reach = edge.driver.siblings && edge.sibling_bytes_per_second.is_some();
        let mut left = if reach { 1.0 } else { self.facts.children as f64 };
        let written = self.params.iter().find(|p| p.access.writes());
        let mut among = |(&(axis, _), &(average, _)): (&Loop, &(f64, u64))| {
            let is_cut = written.is_some_and(|written| written.is_cut_by(axis));
            let children = if is_cut { f64::min(left, average) } else { 1.0 };
            left /= children;
            children
        };
        loops.iter().zip(turns).map(&mut among).collect()
    }

    /// The ways to keep blocks of a parameter, from the one that keeps least; loops turn so often in all, and so often within what
    /// is planned at once. Every child that needs a block loads it.
    fn stays(
        &self,
        p: &Parameter,
        bytes: u64,
        loops: &[Loop],
        [turns, inside_part]: [&[(f64, u64)]; 2],
        divided: &[f64],
    ) -> SmallVec<[Stay; 4]> {
        let cuts = |l: usize| p.is_cut_by(loops[l].0);
        let inside = (0..loops.len()).rev().find(|&l| cuts(l) && turns[l].1 > 1).map_or(0, |l| l + 1);
        let last = (0..loops.len()).rev().find(|&l| turns[l].1 > 1);
        let mut kept = 1.0;
        let mut loads: f64 = turns[..inside].iter().map(|&(average, _)| average).product();
        loads *= divided[inside..].iter().product::<f64>();
        let stay = |kept: f64, loads, streams| Stay { kept, kept_bytes: kept * bytes as f64, loads, streams };
        let mut stays = SmallVec::from_slice(&[stay(kept, loads, last == inside.checked_sub(1))]);
        for l in (0..inside).rev() {
            if cuts(l) {
                kept *= (inside_part[l].1 as f64 / divided[l]).ceil();
            } else if inside_part[l].0 > divided[l] {
                loads /= inside_part[l].0 / divided[l];
                stays.push(stay(kept, loads, false));
            }
        }
        stays
    }

    /// The best choice of what stays, with how often the loops turn in all, and within what is planned at once.
    #[allow(clippy::too_many_arguments)]
    fn moving(
        &self,
        loops: &[Loop],
        both: [&[(f64, u64)]; 2],
        block: &CallShape,
        moved: &[Moved],
        capacity: f64,
        busy: f64,
        uneven: f64,
    ) -> Choice {
        let facts = self.facts;
        let count = self.params.len();
        let [turns, _] = both;
        let divided = self.divided(loops, turns);
        let ways = |p: usize| {
            let (param, bytes) = (&self.params[p], self.block_bytes(block, p));
            let flow = |stay: Stay| (stay, Flow::of(facts, param.access, &stay, &moved[p], bytes));
            self.stays(param, bytes, loops, both, &divided).into_iter().map(flow).collect()
        };
        let ways: SmallVec<[Ways; 4]> = (0..count).map(ways).collect();
        let latency = facts.edge.latency_ns * 1e-9;
        let transfer = transfer_seconds(facts.edge, USUAL_QUEUE);
        // A device serves one transfer after the other, and children wait at the same time.
        let waits = latency / facts.children as f64 + transfer;
        let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, count);
        let (mut best, mut least, mut best_at) = ((f64::INFINITY, f64::INFINITY), f64::INFINITY, at.clone());
        loop {
            let all = (0..count).fold(Flow::default(), |sum, p| sum.and(&ways[p][at[p]].1));
            let kept = all.kept_bytes;
            if kept <= capacity || at.iter().all(|&a| a == 0) {
                let moving = (all.seconds + all.transfers * waits) * uneven;
                let busy = busy + all.stolen;
                let free = capacity - kept;
                let staging = (kept + all.streams.min(free.max(0.0))).min(capacity.max(kept)) as u64;
                let around = staging_seconds(facts.edge, all.bytes as u64, staging);
                // What is fetched ahead needs room beside what is in use; a panel without such room is waited for, of which
                // nothing is lost as long as processors wait for bytes that flow without a pause.
                let idle = (all.flowing * uneven - busy).max(0.0);
                let together = match facts.edge.driver.synchronous {
                    true => busy + moving,
                    _ if free >= all.streams + all.panels => busy.max(moving) + all.first,
                    _ if free >= all.streams => {
                        busy.max(moving) + (all.stalls.min(moving) * 0.5 - idle).max(0.0) + all.first
                    }
                    _ => busy + moving,
                } + around;
                let price = price(together, all.bytes as u64);
                if best.0.is_infinite() || (kept <= capacity && price < least) {
                    (best, least, best_at) = ((together, all.bytes), price, at.clone());
                }
            }
            // The next choice.
            let Some(p) = (0..count).find(|&p| at[p] + 1 < ways[p].len()) else { break };
            at[p] += 1;
            at[..p].fill(0);
        }
        let (seconds, bytes) = best;
        Choice { seconds, bytes, stays: (0..count).map(|p| ways[p][best_at[p]].0).collect() }
    }

    fn moved(&self, param: usize, block: &CallShape, loops: &[Loop], turns: &[(f64, u64)]) -> Moved {
        let p = &self.params[param];
        let mut distinct = 1.0;
        let along = |axis: usize| -> f64 {
            loops.iter().zip(turns).filter(|((a, _), _)| *a == axis).map(|(_, &(average, _))| average).product()
        };
        let mut elements = 1.0;
        let (mut fragments, mut is_dense) = (1.0, true);
        for d in (0..p.dims.len()).rev() {
            let (extent, len) = (p.shape.dims()[d], block.shapes[param].dims()[d]);
            let (blocks, covered) = match p.dims[d] {
                Dimension::Whole => (1.0, extent as f64),
                Dimension::Axis(axis) => (along(axis), extent as f64),
                Dimension::Window { axis, reach, .. } => {
                    let blocks = along(axis);
                    (blocks, extent as f64 + (blocks - 1.0) * (reach.0 + reach.1) as f64)
                }
            };
            distinct *= blocks;
            elements *= covered;
            if !is_dense {
                fragments *= covered / blocks;
            }
            is_dense &= len == p.host.dims()[d];
        }
        Moved { bytes: elements / distinct * p.size_bytes as f64, fragments, distinct }
    }
}
