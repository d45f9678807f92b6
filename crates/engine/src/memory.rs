//! All memory of a run, reserved before its first step: staging memory of every child, partial results of reductions,
//! scratch memory of every worker. It can be kept from one run to the next: making memory usable takes time, on a virtual
//! machine up to 2 seconds a GiB.

use crate::error::EngineError;
use multigrain_driver::{Child, Drivers, Site, Span};
use multigrain_machine::{Branch, Layout, Machine, ProcessorKind};
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

/// The memories of one edge.
pub(crate) struct OfEdge {
    /// The memories below, as far as they are this process's. Empty where they share their parents' addresses.
    pub(crate) children: Vec<Reserved>,
    /// How many memories below, and above, are of ranks before this one.
    before: usize,
    before_above: usize,
    /// For each memory above, the partial results of reductions of the call that is divided there; empty when none
    /// reduces.
    partials: Vec<AlignedBuffer>,
    /// The kind of processor that executes leaves in the memories below.
    processor: &'static str,
}

/// Bytes of the parts of [`Memories`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBytes {
    /// The memory below a root without addresses (a disk), as far as blocks and scratch memory use it; the first one, where
    /// such a root has children of several kinds, of which each has a capacity of its own.
    pub staging: u64,
    /// Other memories that blocks are copied into, of all workers, as far as they use them.
    pub local: u64,
    /// Partial results of reductions that plans of calls keep.
    pub partials: u64,
    /// Scratch memory of all workers; where blocks of leaves are copied it lies in the memories that they are copied into.
    pub scratch: u64,
}

/// Which part of a machine is this process's: of as many children as its root has, each with a rank of its own, one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub rank: usize,
    /// Of how many.
    pub ranks: usize,
}

impl Part {
    /// All of it.
    pub const WHOLE: Part = Part { rank: 0, ranks: 1 };

    /// Of so many memories of a kind those that are this process's.
    fn own(self, all: usize) -> std::ops::Range<usize> {
        let each = all / self.ranks;
        self.rank * each..(self.rank + 1) * each
    }

    /// Whether a machine can be parted so.
    pub(crate) fn is_of(self, layout: &Layout) -> bool {
        self.ranks == 1 || !layout.branch(0).is_division() && layout.branch(0).children == self.ranks
    }
}

/// All memory that runs of a plan need besides the homes of its arrays, on one machine.
pub struct Memories {
    machine: Machine,
    part: Part,
    needs: Needs,
    pub(crate) layout: Layout,
    /// In the order of the layout.
    edges: Vec<OfEdge>,
    /// By worker, for leaves whose memory shares addresses.
    scratch: Vec<AlignedBuffer>,
}

// SAFETY: a child's memory is used by the leader of the workers below it alone, or by its driver's transfers; scratch memory
// by its worker alone. The interpreter keeps to that: each child is executed by one worker at a time.
unsafe impl Sync for Memories {}
// SAFETY: what is behind the addresses belongs to no thread.
unsafe impl Send for Memories {}

/// The most that any plan of an edge needs.
#[derive(Clone, Copy, Default)]
struct Need {
    /// Of a child, for blocks.
    staging: u64,
    /// Of the parent, for partial results.
    partials: u64,
    /// For a leaf.
    scratch: u64,
}

fn collect(plan: &Plan, needs: &mut Needs) {
    let Some(need) = needs.0.get_mut(plan.edge) else { return };
    // Where arrays lie in files, so do partial results.
    if plan.edge > 0 && !plan.driver.files {
        need.partials = need.partials.max(bytes_of(plan.temporaries()));
    }
    for child in &plan.children {
        need.staging = need.staging.max(child.staging_bytes);
    }
    for class in &plan.classes {
        if let Body::Leaf { scratch_bytes } = &class.body {
            need.scratch = need.scratch.max(*scratch_bytes);
        }
    }
    for class in &plan.classes {
        if let Body::Inner(plan) = &class.body {
            collect(plan, needs);
        }
    }
}

/// Bytes of temporary arrays that lie one behind the other.
fn bytes_of(temporaries: &[ArrayDecl]) -> u64 {
    temporaries.iter().map(|array| array.bytes().next_multiple_of(TEMPORARY_ALIGN_BYTES)).sum()
}

/// What plans need of each edge, in the order of the layout.
struct Needs(Vec<Need>);

impl Need {
    /// Bytes that each child is used for: where leaves run in it, their scratch memory is its upper end.
    fn of_child(&self) -> u64 {
        self.staging.next_multiple_of(SCRATCH_ALIGN_BYTES).saturating_add(self.scratch)
    }
}

impl Needs {
    fn of(plan: &Plan, layout: &Layout) -> Needs {
        let mut needs = Needs(vec![Need::default(); layout.branches().len()]);
        collect(plan, &mut needs);
        needs
    }

    /// Scratch memory of each worker: for leaves whose memory shares addresses, since any worker may execute what its leader
    /// alone has to do.
    fn scratch(&self, machine: &Machine, layout: &Layout) -> u64 {
        let shared = layout.branches().iter().zip(&self.0).filter(|(branch, _)| branch.edge(machine).driver.views);
        shared.map(|(_, need)| need.scratch).max().unwrap_or(0)
    }

    fn is_within(&self, other: &Needs) -> bool {
        let within = |a: &Need, b: &Need| a.staging <= b.staging && a.partials <= b.partials && a.scratch <= b.scratch;
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| within(a, b))
    }
}

impl Memories {
    /// Reserves what runs of `plan` need on `machine`. Nothing is touched: the system gives a page to who first uses it.
    ///
    /// # Errors
    /// [`EngineError::NoDriver`]; [`EngineError::Setup`] when the system refuses the memory.
    pub fn reserve(machine: &Machine, plan: &Plan, drivers: &Drivers, part: Part) -> Result<Memories, EngineError> {
        let layout = Layout::of(machine);
        if !part.is_of(&layout) {
            return Err(EngineError::Ranks { ranks: part.ranks, children: layout.branch(0).children });
        }
        let needs = Needs::of(plan, &layout);
        let mut edges = Vec::with_capacity(needs.0.len());
        for (number, (branch, need)) in layout.branches().iter().zip(&needs.0).enumerate() {
            let edge = branch.edge(machine);
            let (below, above) = match number {
                // The root is everybody's.
                0 => (part.own(branch.parents * branch.children), 0..1),
                _ => (part.own(branch.parents * branch.children), part.own(branch.parents)),
            };
            let instance = |(id, index)| {
                let memory = machine.memory(id);
                let site = Site { memory, edge, index, bytes: need.of_child() };
                let none = || EngineError::NoDriver { memory: memory.name.clone(), driver: edge.driver.to_string() };
                let child = drivers.get(edge.driver).ok_or_else(none)?.reserve(&site)?.ok_or_else(none)?;
                Ok(Reserved { span: child.span(), executes: edge.driver.own_processor, child })
            };
            let copied = branch.child.filter(|_| !edge.driver.views).into_iter();
            let each = copied.flat_map(|id| below.clone().map(move |index| (id, index)));
            let children = each.map(instance).collect::<Result<Vec<_>, EngineError>>()?;
            let partials = match need.partials {
                0 => Vec::new(),
                bytes => above.clone().map(|_| AlignedBuffer::new(bytes as usize)).collect::<Result<_, _>>()?,
            };
            let processor = branch.child.and_then(|id| machine.memory(id).processor);
            let processor = processor.map_or(ProcessorKind::Cpu, |processor| processor.kind).name();
            edges.push(OfEdge { children, before: below.start, before_above: above.start, partials, processor });
        }
        let scratch_bytes = (needs.scratch(machine, &layout) as usize).max(1);
        let scratch =
            part.own(layout.workers()).map(|_| AlignedBuffer::new(scratch_bytes)).collect::<Result<Vec<_>, _>>()?;
        Ok(Memories { machine: machine.clone(), part, needs, layout, edges, scratch })
    }

    /// Bytes that [`Memories::reserve`] sets aside, as far as runs use them: staging memories and partial results of every
    /// memory, scratch memory of every worker.
    pub fn bytes(machine: &Machine, plan: &Plan, part: Part) -> MemoryBytes {
        let layout = Layout::of(machine);
        let needs = Needs::of(plan, &layout);
        let scratch = needs.scratch(machine, &layout).saturating_mul(part.own(layout.workers()).len() as u64);
        let mut bytes = MemoryBytes { scratch, ..MemoryBytes::default() };
        let mut read_files = false;
        for (branch, need) in layout.branches().iter().zip(&needs.0) {
            let driver = branch.edge(machine).driver;
            if let Some(id) = branch.child.filter(|_| !driver.views) {
                let each = need.of_child().min(machine.memory(id).capacity_bytes);
                let all = each.saturating_mul(part.own(branch.parents * branch.children).len() as u64);
                match driver.files {
                    true if std::mem::replace(&mut read_files, true) => {}
                    true => bytes.staging = all,
                    false => bytes.local = bytes.local.saturating_add(all),
                }
            }
            let parents = part.own(branch.parents).len().max(1) as u64;
            bytes.partials = bytes.partials.saturating_add(need.partials.saturating_mul(parents));
        }
        bytes
    }

    /// Whether a run of `plan` on `machine` finds all it needs.
    pub fn serve(&self, machine: &Machine, plan: &Plan, part: Part) -> bool {
        self.machine == *machine && self.part == part && Needs::of(plan, &self.layout).is_within(&self.needs)
    }

    /// How the children of a plan lie.
    #[inline]
    pub(crate) fn branch(&self, plan: &Plan) -> &Branch {
        self.layout.branch(plan.edge)
    }

    /// The memory of a child of a plan that does not share its parent's addresses.
    #[inline]
    pub(crate) fn child(&self, plan: &Plan, instance: usize) -> Option<&Reserved> {
        let edge = &self.edges[plan.edge];
        edge.children.get(instance.checked_sub(edge.before)?)
    }

    /// A memory that blocks of a plan's arrays are copied into: of its first kind of children, where there are several.
    pub(crate) fn below(&self, plan: &Plan, instance: usize) -> Option<&Reserved> {
        let (mut number, mut branch) = (plan.edge, self.branch(plan));
        while branch.is_division() {
            number = branch.below(0)?;
            branch = self.layout.branch(number);
        }
        let edge = &self.edges[number];
        edge.children.get(branch.instance(instance, 0).checked_sub(edge.before)?)
    }

    /// The kind of processor that executes leaves in the children of a plan.
    #[inline]
    pub(crate) fn processor(&self, plan: &Plan) -> &'static str {
        self.edges[plan.edge].processor
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

    /// Where the temporary arrays of the plan of a call lie that runs in memory `instance` of those above the plan's edge. The
    /// call is the only one that runs there, so until it ends they are its own.
    pub(crate) fn temporaries<'p>(&self, plan: &'p Plan, instance: usize) -> impl Iterator<Item = RawView> + use<'p> {
        let edge = &self.edges[plan.edge];
        let partials = instance.checked_sub(edge.before_above).and_then(|own| edge.partials.get(own));
        let mut next = partials.map_or(std::ptr::null_mut(), |b| b.as_mut_ptr());
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
