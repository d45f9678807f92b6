//! Why calls of tasks with stages have to be taken apart on an edge ([`crate::stages`] does it), and how long a list that makes.

use crate::error::PlanError;
use crate::facts::{EdgeFacts, TaskRef};
use crate::loops::turns;
use crate::plan::PassReport;
use crate::planner::Planner;
use crate::scope::{Key, Scope, identity};
use crate::stages::{Apart, take_apart};
use crate::ways::Ways;
use multigrain_machine::readable_bytes;
use multigrain_program::{Call, CallShape};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// For calls of each task and shape: why they have to be taken apart, if they have to be.
#[derive(Default)]
pub(crate) struct Reasons(FxHashMap<Key, Option<String>>);

impl Planner<'_> {
    /// The calls of a scope with those taken apart that have to be, and a line on each; `None` where no task has stages.
    pub(crate) fn taken_apart(
        &mut self,
        facts: &EdgeFacts<'_>,
        scope: &Scope,
        reasons: &mut Reasons,
        ways: &mut Ways,
    ) -> Result<Option<(Scope, Vec<PassReport>)>, PlanError> {
        take_apart(scope, |task, shape| {
            let key = (identity(task), shape.clone());
            if let Some(why) = reasons.0.get(&key) {
                return Ok(why.clone());
            }
            let why = self.reason(facts, task, shape)?;
            ways.note_apart(task.name(), why.is_some());
            reasons.0.insert(key, why.clone());
            Ok::<_, PlanError>(why)
        })
    }

    /// How many calls those of a scope would be, listed, if some of them are taken apart: found without a list of all. `None` where none is.
    pub(crate) fn turns_apart(
        &mut self,
        facts: &EdgeFacts<'_>,
        scope: &Scope,
        reasons: &mut Reasons,
        ways: &mut Ways,
    ) -> Result<Option<Apart>, PlanError> {
        let (mut all, mut stages) = (0_u64, 0_u64);
        let mut known: FxHashMap<Key, (u64, u64)> = FxHashMap::default();
        for call in scope.calls.iter() {
            let key = (identity(&scope.tasks[call.task as usize]), call.shape());
            let (listed, apart) = match known.get(&key) {
                Some(&counts) => counts,
                None => {
                    let one = Scope { calls: Arc::new(vec![Call::clone(call)]), ..scope.clone() };
                    let taken = self.taken_apart(facts, &one, reasons, ways)?;
                    let one = taken.map_or(one, |(apart, _)| apart);
                    let counts = (self.turns(facts, &one)?.all, one.calls.len() as u64);
                    *known.entry(key).or_insert(counts)
                }
            };
            all = all.saturating_add(listed);
            stages += apart;
        }
        Ok((stages > scope.calls.len() as u64).then_some(Apart { listed: all, stages }))
    }

    /// Why a call has to be taken apart on an edge, if it has to be.
    fn reason(
        &mut self,
        facts: &EdgeFacts<'_>,
        task: &TaskRef,
        shape: &CallShape,
    ) -> Result<Option<String>, PlanError> {
        let child = self.memory_name(facts.child);
        match self.tunables(facts, task, shape) {
            Ok(tunables) => {
                if turns(task, shape, &tunables) > facts.listed_max {
                    return Ok(None);
                }
                let calls = task.split(shape, &tunables)?.len();
                // That of the stage with most work counts.
                let mut most = (0.0, 0);
                for stage in task.stages(shape)? {
                    let (task, shape) = (stage.callee(task), stage.shape());
                    let seconds = facts.run_seconds(&**task, &shape);
                    if seconds > most.0 {
                        let tunables = self.tunables(facts, task, &shape);
                        most = (seconds, tunables.map_or(0, |tunables| turns(task, &shape, &tunables)));
                    }
                }
                let idle = calls < facts.children && most.1 > calls as u64;
                Ok(idle.then(|| {
                    format!("its {calls} blocks would leave some of {} x {child} without work", facts.children)
                }))
            }
            // By a mapping's tile there are as many as were asked for.
            Err(PlanError::TooManyCalls { calls, most, .. }) if !self.is_mapped(facts, task) => {
                Ok(Some(format!("its blocks would be {calls}, more than {most}")))
            }
            Err(PlanError::DoesNotFit { tile, need, capacity, .. }) => {
                let bytes: u64 =
                    task.params().iter().zip(&shape.shapes).map(|(p, s)| s.elements() * p.element.size_bytes()).sum();
                Ok(Some(format!(
                    "of its {} the smallest block ({tile}) takes {need}, {child} holds {capacity}",
                    readable_bytes(bytes)
                )))
            }
            Err(error) => Err(error),
        }
    }
}
