//! Pass "broadcasts": what all children need, one of them hands to all.
//!
//! On an edge with copies each child fetches its own copy of a block, also of one that all of them read: the sources of a
//! gravity step, a panel of a product. Where children reach each other ([`Edge::sibling_bytes_per_second`]) one of them keeps
//! its fetch, or has the block anyway because it made it, and [`Op::Broadcast`] takes the place at which the others awaited
//! theirs. So the parent's memory is read once instead of by each, or not at all.
//!
//! [`Edge::sibling_bytes_per_second`]: multigrain_machine::Edge::sibling_bytes_per_second
//!
//! *What.* Contents are named by block and by the last call that wrote any part of it before the call that reads it: the same
//! name is the same content, wherever and whenever. A content may be broadcast where all children fetch it, or all but one,
//! which has it in a slot when it reads it. Who has it is the root; otherwise children take turns, so that fetches ahead of
//! time are spread over them. A slot is the child's from the step at which the fetch was issued, so it is free when the
//! broadcast fills it.
//!
//! *In which order.* The pass executes the steps as all children at once: each goes on up to a content that may be broadcast,
//! a signal that has not been given, or a barrier. Where all have come to one content it becomes a broadcast; where not all
//! can, one of those that they have come to is given up, and each child fetches it as before. So all broadcasts come in one
//! order with all barriers, signals and waits, for which there is an execution that ends; and since no step depends on when
//! others happen, every execution does.

use crate::plan::{ChildPlan, Op, Places, Slot, Traffic};
use multigrain_program::{Access, Arg};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Steps with broadcasts.
pub(crate) struct Broadcasts {
    pub(crate) children: Vec<ChildPlan>,
    /// How many.
    pub(crate) count: usize,
    /// What of the traffic no longer goes to the children, and the bytes that go between them instead.
    pub(crate) spared: Traffic,
}

/// What the pass asks about calls and blocks.
pub(crate) trait Meaning {
    /// The accesses of a call's parameters.
    fn accesses(&self, call: u32) -> Vec<Access>;
    /// Which call's output, or what before all of them, a call finds in a block: equal numbers are equal content.
    fn version(&self, call: u32, block: &Arg) -> u32;
    /// Whether a block is worth a broadcast.
    fn is_worth(&self, slot: &Slot) -> bool;
}

/// How a child comes by a content.
#[derive(Clone, Copy)]
struct Part {
    /// The content.
    name: usize,
    /// The step at which the child has it: the await of its fetch, or the run that reads it first.
    step: usize,
    slot: u32,
    /// The step at which it issues a fetch; `None` if it has the block.
    issued: Option<usize>,
}

/// Block, version, and how many times the child has fetched that before.
type Name = (Arg, u32, u32);

/// Makes broadcasts of what all children need, as far as a block is worth it; `None` if nothing is.
pub(crate) fn broadcasts(children: &[ChildPlan], meaning: &impl Meaning) -> Option<Broadcasts> {
    let blocks = |child: &ChildPlan| child.slots.iter().map(|slot| slot.block).collect::<FxHashSet<Arg>>();
    let (first, others) = children.split_first()?;
    let mut common = blocks(first);
    for child in others {
        let theirs = blocks(child);
        common.retain(|block| theirs.contains(block));
    }
    if others.is_empty() || common.is_empty() {
        return None;
    }
    let mut names: FxHashMap<Name, usize> = FxHashMap::default();
    let rows: Vec<Vec<Part>> = children.iter().map(|child| parts(child, &common, meaning, &mut names)).collect();
    // Of each content how many children fetch it and how many have it.
    let mut counts = vec![(0, 0); names.len()];
    for part in rows.iter().flatten() {
        let (fetch, have) = &mut counts[part.name];
        *(if part.issued.is_some() { fetch } else { have }) += 1;
    }
    let mut open: Vec<bool> =
        counts.into_iter().map(|(fetch, have)| fetch + have == children.len() && have <= 1).collect();
    for (child, part) in children.iter().zip(&rows).flat_map(|(child, row)| row.iter().map(move |part| (child, part))) {
        open[part.name] = open[part.name] && meaning.is_worth(&child.slots[part.slot as usize]);
    }
    let made = in_order(children, &rows, &mut open)?;
    let spared_by = others.len() as u64;
    let bytes: u64 = made.iter().map(|parts| first.slots[parts[0].slot as usize].bytes).sum();
    Some(Broadcasts {
        children: children.iter().enumerate().map(|(number, child)| with_broadcasts(child, number, &made)).collect(),
        count: made.len(),
        spared: Traffic {
            bytes_down: spared_by * bytes,
            bytes_up: 0,
            bytes_across: spared_by * bytes,
            transfers: spared_by * made.len() as u64,
        },
    })
}

/// What a child fetches of some blocks, and what it has of them and reads, in the order of the steps.
fn parts(
    child: &ChildPlan,
    blocks: &FxHashSet<Arg>,
    meaning: &impl Meaning,
    names: &mut FxHashMap<Name, usize>,
) -> Vec<Part> {
    let reads = |call: u32, first: u32| {
        let slots = meaning.accesses(call).into_iter().zip(&child.places[first as usize..]);
        slots.filter(|(access, _)| access.reads()).map(|(_, &slot)| slot).collect::<Vec<u32>>()
    };
    // The first call that reads each slot.
    let mut reader: FxHashMap<u32, u32> = FxHashMap::default();
    for op in &child.ops {
        if let Op::Run { call, places: Places::Slots { first } } = *op {
            for slot in reads(call, first) {
                reader.entry(slot).or_insert(call);
            }
        }
    }
    let mut found = Vec::new();
    let mut issued: FxHashMap<u32, (usize, u32)> = FxHashMap::default();
    let mut seen: FxHashMap<(Arg, u32), u32> = FxHashMap::default();
    let mut name = |name: Name| {
        let fresh = names.len();
        *names.entry(name).or_insert(fresh)
    };
    for (step, op) in child.ops.iter().enumerate() {
        match *op {
            Op::Fetch { transfer, slot } => {
                issued.insert(transfer, (step, slot));
            }
            Op::Await { transfer } => {
                let Some(&(at, slot)) = issued.get(&transfer) else { continue };
                let block = child.slots[slot as usize].block;
                if let (Some(&call), true) = (reader.get(&slot), blocks.contains(&block)) {
                    let version = meaning.version(call, &block);
                    let number = seen.entry((block, version)).or_default();
                    found.push(Part { name: name((block, version, *number)), step, slot, issued: Some(at) });
                    *number += 1;
                }
            }
            Op::Run { call, places: Places::Slots { first } } => {
                for slot in reads(call, first) {
                    let block = child.slots[slot as usize].block;
                    if blocks.contains(&block) {
                        let version = meaning.version(call, &block);
                        seen.entry((block, version)).or_insert_with(|| {
                            found.push(Part { name: name((block, version, 0)), step, slot, issued: None });
                            1
                        });
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// One child on its way through its steps.
#[derive(Clone, Copy, Default)]
struct Walk {
    step: usize,
    /// The next of its parts.
    part: usize,
    signals: u32,
}

/// The parts of those contents that all children come to in one order, of contents that may be broadcast; `None` if there
/// are none.
fn in_order(children: &[ChildPlan], rows: &[Vec<Part>], open: &mut [bool]) -> Option<Vec<Vec<Part>>> {
    let mut walks = vec![Walk::default(); children.len()];
    let mut made = Vec::new();
    loop {
        // Each as far as it can go.
        let mut progress = true;
        while std::mem::take(&mut progress) {
            for child in 0..children.len() {
                let before = walks[child].step;
                go_on(&children[child], &rows[child], child, open, &mut walks);
                progress |= walks[child].step > before;
            }
        }
        let standing = |child: usize| {
            let part = rows[child].get(walks[child].part)?;
            (part.step == walks[child].step).then_some(*part)
        };
        let stand: Vec<Option<Part>> = (0..children.len()).map(standing).collect();
        let next: Vec<Option<&Op>> =
            children.iter().zip(&walks).map(|(child, walk)| child.ops.get(walk.step)).collect();
        let met: Vec<Part> = stand.iter().flatten().copied().collect();
        if met.is_empty() {
            if next.iter().all(|op| matches!(op, Some(Op::Barrier))) {
                walks.iter_mut().for_each(|walk| walk.step += 1);
                continue;
            }
            // All have ended; or the steps without broadcasts would not.
            return next.iter().all(Option::is_none).then_some(made).filter(|made| !made.is_empty());
        }
        if met.len() == children.len() && met.iter().all(|part| part.name == met[0].name) {
            walks.iter_mut().for_each(|walk| walk.part += 1);
            made.push(met);
            continue;
        }
        // The one to which the fewest have come: the others may still meet.
        let with = |name: usize| met.iter().filter(|part| part.name == name).count();
        let given_up = met.iter().map(|part| part.name).min_by_key(|&name| with(name))?;
        open[given_up] = false;
    }
}

/// A child goes on until it stands at a part that is open, or has to wait.
fn go_on(steps: &ChildPlan, row: &[Part], child: usize, open: &[bool], walks: &mut [Walk]) {
    while let Some(op) = steps.ops.get(walks[child].step) {
        let walk = &mut walks[child];
        while row.get(walk.part).is_some_and(|part| part.step <= walk.step && !open[part.name]) {
            walk.part += 1;
        }
        if row.get(walk.part).is_some_and(|part| part.step == walk.step) {
            return;
        }
        match *op {
            Op::Barrier => return,
            Op::Wait { child: other, signals } if walks[other as usize].signals < signals => return,
            Op::Signal => walks[child].signals += 1,
            _ => {}
        }
        walks[child].step += 1;
    }
}

/// The root of a broadcast.
fn root(broadcast: usize, parts: &[Part]) -> usize {
    parts.iter().position(|part| part.issued.is_none()).unwrap_or(broadcast % parts.len())
}

/// The steps of a child with these broadcasts, its transfers numbered anew.
fn with_broadcasts(child: &ChildPlan, number: usize, made: &[Vec<Part>]) -> ChildPlan {
    let mut goes = vec![false; child.ops.len()];
    // What comes before a step, and at the end. Parts come in the order of their steps.
    let mut before: BTreeMap<usize, Vec<Op>> = BTreeMap::new();
    for (broadcast, parts) in made.iter().enumerate() {
        let (part, root) = (parts[number], root(broadcast, parts));
        let at = match part.issued {
            // It has the block until this run at least.
            None => part.step,
            Some(_) if root == number => part.step + 1,
            Some(issued) => {
                (goes[issued], goes[part.step]) = (true, true);
                part.step
            }
        };
        before.entry(at).or_default().push(Op::Broadcast { root: root as u32, slot: part.slot });
    }
    let mut ops = Vec::with_capacity(child.ops.len() + made.len());
    for (step, &op) in child.ops.iter().enumerate() {
        ops.extend(before.remove(&step).into_iter().flatten());
        if !goes[step] {
            ops.push(op);
        }
    }
    ops.extend(before.into_values().flatten());
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    for op in &mut ops {
        match op {
            Op::Fetch { transfer, .. } | Op::Store { transfer, .. } => {
                let fresh = numbers.len() as u32;
                numbers.insert(*transfer, fresh);
                *transfer = fresh;
            }
            // Awaited behind its issue.
            Op::Await { transfer } => *transfer = numbers.get(transfer).copied().unwrap_or(*transfer),
            _ => {}
        }
    }
    ChildPlan { ops, ..child.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use multigrain_program::Region;

    fn fetch(transfer: u32, slot: u32) -> Op {
        Op::Fetch { transfer, slot }
    }

    fn awaits(transfer: u32) -> Op {
        Op::Await { transfer }
    }

    /// The only argument of a call is the slot of its number.
    fn run(call: u32) -> Op {
        Op::Run { call, places: Places::Slots { first: call } }
    }

    /// Calls below `writes` write, the others read; between two of those nothing has changed.
    struct Calls {
        writes: u32,
        versions: fn(u32) -> u32,
        worth: bool,
    }

    impl Meaning for Calls {
        fn accesses(&self, call: u32) -> Vec<Access> {
            vec![if call < self.writes { Access::Write } else { Access::Read }]
        }
        fn version(&self, call: u32, _: &Arg) -> u32 {
            (self.versions)(call)
        }
        fn is_worth(&self, _: &Slot) -> bool {
            self.worth
        }
    }

    const READS: Calls = Calls { writes: 0, versions: |_| 0, worth: true };

    fn shared(root: u32, slot: u32) -> Op {
        Op::Broadcast { root, slot }
    }

    /// Each slot holds the element of array 0 with the given number.
    fn child(blocks: &[u64], ops: Vec<Op>) -> ChildPlan {
        let slot = |(i, &at): (usize, &u64)| Slot {
            offset_bytes: 4 * i as u64,
            bytes: 4,
            block: Arg { array: 0, region: Region::new(&[at], &[1]) },
        };
        let slots = blocks.iter().enumerate().map(slot).collect();
        ChildPlan { ops, slots, places: (0..blocks.len() as u32).collect(), ..ChildPlan::default() }
    }

    /// Fetches its blocks ahead, as many as the window, and uses one after the other.
    fn streaming(blocks: &[u64], window: usize) -> ChildPlan {
        let mut ops: Vec<Op> = (0..window as u32).map(|n| fetch(n, n)).collect();
        for n in 0..blocks.len() as u32 {
            ops.extend([awaits(n), run(n)]);
            let next = n + window as u32;
            if (next as usize) < blocks.len() {
                ops.push(fetch(next, next));
            }
        }
        child(blocks, ops)
    }

    fn steps(made: &Broadcasts) -> Vec<Vec<Op>> {
        made.children.iter().map(|child| child.ops.clone()).collect()
    }

    #[test]
    fn what_all_fetch_is_fetched_by_each_in_turn() {
        // Block 7 is the second child's alone.
        let plans = [streaming(&[1, 2, 3], 2), streaming(&[1, 7, 2, 3], 1)];
        let made = broadcasts(&plans, &READS).unwrap();
        assert_eq!(
            steps(&made),
            [
                vec![fetch(0, 0), awaits(0), shared(0, 0), run(0), fetch(1, 2), shared(1, 1), run(1), awaits(1)]
                    .into_iter()
                    .chain([shared(0, 2), run(2)])
                    .collect::<Vec<_>>(),
                vec![
                    shared(0, 0),
                    run(0),
                    fetch(0, 1),
                    awaits(0),
                    run(1),
                    fetch(1, 2),
                    awaits(1),
                    shared(1, 2),
                    run(2)
                ]
                .into_iter()
                .chain([shared(0, 3), run(3)])
                .collect(),
            ]
        );
        assert_eq!(made.count, 3);
        assert_eq!(made.spared, Traffic { bytes_down: 12, bytes_up: 0, bytes_across: 12, transfers: 3 });
        // Of three children two reads of three are spared.
        let three = [streaming(&[1, 2], 1), streaming(&[1, 2], 2), streaming(&[1, 2], 1)];
        let made = broadcasts(&three, &READS).unwrap();
        let roots = |child: &ChildPlan| -> Vec<u32> {
            let root = |op: &Op| if let Op::Broadcast { root, .. } = *op { Some(root) } else { None };
            child.ops.iter().filter_map(root).collect()
        };
        assert!(made.children.iter().all(|child| roots(child) == [0, 1]));
        assert_eq!((made.spared.bytes_down, made.spared.transfers), (16, 4));
        assert!(!made.children[2].ops.iter().any(|op| matches!(op, Op::Fetch { .. })));
    }

    #[test]
    fn an_order_that_is_not_common_is_broken_once() {
        let plans = [streaming(&[1, 2, 3], 1), streaming(&[2, 1, 3], 1)];
        let made = broadcasts(&plans, &READS).unwrap();
        assert_eq!(made.count, 2, "1 and 3, or 2 and 3");
        // As many times as all fetch it.
        let again = [streaming(&[1, 1, 1], 1), streaming(&[1, 1], 1)];
        assert_eq!(broadcasts(&again, &READS).unwrap().count, 2);
    }

    #[test]
    fn blocks_on_both_sides_of_a_barrier_are_not_one() {
        let before = child(&[1], vec![fetch(0, 0), awaits(0), run(0), Op::Barrier]);
        let behind = child(&[1], vec![Op::Barrier, fetch(0, 0), awaits(0), run(0)]);
        assert!(broadcasts(&[before.clone(), behind.clone()], &READS).is_none());
        let across = child(&[1], vec![fetch(0, 0), Op::Barrier, awaits(0), run(0)]);
        assert_eq!(broadcasts(&[across.clone(), behind.clone()], &READS).unwrap().count, 1, "the same content");
        for plan in [before, behind, across] {
            assert_eq!(broadcasts(&[plan.clone(), plan], &READS).unwrap().count, 1);
        }
    }

    #[test]
    fn nobody_waits_at_a_broadcast_for_who_waits_for_it() {
        let wait = |child| Op::Wait { child, signals: 1 };
        // The second child waits for what the first does behind the block, and so never comes.
        let tells = |at: usize| {
            let mut plan = streaming(&[1, 2], 1);
            plan.ops.insert(at, Op::Signal);
            plan
        };
        let waits = || {
            let mut plan = streaming(&[1, 2], 1);
            plan.ops.insert(0, wait(0));
            plan
        };
        // Steps: fetch, await, run, fetch, await, run.
        assert_eq!(broadcasts(&[tells(0), waits()], &READS).unwrap().count, 2);
        assert_eq!(broadcasts(&[tells(3), waits()], &READS).unwrap().count, 1, "the second block");
        assert!(broadcasts(&[tells(6), waits()], &READS).is_none());
        let made = broadcasts(&[tells(3), waits()], &READS).unwrap();
        assert_eq!(made.children[0].ops.iter().filter(|op| matches!(op, Op::Fetch { .. })).count(), 2);
    }

    #[test]
    fn who_has_a_block_hands_it_out() {
        let at = |call: u32, slot: u32| Op::Run { call, places: Places::Slots { first: slot } };
        let makes = |own: u64, other: u64| {
            let ops = vec![at(0, 0), Op::Store { transfer: 0, slot: 0 }, awaits(0), Op::Barrier];
            let [has, gets] = [vec![at(10, 0)], vec![fetch(1, 1), awaits(1), at(11, 1)]];
            let then = if own < other { [has, gets] } else { [gets, has] };
            child(&[own, other], ops.into_iter().chain(then.into_iter().flatten()).collect())
        };
        let calls = Calls { writes: 10, ..READS };
        let plans = [makes(1, 2), makes(2, 1)];
        let made = broadcasts(&plans, &calls).unwrap();
        let before = [at(0, 0), Op::Store { transfer: 0, slot: 0 }, awaits(0), Op::Barrier];
        let with = |rest: [Op; 4]| before.into_iter().chain(rest).collect::<Vec<Op>>();
        assert_eq!(
            steps(&made),
            [
                with([shared(0, 0), at(10, 0), shared(1, 1), at(11, 1)]),
                with([shared(0, 1), at(11, 1), shared(1, 0), at(10, 0)]),
            ]
        );
        assert_eq!(made.spared, Traffic { bytes_down: 8, bytes_up: 0, bytes_across: 8, transfers: 2 });
        // Call 11 finds something else than call 10: what one has is not what the other fetches.
        assert!(broadcasts(&plans, &Calls { versions: |call| call, ..calls }).is_none());
        // With nobody to fetch it there is nothing to be spared.
        let has = || child(&[1], vec![at(0, 0), Op::Barrier, at(10, 0)]);
        assert!(broadcasts(&[has(), has()], &calls).is_none());
    }

    #[test]
    fn what_is_no_broadcast_stays() {
        let plan = || streaming(&[1, 2], 1);
        assert!(broadcasts(&[plan()], &READS).is_none(), "nobody else");
        assert!(broadcasts(&[plan(), plan()], &Calls { worth: false, ..READS }).is_none(), "not worth it");
        assert!(broadcasts(&[plan(), streaming(&[3, 4], 1)], &READS).is_none(), "nothing in common");
        assert!(broadcasts(&[plan(), plan(), streaming(&[], 0)], &READS).is_none(), "not of all");
    }
}
