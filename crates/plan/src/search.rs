//! Choosing tunables: how large the blocks of a call are, for one edge.
//!
//! Candidates are fractions of each axis, in several orders of loops. What they cost is told by formulas where the task has a
//! notation ([`crate::formula`]), and by splitting where not ([`crate::looking`]); the most promising are then planned in
//! earnest, and the cheapest plan decides.

use crate::candidates::{Candidate, Found, finals, spans, split_with, thinned, values};
use crate::error::{Enough, PlanError};
use crate::estimate::Nest;
use crate::facts::{EdgeFacts, TaskRef};
use crate::formula::{Unfit, by_formula};
use crate::looking::{by_looking, look};
use crate::mapping::Mapping;
use crate::rules::{Movable, multiple};
use crate::scope::Scope;
use multigrain_machine::{Machine, readable_bytes};
use multigrain_program::{CallShape, Tunable, Tunables};

/// Chooses the tunables of a call at an edge; `known` are some that fit.
pub(crate) fn choose(
    machine: &Machine,
    facts: &EdgeFacts<'_>,
    mapping: &Mapping,
    task: &TaskRef,
    shape: &CallShape,
    depth_max: usize,
    known: Option<&Tunables>,
) -> Result<Found, PlanError> {
    let specs = task.tunables(shape);
    let memory = machine.memory(facts.child).name.clone();
    let fixed = fixed_values(mapping, task, &memory, &specs)?;
    let nest = Nest::of(facts, task, shape);
    let every = |number: usize, spec: &Tunable| match &nest {
        Some(nest) => nest.every[number],
        None => multiple(facts.row_unit_bytes(), &**task, spec.multiple),
    };
    let lists = specs
        .iter()
        .enumerate()
        .map(|(number, spec)| match fixed.iter().find(|(name, _)| *name == spec.name) {
            Some(&(_, value)) => vec![value],
            None if task.reduced_axis() == Some(spec.name) => spans(spec),
            None => values(&Tunable { multiple: every(number, spec), ..*spec }, specs.len()),
        })
        .collect();
    let lists = thinned(lists);
    let scope = Scope::of_call(task, shape);
    let is_mapped = !fixed.is_empty();
    let found = match &nest {
        Some(nest) => by_formula(nest, &scope, &lists, is_mapped, depth_max, known),
        None => by_looking(facts, &scope, &lists, depth_max, known),
    };
    found.map_err(|unfit| match unfit {
        Unfit::TooMany(calls) => too_many(machine, facts, task, calls, is_mapped),
        Unfit::Unmovable(largest) => PlanError::Unmovable {
            task: task.name().to_owned(),
            memory: machine.memory(facts.child).name.clone(),
            tile: describe(&largest.tunables),
            alignment_bytes: facts.edge.rules.alignment_bytes,
        },
        Unfit::Smallest(smallest) => refusal(machine, facts, task, shape, depth_max, &smallest, is_mapped),
        Unfit::Nothing => PlanError::Empty,
        Unfit::Split(error) => (*error).into(),
    })
}

/// Axes and blocks whose lengths differ by this part of the longer one at most are alike.
const ALIKE: u64 = 8;

/// For a call of a task whose split is free: as many pieces along each axis as another call has that is almost as large, where
/// that fits and the edge's rules let it pass. So of a list of which no two calls have one shape, as of sequences, one is
/// searched for and not each.
pub(crate) fn like(
    facts: &EdgeFacts<'_>,
    task: &TaskRef,
    shape: &CallShape,
    depth_max: usize,
    (other, chosen): &(CallShape, Tunables),
) -> Option<Found> {
    let near = |(a, b): (u64, u64)| a.abs_diff(b) <= a.max(b) / ALIKE;
    let mut elements = shape.shapes.iter().zip(&other.shapes).map(|(a, b)| (a.elements(), b.elements()));
    let (specs, others) = (task.tunables(shape), task.tunables(other));
    let extents = || specs.iter().zip(&others).map(|(a, b)| (a.extent, b.extent));
    if specs.len() != others.len() || !elements.all(near) || !extents().all(near) {
        return None;
    }
    let length = |(spec, other): (&Tunable, &Tunable)| {
        let length = chosen.get(other.name, other.extent);
        let multiple = multiple(facts.row_unit_bytes(), &**task, spec.multiple);
        let as_many = || spec.extent.div_ceil(other.extent.div_ceil(length)).next_multiple_of(multiple);
        // Partial results end where they do in the other call, unless that is where the axis ends.
        let is_part = task.reduced_axis() == Some(spec.name) && length < other.extent;
        (spec.name, if is_part { length } else { as_many() }.min(spec.extent))
    };
    let tunables: Tunables = specs.iter().zip(&others).map(length).collect();
    let scope = Scope::of_call(task, shape);
    let calls = split_with(&scope, &tunables).ok()?.calls.len() as u64;
    let candidate = look(facts, &scope, tunables, calls).ok().filter(|_| calls <= facts.calls_max)?;
    let fits = facts.fits(candidate.footprint, candidate.reserved, candidate.partials)
        && (candidate.movable == Movable::Aligned || !facts.edge.rules.strict);
    fits.then(|| finals(facts, &scope, vec![candidate], depth_max)).flatten()
}

/// The refusal of a split into more calls than a plan has room for.
pub(crate) fn too_many(
    machine: &Machine,
    facts: &EdgeFacts<'_>,
    task: &TaskRef,
    calls: u64,
    is_mapped: bool,
) -> PlanError {
    PlanError::TooManyCalls {
        task: task.name().to_owned(),
        memory: machine.memory(facts.child).name.clone(),
        tile: if is_mapped { "by the mapping's tile" } else { "by the largest tile that fits" },
        calls,
        most: facts.calls_max,
        enough: None,
    }
}

/// Why not even this candidate, which needs least, can be planned.
#[allow(clippy::too_many_arguments)]
fn refusal(
    machine: &Machine,
    facts: &EdgeFacts<'_>,
    task: &TaskRef,
    shape: &CallShape,
    depth_max: usize,
    smallest: &Candidate,
    is_mapped: bool,
) -> PlanError {
    let memory = machine.memory(facts.child).name.clone();
    let tile = describe(&smallest.tunables);
    if !is_mapped && smallest.partials > facts.own_partials_bytes_max {
        // Blocks fit, but not what the reduction keeps beside the call's arguments.
        let child = machine.memory(facts.child);
        let parent = child.parent.map_or(child, |id| machine.memory(id));
        let (offered, total) = (facts.own_partials_bytes_max, parent.capacity_bytes);
        return PlanError::DoesNotFit {
            memory: parent.name.clone(),
            task: task.name().to_owned(),
            capacity: readable_bytes(offered),
            total: readable_bytes(total),
            reserved: readable_bytes(total.saturating_sub(offered)),
            tile,
            need: readable_bytes(smallest.partials),
            enough: Enough::from_need(total.saturating_add((smallest.partials - offered).saturating_mul(4))),
        };
    }
    let capacity = facts.total_bytes.saturating_sub(smallest.reserved);
    if !is_mapped {
        // Room for rounding of addresses: one alignment for each argument.
        let slack = facts.align_bytes() * shape.shapes.len() as u64;
        return PlanError::DoesNotFit {
            memory,
            task: task.name().to_owned(),
            capacity: readable_bytes(capacity),
            total: readable_bytes(facts.total_bytes),
            reserved: readable_bytes(smallest.reserved),
            tile,
            need: readable_bytes(smallest.footprint),
            enough: Enough::from_need(smallest.footprint.saturating_add(smallest.reserved).saturating_add(slack)),
        };
    }
    match choose(machine, facts, &Mapping::default(), task, shape, depth_max, None) {
        Ok(largest) => PlanError::MappingDoesNotFit {
            memory,
            task: task.name().to_owned(),
            capacity: readable_bytes(capacity),
            tile,
            need: readable_bytes(smallest.footprint),
            largest: describe(&largest.tunables),
        },
        Err(error) => error,
    }
}

/// Tunables as text: `m = 4096, n = 4096, k = 512`.
pub(crate) fn describe(tunables: &Tunables) -> String {
    let parts: Vec<String> = tunables.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if parts.is_empty() { "the whole call".to_owned() } else { parts.join(", ") }
}

fn fixed_values(
    mapping: &Mapping,
    task: &TaskRef,
    memory: &str,
    specs: &[Tunable],
) -> Result<Vec<(&'static str, u64)>, PlanError> {
    let mut fixed = Vec::new();
    for (name, value) in mapping.get(task.name(), memory) {
        let refuse = |why: String| PlanError::Mapping {
            task: task.name().to_owned(),
            memory: memory.to_owned(),
            tunable: name.to_owned(),
            value,
            why,
        };
        let Some(spec) = specs.iter().find(|s| s.name == name) else {
            let names: Vec<&str> = specs.iter().map(|s| s.name).collect();
            return Err(refuse(format!("the task has no such tunable, only {}", names.join(", "))));
        };
        if value == 0 {
            return Err(refuse("a block has at least one element".into()));
        }
        if !task.allows(spec, value) {
            let multiple = spec.multiple;
            return Err(refuse(match task.reduced_axis() == Some(spec.name) {
                true => format!("it must be {multiple} times a power of two, a node of the tree of the reduction"),
                false => format!("it must be a multiple of {multiple}, where partial sums end"),
            }));
        }
        fixed.push((spec.name, value.min(spec.extent)));
    }
    Ok(fixed)
}
