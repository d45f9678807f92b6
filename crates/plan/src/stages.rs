//! Pass "stages": which calls are taken apart into a sequence of calls that are split each by its own tunables.
//!
//! A task may be a sequence of others over the same arrays, say transforms along one axis after the other, whose blocks
//! have different shapes. Every stage moves the arrays once more over an edge that copies, so a call stays whole where a
//! block of it fits. It is taken apart where none does, or where it would leave children of the edge without work.

use crate::facts::TaskRef;
use crate::plan::PassReport;
use crate::scope::{Key, Scope, identity};
use multigrain_program::{Arg, Call, CallShape, SplitError, SplitProblem, SubCall};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Stages of stages of stages: deeper than any task is, so that a task that is its own stage ends.
const DEPTH_MAX: usize = 8;
/// So many calls is one taken apart into, at most, stages of stages counted: a transform has three.
const STAGES_MAX: usize = 1 << 12;

/// What the calls of a scope become that are taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Apart {
    /// So many calls, once they are split.
    pub(crate) listed: u64,
    /// So many before.
    pub(crate) stages: u64,
}

/// The calls of a scope with those taken apart that have to be, and a line on each that is; `reason` says why one of this
/// task and shape has to be. `None` where no task has stages.
pub(crate) fn take_apart<E: From<SplitError>>(
    scope: &Scope,
    mut reason: impl FnMut(&TaskRef, &CallShape) -> Result<Option<String>, E>,
) -> Result<Option<(Scope, Vec<PassReport>)>, E> {
    let mut has_stages = false;
    // Of calls that stay whole the stages, which may be thousands, are asked for once.
    let mut whole: FxHashSet<Key> = FxHashSet::default();
    for call in scope.calls.iter() {
        let task = &scope.tasks[call.task as usize];
        if whole.insert((identity(task), call.shape())) {
            has_stages |= !task.stages(&call.shape())?.is_empty();
        }
    }
    if !has_stages {
        return Ok(None);
    }
    whole.clear();
    let mut apart = scope.clone();
    apart.calls = Arc::new(Vec::with_capacity(scope.calls.len()));
    let mut reports = Vec::new();
    for call in scope.calls.iter() {
        let task = scope.tasks[call.task as usize].clone();
        let most = apart.calls.len() + STAGES_MAX;
        one(&mut reason, &mut whole, &task, call, &mut apart, &mut reports, most, 0)?;
    }
    Ok(Some((apart, reports)))
}

#[allow(clippy::too_many_arguments)]
fn one<E: From<SplitError>>(
    reason: &mut impl FnMut(&TaskRef, &CallShape) -> Result<Option<String>, E>,
    whole: &mut FxHashSet<Key>,
    task: &TaskRef,
    call: &Call,
    apart: &mut Scope,
    reports: &mut Vec<PassReport>,
    calls_max: usize,
    depth: usize,
) -> Result<(), E> {
    let shape = call.shape();
    let key = (identity(task), shape.clone());
    let is_whole = depth == DEPTH_MAX || whole.contains(&key);
    let stages = if is_whole { Vec::new() } else { task.stages(&shape)? };
    let why = if stages.is_empty() { None } else { reason(task, &shape)? };
    let Some(why) = why else {
        whole.insert(key);
        let number = apart.tasks.iter().position(|t| identity(t) == identity(task)).unwrap_or(apart.tasks.len());
        if number == apart.tasks.len() {
            apart.tasks.push(task.clone());
        }
        if apart.calls.len() == calls_max {
            return Err(SplitError::of(&**task, &shape, SplitProblem::Stages { most: STAGES_MAX }).into());
        }
        Arc::make_mut(&mut apart.calls).push(Call { task: number as u32, ..call.clone() });
        return Ok(());
    };
    let names: Vec<&str> = stages.iter().map(|s| s.callee(task).name()).collect();
    // Steps of the same stages are told once.
    let is_period = |period: &usize| names.chunks(*period).all(|chunk| *chunk == names[..*period]);
    let period = (1..names.len()).find(is_period).unwrap_or(names.len());
    let times = if period < names.len() { format!(", {} times", names.len() / period) } else { String::new() };
    let summary = format!("{} is taken apart into {}{times}: {why}", task.name(), names[..period].join(", then "));
    let report = PassReport { pass: "stages", summary };
    if !reports.contains(&report) {
        reports.push(report);
    }
    for stage in &stages {
        one(reason, whole, stage.callee(task), &within(stage, call), apart, reports, calls_max, depth + 1)?;
    }
    Ok(())
}

/// A stage of a call as a call on the arrays of the call's scope; its task is left to be numbered.
fn within(stage: &SubCall, call: &Call) -> Call {
    let arg = |(param, region): &(usize, multigrain_program::Region)| {
        let outer = &call.args[*param];
        Arg { array: outer.array, region: region.within(&outer.region) }
    };
    Call { task: 0, args: stage.args.iter().map(arg).collect(), scalars: stage.scalars.clone() }
}
