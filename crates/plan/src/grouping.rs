//! Pass "grouping": small calls become larger steps.
//!
//! In a shared address space a child that is done may take over work of its siblings. What is taken at once must be
//! worth the hand-over, so consecutive chains are grouped into batches of a certain predicted time. Batches that depend
//! on each other come in phases.

use crate::dependence::Dependence;
use crate::placement::Placement;
use crate::plan::{ChildPlan, Op, Places};
use crate::staging::{Problem, Signals, wait_for_siblings};

/// A batch is worth handing over when it takes this long, in seconds: some hundred times what a hand-over between two
/// cores costs.
const BATCH_SECONDS: f64 = 20e-6;

/// Phases in which every child has as much to do cost nothing; so much longer may a plan be for them.
const PHASES_COST: f64 = 1.02;

/// What the children of an edge do whose memories share one address space.
pub(crate) struct Views {
    pub(crate) children: Vec<ChildPlan>,
    /// Whether batches of one phase are independent, see [`crate::Plan::balanced`].
    pub(crate) balanced: bool,
    /// Predicted time in seconds, if nobody takes over anything.
    pub(crate) seconds: f64,
    /// What can be handed over least finely: the longest chain of each phase, added up, in seconds.
    pub(crate) longest_seconds: f64,
}

/// Plans the children of an edge whose memories share one address space: no copies, only runs in order. Where that
/// costs nothing, in phases: what depends on another chain comes in a later phase, and within a phase any child may
/// take over batches of others. Otherwise children keep to their own, with signals where a call on one must follow a
/// call on another.
pub(crate) fn views(problem: &Problem<'_>, children: usize, seconds: &dyn Fn(usize) -> f64) -> Views {
    let placement = problem.placement;
    let mut load = vec![0.0; children];
    let mut chain_seconds = vec![0.0; placement.chains];
    for &call in problem.order {
        let time = seconds(call as usize);
        load[placement.child_of(call as usize)] += time;
        chain_seconds[placement.chain_of[call as usize] as usize] += time;
    }
    let alone = Views {
        children: Vec::new(),
        balanced: false,
        seconds: load.into_iter().fold(0.0, f64::max),
        longest_seconds: chain_seconds.into_iter().fold(0.0, f64::max),
    };
    if children > 1 {
        let phases = phases(problem);
        let phased = in_phases(problem, &phases, children, seconds);
        // Like a batch, a phase must be worth the meeting at its end.
        let count = phases.iter().max().map_or(0, |&last| last + 1);
        let worth = phased.seconds >= f64::from(count) * BATCH_SECONDS;
        if placement.independent || worth && phased.seconds <= PHASES_COST * alone.seconds {
            return phased;
        }
    }
    let Problem { dependence, order, signals, .. } = *problem;
    Views { children: on_their_own(dependence, placement, order, signals, children), ..alone }
}

/// The phase of each call: after those of the calls of other chains that it follows, and not before those of its own
/// chain that come before it.
fn phases(problem: &Problem<'_>) -> Vec<u32> {
    let chain_of = &problem.placement.chain_of;
    let mut phase = vec![0u32; problem.order.len()];
    let mut of_chain = vec![0u32; problem.placement.chains];
    for &call in problem.order {
        let chain = chain_of[call as usize];
        let mut mine = of_chain[chain as usize];
        for p in &problem.dependence.predecessors[call as usize] {
            mine = mine.max(phase[p.call as usize] + u32::from(chain_of[p.call as usize] != chain));
        }
        (phase[call as usize], of_chain[chain as usize]) = (mine, mine);
    }
    phase
}

fn in_phases(problem: &Problem<'_>, phase: &[u32], children: usize, seconds: &dyn Fn(usize) -> f64) -> Views {
    let placement = problem.placement;
    let part = |&call: &u32| (phase[call as usize], placement.chain_of[call as usize]);
    let mut order = problem.order.to_vec();
    // Stable: a chain keeps its order.
    order.sort_by_key(part);
    let mut views =
        Views { children: vec![ChildPlan::default(); children], balanced: true, seconds: 0.0, longest_seconds: 0.0 };
    for phase in order.chunk_by(|a, b| part(a).0 == part(b).0) {
        let (mut load, mut longest) = (vec![0.0; children], 0.0f64);
        // For each child, the batch that is being made: its time, and its first step.
        let mut open: Vec<(f64, u32)> = views.children.iter().map(|plan| (0.0, plan.ops.len() as u32)).collect();
        for chain in phase.chunk_by(|a, b| part(a) == part(b)) {
            let child = placement.child_of(chain[0] as usize);
            let (plan, (time, first)) = (&mut views.children[child], &mut open[child]);
            plan.ops.extend(chain.iter().map(|&call| Op::Run { call, places: Places::Views }));
            let chain_seconds: f64 = chain.iter().map(|&call| seconds(call as usize)).sum();
            (load[child], longest) = (load[child] + chain_seconds, longest.max(chain_seconds));
            *time += chain_seconds;
            if *time >= BATCH_SECONDS {
                let end = plan.ops.len() as u32;
                plan.batches.push(*first..end);
                (*time, *first) = (0.0, end);
            }
        }
        for (plan, (_, first)) in views.children.iter_mut().zip(open) {
            if (first as usize) < plan.ops.len() {
                plan.batches.push(first..plan.ops.len() as u32);
            }
            plan.phases.push(plan.batches.len() as u32);
        }
        views.seconds += load.into_iter().fold(0.0, f64::max);
        views.longest_seconds += longest;
    }
    views
}

/// Every child does its own calls, with signals where a call on one must follow a call on another.
pub(crate) fn on_their_own(
    dependence: &Dependence,
    placement: &Placement,
    order: &[u32],
    signals: &Signals,
    children: usize,
) -> Vec<ChildPlan> {
    let mut plans = vec![ChildPlan::default(); children];
    let mut waited = vec![vec![0; children]; children];
    for &call in order {
        let child = placement.child_of(call as usize);
        let plan = &mut plans[child];
        wait_for_siblings((dependence, placement, signals), child, call, &mut waited[child], &mut plan.ops);
        plan.ops.push(Op::Run { call, places: Places::Views });
        if signals.number[call as usize] != 0 {
            plan.ops.push(Op::Signal);
        }
    }
    plans
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
