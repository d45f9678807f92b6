//! Pass "parts": a long list of calls becomes a short list of parts, each planned once for each shape.
//!
//! What takes memory and time of a plan are its calls: a step, a slot, a hazard for each. The calls of a nest of loops
//! repeat, so where one call would be split into more of them than should be listed, its outermost loops are taken apart
//! from the inner ones: the call is split into parts, one for each turn of the outer loops, and a part is a call of the same
//! task, planned at the same edge as if it were a program of its own. Parts are executed one after the other, in the order
//! of the loops, where the arrays lie; all parts of one shape share one plan. So a plan takes room in proportion to the
//! shapes that there are, not to the turns of the loops, whatever the size of the arrays.
//!
//! A program of many steps that are calls of few shapes is in parts as well: each call one, if lists are long even so.
//!
//! The price is that nothing stays in the child from one part to the next and nothing is fetched ahead across. Parts are as
//! large as lists may be long, so that is once in thousands of calls.

use crate::edge::{EdgeFacts, TaskRef};
use crate::error::PlanError;
use crate::numbered::Ways;
use crate::plan::{Body, CallClass, PassReport, Plan, SourceCall, Traffic};
use crate::planner::{Planner, Report, in_blocks, sources, undivided};
use crate::scope::{Key, Scope, Split, identity, split};
use crate::stages::take_apart;
use multigrain_program::{Call, CallShape, Shape, Tunables};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// What is known of a call that is a part before it is planned.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    /// The loops inside of the part.
    pub(crate) loops: Tunables,
    /// Whether it is a part of full size, for which better blocks are looked for; the others take its.
    pub(crate) leads: bool,
    /// The shapes of the arrays in which its arguments lie.
    pub(crate) hosts: Vec<Shape>,
}

/// So many calls a list of these loops has: as many as the loops turn.
pub(crate) fn turns(task: &TaskRef, shape: &CallShape, loops: &Tunables) -> u64 {
    counts(task, shape, loops).iter().fold(1, |all, (_, _, count)| all.saturating_mul(*count))
}

/// For each loop, from the outermost: its axis, the length of its blocks, and how often it turns.
fn counts(task: &TaskRef, shape: &CallShape, loops: &Tunables) -> Vec<(&'static str, u64, u64)> {
    let mut left: Vec<(&'static str, u64)> = task.tunables(shape).iter().map(|axis| (axis.name, axis.extent)).collect();
    let one = |(name, length): (&'static str, u64)| {
        let (_, outer) = left.iter_mut().find(|(axis, _)| *axis == name)?;
        let length = length.clamp(1, (*outer).max(1));
        let count = outer.div_ceil(length).max(1);
        *outer = length;
        Some((name, length, count))
    };
    loops.iter().filter_map(one).collect()
}

/// The loops of the parts of a call: the outermost of its loops, of which the last takes several turns at once, so that a
/// part has at most `listed` calls; more where there would be more parts than that.
fn outer(task: &TaskRef, shape: &CallShape, loops: &Tunables, listed: u64) -> Tunables {
    let loops = counts(task, shape, loops);
    let all = loops.iter().fold(1u64, |all, (_, _, count)| all.saturating_mul(*count));
    let most = all.div_ceil(listed).max(listed);
    let mut inside = 1u64;
    for (at, &(name, length, count)) in loops.iter().enumerate().rev() {
        if inside.saturating_mul(count) <= most {
            inside *= count;
            continue;
        }
        // Parts of one size rather than a short one at the end.
        let pieces = count.div_ceil((most / inside).max(1));
        let mut parts: Tunables = loops[..at].iter().map(|&(name, length, _)| (name, length)).collect();
        parts.push(name, length.saturating_mul(count.div_ceil(pieces)));
        return parts;
    }
    Tunables::new()
}

/// The same loops over the axes of a call that has shorter ones.
fn clipped(task: &TaskRef, shape: &CallShape, loops: &Tunables) -> Tunables {
    counts(task, shape, loops).into_iter().map(|(name, length, _)| (name, length)).collect()
}

/// Calls with shorter lists are no parts: what stays from one to the next is worth more.
pub(crate) const PART_LISTED_MIN: u64 = 32;

/// How many calls those of a scope would be, listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    /// Of the longest that could be in parts.
    pub(crate) longest: u64,
    /// All of them.
    pub(crate) all: u64,
}

impl Plan {
    /// Whether the calls are parts: executed one after the other where the arrays lie, each by the plan of its class, which
    /// is one of the same edge.
    pub fn is_in_parts(&self) -> bool {
        self.children.is_empty()
    }
}

impl Planner<'_> {
    /// How many calls a scope's would be, listed.
    pub(crate) fn turns(&mut self, facts: &EdgeFacts<'_>, scope: &Scope) -> Result<Turns, PlanError> {
        let mut found = Turns { longest: 0, all: 0 };
        let mut known: FxHashMap<Key, u64> = FxHashMap::default();
        for call in &scope.calls {
            let task = &scope.tasks[call.task as usize];
            let key = (identity(task), call.shape());
            let count = match known.get(&key) {
                Some(&count) => count,
                None => {
                    let loops = self.tunables(facts, task, &key.1)?;
                    let mut count = turns(task, &key.1, &loops);
                    if facts.may_be_parts(task) {
                        found.longest = found.longest.max(count);
                    }
                    // A task that makes its split itself may make more of it than its axes say.
                    if task.notation().is_none() && count <= facts.listed_max {
                        count = count.max(task.split(&key.1, &loops)?.len() as u64);
                    }
                    *known.entry(key).or_insert(count)
                }
            };
            found.all = found.all.saturating_add(count);
        }
        Ok(found)
    }

    /// Each of several calls as a part; if that `repeats`, only where there are more of them than shapes. `None` where that
    /// cannot be, or some call does not fit by itself.
    pub(crate) fn of_calls(&mut self, facts: &EdgeFacts<'_>, scope: &Scope, repeats: bool) -> Option<Arc<Plan>> {
        let (mut ways, mut report) = (Ways::default(), Report::default());
        let mut seen: FxHashSet<Key> = FxHashSet::default();
        take_apart(scope, |task, shape| {
            if seen.insert((identity(task), shape.clone())) {
                ways.note_apart(task.name(), false);
            }
            Ok::<_, PlanError>(None)
        })
        .ok()?;
        let (parts, blocks) = in_blocks(scope, |task, shape| {
            let whole = undivided(task, shape);
            ways.note_blocks(task.name(), &whole);
            report.add(task, &whole);
            Ok(whole)
        })
        .ok()?;
        let is_one_each = parts.calls.len() == scope.calls.len() && parts.arrays.len() == scope.arrays.len();
        if !is_one_each || (repeats && parts.classes.len() * 2 > parts.calls.len()) {
            return None;
        }
        let sources = if facts.level == 0 { sources(scope, &blocks) } else { Vec::new() };
        let plan = self.of_parts(facts, parts, &FxHashMap::default(), Vec::new(), sources, Vec::new()).ok()?;
        Some(Arc::new(Plan { tunables: report.0, ways, ..plan }))
    }

    /// The calls of a scope in parts: those that would be a long list split into such as are not, the others as they are.
    pub(crate) fn in_parts(
        &mut self,
        facts: &EdgeFacts<'_>,
        scope: &Scope,
        mut ways: Ways,
        reports: Vec<PassReport>,
    ) -> Result<Arc<Plan>, PlanError> {
        let mut report = Report::default();
        let mut blocks: FxHashMap<Key, Tunables> = FxHashMap::default();
        let parts = split(scope, |task, shape| {
            let loops = match facts.may_be_parts(task) {
                true => outer(task, shape, &self.tunables(facts, task, shape)?, facts.listed_max),
                false => Tunables::new(),
            };
            let loops: Tunables = task.tunables(shape).iter().map(|axis| axis.name).fold(loops, |mut loops, name| {
                if !loops.iter().any(|(known, _)| known == name) {
                    loops.push(name, u64::MAX);
                }
                loops
            });
            let loops = clipped(task, shape, &loops);
            report.add(task, &loops);
            ways.note_blocks(task.name(), &loops);
            blocks.insert((identity(task), shape.clone()), loops.clone());
            Ok::<_, PlanError>(loops)
        })?;
        let sources = match facts.level {
            0 => sources(scope, &blocks),
            _ => Vec::new(),
        };
        // The loops inside of a part are those of the call that it is a part of.
        let mut inside: FxHashMap<usize, Tunables> = FxHashMap::default();
        for call in &scope.calls {
            let task = &scope.tasks[call.task as usize];
            if facts.may_be_parts(task) && !inside.contains_key(&identity(task)) {
                inside.insert(identity(task), self.tunables(facts, task, &call.shape())?);
            }
        }
        let mut plan = self.of_parts(facts, parts, &inside, Vec::new(), sources, reports)?;
        (plan.tunables, plan.ways) = (report.0, ways);
        Ok(Arc::new(plan))
    }

    /// A plan of parts.
    pub(crate) fn of_parts(
        &mut self,
        facts: &EdgeFacts<'_>,
        parts: Split,
        inside: &FxHashMap<usize, Tunables>,
        numbers: Vec<u32>,
        sources: Vec<SourceCall>,
        mut passes: Vec<PassReport>,
    ) -> Result<Plan, PlanError> {
        let parts = parts.of_used_classes();
        let mut hosts: Vec<Option<&Call>> = vec![None; parts.classes.len()];
        for (call, &class) in parts.calls.iter().zip(&parts.class_of) {
            hosts[class as usize].get_or_insert(call);
        }
        let mut lead: FxHashMap<usize, Tunables> = FxHashMap::default();
        let mut classes = Vec::with_capacity(parts.classes.len());
        for ((task_number, shape), call) in parts.classes.iter().zip(hosts) {
            let task = parts.tasks[*task_number as usize].clone();
            let arrays = call.into_iter().flat_map(|call| &call.args).map(|arg| parts.arrays[arg.array as usize].shape);
            let hosts: Vec<Shape> = arrays.collect();
            let key = (facts.level, (identity(&task), shape.clone()));
            let better = lead.get(&identity(&task));
            if let Some(loops) = better.or_else(|| inside.get(&identity(&task))) {
                let hint = Hint { loops: clipped(&task, shape, loops), leads: better.is_none(), hosts };
                self.hints.insert(key.clone(), hint);
            }
            let mut planned = self.call(facts.level, &task, shape, 0);
            if let (Err(PlanError::DoesNotFit { .. }), Some(hint)) = (&planned, self.hints.get_mut(&key))
                && !hint.leads
            {
                hint.leads = true;
                planned = self.call(facts.level, &task, shape, 0);
            }
            let planned = planned?;
            if better.is_none() && !planned.is_in_parts() && inside.contains_key(&identity(&task)) {
                let chosen = planned.tunables.iter().find(|(name, _)| name == task.name());
                let chosen = chosen.map(|(_, values)| values.iter().copied().collect::<Tunables>());
                lead.extend(chosen.map(|loops| (identity(&task), loops)));
            }
            classes.push(CallClass { task: *task_number, shape: shape.clone(), body: Body::Inner(planned) });
        }
        let mut counts = vec![0u64; classes.len()];
        parts.class_of.iter().for_each(|&class| counts[class as usize] += 1);
        let (mut traffic, mut seconds, mut calls) = (Traffic::default(), 0.0, 0u64);
        for (class, &count) in classes.iter().zip(&counts) {
            let Body::Inner(plan) = &class.body else { continue };
            traffic += plan.traffic.times(count);
            seconds += plan.seconds * count as f64;
            calls = calls.max(plan.calls.len() as u64);
        }
        let summary = format!(
            "{} one after the other, in {} plans of up to {calls} calls each",
            parts.calls.len(),
            classes.len()
        );
        passes.push(PassReport { pass: "parts", summary });
        let (parent, child) = self.edge_names(facts);
        Ok(Plan {
            level: facts.level,
            parent,
            child,
            driver: facts.edge.driver,
            capacity_bytes: 0,
            slot_unit_bytes: 1,
            scratch_bytes: 0,
            fixed_bytes: facts.fixed_bytes,
            total_bytes: facts.total_bytes,
            arrays: parts.arrays,
            tasks: parts.tasks,
            calls: parts.calls,
            numbers,
            sources,
            class_of: parts.class_of,
            classes,
            children: Vec::new(),
            balanced: false,
            passes,
            traffic,
            tunables: Vec::new(),
            ways: Ways::default(),
            seconds,
        })
    }
}
