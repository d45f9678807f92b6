//! The plan of one edge: for each child memory, what it does in order.
//!
//! A plan is relative: its arrays are the arrays of a program or the arguments of one call, as they lie in the parent
//! memory. So one plan serves every call of the same shape.

use crate::ways::Ways;
use multigrain_machine::Driver;
use multigrain_program::{Arg, Args, ArrayDecl, Call, CallShape, DynTask, Role, Scalars, Tunables};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Whether executing these children takes more workers than the one that begins: not where all that there is to do is one
/// batch that anybody may take.
pub(crate) fn forks(children: &[ChildPlan], balanced: bool) -> bool {
    let batches: usize = children.iter().map(|child| child.batches.len()).sum();
    let busy = children.iter().filter(|child| !child.ops.is_empty()).count();
    busy > 1 && !(balanced && batches <= 1)
}

impl Plan {
    /// Whether executing this plan, apart from those below it, takes more workers than the one that begins.
    pub fn forks(&self) -> bool {
        forks(&self.children, self.balanced)
    }

    /// The child that alone has something to do, if no other is woken for it: whoever begins executes it where it is.
    pub fn alone(&self) -> Option<usize> {
        if self.children.len() == 1 {
            return Some(0);
        }
        let mut busy = (0..self.children.len()).filter(|&child| !self.children[child].ops.is_empty());
        match (self.forks(), busy.next(), busy.next()) {
            (false, Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// Whether its children claim batches, and do nothing else.
    pub fn claims(&self) -> bool {
        self.balanced && self.children.iter().map(|child| child.batches.len()).sum::<usize>() > 1
    }
}

/// A block's stay at fixed addresses of a child's staging memory: from the fetch (or the first write) to the last use
/// or the end of its last store. The bytes lie densely, row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// First byte within the child's staging memory.
    pub offset_bytes: u64,
    /// Bytes of the block.
    pub bytes: u64,
    /// The block that lies here.
    pub block: Arg,
}

impl Slot {
    /// What the slot owns: every unit of `unit_bytes` that it touches ([`Plan::slot_unit_bytes`]).
    pub fn owned_bytes(&self, unit_bytes: u64) -> std::ops::Range<u64> {
        let unit = unit_bytes.max(1);
        self.offset_bytes / unit * unit..(self.offset_bytes + self.bytes).next_multiple_of(unit)
    }
}

/// One step of a child. Transfers are numbered from 0 within a child, each issued once and awaited at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Issue the copy of a slot's block from the parent memory into the slot.
    Fetch {
        /// Number of the transfer.
        transfer: u32,
        /// Slot that is filled.
        slot: u32,
    },
    /// Issue the copy of a slot's block from the slot to the parent memory.
    Store {
        /// Number of the transfer.
        transfer: u32,
        /// Slot that is copied.
        slot: u32,
    },
    /// Wait until a transfer of this child is complete.
    Await {
        /// Number of the transfer.
        transfer: u32,
    },
    /// Execute a call in the child memory.
    Run {
        /// Number of the call in the plan.
        call: u32,
        /// Where its arguments lie.
        places: Places,
    },
    /// Tell the other children that everything before this step is done: the child's count of signals grows by one.
    Signal,
    /// Wait until another child has given that many signals.
    Wait {
        /// The other child.
        child: u32,
        /// Its number of signals.
        signals: u32,
    },
    /// Wait until all children have come to theirs: everything before it in any child's steps comes before everything
    /// behind it in any other's. All children have as many, and meet at the first, the second, and so on.
    Barrier,
    /// Take part in a broadcast of a block: what lies in the root's slot fills everybody else's. All children have as many,
    /// of the same blocks and roots in one order with their barriers. What comes before it in the root's steps comes before
    /// what is behind it in any other's; nobody may count on more, and nobody on anybody being able to leave before all
    /// have come.
    Broadcast {
        /// The child that has the block.
        root: u32,
        /// The child's own slot of the block.
        slot: u32,
    },
}

/// Where the arguments of a run lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Places {
    /// In the parent memory, which the child shares: views, no copies.
    Views,
    /// In slots: for each argument in order, `ChildPlan::places[first + i]` is the slot.
    Slots {
        /// Index of the first argument's slot.
        first: u32,
    },
}

/// What one child does.
#[derive(Clone, Debug, Default, Hash)]
pub struct ChildPlan {
    /// Steps, in order.
    pub ops: Vec<Op>,
    /// Stays of blocks in staging memory; two may share addresses when their times do not overlap.
    pub slots: Vec<Slot>,
    /// Slots of the arguments of runs.
    pub places: Vec<u32>,
    /// Staging memory used, in bytes: the largest end of what a slot owns.
    pub staging_bytes: u64,
    /// Consecutive steps that other children may take over, as ranges of `ops` (only in plans with
    /// [`Plan::balanced`]).
    pub batches: Vec<std::ops::Range<u32>>,
    /// For each phase, the end of its batches in `batches`. Of all children a plan has as many phases; with none of
    /// them listed, all batches are one phase.
    pub phases: Vec<u32>,
}

impl ChildPlan {
    /// The batches of a phase.
    pub fn phase(&self, phase: usize) -> std::ops::Range<u32> {
        let first = if phase == 0 { 0 } else { self.phases.get(phase - 1).copied().unwrap_or(0) };
        let end = self.phases.get(phase).copied().unwrap_or(self.batches.len() as u32);
        first.min(end)..end
    }
}

/// What a child does to execute a call of one shape.
#[derive(Clone)]
pub enum Body {
    /// The leaf variant.
    Leaf {
        /// Scratch memory it is given, in bytes.
        scratch_bytes: u64,
    },
    /// The plan of the child's own edge; in a plan in parts, one of the same edge.
    Inner(Arc<Plan>),
}

impl Body {
    /// Scratch memory that one call takes at once of the memory it runs in: its partial results of reductions, and what is
    /// below children that share its address space. Leaves in staging memories of their own take theirs from there.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        let inner = match self {
            Body::Leaf { scratch_bytes } => return *scratch_bytes,
            Body::Inner(inner) => inner,
        };
        let temporaries = inner.arrays.iter().filter(|array| array.role == Role::Temporary);
        let own = temporaries.fold(0u64, |sum, array| sum.saturating_add(array.bytes()));
        // Children of one kind take as much each as any call; a group of kinds, what calls by plans of its edge take.
        let mut of_edge: BTreeMap<usize, u64> = BTreeMap::new();
        for class in inner.classes.iter().filter(|_| inner.driver.views) {
            let edge = match &class.body {
                Body::Inner(plan) if inner.is_division => plan.edge,
                _ => inner.edge,
            };
            let most = of_edge.entry(edge).or_default();
            *most = class.body.scratch_bytes().max(*most);
        }
        let children = if inner.is_division { 1 } else { inner.children.len() as u64 };
        let below = of_edge.into_values().fold(0, u64::saturating_add);
        own.saturating_add(below.saturating_mul(children))
    }
}

/// Calls of one task, one shape, one set of scalars.
#[derive(Clone)]
pub struct CallClass {
    /// Number of the task in the plan.
    pub task: u32,
    /// Shapes and scalars.
    pub shape: CallShape,
    /// How a child executes it.
    pub body: Body,
}

/// Bytes and transfers over one edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes from the parent to its children.
    pub bytes_down: u64,
    /// Bytes from the children to the parent.
    pub bytes_up: u64,
    /// Bytes from children to their siblings.
    pub bytes_across: u64,
    /// Transfers between parent and children, each a list of fragments.
    pub transfers: u64,
}

impl Traffic {
    /// The same so many times.
    pub fn times(self, count: u64) -> Traffic {
        Traffic {
            bytes_down: self.bytes_down.saturating_mul(count),
            bytes_up: self.bytes_up.saturating_mul(count),
            bytes_across: self.bytes_across.saturating_mul(count),
            transfers: self.transfers.saturating_mul(count),
        }
    }
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.bytes_down += other.bytes_down;
        self.bytes_up += other.bytes_up;
        self.bytes_across += other.bytes_across;
        self.transfers += other.transfers;
    }
}

/// What a pass reports of itself, for `multigrain plan`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassReport {
    /// Name of the pass.
    pub pass: &'static str,
    /// What it found or decided, in one line.
    pub summary: String,
}

/// A call of a program before it was split.
#[derive(Clone)]
pub struct SourceCall {
    /// The task called.
    pub task: Arc<dyn DynTask>,
    /// Its arguments.
    pub args: Args,
    /// Its scalar arguments.
    pub scalars: Scalars,
    /// What its task's inner variant split it by.
    pub tunables: Tunables,
}

/// Temporary arrays in memory begin at multiples of this, a cache line.
pub const TEMPORARY_ALIGN_BYTES: u64 = 64;

/// Bytes of temporary arrays that lie one behind the other.
pub(crate) fn temporary_bytes(arrays: &[ArrayDecl]) -> u64 {
    arrays.iter().map(|array| array.bytes().next_multiple_of(TEMPORARY_ALIGN_BYTES)).sum()
}

impl Plan {
    /// This plan and those that it holds, each once and before what it holds itself: the order in which
    /// [`crate::names::Names`] numbers them.
    pub fn all(&self) -> Vec<&Plan> {
        fn add<'p>(plan: &'p Plan, seen: &mut FxHashSet<*const Plan>, all: &mut Vec<&'p Plan>) {
            if seen.insert(plan) {
                all.push(plan);
                for class in &plan.classes {
                    if let Body::Inner(inner) = &class.body {
                        add(inner, seen, all);
                    }
                }
            }
        }
        let mut all = Vec::new();
        add(self, &mut FxHashSet::default(), &mut all);
        all
    }

    /// How many phases the batches of a balanced plan have.
    pub fn phases(&self) -> usize {
        self.children.iter().map(|child| child.phases.len()).max().unwrap_or(0).max(1)
    }

    /// For the plan of a call: the arrays that are no arguments of it.
    pub fn temporaries(&self) -> &[ArrayDecl] {
        let given = self.arrays.iter().position(|a| a.role == Role::Temporary).unwrap_or(self.arrays.len());
        &self.arrays[given..]
    }

    /// For a division whose arrays lie in files: which of its arrays, the last ones, are the temporary arrays of the plan by
    /// which calls of a class are executed. They have no memory of their own, since files are all that lies there.
    pub fn lent(&self, class: u32) -> Range<usize> {
        let count = |class: &CallClass| match &class.body {
            Body::Inner(inner) if self.is_division && self.driver.files => inner.temporaries().len(),
            _ => 0,
        };
        let counts = self.classes.iter().map(count);
        let first = self.arrays.len() - counts.clone().sum::<usize>() + counts.take(class as usize).sum::<usize>();
        first..first + self.classes.get(class as usize).map_or(0, count)
    }

    /// The arrays that its calls name: all but those that are lent ([`Plan::lent`]).
    pub fn own_arrays(&self) -> &[ArrayDecl] {
        &self.arrays[..self.lent(0).start]
    }

    /// For the plan of a call: bytes of its temporary arrays in the memory where the call runs, and of those of all
    /// children that share its address space.
    pub fn temporary_bytes(&self) -> u64 {
        let below = self.classes.iter().map(|class| match &class.body {
            Body::Inner(inner) if self.driver.views => inner.temporary_bytes(),
            _ => 0,
        });
        let below = below.max().unwrap_or(0).saturating_mul(self.children.len() as u64);
        temporary_bytes(self.temporaries()).saturating_add(below)
    }
}

/// The plan of one edge.
#[derive(Clone)]
pub struct Plan {
    /// Number of the edge in the machine's [`Layout`](multigrain_machine::Layout); that below the root is 0.
    pub edge: usize,
    /// Whether the children are two groups of the kinds of memories below: what they do they do in the parent memory, each by
    /// plans of an edge of its own.
    pub is_division: bool,
    /// Name of the parent memory.
    pub parent: String,
    /// Name of the child memories, or of those of all kinds.
    pub child: String,
    /// What moves the bytes.
    pub driver: Driver,
    /// Bytes of staging memory that each child has for this plan.
    pub capacity_bytes: u64,
    /// Slots own every unit of so many bytes that they touch, so a fetch may fill the units around its block with what
    /// lies around it in the parent: a disk then moves whole pages, without a copy.
    pub slot_unit_bytes: u64,
    /// Bytes of scratch memory that leaves below a child take from it, and of the partial results of reductions that
    /// plans below keep there.
    pub scratch_bytes: u64,
    /// Bytes of a child taken by transfer buffers or code.
    pub fixed_bytes: u64,
    /// Bytes of a child in all.
    pub total_bytes: u64,
    /// Arrays of the scope, as they lie in the parent memory: those of the program or the arguments of the call, and
    /// behind them temporary arrays for the partial results of reductions.
    pub arrays: Vec<ArrayDecl>,
    /// Tasks of the calls.
    pub tasks: Vec<Arc<dyn DynTask>>,
    /// Calls, in sequential order: what the plan means.
    pub calls: Vec<Call>,
    /// For a plan of what is left of a program: the number of each call in the whole program. Empty otherwise.
    pub numbers: Vec<u32>,
    /// For the plan of a program: its calls, of which all of `calls` (for a plan of what is left, some) were split.
    /// Empty for the plan of a call.
    pub sources: Arc<[SourceCall]>,
    /// Class of each call.
    pub class_of: Vec<u32>,
    /// Classes of calls.
    pub classes: Vec<CallClass>,
    /// What each child does; nothing where the calls are parts ([`Plan::is_in_parts`]).
    pub children: Vec<ChildPlan>,
    /// Whether the batches of one phase are independent of each other, so that a child that is done may take over
    /// batches of others (in a shared address space only). A phase begins when all batches of the one before are done.
    pub balanced: bool,
    /// What the passes report.
    pub passes: Vec<PassReport>,
    /// Bytes over this edge.
    pub traffic: Traffic,
    /// Tunables chosen for the calls of the scope, the first ways of splitting, for people: task, values.
    pub tunables: Vec<(String, Vec<(&'static str, u64)>)>,
    /// How the calls were split, for whoever numbers the same ones again. Empty for a plan of what is left.
    pub ways: Ways,
    /// Predicted time in seconds.
    pub seconds: f64,
}
