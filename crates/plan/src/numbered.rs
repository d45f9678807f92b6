//! The calls of a program as the root edge numbers them, and what is enough to make the same ones again.
//!
//! Splitting is a pure function of the tasks, of which calls are taken apart into stages, and of the tunables. So these
//! decisions, the [`Ways`], say what every number means, whatever made them: a run that goes on where another was
//! interrupted replays them, and neither the machine nor the planner has a say. Whether the tasks split as they did then
//! is told by a hash over the numbered calls themselves ([`hash_calls`]).

use crate::plan::SourceCall;
use crate::scope::{Key, Scope, Split, identity, split};
use crate::stages::take_apart;
use crate::steps::together;
use crate::ways::{OtherWays, Ways};
use multigrain_program::{ArrayDecl, Call, CallShape, DynTask, Program, Tunables};
use rustc_hash::FxHashMap;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The numbered calls of a program.
pub struct Numbered {
    pub(crate) split: Split,
    pub(crate) sources: Arc<[SourceCall]>,
}

impl Numbered {
    /// The calls that these ways make of a program.
    ///
    /// # Errors
    /// [`OtherWays`] when they are those of another program.
    pub fn of(program: &Program, ways: &Ways) -> Result<Numbered, OtherWays> {
        let scope = Scope::of_program(program);
        let other = |task: &str| OtherWays { why: format!("{task} is not split as it was") };
        let mut known: FxHashMap<Key, bool> = FxHashMap::default();
        let mut noted = ways.apart.iter();
        let taken = take_apart(&scope, |task, shape| {
            let key = (identity(task), shape.clone());
            let apart = match known.get(&key) {
                Some(&apart) => apart,
                None => {
                    let (_, apart) =
                        noted.next().filter(|(name, _)| name == task.name()).ok_or_else(|| other(task.name()))?;
                    known.insert(key, *apart);
                    *apart
                }
            };
            Ok::<_, OtherWays>(apart.then(String::new))
        })?;
        let scope = taken.map_or(scope, |(apart, _)| apart);
        let mut noted = ways.together.iter();
        // What leaves do again is of no matter here.
        let blocked = together(&scope, u64::MAX, |task, _, _, _| match noted.next() {
            None => Ok(1),
            Some((name, steps)) if name == task.name() => Ok(*steps),
            Some(_) => Err(other(task.name())),
        })?;
        let scope = blocked.map_or(scope, |(blocked, _)| blocked);
        let mut chosen: FxHashMap<Key, Tunables> = FxHashMap::default();
        let mut noted = ways.blocks.iter();
        let split = split(&scope, |task, shape| {
            let (_, values) = noted.next().filter(|(name, _)| name == task.name()).ok_or_else(|| other(task.name()))?;
            let tunables = of_values(task, shape, values).ok_or_else(|| other(task.name()))?;
            chosen.insert((identity(task), shape.clone()), tunables.clone());
            Ok::<_, OtherWays>(tunables)
        })?;
        let source = |call: &Call| {
            let task = scope.tasks[call.task as usize].clone();
            let tunables = chosen.get(&(identity(&task), call.shape())).cloned().unwrap_or_default();
            SourceCall { task, args: call.args.clone(), scalars: call.scalars.clone(), tunables }
        };
        let sources = scope.calls.iter().map(source).collect();
        Ok(Numbered { split, sources })
    }

    /// The arrays: the program's, and behind them those for the partial results of reductions.
    pub fn arrays(&self) -> &[ArrayDecl] {
        &self.split.arrays
    }

    /// The tasks that the calls name.
    pub fn tasks(&self) -> &[Arc<dyn DynTask>] {
        &self.split.tasks
    }

    /// The calls, in sequential order.
    pub fn calls(&self) -> &[Call] {
        &self.split.calls
    }
}

/// Tunables from noted values. `None` where the task has no such axis, or its results do not allow such blocks.
fn of_values(task: &Arc<dyn DynTask>, shape: &CallShape, values: &[(String, u64)]) -> Option<Tunables> {
    let axes = task.tunables(shape);
    let mut tunables = Tunables::new();
    for (name, value) in values {
        let axis = axes.iter().find(|axis| axis.name == name)?;
        // A name may stand twice, and the order counts.
        tunables.push(axis.name, *value);
    }
    let allowed = axes.iter().all(|axis| task.allows(axis, tunables.get(axis.name, axis.extent)));
    allowed.then_some(tunables)
}

/// Hashes numbered calls: names and versions of their tasks, their blocks, their scalars, and the arrays.
pub fn hash_calls(arrays: &[ArrayDecl], tasks: &[Arc<dyn DynTask>], calls: &[Call], into: &mut impl Hasher) {
    arrays.hash(into);
    for task in tasks {
        (task.name(), task.version()).hash(into);
    }
    for call in calls {
        (call.task, &call.args, &call.scalars).hash(into);
    }
}
