//! What planning needs to know of an edge: gathered once of the machine, and what it says of calls.

use crate::cost::{LOCAL_READS_PER_COPY, leaf_seconds};
use crate::rules::{self, Movable};
use crate::scope::Split;
use multigrain_machine::{Edge, Layout, Machine, MemoryId};
use multigrain_program::{Arg, ArrayDecl, Call, CallShape, DynTask, Param, Region, Shape};
use std::cmp::Reverse;
use std::sync::Arc;

pub(crate) type TaskRef = Arc<dyn DynTask>;

/// What planning needs to know of an edge and the memories below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeFacts<'m> {
    pub(crate) number: usize,
    pub(crate) edge: &'m Edge,
    pub(crate) child: MemoryId,
    pub(crate) children: usize,
    /// Workers below one child.
    pub(crate) workers: usize,
    /// Bytes of each child, in all.
    pub(crate) total_bytes: u64,
    /// Bytes of each child that are not for blocks or scratch memory: transfer buffers, code.
    pub(crate) fixed_bytes: u64,
    /// Leaves below one child that take their scratch memory from it; 0 when the child's own children stage.
    pub(crate) scratch_users: u64,
    /// Scratch memory that is set aside at least, because another call of the same scope needs it.
    pub(crate) scratch_least_bytes: u64,
    /// Whether the leaf variants run in memories that stage their arguments, so that scratch memory is scarce.
    pub(crate) scratch_capacity_bytes: u64,
    /// Predicted rate of all processors below one child, in floating-point operations per second.
    pub(crate) flops_per_second: f64,
    /// Bandwidth with which one child's processors read its arguments.
    pub(crate) touch_bytes_per_second: f64,
    pub(crate) call_overhead_ns: f64,
    /// What it costs to wake the workers where they all wait for an edge above between its calls, and sleep meanwhile.
    pub(crate) wake_above_ns: f64,
    /// Bytes of each child that are for the partial results of reductions in plans below.
    pub(crate) partials_bytes: u64,
    /// The most calls that one call is split into here.
    pub(crate) calls_max: u64,
    /// The most calls that the drafts which a search compares at one time may have together.
    pub(crate) drafts_calls_max: u64,
    /// How many calls may still be planned to choose among candidates.
    pub(crate) searched_max: u64,
    /// The longest list of calls where they can be parts instead.
    pub(crate) listed_max: u64,
    /// Whether the call that is planned is a part, of which nobody makes parts again.
    pub(crate) is_part: bool,
    /// Where the call that is planned is a part, the shapes of the arrays in which its arguments lie.
    pub(crate) hosts: &'m [Shape],
    /// At which byte of its file each array of the scope begins; empty where they lie in no files.
    pub(crate) offsets_bytes: &'m [u64],
    /// What the partial results of a call that is split here may take in the parent memory.
    pub(crate) own_partials_bytes_max: u64,
    /// The unit at which edges below that enforce their rules take a block to begin.
    pub(crate) unit_below_bytes: u64,
}

impl EdgeFacts<'_> {
    /// Whether calls of the task may be parts, each planned by itself: what it keeps of a reduction it keeps in the parent
    /// memory, where a part has no room of its own.
    pub(crate) fn may_be_parts(&self, task: &TaskRef) -> bool {
        self.stages() && task.reduced_axis().is_none()
    }

    /// Within which units rows should keep: those of rules that are enforced here, or below, where blocks of blocks are moved.
    pub(crate) fn row_unit_bytes(&self) -> u64 {
        let here = if self.edge.rules.strict { self.edge.rules.alignment_bytes } else { 1 };
        here.max(self.unit_below_bytes)
    }

    /// How many arguments of such a call have rows that are no multiple of [`EdgeFacts::row_unit_bytes`].
    pub(crate) fn odd_rows(&self, task: &TaskRef, shape: &CallShape) -> usize {
        let unit = self.row_unit_bytes();
        let row_bytes = |(param, shape): (&Param, &Shape)| {
            shape.dims().last().copied().unwrap_or(1).saturating_mul(param.element.size_bytes())
        };
        task.params().iter().zip(&shape.shapes).filter(|&row| !row_bytes(row).is_multiple_of(unit)).count()
    }

    /// In which order classes of calls are planned: those of odd rows first, since it is soon told of them that edges with rules
    /// cannot move their blocks.
    pub(crate) fn planning_order(&self, split: &Split) -> Vec<usize> {
        let odd = |&class: &usize| {
            let (task, shape) = &split.classes[class];
            Reverse(self.odd_rows(&split.tasks[*task as usize], shape))
        };
        let mut order: Vec<usize> = (0..split.classes.len()).collect();
        order.sort_by_key(odd);
        order
    }

    /// Whether what a call is given lies as its plan takes it to, which knows nothing of the arrays it is given blocks of: rules
    /// that are enforced ask where a row begins.
    pub(crate) fn may_be_part(&self, call: &Call, arrays: &[ArrayDecl]) -> bool {
        let rules = &self.edge.rules;
        let is_like = |arg: &Arg| rules::movable(rules, &arg.region, &arrays[arg.array as usize]) == Movable::Aligned;
        !rules.strict || call.args.iter().all(is_like)
    }

    /// The arrays of a scope as they lie in the parent memory, as far as the cost of moving blocks of them goes.
    pub(crate) fn lying(&self, arrays: &[ArrayDecl]) -> Vec<ArrayDecl> {
        let hosts = self.hosts.iter().copied().map(Some).chain(std::iter::repeat(None));
        arrays.iter().zip(hosts).map(|(a, host)| ArrayDecl { shape: host.unwrap_or(a.shape), ..a.clone() }).collect()
    }

    /// Whether blocks fit, with what is set aside beside them, and so do the partial results of a reduction in the parent memory.
    pub(crate) fn fits(&self, footprint: u64, reserved: u64, partials: u64) -> bool {
        self.lacking_bytes(footprint, reserved, partials) == 0
    }

    /// For how many bytes of these there is no room, here and in the parent memory.
    pub(crate) fn lacking_bytes(&self, footprint: u64, reserved: u64, partials: u64) -> u64 {
        let here = if self.stages() { footprint.saturating_add(reserved).saturating_sub(self.total_bytes) } else { 0 };
        here.saturating_add(partials.saturating_sub(self.own_partials_bytes_max))
    }

    pub(crate) fn stages(&self) -> bool {
        !self.edge.driver.views
    }

    /// Alignment of slots: what the edge demands, and a cache line; what the driver moves best as a whole (the pages of a
    /// disk), so that transfers can end in the slot itself.
    pub(crate) fn align_bytes(&self) -> u64 {
        let natural = if self.total_bytes >= 1 << 20 { self.edge.driver.unit_bytes } else { 1 };
        natural.max(LINE_BYTES).max(self.edge.rules.alignment_bytes)
    }

    /// By how much the slot of a region should lie beyond an aligned address. An edge that enforces its rules moves only
    /// what is alike on both sides. On a disk, where the array begins at `offset_bytes` of a file, direct transfers want
    /// file and memory to be alike modulo a page; only long fragments are worth it.
    pub(crate) fn skew_bytes(&self, region: &Region, array: &ArrayDecl, offset_bytes: Option<u64>) -> u64 {
        if self.edge.rules.strict {
            return rules::skew_bytes(&self.edge.rules, region, array);
        }
        let Some(offset_bytes) = offset_bytes else { return 0 };
        let size = array.element.size_bytes();
        let (_, run) = region.fragments(array.shape);
        let unit = self.edge.driver.unit_bytes;
        if unit == 1 || self.edge.rules.alignment_bytes > 1 || run * size < LONG_FRAGMENT_BYTES {
            return 0;
        }
        let skew = (offset_bytes + region.element(0, array.shape) * size) % unit;
        if skew.is_multiple_of(size) && skew.is_multiple_of(self.unit_below_bytes) { skew } else { 0 }
    }

    pub(crate) fn scratch_bytes(&self, task: &dyn DynTask, shape: &CallShape) -> u64 {
        if self.scratch_users == 0 {
            return 0;
        }
        // 64 bytes more, so that the scratch memory can be aligned.
        let need = task.scratch_bytes(shape, self.scratch_capacity_bytes);
        if need == 0 { 0 } else { self.scratch_users * (need + 64) }
    }

    pub(crate) fn run_seconds(&self, task: &dyn DynTask, shape: &CallShape) -> f64 {
        let work = task.work(shape);
        let by = |workers: f64| {
            let processor = multigrain_machine::Processor {
                kind: multigrain_machine::ProcessorKind::Cpu,
                flops_per_second: self.flops_per_second * workers / self.workers as f64,
                call_overhead_ns: self.call_overhead_ns,
                code_bytes: 0,
            };
            leaf_seconds(work, &processor, self.touch_bytes_per_second * workers / self.workers as f64)
        };
        let all = by(self.workers as f64);
        let wake = self.edge.costs.wake_ns * 1e-9;
        if self.workers > 1 && wake > 0.0 { by(1.0).min(all + wake) } else { all }
    }

    /// Time in seconds that leaves take besides their work to find the runs of memory that each of a call's blocks lies in,
    /// where these are not copied: the edge's latency for each but the first of a block. Short rows far apart take most of a
    /// transform's time (256^3 complex numbers, columns in rows of 37: 41 ms on two workers; of 256: 27).
    pub(crate) fn scattered_seconds(&self, runs: impl Iterator<Item = f64>) -> f64 {
        if self.stages() {
            return 0.0;
        }
        runs.map(|runs| (runs - 1.0).max(0.0)).sum::<f64>() * self.edge.latency_ns * 1e-9
    }

    /// The same of a call.
    pub(crate) fn scattered_call_seconds(&self, call: &Call, arrays: &[ArrayDecl]) -> f64 {
        let runs = |arg: &Arg| arg.region.fragments(arrays[arg.array as usize].shape).0 as f64;
        self.scattered_seconds(call.args.iter().map(runs))
    }

    /// Time in seconds that it takes to begin and end work which more than one child does.
    pub(crate) fn fork_seconds(&self) -> f64 {
        self.wake_above_ns * 1e-9
    }
}

/// Gathers the facts of an edge to memories.
pub(crate) fn facts<'m>(
    machine: &'m Machine,
    layout: &Layout,
    number: usize,
    disk_buffer_bytes: u64,
) -> Option<EdgeFacts<'m>> {
    let branch = layout.branch(number);
    let id = branch.child?;
    let (child, edge) = (machine.memory(id), branch.edge(machine));
    let mut leaves = Vec::new();
    leaves_below(machine, id, 1, false, &mut leaves);
    let is_leaf = machine.children(id).next().is_none();
    let processor = |leaf: &LeafKind| machine.memory(leaf.memory).processor;
    let flops = |leaf: &LeafKind| processor(leaf).map_or(0.0, |p| p.flops_per_second) * leaf.workers as f64;
    // Scratch memory of leaves whose blocks are views is taken from the child; of others from their own memories.
    let sharing = leaves.iter().filter(|leaf| !leaf.staged);
    let scratch_users = if edge.driver.views { 0 } else { sharing.clone().map(|leaf| leaf.workers as u64).sum() };
    let leaf = sharing.clone().next().or(leaves.first())?;
    let leaf_stages = machine.memory(leaf.memory).edge.is_some_and(|e| !e.driver.views);
    let touch = if is_leaf {
        // In a shared memory the arguments come over the edge; in a local store they have been copied already, and
        // are read from there at a multiple of what copying gives.
        let share = edge.read_bytes_per_second / child.count as f64;
        if edge.driver.views { share } else { LOCAL_READS_PER_COPY * share }
    } else {
        machine.children(id).filter_map(|below| machine.memory(below).edge).map(|e| e.read_bytes_per_second).sum()
    };
    let code = |leaf: &LeafKind| processor(leaf).map_or(0, |p| p.code_bytes);
    let fixed = if edge.driver.files { disk_buffer_bytes } else { 0 }
        + if is_leaf && edge.driver.code { code(leaf) } else { 0 };
    let above = branch.above.iter().map(|&number| layout.branch(number).edge(machine));
    Some(EdgeFacts {
        number,
        edge,
        child: id,
        children: child.count,
        workers: branch.workers(0),
        total_bytes: child.capacity_bytes,
        fixed_bytes: fixed,
        scratch_users,
        scratch_least_bytes: 0,
        scratch_capacity_bytes: match leaf_stages {
            true => machine.memory(leaf.memory).capacity_bytes,
            false => scratch_share(machine, leaf.memory),
        },
        flops_per_second: leaves.iter().map(flops).sum(),
        touch_bytes_per_second: touch,
        call_overhead_ns: leaves.iter().filter_map(processor).map(|p| p.call_overhead_ns).fold(0.0, f64::max),
        wake_above_ns: above.map(|edge| edge.costs.wake_ns).fold(0.0, f64::max),
        partials_bytes: 0,
        calls_max: u64::MAX,
        drafts_calls_max: u64::MAX,
        searched_max: u64::MAX,
        listed_max: u64::MAX,
        is_part: false,
        hosts: &[],
        offsets_bytes: &[],
        own_partials_bytes_max: u64::MAX,
        unit_below_bytes: unit_below_bytes(machine, id),
    })
}

/// The largest unit of the edges below a memory that enforce their rules.
fn unit_below_bytes(machine: &Machine, memory: MemoryId) -> u64 {
    let of = |id: MemoryId| {
        let rules = machine.memory(id).edge.map(|edge| edge.rules).filter(|rules| rules.strict);
        rules.map_or(1, |rules| rules.alignment_bytes).max(unit_below_bytes(machine, id))
    };
    machine.children(memory).map(of).max().unwrap_or(1).max(1)
}

/// Leaves of one kind below a memory.
struct LeafKind {
    memory: MemoryId,
    /// How many.
    workers: usize,
    /// Whether blocks are copied on the way down to them.
    staged: bool,
}

fn leaves_below(machine: &Machine, memory: MemoryId, workers: usize, staged: bool, leaves: &mut Vec<LeafKind>) {
    let before = leaves.len();
    for id in machine.children(memory) {
        let child = machine.memory(id);
        let copies = child.edge.is_some_and(|edge| !edge.driver.views);
        leaves_below(machine, id, workers * child.count, staged || copies, leaves);
    }
    if leaves.len() == before {
        leaves.push(LeafKind { memory, workers, staged });
    }
}

/// What a leaf is told that its memory holds where it shares that of a staging edge above: its scratch memory, of which a
/// quarter of this is usual, then takes a small part of what blocks may use. A memory that nothing is staged into has
/// no limit.
fn scratch_share(machine: &Machine, leaf: MemoryId) -> u64 {
    let (mut at, mut workers) = (leaf, 1);
    loop {
        let memory = machine.memory(at);
        let (Some(edge), Some(parent)) = (memory.edge, memory.parent) else { return u64::MAX };
        if !edge.driver.views {
            return (memory.capacity_bytes / SCRATCH_SHARE / workers as u64).max(SCRATCH_LEAST_BYTES);
        }
        (at, workers) = (parent, workers * memory.count);
    }
}

/// Leaves below a staged memory are told of this part of it together.
const SCRATCH_SHARE: u64 = 8;
/// But each of a first-level cache and more: kernels that pack nothing are slow.
const SCRATCH_LEAST_BYTES: u64 = 256 << 10;
/// Fragments from this length on go between file and slot without a copy where both are alike.
const LONG_FRAGMENT_BYTES: u64 = 128 << 10;
/// Slots begin with a cache line.
const LINE_BYTES: u64 = 64;

/// What so many fragments cost an edge besides their bytes, in seconds; see [`moving_seconds`].
pub(crate) fn fragment_seconds(facts: &EdgeFacts<'_>, fragments: f64) -> f64 {
    match facts.edge.driver.queued {
        true => fragments * facts.edge.costs.fragment_ns * 1e-9,
        false => fragments * LINE_BYTES as f64 / facts.edge.read_bytes_per_second,
    }
}
