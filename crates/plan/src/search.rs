//! Choosing tunables: how large the blocks of a call are, for one edge.
//!
//! Candidates are fractions of each axis, in several orders of loops. A first look at all of them uses formulas where the
//! task has a notation ([`crate::formula`]), and only what splitting tells where not (do the blocks of one sub-call fit,
//! how many bytes would move if nothing but the previous sub-call's blocks stayed). Where there are formulas the best are
//! refined; the most promising are then planned in earnest, and the cheapest plan decides.

use crate::candidates::{
    Candidate, Found, as_counted, as_planned, at_once, calls_planned, combinations, finals, in_parallel, spans,
    split_with, thinned, values,
};
use crate::cost::{UNEVEN, moving_seconds, staging_seconds, stolen_seconds, transfer_seconds, unevenness};
use crate::error::{Enough, PlanError};
use crate::estimate::Nest;
use crate::facts::{EdgeFacts, TaskRef};
use crate::formula::{Unfit, by_formula};
use crate::loops::turns;
use crate::mapping::Mapping;
use crate::rules::{Movable, movable, multiple};
use crate::scope::{Scope, Split};
use multigrain_machine::{Machine, readable_bytes};
use multigrain_program::{CallShape, Region, SplitError, Tunable, Tunables};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// More sub-calls than this are considered only when nothing with fewer fits.
const CALLS_FEW: u64 = 2048;
/// The same for each child, where there are many: enough to balance, and to fetch the next one's blocks ahead.
const CALLS_FEW_CHILD: u64 = 16;
/// The same in a shared address space, for each child: more pieces balance no better.
const CALLS_FEW_SHARED: u64 = 32;
/// More sub-calls than this are not listed where the call can be taken apart into its stages.
const CALLS_STAGED_MAX: u64 = 1 << 16;
/// How many candidates of a class with many sub-calls are looked at before all of them are.
const PROBES: usize = 24;
/// So many times as many sub-calls as are planned are looked at to choose them, but of each class as many as are probed. To look at
/// one takes about as long as to plan one, and counts as much.
const LOOKED_FOR_EACH: f64 = 4.0;
/// How many transfers are in a disk's queue, in the first look.
const USUAL_QUEUE: f64 = 3.0;

/// Weight of the bytes moved in the first look, beside the time they are hidden in.
const STREAMING_SHARE: f64 = 0.5;

/// Chooses the tunables of a call at an edge; `known` are some that fit.
pub(crate) fn choose(
    machine: &Machine,
    facts: &EdgeFacts<'_>,
    mapping: &Mapping,
    task: &TaskRef,
    shape: &CallShape,
    depth_max: usize,
    known: Option<&Tunables>,
) -> Result<Found, PlanError> {
    let specs = task.tunables(shape);
    let memory = machine.memory(facts.child).name.clone();
    let fixed = fixed_values(mapping, task, &memory, &specs)?;
    let nest = Nest::of(facts, task, shape);
    let every = |number: usize, spec: &Tunable| match &nest {
        Some(nest) => nest.every[number],
        None => multiple(facts.row_unit_bytes(), &**task, spec.multiple),
    };
    let lists = specs
        .iter()
        .enumerate()
        .map(|(number, spec)| match fixed.iter().find(|(name, _)| *name == spec.name) {
            Some(&(_, value)) => vec![value],
            None if task.reduced_axis() == Some(spec.name) => spans(spec),
            None => values(&Tunable { multiple: every(number, spec), ..*spec }, specs.len()),
        })
        .collect();
    let lists = thinned(lists);
    let scope = Scope::of_call(task, shape);
    if let Some(nest) = &nest {
        let is_mapped = !fixed.is_empty();
        return by_formula(nest, &scope, &lists, is_mapped, depth_max, known).map_err(|unfit| match unfit {
            Unfit::TooMany(calls) => too_many(machine, facts, task, calls, is_mapped),
            Unfit::Unmovable(largest) => PlanError::Unmovable {
                task: task.name().to_owned(),
                memory: machine.memory(facts.child).name.clone(),
                tile: describe(&largest.tunables),
                alignment_bytes: facts.edge.rules.alignment_bytes,
            },
            Unfit::Smallest(smallest) => refusal(machine, facts, task, shape, depth_max, &smallest, is_mapped),
        });
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
    // A split may make several lists of what its axes say is one, as the shortest list of several calls tells. Where blocks
    // are copied the whole must be short; in a shared memory each list is balanced by itself.
    let several = |numbered: &&mut (u64, Tunables)| numbered.0 > 1;
    if let Some((pieces, tunables)) = numbered.iter_mut().filter(several).min_by_key(|(pieces, _)| *pieces)
        && facts.stages()
    {
        let lists = (task.split(shape, tunables)?.len() as u64 / *pieces).max(1);
        numbered.iter_mut().filter(several).for_each(|(calls, _)| *calls = calls.saturating_mul(lists));
    }
    let stages = task.stages(shape)?.len() as u64;
    if task.notation().is_none() {
        // What is whole in one list is a list for each of its stages when it is not.
        let lists = as_split(task, shape, &mut numbered)?.max(stages);
        // To look at a list takes as much room as a plan of it: what no plan has room for, only where nothing is shorter.
        let fewest = numbered.first().map_or(0, |(calls, _)| *calls);
        if !facts.stages() {
            let most = facts.drafts_calls_max.max(fewest.saturating_mul(lists));
            numbered.retain(|(calls, _)| calls.saturating_mul(lists) <= most);
        }
    }
    let fewest = numbered.iter().map(|(calls, _)| *calls).min();
    // What has stages is rather taken apart than a very long list.
    let calls_max = if stages == 0 { facts.calls_max } else { facts.calls_max.min(CALLS_STAGED_MAX) };
    numbered.retain(|(calls, _)| *calls <= calls_max);
    if let (Some(calls), true) = (fewest, numbered.is_empty()) {
        return Err(too_many(machine, facts, task, calls, !fixed.is_empty()));
    }
    // Blocks grow with each of their lengths: where none of the smallest fits, nothing does.
    if facts.stages() {
        let least = smallest_of(&numbered);
        let bytes = in_parallel(usize::MAX, &least, |(_, tunables)| {
            let split = as_counted(facts, &scope, split_with(&scope, tunables)?)?;
            let (footprint, reserved) = footprint(facts, &split);
            Ok::<_, SplitError>(footprint.saturating_add(reserved))
        });
        let bytes = bytes.into_iter().collect::<Result<Vec<u64>, _>>()?;
        if let Some((needed, (calls, tunables))) = bytes.into_iter().zip(&least).min_by_key(|(needed, _)| *needed)
            && needed > facts.total_bytes
        {
            let smallest = look(facts, &scope, tunables.clone(), *calls)?;
            return Err(refusal(machine, facts, task, shape, depth_max, &smallest, !fixed.is_empty()));
        }
    }
    numbered.sort_by_key(|(calls, _)| *calls);
    // Where many calls are needed, each doubling of their number is probed before all of it is looked at; that nothing
    // fits is known only when everything has been looked at.
    let strict = facts.edge.rules.strict;
    let least: &[Movable] = match strict {
        // Where no blocks obey the rules, the plan is made all the same: whoever proves it names what breaks which.
        true => &[Movable::Aligned, Movable::Skewed, Movable::No],
        false => &[Movable::No],
    };
    let seconds = facts.run_seconds(&**task, shape) / children as f64;
    let (looked_max, mut looked) = (calls_planned(facts, LOOKED_FOR_EACH * seconds.max(1.0)).max(1), 0_u64);
    // What was looked at once is known when it is looked for again, among those that obey fewer rules.
    let mut found: Vec<Option<Candidate>> = numbered.iter().map(|_| None).collect();
    for (least, probing) in least.iter().flat_map(|&least| [(least, true), (least, false)]) {
        let mut from = 0;
        let mut calls_max = few;
        while from < numbered.len() {
            let class = from..numbered.partition_point(|(calls, _)| *calls <= calls_max).max(from);
            let is_long = calls_max > few;
            (from, calls_max) = (class.end, calls_max.saturating_mul(2));
            let in_all = numbered[class.clone()].iter().fold(0, |sum: u64, (calls, _)| sum.saturating_add(*calls));
            let probes = class.len().div_ceil(PROBES).max(1);
            let affordable = (in_all.div_ceil(looked_max) as usize).clamp(1, probes);
            // Every so many of them: of long lists more where some fit, of others where none does.
            let (every, then) = match (probing, is_long) {
                (true, true) => (probes, affordable),
                (true, false) => (affordable, 1),
                (false, _) => (1, 1),
            };
            let mut fitting: Vec<Candidate> = Vec::new();
            for (round, every) in [every, then].into_iter().enumerate() {
                if round > 0 && fitting.is_empty() == is_long {
                    break;
                }
                let unknown: Vec<usize> = class.clone().step_by(every).filter(|&at| found[at].is_none()).collect();
                let look = |&at: &usize| look(facts, &scope, numbered[at].1.clone(), numbered[at].0);
                let longest = unknown.iter().map(|&at| numbered[at].0).max().unwrap_or(1);
                looked = unknown.iter().fold(looked, |sum, &at| sum.saturating_add(numbered[at].0));
                // Where blocks are copied, what was counted is all of a list.
                let workers = if facts.stages() { usize::MAX } else { at_once(facts, longest) };
                for (at, candidate) in unknown.iter().zip(in_parallel(workers, &unknown, look)) {
                    found[*at] = Some(candidate?);
                }
                let known = || class.clone().filter_map(|at| found[at].as_ref());
                let fits = |c: &&Candidate| facts.fits(c.footprint, c.reserved, c.partials);
                fitting = known().filter(fits).filter(|candidate| candidate.movable >= least).cloned().collect();
                let others = smallest.as_ref().into_iter().chain(known().filter(|candidate| !fits(candidate)));
                smallest = others.min_by_key(|c| c.footprint.saturating_add(c.reserved)).cloned();
            }
            fitting.sort_by(|a, b| a.price.total_cmp(&b.price).then(a.calls.cmp(&b.calls)));
            if let Some(best) = finals(facts, &scope, fitting, depth_max) {
                return Ok(Found { planned: best.planned.saturating_add(as_planned(facts, looked)), ..best });
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

/// Axes and blocks whose lengths differ by this part of the longer one at most are alike.
const ALIKE: u64 = 8;

/// For a call of a task whose split is free: as many pieces along each axis as another call has that is almost as large, where
/// that fits. So of a list of which no two calls have one shape, as of sequences, one is searched for and not each.
pub(crate) fn like(
    facts: &EdgeFacts<'_>,
    task: &TaskRef,
    shape: &CallShape,
    depth_max: usize,
    (other, chosen): &(CallShape, Tunables),
) -> Option<Found> {
    let near = |(a, b): (u64, u64)| a.abs_diff(b) <= a.max(b) / ALIKE;
    let mut elements = shape.shapes.iter().zip(&other.shapes).map(|(a, b)| (a.elements(), b.elements()));
    let (specs, others) = (task.tunables(shape), task.tunables(other));
    let extents = || specs.iter().zip(&others).map(|(a, b)| (a.extent, b.extent));
    if specs.len() != others.len() || !elements.all(near) || !extents().all(near) {
        return None;
    }
    let length = |(spec, other): (&Tunable, &Tunable)| {
        let length = chosen.get(other.name, other.extent);
        let as_many = spec.extent.div_ceil(other.extent.div_ceil(length)).next_multiple_of(spec.multiple);
        (spec.name, if task.reduced_axis() == Some(spec.name) { length } else { as_many.min(spec.extent) })
    };
    let tunables: Tunables = specs.iter().zip(&others).map(length).collect();
    let scope = Scope::of_call(task, shape);
    let calls = split_with(&scope, &tunables).ok()?.calls.len() as u64;
    let candidate = look(facts, &scope, tunables, calls).ok().filter(|_| calls <= facts.calls_max)?;
    let fits = facts.fits(candidate.footprint, candidate.reserved, candidate.partials);
    fits.then(|| finals(facts, &scope, vec![candidate], depth_max)).flatten()
}

/// Tunables whose blocks are so many times as many as those of others make more calls, unless the split ignores them.
const MUCH_FINER: u64 = 64;

/// Corrects, of a task whose split is free, how many calls its tunables were taken to stand for: the fewest are counted, and
/// where much finer blocks make no more calls than the coarsest, which are several, the task does not split by its tunables,
/// so that there is one split to be looked at. Gives how many lists there are of what axes say is one.
fn as_split(task: &TaskRef, shape: &CallShape, numbered: &mut Vec<(u64, Tunables)>) -> Result<u64, PlanError> {
    numbered.sort_by_key(|(calls, _)| *calls);
    let Some((said, coarsest)) = numbered.first() else { return Ok(1) };
    let fewest = task.split(shape, coarsest)?.len() as u64;
    let lists = (fewest / (*said).max(1)).max(1);
    let much = said.saturating_mul(MUCH_FINER);
    let finer = numbered.iter().find(|(pieces, _)| *pieces >= much).or(numbered.last());
    if let Some((_, finer)) = finer.filter(|(pieces, _)| fewest > 1 && pieces > said)
        && task.split(shape, finer)?.len() as u64 <= fewest
    {
        numbered.truncate(1);
    }
    numbered[0].0 = fewest.max(numbered[0].0);
    Ok(lists)
}

/// The refusal of a split into more calls than a plan has room for.
pub(crate) fn too_many(
    machine: &Machine,
    facts: &EdgeFacts<'_>,
    task: &TaskRef,
    calls: u64,
    is_mapped: bool,
) -> PlanError {
    PlanError::TooManyCalls {
        task: task.name().to_owned(),
        memory: machine.memory(facts.child).name.clone(),
        tile: if is_mapped { "by the mapping's tile" } else { "by the largest tile that fits" },
        calls,
        most: facts.calls_max,
        enough: None,
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
            enough: Enough::from_need(total.saturating_add((smallest.partials - offered).saturating_mul(4))),
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
            reserved: readable_bytes(smallest.reserved),
            tile,
            need: readable_bytes(smallest.footprint),
            enough: Enough::from_need(smallest.footprint.saturating_add(smallest.reserved).saturating_add(slack)),
        };
    }
    match choose(machine, facts, &Mapping::default(), task, shape, depth_max, None) {
        Ok(largest) => PlanError::MappingDoesNotFit {
            memory,
            task: task.name().to_owned(),
            capacity: readable_bytes(capacity),
            tile,
            need: readable_bytes(smallest.footprint),
            largest: describe(&largest.tunables),
        },
        Err(error) => error,
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

/// Those beside which no other is shorter along one axis and as long along the others.
fn smallest_of(numbered: &[(u64, Tunables)]) -> Vec<(u64, Tunables)> {
    let others = |tunables: &Tunables, axis: usize| {
        let lengths = tunables.iter().enumerate().filter(|(number, _)| *number != axis);
        (axis, lengths.map(|(_, (_, length))| length).collect::<SmallVec<[u64; 4]>>())
    };
    let mut shortest: FxHashMap<(usize, SmallVec<[u64; 4]>), u64> = FxHashMap::default();
    for (_, tunables) in numbered {
        for (axis, (_, length)) in tunables.iter().enumerate() {
            let shortest = shortest.entry(others(tunables, axis)).or_insert(length);
            *shortest = length.min(*shortest);
        }
    }
    let is_shortest = |tunables: &Tunables| {
        tunables.iter().enumerate().all(|(axis, (_, length))| shortest[&others(tunables, axis)] == length)
    };
    numbered.iter().filter(|(_, tunables)| is_shortest(tunables)).cloned().collect()
}

/// Bytes of the blocks of the largest call, and of what is not for blocks.
fn footprint(facts: &EdgeFacts<'_>, split: &Split) -> (u64, u64) {
    let align = facts.align_bytes();
    let (mut footprint, mut scratch) = (0u64, facts.scratch_least_bytes);
    for (task, shape) in &split.classes {
        let task = &split.tasks[*task as usize];
        let sizes = task.params().iter().zip(&shape.shapes);
        let bytes = sizes.map(|(p, s)| (s.elements() * p.element.size_bytes()).next_multiple_of(align));
        footprint = footprint.max(bytes.fold(0, u64::saturating_add));
        scratch = scratch.max(facts.scratch_bytes(&**task, shape));
    }
    (footprint, facts.fixed_bytes + scratch + facts.partials_bytes)
}

/// What splitting alone tells of a candidate.
fn look(facts: &EdgeFacts<'_>, scope: &Scope, tunables: Tunables, calls: u64) -> Result<Candidate, SplitError> {
    let split = as_counted(facts, scope, split_with(scope, &tunables)?)?;
    let align = facts.align_bytes();
    let (footprint, reserved) = footprint(facts, &split);
    let class_seconds: Vec<f64> =
        split.classes.iter().map(|(t, s)| facts.run_seconds(&*split.tasks[*t as usize], s)).collect();
    let scattered = split.calls.iter().map(|call| facts.scattered_call_seconds(call, &split.arrays)).sum::<f64>();
    let busy: f64 = split.class_of.iter().map(|&c| class_seconds[c as usize]).sum::<f64>() + scattered;
    let busy = busy / facts.children as f64;
    let uneven = split_unevenness(&split, facts.children, facts.stages());
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
                let seconds = moving_seconds(facts.edge, &arg.region, array, rate);
                streaming += bytes / rate;
                stolen += stolen_seconds(facts.edge, &arg.region, array, facts.workers);
                let latency = facts.edge.latency_ns * 1e-9 / facts.children as f64;
                moving += seconds + latency + transfer_seconds(facts.edge, USUAL_QUEUE);
                if i == 0 {
                    first += seconds;
                }
                loaded += bytes as u64;
            }
            if i > 0 {
                stream = stream.min(loaded.next_multiple_of(align));
            }
        }
        let overlaps = !facts.edge.driver.synchronous
            && footprint.saturating_add(stream).saturating_add(reserved) <= facts.total_bytes;
        let busy = busy + stolen;
        let staging = footprint + if overlaps { stream } else { 0 };
        moving += staging_seconds(facts.edge, (streaming * facts.edge.read_bytes_per_second) as u64, staging);
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
fn split_unevenness(split: &Split, children: usize, whole: bool) -> f64 {
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
    unevenness(written.len().max(1) as f64, children, whole)
}
