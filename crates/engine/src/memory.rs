//! All memory of a run, reserved before its first step: staging memory of every child, partial results of reductions,
//! scratch memory of every worker. It can be kept from one run to the next: making memory usable takes time, on a virtual
//! machine up to 2 seconds a GiB.

use crate::error::EngineError;
use crate::run::levels_of;
use multigrain_driver::{Child, Drivers, Site, Span};
use multigrain_machine::{Edge, Machine, MemoryId};
use multigrain_plan::{Body, Plan, TEMPORARY_ALIGN_BYTES};
use multigrain_program::{ArrayDecl, RawView};
use multigrain_store::AlignedBuffer;
use multigrain_team::Team;

/// The smallest pages in use; larger ones are touched more often than need be.
const PAGE_BYTES: usize = 4096;

/// Scratch memory begins at multiples of this, a cache line.
const SCRATCH_ALIGN_BYTES: u64 = 64;

/// The memory of one child, as its driver reserved it.
pub(crate) struct Reserved {
    pub(crate) child: Box<dyn Child>,
    pub(crate) span: Span,
    /// Leaves are executed by the driver's own processor.
    pub(crate) executes: bool,
}

impl Reserved {
    /// Scratch memory for a leaf that runs here: the upper end of the memory, as address and length. The plan has proved that
    /// blocks and scratch memory do not overlap.
    pub(crate) fn scratch(&self, bytes: u64) -> (*mut u8, usize) {
        let offset = self.span.len_bytes.saturating_sub(bytes) / SCRATCH_ALIGN_BYTES * SCRATCH_ALIGN_BYTES;
        (self.span.start.wrapping_add(offset as usize), bytes.min(self.span.len_bytes - offset) as usize)
    }
}

/// The memories of one level and who works below each.
pub(crate) struct Level {
    /// Empty where the children of this level share their parents' addresses.
    pub(crate) instances: Vec<Reserved>,
    pub(crate) workers_each: usize,
    /// For each of these memories, the partial results of reductions of the call that runs in it; empty when none
    /// reduces.
    partials: Vec<AlignedBuffer>,
}

/// Bytes of the parts of [`Memories`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBytes {
    /// Memories below a root without addresses (a disk), as far as blocks and scratch memory use them.
    pub staging: u64,
    /// Other memories that blocks are copied into, of all workers, as far as they use them.
    pub local: u64,
    /// Partial results of reductions that plans of calls keep.
    pub partials: u64,
    /// Scratch memory of all workers; where blocks of leaves are copied it lies in the memories that they are copied into.
    pub scratch: u64,
}

/// All memory that runs of a plan need besides the homes of its arrays, on one machine.
pub struct Memories {
    machine: Machine,
    need: Need,
    /// By depth; index 0, the root, is empty.
    pub(crate) levels: Vec<Level>,
    /// By worker, for leaves whose memory shares addresses.
    scratch: Vec<AlignedBuffer>,
}

// SAFETY: a child's memory is used by the leader of the workers below it alone, or by its driver's transfers; scratch memory
// by its worker alone. The interpreter keeps to that: each child is executed by one worker at a time.
unsafe impl Sync for Memories {}
// SAFETY: what is behind the addresses belongs to no thread.
unsafe impl Send for Memories {}

/// The most that any plan needs at each depth, and of scratch memory.
#[derive(Default)]
struct Need {
    staging: Vec<u64>,
    partials: Vec<u64>,
    scratch: u64,
}

fn collect(plan: &Plan, need: &mut Need) {
    let depth = plan.level + 1;
    if need.staging.len() <= depth {
        need.staging.resize(depth + 1, 0);
        need.partials.resize(depth + 1, 0);
    }
    if plan.level > 0 {
        need.partials[plan.level] = need.partials[plan.level].max(bytes_of(plan.temporaries()));
    }
    for child in &plan.children {
        need.staging[depth] = need.staging[depth].max(child.staging_bytes);
    }
    for class in &plan.classes {
        match &class.body {
            Body::Leaf { scratch_bytes } => need.scratch = need.scratch.max(*scratch_bytes),
            Body::Inner(plan) => collect(plan, need),
        }
    }
}

/// Bytes of temporary arrays that lie one behind the other.
fn bytes_of(temporaries: &[ArrayDecl]) -> u64 {
    temporaries.iter().map(|array| array.bytes().next_multiple_of(TEMPORARY_ALIGN_BYTES)).sum()
}

/// Whether leaves run in memories that their blocks are copied to: then scratch memory is a part of these.
fn leaf_stages(machine: &Machine, levels: &[MemoryId]) -> bool {
    levels.last().and_then(|&id| machine.memory(id).edge).is_some_and(|edge| !edge.driver.views)
}

impl Need {
    fn of(plan: &Plan, levels: usize) -> Need {
        let mut need = Need::default();
        collect(plan, &mut need);
        need.staging.resize(levels, 0);
        need.partials.resize(levels, 0);
        need
    }

    /// Bytes that each memory of a depth is used for: where leaves run in it, their scratch memory is its upper end.
    fn of_child(&self, depth: usize, is_leaf: bool) -> u64 {
        let scratch = if is_leaf { self.scratch } else { 0 };
        self.staging[depth].next_multiple_of(SCRATCH_ALIGN_BYTES).saturating_add(scratch)
    }

    fn is_within(&self, other: &Need) -> bool {
        let each = |a: &[u64], b: &[u64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a <= b);
        each(&self.staging, &other.staging) && each(&self.partials, &other.partials) && self.scratch <= other.scratch
    }
}

impl Memories {
    /// Reserves what runs of `plan` need on `machine`. Nothing is touched: the system gives a page to who first uses it.
    ///
    /// # Errors
    /// [`EngineError::Home`] when the machine is no chain of levels; [`EngineError::NoDriver`]; [`EngineError::Setup`] when
    /// the system refuses the memory.
    pub fn reserve(machine: &Machine, plan: &Plan, drivers: &Drivers) -> Result<Memories, EngineError> {
        let levels = levels_of(machine)?;
        let need = Need::of(plan, levels.len());
        let workers = machine.workers();
        let mut reserved = vec![Level { instances: Vec::new(), workers_each: workers, partials: Vec::new() }];
        let mut count = 1;
        for (depth, &id) in levels.iter().enumerate().skip(1) {
            let memory = machine.memory(id);
            count *= memory.count;
            let edge = memory.edge.as_ref().filter(|edge| !edge.driver.views);
            let bytes = need.of_child(depth, depth + 1 == levels.len());
            let instance = |(edge, index): (&Edge, usize)| {
                let site = Site { memory, edge, index, bytes };
                let none = || EngineError::NoDriver { memory: memory.name.clone(), driver: edge.driver.to_string() };
                let child = drivers.get(edge.driver).ok_or_else(none)?.reserve(&site)?.ok_or_else(none)?;
                Ok(Reserved { span: child.span(), executes: edge.driver.own_processor, child })
            };
            let each = edge.into_iter().flat_map(|edge| (0..count).map(move |index| (edge, index)));
            let instances = each.map(instance).collect::<Result<Vec<_>, EngineError>>()?;
            let partials = match need.partials[depth] {
                0 => Vec::new(),
                bytes => (0..count).map(|_| AlignedBuffer::new(bytes as usize)).collect::<Result<_, _>>()?,
            };
            reserved.push(Level { instances, workers_each: (workers / count).max(1), partials });
        }
        let scratch_bytes = if leaf_stages(machine, &levels) { 1 } else { (need.scratch as usize).max(1) };
        let scratch = (0..workers).map(|_| AlignedBuffer::new(scratch_bytes)).collect::<Result<Vec<_>, _>>()?;
        Ok(Memories { machine: machine.clone(), need, levels: reserved, scratch })
    }

    /// Bytes that [`Memories::reserve`] sets aside, as far as runs use them: staging memories and partial results of every
    /// memory, scratch memory of every worker.
    ///
    /// # Errors
    /// [`EngineError::Home`] when the machine is no chain of levels.
    pub fn bytes(machine: &Machine, plan: &Plan) -> Result<MemoryBytes, EngineError> {
        let levels = levels_of(machine)?;
        let need = Need::of(plan, levels.len());
        let mut bytes =
            MemoryBytes { scratch: need.scratch.saturating_mul(machine.workers() as u64), ..MemoryBytes::default() };
        let mut count = 1;
        for (depth, &id) in levels.iter().enumerate().skip(1) {
            let memory = machine.memory(id);
            count *= memory.count as u64;
            if let Some(driver) = memory.edge.map(|edge| edge.driver).filter(|driver| !driver.views) {
                let each = need.of_child(depth, depth + 1 == levels.len()).min(memory.capacity_bytes);
                *(if driver.files { &mut bytes.staging } else { &mut bytes.local }) += each.saturating_mul(count);
            }
            bytes.partials = bytes.partials.saturating_add(need.partials[depth].saturating_mul(count));
        }
        if leaf_stages(machine, &levels) {
            bytes.scratch = 0;
        }
        Ok(bytes)
    }

    /// Whether a run of `plan` on `machine` finds all it needs.
    pub fn serve(&self, machine: &Machine, plan: &Plan) -> bool {
        self.machine == *machine && Need::of(plan, self.levels.len()).is_within(&self.need)
    }

    /// Makes the pages of the scratch memories usable, each by its worker: the system reserves a page when it is first
    /// written, near the processor that writes it.
    pub(crate) fn touch_scratch(&self, team: &Team, workers: usize) {
        let touch = |worker: usize| {
            let (scratch, len) = self.scratch(worker, u64::MAX);
            // SAFETY: this is the worker; nobody else uses its scratch memory, and the reference ends here.
            let scratch = unsafe { std::slice::from_raw_parts_mut(scratch, len) };
            scratch.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = std::hint::black_box(0));
        };
        // No job of this fork panics; if one did, the leaf that needs the memory would touch it.
        let _ = team.fork(0..workers, &touch);
    }

    /// Where the temporary arrays of the plan of a call lie that runs in memory `instance` of the plan's level. The
    /// call is the only one that runs there, so until it ends they are its own.
    pub(crate) fn temporaries<'p>(&self, plan: &'p Plan, instance: usize) -> impl Iterator<Item = RawView> + use<'p> {
        let mut next = self.levels[plan.level].partials.get(instance).map_or(std::ptr::null_mut(), |b| b.as_mut_ptr());
        plan.temporaries().iter().map(move |array| {
            let here = next;
            next = next.wrapping_add(array.bytes().next_multiple_of(TEMPORARY_ALIGN_BYTES) as usize);
            RawView::dense(here, array.element, array.shape)
        })
    }

    /// Scratch memory for a leaf of `worker`, of `bytes`: address and length. It is the worker's alone.
    pub(crate) fn scratch(&self, worker: usize, bytes: u64) -> (*mut u8, usize) {
        let buffer = &self.scratch[worker];
        (buffer.as_mut_ptr(), (bytes as usize).min(buffer.len()))
    }
}
