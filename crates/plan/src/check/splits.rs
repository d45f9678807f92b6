//! Whether a plan's calls are the split of what is to be computed, with every contribution to a reduction combined
//! exactly once, in order, and in the shape of the fixed tree.
//!
//! The picture: calls that a split makes stand in the plan as they are, except that a block that is reduced may be
//! replaced by a block of a temporary array. Each such block holds a node: consecutive contributions of one target. A
//! merge takes two neighbouring nodes, of which the left one is a power of two of contributions, all there, and the
//! right one no larger. Only one tree over a number of contributions can be made of such merges; at the end each target
//! must hold the node of all its contributions, and no other node may be left.

use super::problem::Problem;
use crate::plan::{Plan, SourceCall};
use multigrain_program::{Access, Arg, Call, CallShape, DynTask, Role, SplitError, SubCall};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Consecutive contributions of one target.
#[derive(Clone, Copy)]
struct Node {
    target: Arg,
    first: u64,
    end: u64,
    /// Whether it is a power of two of contributions.
    is_full: bool,
}

impl Node {
    fn count(&self) -> u64 {
        self.end - self.first
    }
}

/// Checks the calls of a plan against the calls that were split. The first `given` arrays are not temporary arrays of
/// reductions.
pub(super) fn splits(plan: &Plan, sources: &[SourceCall], given: usize) -> Result<(), Problem> {
    let temporaries_from = match plan.sources.is_empty() {
        true => given,
        // A program may have temporary arrays of its own; those of reductions come last and no source names them.
        false => given.max(plan.arrays.iter().rposition(|a| a.role != Role::Temporary).map_or(0, |last| last + 1)),
    };
    if let Some(array) =
        plan.arrays[given..].iter().find(|array| array.role != Role::Temporary && plan.sources.is_empty())
    {
        return Err(differs("role of an array that is no argument", "Temporary", format!("{:?}", array.role)));
    }
    let mut rest = &plan.calls[..];
    for source in sources {
        let shape = CallShape {
            shapes: source.args.iter().map(|arg| arg.region.shape()).collect(),
            scalars: source.scalars.clone(),
        };
        for axis in source.task.tunables(&shape) {
            let length = source.tunables.get(axis.name, axis.extent);
            if !source.task.allows(&axis, length) {
                let expected = format!("blocks of {} that keep partial results where they belong", axis.name);
                return Err(differs("a tunable", expected, length.to_string()));
            }
        }
        let cannot = |error: SplitError| differs("a split", "calls on blocks of the arguments", error.to_string());
        let subs = source.task.split(&shape, &source.tunables).map_err(cannot)?;
        rest = of_source(plan, source, &subs, temporaries_from, rest)?;
    }
    match rest {
        [] => Ok(()),
        [call, ..] => Err(differs("a call beyond those of the split", "none", text(plan, call))),
    }
}

/// Checks the calls of one source at the beginning of `calls`, and returns the rest.
fn of_source<'c>(
    plan: &Plan,
    source: &SourceCall,
    subs: &[SubCall],
    temporaries_from: usize,
    calls: &'c [Call],
) -> Result<&'c [Call], Problem> {
    let params = source.task.params();
    let merges: Vec<&Arc<dyn DynTask>> = (0..params.len()).filter_map(|p| source.task.merge(p)).collect();
    let mut counts: FxHashMap<Arg, u64> = FxHashMap::default();
    let mut nodes: FxHashMap<Arg, Node> = FxHashMap::default();
    // Every block that ever held a node, to see that they are apart.
    let mut blocks: Vec<Arg> = Vec::new();
    let mut subs = subs.iter();
    let mut at = 0;
    for call in calls {
        let task = plan.tasks.get(call.task as usize);
        if let (Some(task), [into, from]) = (task, &call.args[..])
            && merges.iter().any(|merge| Arc::ptr_eq(merge, task))
        {
            merge(source, task, *into, *from, &mut nodes)?;
            at += 1;
            continue;
        }
        let Some(sub) = subs.next() else { break };
        at += 1;
        let callee = sub.callee(&source.task);
        let unlike = || {
            let expected = format!("{}{:?} {:?}", callee.name(), sub.args, sub.scalars);
            differs("a call of the split", expected, text(plan, call))
        };
        if task.map(|task| task.name()) != Some(callee.name())
            || call.scalars != sub.scalars
            || call.args.len() != sub.args.len()
        {
            return Err(unlike());
        }
        for (&(param, region), &found) in sub.args.iter().zip(&call.args) {
            let outer = &source.args[param];
            let expected = Arg { array: outer.array, region: region.within(&outer.region) };
            if params[param].access != Access::Reduce {
                if found != expected {
                    return Err(unlike());
                }
                continue;
            }
            let is_partial =
                found.array as usize >= temporaries_from && found.region.shape() == expected.region.shape();
            if found != expected && !is_partial {
                return Err(unlike());
            }
            let count = counts.entry(expected).or_default();
            let node = Node { target: expected, first: *count, end: *count + 1, is_full: true };
            *count += 1;
            if let Some(lost) = nodes.insert(found, node) {
                return Err(wrong(source, &found, "a contribution is written over others", &lost));
            }
            blocks.push(found);
        }
    }
    if let Some(sub) = subs.next() {
        return Err(differs("number of calls of the split", format!("another one on {:?}", sub.args), "none".into()));
    }
    for (block, node) in &nodes {
        if *block != node.target {
            return Err(wrong(source, block, "contributions are never combined", node));
        }
        if node.first != 0 || counts.get(block) != Some(&node.end) {
            return Err(wrong(source, block, "contributions are missing", node));
        }
    }
    apart(blocks)?;
    Ok(&calls[at..])
}

fn merge(
    source: &SourceCall,
    task: &Arc<dyn DynTask>,
    into: Arg,
    from: Arg,
    nodes: &mut FxHashMap<Arg, Node>,
) -> Result<(), Problem> {
    let empty = |block: &Arg| {
        let node = Node { target: *block, first: 0, end: 0, is_full: false };
        wrong(source, block, "a merge finds no contribution", &node)
    };
    let right = nodes.remove(&from).ok_or_else(|| empty(&from))?;
    let left = nodes.get_mut(&into).ok_or_else(|| empty(&into))?;
    if left.target != right.target {
        return Err(wrong(source, &from, "a merge takes contributions of another block", &right));
    }
    let param =
        source.args.iter().position(|arg| arg.array == left.target.array && arg.region.contains(&left.target.region));
    if !param.and_then(|p| source.task.merge(p)).is_some_and(|merge| Arc::ptr_eq(merge, task)) {
        return Err(wrong(source, &into, "a merge is of another parameter", left));
    }
    if left.end != right.first {
        return Err(wrong(source, &from, "a merge takes contributions that are not the next ones", &right));
    }
    if !left.is_full || right.count() > left.count() {
        return Err(wrong(source, &into, "a merge that the fixed tree does not have", left));
    }
    left.is_full = right.is_full && left.count() == right.count();
    left.end = right.end;
    Ok(())
}

/// Whether blocks that hold contributions are the same or share nothing.
fn apart(mut blocks: Vec<Arg>) -> Result<(), Problem> {
    blocks.sort_unstable_by_key(|b| (b.array, b.region.start()[0], *b));
    blocks.dedup();
    for (i, block) in blocks.iter().enumerate() {
        let near = blocks[i + 1..]
            .iter()
            .take_while(|other| other.array == block.array && other.region.start()[0] < block.region.end(0));
        for other in near {
            if other.region.intersects(&block.region) {
                let expected = format!("apart from {:?}", block.region);
                return Err(differs("a block of contributions", expected, format!("{:?}", other.region)));
            }
        }
    }
    Ok(())
}

fn wrong(source: &SourceCall, block: &Arg, what: &'static str, node: &Node) -> Problem {
    let task = source.task.name().to_owned();
    Problem::Reduction { task, array: block.array, region: block.region, what, first: node.first, end: node.end }
}

fn differs(what: &'static str, expected: impl Into<String>, found: String) -> Problem {
    Problem::Differs { what, expected: expected.into(), found }
}

fn text(plan: &Plan, call: &Call) -> String {
    let name = plan.tasks.get(call.task as usize).map_or("", |task| task.name());
    format!("{name}{:?} {:?}", call.args.as_slice(), call.scalars)
}
