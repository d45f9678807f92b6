//! What the cost walk says of a plan.

use crate::cost::children_seconds;
use crate::facts::facts;
use crate::plan::Plan;
use multigrain_machine::{Layout, Machine};

/// The time in seconds that the cost walk predicts for the children of a plan of the root edge, on any machine whose root has
/// as many; `None` where nothing is below its root.
pub fn walked_seconds(plan: &Plan, machine: &Machine) -> Option<f64> {
    let facts = facts(machine, &Layout::of(machine), plan.edge, 0)?;
    let seconds = |call: usize| {
        let class = &plan.classes[plan.class_of[call] as usize];
        let scattered = facts.scattered_call_seconds(&plan.calls[call], &plan.arrays);
        facts.run_seconds(&*plan.tasks[class.task as usize], &class.shape) + scattered
    };
    Some(children_seconds(&plan.children, &plan.arrays, &seconds, facts.edge, facts.workers))
}
