//! Journals of a run that several ranks execute together: each keeps one of its own, beside the run's.
//!
//! ```text
//! c.npy.journal      of the run:    ready  ranks(run, n)                     [fold  events  ranks(0, 0)]  ...  complete
//! c.npy.journal.0    of each rank:         begin done sample ...
//! c.npy.journal.1                          begin done sample ...
//! ```
//! The run's says which ranks' count: those of the number in its last *ranks*. Their events have no order between ranks, and need none: calls
//! that touch the same bytes, of which one writes, are executed in the order of their numbers, and each at most once. So they are sorted
//! by these. Who goes on, with whatever ranks or alone, first writes them so into the run's journal: what stands between *fold* and the
//! next *ranks* takes the place of the ranks' journals once that is there, and is nothing before.
//! A part is executed by all ranks: it is done when each says so.

use crate::error::Error;
use crate::found::{BEGIN, DONE, FOLD, Found, OfRanks, RANKS, SAMPLE};
use crate::identity::Text;
use multigrain_store::{Disk, Journal, Record};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// The journal of a rank, beside that of the run.
pub(crate) fn path_of(journal: &Path, rank: usize) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(format!(".{rank}"));
    PathBuf::from(name)
}

/// So many ranks may have had no journal yet when others had one.
const GAP: usize = 16;

/// The ranks' journals that lie beside a run's.
fn beside(journal: &Path) -> Vec<PathBuf> {
    let (mut found, mut missing) = (Vec::new(), 0);
    for rank in 0.. {
        let path = path_of(journal, rank);
        missing = if path.exists() { 0 } else { missing + 1 };
        match missing {
            0 => found.push(path),
            GAP.. => break,
            _ => {}
        }
    }
    found
}

/// Whether a rank is at work on a run: it holds the lock of its journal.
pub(crate) fn busy(disk: &Disk, journal: &Path) -> Option<PathBuf> {
    beside(journal).into_iter().find(|path| disk.is_locked(path))
}

/// Removes ranks' journals: theirs is in the run's, or counts no more.
pub(crate) fn remove(disk: &Disk, journal: &Path) {
    let found = beside(journal);
    found.iter().for_each(|path| Journal::remove_at(disk, path));
    // What was being made of one is in nobody's way, and nobody's.
    Journal::remove_new(disk, journal);
    (0..found.len() + GAP).for_each(|rank| Journal::remove_new(disk, &path_of(journal, rank)));
}

/// Adds what the ranks' journals say, where they count.
pub(crate) fn add(disk: &Disk, journal: &Path, found: &mut Found) -> Result<(), Error> {
    let Some(of) = found.of_ranks else { return Ok(()) };
    let mut records = Vec::new();
    for rank in 0..of.count as usize {
        let path = path_of(journal, rank);
        let text = Journal::read(disk, &path, |record| records.push(record)).map_err(Error::File)?;
        let is_its =
            text.is_some_and(|text| matches!(serde_json::from_str(&text), Ok(Text::Rank(run)) if run == of.run));
        if !is_its {
            found.missing = Some(path);
            return Ok(());
        }
    }
    found.merged = merged(records, of);
    found.merged.clone().into_iter().for_each(|record| found.add(record));
    Ok(())
}

/// The records of all ranks, in the order in which calls are executed one after the other.
fn merged(mut records: Vec<Record>, of: OfRanks) -> Vec<Record> {
    let about = |record: &Record| match record.kind {
        SAMPLE => (record.a as u32, (record.a >> 32) as u32),
        _ => (record.a as u32, record.b as u32),
    };
    let order = |record: &Record| [BEGIN, DONE, SAMPLE].iter().position(|&kind| kind == record.kind).unwrap_or(3);
    records.retain(|record| order(record) < 3);
    records.sort_by_key(|record| (about(record), order(record)));
    if of.in_parts {
        let mut times: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        records
            .iter()
            .filter(|record| record.kind == DONE)
            .for_each(|done| *times.entry(about(done)).or_default() += 1);
        records
            .retain(|record| record.kind == BEGIN || times.get(&about(record)).is_some_and(|&done| done >= of.count));
    }
    records
}

/// What a run that goes on writes into the run's journal, where ranks have kept theirs beside it.
pub(crate) fn folded(records: &[Record]) -> Vec<Record> {
    let mark = |kind| Record { kind, a: 0, b: 0 };
    [&[mark(FOLD)], records, &[mark(RANKS)]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, call: u64) -> Record {
        Record { kind, a: call, b: 0 }
    }

    #[test]
    fn a_later_call_ends_what_an_earlier_one_has_stored_whoever_tells_first() {
        // One rank has stored block 1 anew before the other came to record what it had stored there.
        let of = OfRanks { run: 7, count: 2, in_parts: false };
        let ranks = [record(BEGIN, 5), record(BEGIN, 2), record(SAMPLE, 2), record(DONE, 2)];
        let kinds: Vec<_> = merged(ranks.to_vec(), of).iter().map(|r| (r.kind, r.a)).collect();
        assert_eq!(kinds, [(BEGIN, 2), (DONE, 2), (SAMPLE, 2), (BEGIN, 5)]);
    }

    #[test]
    fn a_part_is_done_when_all_say_so() {
        let of = OfRanks { run: 7, count: 2, in_parts: true };
        let ranks =
            [record(BEGIN, 1), record(DONE, 1), record(BEGIN, 2), record(DONE, 2), record(SAMPLE, 2), record(DONE, 1)];
        let kinds: Vec<_> = merged(ranks.to_vec(), of).iter().map(|r| (r.kind, r.a)).collect();
        assert_eq!(kinds, [(BEGIN, 1), (DONE, 1), (DONE, 1), (BEGIN, 2)]);
    }

    #[test]
    fn what_was_folded_in_part_is_nothing() {
        let mut found = Found::default();
        let [run, count] = OfRanks { run: 7, count: 2, in_parts: false }.written();
        found.add(record(DONE, 0));
        found.add(Record { kind: RANKS, a: run, b: count });
        let torn = folded(&[record(DONE, 1), record(DONE, 2)]);
        torn[..2].iter().for_each(|record| found.add(*record));
        found.end();
        assert_eq!(found.of_ranks, OfRanks::read(run, count));
        assert_eq!(found.events.len(), 1, "{:?}", found.events);
        torn.iter().for_each(|record| found.add(*record));
        found.end();
        assert_eq!((found.of_ranks, found.events.len()), (None, 3));
    }
}
