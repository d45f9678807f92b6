//! Damage to broadcasts.

use super::super::rng::Rng;
use super::totals::tidy;
use super::{Step, insert, remove, slots_of, steps_where};
use crate::plan::{Op, Plan};

fn any(plan: &Plan, rng: &mut Rng) -> Option<(Step, u32, u32)> {
    let &(child, step) = rng.pick(&steps_where(plan, |op| matches!(op, Op::Broadcast { .. })))?;
    let Op::Broadcast { root, slot } = plan.children[child].ops[step] else { return None };
    Some(((child, step), root, slot))
}

/// How many broadcasts come before a step of a child.
fn before(plan: &Plan, (child, step): Step) -> usize {
    plan.children[child].ops[..step].iter().filter(|op| matches!(op, Op::Broadcast { .. })).count()
}

/// One child thinks that another child has the block.
pub(super) fn other_root(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let ((child, step), root, slot) = any(plan, rng)?;
    let count = plan.children.len() as u32;
    let other = (root + 1 + rng.below(u64::from(count - 1)) as u32) % count;
    plan.children[child].ops[step] = Op::Broadcast { root: other, slot };
    tidy(plan);
    Some(format!("child {child}: the broadcast in step {step} from child {other} instead of {root}"))
}

/// One child takes part with another block.
pub(super) fn other_block(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let ((child, step), root, slot) = any(plan, rng)?;
    let slots = &plan.children[child].slots;
    let block = slots[slot as usize].block;
    let others: Vec<u32> = (0..slots.len() as u32).filter(|&other| slots[other as usize].block != block).collect();
    let &other = rng.pick(&others)?;
    plan.children[child].ops[step] = Op::Broadcast { root, slot: other };
    tidy(plan);
    Some(format!("child {child}: the broadcast in step {step} with slot {other} instead of {slot}"))
}

/// One child does not take part.
pub(super) fn drop_one(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let (at, ..) = any(plan, rng)?;
    remove(plan, at);
    tidy(plan);
    Some(format!("child {}: no broadcast in step {}", at.0, at.1))
}

/// There is no such broadcast, but one child at least reads the block.
pub(super) fn drop_all(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let (at, root, _) = any(plan, rng)?;
    let number = before(plan, at);
    let places: Vec<Step> = steps_where(plan, |op| matches!(op, Op::Broadcast { .. }))
        .into_iter()
        .filter(|&step| before(plan, step) == number)
        .collect();
    places.iter().find(|place| place.0 != root as usize && first_read(plan, **place).is_some())?;
    for place in places {
        remove(plan, place);
    }
    tidy(plan);
    Some(format!("no broadcast {number}"))
}

/// The root broadcasts before its fetch is awaited.
pub(super) fn before_its_fetch(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let mut places = steps_where(plan, |op| matches!(op, Op::Broadcast { .. }));
    rng.shuffle(&mut places);
    places.into_iter().find_map(|(child, step)| {
        let ops = &plan.children[child].ops;
        let Op::Broadcast { root, slot } = ops[step] else { return None };
        let issued = ops[..step].iter().rev().find_map(|op| match *op {
            Op::Fetch { transfer, slot: filled } if filled == slot => Some(transfer),
            _ => None,
        })?;
        if root as usize != child {
            return None;
        }
        let awaited = ops[..step].iter().position(|op| *op == Op::Await { transfer: issued })?;
        let op = remove(plan, (child, awaited));
        // The broadcast has moved up by one.
        insert(plan, (child, step), op);
        Some(format!("child {child}: fetch {issued} awaited behind its broadcast in step {step}"))
    })
}

/// The first run behind a broadcast that reads its block.
fn first_read(plan: &Plan, (child, step): Step) -> Option<usize> {
    let ops = &plan.children[child].ops;
    let Op::Broadcast { slot, .. } = ops[step] else { return None };
    let uses = |op: &Op| slots_of(plan, child, op).into_iter().find(|(used, _)| *used == slot);
    let first = (step + 1..ops.len()).find(|&at| uses(&ops[at]).is_some())?;
    uses(&ops[first]).is_some_and(|(_, access)| access.reads()).then_some(first)
}

/// A child takes part after it has used the block.
pub(super) fn behind_its_use(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let mut places = steps_where(plan, |op| matches!(op, Op::Broadcast { .. }));
    rng.shuffle(&mut places);
    places.into_iter().find_map(|(child, step)| {
        let Op::Broadcast { root, .. } = plan.children[child].ops[step] else { return None };
        if root as usize == child {
            return None;
        }
        let run = first_read(plan, (child, step))?;
        let op = remove(plan, (child, step));
        // The run has moved up by one.
        insert(plan, (child, run), op);
        Some(format!("child {child}: the broadcast in step {step} behind its use in step {run}"))
    })
}
