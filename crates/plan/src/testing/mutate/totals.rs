//! Totals: made right after other damage, or damaged themselves.

use super::super::rng::Rng;
use crate::plan::{Op, Plan, Traffic};

/// Numbers transfers as they are issued, and counts staging memory and traffic again.
pub(super) fn tidy(plan: &mut Plan) {
    let mut traffic = Traffic::default();
    for (own, child) in plan.children.iter_mut().enumerate() {
        let mut numbers = Vec::new();
        for op in &mut child.ops {
            if let Op::Fetch { transfer, slot } | Op::Store { transfer, slot } = op {
                let number = numbers.len() as u32;
                numbers.push(std::mem::replace(transfer, number));
                let bytes = child.slots[*slot as usize].bytes;
                if let Op::Fetch { .. } = op { traffic.bytes_down += bytes } else { traffic.bytes_up += bytes }
            }
            if let Op::Broadcast { root, slot } = *op
                && root as usize != own
            {
                traffic.bytes_across += child.slots[slot as usize].bytes;
            }
        }
        for op in &mut child.ops {
            if let Op::Await { transfer } = op {
                *transfer = numbers.iter().position(|n| n == transfer).map_or(u32::MAX, |n| n as u32);
            }
        }
        traffic.transfers += numbers.len() as u64;
        let unit = plan.slot_unit_bytes;
        child.staging_bytes = child.slots.iter().map(|s| s.owned_bytes(unit).end).max().unwrap_or(0);
        let more = child.staging_bytes.saturating_sub(plan.capacity_bytes);
        plan.capacity_bytes += more;
        plan.total_bytes += more;
    }
    plan.traffic = traffic;
}

pub(super) fn traffic(plan: &mut Plan, rng: &mut Rng) -> Option<String> {
    let total = match rng.below(4) {
        0 => &mut plan.traffic.bytes_down,
        1 => &mut plan.traffic.bytes_up,
        2 => &mut plan.traffic.bytes_across,
        _ => &mut plan.traffic.transfers,
    };
    *total += 1;
    Some("one too many in the traffic".into())
}

pub(super) fn capacity(plan: &mut Plan, _: &mut Rng) -> Option<String> {
    let peak = plan.children.iter().map(|c| c.staging_bytes).max()?;
    plan.capacity_bytes = peak.checked_sub(1)?;
    Some(format!("a capacity of {} bytes", plan.capacity_bytes))
}
