//! All memory of a run, reserved before its first step: staging memory of every child, partial results of reductions,
//! scratch memory of every worker. It can be kept from one run to the next: making memory usable takes time, on a virtual
//! machine up to 2 seconds a GiB.

use crate::error::EngineError;
use crate::run::levels_of;
use multigrain_machine::{Driver, Machine, MemoryId};
use multigrain_plan::{Body, Plan, TEMPORARY_ALIGN_BYTES};
use multigrain_program::{ArrayDecl, RawView};
use multigrain_store::{AlignedBuffer, LocalRules, LocalStore};
use multigrain_team::Team;
use std::cell::UnsafeCell;
use std::sync::Arc;

/// The smallest pages in use; larger ones are touched more often than need be.
const PAGE_BYTES: usize = 4096;

/// The staging memory of one child.
pub(crate) enum Staging {
    /// The child shares its parent's addresses.
    None,
    /// Filled from a disk.
    Buffer(Arc<AlignedBuffer>),
    /// A local store.
    Local(UnsafeCell<LocalStore>),
}

/// The staging memories of one level and who works below each.
pub(crate) struct Level {
    pub(crate) instances: Vec<Staging>,
    pub(crate) workers_each: usize,
    /// For each of these memories, the partial results of reductions of the call that runs in it; empty when none
    /// reduces.
    partials: Vec<AlignedBuffer>,
}

/// Bytes of the parts of [`Memories`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBytes {
    /// Memories that are filled from a disk.
    pub staging: u64,
    /// Local stores of all workers, as far as blocks and scratch memory use them.
    pub local: u64,
    /// Partial results of reductions that plans of calls keep.
    pub partials: u64,
    /// Scratch memory of all workers; where leaves stage their blocks it lies in their staging memories.
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

// SAFETY: a staging memory is used by the leader of the workers below it alone, or by the owner of a disk's transfers;
// scratch memory by its worker alone. The interpreter keeps to that: each child is executed by one worker at a time.
unsafe impl Sync for Memories {}

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
    levels.last().and_then(|&id| machine.memory(id).edge).is_some_and(|edge| !edge.driver.views && !edge.driver.files)
}

impl Need {
    fn of(plan: &Plan, levels: usize) -> Need {
        let mut need = Need::default();
        collect(plan, &mut need);
        need.staging.resize(levels, 0);
        need.partials.resize(levels, 0);
        need
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
    /// [`EngineError::Home`] when the machine is no chain of levels; [`EngineError::Setup`] when the system refuses the
    /// memory.
    pub fn reserve(machine: &Machine, plan: &Plan) -> Result<Memories, EngineError> {
        let levels = levels_of(machine)?;
        let need = Need::of(plan, levels.len());
        let workers = machine.workers();
        let mut reserved = vec![Level { instances: Vec::new(), workers_each: workers, partials: Vec::new() }];
        let mut count = 1;
        for (depth, &id) in levels.iter().enumerate().skip(1) {
            let memory = machine.memory(id);
            count *= memory.count;
            let edge = memory.edge.unwrap_or_else(|| multigrain_machine::Edge::new(Driver::SHARED, 1.0, 0.0));
            let mut instances = Vec::with_capacity(count);
            for _ in 0..count {
                instances.push(match edge.driver {
                    driver if driver.files => {
                        Staging::Buffer(Arc::new(AlignedBuffer::new((need.staging[depth] as usize).max(1))?))
                    }
                    driver if !driver.views => {
                        let code_bytes = memory.processor.map_or(0, |p| p.code_bytes);
                        let rules = edge.rules.strict.then(|| LocalRules {
                            transfer_bytes_max: edge.rules.transfer_bytes_max.unwrap_or(16 << 10),
                            alignment_bytes: edge.rules.alignment_bytes,
                            list_entries_max: edge.rules.list_entries_max.unwrap_or(2048),
                            capacity_bytes: memory.capacity_bytes,
                            code_bytes,
                        });
                        let capacity = memory.capacity_bytes.saturating_sub(code_bytes);
                        Staging::Local(UnsafeCell::new(LocalStore::new(capacity, rules)?))
                    }
                    _ => Staging::None,
                });
            }
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
            match memory.edge.map(|edge| edge.driver) {
                Some(driver) if driver.files => bytes.staging += need.staging[depth].saturating_mul(count),
                Some(driver) if !driver.views => {
                    // A leaf's scratch memory is the upper end of the store.
                    let each = need.staging[depth].saturating_add(need.scratch).min(memory.capacity_bytes);
                    bytes.local += each.saturating_mul(count);
                }
                _ => {}
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
            // SAFETY: this is the worker; nobody else uses its scratch memory, and the reference ends here.
            let scratch = unsafe { self.scratch(worker, u64::MAX) };
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

    /// Scratch memory for a leaf of `worker`, of `bytes`.
    ///
    /// # Safety
    /// Only `worker` calls this, and keeps at most one result at a time.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn scratch(&self, worker: usize, bytes: u64) -> &mut [u8] {
        let buffer = &self.scratch[worker];
        let bytes = (bytes as usize).min(buffer.len());
        // SAFETY: the buffer has that many bytes; the caller is the only user.
        unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr(), bytes) }
    }

    /// Scratch memory for a leaf in a local store: its upper end.
    ///
    /// # Safety
    /// Only the owner of the store calls this, keeps at most one result at a time, and makes no copies meanwhile. The
    /// plan has proved that blocks and scratch memory do not overlap.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn local_scratch(store: &UnsafeCell<LocalStore>, bytes: u64) -> &mut [u8] {
        // SAFETY: the caller is the only user of the store.
        let store = unsafe { &*store.get() };
        let offset = store.capacity_bytes().saturating_sub(bytes) / 64 * 64;
        let bytes = bytes.min(store.capacity_bytes() - offset) as usize;
        // SAFETY: the range lies in the store; blocks lie below it.
        unsafe { std::slice::from_raw_parts_mut(store.as_mut_ptr().add(offset as usize), bytes) }
    }
}
