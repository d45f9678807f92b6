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

use crate::error::PlanError;
use crate::facts::EdgeFacts;
use crate::loops::{Hint, PART_LISTED_MIN, clipped, outer, turns};
use crate::plan::{Body, PassReport, Plan, SourceCall};
use crate::planner::{Planner, Report, in_blocks, sources, undivided};
use crate::scope::{Key, Lying, Scope, Split, identity, split};
use crate::search::too_many;
use crate::stages::take_apart;
use crate::ways::Ways;
use multigrain_program::{Arg, Call, Tunables};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

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
        for call in scope.calls.iter() {
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
                    if scope.calls.len() > 1 && task.notation().is_none() && count <= facts.listed_max {
                        count = count.max(task.split(&key.1, &loops)?.len() as u64);
                    }
                    *known.entry(key).or_insert(count)
                }
            };
            found.all = found.all.saturating_add(count);
        }
        Ok(found)
    }

    /// Each of several calls as a part. Where they could also be `listed`, as so many calls, only if that is a long list, of more
    /// calls than there are shapes. `None` where that cannot be, or some call does not fit by itself.
    ///
    /// # Errors
    /// [`PlanError::TooLong`].
    pub(crate) fn of_calls(
        &mut self,
        facts: &EdgeFacts<'_>,
        scope: &Scope,
        listed: Option<u64>,
    ) -> Result<Option<Arc<Plan>>, PlanError> {
        let is_long = |listed| listed > facts.listed_max && listed / scope.calls.len() as u64 >= PART_LISTED_MIN;
        if !listed.is_none_or(is_long) {
            return Ok(None);
        }
        match self.parts_of_calls(facts, scope, listed.is_some()) {
            Err(error) if error.is_too_long() => Err(error),
            planned => Ok(planned.ok().flatten()),
        }
    }

    /// The same; `may_be_list` says whether there is something else.
    fn parts_of_calls(
        &mut self,
        facts: &EdgeFacts<'_>,
        scope: &Scope,
        may_be_list: bool,
    ) -> Result<Option<Arc<Plan>>, PlanError> {
        let (mut ways, mut report) = (Ways::default(), Report::default());
        let mut seen: FxHashSet<Key> = FxHashSet::default();
        take_apart(scope, |task, shape| {
            if seen.insert((identity(task), shape.clone())) {
                ways.note_apart(task.name(), false);
            }
            Ok::<_, PlanError>(None)
        })?;
        let (parts, blocks) = in_blocks(scope, |task, shape| {
            let whole = undivided(task, shape);
            ways.note_blocks(task.name(), &whole);
            report.add(task, &whole);
            Ok(whole)
        })?;
        let is_one_each = parts.calls.len() == scope.calls.len() && parts.arrays.len() == scope.arrays.len();
        if !is_one_each || (may_be_list && parts.classes.len() * 2 > parts.calls.len()) {
            return Ok(None);
        }
        let sources = if facts.number == 0 { sources(scope, &blocks) } else { Arc::default() };
        let plan = self.of_parts(facts, parts, &FxHashMap::default(), Vec::new(), sources, Vec::new())?;
        Ok(Some(Arc::new(Plan { tunables: report.0, ways, ..plan })))
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
                true => {
                    let (listed, children) = (facts.listed_max, facts.children as u64);
                    outer(task, &task.tunables(shape), &self.tunables(facts, task, shape)?, listed, children)
                }
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
        // Where a task that makes its split itself leaves a call as it is, its part would be in parts again, and so on.
        if parts.calls.len() == scope.calls.len()
            && let Some(call) = scope.calls.first()
        {
            let (task, calls) = (&scope.tasks[call.task as usize], parts.calls.len() as u64);
            return Err(too_many(self.machine, facts, task, calls, self.is_mapped(facts, task)));
        }
        let sources = match facts.number {
            0 => sources(scope, &blocks),
            _ => Arc::default(),
        };
        // The loops inside of a part are those of the call that it is a part of.
        let mut inside: FxHashMap<usize, Tunables> = FxHashMap::default();
        for call in scope.calls.iter() {
            let task = &scope.tasks[call.task as usize];
            if facts.may_be_parts(task) && !inside.contains_key(&identity(task)) {
                let loops = self.tunables(facts, task, &call.shape())?;
                let tasks = std::iter::once(task).chain(task.later());
                inside.extend(tasks.map(|task| (identity(task), loops.clone())));
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
        sources: Arc<[SourceCall]>,
        mut passes: Vec<PassReport>,
    ) -> Result<Plan, PlanError> {
        let parts = parts.of_used_classes();
        if let Some(call) = parts.calls.iter().find(|call| !facts.may_be_part(call, &parts.arrays)) {
            let task = &parts.tasks[call.task as usize];
            return Err(too_many(self.machine, facts, task, parts.calls.len() as u64, self.is_mapped(facts, task)));
        }
        let mut firsts: Vec<Option<&Call>> = vec![None; parts.classes.len()];
        for (call, &class) in parts.calls.iter().zip(&parts.class_of) {
            firsts[class as usize].get_or_insert(call);
        }
        let arrays = facts.lying(&parts.arrays);
        let mut lead: FxHashMap<usize, Tunables> = FxHashMap::default();
        // Those of the fewest odd rows are an example to the others.
        let odd = |class: usize| {
            let (task, shape) = &parts.classes[class];
            facts.odd_rows(&parts.tasks[*task as usize], shape)
        };
        let order = facts.planning_order(&parts);
        let fewest = order.last().map_or(0, |&class| odd(class));
        let (mut bodies, held) = (vec![None; order.len()], self.held);
        for (number, class) in order.into_iter().enumerate() {
            let ((task_number, shape), call) = (&parts.classes[class], firsts[class]);
            let task = parts.tasks[*task_number as usize].clone();
            let args = || call.into_iter().flat_map(|call| &call.args);
            let begins = |arg: &Arg| {
                let array = &arrays[arg.array as usize];
                let before = arg.region.element(0, array.shape) * array.element.size_bytes();
                Some(facts.offsets_bytes.get(arg.array as usize)? + before)
            };
            let lying = Lying {
                hosts: args().map(|arg| arrays[arg.array as usize].shape).collect(),
                offsets_bytes: args().map(begins).collect::<Option<_>>().unwrap_or_default(),
            };
            let key = (facts.number, (identity(&task), shape.clone()));
            let better = lead.get(&identity(&task));
            let loops = better.or_else(|| inside.get(&identity(&task))).map(|loops| clipped(&task, shape, loops));
            self.hints.insert(key.clone(), Hint { loops, leads: better.is_none(), lying });
            let mut planned = self.call(facts.number, &task, shape, 0);
            if let (Err(PlanError::DoesNotFit { .. }), Some(hint)) = (&planned, self.hints.get_mut(&key))
                && !hint.leads
            {
                hint.leads = true;
                planned = self.call(facts.number, &task, shape, 0);
            }
            // Where its blocks must be smaller than the formula says, there may be so many that it is in parts itself.
            if let (Err(PlanError::DoesNotFit { .. } | PlanError::TooManyCalls { .. }), Some(hint)) =
                (&planned, self.hints.get_mut(&key))
                && hint.loops.take().is_some()
            {
                planned = self.call(facts.number, &task, shape, 0);
            }
            let planned = planned.map_err(|error| error.in_all(held, number, bodies.len()))?;
            if better.is_none()
                && odd(class) == fewest
                && !planned.is_in_parts()
                && inside.contains_key(&identity(&task))
            {
                let chosen = planned.tunables.iter().find(|(name, _)| name == task.name());
                let chosen = chosen.map(|(_, values)| values.iter().copied().collect::<Tunables>());
                lead.extend(chosen.map(|loops| (identity(&task), loops)));
            }
            bodies[class] = Some(Body::Inner(planned));
        }
        let classes = parts.with_bodies(bodies);
        let mut plan = Plan { numbers, sources, ..self.outline(facts.number, parts, classes) };
        let mut calls = 0;
        for (class, count) in plan.classes.iter().zip(plan.calls_of_class()) {
            let Body::Inner(part) = &class.body else { continue };
            plan.traffic += part.traffic.times(count);
            plan.seconds += part.seconds * count as f64;
            calls = calls.max(part.calls.len());
        }
        let (parts, plans) = (plan.calls.len(), plan.classes.len());
        let summary = format!("{parts} one after the other, in {plans} plans of up to {calls} calls each");
        passes.push(PassReport { pass: "parts", summary });
        Ok(Plan { passes, ..plan })
    }
}
