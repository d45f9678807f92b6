//! One edge: from split calls to what every child does, by running the passes in turn.

use crate::barriers::barriers;
use crate::broadcasts::{Meaning, broadcasts};
use crate::cost::{
    CLOSE, UNEVEN, broadcast_algorithm, broadcast_seconds, children_seconds, moving_seconds, price, staging_seconds,
};
use crate::dependence::{Dependence, dependence};
use crate::estimate::Kept;
use crate::facts::EdgeFacts;
use crate::grouping::{seen_outside, signals, views};
use crate::order::{program_order, sharing_order};
use crate::placement::{Placement, placement};
use crate::plan::{ChildPlan, PassReport, Slot, Traffic, forks};
use crate::rooms::rooms;
use crate::scope::Split;
use crate::staging::{Counts, DoesNotFit, Problem, stage};
use multigrain_machine::{Edge, readable_bytes};
use multigrain_program::{Access, Arg, ArrayDecl, Call, Region};
use multigrain_schedule::Kind;
use multigrain_schedule::choice::Table;

/// A possible plan of an edge.
pub(crate) struct Draft {
    pub(crate) children: Vec<ChildPlan>,
    pub(crate) balanced: bool,
    pub(crate) seconds: f64,
    pub(crate) traffic: Traffic,
    pub(crate) capacity_bytes: u64,
    pub(crate) scratch_bytes: u64,
    pub(crate) passes: Vec<PassReport>,
}

impl Draft {
    /// See [`price`].
    pub(crate) fn price(&self) -> f64 {
        price(self.seconds, self.bytes())
    }

    /// Bytes over the edge, both ways.
    pub(crate) fn bytes(&self) -> u64 {
        self.traffic.bytes_down + self.traffic.bytes_up
    }
}

/// Why a draft failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overflow {
    pub(crate) fit: DoesNotFit,
    pub(crate) capacity_bytes: u64,
    pub(crate) reserved_bytes: u64,
    /// Scratch memory of all calls.
    pub(crate) scratch_bytes: u64,
}

/// Runs the passes. `thorough` tries every order and depth, otherwise the first that fits. Where that moves more than a
/// formula promises with what it `kept`, each parameter is given a room of its own as well.
pub(crate) fn draft(
    facts: &EdgeFacts<'_>,
    split: &Split,
    kept: Option<&Kept>,
    depth_max: usize,
    thorough: bool,
    file_offsets_bytes: &[u64],
) -> Result<Draft, Overflow> {
    let (children, lying) = (facts.children, facts.lying(&split.arrays));
    let arrays = &lying[..];
    let class_seconds: Vec<f64> =
        split.classes.iter().map(|(task, shape)| facts.run_seconds(&*split.tasks[*task as usize], shape)).collect();
    let of_call =
        |(&class, call): (&u32, &Call)| class_seconds[class as usize] + facts.scattered_call_seconds(call, arrays);
    let seconds: Vec<f64> = split.class_of.iter().zip(&split.calls).map(of_call).collect();
    let dependence = dependence(&split.calls, &split.tasks);
    let placement = placement(&dependence, &seconds, children);
    let block_bytes: Vec<u64> =
        dependence.blocks.iter().map(|b| b.region.elements() * arrays[b.array as usize].element.size_bytes()).collect();
    let block_skew: Vec<u64> = dependence
        .blocks
        .iter()
        .map(|b| {
            let offset_bytes = file_offsets_bytes.get(b.array as usize).copied();
            facts.skew_bytes(&b.region, &arrays[b.array as usize], offset_bytes)
        })
        .collect();
    let mut reports = reports(&dependence, &placement, children);
    let call_seconds = |call: usize| seconds[call];
    let seen = seen_outside(&dependence, &placement);
    let program = program_order(split.calls.len());

    if !facts.stages() {
        let signals = signals(&dependence, &placement, &program, children);
        let problem = Problem {
            arrays,
            dependence: &dependence,
            placement: &placement,
            order: &program,
            block_bytes: &block_bytes,
            block_skew: &block_skew,
            signals: &signals,
            seen_outside: &seen,
            rooms: None,
            in_flight_max: None,
        };
        let mut views = views(&problem, children, &call_seconds);
        let met = barriers(&mut views.children);
        let batches: usize = views.children.iter().map(|p| p.batches.len()).sum();
        let forks = forks(&views.children, views.balanced);
        let total = views.seconds + if forks { UNEVEN * views.longest_seconds + facts.fork_seconds() } else { 0.0 };
        let copies: usize = dependence.uses.iter().map(|u| u.len()).sum();
        let phases = views.children.first().map_or(0, |p| p.phases.len());
        let grouping = match (batches, phases) {
            (0, _) => "every child keeps to its own calls".to_owned(),
            (_, 1) => format!("{batches} batches that any child may take"),
            _ => format!("{batches} batches in {phases} phases; within a phase any child may take them"),
        };
        let report = |pass, summary| PassReport { pass, summary };
        reports.push(report("order", "the program's, chain after chain".into()));
        reports.push(report("copy elimination", format!("one address space: {copies} of {copies} copies are views")));
        reports.push(report("grouping", grouping));
        reports.extend(meeting(met, children));
        return Ok(Draft {
            children: views.children,
            balanced: views.balanced,
            seconds: total,
            traffic: Traffic::default(),
            capacity_bytes: 0,
            scratch_bytes: 0,
            passes: reports,
        });
    }

    let scratch_bytes = split
        .classes
        .iter()
        .map(|(task, shape)| facts.scratch_bytes(&*split.tasks[*task as usize], shape))
        .fold(facts.scratch_least_bytes, u64::max)
        + facts.partials_bytes;
    let reserved_bytes = facts.fixed_bytes + scratch_bytes;
    let capacity_bytes = facts.total_bytes.saturating_sub(reserved_bytes);
    let overflow =
        |fit| Overflow { fit, capacity_bytes, reserved_bytes, scratch_bytes: scratch_bytes - facts.partials_bytes };
    let orders = [
        ("the program's", Some(program)),
        ("neighbours share blocks", sharing_order(&dependence, &placement, &block_bytes)),
    ];
    let sharing = Sharing::of(facts, split);
    let mut best: Option<Draft> = None;
    let mut failure = None;
    for (name, order) in orders {
        let Some(order) = order else { continue };
        let signals = signals(&dependence, &placement, &order, children);
        let problem = Problem {
            arrays,
            dependence: &dependence,
            placement: &placement,
            order: &order,
            block_bytes: &block_bytes,
            block_skew: &block_skew,
            signals: &signals,
            seen_outside: &seen,
            rooms: None,
            in_flight_max: facts.edge.rules.in_flight_max,
        };
        for depth in depths(facts.edge.driver.queued, depth_max) {
            let staged = |problem: &Problem<'_>| {
                let of_child = |c| stage(problem, c, children, capacity_bytes, facts.align_bytes(), depth);
                let staged = (0..children).map(of_child).collect::<Result<Vec<_>, _>>()?;
                let rooms = problem.rooms.is_some();
                Ok(staged_draft(
                    facts,
                    arrays,
                    staged,
                    &call_seconds,
                    (capacity_bytes, scratch_bytes),
                    depth,
                    (name, rooms),
                ))
            };
            let free = staged(&problem);
            let promised = kept.filter(|kept| {
                let bytes = free.as_ref().map_or(f64::INFINITY, |draft: &Draft| draft.bytes() as f64);
                bytes > kept.bytes * CLOSE
            });
            let rooms = promised.and_then(|kept| {
                let bytes = |block: usize| block_bytes[block] + block_skew[block];
                rooms(facts, split, &dependence, bytes, kept, capacity_bytes, depth as u64 + 1)
            });
            let mut fits = false;
            // A panel that has no second place is waited for: rooms are for where that hardly counts.
            let seconds_max = free.as_ref().map_or(f64::INFINITY, |draft: &Draft| draft.seconds * CLOSE);
            let in_rooms = rooms.map(|rooms| staged(&Problem { rooms: Some(&rooms), ..problem }));
            let in_rooms = in_rooms.filter(|draft| draft.as_ref().is_ok_and(|draft| draft.seconds <= seconds_max));
            for draft in std::iter::once(free).chain(in_rooms) {
                let draft = match draft {
                    Ok(draft) => draft,
                    Err(fit) => {
                        failure = Some(fit);
                        continue;
                    }
                };
                fits = true;
                let shared =
                    sharing.as_ref().and_then(|sharing| broadcast_draft(facts, sharing, &draft, &call_seconds));
                for draft in std::iter::once(draft).chain(shared) {
                    if best.as_ref().is_none_or(|b| draft.price() < b.price()) {
                        best = Some(draft);
                    }
                }
            }
            if fits && !thorough {
                break;
            }
        }
    }
    match best {
        Some(mut draft) => {
            reports.append(&mut draft.passes);
            draft.passes = reports;
            Ok(draft)
        }
        None => Err(overflow(failure.unwrap_or(DoesNotFit { call: 0, need_bytes: 0 }))),
    }
}

/// How many calls ahead are fetched: what is tried, the most usual first. The queue of a device is worth more depth.
fn depths(queued: bool, depth_max: usize) -> impl Iterator<Item = usize> {
    let deep = queued.then_some(2 * depth_max).filter(|&deep| deep > depth_max);
    let mut usual: Vec<usize> = (0..=depth_max).rev().collect();
    usual.splice(1..1, deep);
    usual.into_iter()
}

/// What the pass "barriers" made, if anything, and how it is executed.
pub(crate) fn meeting(barriers: usize, children: usize) -> Option<PassReport> {
    if barriers == 0 {
        return None;
    }
    let table = Table::assumed();
    let row = table.pick(Kind::Barrier, children as u32, 0);
    let (algorithm, reason) = (row.way.name(Kind::Barrier), &row.reason);
    let summary = format!("{barriers} of {children} children, by {algorithm} ({reason})");
    Some(PassReport { pass: "barriers", summary })
}

pub(crate) fn reports(dependence: &Dependence, placement: &Placement, children: usize) -> Vec<PassReport> {
    let edges: usize = dependence.predecessors.iter().map(|p| p.len()).sum();
    vec![
        PassReport {
            pass: "dependence",
            summary: format!("{} calls on {} blocks, {edges} hazards", dependence.uses.len(), dependence.blocks.len()),
        },
        PassReport {
            pass: "placement",
            summary: format!(
                "{} {} chains on {children} {}",
                placement.chains,
                if placement.independent { "independent" } else { "dependent" },
                if children == 1 { "child" } else { "children" },
            ),
        },
    ]
}

#[allow(clippy::too_many_arguments)]
fn staged_draft(
    facts: &EdgeFacts<'_>,
    arrays: &[ArrayDecl],
    staged: Vec<(ChildPlan, Counts)>,
    call_seconds: &dyn Fn(usize) -> f64,
    (capacity_bytes, scratch_bytes): (u64, u64),
    depth: usize,
    (order, rooms): (&str, bool),
) -> Draft {
    let mut traffic = Traffic::default();
    let mut sum = Counts::default();
    let (mut slots, mut peak) = (0, 0);
    for (plan, c) in &staged {
        let (bytes_down, bytes_up) = (c.bytes_down, c.bytes_up);
        traffic += Traffic { bytes_down, bytes_up, bytes_across: 0, transfers: c.fetches + c.stores };
        sum.uses += c.uses;
        sum.hits += c.hits;
        sum.fetches += c.fetches;
        sum.stores += c.stores;
        sum.stores_avoided += c.stores_avoided;
        sum.fetched_ahead += c.fetched_ahead;
        slots += plan.slots.len();
        peak = peak.max(plan.staging_bytes);
    }
    let mut children: Vec<ChildPlan> = staged.into_iter().map(|(plan, _)| plan).collect();
    let met = barriers(&mut children);
    let seconds = staged_seconds(facts, arrays, &children, call_seconds, &traffic);
    let report = |pass, summary| PassReport { pass, summary };
    let mut passes = vec![
        report("order", order.to_owned()),
        report(
            "residency",
            format!("{} of {} uses find their block in place", sum.uses - sum.fetches.min(sum.uses), sum.uses),
        ),
        report("copy elimination", format!("{} fetches and {} stores avoided", sum.hits, sum.stores_avoided)),
        report("grouping", format!("{} transfer lists for {} blocks", traffic.transfers, sum.fetches + sum.stores)),
        report("pipelining", format!("depth {depth}, {} of {} fetches ahead of time", sum.fetched_ahead, sum.fetches)),
        report(
            "slots",
            format!(
                "{slots} stays at fixed addresses{}, peak {} of {}",
                if rooms { ", each parameter in a room of its own" } else { "" },
                readable_bytes(peak),
                readable_bytes(capacity_bytes)
            ),
        ),
    ];
    passes.extend(meeting(met, children.len()));
    Draft { children, balanced: false, seconds, traffic, capacity_bytes, scratch_bytes, passes }
}

/// Predicted time in seconds of children with slots.
fn staged_seconds(
    facts: &EdgeFacts<'_>,
    arrays: &[ArrayDecl],
    children: &[ChildPlan],
    call_seconds: &dyn Fn(usize) -> f64,
    traffic: &Traffic,
) -> f64 {
    let peak = children.iter().map(|child| child.staging_bytes).max().unwrap_or(0);
    children_seconds(children, arrays, call_seconds, facts.edge, facts.workers)
        + staging_seconds(facts.edge, traffic.bytes_down + traffic.bytes_up, peak)
}

/// What the pass "broadcasts" asks, of a split on an edge whose children read each other's memory.
struct Sharing<'a> {
    split: &'a Split,
    edge: &'a Edge,
    children: usize,
    bytes_per_second: f64,
    table: Table,
    /// For each array the calls that write to it, in order, with what they write.
    writers: Vec<Vec<(u32, Region)>>,
}

impl<'a> Sharing<'a> {
    /// `None` where children do not reach each other.
    fn of(facts: &EdgeFacts<'a>, split: &'a Split) -> Option<Sharing<'a>> {
        let (edge, children) = (facts.edge, facts.children);
        let bytes_per_second = edge.sibling_bytes_per_second.filter(|_| edge.driver.siblings && children > 1)?;
        let mut writers = vec![Vec::new(); split.arrays.len()];
        for (number, call) in split.calls.iter().enumerate() {
            let params = split.tasks[call.task as usize].params();
            for (arg, _) in call.args.iter().zip(params).filter(|(_, param)| param.access.writes()) {
                writers[arg.array as usize].push((number as u32, arg.region));
            }
        }
        Some(Sharing { split, edge, children, bytes_per_second, table: Table::assumed(), writers })
    }
}

impl Meaning for Sharing<'_> {
    fn accesses(&self, call: u32) -> Vec<Access> {
        let task = &self.split.tasks[self.split.calls[call as usize].task as usize];
        task.params().iter().map(|param| param.access).collect()
    }

    fn version(&self, call: u32, block: &Arg) -> u32 {
        let writers = &self.writers[block.array as usize];
        let before = &writers[..writers.partition_point(|(writer, _)| *writer < call)];
        let last = before.iter().rev().find(|(_, region)| region.intersects(&block.region));
        last.map_or(0, |(writer, _)| writer + 1)
    }

    /// Where reading it for all the others would keep the parent busy for longer than it takes to broadcast it.
    fn is_worth(&self, slot: &Slot) -> bool {
        let (edge, children) = (self.edge, self.children);
        let array = &self.split.arrays[slot.block.array as usize];
        let fetching = moving_seconds(edge, &slot.block.region, array, edge.read_bytes_per_second);
        broadcast_algorithm(&self.table, children, slot.bytes).is_some_and(|algorithm| {
            let latency = edge.latency_ns * 1e-9;
            let seconds = broadcast_seconds(algorithm, children, slot.bytes, self.bytes_per_second, latency);
            seconds < (children - 1) as f64 * fetching
        })
    }
}

/// The same with broadcasts of what all children need; `None` if nothing is worth one.
fn broadcast_draft(
    facts: &EdgeFacts<'_>,
    sharing: &Sharing<'_>,
    plain: &Draft,
    call_seconds: &dyn Fn(usize) -> f64,
) -> Option<Draft> {
    let made = broadcasts(&plain.children, sharing)?;
    let children = plain.children.len();
    let (before, spared) = (plain.traffic, made.spared);
    let traffic = Traffic {
        bytes_down: before.bytes_down - spared.bytes_down,
        bytes_across: spared.bytes_across,
        transfers: before.transfers - spared.transfers,
        ..before
    };
    let each = spared.bytes_across / ((children - 1) * made.count) as u64;
    let row = sharing.table.pick(Kind::Broadcast, children as u32, each);
    let (algorithm, reason) = (row.way.name(Kind::Broadcast), &row.reason);
    let summary = format!(
        "{} {} from one of {children} children to all, {} down instead of {}, by {algorithm} ({reason})",
        made.count,
        if made.count == 1 { "block" } else { "blocks" },
        readable_bytes(traffic.bytes_down),
        readable_bytes(before.bytes_down)
    );
    let mut passes = plain.passes.clone();
    passes.push(PassReport { pass: "broadcasts", summary });
    let seconds = staged_seconds(facts, &sharing.split.arrays, &made.children, call_seconds, &traffic);
    Some(Draft { children: made.children, balanced: false, seconds, traffic, passes, ..*plain })
}
