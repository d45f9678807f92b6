//! Which of an array's two files each call reads and which it writes, so that nothing that is durable is overwritten.
//!
//! An array that a run on a disk writes more than once (the passes of a transform, an update in place) lies in two files, as
//! pages do in shadow paging (Lorie, "Physical integrity in a large segmented database", ACM TODS 2(1), 1977): a version of
//! a block is read in one file, and the next one goes into the other. What a call reads is whole when the call is
//! interrupted, so it need not be made again.
//!
//! ```text
//!                first file, the result's          second file, its twin
//! planes                                           written
//! columns        written                           read
//! ```
//!
//! The sides follow from the numbered calls alone, so a run that goes on with the rest of them agrees with the one that was
//! interrupted. Every version lies on the other side of all that it overwrites, and final versions in the first file.
//! Where no such sides exist (a block whose parts were updated unequally often), an array stays in one file.

use crate::blocks::{Blocks, block_of, written};
use multigrain_engine as engine;
use multigrain_plan::{ChildPlan, Left, Numbered, Op, Plan, Stored, without};
use multigrain_program::{Arg, ArrayDecl, Call, DynTask, Region, Role};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Beyond this many pieces of blocks that are looked at for one array, it stays in one file.
const PIECES_MAX: u64 = 1 << 24;

/// Bits of an argument.
const READS: u8 = 1;
const WRITES: u8 = 2;

/// The sides of all calls.
#[derive(Default)]
pub(crate) struct Sides {
    /// Arrays that lie in two files, and whether their initial content is in the second.
    twins: FxHashMap<u32, bool>,
    /// For each call, where its arguments begin in `bits`; one more at the end.
    first: Vec<u32>,
    /// For each argument, whether the second file is read and written.
    bits: Vec<u8>,
}

impl Sides {
    /// The sides of calls of which these arrays, where that is possible, are to lie in two files.
    pub(crate) fn of(arrays: &[ArrayDecl], tasks: &[Arc<dyn DynTask>], calls: &[Call], wanted: &[usize]) -> Sides {
        let mut sides = Sides::default();
        if wanted.is_empty() {
            return sides;
        }
        sides.first.push(0);
        for call in calls {
            sides.bits.extend(call.args.iter().map(|_| 0));
            sides.first.push(sides.bits.len() as u32);
        }
        for &array in wanted {
            let mut versions = Versions::new(array as u32, tasks, calls);
            let Some(marks) = versions.all(&sides.first, tasks, calls) else { continue };
            let Some(last) = versions.last(&arrays[array]) else { continue };
            // The final versions are those of the first file.
            let mut set = |at: u32, bit: u8, parity: bool| {
                if parity != last {
                    sides.bits[at as usize] |= bit;
                }
            };
            marks.into_iter().for_each(|(at, bit, parity)| set(at, bit, parity));
            sides.twins.insert(array as u32, last);
        }
        sides
    }

    /// The arrays that lie in two files.
    pub(crate) fn arrays(&self) -> Vec<usize> {
        let mut arrays: Vec<usize> = self.twins.keys().map(|&array| array as usize).collect();
        arrays.sort_unstable();
        arrays
    }

    /// An array stays in one file after all.
    pub(crate) fn forget(&mut self, array: usize) {
        self.twins.remove(&(array as u32));
    }

    /// Whether an array's initial content lies in its second file.
    pub(crate) fn initial_in_second(&self, array: usize) -> bool {
        self.twins.get(&(array as u32)).copied().unwrap_or(false)
    }

    fn has(&self, call: u32, argument: u32, bit: u8) -> bool {
        let at = self.first.get(call as usize).map(|first| first + argument);
        at.and_then(|at| self.bits.get(at as usize)).is_some_and(|bits| bits & bit != 0)
    }

    /// The block that a call writes, with a number for the file in which it lies: that of the array, or of as many arrays
    /// later for a second file.
    pub(crate) fn lies(&self, call: u32, argument: u32, block: &Arg, arrays: usize) -> Arg {
        let second = self.twins.contains_key(&block.array) && self.has(call, argument, WRITES);
        Arg { array: block.array + if second { arrays as u32 } else { 0 }, ..*block }
    }

    /// What a journal says, as if there were one file of each array: the beginning of a store ends what lies in the same
    /// file only, and in a first file a version counts although an earlier one is kept beside it.
    pub(crate) fn what_counts(&self, events: &[Stored], arrays: usize, calls: &[Call]) -> Vec<Stored> {
        if self.twins.is_empty() {
            return events.to_vec();
        }
        let block = |event: &Stored| {
            let block = calls.get(event.call as usize)?.args.get(event.argument as usize)?;
            Some(self.lies(event.call, event.argument, block, arrays))
        };
        let mut durable = Blocks::new(events.iter().filter_map(block));
        let mut by: FxHashMap<u32, Stored> = FxHashMap::default();
        let mut begun: FxHashSet<Stored> = FxHashSet::default();
        for event in events {
            let Some(block) = block(event) else { continue };
            let Some(number) = durable.number(&block) else { continue };
            if event.durable {
                durable.set(number, true);
                by.insert(number, *event);
                continue;
            }
            for other in durable.marked_around(&block) {
                durable.set(other, false);
                by.remove(&other);
            }
            // Initial content is lost where it lies.
            let array = block.array % arrays as u32;
            if (block.array != array) == self.initial_in_second(array as usize) {
                begun.insert(*event);
            }
        }
        let mut counts: Vec<Stored> = begun.into_iter().collect();
        counts.sort_unstable_by_key(|event| (event.call, event.argument));
        let from = counts.len();
        counts.extend(by.into_values());
        counts[from..].sort_unstable_by_key(|event| (event.call, event.argument));
        counts
    }
}

impl engine::Sides for Sides {
    fn reads(&self, call: u32, argument: u32) -> usize {
        usize::from(self.has(call, argument, READS))
    }

    fn writes(&self, call: u32, argument: u32) -> usize {
        usize::from(self.has(call, argument, WRITES))
    }
}

/// What is left of calls, of which a journal says this.
pub(crate) fn left(numbered: &Numbered, sides: &Sides, events: &[Stored]) -> Left {
    let (arrays, calls) = (numbered.arrays().len(), numbered.calls());
    let counts = sides.what_counts(events, arrays, calls);
    let mut left = numbered.left(&counts);
    // Initial content is put back in one of the files, where a version may be recorded: the survey knew it no more, since a later one
    // was beside it, but the journal does.
    let mut restored = Blocks::new(left.restore.iter().copied());
    (0..restored.len() as u32).for_each(|number| restored.set(number, true));
    let is_overwritten = |event: &&Stored| {
        let Some(block) = block_of(calls, event.call, event.argument) else { return false };
        let is_second = sides.lies(event.call, event.argument, &block, arrays).array != block.array;
        is_second == sides.initial_in_second(block.array as usize) && !restored.marked_around(&block).is_empty()
    };
    let overwritten = counts.iter().filter(|event| event.durable).filter(is_overwritten);
    left.given_up.extend(overwritten.map(|event| Stored { durable: false, ..*event }));
    left
}

/// The versions of one array's elements: how often each was written, odd or even.
struct Versions {
    array: u32,
    /// Blocks that were written.
    written: Blocks,
    /// For each, the last call that wrote it, and the parity of that version.
    by: Vec<(u32, bool)>,
    pieces: u64,
}

impl Versions {
    fn new(array: u32, tasks: &[Arc<dyn DynTask>], calls: &[Call]) -> Versions {
        let blocks = || written(tasks, calls).filter(|block| block.array == array);
        let written = Blocks::new(blocks());
        let by = vec![(0, false); written.len()];
        Versions { array, written, by, pieces: 0 }
    }

    /// For each argument that reads or writes the array, which bit belongs to it, and the parity of that version. `None`
    /// where a call meets versions of both parities.
    fn all(&mut self, first: &[u32], tasks: &[Arc<dyn DynTask>], calls: &[Call]) -> Option<Vec<(u32, u8, bool)>> {
        let mut marks = Vec::new();
        for (number, call) in calls.iter().enumerate() {
            let params = tasks[call.task as usize].params();
            let uses = || call.args.iter().zip(params).enumerate().filter(|(_, (arg, _))| arg.array == self.array);
            let mut writes = Vec::new();
            for (argument, (arg, param)) in uses() {
                let at = first[number] + argument as u32;
                writes.push((at, *arg, param.access));
            }
            for (at, arg, access) in &writes {
                if access.reads() {
                    marks.push((*at, READS, self.of(arg, true)?));
                }
            }
            for (at, arg, access) in &writes {
                if access.writes() {
                    let parity = !self.of(arg, access.reads())?;
                    marks.push((*at, WRITES, parity));
                    let block = self.written.number(arg)?;
                    self.written.set(block, true);
                    self.by[block as usize] = (number as u32, parity);
                }
            }
        }
        Some(marks)
    }

    /// The parity of the version that all elements of a block have; initial content, where it is `read`, is the version
    /// before all. `None` where they have several.
    fn of(&mut self, block: &Arg, read: bool) -> Option<bool> {
        let mut parity = None;
        let left = self.without_written(block, |_| true, |version, _| *parity.get_or_insert(version) == version)?;
        if read && !left.is_empty() && *parity.get_or_insert(false) {
            return None;
        }
        Some(parity.unwrap_or(false))
    }

    /// Goes through the blocks that were written around a block, the latest first, and takes each from what is left of the
    /// block. `found` is told of the parity of each that was there, and the elements; it says whether to go on.
    fn without_written(
        &mut self,
        block: &Arg,
        counts: impl Fn(u32) -> bool,
        mut found: impl FnMut(bool, u64) -> bool,
    ) -> Option<Vec<Region>> {
        let mut around = self.written.marked_around(block);
        around.sort_unstable_by_key(|&other| std::cmp::Reverse(self.by[other as usize].0));
        let mut pieces = vec![block.region];
        for other in around {
            let (call, parity) = self.by[other as usize];
            if pieces.is_empty() || !counts(call) {
                break;
            }
            let region = self.written.block(other).region;
            self.pieces += pieces.len() as u64;
            if self.pieces > PIECES_MAX {
                return None;
            }
            let elements: u64 = pieces.iter().filter_map(|p| p.intersection(&region)).map(|cut| cut.elements()).sum();
            if elements == 0 {
                continue;
            }
            if !found(parity, elements) {
                return None;
            }
            pieces = pieces.iter().flat_map(|piece| without(piece, &region)).collect();
        }
        Some(pieces)
    }

    /// The parity of the final versions. `None` where they have several, and somebody will read them.
    fn last(&mut self, array: &ArrayDecl) -> Option<bool> {
        if array.role == Role::Temporary {
            return Some(false);
        }
        let mut last = None;
        let mut elements = 0;
        for number in 0..self.written.len() as u32 {
            let (block, (call, parity)) = (*self.written.block(number), self.by[number as usize]);
            let left = self.without_written(&block, |other| other > call, |_, _| true)?;
            let remains: u64 = left.iter().map(Region::elements).sum();
            if remains > 0 && *last.get_or_insert(parity) != parity {
                return None;
            }
            elements += remains;
        }
        // What is never written is final from the beginning.
        let rest = elements < array.shape.elements();
        if rest && *last.get_or_insert(false) {
            return None;
        }
        Some(last.unwrap_or(false))
    }
}

/// The blocks that a plan stores in the root memory, as often as it does.
pub(crate) fn stored_blocks(plan: &Plan) -> Vec<Arg> {
    let stores = |op: &Op| if let Op::Store { slot, .. } = *op { Some(slot) } else { None };
    let of = |child: &ChildPlan| {
        child.ops.iter().filter_map(stores).map(|slot| child.slots[slot as usize].block).collect::<Vec<_>>()
    };
    plan.children.iter().flat_map(of).collect()
}

/// The arrays in which blocks overlap.
pub(crate) fn overlapping(blocks: &[Arg]) -> Vec<usize> {
    let mut before = Blocks::new(blocks.iter().copied());
    let mut arrays = BTreeSet::new();
    for block in blocks {
        let array = block.array as usize;
        if arrays.contains(&array) {
            continue;
        }
        match before.number(block) {
            Some(number) if before.marked_around(block).is_empty() => before.set(number, true),
            _ => _ = arrays.insert(array),
        }
    }
    arrays.into_iter().collect()
}

#[cfg(test)]
mod tests;
