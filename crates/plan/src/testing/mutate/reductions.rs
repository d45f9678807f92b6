//! Damage to the trees of reductions. Slots follow the calls, so that what is wrong is only what the calls mean.

use super::super::rng::Rng;
use crate::plan::{Op, Places, Plan};
use multigrain_program::{Arg, DynTask, Role};
use std::sync::Arc;

/// The calls that merge partial results.
fn merges(plan: &Plan) -> Vec<usize> {
    let is_partial = |arg: &Arg| {
        let array = &plan.arrays[arg.array as usize];
        array.role == Role::Temporary && array.name.starts_with("partial ")
    };
    let is_merge = |&c: &usize| {
        let call = &plan.calls[c];
        plan.tasks[call.task as usize].name() == "merge" && call.args.len() == 2 && is_partial(&call.args[1])
    };
    (0..plan.calls.len()).filter(is_merge).collect()
}

/// Gives a call other arguments, and its run other slots where it has any.
fn set_args(plan: &mut Plan, call: usize, args: [Arg; 2]) {
    plan.calls[call].args = args.into_iter().collect();
    for child in &mut plan.children {
        for op in &child.ops {
            if let Op::Run { call: c, places: Places::Slots { first } } = *op
                && c as usize == call
            {
                for (i, arg) in args.iter().enumerate() {
                    let slot = child.places[first as usize + i];
                    child.slots[slot as usize].block = *arg;
                }
            }
        }
    }
}

fn args(plan: &Plan, call: usize) -> [Arg; 2] {
    [plan.calls[call].args[0], plan.calls[call].args[1]]
}

/// Left and right of a merge exchanged: the same numbers, in another order.
pub(super) fn exchange_operands(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let call = *rng.pick(&merges(plan))?;
    let [into, from] = args(plan, call);
    set_args(plan, call, [from, into]);
    Some(format!("call {call} merges {into:?} into {from:?} instead of the reverse"))
}

/// Two merges that take each other's contributions.
pub(super) fn exchange_contributions(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let all = merges(plan);
    let a = *rng.pick(&all)?;
    let [into_a, from_a] = args(plan, a);
    let alike = |&b: &usize| {
        let [into_b, from_b] = args(plan, b);
        b != a
            && plan.calls[b].task == plan.calls[a].task
            && from_b != from_a
            && from_b.region.shape() == from_a.region.shape()
            && from_b.array == from_a.array
            // Else a block would be merged into itself.
            && into_b != from_a
            && into_a != from_b
    };
    let b = *rng.pick(&all.iter().copied().filter(alike).collect::<Vec<_>>())?;
    let [into_b, from_b] = args(plan, b);
    set_args(plan, a, [into_a, from_b]);
    set_args(plan, b, [into_b, from_a]);
    Some(format!("calls {a} and {b} merge each other's contributions"))
}

/// A contribution that is combined twice, and another that is not combined.
pub(super) fn merge_twice(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let all = merges(plan);
    let a = *rng.pick(&all)?;
    let [into_a, from_a] = args(plan, a);
    let other = |&b: &usize| {
        let [into, from] = args(plan, b);
        from != from_a && from.region.shape() == into_a.region.shape() && from.array == from_a.array && into != from_a
    };
    let b = *rng.pick(&all.iter().copied().filter(other).collect::<Vec<_>>())?;
    let from_b = args(plan, b)[1];
    if from_b == into_a {
        return None;
    }
    set_args(plan, a, [into_a, from_b]);
    Some(format!("call {a} merges what call {b} merges, and not its own"))
}

/// A merge by another operator of the plan, on the same blocks.
pub(super) fn other_operator(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let all = merges(plan);
    let a = *rng.pick(&all)?;
    let mine = plan.tasks[plan.calls[a].task as usize].clone();
    let differs = |task: &&Arc<dyn DynTask>| {
        task.name() == "merge" && !Arc::ptr_eq(task, &mine) && task.params() == mine.params()
    };
    let others: Vec<Arc<dyn DynTask>> = plan.tasks.iter().filter(differs).cloned().collect();
    let other = rng.pick(&others)?;
    let task = plan.tasks.iter().position(|t| Arc::ptr_eq(t, other))? as u32;
    let class = plan.class_of[a] as usize;
    let mut changed = plan.classes[class].clone();
    changed.task = task;
    plan.classes.push(changed);
    plan.class_of[a] = plan.classes.len() as u32 - 1;
    plan.calls[a].task = task;
    Some(format!("call {a} merges by another operator"))
}

/// Two merges of one block in the wrong order: a tree of another shape.
pub(super) fn other_tree(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let all = merges(plan);
    let a = *rng.pick(&all)?;
    let [into, from_a] = args(plan, a);
    // The left half of the node that `a` takes: it is merged at once, and the rest into it afterwards.
    let inner = |&b: &usize| b < a && args(plan, b)[0] == from_a;
    let b = all.iter().copied().rev().find(inner)?;
    let from_b = args(plan, b)[1];
    set_args(plan, b, [into, from_a]);
    set_args(plan, a, [into, from_b]);
    Some(format!("calls {b} and {a} make a chain of what was a tree"))
}
