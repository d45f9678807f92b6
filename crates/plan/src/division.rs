//! Pass "division": calls in a memory whose children are of several kinds are divided among these.
//!
//! A division has two groups ([`multigrain_machine::Branch`]). Each executes what it is given by plans of its own edge, with its
//! own tiles, capacities and order, so nothing here knows how. What is decided is how a call is cut, and which group takes which
//! part: both by when each group is predicted to be done, which its own plans say.
//!
//! A call is cut in two along an axis that no partial sum crosses, so the bits are those of any other cut, and the longer part goes
//! to the faster group. Where parts end follows from two trials: as if the time of each group were proportional to what it is
//! given, first by the time that it would take for all of it, then by that for its part. A reduced axis is cut at nodes of its tree.
//! Where a cut gains nothing, the group that is done first takes the whole call.
//!
//! Parts are fixed by the plan: the groups run at rates of their own, so taking work from each other would need parts as small as
//! what the slowest does in the time that may be lost. Within a group children share out by themselves, as on any edge.

use crate::barriers::barriers;
use crate::candidates::{spans, split_with};
use crate::dependence::dependence;
use crate::edge::{meeting, reports};
use crate::error::PlanError;
use crate::estimate::Nest;
use crate::facts::{TaskRef, facts as edge_facts};
use crate::grouping::{on_their_own, signals};
use crate::order::program_order;
use crate::placement::{Placement, by_completion};
use crate::plan::{Body, CallClass, PassReport, Plan, Traffic};
use crate::planner::{Divided, Planner, Report, in_blocks, sources, undivided};
use crate::remaining::Left;
use crate::scope::{Key, Scope, Split, identity};
use crate::stages::take_apart;
use crate::ways::Ways;
use multigrain_machine::{Wire, format_time};
use multigrain_program::{Call, CallShape, Tunable, Tunables};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Groups of a division.
pub(crate) const GROUPS: usize = 2;

/// What handing a part to another group costs, in seconds, until both are done: two messages between processors of which
/// one may have to be woken.
const HAND_OVER_SECONDS: f64 = 1e-5;

/// A reduced axis is cut into so many nodes of its tree at most.
const NODES_MAX: u64 = 8;

/// Parts begin at multiples of such a part of an axis, of at most so many elements.
const GRAIN: u64 = 128;
const GRAIN_MAX: u64 = 64;

/// Groups whose ends are predicted to differ by less are done together.
const TOGETHER: f64 = 0.01;

/// Calls with the time that each of them is predicted to take in each group, placed.
struct Placed {
    placement: Placement,
    seconds: Vec<[f64; GROUPS]>,
    /// What each group is busy with, in seconds.
    load: [f64; GROUPS],
    /// What the device is busy with that moves the bytes of both, in seconds.
    device: f64,
}

impl Placed {
    /// When the last group is done, if none waits for another.
    fn end(&self) -> f64 {
        let busy = self.load.iter().filter(|load| **load > 0.0).count();
        let handing = if busy > 1 { HAND_OVER_SECONDS } else { 0.0 };
        self.load.iter().copied().fold(self.device, f64::max) + handing
    }
}

impl Planner<'_> {
    /// The plan of a scope, or of what is left of a program, at a division, whose partial results may take `own_bytes_max`
    /// in the memory.
    pub(crate) fn division(
        &mut self,
        number: usize,
        scope: &Scope,
        left: Option<&Left>,
        own_bytes_max: u64,
    ) -> Result<Arc<Plan>, PlanError> {
        // Before anything is planned for any of them.
        self.check_divided(number, &scope.tasks, &scope.calls)?;
        let (mut ways, mut report) = (Ways::default(), Report::default());
        let mut known: FxHashMap<Key, Option<String>> = FxHashMap::default();
        let taken = take_apart(scope, |task, shape| {
            let key = (identity(task), shape.clone());
            if let Some(why) = known.get(&key) {
                return Ok(why.clone());
            }
            let why = self.apart(number, task, shape, own_bytes_max)?;
            ways.note_apart(task.name(), why.is_some());
            known.insert(key, why.clone());
            Ok::<_, PlanError>(why)
        })?;
        let (apart, stage_reports) = taken.unzip();
        let scope = apart.as_ref().unwrap_or(scope);
        let (parts, numbers, sources) = match left {
            None => {
                let (parts, blocks) = in_blocks(scope, |task, shape| {
                    let tunables = self.divided(number, task, shape, own_bytes_max)?.tunables;
                    ways.note_blocks(task.name(), &tunables);
                    report.add(task, &tunables);
                    Ok(tunables)
                })?;
                let sources = if number == 0 { sources(scope, &blocks) } else { Arc::default() };
                (parts, Vec::new(), sources)
            }
            Some(left) => {
                left.sources.iter().for_each(|source| report.add(&source.task, &source.tunables));
                (left.split.clone().of_used_classes(), left.numbers.clone(), left.sources.clone())
            }
        };
        self.check_divided(number, &parts.tasks, &parts.calls)?;
        let below_bytes_max = below(own_bytes_max, parts.temporary_bytes(scope));
        let placed = self.placed(number, &parts, below_bytes_max)?;
        let children = |call: usize| placed.placement.child_of(call);
        let (calls_of, reduction) = (parts.calls.len(), parts.reduction_report(scope));
        // A class is executed by the plan of one group.
        let mut class_numbers: FxHashMap<(u32, usize), u32> = FxHashMap::default();
        let mut classes: Vec<CallClass> = Vec::new();
        let mut class_of = Vec::with_capacity(calls_of);
        for (call, &class) in parts.class_of.iter().enumerate() {
            let child = children(call);
            let number = match class_numbers.get(&(class, child)) {
                Some(number) => *number,
                None => {
                    let (task, shape) = &parts.classes[class as usize];
                    let body = self.part(number, child, &parts.tasks[*task as usize], shape, below_bytes_max)?;
                    classes.push(CallClass { task: *task, shape: shape.clone(), body: Body::Inner(body) });
                    *class_numbers.entry((class, child)).or_insert(classes.len() as u32 - 1)
                }
            };
            class_of.push(number);
        }
        let dependence = dependence(&parts.calls, &parts.tasks);
        let order = program_order(calls_of);
        let signals = signals(&dependence, &placed.placement, &order, GROUPS);
        let mut steps = on_their_own(&dependence, &placed.placement, &order, &signals, GROUPS);
        let met = barriers(&mut steps);
        let mut passes: Vec<PassReport> = stage_reports.unwrap_or_default();
        passes.extend(reports(&dependence, &placed.placement, GROUPS));
        passes.push(self.shares(number, &placed));
        passes.extend(meeting(met, GROUPS));
        passes.extend(reduction);
        let branch = self.layout.branch(number);
        let mut plan = Plan {
            is_division: true,
            child: branch.child_name(self.machine),
            numbers,
            sources,
            children: steps,
            passes,
            tunables: report.0,
            ways,
            seconds: placed.end(),
            ..self.outline(number, Split { class_of, ..parts }, classes)
        };
        if plan.driver.files {
            let temporaries = plan.classes.iter().flat_map(|class| match &class.body {
                Body::Inner(inner) => inner.temporaries(),
                Body::Leaf { .. } => &[],
            });
            let lent: Vec<_> = temporaries.cloned().collect();
            plan.arrays.extend(lent);
        }
        Ok(Arc::new(plan))
    }

    /// Refuses a list of calls, of which the first is told, that is too long by itself: none of them is a part of another.
    fn check_divided(&self, number: usize, tasks: &[TaskRef], list: &[Call]) -> Result<(), PlanError> {
        let (calls, most) = (list.len() as u64, self.options.held_max);
        match list.first() {
            Some(first) if calls > most => Err(PlanError::TooManyCalls {
                task: tasks[first.task as usize].name().to_owned(),
                memory: self.layout.branch(number).child_name(self.machine),
                tile: "whatever their tiles",
                calls,
                most,
                enough: None,
            }),
            _ => Ok(()),
        }
    }

    /// Why a call is taken apart into its stages, if it is: where these, each divided, are done earlier than the call.
    fn apart(
        &mut self,
        number: usize,
        task: &TaskRef,
        shape: &CallShape,
        own_bytes_max: u64,
    ) -> Result<Option<String>, PlanError> {
        let whole = self.divided(number, task, shape, own_bytes_max)?;
        if whole.calls > 1 {
            return Ok(None);
        }
        let mut seconds = 0.0;
        for stage in task.stages(shape)? {
            seconds += self.divided(number, stage.callee(task), &stage.shape(), own_bytes_max)?.seconds;
        }
        let times = (format_time(seconds * 1e9), format_time(whole.seconds * 1e9));
        Ok((seconds < whole.seconds).then(|| format!("divided they take {}, undivided it {}", times.0, times.1)))
    }

    /// How a call is divided.
    fn divided(
        &mut self,
        number: usize,
        task: &TaskRef,
        shape: &CallShape,
        own_bytes_max: u64,
    ) -> Result<Divided, PlanError> {
        let key = (number, own_bytes_max, (identity(task), shape.clone()));
        if let Some(known) = self.divided.get(&key) {
            return Ok(known.clone());
        }
        let scope = Scope::of_call(task, shape);
        let whole = undivided(task, shape);
        let alone = seconds(&self.alone(number, task, shape, below(own_bytes_max, 0))?);
        let calls = split_with(&scope, &whole)?.calls.len();
        let seconds = alone.iter().copied().fold(f64::INFINITY, f64::min);
        let mut best = Divided { tunables: whole.clone(), seconds, calls };
        if alone.iter().all(|seconds| seconds.is_finite()) && seconds > HAND_OVER_SECONDS {
            let mut cuts = Vec::new();
            for axis in self.free_axes(number, task, shape) {
                if task.reduced_axis() == Some(axis.name) {
                    let nodes = spans(&axis).into_iter().filter(|&span| axis.extent.div_ceil(span) <= NODES_MAX);
                    let trials =
                        nodes.skip(1).map(|span| self.cut(number, &scope, &whole, (axis.name, span), own_bytes_max));
                    cuts.extend(
                        trials.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(|(cut, _)| (cut, None)),
                    );
                } else if let Some(length) = longer(&axis, alone)
                    && let Some((cut, load)) = self.cut(number, &scope, &whole, (axis.name, length), own_bytes_max)?
                {
                    cuts.push((cut, Some((axis, length, load))));
                }
            }
            let first = cuts.into_iter().min_by(|a, b| a.0.seconds.total_cmp(&b.0.seconds));
            if let Some((cut, trial)) = first {
                let again =
                    trial.and_then(|(axis, length, load)| Some((axis.name, again(&axis, length, load, alone)?)));
                let second = match again {
                    Some(cut) => self.cut(number, &scope, &whole, cut, own_bytes_max)?,
                    None => None,
                };
                let cuts = std::iter::once(cut).chain(second.map(|(cut, _)| cut));
                best = cuts.fold(best, |best, cut| if cut.seconds < best.seconds { cut } else { best });
            }
        }
        self.tasks.push(task.clone());
        self.divided.insert(key, best.clone());
        Ok(best)
    }

    /// Axes along which a call may be cut in two: those along which no order is fixed, as far as the task says.
    fn free_axes(&self, number: usize, task: &TaskRef, shape: &CallShape) -> Vec<Tunable> {
        let first = self.layout.branch(number).below(0);
        let facts = first.and_then(|edge| edge_facts(self.machine, &self.layout, edge, 0));
        let folded = facts.as_ref().and_then(|facts| Some(Nest::of(facts, task, shape)?.folded()));
        let is_free = |(at, axis): &(usize, Tunable)| {
            task.reduced_axis() == Some(axis.name) || folded.as_ref().is_none_or(|folded| !folded.contains(at))
        };
        task.tunables(shape).iter().copied().enumerate().filter(is_free).map(|(_, axis)| axis).collect()
    }

    /// A call cut along one axis, and what each group is busy with then; `None` where that is not possible, or there is no room
    /// for the plans of the parts.
    fn cut(
        &mut self,
        number: usize,
        scope: &Scope,
        whole: &Tunables,
        (axis, length): (&'static str, u64),
        own_bytes_max: u64,
    ) -> Result<Option<(Divided, [f64; GROUPS])>, PlanError> {
        let mut tunables = whole.clone();
        tunables.set(axis, length);
        let parts = split_with(scope, &tunables)?;
        let partials = parts.temporary_bytes(scope);
        if parts.calls.len() < GROUPS || partials > own_bytes_max {
            return Ok(None);
        }
        let placed = match self.placed(number, &parts, below(own_bytes_max, partials)) {
            Err(error) if error.is_too_long() => return Ok(None),
            placed => placed?,
        };
        let (seconds, calls) = (placed.end(), parts.calls.len());
        Ok(seconds.is_finite().then_some((Divided { tunables, seconds, calls }, placed.load)))
    }

    /// The calls of a split with their times, placed.
    fn placed(&mut self, number: usize, parts: &Split, below_bytes_max: u64) -> Result<Placed, PlanError> {
        let (mut of_class, mut devices) = (Vec::new(), Vec::new());
        for (task, shape) in &parts.classes {
            let plans = self.alone(number, &parts.tasks[*task as usize], shape, below_bytes_max)?;
            devices.push(plans.each_ref().map(|plan| plan.as_ref().map_or(0.0, |plan| self.device_seconds(plan))));
            of_class.push(seconds(&plans));
        }
        let seconds: Vec<[f64; GROUPS]> = parts.class_of.iter().map(|&class| of_class[class as usize]).collect();
        let placement = by_completion(&dependence(&parts.calls, &parts.tasks), &seconds);
        let (mut load, mut device) = ([0.0; GROUPS], 0.0);
        for (call, (seconds, &class)) in seconds.iter().zip(&parts.class_of).enumerate() {
            let child = placement.child_of(call);
            load[child] += seconds[child];
            device += devices[class as usize][child];
        }
        Ok(Placed { placement, seconds, load, device })
    }

    /// How long a device that serves children of all kinds moves bytes of a plan, in seconds, without its fragments; nothing
    /// where each kind has wires of its own.
    fn device_seconds(&self, plan: &Plan) -> f64 {
        let edge = self.layout.branch(plan.edge).edge(self.machine);
        let inner = |class: u32| match &plan.classes[class as usize].body {
            Body::Inner(inner) if plan.is_division => self.device_seconds(inner),
            _ => 0.0,
        };
        let Traffic { bytes_down, bytes_up, transfers, .. } = plan.traffic;
        match edge.driver.wire {
            Wire::Device => {
                bytes_down as f64 / edge.read_bytes_per_second
                    + bytes_up as f64 / edge.write_bytes_per_second
                    + transfers as f64 * edge.costs.transfer_ns * 1e-9
            }
            _ => plan.class_of.iter().map(|&class| inner(class)).sum(),
        }
    }

    /// The plans by which each group would execute a call; none where it does not fit.
    ///
    /// # Errors
    /// It fits in neither.
    fn alone(
        &mut self,
        number: usize,
        task: &TaskRef,
        shape: &CallShape,
        below_bytes_max: u64,
    ) -> Result<[Option<Arc<Plan>>; GROUPS], PlanError> {
        let mut plans = [const { None }; GROUPS];
        let mut refused = None;
        for (child, part) in plans.iter_mut().enumerate() {
            match self.part(number, child, task, shape, below_bytes_max) {
                Ok(plan) => *part = Some(plan),
                Err(
                    error @ (PlanError::DoesNotFit { .. }
                    | PlanError::TooManyCalls { .. }
                    | PlanError::TooLong { .. }
                    | PlanError::Unmovable { .. }),
                ) => {
                    refused.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if plans.iter().all(Option::is_none) => Err(error),
            _ => Ok(plans),
        }
    }

    /// The plan by which a group executes a call.
    fn part(
        &mut self,
        number: usize,
        child: usize,
        task: &TaskRef,
        shape: &CallShape,
        below_bytes_max: u64,
    ) -> Result<Arc<Plan>, PlanError> {
        let edge = self.layout.branch(number).below(child).ok_or_else(|| self.no_edge())?;
        self.call(edge, task, shape, below_bytes_max)
    }

    /// What each group is given.
    fn shares(&self, number: usize, placed: &Placed) -> PassReport {
        let branch = self.layout.branch(number);
        let share = |child: usize| {
            let edge = branch.below(child).map(|edge| self.layout.branch(edge).child_name(self.machine));
            let calls = (0..placed.seconds.len()).filter(|call| placed.placement.child_of(*call) == child).count();
            format!("{}: {calls} calls, {}", edge.unwrap_or_default(), format_time((placed.load[child] * 1e9).round()))
        };
        let shares: Vec<String> = (0..GROUPS).map(share).collect();
        PassReport { pass: "division", summary: shares.join("; ") }
    }
}

/// The time that each group is predicted to take by its plan; infinite where it has none.
fn seconds(plans: &[Option<Arc<Plan>>; GROUPS]) -> [f64; GROUPS] {
    plans.each_ref().map(|plan| plan.as_ref().map_or(f64::INFINITY, |plan| plan.seconds))
}

/// What of so many bytes is left for the partial results of each group.
fn below(own_bytes_max: u64, partials: u64) -> u64 {
    own_bytes_max.saturating_sub(partials) / GROUPS as u64
}

/// How much of an axis the faster group should take, by the times that the groups take for all of it.
fn longer(axis: &Tunable, alone: [f64; GROUPS]) -> Option<u64> {
    let (fast, slow) = (alone[0].min(alone[1]), alone[0].max(alone[1]));
    length(axis, slow / (fast + slow))
}

/// The same, once parts of this length were tried: each group goes on at the rate that it had there.
fn again(axis: &Tunable, tried: u64, load: [f64; GROUPS], alone: [f64; GROUPS]) -> Option<u64> {
    let [fast, slow] = if alone[0] <= alone[1] { load } else { [load[1], load[0]] };
    if fast <= 0.0 || slow <= 0.0 || (fast - slow).abs() <= TOGETHER * fast.max(slow) {
        return None;
    }
    let rates = (tried as f64 / fast, (axis.extent - tried.min(axis.extent)) as f64 / slow);
    length(axis, rates.0 / (rates.0 + rates.1)).filter(|length| *length != tried)
}

/// A length that is about this share of an axis, at least half of it, so that there are two parts; `None` where the rest is
/// nothing.
fn length(axis: &Tunable, share: f64) -> Option<u64> {
    let grain = (axis.extent / GRAIN).clamp(1, GRAIN_MAX);
    let unit = (1 << grain.ilog2()) * axis.multiple.max(1);
    let units = (axis.extent as f64 * share / unit as f64).round() as u64;
    let length = (units * unit).max(axis.extent.div_ceil(2).next_multiple_of(axis.multiple.max(1)));
    (length < axis.extent).then_some(length)
}
