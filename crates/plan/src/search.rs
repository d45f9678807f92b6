//! Choosing tunables: how large the blocks of a call are, for one edge.
//!
//! Candidates are fractions of each axis, in several orders of loops. A first look at all of them uses formulas where the
//! task has a notation ([`crate::estimate`]), and only what splitting tells where not (do the blocks of one sub-call fit,
//! how many bytes would move if nothing but the previous sub-call's blocks stayed). Where there are formulas the best are
//! refined; the most promising are then planned in earnest, and the cheapest plan decides.

use crate::cost::{UNEVEN, disk_transfer_seconds, moving_seconds, staging_seconds, stolen_seconds};
use crate::edge::{Draft, EdgeFacts, TaskRef, draft};
use crate::error::PlanError;
use crate::estimate::{Loop, Nest};
use crate::mapping::Mapping;
use crate::parts::turns;
use crate::rules::{Movable, movable, quantum};
use crate::scope::{Scope, Split, split};
use multigrain_machine::{Driver, Machine, readable_bytes};
use multigrain_program::{CallShape, Region, SplitError, Tunable, Tunables};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// More sub-calls than this are considered only when nothing with fewer fits.
const CALLS_FEW: u64 = 2048;
/// The same for each child, where there are many: enough to balance, and to fetch the next one's blocks ahead.
const CALLS_FEW_CHILD: u64 = 16;
/// The same in a shared address space, for each child: more pieces balance no better.
const CALLS_FEW_SHARED: u64 = 32;
/// How many candidates of a class with many sub-calls are looked at before all of them are.
const PROBES: usize = 24;
/// How many candidates are planned in earnest, at most and at least.
const FINALISTS: usize = 128;
const FINALISTS_MIN: usize = 8;
/// Between the two, planning goes on until so many sub-calls have been planned, or so many for each second that the work
/// is guessed to take: those who wait for half a second of work should not wait a tenth of one for its plan.
const CALLS_PLANNED: u64 = 2048;
/// The same where there are several children to place calls on: there the first look knows less of a plan.
const CALLS_PLANNED_PLACED: u64 = 6144;
/// As many sub-calls again are planned with every order and depth, but at least so many candidates.
const THOROUGH_MIN: usize = 4;

/// Candidates whose first plan costs at most so many times the best are planned with every order and depth.
const NEAR: f64 = 1.1;
/// At most [`FINALISTS_MIN`] of them, and so many that cost more and move less.
const LEANEST: usize = 4;

/// How many transfers are in a disk's queue, in the first look.
const USUAL_QUEUE: f64 = 3.0;

/// So many sub-calls a call has at most where more gain little.
pub(crate) const CALLS_LISTED: u64 = 1 << 14;
/// What more must gain: the price of a short list as a multiple of the best one's.
const LONG_LIST_GAIN: f64 = 1.05;
/// How many candidates are refined, how often each of their lengths is changed, and what a round must gain.
const REFINED: usize = 24;
const REFINE_ROUNDS: usize = 8;
const REFINE_GAIN: f64 = 0.9995;
/// Elements of which lengths of blocks are multiples: cache lines of the smallest usual elements.
const FRIENDLY: u64 = 16;
/// The most sub-calls that are planned to choose among candidates.
const CALLS_PLANNED_MAX: f64 = 65536.0;

/// Weight of the bytes moved in the first look, beside the time they are hidden in.
const STREAMING_SHARE: f64 = 0.5;

/// Prices this close may be the other way round in fact: then the plan that moves least is better.
const CLOSE: f64 = 1.02;

/// Prices and bytes this close are equal; then smaller blocks are better, whose transfers overlap more evenly.
const EQUAL: f64 = 1.01;

struct Candidate {
    tunables: Tunables,
    calls: u64,
    footprint: u64,
    reserved: u64,
    /// Bytes of partial results of reductions in the parent memory.
    partials: u64,
    /// Time in seconds, in the first look, and the price.
    guess: f64,
    price: f64,
    /// How the edge's rules, where they are enforced, let the worst of its blocks pass.
    movable: Movable,
}

/// Chooses the tunables of a call at an edge; `known` are some that fit.
pub(crate) fn choose(
    machine: &Machine,
    facts: &EdgeFacts<'_>,
    mapping: &Mapping,
    task: &TaskRef,
    shape: &CallShape,
    depth_max: usize,
    known: Option<&Tunables>,
) -> Result<Tunables, PlanError> {
    let specs = task.tunables(shape);
    let memory = machine.memory(facts.child).name.clone();
    let fixed = fixed_values(mapping, task, &memory, &specs)?;
    let (unit, strict) = (quantum(&facts.edge.rules, &**task), facts.edge.rules.strict);
    let lists: Vec<Vec<u64>> = specs
        .iter()
        .map(|spec| match fixed.iter().find(|(name, _)| *name == spec.name) {
            Some(&(_, value)) => vec![value],
            None if task.reduced_axis() == Some(spec.name) => spans(spec),
            None => values(&Tunable { multiple: spec.multiple * unit, ..*spec }, specs.len()),
        })
        .collect();
    let scope = Scope::of_call(task, shape);
    if let Some(nest) = Nest::of(facts, task, shape).filter(|_| !strict) {
        return by_formula(machine, facts, &nest, &specs, &fixed, &lists, &scope, depth_max, known);
    }
    let mut smallest: Option<Candidate> = None;
    let children = facts.children as u64;
    let few = if facts.stages() { CALLS_FEW.max(CALLS_FEW_CHILD * children) } else { CALLS_FEW_SHARED * children };
    let mut numbered: Vec<(u64, Tunables)> = combinations(&lists)
        .map(|lengths| {
            let tunables: Tunables = specs.iter().map(|spec| spec.name).zip(lengths).collect();
            let pieces = specs.iter().map(|s| s.extent.div_ceil(tunables.get(s.name, s.extent)));
            (pieces.fold(1, |a: u64, b| a.saturating_mul(b)), tunables)
        })
        .collect();
    if let Some(known) = known {
        numbered.push((turns(task, shape, known), known.clone()));
    }
    let fewest = numbered.iter().map(|(calls, _)| *calls).min();
    numbered.retain(|(calls, _)| *calls <= facts.calls_max);
    if let (Some(calls), true) = (fewest, numbered.is_empty()) {
        return Err(too_many(machine, facts, task, calls, !fixed.is_empty()));
    }
    numbered.sort_by_key(|(calls, _)| *calls);
    // Where many calls are needed, each doubling of their number is probed before all of it is looked at; that nothing
    // fits is known only when everything has been looked at.
    let least: &[Movable] = match strict {
        // Where no blocks obey the rules, the plan is made all the same: whoever proves it names what breaks which.
        true => &[Movable::Aligned, Movable::Skewed, Movable::No],
        false => &[Movable::No],
    };
    for (least, probing) in least.iter().flat_map(|&least| [(least, true), (least, false)]) {
        let mut rest = &numbered[..];
        let mut calls_max = few;
        while !rest.is_empty() {
            let (class, after) = rest.split_at(rest.partition_point(|(calls, _)| *calls <= calls_max));
            let probe = probing && calls_max > few && class.len() > PROBES;
            let step = if probe { class.len().div_ceil(PROBES) } else { 1 };
            (rest, calls_max) = (after, calls_max.saturating_mul(2));
            let mut fitting: Vec<Candidate> = Vec::new();
            for first in 0..step {
                if first > 0 && fitting.is_empty() {
                    break;
                }
                let looked_at: Vec<&(u64, Tunables)> = class.iter().skip(first).step_by(step).collect();
                let look = |(calls, tunables): &&(u64, Tunables)| look(facts, &scope, tunables.clone(), *calls);
                for candidate in in_parallel(&looked_at, look) {
                    let candidate = candidate?;
                    let fits = candidate.footprint + candidate.reserved <= facts.total_bytes || !facts.stages();
                    if fits && candidate.partials <= facts.own_partials_bytes_max {
                        if candidate.movable >= least {
                            fitting.push(candidate);
                        }
                    } else if smallest
                        .as_ref()
                        .is_none_or(|s| candidate.footprint + candidate.reserved < s.footprint + s.reserved)
                    {
                        smallest = Some(candidate);
                    }
                }
            }
            fitting.sort_by(|a, b| a.price.total_cmp(&b.price).then(a.calls.cmp(&b.calls)));
            if let Some(best) = finals(facts, &scope, fitting, depth_max) {
                return Ok(best);
            }
        }
        if !strict && numbered.last().is_none_or(|(calls, _)| *calls <= few) {
            break;
        }
    }
    let Some(smallest) = smallest else {
        return Err(PlanError::Empty);
    };
    Err(refusal(machine, facts, task, shape, depth_max, &smallest, !fixed.is_empty()))
}

/// The refusal of a split into more calls than a plan has room for.
fn too_many(machine: &Machine, facts: &EdgeFacts<'_>, task: &TaskRef, calls: u64, is_mapped: bool) -> PlanError {
    PlanError::TooManyCalls {
        task: task.name().to_owned(),
        memory: machine.memory(facts.child).name.clone(),
        tile: if is_mapped { "by the mapping's tile" } else { "by the largest tile that fits" },
        calls,
        most: facts.calls_max,
    }
}

/// Why not even this candidate, which needs least, can be planned.
#[allow(clippy::too_many_arguments)]
fn refusal(
    machine: &Machine,
    facts: &EdgeFacts<'_>,
    task: &TaskRef,
    shape: &CallShape,
    depth_max: usize,
    smallest: &Candidate,
    is_mapped: bool,
) -> PlanError {
    let memory = machine.memory(facts.child).name.clone();
    let tile = describe(&smallest.tunables);
    if !is_mapped && smallest.partials > facts.own_partials_bytes_max {
        // Blocks fit, but not what the reduction keeps beside the call's arguments.
        let child = machine.memory(facts.child);
        let parent = child.parent.map_or(child, |id| machine.memory(id));
        let (offered, total) = (facts.own_partials_bytes_max, parent.capacity_bytes);
        return PlanError::DoesNotFit {
            memory: parent.name.clone(),
            task: task.name().to_owned(),
            capacity: readable_bytes(offered),
            total: readable_bytes(total),
            reserved: readable_bytes(total.saturating_sub(offered)),
            tile,
            need: readable_bytes(smallest.partials),
            enough: enough(total.saturating_add((smallest.partials - offered).saturating_mul(4))),
        };
    }
    let capacity = facts.total_bytes.saturating_sub(smallest.reserved);
    if !is_mapped {
        // Room for rounding of addresses: one alignment for each argument.
        let slack = facts.align_bytes() * shape.shapes.len() as u64;
        return PlanError::DoesNotFit {
            memory,
            task: task.name().to_owned(),
            capacity: readable_bytes(capacity),
            total: readable_bytes(facts.total_bytes),
            reserved: readable_bytes(smallest.reserved.min(facts.total_bytes)),
            tile,
            need: readable_bytes(smallest.footprint),
            enough: enough(smallest.footprint.saturating_add(smallest.reserved).saturating_add(slack)),
        };
    }
    match choose(machine, facts, &Mapping::default(), task, shape, depth_max, None) {
        Ok(largest) => PlanError::MappingDoesNotFit {
            memory,
            task: task.name().to_owned(),
            capacity: readable_bytes(capacity),
            tile,
            need: readable_bytes(smallest.footprint),
            largest: describe(&largest),
        },
        Err(error) => error,
    }
}

/// Bytes that are enough, as a number to be given: buffers grow with the memory, so an eighth more than is needed now, in
/// whole units.
fn enough(bytes: u64) -> String {
    let bytes = bytes.saturating_add(bytes / 8);
    let unit = if bytes >= 64 << 20 { 1 << 20 } else { 1 << 10 };
    readable_bytes(bytes.checked_next_multiple_of(unit).unwrap_or(bytes))
}

/// Loops and what the formula says of them.
#[derive(Clone)]
pub(crate) struct Looked {
    loops: SmallVec<[Loop; 6]>,
    pub(crate) price: f64,
    calls: u64,
    calls_max: u64,
    fits: bool,
}

impl Looked {
    pub(crate) fn at(nest: &Nest<'_>, loops: SmallVec<[Loop; 6]>) -> Looked {
        let found = nest.estimate(&loops);
        let facts = nest.facts();
        let blocks = !facts.stages() || found.footprint.saturating_add(found.reserved) <= facts.total_bytes;
        let fits = blocks && found.partials <= facts.own_partials_bytes_max;
        let calls_max = if nest.may_be_long() { u64::MAX } else { facts.calls_max };
        Looked { loops, price: found.price, calls: found.calls, calls_max, fits }
    }

    pub(crate) fn is_possible(&self) -> bool {
        self.fits && self.calls <= self.calls_max
    }
}

/// Better loops of the same order: one length after the other is changed as long as that helps.
pub(crate) fn refine(nest: &Nest<'_>, specs: &[Tunable], start: &Looked, calls_max: Option<u64>) -> Looked {
    let mut best = start.clone();
    for _ in 0..REFINE_ROUNDS {
        let before = best.price;
        for at in 0..best.loops.len() {
            let (axis, length) = best.loops[at];
            let (extent, every) = (specs[axis].extent, specs[axis].multiple.max(1));
            let inner = best.loops[at + 1..].iter().find(|(a, _)| *a == axis).map(|&(_, inner)| inner);
            let outer = best.loops[..at].iter().rfind(|(a, _)| *a == axis).map_or(extent, |&(_, outer)| outer);
            let unit = inner.unwrap_or(every);
            let count = outer.div_ceil(length);
            let counts = (count.saturating_sub(3)..=count + 3).chain([count / 2, count * 2]);
            for count in counts.filter(|&count| count > 0) {
                // Blocks of one size, that begin where cache lines do unless they are short.
                let even = outer.div_ceil(count);
                let friendly = if inner.is_none() && even >= 8 * FRIENDLY { FRIENDLY } else { 1 };
                let even = even.next_multiple_of(friendly).next_multiple_of(unit).min(outer);
                let mut loops = best.loops.clone();
                loops[at].1 = even;
                let reduced = nest.is_reduced(axis);
                if even == length || reduced || (inner.is_none() && outer < extent && !outer.is_multiple_of(even)) {
                    continue;
                }
                let found = Looked::at(nest, loops);
                if found.is_possible() && found.price < best.price && calls_max.is_none_or(|most| found.calls <= most) {
                    best = found;
                }
            }
        }
        if best.price >= before * REFINE_GAIN {
            break;
        }
    }
    best
}

/// The choice among nests of loops whose cost is a formula: all of them are looked at, and the most promising planned.
#[allow(clippy::too_many_arguments)]
fn by_formula(
    machine: &Machine,
    facts: &EdgeFacts<'_>,
    nest: &Nest<'_>,
    specs: &[Tunable],
    fixed: &[(&'static str, u64)],
    lists: &[Vec<u64>],
    scope: &Scope,
    depth_max: usize,
    known: Option<&Tunables>,
) -> Result<Tunables, PlanError> {
    let (task, shape) = (&scope.tasks[0], nest.call());
    let named = |loops: &[Loop]| loops.iter().map(|&(axis, length)| (specs[axis].name, length)).collect::<Tunables>();
    let candidate = |loops: &[Loop]| {
        let found = nest.estimate(loops);
        Candidate {
            tunables: named(loops),
            calls: found.calls,
            footprint: found.footprint,
            reserved: found.reserved,
            partials: found.partials,
            guess: found.seconds,
            price: found.price,
            movable: Movable::Aligned,
        }
    };
    let fits = |c: &Candidate| {
        (c.footprint.saturating_add(c.reserved) <= facts.total_bytes || !facts.stages())
            && c.partials <= facts.own_partials_bytes_max
    };
    // The smallest tile decides whether anything fits: blocks grow with each of their lengths.
    let least: Vec<Loop> = lists.iter().map(|list| list.last().copied().unwrap_or(1)).enumerate().collect();
    // Along the reduced axis it is the other way round: more contributions are more partial results.
    let mut leanest = least.clone();
    if let Some(reduced) = task.reduced_axis().and_then(|name| specs.iter().position(|spec| spec.name == name)) {
        leanest[reduced].1 = lists[reduced].first().copied().unwrap_or(1);
    }
    let refuse =
        |smallest: &Candidate| Err(refusal(machine, facts, task, shape, depth_max, smallest, !fixed.is_empty()));
    let smallest = candidate(&least);
    if facts.stages() && smallest.footprint.saturating_add(smallest.reserved) > facts.total_bytes {
        return refuse(&smallest);
    }
    let combinations: Vec<Vec<u64>> = combinations(lists).collect();
    let looked = in_parallel(&combinations, |lengths| {
        let (footprint, reserved) = nest.least(lengths);
        if facts.stages() && footprint.saturating_add(reserved) > facts.total_bytes {
            return Vec::new();
        }
        let room = facts.total_bytes.saturating_sub(reserved);
        let nests = nest.orders(lengths, room).into_iter();
        let mut found: Vec<Looked> = nests.map(|loops| Looked::at(nest, loops)).filter(Looked::is_possible).collect();
        found.sort_by(|a, b| a.price.total_cmp(&b.price));
        found.truncate(2);
        found
    });
    let mut looked: Vec<Looked> = looked.into_iter().flatten().collect();
    let number = |name: &str| specs.iter().position(|spec| spec.name == name);
    let known = known.map(|known| known.iter().filter_map(|(name, length)| Some((number(name)?, length))).collect());
    looked.extend(known.map(|loops| Looked::at(nest, loops)).filter(Looked::is_possible));
    if looked.is_empty() {
        let fit = combinations.iter().filter(|lengths| {
            let (footprint, reserved) = nest.least(lengths);
            !facts.stages() || footprint.saturating_add(reserved) <= facts.total_bytes
        });
        let pieces = |lengths: &Vec<u64>| {
            let counts = specs.iter().zip(lengths).map(|(spec, &length)| spec.extent.div_ceil(length.max(1)));
            counts.fold(1, u64::saturating_mul)
        };
        if let Some(calls) = fit.map(pieces).min().filter(|&calls| calls > facts.calls_max) {
            return Err(too_many(machine, facts, task, calls, !fixed.is_empty()));
        }
    }
    let by_price = |a: &Looked, b: &Looked| a.price.total_cmp(&b.price).then(a.calls.cmp(&b.calls));
    looked.sort_by(by_price);
    // Long lists of calls only where there is no good short one.
    let listed = facts.listed_max.min(CALLS_LISTED);
    let few = looked.iter().position(|found| found.calls <= listed).filter(|_| facts.stages());
    let short = few.is_some_and(|at| looked[at].price <= looked[0].price * LONG_LIST_GAIN);
    let long = looked.iter().find(|found| found.calls > listed).filter(|_| nest.may_be_long()).cloned();
    looked.retain(|found| !short || found.calls <= listed);
    looked.truncate(2 * FINALISTS);
    if fixed.is_empty() && facts.stages() {
        let promising = &looked[..looked.len().min(REFINED)];
        let mut refined = in_parallel(promising, |found| refine(nest, specs, found, short.then_some(listed)));
        looked.append(&mut refined);
        looked.sort_by(by_price);
        looked.dedup_by(|a, b| a.loops == b.loops);
    }
    // What would be a long list is not planned as one: the formula decides, and so many calls of it are planned as parts.
    if nest.may_be_long() {
        if let Some(best) = looked.first().filter(|best| best.calls > listed) {
            return Ok(named(&best.loops));
        }
        looked.retain(|found| found.calls <= listed);
    }
    let fitting: Vec<Candidate> = looked.iter().map(|found| candidate(&found.loops)).filter(fits).collect();
    match (finals(facts, scope, fitting, depth_max), long) {
        (Some(best), _) => Ok(best),
        (None, Some(long)) => Ok(named(&long.loops)),
        // Blocks of the smallest tile fit beside each other, but not as their addresses must lie, or not with what a
        // reduction keeps.
        (None, None) => refuse(&candidate(&leanest)),
    }
}

/// Tunables as text: `m = 4096, n = 4096, k = 512`.
pub(crate) fn describe(tunables: &Tunables) -> String {
    let parts: Vec<String> = tunables.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if parts.is_empty() { "the whole call".to_owned() } else { parts.join(", ") }
}

fn fixed_values(
    mapping: &Mapping,
    task: &TaskRef,
    memory: &str,
    specs: &[Tunable],
) -> Result<Vec<(&'static str, u64)>, PlanError> {
    let mut fixed = Vec::new();
    for (name, value) in mapping.get(task.name(), memory) {
        let refuse = |why: String| PlanError::Mapping {
            task: task.name().to_owned(),
            memory: memory.to_owned(),
            tunable: name.to_owned(),
            value,
            why,
        };
        let Some(spec) = specs.iter().find(|s| s.name == name) else {
            let names: Vec<&str> = specs.iter().map(|s| s.name).collect();
            return Err(refuse(format!("the task has no such tunable, only {}", names.join(", "))));
        };
        if value == 0 {
            return Err(refuse("a block has at least one element".into()));
        }
        if !task.allows(spec, value) {
            let multiple = spec.multiple;
            return Err(refuse(match task.reduced_axis() == Some(spec.name) {
                true => format!("it must be {multiple} times a power of two, a node of the tree of the reduction"),
                false => format!("it must be a multiple of {multiple}, where partial sums end"),
            }));
        }
        fixed.push((spec.name, value.min(spec.extent)));
    }
    Ok(fixed)
}

/// Fractions of an axis, rounded up to friendly numbers.
fn values(spec: &Tunable, axes: usize) -> Vec<u64> {
    let mut divisors: Vec<u64> = match axes {
        0 | 1 => (1..=16).chain([20, 24, 28, 32, 40, 48, 56]).collect(),
        2 => (1..=8).chain([10, 12, 16, 20, 24, 28, 32, 40, 48]).collect(),
        _ => vec![1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48],
    };
    let mut d = 64;
    while d <= 2 * spec.extent {
        divisors.push(d);
        d *= 2;
    }
    let mut values: Vec<u64> = divisors
        .into_iter()
        .map(|d| {
            let raw = spec.extent.div_ceil(d);
            // Steps of an eighth or less, powers of two: blocks begin where pages and vectors do.
            let step = if raw >= 64 { (raw / 8).next_power_of_two().min(1024) } else { 1 };
            let step = if spec.extent.div_ceil(raw.next_multiple_of(step)) < d { 1 } else { step };
            raw.next_multiple_of(step).next_multiple_of(spec.multiple).min(spec.extent)
        })
        .collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    values.dedup();
    values
}

/// Powers of two of spans of the reduced axis, and the whole axis.
fn spans(spec: &Tunable) -> Vec<u64> {
    let span = spec.multiple.max(1);
    let mut values: Vec<u64> =
        std::iter::successors(Some(span), |v| v.checked_mul(2)).take_while(|&v| v < spec.extent).collect();
    values.push(spec.extent);
    values.reverse();
    values
}

/// One value of each list, in all ways.
fn combinations(lists: &[Vec<u64>]) -> impl Iterator<Item = Vec<u64>> + '_ {
    let total: usize = lists.iter().map(Vec::len).product();
    (0..total).map(move |mut index| {
        let pick = |list: &Vec<u64>| {
            let value = list[index % list.len()];
            index /= list.len();
            value
        };
        lists.iter().map(pick).collect()
    })
}

fn split_with(scope: &Scope, tunables: &Tunables) -> Result<Split, SplitError> {
    split(scope, |_, _| Ok(tunables.clone()))
}

/// What splitting alone tells of a candidate.
fn look(facts: &EdgeFacts<'_>, scope: &Scope, tunables: Tunables, calls: u64) -> Result<Candidate, SplitError> {
    let split = split_with(scope, &tunables)?;
    let align = facts.align_bytes();
    let (mut footprint, mut scratch) = (0u64, facts.scratch_least_bytes);
    for (task, shape) in &split.classes {
        let task = &split.tasks[*task as usize];
        let bytes: u64 = task
            .params()
            .iter()
            .zip(&shape.shapes)
            .map(|(p, s)| (s.elements() * p.element.size_bytes()).next_multiple_of(align))
            .sum();
        footprint = footprint.max(bytes);
        scratch = scratch.max(facts.scratch_bytes(&**task, shape));
    }
    let reserved = facts.fixed_bytes + scratch + facts.partials_bytes;
    let class_seconds: Vec<f64> =
        split.classes.iter().map(|(t, s)| facts.run_seconds(&*split.tasks[*t as usize], s)).collect();
    let busy: f64 = split.class_of.iter().map(|&c| class_seconds[c as usize]).sum::<f64>() / facts.children as f64;
    let uneven = unevenness(&split, facts.children, facts.stages());
    let busy = busy * uneven;
    let longest = class_seconds.iter().copied().fold(0.0, f64::max);
    let guess = if facts.stages() {
        let (mut moving, mut streaming, mut first, mut stolen) = (0.0f64, 0.0, 0.0, 0.0);
        // What a call other than the first brings in: it must fit beside the blocks in use to be fetched ahead.
        let mut stream = footprint;
        for (i, call) in split.calls.iter().enumerate() {
            let params = split.tasks[call.task as usize].params();
            let mut loaded = 0u64;
            for (j, arg) in call.args.iter().enumerate() {
                let stays = i > 0 && split.calls[i - 1].args.contains(arg);
                if stays {
                    continue;
                }
                let array = &split.arrays[arg.array as usize];
                let bytes = (arg.region.elements() * params[j].element.size_bytes()) as f64;
                let rate = facts.edge.read_bytes_per_second;
                let seconds = moving_seconds(facts.edge.driver, &arg.region, array, rate);
                streaming += bytes / rate;
                stolen += stolen_seconds(facts.edge.driver, &arg.region, array, facts.workers);
                moving += seconds + facts.edge.latency_ns * 1e-9;
                if facts.edge.driver == Driver::Disk {
                    moving += disk_transfer_seconds(USUAL_QUEUE);
                }
                if i == 0 {
                    first += seconds;
                }
                loaded += bytes as u64;
            }
            if i > 0 {
                stream = stream.min(loaded.next_multiple_of(align));
            }
        }
        let overlaps = facts.edge.driver != Driver::Local && footprint + stream + reserved <= facts.total_bytes;
        let busy = busy + stolen;
        if facts.edge.driver == Driver::Disk {
            let staging = footprint + if overlaps { stream } else { 0 };
            moving += staging_seconds((streaming * facts.edge.read_bytes_per_second) as u64, staging);
        }
        // A child that has nothing to do leaves its share of the edge unused.
        moving *= uneven;
        if overlaps { busy.max(moving) + STREAMING_SHARE * streaming + first } else { busy + moving }
    } else {
        let workers_idle = if split.calls.len() < facts.children { longest } else { 0.0 };
        let forking = if split.calls.len() > 1 { UNEVEN * longest + facts.fork_seconds() } else { 0.0 };
        busy + forking + workers_idle
    };
    let rules = &facts.edge.rules;
    let args = split.calls.iter().flat_map(|call| &call.args).filter(|_| rules.strict);
    let movable = args.map(|arg| movable(rules, &arg.region, &split.arrays[arg.array as usize]));
    let movable = movable.min().unwrap_or(Movable::Aligned);
    let partials = split.temporary_bytes(scope);
    Ok(Candidate { tunables, calls, footprint, reserved, partials, guess, price: guess, movable })
}

/// How many times longer the busiest child works than if all children had the same to do. Calls that write one block stay
/// with one child; with `whole`, children take so many of these chains each, rounded up, else idle children alone count.
fn unevenness(split: &Split, children: usize, whole: bool) -> f64 {
    if children == 1 {
        return 1.0;
    }
    let mut written: FxHashSet<(u32, &Region)> = FxHashSet::default();
    for call in &split.calls {
        let params = split.tasks[call.task as usize].params();
        if let Some(argument) = params.iter().position(|param| param.access.writes()) {
            written.insert((call.args[argument].array, &call.args[argument].region));
        }
    }
    unevenness_of(written.len().max(1) as f64, children, whole)
}

/// The same for a number of chains.
pub(crate) fn unevenness_of(chains: f64, children: usize, whole: bool) -> f64 {
    let children = children as f64;
    if children <= 1.0 {
        return 1.0;
    }
    let most = if whole || chains < children { (chains / children).ceil() } else { chains / children };
    most * children / chains
}

fn finals(facts: &EdgeFacts<'_>, scope: &Scope, mut fitting: Vec<Candidate>, depth_max: usize) -> Option<Tunables> {
    let plan = |candidate: &Candidate, thorough: bool| -> Option<(f64, u64)> {
        let split = split_with(scope, &candidate.tunables).ok()?;
        let draft: Draft = draft(facts, &split, depth_max, thorough, &[]).ok()?;
        Some((draft.price(), draft.bytes()))
    };
    let seconds = fitting.first().map_or(0.0, |best| best.guess);
    let calls_planned = if facts.children > 1 { CALLS_PLANNED_PLACED } else { CALLS_PLANNED };
    let calls_planned = calls_planned.max((calls_planned as f64 * seconds).min(CALLS_PLANNED_MAX) as u64);
    let mut calls = 0;
    let few = fitting.iter().enumerate().take_while(|(number, candidate)| {
        let goes_on = *number < FINALISTS_MIN || (*number < FINALISTS && calls < calls_planned);
        calls += candidate.calls;
        goes_on
    });
    let few = few.count();
    let found = in_parallel(&fitting[..few], |candidate| plan(candidate, false));
    let mut rest = fitting.split_off(few).into_iter();
    let mut planned: Vec<((f64, u64), Candidate)> =
        found.into_iter().zip(fitting).filter_map(|(found, candidate)| Some((found?, candidate))).collect();
    if planned.is_empty() {
        // The next that can be planned at all.
        planned.extend(rest.find_map(|candidate| Some((plan(&candidate, false)?, candidate))));
    }
    planned.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
    if facts.stages() {
        let near = planned.first()?.0.0 * NEAR;
        planned.retain(|(found, _)| found.0 <= near);
        // The cheapest, and of the others those that move least.
        let mut others = planned.split_off(planned.len().min(FINALISTS_MIN));
        others.sort_by_key(|((_, bytes), _)| *bytes);
        planned.extend(others.into_iter().take(LEANEST));
        // Every order and depth of some hundred calls each is soon more work than what is planned.
        let mut calls = 0;
        let affordable = planned.iter().take_while(|(_, candidate)| {
            calls += candidate.calls;
            calls <= calls_planned
        });
        let affordable = affordable.count().max(THOROUGH_MIN);
        planned.truncate(affordable);
        let thorough = in_parallel(&planned, |(_, candidate)| plan(candidate, true));
        for ((found, _), thorough) in planned.iter_mut().zip(thorough) {
            *found = thorough.unwrap_or(*found);
        }
    }
    let lowest = planned.iter().map(|(found, _)| found.0).min_by(f64::total_cmp)?;
    let close = planned.iter().map(|(found, _)| *found).filter(|found| found.0 <= lowest * CLOSE);
    let least = close.clone().map(|found| found.1).min()?;
    // The cheapest of those that move about as little as any.
    let leanest = close.filter(|found| found.1 as f64 <= least as f64 * EQUAL);
    let (price, bytes) = leanest.min_by(|a, b| a.0.total_cmp(&b.0))?;
    planned.retain(|(found, _)| found.0 <= price * EQUAL && found.1 as f64 <= bytes as f64 * EQUAL);
    if facts.stages() {
        planned.into_iter().min_by_key(|(_, c)| c.footprint).map(|(_, c)| c.tunables)
    } else {
        planned.into_iter().min_by(|a, b| a.0.0.total_cmp(&b.0.0)).map(|(_, c)| c.tunables)
    }
}

/// Applies a function to every item on all processors; the results are in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], apply: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(items.len() / ITEMS_EACH_MIN);
    if workers < 2 {
        return items.iter().map(apply).collect();
    }
    // Taken in turns: neighbours cost about the same.
    let share = |worker: usize| items.iter().skip(worker).step_by(workers).map(&apply).collect::<Vec<R>>();
    let mut shares: Vec<std::vec::IntoIter<R>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|worker| scope.spawn(move || share(worker))).collect();
        let mine = share(0);
        let joined =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(mine).chain(joined).map(Vec::into_iter).collect()
    });
    (0..items.len()).filter_map(|at| shares[at % workers].next()).collect()
}

/// Fewer items than this are not worth a thread.
const ITEMS_EACH_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_respect_multiples_and_extents() {
        for extent in [1, 2, 3, 7, 255, 256, 257, 1000, 16384, 33_554_432] {
            for multiple in [1, 4, 256] {
                let values = values(&Tunable { name: "k", extent, multiple }, 3);
                assert_eq!(values[0], extent, "the whole axis is always a candidate");
                assert!(values.iter().all(|v| *v == extent || v.is_multiple_of(multiple)), "{values:?}");
                assert!(values.last().is_some_and(|&v| v <= multiple.max(1)) || extent <= multiple, "{values:?}");
            }
        }
    }
}
