//! When workers could have run and others did, and who that was.

use crate::file::Trace;
use crate::record::{Kind, NO_SUBJECT, Record, Taken};

/// An interval in which a worker could have run and others did, all of the time or, where only sums are known, some of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aside {
    /// First tick.
    pub start: u64,
    /// Last tick.
    pub end: u64,
    /// So many of them.
    pub ticks: u64,
    /// Who ran, an index into [`Observed::others`](crate::Observed), if that is known.
    pub by: Option<u32>,
}

impl Aside {
    /// The ticks of it between two moments.
    fn between(&self, from: u64, to: u64) -> u64 {
        let (inside, all) = (self.end.min(to).saturating_sub(self.start.max(from)), self.end - self.start);
        if all == 0 { 0 } else { (u128::from(self.ticks) * u128::from(inside) / u128::from(all)) as u64 }
    }
}

/// For each worker, in order, when it could have run and others did.
pub(super) fn of(trace: &Trace) -> Vec<Vec<Aside>> {
    let (first, last) = (trace.start(), trace.stop());
    let mut lanes: Vec<Vec<Aside>> = vec![Vec::new(); trace.workers()];
    let rate = trace.ticks_per_second();
    for record in &trace.records {
        let (start, end) = (record.start.clamp(first, last), record.end.clamp(first, last));
        let lane = &mut lanes[record.worker as usize];
        if record.kind == Kind::Held {
            held(lane, start, end, (f64::from(record.subject) * rate / 1e6) as u64, first);
            continue;
        }
        // They do not overlap, as whoever writes them knows.
        let start = lane.last().map_or(start, |before| start.max(before.end));
        if start >= end {
            continue;
        }
        let by = Some(record.subject).filter(|subject| *subject != NO_SUBJECT);
        let is_idle = |other: u32| trace.end.observed.others.get(other as usize).is_some_and(crate::Other::is_idle);
        // Where nobody had the processor before, it was only as slow to begin as processors are.
        if is_preempted(record) || record.kind == Kind::Ready && !by.is_some_and(is_idle) {
            lane.push(Aside { start, end, ticks: end - start, by });
        }
    }
    lanes
}

/// Adds sums of an interval. A time without a processor is told when it has ended, so it may be longer than the interval, and
/// reaches back then, also beyond what was told before.
fn held(lane: &mut Vec<Aside>, start: u64, end: u64, mut ticks: u64, first: u64) {
    let mut start = start.min(end.saturating_sub(ticks)).max(first);
    while let Some(before) = lane.pop_if(|before| before.end > start) {
        ticks = ticks.saturating_add(before.ticks);
        start = before.start.min(end.saturating_sub(ticks)).max(first);
    }
    if start < end {
        lane.push(Aside { start, end, ticks: ticks.min(end - start), by: None });
    }
}

fn is_preempted(record: &Record) -> bool {
    record.kind == Kind::Away && Taken::of(record.detail) == Taken::Preempted
}

/// The times in which others were put before workers: the first record of each, its start and its end. Records that touch are
/// one time, in which one after another had the processor.
pub(super) fn times(trace: &Trace) -> Vec<(usize, u64, u64)> {
    let mut times: Vec<(usize, u64, u64)> = Vec::new();
    let mut last: Vec<Option<usize>> = vec![None; trace.workers()];
    for (index, record) in trace.records.iter().enumerate().filter(|(_, record)| is_preempted(record)) {
        let last = &mut last[record.worker as usize];
        match last.filter(|last| times[*last].2 == record.start) {
            Some(last) => times[last].2 = record.end,
            None => {
                *last = Some(times.len());
                times.push((index, record.start, record.end));
            }
        }
    }
    times
}

/// The longest of a worker's times, of which some may touch.
pub(super) fn longest_of(lane: &[Aside]) -> u64 {
    let touching = lane.chunk_by(|before, next| before.end == next.start);
    touching.map(|parts| parts.iter().map(|part| part.ticks).sum()).max().unwrap_or(0)
}

/// The ticks of some intervals between two moments, and who had most of them.
pub(super) fn longest<'a>(of: impl Iterator<Item = &'a Aside>, from: u64, to: u64) -> (u64, Option<u32>) {
    let by = shares(of, from, to);
    (by.iter().map(|(_, ticks)| ticks).sum(), by.first().and_then(|(by, _)| *by))
}

/// Who had how many of the ticks between two moments, longest first.
pub(super) fn shares<'a>(of: impl Iterator<Item = &'a Aside>, from: u64, to: u64) -> Vec<(Option<u32>, u64)> {
    let mut sums: std::collections::BTreeMap<Option<u32>, u64> = std::collections::BTreeMap::new();
    for aside in of {
        *sums.entry(aside.by).or_default() += aside.between(from, to);
    }
    let mut shares: Vec<_> = sums.into_iter().filter(|(_, ticks)| *ticks > 0).collect();
    shares.sort_by_key(|(by, ticks)| (u64::MAX - ticks, *by));
    shares
}
