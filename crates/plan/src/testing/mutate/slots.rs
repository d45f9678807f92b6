//! Damage to slots.

use super::super::rng::Rng;
use super::totals::tidy;
use super::{slots_of, steps_where};
use crate::plan::{Op, Places, Plan};
use multigrain_program::{Arg, Region};

fn random_run(plan: &Plan, rng: &mut Rng) -> Option<(usize, Op)> {
    let runs = steps_where(plan, |op| matches!(op, Op::Run { places: Places::Slots { .. }, .. }));
    let &(child, step) = rng.pick(&runs)?;
    Some((child, plan.children[child].ops[step]))
}

pub(super) fn wrong_place(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let (child, op) = random_run(plan, rng)?;
    let Op::Run { call, places: Places::Slots { first } } = op else { return None };
    let argument = rng.below(slots_of(plan, child, &op).len() as u64) as usize;
    let c = &mut plan.children[child];
    let place = &mut c.places[first as usize + argument];
    let block = c.slots[*place as usize].block;
    let others: Vec<u32> = (0..c.slots.len() as u32).filter(|&s| c.slots[s as usize].block != block).collect();
    *place = *rng.pick(&others)?;
    Some(format!("child {child}: argument {argument} of call {call} in slot {place}"))
}

pub(super) fn overlap(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let (child, op) = random_run(plan, rng)?;
    let slots = slots_of(plan, child, &op);
    let (a, _) = *rng.pick(&slots)?;
    let others: Vec<u32> = slots.iter().map(|s| s.0).filter(|&s| s != a).collect();
    let b = *rng.pick(&others)?;
    let c = &mut plan.children[child];
    c.slots[a as usize].offset_bytes = c.slots[b as usize].offset_bytes;
    tidy(plan);
    Some(format!("child {child}: slot {a} at the bytes of slot {b}, both needed by one run"))
}

pub(super) fn misalign(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let (child, op) = random_run(plan, rng)?;
    let (number, _) = *rng.pick(&slots_of(plan, child, &op))?;
    let slot = &mut plan.children[child].slots[number as usize];
    if plan.arrays[slot.block.array as usize].element.size_bytes() == 1 {
        return None;
    }
    slot.offset_bytes += 1;
    tidy(plan);
    Some(format!("child {child}: slot {number} shifted by one byte"))
}

pub(super) fn move_block(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let (child, op) = random_run(plan, rng)?;
    let (number, _) = *rng.pick(&slots_of(plan, child, &op))?;
    let slot = &mut plan.children[child].slots[number as usize];
    let (region, shape) = (slot.block.region, plan.arrays[slot.block.array as usize].shape);
    let mut start = region.start().to_vec();
    let d = rng.below(start.len() as u64) as usize;
    if region.end(d) < shape.dims()[d] {
        start[d] += 1;
    } else {
        start[d] = start[d].checked_sub(1)?;
    }
    slot.block.region = Region::new(&start, region.len());
    Some(format!("child {child}: slot {number} holds {} instead of {region}", slot.block.region))
}

/// The same part of another array of the same type.
pub(super) fn wrong_array_part(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let (child, op) = random_run(plan, rng)?;
    let (number, _) = *rng.pick(&slots_of(plan, child, &op))?;
    let block = plan.children[child].slots[number as usize].block;
    let mine = &plan.arrays[block.array as usize];
    let fits = |&a: &u32| {
        let other = &plan.arrays[a as usize];
        a != block.array
            && (other.element, other.shape.rank()) == (mine.element, mine.shape.rank())
            && Region::whole(other.shape).contains(&block.region)
    };
    let others: Vec<u32> = (0..plan.arrays.len() as u32).filter(fits).collect();
    let array = *rng.pick(&others)?;
    plan.children[child].slots[number as usize].block = Arg { array, ..block };
    Some(format!("child {child}: slot {number} holds a part of array {array}"))
}
