//! Proof that a plan does what its calls mean, found from the plan alone.
//!
//! Nothing here knows how a plan was made. The calls, executed one after the other, say which call's output every
//! element must hold whenever it is read, and at the end; the plan's steps are then executed on these versions, with
//! vector clocks for what is ordered between children. What is proved of each edge:
//!
//! - every call runs once, on exactly its declared regions, in the versions that sequential execution shows;
//! - no bytes of a slot are touched while they are in use or in flight, and every transfer is issued and awaited once;
//! - results end in the parent memory in their final version, and nothing is stored twice;
//! - conflicting accesses of the parent memory are ordered in every execution, and no child waits forever;
//! - children come to the same barriers and broadcasts in one order, and a broadcast finds its block at the root;
//! - slots lie within the capacity and where the edge's rules allow, transfers have sizes the edge can move;
//! - a plan's calls are those that the tasks' splits make of the program's calls or, for the plan of a call, of that;
//! - between them every contribution to a reduction is combined exactly once, in the order and shape of the fixed tree.
//!
//! Not proved: that a task's split and leaf compute the same. That is the task's promise, and tests hold it to it.

mod cells;
mod error;
mod execute;
mod order;
mod problem;
mod report;
mod scope;
mod splits;
mod staging;

pub use error::{CheckError, Site};
pub use problem::{BlockName, BlockedWait, Direction, Problem, Version};
pub use report::{CheckReport, EdgeReport};

use self::splits::splits;
use crate::plan::{Body, CallClass, Plan, SourceCall, Traffic};
use multigrain_machine::{Layout, Machine, TransferRules};
use multigrain_program::{Access, Arg, Args, CallShape, Callee, DynTask, Region, Role, Scalars, Tunables};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Proves that a plan, with all plans inside it, does what its calls mean. `rules[edge]` are the transfer rules of
/// that edge, see [`edge_rules`].
///
/// Takes time in proportion to the steps and the cells of their blocks, times a logarithm.
///
/// # Errors
/// The first thing found wrong, with the child, step, call and block.
pub fn check(plan: &Plan, rules: &[TransferRules]) -> Result<CheckReport, CheckError> {
    let mut report = CheckReport::default();
    check_one(plan, false, rules, &mut FxHashSet::default(), &mut report)?;
    Ok(report)
}

/// The transfer rules of a machine's edges, by their numbers.
pub fn edge_rules(machine: &Machine) -> Vec<TransferRules> {
    Layout::of(machine).branches().iter().map(|branch| branch.edge(machine).rules).collect()
}

fn check_one(
    plan: &Plan,
    is_inner: bool,
    rules: &[TransferRules],
    seen: &mut FxHashSet<*const Plan>,
    report: &mut CheckReport,
) -> Result<(), CheckError> {
    let Some(edge) = rules.get(plan.edge) else {
        return Err(CheckError::new(plan, Problem::NoRules { edge: plan.edge, given: rules.len() }));
    };
    scope::calls(plan)?;
    if !is_inner && !plan.sources.is_empty() && plan.numbers.is_empty() {
        let given = plan.sources.iter().flat_map(|s| &s.args).map(|arg| arg.array as usize + 1).max().unwrap_or(0);
        splits(plan, &plan.sources, given).map_err(|problem| CheckError::new(plan, problem))?;
    }
    let scope = scope::Scope::new(plan);
    if is_inner {
        scope.check_defined()?;
    }
    // Parts are executed in the order of the calls, each where the arrays lie: what they mean is what is done.
    let counts = match plan.is_in_parts() {
        true => {
            let parts = parts_traffic(plan).and_then(|()| staging::parts(plan, edge));
            parts.map_err(|problem| CheckError::new(plan, problem))?;
            execute::Counts::default()
        }
        false => {
            staging::capacity(plan)?;
            staging::slots(plan, edge)?;
            let transfers = staging::steps(plan, edge)?;
            execute::execute(&scope, &transfers, edge)?
        }
    };
    report.add(EdgeReport {
        edge: plan.edge,
        parent: plan.parent.clone(),
        child: plan.child.clone(),
        plans: 1,
        calls: plan.calls.len() as u64,
        ops: plan.children.iter().map(|c| c.ops.len() as u64).sum(),
        cells: scope.cells.len() as u64,
        waits: counts.waits,
        transfers: if plan.is_in_parts() { 0 } else { plan.traffic.transfers },
        unread_stores: counts.unread_stores,
        staging_bytes: plan.children.iter().map(|c| c.staging_bytes).max().unwrap_or(0),
    });
    drop(scope);
    let mut used = vec![false; plan.classes.len()];
    plan.class_of.iter().for_each(|&class| used[class as usize] = true);
    for (class, _) in plan.classes.iter().zip(used).filter(|(_, used)| *used) {
        let Body::Inner(inner) = &class.body else {
            if plan.is_in_parts() {
                let (expected, found) = ("a plan of the same edge".to_owned(), "a leaf".to_owned());
                return Err(CheckError::new(plan, Problem::Differs { what: "a part", expected, found }));
            }
            continue;
        };
        interface(plan, class, inner).map_err(|problem| CheckError::new(inner, problem))?;
        if seen.insert(Arc::as_ptr(inner)) {
            check_one(inner, true, rules, seen, report)?;
        }
    }
    Ok(())
}

/// Whether a plan in parts tells the traffic that its parts have.
fn parts_traffic(plan: &Plan) -> Result<(), Problem> {
    let mut expected = Traffic::default();
    for &class in &plan.class_of {
        if let Body::Inner(part) = &plan.classes[class as usize].body {
            expected += part.traffic;
        }
    }
    match expected == plan.traffic {
        true => Ok(()),
        false => Err(Problem::Traffic { stated: plan.traffic, counted: expected }),
    }
}

/// Whether an inner plan is one of the calls of this class: on arrays that are the call's arguments, it makes the calls
/// that the task's split makes, or the one call itself.
fn interface(plan: &Plan, class: &CallClass, inner: &Plan) -> Result<(), Problem> {
    let differs = |what, expected: String, found: String| Err(Problem::Differs { what, expected, found });
    let task = &plan.tasks[class.task as usize];
    let params = task.params();
    if plan.is_in_parts() {
        // Of the same edge, with nothing beside the arguments: there is no place for it.
        if inner.edge != plan.edge {
            return differs("edge of a part", plan.edge.to_string(), inner.edge.to_string());
        }
        if inner.arrays.len() != params.len() {
            return differs("number of arrays of a part", params.len().to_string(), inner.arrays.len().to_string());
        }
    } else if inner.edge <= plan.edge {
        return differs("edge", format!("more than {}", plan.edge), inner.edge.to_string());
    }
    if inner.arrays.len() < params.len() || class.shape.shapes.len() != params.len() {
        return differs("number of arrays", params.len().to_string(), inner.arrays.len().to_string());
    }
    for ((param, &shape), array) in params.iter().zip(&class.shape.shapes).zip(&inner.arrays) {
        let role = match param.access {
            Access::Read => Role::Input,
            Access::Write | Access::Reduce => Role::Output,
            Access::Update => Role::InOut,
        };
        if (array.element, array.shape, array.role) != (param.element, shape, role) {
            let expected = format!("{} {} {role:?}", param.element, shape);
            return differs("an argument", expected, format!("{} {} {:?}", array.element, array.shape, array.role));
        }
    }
    let whole = |(i, &shape)| Arg { array: i as u32, region: Region::whole(shape) };
    let args: Args = class.shape.shapes.iter().enumerate().map(whole).collect();
    if let [call] = &inner.calls[..]
        && (&call.args, &call.scalars) == (&args, &class.shape.scalars)
        && inner.tasks.get(call.task as usize).is_some_and(|t| t.name() == task.name())
    {
        return Ok(());
    }
    let mut sources = Vec::new();
    sources_of(task, &args, &class.shape.scalars, inner, &mut sources);
    splits(inner, &sources, params.len())
}

/// The calls that a call means before they are split: itself, or those of its stages where the plan has tunables for
/// these instead.
fn sources_of(task: &Arc<dyn DynTask>, args: &Args, scalars: &Scalars, plan: &Plan, sources: &mut Vec<SourceCall>) {
    let shapes = args.iter().map(|arg| arg.region.shape()).collect();
    // Without a right sequence there is the call itself, and no plan that is a split of it.
    let stages = task.stages(&CallShape { shapes, scalars: scalars.clone() }).unwrap_or_default();
    let mut chosen = plan.tunables.iter().filter(|(name, _)| name == task.name()).peekable();
    if stages.is_empty() || chosen.peek().is_some() {
        let tunables: Tunables = chosen.next().into_iter().flat_map(|(_, values)| values).copied().collect();
        sources.push(SourceCall { task: task.clone(), args: args.clone(), scalars: scalars.clone(), tunables });
        return;
    }
    for stage in &stages {
        // A task is never its own stage.
        let Callee::Task(callee) = &stage.callee else { continue };
        let arg = |(param, region): &(usize, Region)| {
            let outer = &args[*param];
            Arg { array: outer.array, region: region.within(&outer.region) }
        };
        let inner: Args = stage.args.iter().map(arg).collect();
        sources_of(callee, &inner, &stage.scalars, plan, sources);
    }
}
