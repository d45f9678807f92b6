//! The choice of tunables where the split is free, so that only splitting tells what it costs: do the blocks of one sub-call fit,
//! and how many bytes would move if nothing but the previous sub-call's blocks stayed. Where there are too many ways to look at
//! all of them, a search tells which are ([`crate::looks`]); the most promising are planned in earnest.

use crate::candidates::{
    Candidate, Found, as_counted, as_planned, at_once, calls_planned, combinations, finals, in_parallel, split_with,
};
use crate::cost::{UNEVEN, moving_seconds, staging_seconds, stolen_seconds, transfer_seconds, unevenness};
use crate::facts::{EdgeFacts, TaskRef};
use crate::formula::Unfit;
use crate::looks::{Looks, Way};
use crate::loops::turns;
use crate::rules::{Movable, movable};
use crate::scope::{Scope, Split};
use multigrain_program::{CallShape, Region, SplitError, Tunables};
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
/// So many of a class with many sub-calls are looked at in any case, before all of them are.
const PROBES: u64 = 24;
/// So many times as many sub-calls as are planned are looked at in a class to choose them, half of them spread over it, half near the
/// best. To look at one takes about as long as to plan one, and counts as much.
const LOOKED_FOR_EACH: f64 = 4.0;
/// How many transfers are in a disk's queue, in the first look.
const USUAL_QUEUE: f64 = 3.0;

/// Weight of the bytes moved in the first look, beside the time they are hidden in.
const STREAMING_SHARE: f64 = 0.5;

/// Of how many ways at once it is asked whether one fits.
const MEASURED_AT_ONCE: usize = 8;

/// The choice among ways of splitting a call whose split is free.
///
/// # Errors
/// [`Unfit`] where nothing can be planned.
pub(crate) fn by_looking(
    facts: &EdgeFacts<'_>,
    scope: &Scope,
    lists: &[Vec<u64>],
    depth_max: usize,
    known: Option<&Tunables>,
) -> Result<Found, Unfit> {
    let (task, shape) = (&scope.tasks[scope.calls[0].task as usize], &scope.calls[0].shape());
    let children = facts.children as u64;
    let few = if facts.stages() { CALLS_FEW.max(CALLS_FEW_CHILD * children) } else { CALLS_FEW_SHARED * children };
    let mut ways = all_ways(task, shape, lists, known);
    // A split may make several lists of what its axes say is one, as the shortest list of several calls tells. Where blocks
    // are copied the whole must be short; in a shared memory each list is balanced by itself.
    let several = |way: &&mut Way| way.calls > 1;
    if let Some(way) = ways.iter_mut().filter(several).min_by_key(|way| way.calls)
        && facts.stages()
    {
        let lists = (task.split(shape, &way.tunables)?.len() as u64 / way.calls).max(1);
        ways.iter_mut().filter(several).for_each(|way| way.calls = way.calls.saturating_mul(lists));
    }
    let stages = task.stages(shape)?.len() as u64;
    if task.notation().is_none() {
        // What is whole in one list is a list for each of its stages when it is not.
        let lists = as_split(task, shape, &mut ways)?.max(stages);
        // To look at a list takes as much room as a plan of it: what no plan has room for, only where nothing is shorter.
        let fewest = ways.first().map_or(0, |way| way.calls);
        if !facts.stages() {
            let most = facts.drafts_calls_max.max(fewest.saturating_mul(lists));
            ways.retain(|way| way.calls.saturating_mul(lists) <= most);
        }
    }
    let fewest = ways.iter().map(|way| way.calls).min();
    // What has stages is rather taken apart than a very long list.
    let calls_max = if stages == 0 { facts.calls_max } else { facts.calls_max.min(CALLS_STAGED_MAX) };
    ways.retain(|way| way.calls <= calls_max);
    if let (Some(calls), true) = (fewest, ways.is_empty()) {
        return Err(Unfit::TooMany(calls));
    }
    ways.sort_by_key(|way| way.calls);
    let strict = facts.edge.rules.strict;
    let least: &[Movable] = match strict {
        // Where no blocks obey the rules, the plan is made all the same: whoever proves it names what breaks which.
        true => &[Movable::Aligned, Movable::Skewed, Movable::No],
        false => &[Movable::No],
    };
    let seconds = facts.run_seconds(&**task, shape) / children as f64;
    let looked_max = |seconds: f64| calls_planned(facts, LOOKED_FOR_EACH * seconds.max(1.0));
    let look = |ways: &[&Way]| {
        let longest = ways.iter().map(|way| way.calls).max().unwrap_or(1);
        // Where blocks are copied, what was counted is all of a list.
        let workers = if facts.stages() { usize::MAX } else { at_once(facts, longest) };
        let found = in_parallel(workers, ways, |way| look(facts, scope, way.tunables.clone(), way.calls));
        found.into_iter().collect::<Result<Vec<Candidate>, SplitError>>()
    };
    let mut looks = Looks::new(&ways, &lists.iter().map(Vec::len).collect::<Vec<usize>>());
    // Whether something fits is asked where what is looked at first does not.
    let mut is_proved = !facts.stages();
    // Each doubling of the number of calls is searched before all of it is looked at; that nothing fits is known only when
    // everything has been looked at.
    for (least, searching) in least.iter().flat_map(|&least| [(least, true), (least, false)]) {
        let obeys = |c: &Candidate| facts.fits(c.footprint, c.reserved, c.partials) && c.movable >= least;
        let mut from = 0;
        let mut calls_max = few;
        while from < ways.len() {
            let class = from..ways.partition_point(|way| way.calls <= calls_max).max(from);
            let is_long = calls_max > few;
            (from, calls_max) = (class.end, calls_max.saturating_mul(2));
            let longest = ways[class.clone()].last().map_or(0, |way| way.calls);
            if !searching || looks.in_all(class.clone()) <= looked_max(seconds) {
                looks.look(class.clone(), &look)?;
            } else {
                let probed = if is_long { longest.saturating_mul(PROBES) } else { 0 };
                let (spread, apart) = looks.spread(class.clone(), probed.max(looked_max(seconds) / 2));
                looks.look(spread, &look)?;
                if !is_proved && !looks.of(class.clone()).any(obeys) {
                    let least = looks.of(0..ways.len()).map(Candidate::needed_bytes).min();
                    one_fits(facts, scope, &ways, least.unwrap_or(u64::MAX))?;
                    is_proved = true;
                }
                // Of long lists only where some fit, of others also to find out whether one does.
                if !is_long || looks.of(class.clone()).any(obeys) {
                    let rank = |c: &Candidate| (!obeys(c), facts.lacking_bytes(c.footprint, c.reserved, c.partials));
                    let better = |a: &Candidate, b: &Candidate| {
                        rank(a).cmp(&rank(b)).then(a.price.total_cmp(&b.price)).then(a.calls.cmp(&b.calls))
                    };
                    // Where other searches have left nothing, as many as a list has.
                    let worth = |best: &Candidate| (looked_max(best.guess) / 2).max(longest);
                    looks.climb(class.clone(), apart, worth, better, &look)?;
                }
            }
            let mut fitting: Vec<Candidate> = looks.of(class).filter(|candidate| obeys(candidate)).cloned().collect();
            fitting.sort_by(|a, b| a.price.total_cmp(&b.price).then(a.calls.cmp(&b.calls)));
            if let Some(best) = finals(facts, scope, fitting, depth_max) {
                return Ok(Found { planned: best.planned.saturating_add(as_planned(facts, looks.calls)), ..best });
            }
        }
        if !strict && looks.of(0..ways.len()).count() == ways.len() {
            break;
        }
    }
    let smallest = looks.of(0..ways.len()).min_by_key(|c| c.needed_bytes()).cloned();
    Err(smallest.map_or(Unfit::Nothing, |smallest| Unfit::Smallest(Box::new(smallest))))
}

/// All ways of choosing lengths for the axes of a call, and those that another search has chosen.
fn all_ways(task: &TaskRef, shape: &CallShape, lists: &[Vec<u64>], known: Option<&Tunables>) -> Vec<Way> {
    let specs = task.tunables(shape);
    let way = |(number, lengths): (usize, Vec<u64>)| {
        let tunables: Tunables = specs.iter().map(|spec| spec.name).zip(lengths).collect();
        let pieces = specs.iter().map(|s| s.extent.div_ceil(tunables.get(s.name, s.extent)));
        Way { calls: pieces.fold(1, |a: u64, b| a.saturating_mul(b)), tunables, number: Some(number) }
    };
    let known = known.map(|known| Way { calls: turns(task, shape, known), tunables: known.clone(), number: None });
    combinations(lists).enumerate().map(way).chain(known).collect()
}

/// Asks whether one of the ways with the smallest blocks fits; of others `other_bytes` are needed at least.
///
/// # Errors
/// [`Unfit::Smallest`] where none of these does and none needs more than others: where blocks grow with each of their lengths nothing
/// fits then. They need not: a table may have an entry for each of them.
fn one_fits(facts: &EdgeFacts<'_>, scope: &Scope, ways: &[Way], other_bytes: u64) -> Result<(), Unfit> {
    let mut smallest: Option<(u64, &Way)> = None;
    for some in smallest_of(ways).chunks(MEASURED_AT_ONCE) {
        let needed = in_parallel(usize::MAX, some, |way| {
            let split = as_counted(facts, scope, split_with(scope, &way.tunables)?)?;
            let (footprint, reserved) = footprint(facts, &split);
            Ok::<_, SplitError>(footprint.saturating_add(reserved))
        });
        for (needed, way) in needed.into_iter().zip(some) {
            let needed = needed?;
            if needed <= facts.total_bytes || needed > other_bytes {
                return Ok(());
            }
            if smallest.is_none_or(|(least, _)| needed < least) {
                smallest = Some((needed, way));
            }
        }
    }
    let Some((_, Way { tunables, calls, .. })) = smallest else { return Ok(()) };
    Err(Unfit::Smallest(Box::new(look(facts, scope, tunables.clone(), *calls)?)))
}

/// Tunables whose blocks are so many times as many as those of others make more calls, unless the split ignores them.
const MUCH_FINER: u64 = 64;

/// Corrects, of a task whose split is free, how many calls its tunables were taken to stand for: the fewest are counted, and
/// where much finer blocks make no more calls than the coarsest, which are several, the task does not split by its tunables,
/// so that there is one split to be looked at. Gives how many lists there are of what axes say is one.
fn as_split(task: &TaskRef, shape: &CallShape, ways: &mut Vec<Way>) -> Result<u64, SplitError> {
    ways.sort_by_key(|way| way.calls);
    let Some(coarsest) = ways.first() else { return Ok(1) };
    let (said, fewest) = (coarsest.calls, task.split(shape, &coarsest.tunables)?.len() as u64);
    let lists = (fewest / said.max(1)).max(1);
    let much = said.saturating_mul(MUCH_FINER);
    let finer = ways.iter().find(|way| way.calls >= much).or(ways.last());
    if let Some(finer) = finer.filter(|finer| fewest > 1 && finer.calls > said)
        && task.split(shape, &finer.tunables)?.len() as u64 <= fewest
    {
        ways.truncate(1);
    }
    ways[0].calls = fewest.max(ways[0].calls);
    Ok(lists)
}

/// Those beside which no other is shorter along one axis and as long along the others.
fn smallest_of(ways: &[Way]) -> Vec<&Way> {
    let others = |tunables: &Tunables, axis: usize| {
        let lengths = tunables.iter().enumerate().filter(|(number, _)| *number != axis);
        (axis, lengths.map(|(_, (_, length))| length).collect::<SmallVec<[u64; 4]>>())
    };
    let mut shortest: FxHashMap<(usize, SmallVec<[u64; 4]>), u64> = FxHashMap::default();
    for way in ways {
        for (axis, (_, length)) in way.tunables.iter().enumerate() {
            let shortest = shortest.entry(others(&way.tunables, axis)).or_insert(length);
            *shortest = length.min(*shortest);
        }
    }
    let is_shortest = |tunables: &Tunables| {
        tunables.iter().enumerate().all(|(axis, (_, length))| shortest[&others(tunables, axis)] == length)
    };
    ways.iter().filter(|way| is_shortest(&way.tunables)).collect()
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
pub(crate) fn look(
    facts: &EdgeFacts<'_>,
    scope: &Scope,
    tunables: Tunables,
    calls: u64,
) -> Result<Candidate, SplitError> {
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
