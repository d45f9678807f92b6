//! The planner: runs the passes for every edge from the root down and caches plans by shape.

use crate::candidates::CALLS_PLANNED_MAX;
use crate::cost::SLOWER_UNDIVIDED;
use crate::edge::{Draft, Overflow, draft};
use crate::error::{Enough, PlanError};
use crate::estimate::Kept;
use crate::facts::{EdgeFacts, TaskRef, facts as edge_facts};
use crate::loops::{Hint, turns};
use crate::mapping::Mapping;
use crate::plan::{Body, CallClass, PassReport, Plan, SourceCall, Traffic};
use crate::remaining::Left;
use crate::rooms::kept;
use crate::scope::{Key, Lying, Scope, Split, identity, split};
use crate::search::{choose, like, too_many};
use crate::stages::Apart;
use crate::staging::DoesNotFit;
use crate::steps::{count, together};
use crate::ways::Ways;
use multigrain_machine::{Branch, Layout, Machine, MemoryId, approximate_bytes, readable_bytes};
use multigrain_program::{ArrayDecl, Call, CallShape, Program, Role, Tunables};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What may be chosen about planning besides the mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Bytes of transfer buffers that a disk edge takes from the memory below it.
    pub disk_buffer_bytes: u64,
    /// Largest number of calls that are fetched ahead.
    pub depth_max: usize,
    /// Largest number of calls that one call is split into at an edge: a plan names each, so they take memory.
    pub calls_max: u64,
    /// The longest list of calls where calls can be parts, each with a plan of its own: so much room a plan is meant to take.
    /// Longer ones than the usual gain nothing.
    pub listed_max: u64,
    /// The most calls that a plan and all that it holds may list together, as [`Plan::listed_calls`] counts them.
    pub held_max: u64,
    /// Whether calls are planned to choose among ways of splitting; else the first that can be planned is taken.
    pub searches: bool,
    /// For each array of the program, at which byte of its file its data begins; empty when they lie in no files.
    pub file_offsets_bytes: Vec<u64>,
    /// Whether the plan is to be simulated: then edges may have drivers that this build cannot execute.
    pub simulated: bool,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            disk_buffer_bytes: 8 << 20,
            depth_max: 2,
            calls_max: 1 << 20,
            listed_max: 1 << 13,
            held_max: u64::MAX,
            searches: true,
            file_offsets_bytes: Vec::new(),
            simulated: false,
        }
    }
}

/// Ways of splitting that a plan tells of, to be read by people.
const REPORTED_MAX: usize = 16;

/// At first, partial results of reductions may take this part of a child.
const PARTIALS_SHARE: u64 = 4;

/// Bytes of partial results that the plan of a call keeps in the memory where the call runs.
fn partials_below(class: &CallClass) -> u64 {
    match &class.body {
        Body::Leaf { .. } => 0,
        Body::Inner(plan) => plan.temporary_bytes(),
    }
}

/// Why an edge could not be planned, and the scratch memory that its calls need together, where that is the reason.
struct Refused {
    error: PlanError,
    scratch_bytes: u64,
}

impl From<PlanError> for Refused {
    fn from(error: PlanError) -> Refused {
        Refused { error, scratch_bytes: 0 }
    }
}

/// How the calls of each task and shape are split.
pub(crate) type Blocks = FxHashMap<Key, Tunables>;

/// The calls of a scope split by these tunables.
pub(crate) fn in_blocks(
    scope: &Scope,
    mut tunables: impl FnMut(&TaskRef, &CallShape) -> Result<Tunables, PlanError>,
) -> Result<(Split, Blocks), PlanError> {
    let mut blocks = Blocks::default();
    let split = split(scope, |task, shape| {
        let chosen = tunables(task, shape)?;
        blocks.insert((identity(task), shape.clone()), chosen.clone());
        Ok::<_, PlanError>(chosen)
    })?;
    Ok((split, blocks))
}

/// The tunables of a call that is left as it is.
pub(crate) fn undivided(task: &TaskRef, shape: &CallShape) -> Tunables {
    task.tunables(shape).iter().map(|axis| (axis.name, axis.extent)).collect()
}

/// The calls of the root's scope with their tunables, as the checker wants them.
pub(crate) fn sources(scope: &Scope, blocks: &Blocks) -> Arc<[SourceCall]> {
    let source = |call: &Call| {
        let task = scope.tasks[call.task as usize].clone();
        let tunables = blocks.get(&(identity(&task), call.shape())).cloned().unwrap_or_default();
        SourceCall { task, args: call.args.clone(), scalars: call.scalars.clone(), tunables }
    };
    scope.calls.iter().map(source).collect()
}

/// Tunables chosen for the calls of a scope, each way once: task, values.
#[derive(Default)]
pub(crate) struct Report(pub(crate) Vec<(String, Vec<(&'static str, u64)>)>);

impl Report {
    pub(crate) fn add(&mut self, task: &TaskRef, tunables: &Tunables) {
        let entry = (task.name().to_owned(), tunables.iter().collect());
        if self.0.len() < REPORTED_MAX && !self.0.contains(&entry) {
            self.0.push(entry);
        }
    }
}

/// Bytes that are set aside at an edge.
type SetAside = (u64, u64, u64);

/// Plans programs for one machine.
pub struct Planner<'m> {
    pub(crate) machine: &'m Machine,
    pub(crate) layout: Layout,
    mapping: Mapping,
    pub(crate) options: PlanOptions,
    /// By edge and bytes for partial results.
    pub(crate) plans: FxHashMap<(usize, u64, Key), Arc<Plan>>,
    /// How many calls they list.
    pub(crate) held: u64,
    /// By division and bytes for partial results.
    pub(crate) divided: FxHashMap<(usize, u64, Key), Divided>,
    /// By edge, bytes for partial results below and of its own.
    chosen: FxHashMap<(usize, SetAside, Key), Tunables>,
    /// The last call of each task whose split is free that was searched for, and what was found.
    searched: FxHashMap<(usize, SetAside, usize), (CallShape, Tunables)>,
    /// How many sub-calls may still be planned to choose among candidates.
    searches_left: u64,
    /// By edge: what is known of calls that are parts.
    pub(crate) hints: FxHashMap<(usize, Key), Hint>,
    /// Names of the tasks that were split, with the memory into whose blocks.
    split: BTreeSet<(String, String)>,
    /// Tasks are identified by address; this keeps them alive as long as the addresses are used.
    pub(crate) tasks: Vec<TaskRef>,
}

impl<'m> Planner<'m> {
    /// A planner for `machine`.
    pub fn new(machine: &'m Machine, mapping: Mapping, options: PlanOptions) -> Planner<'m> {
        let layout = Layout::of(machine);
        Planner {
            machine,
            layout,
            mapping,
            searches_left: if options.searches { CALLS_PLANNED_MAX } else { 0 },
            options,
            plans: FxHashMap::default(),
            held: 0,
            divided: FxHashMap::default(),
            chosen: FxHashMap::default(),
            searched: FxHashMap::default(),
            hints: FxHashMap::default(),
            split: BTreeSet::new(),
            tasks: Vec::new(),
        }
    }

    /// Plans a program whose arrays lie in the machine's root memory.
    ///
    /// # Errors
    /// When some call does not fit, or the mapping asks for something impossible. Nothing has been started then.
    pub fn plan(&mut self, program: &Program) -> Result<Arc<Plan>, PlanError> {
        if program.calls().is_empty() {
            return Err(PlanError::Empty);
        }
        let scope = Scope { lying: self.in_files(), ..Scope::of_program(program) };
        let plan = self.whole(0, &scope, u64::MAX)?;
        let is_task = |name: &str| {
            program.tasks().iter().any(|t| t.name() == name) || self.split.iter().any(|(task, _)| task == name)
        };
        let is_memory = |name: &str| self.machine.memories().iter().any(|m| m.name == name);
        match self.mapping.entries().find(|(task, memory)| !is_task(task) || !is_memory(memory)) {
            None => Ok(plan),
            Some((task, memory)) => Err(PlanError::MappingUnused {
                entry: format!("{task}.{memory}"),
                known: self.split.iter().map(|(t, m)| format!("{t}.{m}")).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Plans what is left of a program after an interrupted run. A plan without calls means that nothing is left to do.
    ///
    /// # Errors
    /// [`PlanError::DoesNotFit`] when blocks of the size that was chosen then do not fit now.
    pub fn plan_left(&mut self, left: &Left) -> Result<Arc<Plan>, PlanError> {
        let arrays = left.split.arrays.clone();
        let scope = Scope { arrays, tasks: Vec::new(), calls: Arc::default(), lying: self.in_files() };
        self.edge(0, &scope, Some(left), u64::MAX)
    }

    /// Where the arrays of the program lie.
    fn in_files(&self) -> Lying {
        Lying { hosts: Vec::new(), offsets_bytes: self.options.file_offsets_bytes.clone() }
    }

    fn whole(&mut self, number: usize, scope: &Scope, own_bytes_max: u64) -> Result<Arc<Plan>, PlanError> {
        self.edge(number, scope, None, own_bytes_max)
    }

    /// Plans an edge. Partial results of reductions that are kept in the parent memory, also by plans below that share
    /// its addresses, take at most `own_bytes_max`.
    ///
    /// What plans below keep in a child is known only when they are made, and their calls depend on what is left for
    /// blocks. So a plan is made as if they needed nothing; where they do, it is made again with as much set aside, and
    /// they again within that.
    fn edge(
        &mut self,
        number: usize,
        scope: &Scope,
        left: Option<&Left>,
        own_bytes_max: u64,
    ) -> Result<Arc<Plan>, PlanError> {
        if self.layout.branches().get(number).is_some_and(Branch::is_division) {
            return self.division(number, scope, left, own_bytes_max);
        }
        let mut facts = (number < self.layout.branches().len())
            .then(|| edge_facts(self.machine, &self.layout, number, self.options.disk_buffer_bytes))
            .flatten()
            .ok_or_else(|| self.no_edge())?;
        (facts.own_partials_bytes_max, facts.calls_max) = (own_bytes_max, self.options.calls_max);
        facts.drafts_calls_max = self.options.calls_max;
        facts.listed_max = self.options.listed_max.clamp(2, facts.calls_max.max(2));
        (facts.hosts, facts.offsets_bytes) = (&scope.lying.hosts, &scope.lying.offsets_bytes);
        if !facts.stages() {
            return self.edge_with(&facts, scope, left, own_bytes_max / facts.children as u64);
        }
        let first = self.edge_with(&facts, scope, left, facts.total_bytes / PARTIALS_SHARE)?;
        let needed = |plan: &Plan| plan.classes.iter().map(partials_below).max().unwrap_or(0);
        let need = needed(&first);
        if need == 0 {
            return Ok(first);
        }
        drop(first);
        let mut set_aside = EdgeFacts { partials_bytes: need, ..facts };
        self.edge_with(&set_aside, scope, left, need).or_else(|error| {
            // Without room for partial results no call below is split along what it reduces.
            set_aside.partials_bytes = 0;
            self.edge_with(&set_aside, scope, left, 0).map_err(|_| error)
        })
    }

    /// Plans an edge whose facts are settled; plans below may keep partial results of `below_bytes_max` bytes in a child.
    ///
    /// Every call is given its tunables as if its scratch memory were all that is needed. Where another call of the scope
    /// needs more, and too little is left for blocks, they are chosen again with as much set aside.
    fn edge_with(
        &mut self,
        facts: &EdgeFacts<'_>,
        scope: &Scope,
        left: Option<&Left>,
        below_bytes_max: u64,
    ) -> Result<Arc<Plan>, PlanError> {
        let (asked, mut facts, mut blocked) = (facts, *facts, true);
        loop {
            match self.edge_once(&facts, scope, left, below_bytes_max, &mut blocked) {
                Ok(planned) => return Ok(planned),
                Err(Refused { scratch_bytes, .. }) if scratch_bytes > facts.scratch_least_bytes => {
                    facts.scratch_least_bytes = scratch_bytes;
                }
                Err(Refused { error, .. }) if error.is_too_long() => return Err(error),
                Err(_) if blocked => (facts, blocked) = (*asked, false),
                // By itself a call may fit: without what others need, and in smaller blocks.
                Err(refused) => {
                    let apart = left.is_none() && scope.calls.len() > 1;
                    let of_calls = if apart { self.of_calls(asked, scope, None)? } else { None };
                    return of_calls.ok_or(refused.error);
                }
            }
        }
    }

    /// `blocked` says whether steps may be taken together, and then whether they were.
    fn edge_once(
        &mut self,
        facts: &EdgeFacts<'_>,
        scope: &Scope,
        left: Option<&Left>,
        below_bytes_max: u64,
        blocked: &mut bool,
    ) -> Result<Arc<Plan>, Refused> {
        let mut ways = Ways::default();
        let (mut stage_reports, mut step_reports, mut report) = (Vec::new(), Vec::new(), Report::default());
        let (apart, in_steps): (Option<Scope>, Option<Scope>);
        let (mut parts, mut blocks, numbers);
        let is_strict = |edge: &EdgeFacts<'_>| edge.edge.rules.strict;
        let may_block =
            std::mem::replace(blocked, false) && facts.stages() && !self.copying(facts).iter().any(is_strict);
        // As the plan of the run that was interrupted had no room for so long a list, neither has this.
        if let Some(left) = left.filter(|left| left.split.calls.len() as u64 > facts.listed_max) {
            match self.left_in_parts(facts, left) {
                Ok(plan) => return Ok(plan),
                Err(error) if error.is_too_long() => return Err(error.into()),
                Err(_) => {}
            }
        }
        let (mut scope, single) = match left {
            Some(left) => {
                left.sources.iter().for_each(|source| report.add(&source.task, &source.tunables));
                (parts, blocks, numbers) = (left.split.clone(), FxHashMap::default(), left.numbers.clone());
                (scope, scope)
            }
            None => {
                let mut reasons = Default::default();
                // Before there is a list of all that repeated calls are taken apart into.
                if let Some(Apart { listed, stages }) = self.turns_apart(facts, scope, &mut reasons, &mut ways)? {
                    if let Some(plan) = self.of_calls(facts, scope, Some(listed))? {
                        return Ok(plan);
                    }
                    self.check_listed(facts, scope, stages)?;
                }
                let taken = self.taken_apart(facts, scope, &mut reasons, &mut ways)?;
                (apart, stage_reports) = taken.map_or((None, Vec::new()), |(scope, reports)| (Some(scope), reports));
                let calls = scope;
                let single = apart.as_ref().unwrap_or(scope);
                let taken = together(single, facts.scratch_capacity_bytes, |task, shape, state, steps| {
                    let may_block = may_block && !self.is_mapped(facts, task);
                    let most = if may_block { count(&self.copying(facts), task, shape, state, steps) } else { 1 };
                    ways.note_together(task.name(), most);
                    Ok::<_, PlanError>(most)
                })?;
                *blocked = taken.is_some();
                let (in_scope, reports) = taken.unzip();
                (in_steps, step_reports, numbers) = (in_scope, reports.unwrap_or_default(), Vec::new());
                let scope = in_steps.as_ref().unwrap_or(single);
                let turns = self.turns(facts, scope)?;
                if turns.longest > facts.listed_max {
                    let reports = stage_reports.iter().chain(&step_reports).cloned().collect();
                    let planned = self.in_parts(facts, scope, ways.clone(), reports);
                    // Where a part does not fit by itself, a long list may; what an edge below cannot move, or has no room for,
                    // it cannot and has not then.
                    let above = |memory: &MemoryId| self.machine.memory(*memory).parent;
                    let below = |memory: &String| {
                        std::iter::successors(self.machine.find(memory), above)
                            .skip(1)
                            .any(|above| above == facts.child)
                    };
                    let is_final = match &planned {
                        Err(PlanError::Unmovable { memory, .. } | PlanError::DoesNotFit { memory, .. }) => {
                            below(memory)
                        }
                        Err(error) => error.is_too_long(),
                        Ok(_) => true,
                    };
                    if is_final || turns.all > facts.calls_max {
                        return Ok(planned?);
                    }
                }
                if !*blocked && let Some(plan) = self.of_calls(facts, calls, Some(turns.all))? {
                    return Ok(plan);
                }
                // Before there is a list of them, and before anything is planned for each.
                self.check_listed(facts, scope, turns.all / 2)?;
                (parts, blocks) = in_blocks(scope, |task, shape| self.tunables(facts, task, shape))?;
                self.check_listed(facts, scope, parts.calls.len() as u64)?;
                (scope, single)
            }
        };
        let depth_max = self.options.depth_max;
        // Slots that lie as their files do take up to a page more each; what fits only without is moved with copies.
        let drafted = |parts: &Split, kept: Option<&Kept>| {
            draft(facts, parts, kept, depth_max, true, facts.offsets_bytes)
                .or_else(|_| draft(facts, parts, kept, depth_max, true, &[]))
        };
        let chosen = blocks.values().next().filter(|_| left.is_none());
        let of_formula = chosen.and_then(|tunables| kept(facts, scope, tunables));
        let refused = |overflow: Overflow, parts: &Split| Refused {
            scratch_bytes: overflow.scratch_bytes,
            error: self.overflow(facts, parts, overflow),
        };
        let mut draft = match (drafted(&parts, of_formula.as_ref()), left) {
            (Ok(draft), _) => draft,
            (Err(overflow), None) => return Err(refused(overflow, &parts)),
            // The blocks of a run in a larger memory: each is a part.
            (Err(overflow), Some(left)) => {
                let refused = refused(overflow, &parts);
                return self.left_in_parts(facts, left).map_err(|error| match error.is_too_long() {
                    true => error.into(),
                    false => refused,
                });
            }
        };
        if left.is_none()
            && self.may_keep_all(facts, single)
            && let Ok((whole, of_whole)) = in_blocks(single, |task, shape| Ok(undivided(task, shape)))
            && let Ok(all) = drafted(&whole, None)
            && all.price() < draft.price()
            && all.seconds < SLOWER_UNDIVIDED * draft.seconds
        {
            (parts, blocks, draft, scope, *blocked) = (whole, of_whole, all, single, false);
            ways.note_single();
            step_reports.clear();
        }
        let sources = match left {
            Some(left) => left.sources.clone(),
            None if facts.number == 0 => sources(scope, &blocks),
            None => Arc::default(),
        };
        for call in scope.calls.iter() {
            let task = &scope.tasks[call.task as usize];
            // The first call of each task and shape says how all of them were split.
            if let Some(tunables) = blocks.remove(&(identity(task), call.shape())) {
                report.add(task, &tunables);
                ways.note_blocks(task.name(), &tunables);
            }
        }
        let Draft { children, balanced, seconds, traffic, capacity_bytes, scratch_bytes, mut passes, .. } = draft;
        if !stage_reports.is_empty() && facts.stages() {
            let results = scope.arrays.iter().filter(|a| matches!(a.role, Role::Output | Role::InOut));
            let results: u64 = results.map(ArrayDecl::bytes).sum();
            let times = |bytes: u64| bytes as f64 / results.max(1) as f64;
            stage_reports.push(PassReport {
                pass: "stages",
                summary: format!(
                    "{} passes over {}, which goes down {:.2} times and up {:.2} times",
                    scope.calls.len(),
                    approximate_bytes(results),
                    times(traffic.bytes_down),
                    times(traffic.bytes_up)
                ),
            });
        }
        stage_reports.append(&mut step_reports);
        stage_reports.append(&mut passes);
        let mut passes = stage_reports;
        passes.extend(parts.reduction_report(scope));
        let below = self.layout.branch(facts.number).below(0);
        // In a shared address space the children's partial results lie beside those of this plan.
        let below_bytes_max = match facts.stages() {
            true => below_bytes_max,
            false => below_bytes_max.saturating_sub(parts.temporary_bytes(scope).div_ceil(facts.children as u64)),
        };
        let (mut bodies, held) = (vec![None; parts.classes.len()], self.held);
        for (planned, class) in facts.planning_order(&parts).into_iter().enumerate() {
            let (task, shape) = &parts.classes[class];
            let reference = &parts.tasks[*task as usize];
            bodies[class] = Some(match below {
                None => {
                    reference.check_leaf(shape).map_err(PlanError::from)?;
                    Body::Leaf { scratch_bytes: reference.scratch_bytes(shape, facts.scratch_capacity_bytes) }
                }
                Some(below) => {
                    let body = self.call(below, reference, shape, below_bytes_max);
                    Body::Inner(body.map_err(|error| error.in_all(held, planned, parts.classes.len()))?)
                }
            });
        }
        let classes = parts.with_bodies(bodies);
        // A part of a call may take more than the whole would: what helps it need not have fitted there.
        let of_classes: Vec<u64> = classes.iter().map(|class| class.body.scratch_bytes()).collect();
        let needs = parts.class_of.iter().map(|&class| of_classes[class as usize]);
        let most = needs.zip(0..).max().filter(|&(need_bytes, _)| facts.stages() && need_bytes > scratch_bytes);
        if let Some((need_bytes, call)) = most {
            let overflow = Overflow {
                fit: DoesNotFit { call, need_bytes },
                capacity_bytes,
                reserved_bytes: facts.fixed_bytes,
                scratch_bytes: need_bytes.saturating_sub(facts.partials_bytes),
            };
            return Err(Refused {
                scratch_bytes: overflow.scratch_bytes,
                error: self.overflow(facts, &parts, overflow),
            });
        }
        let plan = Plan {
            capacity_bytes,
            slot_unit_bytes: if facts.stages() { facts.align_bytes() } else { 1 },
            scratch_bytes,
            fixed_bytes: facts.fixed_bytes,
            total_bytes: facts.total_bytes,
            numbers,
            sources,
            children,
            balanced,
            passes,
            traffic,
            tunables: report.0,
            ways,
            seconds,
            ..self.outline(facts.number, parts, classes)
        };
        Ok(Arc::new(plan))
    }

    /// The plan of what is left where each call is a part.
    fn left_in_parts(&mut self, facts: &EdgeFacts<'_>, left: &Left) -> Result<Arc<Plan>, PlanError> {
        let mut report = Report::default();
        left.sources.iter().for_each(|source| report.add(&source.task, &source.tunables));
        let (split, numbers, sources) = (left.split.clone(), left.numbers.clone(), left.sources.clone());
        let plan = self.of_parts(facts, split, &FxHashMap::default(), numbers, sources, Vec::new())?;
        Ok(Arc::new(Plan { tunables: report.0, ..plan }))
    }

    /// Whether all that the calls of a scope use could stay in a child from the first call to the last: then each is fetched
    /// once, whereas blocks of a call with a halo are stored for the next call's, which are cut otherwise.
    fn may_keep_all(&self, facts: &EdgeFacts<'_>, scope: &Scope) -> bool {
        let bytes = scope.arrays.iter().map(ArrayDecl::bytes).fold(0, u64::saturating_add);
        facts.stages()
            && scope.calls.len() > 1
            && bytes <= facts.total_bytes
            && !scope.tasks.iter().any(|task| self.is_mapped(facts, task))
    }

    /// An edge that copies, and those below it that do, down to where children are of several kinds.
    fn copying<'a>(&'a self, facts: &EdgeFacts<'a>) -> Vec<EdgeFacts<'a>> {
        let next = |number: &usize| self.layout.branch(*number).below(0);
        let below = std::iter::successors(next(&facts.number), next)
            .map_while(|number| edge_facts(self.machine, &self.layout, number, self.options.disk_buffer_bytes));
        std::iter::once(*facts).chain(below.filter(EdgeFacts::stages)).collect()
    }

    /// Whether the mapping says how a task is split on an edge.
    pub(crate) fn is_mapped(&self, facts: &EdgeFacts<'_>, task: &TaskRef) -> bool {
        self.mapping.get(task.name(), &self.machine.memory(facts.child).name).next().is_some()
    }

    /// The plan of one call for the edge of this number, in whose parent its arguments lie and its partial results may take
    /// `own_bytes_max`.
    pub(crate) fn call(
        &mut self,
        number: usize,
        task: &TaskRef,
        shape: &CallShape,
        own_bytes_max: u64,
    ) -> Result<Arc<Plan>, PlanError> {
        let key = (number, own_bytes_max, (identity(task), shape.clone()));
        if let Some(plan) = self.plans.get(&key) {
            return Ok(plan.clone());
        }
        let mut scope = Scope::of_call(task, shape);
        let hint = self.hints.get(&(number, (identity(task), shape.clone())));
        scope.lying = hint.map(|hint| hint.lying.clone()).unwrap_or_default();
        let plan = self.whole(number, &scope, own_bytes_max)?;
        self.tasks.push(task.clone());
        self.plans.insert(key, plan.clone());
        self.hold(task, &plan)?;
        Ok(plan)
    }

    /// A plan of these calls in which no child does anything yet.
    pub(crate) fn outline(&self, number: usize, split: Split, classes: Vec<CallClass>) -> Plan {
        let branch = self.layout.branch(number);
        Plan {
            edge: number,
            is_division: false,
            parent: self.memory_name(branch.parent),
            child: branch.child_name(self.machine),
            driver: branch.edge(self.machine).driver,
            capacity_bytes: 0,
            slot_unit_bytes: 1,
            scratch_bytes: 0,
            fixed_bytes: 0,
            total_bytes: 0,
            arrays: split.arrays,
            tasks: split.tasks,
            calls: split.calls,
            numbers: Vec::new(),
            sources: Arc::default(),
            class_of: split.class_of,
            classes,
            children: Vec::new(),
            balanced: false,
            passes: Vec::new(),
            traffic: Traffic::default(),
            tunables: Vec::new(),
            ways: Ways::default(),
            seconds: 0.0,
        }
    }

    pub(crate) fn memory_name(&self, memory: MemoryId) -> String {
        self.machine.memory(memory).name.clone()
    }

    pub(crate) fn tunables(
        &mut self,
        facts: &EdgeFacts<'_>,
        task: &TaskRef,
        shape: &CallShape,
    ) -> Result<Tunables, PlanError> {
        let set_aside = (facts.partials_bytes, facts.own_partials_bytes_max, facts.scratch_least_bytes);
        let key = (facts.number, set_aside, (identity(task), shape.clone()));
        if let Some(tunables) = self.chosen.get(&key) {
            return Ok(tunables.clone());
        }
        if !facts.edge.driver.executable && !self.options.simulated {
            return Err(PlanError::Driver {
                machine: self.machine.name.clone(),
                memory: self.machine.memory(facts.child).name.clone(),
                driver: facts.edge.driver.name.to_owned(),
            });
        }
        self.split.insert((task.name().to_owned(), self.machine.memory(facts.child).name.clone()));
        let hint = self.hints.get(&(facts.number, (identity(task), shape.clone())));
        let known = hint.and_then(|hint| Some((hint.loops.as_ref()?, hint.leads)));
        let facts = EdgeFacts { searched_max: self.searches_left, ..*facts };
        let facts = &match known {
            Some((loops, leads)) if !leads || turns(task, shape, loops) > facts.listed_max => return Ok(loops.clone()),
            Some(_) => EdgeFacts { calls_max: facts.listed_max, is_part: true, ..facts },
            None => facts,
        };
        let known = known.map(|(loops, _)| loops);
        let may_be_like = known.is_none() && task.notation().is_none() && !self.is_mapped(facts, task);
        let depth_max = self.options.depth_max;
        let alike = (facts.number, set_aside, identity(task));
        let other = self.searched.get(&alike).filter(|_| may_be_like);
        let like = other.and_then(|other| like(facts, task, shape, depth_max, other));
        let is_like = like.is_some();
        let found = match like {
            Some(found) => found,
            None => choose(self.machine, facts, &self.mapping, task, shape, depth_max, known)?,
        };
        self.searches_left = self.searches_left.saturating_sub(found.planned);
        let tunables = found.tunables;
        if may_be_like && !is_like {
            self.searched.insert(alike, (shape.clone(), tunables.clone()));
        }
        self.tasks.push(task.clone());
        self.chosen.insert(key, tunables.clone());
        Ok(tunables)
    }

    /// Refuses to list so many calls of a scope, of which the first is told, where blocks are copied.
    fn check_listed(&self, facts: &EdgeFacts<'_>, scope: &Scope, listed: u64) -> Result<(), PlanError> {
        if listed <= facts.calls_max || !facts.stages() {
            return Ok(());
        }
        let task = &scope.tasks[scope.calls[0].task as usize];
        Err(too_many(self.machine, facts, task, listed, self.is_mapped(facts, task)))
    }

    fn overflow(
        &self,
        facts: &EdgeFacts<'_>,
        parts: &crate::scope::Split,
        overflow: crate::edge::Overflow,
    ) -> PlanError {
        let call = &parts.calls[overflow.fit.call as usize];
        PlanError::DoesNotFit {
            memory: self.machine.memory(facts.child).name.clone(),
            task: parts.tasks[call.task as usize].name().to_owned(),
            capacity: readable_bytes(overflow.capacity_bytes),
            total: readable_bytes(facts.total_bytes),
            reserved: readable_bytes(overflow.reserved_bytes),
            tile: format!("call {}", overflow.fit.call),
            need: readable_bytes(overflow.fit.need_bytes),
            enough: Enough::from_need(overflow.reserved_bytes + 2 * overflow.fit.need_bytes),
        }
    }

    pub(crate) fn no_edge(&self) -> PlanError {
        let machine = self.machine.name.clone();
        PlanError::OneMemory { machine, memory: self.machine.memory(self.machine.root()).name.clone() }
    }
}

/// How a call is divided.
#[derive(Clone)]
pub(crate) struct Divided {
    pub(crate) tunables: Tunables,
    /// Predicted time, in seconds.
    pub(crate) seconds: f64,
    /// Calls that are made of it.
    pub(crate) calls: usize,
}
