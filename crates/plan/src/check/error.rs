//! Where a plan is wrong.

use super::problem::{BlockName, Problem};
use crate::plan::{Op, Plan};
use multigrain_program::Arg;
use std::fmt;

/// A plan that does not do what its calls mean: where, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{site}{problem}")]
pub struct CheckError {
    /// Where it is.
    pub site: Box<Site>,
    /// What it is.
    pub problem: Problem,
}

/// Where in a plan something is wrong; each part is given as far as it applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The edge, as `parent -> child`.
    pub edge: String,
    /// Number of the child.
    pub child: Option<usize>,
    /// Index of the step among the child's steps.
    pub op: Option<usize>,
    /// Number of the call in the plan.
    pub call: Option<usize>,
    /// Name of the task called.
    pub task: Option<String>,
    /// The block concerned.
    pub block: Option<BlockName>,
}

impl fmt::Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.array, self.region)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan of {}: ", self.edge)?;
        if let Some(child) = self.child {
            write!(f, "child {child}")?;
            if let Some(op) = self.op {
                write!(f, ", step {op}")?;
            }
            write!(f, ": ")?;
        }
        if let Some(call) = self.call {
            write!(f, "call {call}")?;
            if let Some(task) = &self.task {
                write!(f, " of {task}")?;
            }
            write!(f, ": ")?;
        }
        if let Some(block) = &self.block {
            write!(f, "block {block}: ")?;
        }
        Ok(())
    }
}

impl CheckError {
    pub(super) fn new(plan: &Plan, problem: Problem) -> CheckError {
        let site = Site { edge: format!("{} -> {}", plan.parent, plan.child), ..Site::default() };
        CheckError { site: Box::new(site), problem }
    }

    /// The same error, at a step of a child.
    pub(super) fn at(mut self, plan: &Plan, child: usize, op: usize) -> CheckError {
        self.site.child = Some(child);
        self.site.op = Some(op);
        let Some(child) = plan.children.get(child) else { return self };
        match child.ops.get(op) {
            Some(Op::Run { call, .. }) => self.of_call(plan, *call as usize),
            Some(Op::Fetch { slot, .. } | Op::Store { slot, .. } | Op::Broadcast { slot, .. }) => {
                match child.slots.get(*slot as usize) {
                    Some(slot) => self.on(plan, &slot.block),
                    None => self,
                }
            }
            _ => self,
        }
    }

    /// The same error, of a child.
    pub(super) fn of_child(mut self, child: usize) -> CheckError {
        self.site.child = Some(child);
        self
    }

    /// The same error, of a call.
    pub(super) fn of_call(mut self, plan: &Plan, call: usize) -> CheckError {
        self.site.call = Some(call);
        let task = plan.calls.get(call).and_then(|call| plan.tasks.get(call.task as usize));
        self.site.task = task.map(|task| task.name().to_owned());
        self
    }

    /// The same error, of a block.
    pub(super) fn on(mut self, plan: &Plan, block: &Arg) -> CheckError {
        self.site.block = Some(BlockName::new(&plan.arrays, block));
        self
    }
}
