//! Why calls of tasks with stages have to be taken apart on an edge ([`crate::stages`] does it), and how long a list that makes.

use crate::error::PlanError;
use crate::facts::{EdgeFacts, TaskRef};
use crate::loops::turns;
use crate::plan::PassReport;
use crate::planner::{Blocks, Planner, in_blocks};
use crate::scope::{Key, Scope, Split, identity};
use crate::stages::take_apart;
use crate::ways::Ways;
use multigrain_machine::readable_bytes;
use multigrain_program::{Call, CallShape, Tunable};
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

    /// How many calls those of a scope would be, listed, if some of them are taken apart: found without a list of all.
    pub(crate) fn turns_apart(
        &mut self,
        facts: &EdgeFacts<'_>,
        scope: &Scope,
        reasons: &mut Reasons,
        ways: &mut Ways,
    ) -> Result<Option<u64>, PlanError> {
        let (mut all, mut is_apart) = (0_u64, false);
        let mut known: FxHashMap<(usize, CallShape), u64> = FxHashMap::default();
        for call in scope.calls.iter() {
            let key = (identity(&scope.tasks[call.task as usize]), call.shape());
            let count = match known.get(&key) {
                Some(&count) => count,
                None => {
                    let one = Scope { calls: Arc::new(vec![Call::clone(call)]), ..scope.clone() };
                    let taken = self.taken_apart(facts, &one, reasons, ways)?;
                    let one = taken.map_or(one, |(apart, _)| apart);
                    is_apart |= one.calls.len() > 1;
                    *known.entry(key).or_insert(self.turns(facts, &one)?.all)
                }
            };
            all = all.saturating_add(count);
        }
        Ok(is_apart.then_some(all))
    }

    /// The calls of a scope, blocks of all of which are as long along an axis as those of the call with the most work, where both have
    /// the axis: so that the block which one call leaves in a child is the one that the next wants.
    pub(crate) fn in_like_blocks(
        &mut self,
        facts: &EdgeFacts<'_>,
        scope: &Scope,
    ) -> Result<(Split, Blocks), PlanError> {
        let task_of = |call: &Call| &scope.tasks[call.task as usize];
        let seconds = |call: &Call| facts.run_seconds(&**task_of(call), &call.shape());
        let most = scope.calls.iter().max_by(|a, b| seconds(a).total_cmp(&seconds(b))).ok_or(PlanError::Empty)?;
        let (task, shape) = (task_of(most), most.shape());
        let (axes, lengths) = (task.tunables(&shape), self.tunables(facts, task, &shape)?);
        in_blocks(scope, |task, shape| {
            let own = self.tunables(facts, task, shape)?;
            let like = |(name, length): (&'static str, u64)| {
                let axis = task.tunables(shape).into_iter().find(|axis| axis.name == name);
                let has = |axis: &Tunable| axes.iter().any(|other| (other.name, other.extent) == (name, axis.extent));
                let other = axis.filter(has).map(|axis| (lengths.get(name, axis.extent), axis));
                other
                    .filter(|(length, axis)| task.allows(axis, *length))
                    .map_or((name, length), |(other, _)| (name, other))
            };
            Ok(own.iter().map(like).collect())
        })
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
                let mut most = 0;
                for stage in task.stages(shape)? {
                    let (task, shape) = (stage.callee(task), stage.shape());
                    most = most.max(turns(task, &shape, &self.tunables(facts, task, &shape)?));
                }
                let idle = calls < facts.children && most > calls as u64;
                Ok(idle.then(|| {
                    format!("its {calls} blocks would leave some of {} x {child} without work", facts.children)
                }))
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
