//! Pass "grouping": small calls become larger steps.
//!
//! In a shared address space a child that is done may take over work of its siblings. What is taken at once must be
//! worth the hand-over, so consecutive chains are grouped into batches of a certain predicted time.

use crate::dependence::Dependence;
use crate::placement::Placement;
use crate::plan::{ChildPlan, Op, Places};
use crate::staging::{Problem, Signals, wait_for_siblings};

/// A batch is worth handing over when it takes this long, in seconds: some hundred times what a hand-over between two
/// cores costs.
const BATCH_SECONDS: f64 = 20e-6;

/// Plans the children of an edge whose memories share one address space: no copies, only runs in order, and signals
/// where a call on one child must follow a call on another. The second result says whether batches are independent.
pub(crate) fn views(problem: &Problem<'_>, children: usize, seconds: &dyn Fn(usize) -> f64) -> (Vec<ChildPlan>, bool) {
    let mut plans = vec![ChildPlan::default(); children];
    let balanced = problem.placement.independent && children > 1;
    let mut order = problem.order.to_vec();
    if balanced {
        order.sort_by_key(|&c| problem.placement.chain_of[c as usize]);
    }
    let mut waited = vec![vec![0; children]; children];
    let mut batch: Vec<(f64, u32)> = vec![(0.0, 0); children];
    for (at, &call) in order.iter().enumerate() {
        let child = problem.placement.child_of(call as usize);
        let plan = &mut plans[child];
        wait_for_siblings(problem, child, call, &mut waited[child], &mut plan.ops);
        plan.ops.push(Op::Run { call, places: Places::Views });
        if problem.signals.number[call as usize] != 0 {
            plan.ops.push(Op::Signal);
        }
        if balanced {
            let (time, first) = &mut batch[child];
            *time += seconds(call as usize);
            let chain = |c: u32| problem.placement.chain_of[c as usize];
            let chain_ends = order.get(at + 1).is_none_or(|&next| chain(next) != chain(call));
            if chain_ends && *time >= BATCH_SECONDS {
                let end = plan.ops.len() as u32;
                plan.batches.push(*first..end);
                (*time, *first) = (0.0, end);
            }
        }
    }
    if balanced {
        for (plan, (_, first)) in plans.iter_mut().zip(batch) {
            if (first as usize) < plan.ops.len() {
                plan.batches.push(first..plan.ops.len() as u32);
            }
        }
    }
    (plans, balanced)
}

/// Which calls signal, and as which number on their child.
pub(crate) fn signals(dependence: &Dependence, placement: &Placement, order: &[u32], children: usize) -> Signals {
    let mut number = vec![0; order.len()];
    if children == 1 || placement.independent {
        return Signals { number };
    }
    let mut followed = vec![false; order.len()];
    for (call, predecessors) in dependence.predecessors.iter().enumerate() {
        for p in predecessors {
            if placement.child_of(call) != placement.child_of(p.call as usize) {
                followed[p.call as usize] = true;
            }
        }
    }
    let mut given = vec![0; children];
    for &call in order {
        if followed[call as usize] {
            let child = placement.child_of(call as usize);
            given[child] += 1;
            number[call as usize] = given[child];
        }
    }
    Signals { number }
}

/// For each call, one bit an argument: whether another block or another child sees what the call writes there, so
/// that it must be in the parent memory at once.
pub(crate) fn seen_outside(dependence: &Dependence, placement: &Placement) -> Vec<u8> {
    let mut seen = vec![0u8; dependence.uses.len()];
    for (call, predecessors) in dependence.predecessors.iter().enumerate() {
        for p in predecessors {
            let writer = p.call as usize;
            let outside = p.block != p.mine || placement.child_of(call) != placement.child_of(writer);
            if outside
                && let Some(i) = dependence.uses[writer].iter().position(|u| u.block == p.block && u.access.writes())
            {
                seen[writer] |= 1 << i;
            }
        }
    }
    seen
}
