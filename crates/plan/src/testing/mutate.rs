//! Damage to plans, each kind always wrong: there is no execution, however lucky, in which it could be harmless for
//! every driver.
//!
//! Totals (transfer numbers, staging bytes, traffic) are made right again after each change, so that only what the
//! plan does is wrong and not its bookkeeping.

mod broadcasts;
mod calls;
mod reductions;
mod slots;
mod totals;
mod transfers;

use super::rng::Rng;
use crate::plan::{Body, Op, Places, Plan};
use multigrain_program::{Access, Region};
use std::sync::Arc;

/// Does one kind of damage, or nothing where the plan offers no place for it; says what it did.
type Damage = fn(&mut Plan, &mut Rng) -> Option<String>;

const DAMAGES: [Damage; 38] = [
    transfers::drop_fetch,
    transfers::await_fetch_late,
    transfers::drop_store,
    transfers::drop_await,
    transfers::await_store_late,
    transfers::fetch_early,
    transfers::store_again,
    transfers::await_twice,
    broadcasts::other_root,
    broadcasts::other_block,
    broadcasts::drop_one,
    broadcasts::drop_all,
    broadcasts::before_its_fetch,
    broadcasts::behind_its_use,
    slots::wrong_place,
    slots::overlap,
    slots::misalign,
    slots::move_block,
    slots::wrong_array_part,
    calls::drop_run,
    calls::repeat_run,
    calls::swap_dependent,
    calls::wrong_class,
    calls::cut_batch,
    calls::join_phases,
    calls::drop_waits,
    calls::drop_signal,
    calls::drop_barrier,
    calls::drop_barriers,
    calls::signal_early,
    calls::wait_too_long,
    reductions::exchange_operands,
    reductions::exchange_contributions,
    reductions::merge_twice,
    reductions::other_operator,
    reductions::other_tree,
    totals::traffic,
    totals::capacity,
];

/// One random damaging change to a plan that is right, or to one of its inner plans: the damaged plan and what was
/// done. `None` when the plan offers no place for any damage (it has no calls).
pub fn mutate(plan: &Plan, rng: &mut Rng) -> Option<(Plan, String)> {
    let mut damaged = plan.clone();
    let mut used = vec![false; plan.classes.len()];
    plan.class_of.iter().for_each(|&class| used[class as usize] = true);
    let inner: Vec<usize> =
        (0..used.len()).filter(|&c| used[c] && matches!(plan.classes[c].body, Body::Inner(_))).collect();
    if rng.percent(40)
        && let Some(&class) = rng.pick(&inner)
        && let Body::Inner(inner) = &plan.classes[class].body
        && let Some((inner, what)) = mutate(inner, rng)
    {
        damaged.classes[class].body = Body::Inner(Arc::new(inner));
        return Some((damaged, format!("in the plan of class {class}: {what}")));
    }
    let mut damages = DAMAGES;
    rng.shuffle(&mut damages);
    let what = damages.iter().find_map(|damage| damage(&mut damaged, rng))?;
    Some((damaged, what))
}

/// As [`mutate`], of the plan's own calls only and only to the tree of a reduction. `None` when it reduces nothing.
pub fn mutate_reduction(plan: &Plan, rng: &mut Rng) -> Option<(Plan, String)> {
    let mut damaged = plan.clone();
    let mut damages: [Damage; 5] = [
        reductions::exchange_operands,
        reductions::exchange_contributions,
        reductions::merge_twice,
        reductions::other_operator,
        reductions::other_tree,
    ];
    rng.shuffle(&mut damages);
    let what = damages.iter().find_map(|damage| damage(&mut damaged, rng))?;
    Some((damaged, what))
}

/// Child and step.
type Step = (usize, usize);

fn steps(plan: &Plan) -> impl Iterator<Item = (Step, Op)> + '_ {
    let of_child = |(child, c): (usize, &'_ crate::plan::ChildPlan)| {
        c.ops.iter().enumerate().map(|(step, &op)| ((child, step), op)).collect::<Vec<_>>()
    };
    plan.children.iter().enumerate().flat_map(of_child)
}

fn steps_where(plan: &Plan, fits: impl Fn(&Op) -> bool) -> Vec<Step> {
    steps(plan).filter(|(_, op)| fits(op)).map(|(at, _)| at).collect()
}

/// The slots of a run with the accesses of the call, in order of the parameters.
fn slots_of(plan: &Plan, child: usize, op: &Op) -> Vec<(u32, Access)> {
    let &Op::Run { call, places: Places::Slots { first } } = op else { return Vec::new() };
    let params = plan.tasks[plan.calls[call as usize].task as usize].params();
    let places = plan.children[child].places.iter().skip(first as usize);
    places.copied().zip(params.iter().map(|p| p.access)).collect()
}

fn share_bytes(plan: &Plan, child: usize, a: u32, b: u32) -> bool {
    let (a, b) = (&plan.children[child].slots[a as usize], &plan.children[child].slots[b as usize]);
    a.offset_bytes < b.offset_bytes + b.bytes && b.offset_bytes < a.offset_bytes + a.bytes
}

/// For each call, where it runs.
fn runs(plan: &Plan) -> Vec<Step> {
    let mut runs = vec![(0, 0); plan.calls.len()];
    for (at, op) in steps(plan) {
        if let Op::Run { call, .. } = op {
            runs[call as usize] = at;
        }
    }
    runs
}

/// A random call and an earlier one whose output it reads directly, such that the two runs satisfy a condition.
fn dependent(plan: &Plan, rng: &mut Rng, fits: impl Fn(Step, Step) -> bool) -> Option<(usize, usize)> {
    let runs = runs(plan);
    for _ in 0..60 {
        let later = rng.below(plan.calls.len() as u64) as usize;
        let call = &plan.calls[later];
        let params = plan.tasks[call.task as usize].params();
        for (arg, _) in call.args.iter().zip(params).filter(|(_, p)| p.access.reads()) {
            let writes = |earlier: &usize| writes(plan, *earlier, arg.array, &arg.region);
            if let Some(earlier) = (0..later).rev().find(writes)
                && fits(runs[earlier], runs[later])
            {
                return Some((earlier, later));
            }
        }
    }
    None
}

fn writes(plan: &Plan, call: usize, array: u32, region: &Region) -> bool {
    let call = &plan.calls[call];
    let params = plan.tasks[call.task as usize].params();
    let mut written = call.args.iter().zip(params).filter(|(_, p)| p.access.writes());
    written.any(|(arg, _)| arg.array == array && arg.region.intersects(region))
}

fn remove(plan: &mut Plan, (child, step): Step) -> Op {
    let child = &mut plan.children[child];
    for batch in &mut child.batches {
        batch.start -= u32::from(batch.start as usize > step);
        batch.end -= u32::from(batch.end as usize > step);
    }
    child.ops.remove(step)
}

/// Inserts a step before another, into the same batch.
fn insert(plan: &mut Plan, (child, step): Step, op: Op) {
    let child = &mut plan.children[child];
    for batch in &mut child.batches {
        batch.start += u32::from(batch.start as usize > step);
        batch.end += u32::from(batch.end as usize > step);
    }
    child.ops.insert(step, op);
}
