//! Passes "residency", "slots" and "pipelining", for one child with a staging memory of its own.
//!
//! The calls of the child are walked in order. A window of `depth` calls beyond the current one is prepared: their
//! blocks are given memory and fetched. When memory runs out, the block whose next use lies farthest ahead leaves
//! (Belady 1966: the future is known, so this is optimal for the order). A block that was written leaves through a
//! store, unless its content is never looked at again. Addresses are fixed here, so nothing is allocated when the
//! plan is run.
//!
//! What is resident stays right because the program's hazards say when a copy becomes stale: a write that some other
//! block or some other child will see is stored at once, and a copy older than the last overlapping write is dropped.

use crate::arena::{Arena, Granted, close_gaps};
use crate::dependence::{Dependence, Hazard};
use crate::placement::Placement;
use crate::plan::{ChildPlan, Op, Places, Slot};
use crate::rooms::Rooms;
use multigrain_program::{Arg, ArrayDecl, Role};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Everything the pass looks at, the same for all children of an edge.
pub(crate) struct Problem<'a> {
    pub(crate) arrays: &'a [ArrayDecl],
    pub(crate) dependence: &'a Dependence,
    pub(crate) placement: &'a Placement,
    /// A legal order of all calls.
    pub(crate) order: &'a [u32],
    pub(crate) block_bytes: &'a [u64],
    /// For each block, by how much its address should lie beyond an aligned one, so that a direct transfer between
    /// file and slot is possible.
    pub(crate) block_skew: &'a [u64],
    /// For each call: whether a call on another child follows it.
    pub(crate) signals: &'a Signals,
    /// For each call, one bit an argument: whether what it writes is seen by another block or another child.
    pub(crate) seen_outside: &'a [u8],
    /// Where blocks lie in rooms of their own, if they are to.
    pub(crate) rooms: Option<&'a Rooms>,
    /// So many transfers of a child may be in flight, if there is a limit.
    pub(crate) in_flight_max: Option<u64>,
}

/// Which calls tell other children that they are done, and as which signal.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Number of the signal after the call (counted from 1), or 0.
    pub(crate) number: Vec<u32>,
}

/// What the passes count for their reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) uses: u64,
    pub(crate) hits: u64,
    pub(crate) fetches: u64,
    pub(crate) stores: u64,
    pub(crate) stores_avoided: u64,
    pub(crate) bytes_down: u64,
    pub(crate) bytes_up: u64,
    pub(crate) fetched_ahead: u64,
}

/// A call whose blocks do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DoesNotFit {
    pub(crate) call: u32,
    pub(crate) need_bytes: u64,
}

struct Resident {
    slot: u32,
    dirty: bool,
    /// The copy is valid for a call that no overlapping write later than this call precedes.
    stamp: u32,
    /// Last position of the window that uses the block.
    pinned_to: usize,
    fetch: Option<u32>,
    /// Stores to await before the slot is first written by a run.
    before_run: Vec<u32>,
}

struct Walk<'a> {
    problem: &'a Problem<'a>,
    child: usize,
    sequence: Vec<u32>,
    /// For each position and argument, the position of the next use of the block by this child.
    next_use: Vec<SmallVec<[usize; 4]>>,
    position_of: FxHashMap<u32, usize>,
    resident: FxHashMap<u32, Resident>,
    /// One for each room, with its first byte.
    arenas: SmallVec<[(u64, Arena); 1]>,
    plan: ChildPlan,
    transfers: u32,
    awaited: Vec<bool>,
    /// All before this one have been awaited.
    awaited_to: u32,
    /// Last store of each block.
    stored_by: FxHashMap<u32, u32>,
    /// Stores that may still be under way: transfer, block, position of the call after which they were issued.
    storing: Vec<(u32, Arg, usize)>,
    /// Position of the call that is being prepared or executed.
    now: usize,
    waited: Vec<u32>,
    counts: Counts,
}

const NEVER: usize = usize::MAX;

/// How many calls a store may lag behind before it is awaited: a large one holds memory, a small one costs nothing, and
/// awaiting it would mean awaiting the large fetches that stand before it in the queue.
fn stores_behind(bytes: u64) -> usize {
    if bytes >= SMALL_STORE_BYTES { 2 } else { 8 }
}
const SMALL_STORE_BYTES: u64 = 64 << 10;

/// Plans one child. `depth` is how many calls ahead are fetched where memory allows.
pub(crate) fn stage(
    problem: &Problem<'_>,
    child: usize,
    children: usize,
    capacity_bytes: u64,
    align_bytes: u64,
    depth: usize,
) -> Result<(ChildPlan, Counts), DoesNotFit> {
    let sequence: Vec<u32> =
        problem.order.iter().copied().filter(|&c| problem.placement.child_of(c as usize) == child).collect();
    let mut next_seen: FxHashMap<u32, usize> = FxHashMap::default();
    let mut next_use = vec![SmallVec::new(); sequence.len()];
    for (position, &call) in sequence.iter().enumerate().rev() {
        let uses = &problem.dependence.uses[call as usize];
        next_use[position] = uses.iter().map(|used| next_seen.get(&used.block).copied().unwrap_or(NEVER)).collect();
        next_seen.extend(uses.iter().map(|used| (used.block, position)));
    }
    let arenas = match problem.rooms {
        None => SmallVec::from_iter([(0, Arena::new(capacity_bytes, align_bytes))]),
        Some(rooms) => {
            let beginning = |at: &mut u64, &(bytes, count): &(u64, u64)| {
                let first = *at;
                *at += bytes * count;
                Some((first, Arena::new(bytes * count, bytes)))
            };
            rooms.slots.iter().scan(0, beginning).collect()
        }
    };
    let position_of = sequence.iter().enumerate().map(|(p, &c)| (c, p)).collect();
    let mut walk = Walk {
        problem,
        child,
        sequence,
        next_use,
        position_of,
        resident: FxHashMap::default(),
        arenas,
        plan: ChildPlan::default(),
        transfers: 0,
        awaited: Vec::new(),
        awaited_to: 0,
        stored_by: FxHashMap::default(),
        storing: Vec::new(),
        now: 0,
        waited: vec![0; children],
        counts: Counts::default(),
    };
    walk.run(depth)?;
    walk.plan.staging_bytes = close_gaps(&mut walk.plan.slots, align_bytes);
    Ok((walk.plan, walk.counts))
}

impl Walk<'_> {
    fn run(&mut self, depth: usize) -> Result<(), DoesNotFit> {
        let mut ready = 0;
        for position in 0..self.sequence.len() {
            ready = ready.max(position);
            self.now = position;
            self.finish_old_stores();
            let window = |ahead: usize| (position + ahead).min(self.sequence.len() - 1);
            let (behind, whole) = (window(depth.saturating_sub(1)), window(depth));
            self.prepare_to(&mut ready, behind);
            if ready == position {
                // What is free may lie in pieces; with nothing in place it is one piece.
                self.clear(position);
                ready += usize::from(self.prepare(position, position));
            }
            if ready == position {
                let call = self.sequence[position];
                let uses = &self.problem.dependence.uses[call as usize];
                let need_bytes = uses.iter().map(|u| self.problem.block_bytes[u.block as usize]).sum();
                return Err(DoesNotFit { call, need_bytes });
            }
            // The last of the window is fetched after the call's own blocks have arrived and before it is run: a disk
            // that answers only when its queue is empty then has work while the call is executed.
            self.arrive(position);
            self.prepare_to(&mut ready, whole);
            self.execute(position);
        }
        (self.awaited_to..self.transfers).for_each(|transfer| self.wait_for(transfer));
        Ok(())
    }

    /// Prepares calls from `ready` to `last`, as far as memory allows.
    fn prepare_to(&mut self, ready: &mut usize, last: usize) {
        while *ready <= last && self.prepare(*ready, self.now) {
            *ready += 1;
        }
    }

    /// Awaits stores that have long been under way, so that their memory can be used again before untouched memory is:
    /// a streaming task then needs little of its budget.
    fn finish_old_stores(&mut self) {
        let mut at = 0;
        while at < self.storing.len() {
            let (transfer, block, position) = self.storing[at];
            let bytes = block.region.elements() * self.problem.arrays[block.array as usize].element.size_bytes();
            if position + stores_behind(bytes) < self.now {
                self.wait_for(transfer);
                self.storing.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Gives the blocks of the call at `target` memory and fetches them, while the call at `now` is next to run.
    /// Whether all of it could be done now.
    fn prepare(&mut self, target: usize, now: usize) -> bool {
        let call = self.sequence[target];
        if target == now {
            self.wait_for_siblings(call);
        }
        let uses = self.problem.dependence.uses[call as usize].clone();
        for (i, used) in uses.iter().enumerate() {
            if let Some(resident) = self.resident.get(&used.block) {
                let (stamp, pinned_to) = (resident.stamp, resident.pinned_to);
                if used.access.reads() && !self.will_be_fresh(target, now, used.block, stamp) {
                    if pinned_to >= now && pinned_to < target {
                        return false;
                    }
                    self.release(used.block, None);
                    if !self.load(target, now, i) {
                        return false;
                    }
                } else if pinned_to != target
                    && let Some(resident) = self.resident.get_mut(&used.block)
                {
                    self.counts.hits += u64::from(used.access.reads());
                    resident.pinned_to = target;
                }
            } else if !self.load(target, now, i) {
                return false;
            }
        }
        true
    }

    /// Whether a resident copy will hold what the call at `target` must read: everything it depends on was written
    /// before the copy was made, or will be written into the copy by a call between `now` and `target`.
    fn will_be_fresh(&self, target: usize, now: usize, block: u32, stamp: u32) -> bool {
        let call = self.sequence[target];
        self.problem.dependence.predecessors[call as usize]
            .iter()
            .filter(|p| p.mine == block && p.hazard == Hazard::ReadAfterWrite)
            .all(|p| {
                let by_us = || self.position_of.get(&p.call).is_some_and(|at| (now..target).contains(at));
                p.call <= stamp || (p.block == block && by_us())
            })
    }

    fn load(&mut self, target: usize, now: usize, argument: usize) -> bool {
        let call = self.sequence[target];
        let used = self.problem.dependence.uses[call as usize][argument];
        let fetch = used.access.reads();
        if fetch && target > now {
            // What another child or a later step of this one still has to write cannot be fetched ahead.
            for p in &self.problem.dependence.predecessors[call as usize] {
                if p.mine == used.block && p.hazard == Hazard::ReadAfterWrite {
                    match self.position_of.get(&p.call) {
                        Some(&position) if position < now => {}
                        _ => return false,
                    }
                }
            }
        }
        let bytes = self.problem.block_bytes[used.block as usize];
        let skew = self.problem.block_skew[used.block as usize];
        let room = self.room(used.block);
        let granted = loop {
            let (first, arena) = &mut self.arenas[room];
            if let Some(granted) = arena.take(bytes + skew, used.access.writes()) {
                break Granted { offset: *first + granted.offset, ..granted };
            }
            // Making room ahead of time pays only for a fetch, and only if it can succeed.
            let worth = target == now || (fetch && self.could_make_room(target, now, bytes, room));
            if !worth || !self.evict(target, now, room) {
                return false;
            }
        };
        let slot = self.plan.slots.len() as u32;
        let block = self.problem.dependence.blocks[used.block as usize];
        self.plan.slots.push(Slot { offset_bytes: granted.offset + skew, bytes, block });
        let mut resident = Resident {
            slot,
            dirty: false,
            stamp: call,
            pinned_to: target,
            fetch: None,
            before_run: granted.draining.clone(),
        };
        if fetch {
            for transfer in granted.draining {
                self.wait_for(transfer);
            }
            resident.before_run.clear();
            let sources: Vec<u32> = self.problem.dependence.predecessors[call as usize]
                .iter()
                .filter(|p| p.mine == used.block && p.hazard == Hazard::ReadAfterWrite)
                .map(|p| p.block)
                .chain([used.block])
                .filter_map(|b| self.stored_by.get(&b).copied())
                .collect();
            for transfer in sources {
                self.wait_for(transfer);
            }
            let transfer = self.issue(|transfer| Op::Fetch { transfer, slot });
            resident.fetch = Some(transfer);
            self.counts.fetches += 1;
            self.counts.bytes_down += bytes;
            self.counts.fetched_ahead += u64::from(target > now);
        }
        self.resident.insert(used.block, resident);
        true
    }

    /// In which room a block lies.
    fn room(&self, block: u32) -> usize {
        self.problem.rooms.map_or(0, |rooms| rooms.of_block[block as usize] as usize)
    }

    /// Whether the blocks of a room that may leave are large enough, together with what is free there.
    fn could_make_room(&self, target: usize, now: usize, bytes: u64, room: usize) -> bool {
        let evictable: u64 = self
            .resident
            .iter()
            .filter(|(block, r)| self.room(**block) == room && r.pinned_to < now)
            .filter(|(block, r)| self.use_after(**block, r.pinned_to) > target)
            .map(|(_, r)| self.plan.slots[r.slot as usize].bytes)
            .sum();
        self.arenas[room].1.free_bytes() + evictable >= bytes
    }

    /// Makes the unpinned block of a room with the farthest next use leave. Whether there was one.
    fn evict(&mut self, target: usize, now: usize, room: usize) -> bool {
        let victim = self
            .resident
            .iter()
            .filter(|(block, r)| self.room(**block) == room && r.pinned_to < now)
            .map(|(&block, r)| (self.use_after(block, r.pinned_to), block))
            .filter(|&(next, _)| next > target)
            .max();
        let Some((next, block)) = victim else { return false };
        let reads_next = next != NEVER && self.reads_at(next, block);
        self.leave(block, reads_next);
        true
    }

    /// Makes all blocks leave, before the call at `now` is prepared, so that what is free is one piece.
    fn clear(&mut self, now: usize) {
        let mut blocks: Vec<(u32, usize)> = self.resident.iter().map(|(&block, r)| (block, r.pinned_to)).collect();
        blocks.sort_unstable();
        for (block, pinned_to) in blocks {
            let next = if pinned_to < now { self.use_after(block, pinned_to) } else { now };
            self.leave(block, next != NEVER && self.reads_at(next, block));
        }
        // Stores that are under way would leave it in pieces, of which a block may take the middle.
        (self.awaited_to..self.transfers).for_each(|transfer| self.wait_for(transfer));
        self.awaited_to = self.transfers;
    }

    /// Next use of a block after a position at which it was used.
    fn use_after(&self, block: u32, position: usize) -> usize {
        let call = self.sequence[position];
        let uses = &self.problem.dependence.uses[call as usize];
        uses.iter().position(|u| u.block == block).map_or(NEVER, |i| self.next_use[position][i])
    }

    fn reads_at(&self, position: usize, block: u32) -> bool {
        let call = self.sequence[position];
        self.problem.dependence.uses[call as usize].iter().any(|u| u.block == block && u.access.reads())
    }

    /// Removes a block, storing it first when it was written and `needed` or a result.
    fn leave(&mut self, block: u32, needed: bool) {
        let Some(resident) = self.resident.get(&block) else { return };
        let (slot, dirty) = (resident.slot, resident.dirty);
        let mut draining = None;
        if dirty {
            if needed {
                draining = Some(self.store(block, slot));
            } else {
                self.counts.stores_avoided += 1;
            }
        }
        self.release(block, draining);
    }

    fn store(&mut self, block: u32, slot: u32) -> u32 {
        // Earlier content of the same place must have arrived first.
        let region = self.problem.dependence.blocks[block as usize];
        let overlaps = |other: &Arg| other.array == region.array && other.region.intersects(&region.region);
        self.storing.retain(|(transfer, ..)| !self.awaited[*transfer as usize]);
        let earlier: Vec<u32> = self.storing.iter().filter(|(_, b, _)| overlaps(b)).map(|(t, ..)| *t).collect();
        for transfer in earlier {
            self.wait_for(transfer);
        }
        let transfer = self.issue(|transfer| Op::Store { transfer, slot });
        self.stored_by.insert(block, transfer);
        self.storing.push((transfer, region, self.now));
        self.counts.stores += 1;
        self.counts.bytes_up += self.problem.block_bytes[block as usize];
        transfer
    }

    fn release(&mut self, block: u32, draining: Option<u32>) {
        if let Some(resident) = self.resident.remove(&block) {
            if let Some(fetch) = resident.fetch {
                self.wait_for(fetch);
            }
            let slot = self.plan.slots[resident.slot as usize];
            let draining = draining.or_else(|| self.stored_by.get(&block).copied());
            let draining = draining.filter(|&t| !self.awaited[t as usize]);
            let skew = self.problem.block_skew[block as usize];
            let room = self.room(block);
            let (first, arena) = &mut self.arenas[room];
            arena.give(slot.offset_bytes - skew - *first, slot.bytes + skew, draining);
        }
    }

    fn issue(&mut self, op: impl FnOnce(u32) -> Op) -> u32 {
        // The oldest makes room where no more may be in flight.
        if let Some(most) = self.problem.in_flight_max {
            let is_awaited = |&number: &u32| self.awaited[number as usize];
            self.awaited_to += (self.awaited_to..self.transfers).take_while(is_awaited).count() as u32;
            let under_way = (self.awaited_to..self.transfers).filter(|number| !is_awaited(number));
            if under_way.count() as u64 >= most {
                self.wait_for(self.awaited_to);
            }
        }
        let transfer = self.transfers;
        self.transfers += 1;
        self.awaited.push(false);
        self.plan.ops.push(op(transfer));
        transfer
    }

    fn wait_for(&mut self, transfer: u32) {
        if !std::mem::replace(&mut self.awaited[transfer as usize], true) {
            self.plan.ops.push(Op::Await { transfer });
            self.arenas.iter_mut().for_each(|(_, arena)| arena.awaited(transfer));
        }
    }

    fn wait_for_siblings(&mut self, call: u32) {
        let Problem { dependence, placement, signals, .. } = *self.problem;
        wait_for_siblings((dependence, placement, signals), self.child, call, &mut self.waited, &mut self.plan.ops);
    }

    /// Awaits what the call at `position` needs in place.
    fn arrive(&mut self, position: usize) {
        let call = self.sequence[position];
        // A call prepared ahead of time has not waited yet.
        self.wait_for_siblings(call);
        let uses = self.problem.dependence.uses[call as usize].clone();
        for used in &uses {
            let Some(resident) = self.resident.get_mut(&used.block) else { continue };
            let mut transfers = std::mem::take(&mut resident.before_run);
            transfers.extend(resident.fetch.take());
            if used.access.writes() {
                // A store of the previous version may still be reading the slot.
                transfers.extend(self.stored_by.get(&used.block));
            }
            for transfer in transfers {
                self.wait_for(transfer);
            }
        }
    }

    fn execute(&mut self, position: usize) {
        let call = self.sequence[position];
        let uses = self.problem.dependence.uses[call as usize].clone();
        let first = self.plan.places.len() as u32;
        for used in &uses {
            self.counts.uses += 1;
            let Some(resident) = self.resident.get(&used.block) else { continue };
            self.plan.places.push(resident.slot);
        }
        self.plan.ops.push(Op::Run { call, places: Places::Slots { first } });
        for (i, used) in uses.iter().enumerate() {
            let last = self.next_use[position][i] == NEVER;
            let block = &self.problem.dependence.blocks[used.block as usize];
            let Some(resident) = self.resident.get_mut(&used.block) else { continue };
            let slot = resident.slot;
            if used.access.writes() {
                resident.stamp = call;
                resident.dirty = true;
                if self.problem.seen_outside[call as usize] & (1 << i) != 0 {
                    resident.dirty = false;
                    let transfer = self.store(used.block, slot);
                    if self.problem.signals.number[call as usize] != 0 {
                        self.wait_for(transfer);
                    }
                }
            } else {
                resident.stamp = resident.stamp.max(call);
            }
            if last {
                let role = self.problem.arrays[block.array as usize].role;
                self.leave(used.block, matches!(role, Role::Output | Role::InOut));
            }
        }
        if self.problem.signals.number[call as usize] != 0 {
            self.plan.ops.push(Op::Signal);
        }
    }
}

/// Appends the waits for calls of other children that `call` must follow.
pub(crate) fn wait_for_siblings(
    (dependence, placement, signals): (&Dependence, &Placement, &Signals),
    child: usize,
    call: u32,
    waited: &mut [u32],
    ops: &mut Vec<Op>,
) {
    for p in &dependence.predecessors[call as usize] {
        let sibling = placement.child_of(p.call as usize);
        let signals = signals.number[p.call as usize];
        if sibling != child && waited[sibling] < signals {
            waited[sibling] = signals;
            ops.push(Op::Wait { child: sibling as u32, signals });
        }
    }
}
