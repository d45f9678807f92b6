//! Samples of what a journal says is written, so that it is not believed about a file that another one has replaced: one
//! with the same header, an older copy, or one that is newer than the journal.

use crate::blocks::{Blocks, block_of};
use crate::found::Found;
use crate::homes::Homes;
use crate::sides::Sides;
use multigrain_plan::Numbered;
use multigrain_program::Region;
use multigrain_store::{ArrayFile, Disk, StoreError};
use rustc_hash::FxHashMap;
use std::path::PathBuf;

/// Hash of the beginning of a block's first row, as the file has it.
pub(crate) fn sample(disk: &Disk, file: &ArrayFile, region: &Region) -> Result<u64, StoreError> {
    let first = region.start().iter().zip(file.shape()).fold(0, |at, (start, extent)| at * extent + start);
    disk.sample_of_row(file, first, region.len().last().copied().unwrap_or(0))
}

/// A file that does not hold what the journal of an interrupted run says was written to it last.
pub(crate) fn altered(
    found: &Found,
    numbered: &Numbered,
    sides: &Sides,
    homes: &Homes,
    disk: &Disk,
) -> Result<Option<PathBuf>, StoreError> {
    if found.complete {
        // What was made just now is of arrays that are not needed any more.
        for (array, file) in homes.kept().filter(|(_, file)| file.is_resumed() || !file.is_writable()) {
            let held = found.files.iter().rfind(|held| held.0 == array as u64);
            if let Some(held) = held
                && disk.sample_of(file)? != held.1
            {
                return Ok(Some(file.path().to_owned()));
            }
        }
        return Ok(None);
    }
    let arrays = numbered.arrays().len();
    let lies = |call, argument| {
        block_of(numbered.calls(), call, argument).map(|block| sides.lies(call, argument, &block, arrays))
    };
    let mut sampled = Blocks::new(found.samples.iter().filter_map(|s| lies(s.call, s.argument)));
    let mut hashes = FxHashMap::default();
    let mut samples = found.samples.iter().peekable();
    for at in 0..=found.events.len() {
        while let Some(sample) = samples.next_if(|sample| sample.events <= at) {
            if let Some(number) = lies(sample.call, sample.argument).and_then(|block| sampled.number(&block)) {
                sampled.set(number, true);
                hashes.insert(number, sample.hash);
            }
        }
        // What is about to be overwritten need not be what it was.
        if let Some(event) = found.events.get(at).filter(|event| !event.durable)
            && let Some(block) = lies(event.call, event.argument)
        {
            sampled.marked_around(&block).into_iter().for_each(|other| sampled.set(other, false));
        }
    }
    for (number, hash) in hashes {
        let block = sampled.block(number);
        if sampled.is_marked(number)
            && let Some(file) = homes.file_of(block.array, arrays)
            && sample(disk, file, &block.region)? != hash
        {
            return Ok(Some(file.path().to_owned()));
        }
    }
    Ok(None)
}
