//! Damage to transfers.

use super::super::rng::Rng;
use super::totals::tidy;
use super::{Step, insert, remove, share_bytes, slots_of, steps, steps_where};
use crate::plan::{Op, Plan};
use multigrain_program::Role;

fn await_of(plan: &Plan, child: usize, number: u32) -> Option<usize> {
    plan.children[child].ops.iter().position(|op| matches!(op, Op::Await { transfer } if *transfer == number))
}

/// A fetch, its transfer and the run that first needs it: the slot holds nothing else before.
fn needed_fetch(plan: &Plan, rng: &mut Rng) -> Option<(Step, u32, usize)> {
    let mut fetches = steps_where(plan, |op| matches!(op, Op::Fetch { .. }));
    rng.shuffle(&mut fetches);
    fetches.into_iter().find_map(|(child, step)| {
        let ops = &plan.children[child].ops;
        let Op::Fetch { transfer, slot } = ops[step] else { return None };
        let fetched_before = ops[..step].iter().any(|op| matches!(op, Op::Fetch { slot: s, .. } if *s == slot));
        let user = |op: &Op| slots_of(plan, child, op).into_iter().find(|(s, _)| *s == slot);
        let first = ops.iter().position(|op| user(op).is_some())?;
        let reads = user(&ops[first]).is_some_and(|(_, access)| access.reads());
        (!fetched_before && reads && first > step).then_some(((child, step), transfer, first))
    })
}

pub(super) fn drop_fetch(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let (at, transfer, _) = needed_fetch(plan, rng)?;
    let awaited = await_of(plan, at.0, transfer)?;
    remove(plan, (at.0, awaited));
    remove(plan, at);
    tidy(plan);
    Some(format!("child {}: no fetch in step {}", at.0, at.1))
}

pub(super) fn await_fetch_late(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let ((child, _), transfer, run) = needed_fetch(plan, rng)?;
    let awaited = await_of(plan, child, transfer)?;
    let op = remove(plan, (child, awaited));
    // The run has moved up by one.
    insert(plan, (child, run), op);
    Some(format!("child {child}: fetch {transfer} awaited after its use in step {run}"))
}

pub(super) fn drop_store(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let mut stores = steps_where(plan, |op| matches!(op, Op::Store { .. }));
    rng.shuffle(&mut stores);
    let block = |(child, step): Step| match plan.children[child].ops[step] {
        Op::Store { slot, .. } => Some(plan.children[child].slots[slot as usize].block),
        _ => None,
    };
    let only = |at: &&Step| {
        block(**at).is_some_and(|mine| {
            let overlaps = |other: &Step| {
                other != *at
                    && block(*other).is_some_and(|o| o.array == mine.array && o.region.intersects(&mine.region))
            };
            let role = plan.arrays[mine.array as usize].role;
            matches!(role, Role::Output | Role::InOut) && !stores.iter().any(overlaps)
        })
    };
    let &at = stores.iter().take(40).find(only)?;
    let Op::Store { transfer, .. } = plan.children[at.0].ops[at.1] else { return None };
    let awaited = await_of(plan, at.0, transfer)?;
    remove(plan, (at.0, awaited));
    remove(plan, at);
    tidy(plan);
    Some(format!("child {}: no store in step {}", at.0, at.1))
}

pub(super) fn drop_await(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let at = *rng.pick(&steps_where(plan, |op| matches!(op, Op::Await { .. })))?;
    remove(plan, at);
    Some(format!("child {}: no await in step {}", at.0, at.1))
}

pub(super) fn await_twice(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let at = *rng.pick(&steps_where(plan, |op| matches!(op, Op::Await { .. })))?;
    let op = plan.children[at.0].ops[at.1];
    insert(plan, at, op);
    Some(format!("child {}: step {} twice", at.0, at.1))
}

/// Whether a step changes the bytes of a slot.
fn changes(plan: &Plan, child: usize, op: &Op, slot: u32) -> bool {
    match op {
        Op::Fetch { slot: other, .. } => share_bytes(plan, child, slot, *other),
        Op::Broadcast { root, slot: other } => *root as usize != child && share_bytes(plan, child, slot, *other),
        Op::Run { .. } => slots_of(plan, child, op)
            .into_iter()
            .any(|(other, access)| access.writes() && share_bytes(plan, child, slot, other)),
        _ => false,
    }
}

pub(super) fn await_store_late(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let mut stores = steps_where(plan, |op| matches!(op, Op::Store { .. }));
    rng.shuffle(&mut stores);
    for (child, step) in stores {
        let ops = &plan.children[child].ops;
        let Op::Store { transfer, slot } = ops[step] else { continue };
        let Some(awaited) = await_of(plan, child, transfer) else { continue };
        let Some(after) = (awaited + 1..ops.len()).find(|&s| changes(plan, child, &ops[s], slot)) else { continue };
        let op = remove(plan, (child, awaited));
        insert(plan, (child, after), op);
        return Some(format!("child {child}: store {transfer} awaited after step {after}, which changes its bytes"));
    }
    None
}

pub(super) fn fetch_early(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let mut fetches = steps_where(plan, |op| matches!(op, Op::Fetch { .. }));
    rng.shuffle(&mut fetches);
    for (child, step) in fetches {
        let ops = &plan.children[child].ops;
        let Op::Fetch { slot, .. } = ops[step] else { continue };
        let uses =
            |op: &Op| slots_of(plan, child, op).iter().any(|&(s, _)| s != slot && share_bytes(plan, child, slot, s));
        let Some(run) = (0..step).rev().find(|&s| uses(&ops[s])) else { continue };
        let op = remove(plan, (child, step));
        insert(plan, (child, run), op);
        tidy(plan);
        return Some(format!("child {child}: step {step} fetches before the run in step {run} has used the bytes"));
    }
    None
}

pub(super) fn store_again(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let stores = steps_where(plan, |op| matches!(op, Op::Store { .. }));
    let &(child, step) = rng.pick(&stores)?;
    let Op::Store { transfer, slot } = plan.children[child].ops[step] else { return None };
    let awaited = await_of(plan, child, transfer)?;
    let fresh = steps(plan).count() as u32;
    insert(plan, (child, awaited + 1), Op::Store { transfer: fresh, slot });
    insert(plan, (child, awaited + 2), Op::Await { transfer: fresh });
    tidy(plan);
    Some(format!("child {child}: slot {slot} stored again after step {awaited}"))
}
