//! What is known of a plan before it is executed.

use super::super::leaves::{self, LeafCost};
use super::barrier::schedules_of;
use multigrain_machine::{Memory, Wire};
use multigrain_plan::{Body, CallClass, Op, Plan};
use multigrain_program::{ArrayDecl, Region};
use multigrain_schedule::Schedules;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Of one plan.
pub(super) struct Facts {
    /// For each class of calls, what its leaf costs.
    pub(super) costs: Vec<Option<LeafCost>>,
    /// For each phase of a plan whose batches any child may take, those of each child.
    pub(super) phases: Vec<Vec<Range<u32>>>,
    /// The only child that has work, if the others are not woken for it.
    pub(super) only: Option<usize>,
    /// Its arrays, as their blocks lie in the memory above.
    pub(super) arrays: Vec<ArrayDecl>,
    /// For each array, whether no element of it is used by two children.
    pub(super) divided: Vec<bool>,
    /// What its children do at a barrier, if it has any.
    pub(super) barrier: Option<Rc<Schedules>>,
    /// Whether it has broadcasts.
    pub(super) broadcasts: bool,
}

impl Facts {
    /// `child` is what the children are, unless groups of kinds; `arrays` are the plan's, as their blocks lie in the memory above.
    pub(super) fn of(plan: &Plan, child: Option<&Memory>, arrays: Vec<ArrayDecl>) -> Facts {
        let cost = |class: &CallClass| match class.body {
            Body::Leaf { .. } => child.map(|child| leaves::cost(child, plan, class)),
            Body::Inner(_) => None,
        };
        let children = plan.children.len();
        let phase = |phase| plan.children.iter().map(|child| child.phase(phase)).collect();
        let phases = if plan.claims() { (0..plan.phases()).map(phase).collect() } else { Vec::new() };
        let divided = match plan.driver.wire {
            Wire::Aggregate => divided(plan),
            _ => vec![false; plan.arrays.len()],
        };
        let meets = plan.children.iter().any(|child| child.ops.contains(&Op::Barrier));
        let barrier = if meets { schedules_of(children) } else { None };
        let mut ops = plan.children.iter().flat_map(|child| &child.ops);
        let broadcasts = ops.any(|op| matches!(op, Op::Broadcast { .. }));
        Facts {
            costs: plan.classes.iter().map(cost).collect(),
            phases,
            only: plan.alone(),
            arrays,
            divided,
            barrier,
            broadcasts,
        }
    }
}

/// For each array of a plan, whether no element of it is used by two children: blocks are used by one child each, and
/// together have no more elements than the array.
fn divided(plan: &Plan) -> Vec<bool> {
    let mut users: HashMap<(u32, &Region), usize> = HashMap::new();
    let mut elements = vec![0u64; plan.arrays.len()];
    let mut divided = vec![true; plan.arrays.len()];
    for (child, steps) in plan.children.iter().enumerate() {
        for slot in &steps.slots {
            let (array, region) = (slot.block.array, &slot.block.region);
            match users.insert((array, region), child) {
                None => elements[array as usize] += region.elements(),
                Some(user) if user != child => divided[array as usize] = false,
                Some(_) => {}
            }
        }
    }
    for ((divided, elements), array) in divided.iter_mut().zip(elements).zip(&plan.arrays) {
        *divided &= elements <= array.shape.elements();
    }
    divided
}
