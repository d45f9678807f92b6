//! Pass "dependence": which calls must follow which, found from the regions they read and write.

use multigrain_program::{Access, Arg, Call, DynTask, Region};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Why one call must follow another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// It reads what the other wrote.
    ReadAfterWrite,
    /// It overwrites what the other reads.
    WriteAfterRead,
    /// It overwrites what the other wrote.
    WriteAfterWrite,
}

/// An earlier call that a call must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// The earlier call.
    pub call: u32,
    /// Its block.
    pub block: u32,
    /// The block of the later call that overlaps it.
    pub mine: u32,
    /// Why.
    pub hazard: Hazard,
}

/// One argument of a call: a numbered block and what is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Number of the block.
    pub block: u32,
    /// What the call does with it.
    pub access: Access,
}

/// What the pass finds.
#[derive(Clone, Debug, Default)]
pub struct Dependence {
    /// The distinct blocks.
    pub blocks: Vec<Arg>,
    /// For each call, its blocks in the order of its parameters.
    pub uses: Vec<SmallVec<[Use; 3]>>,
    /// For each call, earlier calls it must follow. Calls implied by others may be missing.
    pub predecessors: Vec<SmallVec<[Predecessor; 2]>>,
}

/// Finds the dependences among calls that are to mean what they mean one after the other.
pub fn dependence(calls: &[Call], tasks: &[Arc<dyn DynTask>]) -> Dependence {
    let mut numbers: FxHashMap<Arg, u32> = FxHashMap::default();
    let mut result = Dependence::default();
    let mut written_arrays: Vec<bool> = Vec::new();
    result.uses.reserve(calls.len());
    for call in calls {
        let params = tasks[call.task as usize].params();
        let mut uses = SmallVec::new();
        for (arg, param) in call.args.iter().zip(params) {
            let block = *numbers.entry(*arg).or_insert_with(|| {
                result.blocks.push(*arg);
                result.blocks.len() as u32 - 1
            });
            if written_arrays.len() <= arg.array as usize {
                written_arrays.resize(arg.array as usize + 1, false);
            }
            written_arrays[arg.array as usize] |= param.access.writes();
            uses.push(Use { block, access: param.access });
        }
        result.uses.push(uses);
    }
    let overlaps = overlaps(&result.blocks, &written_arrays);

    let mut last_writer: Vec<Option<u32>> = vec![None; result.blocks.len()];
    let mut readers: Vec<Readers> = vec![Readers::default(); result.blocks.len()];
    // For a block that is written and one that overlaps it: how many readers of the latter the last writer of the former
    // has followed already. Who writes next follows that writer, and with it them. Without this, a block that is read in
    // every step of a program and only ever overwritten in parts would collect readers without end.
    let mut followed: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    result.predecessors.reserve(calls.len());
    for (number, uses) in result.uses.iter().enumerate() {
        let number = number as u32;
        let mut predecessors: SmallVec<[Predecessor; 2]> = SmallVec::new();
        let mut add = |call, block, mine, hazard| {
            if call != number {
                predecessors.push(Predecessor { call, block, mine, hazard });
            }
        };
        for used in uses {
            let array = result.blocks[used.block as usize].array as usize;
            if !written_arrays[array] {
                continue;
            }
            let mine = used.block;
            let others = overlaps.get(&mine).map_or(&[][..], |o| o);
            for &other in std::iter::once(&mine).chain(others) {
                let o = other as usize;
                if let Some(writer) = last_writer[o] {
                    if used.access.reads() {
                        add(writer, other, mine, Hazard::ReadAfterWrite);
                    } else {
                        add(writer, other, mine, Hazard::WriteAfterWrite);
                    }
                }
                if used.access.writes() {
                    let all = &readers[o];
                    if all.end() > 0 {
                        let seen = followed.entry((mine, other)).or_default();
                        for &reader in all.after(*seen) {
                            add(reader, other, mine, Hazard::WriteAfterRead);
                        }
                        *seen = all.end();
                    }
                }
            }
        }
        for used in uses {
            let mine = used.block as usize;
            if !written_arrays[result.blocks[mine].array as usize] {
                continue;
            }
            if used.access.writes() {
                // What this block covers wholly is superseded: later calls depend on this one instead.
                let region = result.blocks[mine].region;
                for &other in overlaps.get(&used.block).map_or(&[][..], |o| o) {
                    if region.contains(&result.blocks[other as usize].region) {
                        last_writer[other as usize] = None;
                        readers[other as usize].clear();
                    }
                }
                last_writer[mine] = Some(number);
                readers[mine].clear();
            } else {
                readers[mine].push(number);
            }
        }
        result.predecessors.push(predecessors);
    }
    result
}

/// The readers of a block since it was last written as a whole, numbered from the program's beginning.
#[derive(Clone, Default)]
struct Readers {
    calls: SmallVec<[u32; 2]>,
    /// How many there were that are forgotten.
    forgotten: usize,
}

impl Readers {
    /// The number of the next one.
    fn end(&self) -> usize {
        self.forgotten + self.calls.len()
    }

    /// Those from a number on.
    fn after(&self, number: usize) -> &[u32] {
        &self.calls[number.saturating_sub(self.forgotten).min(self.calls.len())..]
    }

    fn clear(&mut self) {
        self.forgotten = self.end();
        self.calls.clear();
    }

    fn push(&mut self, call: u32) {
        self.calls.push(call);
    }
}

/// For each block of an array that is written at all, the other blocks that overlap it.
pub(crate) fn overlaps(blocks: &[Arg], written_arrays: &[bool]) -> FxHashMap<u32, Vec<u32>> {
    let mut sorted: Vec<u32> =
        (0..blocks.len() as u32).filter(|&b| written_arrays[blocks[b as usize].array as usize]).collect();
    let block = |b: u32| &blocks[b as usize];
    sorted.sort_by_key(|&b| block(b).array);
    let mut found: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for of_array in sorted.chunk_by_mut(|&a, &b| block(a).array == block(b).array) {
        let dim = narrowest(of_array.iter().map(|&b| &block(b).region));
        of_array.sort_by_key(|&b| block(b).region.start()[dim]);
        for (i, &b) in of_array.iter().enumerate() {
            let near = |&&o: &&u32| block(o).region.start()[dim] < block(b).region.end(dim);
            for &o in of_array[i + 1..].iter().take_while(near) {
                if block(b).region.intersects(&block(o).region) {
                    found.entry(b).or_default().push(o);
                    found.entry(o).or_default().push(b);
                }
            }
        }
    }
    found
}

/// The dimension along which regions are swept: that in which fewest of them meet at a place, on average.
fn narrowest<'r>(regions: impl Iterator<Item = &'r Region> + Clone) -> usize {
    let rank = regions.clone().next().map_or(1, |region| region.start().len());
    let meet = |&dim: &usize| {
        let long: f64 = regions.clone().map(|region| region.len()[dim] as f64).sum();
        let first = regions.clone().map(|region| region.start()[dim]).min().unwrap_or(0);
        let end = regions.clone().map(|region| region.end(dim)).max().unwrap_or(0);
        long / (end - first).max(1) as f64
    };
    (0..rank).min_by(|a, b| meet(a).total_cmp(&meet(b))).unwrap_or(0)
}
