//! Damage to runs, to their order, and to signals and waits.

use super::super::rng::Rng;
use super::{dependent, insert, remove, runs, steps_where};
use crate::plan::{Op, Plan};

fn random_run(plan: &Plan, rng: &mut Rng) -> Option<(usize, usize)> {
    rng.pick(&steps_where(plan, |op| matches!(op, Op::Run { .. }))).copied()
}

pub(super) fn drop_run(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let at = random_run(plan, rng)?;
    remove(plan, at);
    Some(format!("child {}: no run in step {}", at.0, at.1))
}

pub(super) fn repeat_run(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let at = random_run(plan, rng)?;
    let op = plan.children[at.0].ops[at.1];
    insert(plan, at, op);
    Some(format!("child {}: step {} runs twice", at.0, at.1))
}

pub(super) fn swap_dependent(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let (earlier, later) = dependent(plan, rng, |a, b| a.0 == b.0 && a.1 < b.1)?;
    let runs = runs(plan);
    plan.children[runs[earlier].0].ops.swap(runs[earlier].1, runs[later].1);
    Some(format!("calls {earlier} and {later} in the wrong order"))
}

pub(super) fn wrong_class(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let call = rng.below(plan.class_of.len() as u64) as usize;
    let mine = &plan.classes[*plan.class_of.get(call)? as usize];
    let differs = |&c: &u32| {
        let other = &plan.classes[c as usize];
        (other.task, &other.shape) != (mine.task, &mine.shape)
    };
    let others: Vec<u32> = (0..plan.classes.len() as u32).filter(differs).collect();
    plan.class_of[call] = *rng.pick(&others)?;
    Some(format!("call {call} in class {}", plan.class_of[call]))
}

/// Makes two batches of one, between a call and another that reads its output.
pub(super) fn cut_batch(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    if !plan.balanced {
        return None;
    }
    // Batches of other phases are ordered anyway.
    let frozen = plan.clone();
    let together = |a: (usize, usize), b: (usize, usize)| {
        let both = |batch: &std::ops::Range<u32>| batch.contains(&(a.1 as u32)) && batch.contains(&(b.1 as u32));
        a.0 == b.0 && a.1 < b.1 && frozen.children[a.0].batches.iter().any(both)
    };
    let (earlier, later) = dependent(plan, rng, together)?;
    let runs = runs(plan);
    let (child, cut) = (runs[earlier].0, runs[later].1 as u32);
    let batches = &mut plan.children[child].batches;
    let at = batches.iter().position(|b| b.contains(&cut))?;
    let rest = cut..batches[at].end;
    batches[at].end = cut;
    batches.insert(at + 1, rest);
    let phases = &mut plan.children[child].phases;
    phases.iter_mut().filter(|end| **end as usize > at).for_each(|end| *end += 1);
    Some(format!("child {child}: a batch cut at step {cut}, between calls {earlier} and {later}"))
}

/// Makes one phase of several, between a call and another that reads its output.
pub(super) fn join_phases(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let phases = plan.phases();
    if !plan.balanced || phases < 2 {
        return None;
    }
    let at = |plan: &Plan, (child, step): (usize, usize)| {
        let child = &plan.children[child];
        let batch = child.batches.iter().position(|b| b.contains(&(step as u32)))?;
        Some(child.phases.partition_point(|&end| end as usize <= batch))
    };
    let of = |plan: &Plan, step| at(plan, step).unwrap_or(phases);
    let frozen = plan.clone();
    let (earlier, later) = dependent(plan, rng, |a, b| of(&frozen, a) < of(&frozen, b))?;
    let runs = runs(plan);
    let (first, last) = (of(plan, runs[earlier]), of(plan, runs[later]));
    plan.children.iter_mut().for_each(|child| drop(child.phases.drain(first..last)));
    Some(format!("phases {first} to {last} joined, with calls {earlier} and {later} in them"))
}

/// Removes all waits of a child that reads what another child writes. Not where broadcasts might tell the same.
pub(super) fn drop_waits(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    if plan.balanced || !steps_where(plan, |op| matches!(op, Op::Broadcast { .. })).is_empty() {
        return None;
    }
    let (earlier, later) = dependent(plan, rng, |a, b| a.0 != b.0)?;
    let (child, _) = runs(plan)[later];
    plan.children[child].ops.retain(|op| !matches!(op, Op::Wait { .. } | Op::Barrier));
    Some(format!("child {child} waits for nobody, but its call {later} reads what call {earlier} writes"))
}

/// Removes a signal of a child from which another waits for all of them.
pub(super) fn drop_signal(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let signals: Vec<Vec<usize>> =
        plan.children.iter().map(|c| (0..c.ops.len()).filter(|&s| matches!(c.ops[s], Op::Signal)).collect()).collect();
    let awaits_all = |op: &Op| match *op {
        Op::Wait { child, signals: wanted } => wanted as usize == signals[child as usize].len(),
        _ => false,
    };
    let waits = steps_where(plan, awaits_all);
    let &(waiter, step) = rng.pick(&waits)?;
    let Op::Wait { child, .. } = plan.children[waiter].ops[step] else { return None };
    let step = *rng.pick(&signals[child as usize])?;
    remove(plan, (child as usize, step));
    Some(format!("child {child}: no signal in step {step}"))
}

/// Gives a signal before a store is awaited that another child fetches after the signal. Only between two children:
/// with more, a third might pass on that the store is complete; and without broadcasts, which might tell it too.
pub(super) fn signal_early(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    if plan.children.len() != 2 || !steps_where(plan, |op| matches!(op, Op::Broadcast { .. })).is_empty() {
        return None;
    }
    let mut signals = steps_where(plan, |op| matches!(op, Op::Signal));
    rng.shuffle(&mut signals);
    for (child, step) in signals {
        let (mine, other) = (&plan.children[child], &plan.children[1 - child]);
        let Some(&Op::Await { transfer }) = step.checked_sub(1).map(|before| &mine.ops[before]) else { continue };
        let stored = mine.ops.iter().find_map(|op| match op {
            Op::Store { transfer: t, slot } if *t == transfer => Some(mine.slots[*slot as usize].block),
            _ => None,
        });
        let Some(stored) = stored else { continue };
        let number = mine.ops[..=step].iter().filter(|op| matches!(op, Op::Signal)).count() as u32;
        let Some(wait) = other.ops.iter().position(|op| matches!(op, Op::Wait { signals, .. } if *signals >= number))
        else {
            continue;
        };
        if !matches!(other.ops[wait], Op::Wait { signals, .. } if signals == number) {
            continue;
        }
        let after = other.ops[wait + 1..].iter().take_while(|op| !matches!(op, Op::Wait { .. } | Op::Barrier));
        let fetches = |op: &Op| match op {
            Op::Fetch { slot, .. } => {
                let block = &other.slots[*slot as usize].block;
                block.array == stored.array && block.region.intersects(&stored.region)
            }
            _ => false,
        };
        if after.into_iter().any(fetches) {
            plan.children[child].ops.swap(step - 1, step);
            return Some(format!("child {child}: the signal in step {step} before the store {transfer} is awaited"));
        }
    }
    None
}

/// Removes a barrier from the steps of one child.
pub(super) fn drop_barrier(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let &at = rng.pick(&steps_where(plan, |op| matches!(op, Op::Barrier)))?;
    remove(plan, at);
    Some(format!("child {}: no barrier in step {}", at.0, at.1))
}

/// Removes a barrier from the steps of all children, where it alone lies between a call and one on another child that
/// reads its output. Only where nobody waits for signals or broadcasts, which might tell the same.
pub(super) fn drop_barriers(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    if !steps_where(plan, |op| matches!(op, Op::Wait { .. } | Op::Broadcast { .. })).is_empty() {
        return None;
    }
    let frozen = plan.clone();
    let barriers = |child: usize, steps: std::ops::Range<usize>| {
        steps.filter(|&step| matches!(frozen.children[child].ops[step], Op::Barrier)).count()
    };
    let (earlier, later) =
        dependent(plan, rng, |a, b| a.0 != b.0 && barriers(b.0, 0..b.1) == barriers(a.0, 0..a.1) + 1)?;
    let runs = runs(plan);
    let number = barriers(runs[earlier].0, 0..runs[earlier].1);
    for child in &mut plan.children {
        let mut met = 0;
        child.ops.retain(|op| {
            let is_it = matches!(op, Op::Barrier) && met == number;
            met += usize::from(matches!(op, Op::Barrier));
            !is_it
        });
    }
    Some(format!("no barrier {number}, before which call {earlier} writes what call {later} reads behind it"))
}

pub(super) fn wait_too_long(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let &(child, step) = rng.pick(&steps_where(plan, |op| matches!(op, Op::Wait { .. })))?;
    let Op::Wait { child: on, signals } = &mut plan.children[child].ops[step] else { return None };
    *signals = u32::MAX;
    Some(format!("child {child}: a wait in step {step} for a signal that child {on} never gives"))
}
