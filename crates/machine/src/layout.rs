//! The edges of a machine in an order, and which workers are below them.
//!
//! Plans, runs and traces number edges: those from the root down, each before those below it. A memory whose children are of
//! several kinds has an edge for each kind, and before these *divisions*: edges that move nothing, at which calls are divided
//! between the first kind and all others, between the second and those behind it, and so on. What is below a division lies in the
//! same memory. So an edge has children of one kind, or two groups, and whoever executes plans knows no third case.
//!
//! Workers are numbered as leaves from left to right: those below one child follow each other, child after child, kind after kind
//! in the order of the machine's list. All arithmetic on their numbers is here.

use crate::costs::Costs;
use crate::driver::Driver;
use crate::memory::{Edge, MemoryId, TransferRules};
use crate::tree::Machine;
use std::ops::Range;

/// The edges of a machine, see the module's page.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    branches: Vec<Branch>,
    workers: usize,
}

/// One edge: a memory and its children of one kind, or a memory and two groups of the kinds of its children.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The memory above.
    pub parent: MemoryId,
    /// The memories below; `None` for a division.
    pub child: Option<MemoryId>,
    /// The kinds of memories below: one, or those that are divided.
    kinds: Vec<MemoryId>,
    /// How many children each parent has: memories, or two groups.
    pub children: usize,
    /// How many memories the machine has like the one above.
    pub parents: usize,
    /// The edges above, from the root down.
    pub above: Vec<usize>,
    /// The edge below each child: of a memory one for all, none where leaves are executed; of a division one for each group.
    below: Vec<usize>,
    /// Workers in or below each child: one number for all, or one for each group.
    workers: Vec<usize>,
}

/// What the children of a division have in common with children that share their parent's addresses.
static DIVISION: Edge = division(Driver::SHARED);
/// The same, where the parent keeps arrays in files.
static DIVISION_IN_FILES: Edge = division(Driver::SHARED_FILES);

const fn division(driver: Driver) -> Edge {
    Edge {
        driver,
        read_bytes_per_second: f64::MAX,
        write_bytes_per_second: f64::MAX,
        latency_ns: 0.0,
        costs: Costs::NONE,
        sibling_bytes_per_second: None,
        rules: TransferRules::NONE,
    }
}

impl Branch {
    /// Whether its children are groups of kinds, which lie in the memory above.
    pub fn is_division(&self) -> bool {
        self.child.is_none()
    }

    /// The edge as the machine describes it; for a division one that moves nothing.
    pub fn edge<'m>(&self, machine: &'m Machine) -> &'m Edge {
        let edge = |kind: MemoryId| machine.memory(kind).edge.as_ref();
        let in_files = || self.kinds.iter().any(|&kind| edge(kind).is_some_and(|edge| edge.driver.files));
        self.child.and_then(edge).unwrap_or_else(|| if in_files() { &DIVISION_IN_FILES } else { &DIVISION })
    }

    /// The edge by which calls of a child are divided; `None` where leaves are executed.
    pub fn below(&self, child: usize) -> Option<usize> {
        let at = if self.is_division() { child } else { 0 };
        self.below.get(at).copied()
    }

    /// Workers in or below a child.
    #[inline]
    pub fn workers(&self, child: usize) -> usize {
        match self.is_division() {
            true => self.workers[child],
            false => self.workers[0],
        }
    }

    /// The first worker of a child, where those below the parent begin with `leader`.
    #[inline]
    pub fn first_worker(&self, leader: usize, child: usize) -> usize {
        match self.is_division() {
            true => leader + self.workers[..child].iter().sum::<usize>(),
            false => leader + child * self.workers[0],
        }
    }

    /// The workers in or below a child, where those below the parent begin with `leader`.
    pub fn led(&self, leader: usize, child: usize) -> Range<usize> {
        let first = self.first_worker(leader, child);
        first..first + self.workers(child)
    }

    /// The workers below the parent, which begin with `leader`.
    pub fn all(&self, leader: usize) -> Range<usize> {
        leader..self.first_worker(leader, self.children)
    }

    /// Which of the machine's memories of its kind a child is, of a parent with this number among its own; a group is in its
    /// parent.
    #[inline]
    pub fn instance(&self, parent: usize, child: usize) -> usize {
        if self.is_division() { parent } else { parent * self.children + child }
    }

    /// How people call it: `dram - core`.
    pub fn name(&self, machine: &Machine) -> String {
        format!("{} - {}", machine.memory(self.parent).name, self.child_name(machine))
    }

    /// How people call what is below: the names of its memories.
    pub fn child_name(&self, machine: &Machine) -> String {
        let names: Vec<&str> = self.kinds.iter().map(|kind| machine.memory(*kind).name.as_str()).collect();
        names.join(" | ")
    }
}

impl Layout {
    /// That of a machine.
    pub fn of(machine: &Machine) -> Layout {
        let mut layout = Layout { branches: Vec::new(), workers: 0 };
        layout.workers = layout.add(machine, machine.root(), &[]).0;
        layout
    }

    /// Adds what is below a memory; gives how many workers are in or below it, and the edge.
    fn add(&mut self, machine: &Machine, memory: MemoryId, above: &[usize]) -> (usize, Option<usize>) {
        let kinds: Vec<MemoryId> = machine.children(memory).collect();
        match kinds[..] {
            [] => (1, None),
            _ => {
                let (workers, edge) = self.add_kinds(machine, memory, &kinds, above);
                (workers, Some(edge))
            }
        }
    }

    fn add_kinds(
        &mut self,
        machine: &Machine,
        parent: MemoryId,
        kinds: &[MemoryId],
        above: &[usize],
    ) -> (usize, usize) {
        let number = self.branches.len();
        let children = if kinds.len() > 1 { 2 } else { machine.memory(kinds[0]).count };
        let child = if kinds.len() > 1 { None } else { Some(kinds[0]) };
        let (above, parents) = (above.to_vec(), machine.total(parent));
        let below_it: Vec<usize> = above.iter().copied().chain([number]).collect();
        let (kinds_here, below, workers) = (kinds.to_vec(), Vec::new(), Vec::new());
        self.branches.push(Branch { parent, child, kinds: kinds_here, children, parents, above, below, workers });
        let (below, workers) = match kinds {
            [one] => {
                let (workers, below) = self.add(machine, *one, &below_it);
                (below.into_iter().collect(), vec![workers])
            }
            [first, others @ ..] => {
                let first = self.add_kinds(machine, parent, &[*first], &below_it);
                let others = self.add_kinds(machine, parent, others, &below_it);
                (vec![first.1, others.1], vec![first.0, others.0])
            }
            [] => (Vec::new(), Vec::new()),
        };
        let branch = &mut self.branches[number];
        (branch.below, branch.workers) = (below, workers);
        (branch.all(0).len(), number)
    }

    /// All edges, each before those below it.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// One edge.
    ///
    /// # Panics
    /// If the machine has no edge of this number.
    #[inline]
    pub fn branch(&self, number: usize) -> &Branch {
        &self.branches[number]
    }

    /// How many workers the machine has.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The edges to memories, with their numbers; no divisions.
    pub fn edges(&self) -> impl DoubleEndedIterator<Item = (usize, &Branch, MemoryId)> {
        self.branches.iter().enumerate().filter_map(|(number, branch)| Some((number, branch, branch.child?)))
    }
}
