//! What is left of a program after an interrupted run. The facade's `docs/resume.md` tells the whole protocol.
//!
//! The root edge's calls are numbered in sequential order. A journal says which stores were begun and which are
//! durable. So every element of a kept file holds either the version that a durable store gave it, or, where nothing
//! was ever stored, its initial content, or, where a store was begun and is not durable, nothing of use. Durable
//! blocks never overlap: the beginning of a store ends the durability of what it overwrites.
//!
//! A call is needed when something it writes is a result whose final version is not durable, or is read by a needed
//! call and not durable in the version read. A needed call must find the past as it was: durable versions that are
//! later than it, and that it would read or overwrite, are given up, and made again by their own calls. What a needed
//! call reads of the initial content is put back where it was overwritten. Because results do not depend on the plan,
//! running just the needed calls then gives the very bytes that an undisturbed run gives.

use crate::dependence::{Dependence, Hazard, Predecessor, dependence, overlaps};
use crate::numbered::Numbered;
use crate::plan::SourceCall;
use crate::scope::Split;
use multigrain_program::{Arg, ArrayDecl, Region, Role};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// An event of the journal: a store of a block to the root memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    /// Number of the call that wrote the block, in the whole program.
    pub call: u32,
    /// Which of its arguments.
    pub argument: u32,
    /// Whether the block is durable; otherwise its store had been begun, and what was there before is lost.
    pub durable: bool,
}

/// What is left to do.
pub struct Left {
    /// The needed calls.
    pub(crate) split: Split,
    /// The calls that were split, of which those needed are a part.
    pub(crate) sources: Arc<[SourceCall]>,
    /// Their numbers in the whole program.
    pub(crate) numbers: Vec<u32>,
    /// Durable stores that are given up, as events that say so. The journal must have them before anything is written.
    pub given_up: Vec<Stored>,
    /// Blocks that must hold their initial content again before the plan is run.
    pub restore: Vec<Arg>,
}

impl Left {
    /// The numbers of the needed calls in the whole program, in sequential order.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Lets go of the calls, which may be many, once they are planned.
    pub fn forget_calls(&mut self) {
        self.split = self.split.with(Vec::new(), Vec::new());
    }
}

impl Numbered {
    /// What is left when every result is as it is to be.
    pub fn nothing_left(&self) -> Left {
        let split = self.split.with(Vec::new(), Vec::new());
        let sources = self.sources.clone();
        Left { split, sources, numbers: Vec::new(), given_up: Vec::new(), restore: Vec::new() }
    }

    /// What is left of these calls after a run whose journal has these events, in order. The files of all arrays that
    /// are written are as that run left them.
    pub fn left(&self, events: &[Stored]) -> Left {
        let mut survey = Survey::new(&self.split, events);
        survey.need_results();
        let restore = survey.lost_initial_content();
        let Survey { needed, given_up, .. } = survey;
        let numbers = (0..needed.len() as u32).filter(|&c| needed[c as usize]).collect();
        fn keep<T: Clone>(list: &[T], needed: &[bool]) -> Vec<T> {
            list.iter().zip(needed).filter(|(_, needed)| **needed).map(|(one, _)| one.clone()).collect()
        }
        let split = self.split.with(keep(&self.split.calls, &needed), keep(&self.split.class_of, &needed));
        Left { split, sources: self.sources.clone(), numbers, given_up, restore }
    }
}

/// Of a call with more predecessors than this none is looked at more closely: the time is quadratic.
const OVERWRITERS_MAX: usize = 4096;

/// What the files hold, and which calls are needed.
struct Survey<'a> {
    arrays: &'a [ArrayDecl],
    dependence: Dependence,
    overlaps: FxHashMap<u32, Vec<u32>>,
    /// For each durable block, the call that wrote it.
    durable: FxHashMap<u32, u32>,
    /// Blocks that were ever begun to be stored.
    begun: FxHashSet<u32>,
    given_up: Vec<Stored>,
    needed: Vec<bool>,
}

impl<'a> Survey<'a> {
    fn new(parts: &'a Split, events: &[Stored]) -> Survey<'a> {
        let arrays = &parts.arrays;
        let dependence = dependence(&parts.calls, &parts.tasks);
        let mut written = vec![false; arrays.len()];
        for used in dependence.uses.iter().flatten().filter(|u| u.access.writes()) {
            written[dependence.blocks[used.block as usize].array as usize] = true;
        }
        let mut survey = Survey {
            arrays,
            overlaps: overlaps(&dependence.blocks, &written),
            needed: vec![false; parts.calls.len()],
            dependence,
            durable: FxHashMap::default(),
            begun: FxHashSet::default(),
            given_up: Vec::new(),
        };
        for event in events {
            survey.replay(event);
        }
        survey
    }

    /// A block and all that overlap it.
    fn around(&self, block: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(block).chain(self.overlaps.get(&block).into_iter().flatten().copied())
    }

    fn array(&self, block: u32) -> usize {
        self.dependence.blocks[block as usize].array as usize
    }

    fn region(&self, block: u32) -> &Region {
        &self.dependence.blocks[block as usize].region
    }

    fn replay(&mut self, event: &Stored) {
        let used = self.dependence.uses.get(event.call as usize).and_then(|u| u.get(event.argument as usize));
        let Some(block) = used.filter(|u| u.access.writes()).map(|u| u.block) else { return };
        if event.durable {
            self.durable.insert(block, event.call);
        } else {
            self.begun.insert(block);
            let overwritten: Vec<u32> = self.around(block).collect();
            for other in overwritten {
                self.durable.remove(&other);
            }
        }
    }

    fn is_durable(&self, call: u32, block: u32) -> bool {
        self.durable.get(&block) == Some(&call)
    }

    /// Whether others have written, between a call and this predecessor, all that it reads of the predecessor's block. The
    /// order of a run keeps to such predecessors as well, which costs it nothing; what is needed would go on with them to the
    /// program's beginning.
    fn is_overwritten(&self, call: u32, predecessor: &Predecessor) -> bool {
        let all = &self.dependence.predecessors[call as usize];
        let Some(read) = self.region(predecessor.block).intersection(self.region(predecessor.mine)) else {
            return false;
        };
        if all.len() > OVERWRITERS_MAX {
            return false;
        }
        let is_later = |other: &&Predecessor| {
            other.hazard == Hazard::ReadAfterWrite && other.mine == predecessor.mine && other.call > predecessor.call
        };
        let mut pieces = vec![read];
        for other in all.iter().filter(is_later) {
            pieces = pieces.iter().flat_map(|piece| without(piece, self.region(other.block))).collect();
        }
        pieces.is_empty()
    }

    /// The last writer of each block of which not every element is written again later.
    fn last_writers(&self) -> FxHashMap<u32, u32> {
        let mut last: FxHashMap<u32, u32> = FxHashMap::default();
        for (call, uses) in self.dependence.uses.iter().enumerate() {
            for used in uses.iter().filter(|u| u.access.writes()) {
                last.insert(used.block, call as u32);
            }
        }
        let remains = |block: u32, call: u32| {
            let mut pieces = vec![*self.region(block)];
            for other in self.overlaps.get(&block).into_iter().flatten() {
                if last.get(other).is_some_and(|&later| later > call) {
                    pieces = pieces.iter().flat_map(|p| without(p, self.region(*other))).collect();
                }
            }
            !pieces.is_empty()
        };
        last.iter().filter(|&(&block, &call)| remains(block, call)).map(|(&block, &call)| (block, call)).collect()
    }

    /// Marks every call that is needed for the results.
    fn need_results(&mut self) {
        let results: Vec<u32> = self
            .last_writers()
            .into_iter()
            .filter(|&(block, call)| {
                let result = matches!(self.arrays[self.array(block)].role, Role::Output | Role::InOut);
                result && !self.is_durable(call, block)
            })
            .map(|(_, call)| call)
            .collect();
        let mut open: Vec<u32> = Vec::new();
        let need = |needed: &mut [bool], open: &mut Vec<u32>, call: u32| {
            if !std::mem::replace(&mut needed[call as usize], true) {
                open.push(call);
            }
        };
        results.into_iter().for_each(|call| need(&mut self.needed, &mut open, call));
        while let Some(call) = open.pop() {
            for p in &self.dependence.predecessors[call as usize] {
                if p.hazard == Hazard::ReadAfterWrite
                    && !self.is_durable(p.call, p.block)
                    && !self.is_overwritten(call, p)
                {
                    need(&mut self.needed, &mut open, p.call);
                }
            }
            // What is later than this call, where it reads or writes, is in its way.
            let later: Vec<(u32, u32)> = self.dependence.uses[call as usize]
                .iter()
                .flat_map(|used| self.around(used.block))
                .filter_map(|block| self.durable.get(&block).map(|&writer| (block, writer)))
                .filter(|&(_, writer)| writer >= call)
                .collect();
            for (block, writer) in later {
                if self.durable.remove(&block).is_some() {
                    let uses = &self.dependence.uses[writer as usize];
                    let argument = uses.iter().position(|u| u.block == block && u.access.writes());
                    let argument = argument.unwrap_or_default() as u32;
                    self.given_up.push(Stored { call: writer, argument, durable: false });
                    need(&mut self.needed, &mut open, writer);
                }
            }
        }
    }

    /// Blocks whose initial content a needed call reads though it may have been overwritten.
    fn lost_initial_content(&self) -> Vec<Arg> {
        let mut found: FxHashSet<Arg> = FxHashSet::default();
        for call in (0..self.needed.len()).filter(|&c| self.needed[c]) {
            let reads = self.dependence.uses[call].iter().filter(|u| u.access.reads());
            for used in reads {
                let sources = &self.dependence.predecessors[call];
                if sources.iter().any(|p| p.hazard == Hazard::ReadAfterWrite && p.block == used.block) {
                    continue;
                }
                for begun in self.around(used.block).filter(|b| self.begun.contains(b)) {
                    let mut pieces: Vec<Region> =
                        self.region(used.block).intersection(self.region(begun)).into_iter().collect();
                    for durable in self.around(used.block).filter(|b| self.durable.contains_key(b)) {
                        pieces = pieces.iter().flat_map(|p| without(p, self.region(durable))).collect();
                    }
                    let array = self.array(used.block) as u32;
                    found.extend(pieces.into_iter().map(|region| Arg { array, region }));
                }
            }
        }
        let mut restore: Vec<Arg> = found.into_iter().collect();
        restore.sort();
        restore
    }
}

/// The elements of `region` that are not in `hole`, as disjoint regions.
pub fn without(region: &Region, hole: &Region) -> Vec<Region> {
    let Some(cut) = region.intersection(hole) else { return vec![*region] };
    let (mut start, mut len) = (region.start().to_vec(), region.len().to_vec());
    let mut pieces = Vec::new();
    for d in 0..region.rank() {
        let mut piece = |from: u64, to: u64| {
            if from < to {
                let (mut start, mut len) = (start.clone(), len.clone());
                (start[d], len[d]) = (from, to - from);
                pieces.push(Region::new(&start, &len));
            }
        };
        piece(region.start()[d], cut.start()[d]);
        piece(cut.end(d), region.end(d));
        (start[d], len[d]) = (cut.start()[d], cut.len()[d]);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_around_a_hole_is_disjoint_and_complete() {
        let region = Region::new(&[1, 2, 0], &[4, 3, 5]);
        for hole in [
            Region::new(&[2, 3, 1], &[1, 1, 2]),
            Region::new(&[0, 0, 0], &[9, 9, 9]),
            Region::new(&[0, 0, 0], &[2, 9, 9]),
            Region::new(&[4, 4, 4], &[9, 9, 9]),
            Region::new(&[7, 0, 0], &[1, 1, 1]),
        ] {
            let pieces = without(&region, &hole);
            for i in 0..6 {
                for j in 0..6 {
                    for k in 0..6 {
                        let cell = Region::new(&[i, j, k], &[1, 1, 1]);
                        let times = pieces.iter().filter(|p| p.contains(&cell)).count();
                        let expected = region.contains(&cell) && !hole.contains(&cell);
                        assert_eq!(times, usize::from(expected), "{cell} of {region} without {hole}");
                    }
                }
            }
        }
    }
}
