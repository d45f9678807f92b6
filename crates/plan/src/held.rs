//! What the plans of a program take together: they are counted while they are made, so that those which no memory has room for
//! are not made to the end.

use crate::error::PlanError;
use crate::facts::TaskRef;
use crate::plan::Plan;
use crate::planner::Planner;
use std::sync::Arc;

/// So many parts take as much of a plan as one call with its steps: shapes and places of the arguments alone.
const PARTS_A_CALL: u64 = 4;

impl Plan {
    /// How many calls with steps, slots and hazards take as much memory as this list does, without the plans that it holds.
    pub fn listed_calls(&self) -> u64 {
        let calls = self.calls.len() as u64;
        if self.is_in_parts() { calls.div_ceil(PARTS_A_CALL) } else { calls }
    }
}

impl Planner<'_> {
    /// Counts a plan of a task that was made.
    ///
    /// # Errors
    /// [`PlanError::TooLong`] when all that are held take more than there is room for.
    pub(crate) fn hold(&mut self, task: &TaskRef, plan: &Plan) -> Result<(), PlanError> {
        self.held += plan.listed_calls();
        let most = self.options.held_max;
        if self.held > most {
            self.forget_unused();
        }
        match self.held {
            calls if calls > most => {
                Err(PlanError::TooLong { task: task.name().to_owned(), calls, most, enough: None })
            }
            _ => Ok(()),
        }
    }

    /// How many calls the plans list that were made, of which some may not have been chosen.
    #[cfg(feature = "testing")]
    pub fn listed_calls(&self) -> u64 {
        self.held
    }

    /// Forgets plans that were looked at and not chosen.
    fn forget_unused(&mut self) {
        loop {
            let before = self.plans.len();
            self.plans.retain(|_, plan| Arc::strong_count(plan) > 1);
            // What they held may be used by nobody else.
            if self.plans.len() == before {
                break;
            }
        }
        self.held = self.plans.values().map(|plan| plan.listed_calls()).sum();
    }
}
