//! A plan executed on versions instead of numbers.
//!
//! The picture: every slot and the parent memory hold, for each cell, the number of the call that wrote it. Children
//! take turns, each going on until it waits for a signal, or for all others at a barrier or broadcast. A plan's steps do not
//! depend on data, so when no two accesses of the parent memory race, every execution shows the same versions as this one.

use super::cells::Cells;
use super::error::CheckError;
use super::order::{Clocks, History, Point};
use super::problem::{BlockName, BlockedWait, Direction, Problem, Version};
use super::scope::Scope;
use super::staging::Transfers;
use crate::plan::{Op, Places, Plan};
use multigrain_machine::TransferRules;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// What executes steps in order: a child or, in a balanced plan, a batch.
struct Thread {
    child: usize,
    steps: Range<usize>,
    /// Of a batch: it comes after all batches of the phases before.
    phase: u32,
}

/// What lies in a slot.
#[derive(Clone, Default)]
struct Stay {
    /// The version of each cell of its block, in the order of [`Cells::of`].
    content: Option<SmallVec<[u32; 4]>>,
    /// The slot that took the bytes of the last content.
    lost_to: Option<u32>,
    /// Transfer that is filling the slot.
    fetch: Option<u32>,
    /// Transfer that is reading the slot.
    store: Option<u32>,
    /// Whether a run wrote it after it was last fetched or stored.
    written: bool,
}

struct Execution<'a> {
    scope: &'a Scope<'a>,
    plan: &'a Plan,
    cells: &'a Cells,
    transfers: &'a [Transfers],
    rules: &'a TransferRules,
    /// The version of each cell in the parent memory.
    parent: Vec<u32>,
    history: History,
    clocks: Clocks,
    threads: Vec<Thread>,
    stays: Vec<Vec<Stay>>,
    /// For each child, the slots with content, by where what they own begins. They never own a byte together.
    live: Vec<BTreeMap<u64, u32>>,
    /// For each call, child and step of its run.
    ran: Vec<Option<(u32, u32)>>,
    /// For each cell, the number of the store (from 1) that last wrote it; empty when nothing is stored.
    stored_by: Vec<u32>,
    /// For each store, whether anything it wrote is looked at.
    read: Vec<bool>,
    waits: u64,
}

/// What an execution counts.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) waits: u64,
    pub(super) unread_stores: u64,
}

/// Executes a plan whose calls, slots and steps are well-formed.
pub(super) fn execute(scope: &Scope<'_>, transfers: &[Transfers], rules: &TransferRules) -> Result<Counts, CheckError> {
    let plan = scope.plan;
    let threads = if plan.balanced { batches(plan)? } else { children(plan) };
    let cells = &scope.cells;
    let stores_anything = plan.traffic.bytes_up > 0;
    let mut execution = Execution {
        scope,
        plan,
        cells,
        transfers,
        rules,
        parent: vec![0; cells.len()],
        history: History::new(cells.len()),
        clocks: match plan.balanced {
            true => Clocks::in_phases(threads.iter().map(|thread| thread.phase).collect()),
            false => Clocks::new(threads.len()),
        },
        threads,
        stays: plan.children.iter().map(|c| vec![Stay::default(); c.slots.len()]).collect(),
        live: vec![BTreeMap::new(); plan.children.len()],
        ran: vec![None; plan.calls.len()],
        stored_by: vec![0; if stores_anything { cells.len() } else { 0 }],
        read: Vec::new(),
        waits: 0,
    };
    execution.run_all()?;
    execution.finish()
}

fn children(plan: &Plan) -> Vec<Thread> {
    plan.children.iter().enumerate().map(|(child, c)| Thread { child, steps: 0..c.ops.len(), phase: 0 }).collect()
}

/// The batches of a balanced plan: they cover all steps, and each step can be executed by any child. Phases cover all
/// batches. In the order of the phases.
fn batches(plan: &Plan) -> Result<Vec<Thread>, CheckError> {
    let mut threads = Vec::new();
    let phases = plan.phases();
    for (number, child) in plan.children.iter().enumerate() {
        let (listed, batches) = (child.phases.len(), child.batches.len());
        let covered = match child.phases.last() {
            None => phases == 1,
            Some(&end) => listed == phases && child.phases.is_sorted() && end as usize == batches,
        };
        if !covered {
            let problem = Problem::Phases { found: child.phases.clone(), expected: phases, batches };
            return Err(CheckError::new(plan, problem).of_child(number));
        }
        let mut end = 0;
        for (batch, range) in child.batches.iter().enumerate() {
            if range.start != end || range.end < range.start || range.end as usize > child.ops.len() {
                let (found, steps) = ((range.start, range.end), child.ops.len());
                let problem = Problem::BatchRange { batch, found, expected: end, steps };
                return Err(CheckError::new(plan, problem).of_child(number));
            }
            end = range.end;
            let phase = child.phases.partition_point(|&end| end as usize <= batch) as u32;
            threads.push(Thread { child: number, steps: range.start as usize..range.end as usize, phase });
        }
        if (end as usize) < child.ops.len() {
            return Err(CheckError::new(plan, Problem::NoBatch).at(plan, number, end as usize));
        }
        for (step, op) in child.ops.iter().enumerate() {
            let does = match op {
                Op::Run { places: Places::Views, .. } => continue,
                Op::Run { .. } => "runs on slots of its own child",
                Op::Fetch { .. } | Op::Store { .. } | Op::Await { .. } => "moves a slot of its own child",
                Op::Signal | Op::Wait { .. } | Op::Barrier | Op::Broadcast { .. } => "is about the order of children",
            };
            return Err(CheckError::new(plan, Problem::NotMovable { step: does }).at(plan, number, step));
        }
    }
    threads.sort_by_key(|thread| thread.phase);
    Ok(threads)
}

impl Execution<'_> {
    fn run_all(&mut self) -> Result<(), CheckError> {
        let mut at: Vec<usize> = self.threads.iter().map(|t| t.steps.start).collect();
        loop {
            let (mut progress, mut blocked, mut met) = (false, Vec::new(), Vec::new());
            for (thread, at) in at.iter_mut().enumerate() {
                let Thread { child, ref steps, .. } = self.threads[thread];
                let end = steps.end;
                while *at < end {
                    let step = *at;
                    if let Op::Wait { child: on, signals } = self.plan.children[child].ops[step] {
                        let given = self.clocks.given(on as usize);
                        if given < signals {
                            blocked.push(BlockedWait { child, op: step, on, signals, given });
                            break;
                        }
                    }
                    if matches!(self.plan.children[child].ops[step], Op::Barrier | Op::Broadcast { .. }) {
                        met.push(child);
                        break;
                    }
                    self.step(thread, child, step)?;
                    *at += 1;
                    progress = true;
                }
            }
            if met.len() == self.threads.len() {
                self.meet(&at)?;
                at.iter_mut().for_each(|at| *at += 1);
                continue;
            }
            if blocked.is_empty() && met.is_empty() {
                return Ok(());
            }
            if !progress {
                let missing = (0..self.threads.len()).find(|child| !met.contains(child));
                let problem = match (blocked.is_empty(), missing) {
                    (true, Some(missing)) => Problem::Unmet { missing, met },
                    _ => Problem::Deadlock { waits: blocked },
                };
                return Err(CheckError::new(self.plan, problem));
            }
        }
    }

    fn step(&mut self, thread: usize, child: usize, step: usize) -> Result<(), CheckError> {
        let plan = self.plan;
        let here = |problem| CheckError::new(plan, problem).at(plan, child, step);
        match plan.children[child].ops[step] {
            Op::Fetch { transfer, slot } => self.fetch(thread, child, step, transfer, slot),
            Op::Store { transfer, slot } => self.store(thread, child, step, transfer, slot),
            Op::Await { transfer } => {
                let t = self.transfers[child].list[transfer as usize];
                let stay = &mut self.stays[child][t.slot as usize];
                match t.direction {
                    Direction::Fetch => stay.fetch = None,
                    Direction::Store => stay.store = None,
                }
                Ok(())
            }
            Op::Run { call, places } => {
                if let Some((child, op)) = self.ran[call as usize].replace((child as u32, step as u32)) {
                    return Err(here(Problem::RunTwice { child: child as usize, op: op as usize }));
                }
                match places {
                    Places::Views if plan.driver.views => self.run_on_views(thread, child, step, call),
                    Places::Views => Err(here(Problem::ViewsNotShared { driver: plan.driver })),
                    Places::Slots { first } => self.run_in_slots(child, step, call, first).map_err(|(p, block)| {
                        let error = here(p);
                        block.map_or(error.clone(), |b| error.on(plan, &plan.calls[call as usize].args[b]))
                    }),
                }
            }
            Op::Signal => {
                self.clocks.signal(thread, step as u32);
                Ok(())
            }
            Op::Wait { child: on, signals } => {
                self.waits += 1;
                self.clocks.wait(thread, on as usize, signals);
                Ok(())
            }
            // All children at once: see `meet`.
            Op::Barrier | Op::Broadcast { .. } => Ok(()),
        }
    }

    /// All children have come to a barrier or broadcast, each at that step of its own. Only then does any go on: who
    /// broadcasts may have to wait for the others, depending on the algorithm.
    fn meet(&mut self, at: &[usize]) -> Result<(), CheckError> {
        let plan = self.plan;
        let op = |child: usize| &plan.children[child].ops[at[child]];
        let what = |child: usize| match *op(child) {
            Op::Broadcast { root, slot } => {
                let block = BlockName::new(&plan.arrays, &plan.children[child].slots[slot as usize].block);
                format!("a broadcast of {block} by child {root}")
            }
            _ => "a barrier".to_owned(),
        };
        let same = |child: usize| match (*op(0), *op(child)) {
            (Op::Broadcast { root, slot }, Op::Broadcast { root: other, slot: its }) => {
                let block = |child: usize, slot: u32| plan.children[child].slots[slot as usize].block;
                root == other && block(0, slot) == block(child, its)
            }
            (one, other) => one == other,
        };
        if let Some(child) = (1..at.len()).find(|&child| !same(child)) {
            let problem = Problem::OtherMeeting { found: what(child), other: 0, expected: what(0) };
            return Err(CheckError::new(plan, problem).at(plan, child, at[child]));
        }
        self.waits += at.len() as u64;
        match *op(0) {
            Op::Broadcast { root, .. } => self.broadcast(root as usize, at),
            _ => {
                self.clocks.barrier(at);
                Ok(())
            }
        }
    }

    /// The root's slot fills those of the others. When the root has done its part its content is on the way in memory that
    /// no step of a plan touches, so it may change its slot.
    fn broadcast(&mut self, root: usize, at: &[usize]) -> Result<(), CheckError> {
        let plan = self.plan;
        let here = |child: usize| move |problem| CheckError::new(plan, problem).at(plan, child, at[child]);
        let slot = |child: usize| match plan.children[child].ops[at[child]] {
            Op::Broadcast { slot, .. } => slot,
            _ => unreachable!("all children are at a broadcast"),
        };
        let offset_bytes = |child: usize| plan.children[child].slots[slot(child) as usize].offset_bytes;
        let stay = &self.stays[root][slot(root) as usize];
        in_flight(slot(root), slot(root), stay, false).map_err(here(root))?;
        let Some(content) = stay.content.clone() else {
            return Err(here(root)(Problem::NoContent { slot: slot(root), lost_to: stay.lost_to }));
        };
        let alignment_bytes = if self.rules.strict { self.rules.alignment_bytes.max(1) } else { 1 };
        for child in (0..at.len()).filter(|&child| child != root) {
            let [slot_bytes, root_bytes] = [child, root].map(|child| offset_bytes(child) % alignment_bytes);
            if slot_bytes != root_bytes {
                let problem = Problem::UnlikeRoot { slot: slot(child), slot_bytes, root_bytes, alignment_bytes };
                return Err(here(child)(problem));
            }
            self.claim(child, slot(child)).map_err(here(child))?;
            let filled = Stay { content: Some(content.clone()), ..Stay::default() };
            self.stays[child][slot(child) as usize] = filled;
        }
        self.clocks.broadcast(root, at);
        Ok(())
    }

    /// An access of the parent memory from step `step` to the end of step `end`.
    fn access(
        &mut self,
        thread: usize,
        step: usize,
        end: u32,
        cell: u32,
        direction: Direction,
    ) -> Result<(), CheckError> {
        let point = Point { thread: thread as u32, end };
        let result = self.history.access(&self.clocks, cell, point, step as u32, direction);
        result.map_err(|unordered| {
            let problem = Problem::Race {
                part: BlockName::new(&self.plan.arrays, self.cells.part(cell)),
                writes: direction == Direction::Store,
                child: self.threads[unordered.with.thread as usize].child,
                op: unordered.with.end as usize,
                other_writes: unordered.writes,
            };
            CheckError::new(self.plan, problem).at(self.plan, self.threads[thread].child, step)
        })
    }

    fn run_on_views(&mut self, thread: usize, child: usize, step: usize, call: u32) -> Result<(), CheckError> {
        let scope = self.scope;
        for (argument, (block, param)) in scope.uses(call as usize).enumerate() {
            let direction = if param.access.writes() { Direction::Store } else { Direction::Fetch };
            for &cell in self.cells.of(block) {
                // What no call writes needs no order.
                if !scope.is_written(cell) {
                    continue;
                }
                self.access(thread, step, step as u32, cell, direction)?;
                if param.access.reads() {
                    self.mark_read(cell);
                    let (expected, found) = (scope.version_for(cell, call), self.parent[cell as usize]);
                    if expected != found {
                        let arg = &self.plan.calls[call as usize].args[argument];
                        let error = CheckError::new(self.plan, self.wrong_version(cell, expected, found));
                        return Err(error.at(self.plan, child, step).on(self.plan, arg));
                    }
                }
                if direction == Direction::Store {
                    self.parent[cell as usize] = call + 1;
                    if let Some(stored_by) = self.stored_by.get_mut(cell as usize) {
                        *stored_by = 0;
                    }
                }
            }
        }
        Ok(())
    }

    fn wrong_version(&self, cell: u32, expected: u32, found: u32) -> Problem {
        Problem::WrongVersion {
            part: self.cells.part(cell).region,
            expected: Version::from_count(expected),
            found: Version::from_count(found),
        }
    }

    fn fetch(&mut self, thread: usize, child: usize, step: usize, transfer: u32, slot: u32) -> Result<(), CheckError> {
        let (plan, scope, cells) = (self.plan, self.scope, self.cells);
        self.claim(child, slot).map_err(|p| CheckError::new(plan, p).at(plan, child, step))?;
        let end = self.transfers[child].list[transfer as usize].awaited_at;
        let mut content = SmallVec::new();
        for &cell in cells.of(scope.slot_blocks[child][slot as usize]) {
            if scope.is_written(cell) {
                self.access(thread, step, end, cell, Direction::Fetch)?;
                self.mark_read(cell);
            }
            content.push(self.parent[cell as usize]);
        }
        let stay = &mut self.stays[child][slot as usize];
        *stay = Stay { content: Some(content), fetch: Some(transfer), ..Stay::default() };
        Ok(())
    }

    fn store(&mut self, thread: usize, child: usize, step: usize, transfer: u32, slot: u32) -> Result<(), CheckError> {
        let (plan, scope, cells) = (self.plan, self.scope, self.cells);
        let here = |problem| CheckError::new(plan, problem).at(plan, child, step);
        let stay = &mut self.stays[child][slot as usize];
        if let Some(transfer) = stay.fetch {
            return Err(here(Problem::InFlight { slot, other: slot, direction: Direction::Fetch, transfer }));
        }
        let Some(content) = stay.content.clone() else {
            return Err(here(Problem::NoContent { slot, lost_to: stay.lost_to }));
        };
        if !std::mem::take(&mut stay.written) {
            return Err(here(Problem::SuperfluousStore { slot }));
        }
        stay.store = Some(transfer);
        self.read.push(false);
        let number = self.read.len() as u32;
        let end = self.transfers[child].list[transfer as usize].awaited_at;
        for (&cell, version) in cells.of(scope.slot_blocks[child][slot as usize]).iter().zip(content) {
            self.access(thread, step, end, cell, Direction::Store)?;
            self.parent[cell as usize] = version;
            self.stored_by[cell as usize] = number;
        }
        Ok(())
    }

    fn mark_read(&mut self, cell: u32) {
        if let Some(number) = self.stored_by.get(cell as usize).and_then(|n| n.checked_sub(1)) {
            self.read[number as usize] = true;
        }
    }

    /// Takes the bytes of a slot for new content. Whatever lies there is lost and must not be in flight.
    fn claim(&mut self, child: usize, slot: u32) -> Result<(), Problem> {
        let owned = |slot: u32| self.plan.children[child].slots[slot as usize].owned_bytes(self.plan.slot_unit_bytes);
        let mine = owned(slot);
        // Slots with content own bytes of their own, so their ends ascend as their starts do.
        while let Some((&start, &other)) = self.live[child].range(..mine.end).next_back() {
            if owned(other).end <= mine.start {
                break;
            }
            let stay = &mut self.stays[child][other as usize];
            in_flight(slot, other, stay, true)?;
            *stay = Stay { lost_to: Some(slot), ..Stay::default() };
            self.live[child].remove(&start);
        }
        self.live[child].insert(mine.start, slot);
        Ok(())
    }

    /// On error, the argument concerned.
    fn run_in_slots(
        &mut self,
        child: usize,
        step: usize,
        call: u32,
        first: u32,
    ) -> Result<(), (Problem, Option<usize>)> {
        debug_assert!(step < self.plan.children[child].ops.len());
        let scope = self.scope;
        let c = &self.plan.children[child];
        let args = self.plan.calls[call as usize].args.len();
        let end = first as usize + args;
        let Some(places) = c.places.get(first as usize..end) else {
            let count = c.places.len() as u64;
            return Err((Problem::BadIndex { what: "place", index: end as u64 - 1, count }, None));
        };
        for (argument, ((block, param), &slot)) in scope.uses(call as usize).zip(places).enumerate() {
            let fail = |problem| (problem, Some(argument));
            let Some(stay) = self.stays[child].get(slot as usize) else {
                let count = c.slots.len() as u64;
                return Err(fail(Problem::BadIndex { what: "slot", index: slot.into(), count }));
            };
            if scope.slot_blocks[child][slot as usize] != block {
                let found = BlockName::new(&self.plan.arrays, &c.slots[slot as usize].block);
                return Err(fail(Problem::WrongBlock { param: param.name.to_owned(), slot, found }));
            }
            for (&other, (_, second)) in places.iter().zip(scope.uses(call as usize)).take(argument) {
                let (a, b) = (&c.slots[slot as usize], &c.slots[other as usize]);
                let shares = a.offset_bytes < b.offset_bytes + b.bytes && b.offset_bytes < a.offset_bytes + a.bytes;
                if shares && (param.access.writes() || second.access.writes()) {
                    return Err(fail(Problem::SharedBytes { slot, other }));
                }
            }
            in_flight(slot, slot, stay, param.access.writes()).map_err(fail)?;
            if param.access.reads() {
                let Some(content) = &stay.content else {
                    return Err(fail(Problem::NoContent { slot, lost_to: stay.lost_to }));
                };
                for (&cell, &found) in self.cells.of(block).iter().zip(content) {
                    let expected = scope.version_for(cell, call);
                    if expected != found {
                        return Err(fail(self.wrong_version(cell, expected, found)));
                    }
                }
            }
        }
        for (argument, ((block, param), &slot)) in scope.uses(call as usize).zip(places).enumerate() {
            if param.access.writes() {
                self.claim(child, slot).map_err(|p| (p, Some(argument)))?;
                let content = SmallVec::from_elem(call + 1, self.cells.of(block).len());
                self.stays[child][slot as usize] = Stay { content: Some(content), written: true, ..Stay::default() };
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Counts, CheckError> {
        let (plan, scope, cells) = (self.plan, self.scope, self.cells);
        if let Some(call) = self.ran.iter().position(Option::is_none) {
            return Err(CheckError::new(plan, Problem::NeverRun).of_call(plan, call));
        }
        for &(_, whole) in &scope.results {
            for &cell in cells.of(whole) {
                let (expected, found) = (scope.final_version(cell), self.parent[cell as usize]);
                if expected != found {
                    let part = cells.part(cell);
                    let problem = Problem::WrongResult {
                        part: part.region,
                        expected: Version::from_count(expected),
                        found: Version::from_count(found),
                    };
                    return Err(CheckError::new(plan, problem).on(plan, part));
                }
                self.mark_read(cell);
            }
        }
        let unread_stores = self.read.iter().filter(|&&read| !read).count() as u64;
        Ok(Counts { waits: self.waits, unread_stores })
    }
}

/// Whether `slot` may be used although it shares bytes with `other`, as far as transfers in flight go. `written`:
/// whether the bytes change.
fn in_flight(slot: u32, other: u32, stay: &Stay, written: bool) -> Result<(), Problem> {
    let fetch = stay.fetch.map(|transfer| (Direction::Fetch, transfer));
    let store = stay.store.filter(|_| written).map(|transfer| (Direction::Store, transfer));
    match fetch.or(store) {
        Some((direction, transfer)) => Err(Problem::InFlight { slot, other, direction, transfer }),
        None => Ok(()),
    }
}
