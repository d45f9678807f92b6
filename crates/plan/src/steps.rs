//! Pass "steps": how many steps of a stencil are computed at a time.
//!
//! Calls of one task that each read what the one before has written move their arrays once a step, where these do not fit.
//! Some steps at a time need blocks with wider halos ([`Steps`]) and move them once for all. How many is solved for: a pass
//! over arrays in blocks of lengths `b` moves `(1 + 2 T h / b)` times their bytes along each axis with a halo `h`, and
//! there are `steps / T` passes; blocks, halos and the leaves' buffers have to fit, and what is computed again at the edges
//! takes time. So for each number of passes the best blocks are found by formula, and the least price of all passes counts.
//!
//! A version that somebody else sees, or that is a result, is still made: it ends the steps that are taken together. Versions
//! between go to arrays of the chain that are overwritten anyway, in turns, so that no pass writes what it reads.

use crate::cost::repeated;
use crate::estimate::{Loop, Nest};
use crate::facts::{EdgeFacts, TaskRef};
use crate::formula::{Looked, refine};
use crate::plan::PassReport;
use crate::scope::{Scope, identity};
use multigrain_program::{Access, Arg, Args, Call, CallShape, Region, Role, Steps};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// From so many passes on not every number of them is looked at, only each that is so many times the one before.
const PASSES_EACH: u64 = 16;
const PASSES_RATIO: f64 = 1.2;

/// Calls of one task, each of which reads as parameter `state` what the one before has written as `written`.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    calls: Range<usize>,
    state: usize,
    written: usize,
}

/// The parameter that a task writes, if it writes one and reads the others.
fn written(task: &TaskRef) -> Option<usize> {
    let params = task.params();
    let written = params.iter().position(|param| param.access == Access::Write)?;
    let others = params.iter().enumerate().filter(|(number, _)| *number != written);
    others.clone().all(|(_, param)| param.access == Access::Read).then_some(written)
}

/// The parameter as which `next` reads what `call` has written, where everything else is as it was.
fn follows(scope: &Scope, call: &Call, next: &Call, written: usize) -> Option<usize> {
    if call.task != next.task || call.scalars != next.scalars || call.scalars.clone().with_before(&[]) != call.scalars {
        return None;
    }
    let made = &call.args[written];
    let mut readers = (0..next.args.len()).filter(|&number| number != written && next.args[number] == *made);
    let state = readers.next().filter(|_| readers.next().is_none())?;
    let same = (0..next.args.len()).all(|n| n == state || n == written || call.args[n] == next.args[n]);
    let alike = |a: &Arg, b: &Arg| {
        let element = |arg: &Arg| scope.arrays[arg.array as usize].element;
        a.region.shape() == b.region.shape() && element(a) == element(b)
    };
    (same && alike(&call.args[state], made) && alike(&next.args[written], made)).then_some(state)
}

/// The longest chains of a scope, cut where a version is seen by others.
fn chains(scope: &Scope) -> Vec<Chain> {
    let mut touched: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    let mut found = Vec::new();
    let mut first = 0;
    while first + 1 < scope.calls.len() {
        let task = &scope.tasks[scope.calls[first].task as usize];
        let linked = written(task).and_then(|written| {
            Some((written, follows(scope, &scope.calls[first], &scope.calls[first + 1], written)?))
        });
        let Some((written, state)) = linked else {
            first += 1;
            continue;
        };
        // One block of each array: others would be written at other times than before.
        let mut blocks: FxHashMap<u32, Region> = FxHashMap::default();
        let mut same_block = |call: &Call| {
            [state, written].iter().all(|&number| {
                let Arg { array, region } = call.args[number];
                *blocks.entry(array).or_insert(region) == region
            })
        };
        let mut end = first;
        while end < scope.calls.len()
            && (end == first || follows(scope, &scope.calls[end - 1], &scope.calls[end], written) == Some(state))
            && same_block(&scope.calls[end])
        {
            end += 1;
        }
        if touched.is_empty() {
            for (number, call) in scope.calls.iter().enumerate() {
                call.args.iter().for_each(|arg| touched.entry(arg.array).or_default().push(number));
            }
        }
        let mut begin = first;
        for call in first..end {
            if call + 1 == end || is_seen(scope, &touched, call, written) {
                if call > begin {
                    found.push(Chain { calls: begin..call + 1, state, written });
                }
                begin = call + 1;
            }
        }
        first = end.max(first + 1);
    }
    found
}

/// Whether anybody but the call behind it sees what a call has written.
fn is_seen(scope: &Scope, touched: &FxHashMap<u32, Vec<usize>>, call: usize, written: usize) -> bool {
    let made = scope.calls[call].args[written];
    let touching = touched.get(&made.array).map_or(&[][..], Vec::as_slice);
    for &later in &touching[touching.partition_point(|&number| number <= call + 1)..] {
        let Call { task, args, .. } = &scope.calls[later];
        let params = scope.tasks[*task as usize].params();
        let uses = || args.iter().zip(params).filter(|(arg, _)| arg.array == made.array);
        if uses().any(|(arg, param)| param.access.reads() && arg.region.intersects(&made.region)) {
            return true;
        }
        if uses().any(|(arg, param)| param.access.writes() && arg.region.contains(&made.region)) {
            return false;
        }
    }
    matches!(scope.arrays[made.array as usize].role, Role::Output | Role::InOut)
}

/// A scope in which steps are taken together, and a line on each chain of them. `count` says how many at a time of a chain of
/// so many: 1 to leave them. `None` where nothing is taken together.
pub(crate) fn together<E>(
    scope: &Scope,
    capacity_bytes: u64,
    mut count: impl FnMut(&TaskRef, &CallShape, usize, u64) -> Result<u64, E>,
) -> Result<Option<(Scope, Vec<PassReport>)>, E> {
    let chains = chains(scope);
    let mut chosen: FxHashMap<(usize, CallShape, usize, u64), u64> = FxHashMap::default();
    let mut made: FxHashMap<(usize, CallShape, usize, u64), TaskRef> = FxHashMap::default();
    let (mut blocked, mut listed) = (scope.clone(), Vec::new());
    let (mut reports, mut at) = (Vec::new(), 0);
    for chain in &chains {
        let calls = &scope.calls[chain.calls.clone()];
        let (task, shape, steps) = (&scope.tasks[calls[0].task as usize], calls[0].shape(), calls.len() as u64);
        let key = |number: u64| (identity(task), shape.clone(), chain.state, number);
        let most = match chosen.get(&key(steps)) {
            Some(&most) => most,
            None => {
                let most = count(task, &shape, chain.state, steps)?.max(1);
                chosen.insert(key(steps), most);
                most
            }
        };
        let Some((passes, targets)) = passes(calls, chain, steps.div_ceil(most)) else {
            continue;
        };
        listed.extend_from_slice(&scope.calls[at..chain.calls.start]);
        at = chain.calls.end;
        let mut from = calls[0].args[chain.state];
        for (number, target) in targets.iter().enumerate() {
            let size = steps / passes + u64::from((number as u64) < steps % passes);
            let of_size = made.entry(key(size)).or_insert_with(|| match size {
                1 => task.clone(),
                _ => Steps::of(task, &shape, chain.state, size, capacity_bytes)
                    .map_or_else(|| task.clone(), |steps| Arc::new(steps)),
            });
            let known = blocked.tasks.iter().position(|task| identity(task) == identity(of_size));
            let task = known.unwrap_or(blocked.tasks.len());
            if known.is_none() {
                blocked.tasks.push(of_size.clone());
            }
            let mut args: Args = calls[0].args.clone();
            (args[chain.state], args[chain.written]) = (from, *target);
            listed.push(Call { task: task as u32, args, scalars: calls[0].scalars.clone() });
            from = *target;
        }
        let (name, each) = (task.name(), steps.div_ceil(passes));
        let over = if passes == 1 { "one pass".to_owned() } else { format!("{passes} passes") };
        let summary = format!("{steps} steps of {name}, {each} at a time: {over} over its arrays instead of {steps}");
        let report = PassReport { pass: "steps", summary };
        if !reports.contains(&report) {
            reports.push(report);
        }
    }
    if reports.is_empty() {
        return Ok(None);
    }
    listed.extend_from_slice(&scope.calls[at..]);
    blocked.calls = Arc::new(listed);
    Ok(Some((blocked, reports)))
}

/// At least so many passes over a chain, and the block that each writes; `None` where that is every step for itself.
fn passes(calls: &[Call], chain: &Chain, least: u64) -> Option<(u64, Vec<Arg>)> {
    let (last, first) = (calls.last()?.args[chain.written], calls[0].args[chain.state]);
    // Another array that is overwritten: any version that is no result is written to one.
    let other = calls.iter().rev().map(|call| call.args[chain.written]).find(|arg| *arg != last).unwrap_or(last);
    let target = |behind: u64| if behind.is_multiple_of(2) { last } else { other };
    let passes = if target(least - 1) == first { least + 1 } else { least };
    (passes < calls.len() as u64).then(|| (passes, (0..passes).rev().map(target).collect()))
}

/// How many of so many steps are best taken together on an edge. `edges` are this one and those below that copy as well: what
/// suits blocks of a main memory would leave nothing but halo of those in local stores.
pub(crate) fn count(edges: &[EdgeFacts<'_>], task: &TaskRef, shape: &CallShape, state: usize, steps: u64) -> u64 {
    let capacity_bytes = edges.first().map_or(u64::MAX, |facts| facts.scratch_capacity_bytes);
    let (mut best, mut best_price, mut passes) = (1, f64::INFINITY, 1);
    let mut before = u64::MAX;
    while passes <= steps {
        let each = steps.div_ceil(passes);
        let of_each: Option<TaskRef> = match each {
            1 => Some(task.clone()),
            _ if each == before => None,
            _ => Steps::of(task, shape, state, each, capacity_bytes).map(|steps| Arc::new(steps) as TaskRef),
        };
        before = each;
        let pass = |task: TaskRef| edges.iter().map(|facts| pass_price(facts, &task, shape)).sum::<Option<f64>>();
        if let Some(one) = of_each.and_then(pass) {
            let all = repeated(one, steps as f64 / each as f64);
            if all < best_price {
                (best, best_price) = (each, all);
            }
        }
        if each == 1 {
            break;
        }
        passes = if passes < PASSES_EACH { passes + 1 } else { (passes as f64 * PASSES_RATIO) as u64 };
        passes = passes.min(steps);
    }
    best
}

/// The price of a call in the best blocks, by formula. `None` where none fit.
fn pass_price(facts: &EdgeFacts<'_>, task: &TaskRef, shape: &CallShape) -> Option<f64> {
    let nest = Nest::of(facts, task, shape)?;
    let specs = task.tunables(shape);
    // Whole rows, rows of planes, and blocks that are short along every axis: from where one length after the other is
    // changed.
    let starts = (1..=specs.len()).filter_map(|cut| {
        let mut count = 1;
        loop {
            let length = |(axis, spec): (usize, &multigrain_program::Tunable)| -> Loop {
                (axis, if axis < cut { spec.extent.div_ceil(count) } else { spec.extent })
            };
            let loops: SmallVec<[Loop; 6]> = specs.iter().enumerate().map(length).collect();
            let is_least = loops[..cut].iter().all(|&(_, length)| length == 1);
            let found = Looked::at(&nest, loops);
            if found.is_possible(nest.facts()) {
                return Some(found);
            }
            if is_least {
                return None;
            }
            count += 1 + count / 4;
        }
    });
    starts.map(|start| refine(&nest, &specs, &start, None).price).min_by(f64::total_cmp)
}
