//! What can be seen without executing: slots lie where they may, transfers are numbered, issued and awaited once and
//! obey the edge's rules, scratch memory is set aside for leaves, totals are right.

use super::error::CheckError;
use super::problem::{BlockName, Direction, Problem};
use super::scope;
use crate::plan::{ChildPlan, Op, Plan, Slot, Traffic};
use multigrain_machine::TransferRules;
use multigrain_program::{ArrayDecl, Region};

/// The transfers of one child.
#[derive(Default)]
pub(super) struct Transfers {
    pub(super) list: Vec<Transfer>,
}

/// One transfer.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    pub(super) direction: Direction,
    pub(super) slot: u32,
    /// The step that awaits it.
    pub(super) awaited_at: u32,
}

/// Checks the slots of every child.
pub(super) fn slots(plan: &Plan, rules: &TransferRules) -> Result<(), CheckError> {
    for (number, child) in plan.children.iter().enumerate() {
        let mut staging_bytes = 0;
        for (slot_number, slot) in child.slots.iter().enumerate() {
            let fail = |problem| CheckError::new(plan, problem).of_child(number).on(plan, &slot.block);
            let slot_number = slot_number as u32;
            if slot.block.array as usize >= plan.arrays.len() {
                let (index, count) = (slot.block.array.into(), plan.arrays.len() as u64);
                return Err(fail(Problem::BadIndex { what: "array", index, count }));
            }
            scope::block(plan, &slot.block).map_err(fail)?;
            let element_bytes = plan.arrays[slot.block.array as usize].element.size_bytes();
            let bytes = slot.block.region.elements() * element_bytes;
            if slot.bytes != bytes {
                let (expected, found) = (bytes.to_string(), slot.bytes.to_string());
                return Err(fail(Problem::Differs { what: "bytes of a slot", expected, found }));
            }
            // The edge's rule, and what the processor needs to address an element. Where rules are enforced a slot lies as
            // its block does in the array, which `fragments` proves.
            let rule_bytes = if rules.strict { 1 } else { rules.alignment_bytes.max(1) };
            for alignment_bytes in [rule_bytes, element_bytes] {
                if !slot.offset_bytes.is_multiple_of(alignment_bytes) {
                    let offset_bytes = slot.offset_bytes;
                    return Err(fail(Problem::Misaligned { slot: slot_number, offset_bytes, alignment_bytes }));
                }
            }
            let Some(end_bytes) = owned_end(slot, plan.slot_unit_bytes) else {
                let (end_bytes, capacity_bytes) = (u64::MAX, plan.capacity_bytes);
                return Err(fail(Problem::BeyondCapacity { slot: slot_number, end_bytes, capacity_bytes }));
            };
            if end_bytes > plan.capacity_bytes {
                let capacity_bytes = plan.capacity_bytes;
                return Err(fail(Problem::BeyondCapacity { slot: slot_number, end_bytes, capacity_bytes }));
            }
            staging_bytes = staging_bytes.max(end_bytes);
        }
        let fail = |problem| CheckError::new(plan, problem).of_child(number);
        if child.staging_bytes != staging_bytes {
            let (expected, found) = (staging_bytes.to_string(), child.staging_bytes.to_string());
            return Err(fail(Problem::Differs { what: "bytes of staging memory", expected, found }));
        }
    }
    Ok(())
}

/// Where what a slot owns ends, unless beyond all numbers.
fn owned_end(slot: &Slot, unit_bytes: u64) -> Option<u64> {
    slot.offset_bytes.checked_add(slot.bytes)?.checked_next_multiple_of(unit_bytes.max(1))
}

/// Checks that slots, scratch memory and what is fixed fit into a child together, and that the scratch memory is
/// enough for the leaves that take theirs from it.
pub(super) fn capacity(plan: &Plan) -> Result<(), CheckError> {
    if plan.driver.views {
        return Ok(());
    }
    let parts = [plan.capacity_bytes, plan.scratch_bytes, plan.fixed_bytes];
    if parts.iter().try_fold(0u64, |sum, &bytes| sum.checked_add(bytes)).is_none_or(|sum| sum > plan.total_bytes) {
        let Plan { capacity_bytes, scratch_bytes, fixed_bytes, total_bytes, .. } = *plan;
        let problem = Problem::PartsExceedTotal { capacity_bytes, scratch_bytes, fixed_bytes, total_bytes };
        return Err(CheckError::new(plan, problem));
    }
    let mut used = vec![false; plan.classes.len()];
    plan.class_of.iter().for_each(|&class| used[class as usize] = true);
    for (number, class) in plan.classes.iter().enumerate().filter(|&(number, _)| used[number]) {
        let need_bytes = class.body.scratch_bytes();
        if need_bytes > plan.scratch_bytes {
            let call = plan.class_of.iter().position(|&c| c as usize == number).unwrap_or_default();
            let problem = Problem::TooLittleScratch { need_bytes, scratch_bytes: plan.scratch_bytes };
            return Err(CheckError::new(plan, problem).of_call(plan, call));
        }
    }
    Ok(())
}

/// Checks the numbers that steps name, the transfers of every child and the stated traffic. The slots have been
/// checked.
pub(super) fn steps(plan: &Plan, rules: &TransferRules) -> Result<Vec<Transfers>, CheckError> {
    let mut traffic = Traffic::default();
    let mut transfers = Vec::with_capacity(plan.children.len());
    for (number, child) in plan.children.iter().enumerate() {
        for (step, op) in child.ops.iter().enumerate() {
            names(plan, number, child, op).map_err(|p| CheckError::new(plan, p).at(plan, number, step))?;
        }
        transfers.push(child_transfers(plan, number, rules)?);
        for op in &child.ops {
            match *op {
                Op::Fetch { slot, .. } => traffic.bytes_down += child.slots[slot as usize].bytes,
                Op::Store { slot, .. } => traffic.bytes_up += child.slots[slot as usize].bytes,
                Op::Broadcast { root, slot } if root as usize != number => {
                    traffic.bytes_across += child.slots[slot as usize].bytes;
                    continue;
                }
                _ => continue,
            }
            traffic.transfers += 1;
        }
    }
    if traffic != plan.traffic {
        return Err(CheckError::new(plan, Problem::Traffic { stated: plan.traffic, counted: traffic }));
    }
    Ok(transfers)
}

fn names(plan: &Plan, number: usize, child: &ChildPlan, op: &Op) -> Result<(), Problem> {
    let exists = |what, index: u32, count: usize| {
        let (index, count) = (u64::from(index), count as u64);
        if index < count { Ok(()) } else { Err(Problem::BadIndex { what, index, count }) }
    };
    match *op {
        Op::Fetch { slot, .. } | Op::Store { slot, .. } => exists("slot", slot, child.slots.len()),
        Op::Run { call, .. } => exists("call", call, plan.calls.len()),
        Op::Wait { child, signals } if child as usize == number => Err(Problem::WaitsForItself { signals }),
        Op::Wait { child, .. } => exists("child", child, plan.children.len()),
        Op::Broadcast { .. } if !plan.driver.siblings => Err(Problem::NotBetweenSiblings { driver: plan.driver }),
        Op::Broadcast { root, slot } => {
            exists("child", root, plan.children.len()).and_then(|()| exists("slot", slot, child.slots.len()))
        }
        Op::Await { .. } | Op::Signal | Op::Barrier => Ok(()),
    }
}

fn child_transfers(plan: &Plan, number: usize, rules: &TransferRules) -> Result<Transfers, CheckError> {
    const NEVER: u32 = u32::MAX;
    let child = &plan.children[number];
    let count = child.ops.iter().filter(|op| matches!(op, Op::Fetch { .. } | Op::Store { .. })).count();
    let mut issued_at: Vec<Option<usize>> = vec![None; count];
    let mut list = vec![Transfer { direction: Direction::Fetch, slot: 0, awaited_at: NEVER }; count];
    let mut in_flight = 0;
    for (step, op) in child.ops.iter().enumerate() {
        let fail = |problem| CheckError::new(plan, problem).at(plan, number, step);
        match *op {
            Op::Fetch { transfer, slot } | Op::Store { transfer, slot } => {
                let Some(issued) = issued_at.get_mut(transfer as usize) else {
                    return Err(fail(Problem::BadIndex {
                        what: "transfer",
                        index: transfer.into(),
                        count: count as u64,
                    }));
                };
                if let Some(first) = issued.replace(step) {
                    return Err(fail(Problem::IssuedTwice { transfer, first }));
                }
                let direction = if matches!(op, Op::Fetch { .. }) { Direction::Fetch } else { Direction::Store };
                list[transfer as usize] = Transfer { direction, slot, awaited_at: NEVER };
                in_flight += 1;
                if let Some(max) = rules.in_flight_max
                    && in_flight > max
                {
                    return Err(fail(Problem::TooManyInFlight { found: in_flight, max }));
                }
                if rules.strict {
                    fragments(plan, child, slot, rules).map_err(fail)?;
                }
            }
            Op::Await { transfer } => {
                if !matches!(issued_at.get(transfer as usize), Some(Some(_))) {
                    return Err(fail(Problem::AwaitedUnissued { transfer }));
                }
                let awaited_at = &mut list[transfer as usize].awaited_at;
                if *awaited_at != NEVER {
                    return Err(fail(Problem::AwaitedTwice { transfer, first: *awaited_at as usize }));
                }
                *awaited_at = step as u32;
                in_flight -= 1;
            }
            Op::Run { .. } | Op::Signal | Op::Wait { .. } | Op::Barrier | Op::Broadcast { .. } => {}
        }
    }
    for (transfer, t) in list.iter().enumerate() {
        if t.awaited_at == NEVER {
            let problem = Problem::NeverAwaited { transfer: transfer as u32, direction: t.direction };
            let step = issued_at[transfer].unwrap_or_default();
            return Err(CheckError::new(plan, problem).at(plan, number, step));
        }
    }
    Ok(Transfers { list })
}

/// What the Cell's memory flow controller moves (Cell Broadband Engine Architecture, section 7.1): commands of 1, 2, 4, 8
/// or a multiple of 16 bytes between addresses that are alike modulo 16. A run of any length is a few short ones and one
/// or more long ones, if it begins at the same place within a unit on both sides. Arrays begin at aligned addresses.
fn fragments(plan: &Plan, child: &ChildPlan, slot: u32, rules: &TransferRules) -> Result<(), Problem> {
    let slot = &child.slots[slot as usize];
    let (region, array) = (&slot.block.region, &plan.arrays[slot.block.array as usize]);
    let (unit, size_bytes) = (rules.alignment_bytes.max(1), array.element.size_bytes());
    alike(region, array, slot.offset_bytes, unit).map_err(|(parent_bytes, slot_bytes)| {
        let (runs, elements) = region.fragments(array.shape);
        let bytes = elements * size_bytes;
        Problem::Unlike { runs, bytes, parent_bytes, slot_bytes, alignment_bytes: unit }
    })
}

/// Plans of parts take what they are given to begin with a unit, and rows to follow each other as in arrays of their own.
pub(super) fn parts(plan: &Plan, rules: &TransferRules) -> Result<(), Problem> {
    let unit = rules.alignment_bytes.max(1);
    for (call, args) in plan.calls.iter().map(|call| &call.args).enumerate().filter(|_| rules.strict) {
        for arg in args {
            let array = &plan.arrays[arg.array as usize];
            let problem = |(parent_bytes, part_bytes)| Problem::UnlikePart {
                call,
                block: BlockName::new(&plan.arrays, arg),
                parent_bytes,
                part_bytes,
                alignment_bytes: unit,
            };
            alike(&arg.region, array, 0, unit).map_err(problem)?;
        }
    }
    Ok(())
}

/// Whether all rows of a region begin as far into a unit in the array, which begins with one, as where they lie one behind the
/// other from an address.
///
/// # Errors
/// How far one begins in the array and there, where they do not.
fn alike(region: &Region, array: &ArrayDecl, address_bytes: u64, unit: u64) -> Result<(), (u64, u64)> {
    let alike = |of_array: u64, there: u64| match (of_array % unit, there % unit) {
        (of_array, there) if of_array == there => Ok(()),
        unlike => Err(unlike),
    };
    let rank = region.rank();
    // Bytes from one index to the next along each dimension, in the array and there.
    let step = |lens: &[u64], d: usize| lens[d + 1..].iter().product::<u64>() * array.element.size_bytes();
    let steps = |d: usize| (step(array.shape.dims(), d), step(region.len(), d));
    let first: u64 = (0..rank).map(|d| region.start()[d] * steps(d).0).sum();
    alike(first, address_bytes)?;
    for d in (0..rank).filter(|&d| region.len()[d] > 1) {
        let (of_array, there) = steps(d);
        alike(first + of_array, address_bytes + there)?;
    }
    Ok(())
}
