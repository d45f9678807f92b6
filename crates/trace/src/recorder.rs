//! What a worker holds: an interval goes in when it ends.
//!
//! Intervals that follow one another share a tick: every recording method returns the end that it read, to be used
//! as the start of the next interval, so an interval costs one read of the clock.

use crate::clock::{Clock, Tick};
use crate::record::{Kind, NO_INDEX, Record};
use crate::totals::Totals;

/// How much is kept of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing; the clock is not read.
    #[default]
    Off,
    /// Sums only: enough for the breakdown, in a few hundred bytes a worker.
    Totals,
    /// Sums and every record, 32 bytes each.
    Full,
}

/// Records in one chunk: 512 KiB, so that a chunk is far larger than what the allocator does for it, and small
/// beside any memory budget.
const CHUNK_RECORDS: usize = 16 * 1024;

/// The events of one worker. Owned by its thread: no locks, no sharing.
#[derive(Debug)]
pub struct Recorder {
    mode: Mode,
    clock: Clock,
    worker: u32,
    totals: Totals,
    /// The chunk being filled; its capacity is never exceeded.
    current: Vec<Record>,
    full: Vec<Vec<Record>>,
}

impl Recorder {
    /// A recorder for `worker` on a machine with `edges` edges. In [`Mode::Full`] room for 16384 records is taken
    /// at once, and again whenever it is used up.
    pub fn new(mode: Mode, worker: u32, edges: usize) -> Recorder {
        let clock = match mode {
            Mode::Off => Clock { counter: false, ticks_per_second: 1e9 },
            Mode::Totals | Mode::Full => Clock::get(),
        };
        let current = if mode == Mode::Full { Vec::with_capacity(CHUNK_RECORDS) } else { Vec::new() };
        Recorder { mode, clock, worker, totals: Totals::new(edges), current, full: Vec::new() }
    }

    /// A recorder that keeps nothing.
    pub fn off() -> Recorder {
        Recorder::new(Mode::Off, 0, 0)
    }

    /// How much this recorder keeps.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The worker whose time this is.
    pub fn worker(&self) -> u32 {
        self.worker
    }

    /// The present moment, to be passed to the method that ends the interval. [`Tick::default`] when off.
    #[inline]
    pub fn start(&self) -> Tick {
        if self.mode == Mode::Off { Tick::default() } else { self.clock.now() }
    }

    /// Ends an interval of leaf work. Returns its end.
    #[inline]
    pub fn leaf(&mut self, since: Tick, call: u64) -> Tick {
        self.end(Kind::Leaf, since, NO_INDEX, call)
    }

    /// Ends an interval of leaf work of a known task (an index into the names of [`crate::Trace`]).
    #[inline]
    pub fn leaf_of(&mut self, since: Tick, task: u16, call: u64) -> Tick {
        self.end(Kind::Leaf, since, task, call)
    }

    /// Ends an interval of waiting for a transfer on `edge`. Returns its end.
    #[inline]
    pub fn wait(&mut self, since: Tick, edge: u16, transfer: u64) -> Tick {
        self.end(Kind::Wait, since, edge, transfer)
    }

    /// Ends an interval in which the worker had nothing to do in the plan of `edge`. Returns its end.
    #[inline]
    pub fn idle(&mut self, since: Tick, edge: u16) -> Tick {
        self.end(Kind::Idle, since, edge, 0)
    }

    /// Ends an interval in the runtime itself, kept to show where overhead arose. Returns its end.
    #[inline]
    pub fn overhead(&mut self, since: Tick, id: u64) -> Tick {
        self.end(Kind::Overhead, since, NO_INDEX, id)
    }

    /// Records a moment. Returns it.
    #[inline]
    pub fn mark(&mut self, id: u64) -> Tick {
        let now = self.start();
        self.interval(Kind::Mark, now, now, NO_INDEX, id);
        now
    }

    /// Records a transfer that was under way from `issued` to `completed`.
    #[inline]
    pub fn transfer(&mut self, issued: Tick, completed: Tick, edge: u16, transfer: u64) {
        self.interval(Kind::Transfer, issued, completed, edge, transfer);
    }

    /// Ends an interval now. Returns its end.
    #[inline]
    pub fn end(&mut self, kind: Kind, since: Tick, index: u16, id: u64) -> Tick {
        if self.mode == Mode::Off {
            return Tick::default();
        }
        let end = self.clock.now();
        self.keep(kind, since, end, index, id);
        end
    }

    /// Records an interval whose ends are both known: what the simulator does, with ticks of virtual time.
    #[inline]
    pub fn interval(&mut self, kind: Kind, start: Tick, end: Tick, index: u16, id: u64) {
        if self.mode != Mode::Off {
            self.keep(kind, start, end, index, id);
        }
    }

    #[inline]
    fn keep(&mut self, kind: Kind, start: Tick, end: Tick, index: u16, id: u64) {
        self.totals.add(kind, index, end.since(start));
        if self.mode == Mode::Full {
            if self.current.len() == self.current.capacity() {
                self.next_chunk();
            }
            self.current.push(Record { start: start.0, end: end.0, id, worker: self.worker, index, kind });
        }
    }

    #[cold]
    #[inline(never)]
    fn next_chunk(&mut self) {
        let filled = std::mem::replace(&mut self.current, Vec::with_capacity(CHUNK_RECORDS));
        self.full.push(filled);
    }

    /// The sums so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Every record so far, in the order in which the intervals ended. Empty unless the mode is [`Mode::Full`].
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.full.iter().flatten().chain(&self.current)
    }

    /// The sums of several workers together.
    pub fn merge_totals<'a>(recorders: impl IntoIterator<Item = &'a Recorder>) -> Totals {
        let mut all = Totals::new(0);
        for recorder in recorders {
            all.merge(&recorder.totals);
        }
        all
    }

    /// The records of several workers together, by start, then worker.
    pub fn merge_records<'a>(recorders: impl IntoIterator<Item = &'a Recorder>) -> Vec<Record> {
        let mut all: Vec<Record> = Vec::new();
        for recorder in recorders {
            all.extend(recorder.records());
        }
        all.sort_by_key(|record| (record.start, record.worker, record.end));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::Sum;

    #[test]
    fn off_keeps_nothing_and_reads_no_clock() {
        let mut recorder = Recorder::off();
        let t = recorder.start();
        assert_eq!(t, Tick::default());
        assert_eq!(recorder.leaf(t, 1), Tick::default());
        recorder.transfer(Tick(1), Tick(2), 0, 0);
        assert_eq!(recorder.totals().of(Kind::Leaf), Sum::default());
        assert_eq!(recorder.totals().of(Kind::Transfer), Sum::default());
        assert_eq!(recorder.records().count(), 0);
    }

    #[test]
    fn totals_keeps_sums_and_no_records() {
        let mut recorder = Recorder::new(Mode::Totals, 3, 1);
        for _ in 0..5 {
            recorder.interval(Kind::Wait, Tick(10), Tick(14), 0, 0);
        }
        assert_eq!(recorder.totals().at(Kind::Wait, 0), Sum { count: 5, ticks: 20 });
        assert_eq!(recorder.records().count(), 0);
    }

    #[test]
    fn adjacent_intervals_share_a_tick() {
        let mut recorder = Recorder::new(Mode::Full, 0, 1);
        let t = recorder.start();
        let t = recorder.wait(t, 0, 1);
        recorder.leaf_of(t, 2, 9);
        let records: Vec<_> = recorder.records().copied().collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].end, records[1].start);
        assert_eq!((records[1].index, records[1].id), (2, 9));
    }

    #[test]
    fn full_spills_into_further_chunks_and_keeps_the_order() {
        let mut recorder = Recorder::new(Mode::Full, 7, 0);
        let n = 2 * CHUNK_RECORDS as u64 + 5;
        for i in 0..n {
            recorder.interval(Kind::Leaf, Tick(i), Tick(i + 1), NO_INDEX, i);
        }
        assert!(recorder.records().map(|record| record.id).eq(0..n));
        assert!(recorder.records().all(|record| record.worker == 7));
    }

    #[test]
    fn merged_records_are_in_the_order_of_their_starts() {
        let mut one = Recorder::new(Mode::Full, 1, 0);
        let mut zero = Recorder::new(Mode::Full, 0, 0);
        one.interval(Kind::Leaf, Tick(5), Tick(6), NO_INDEX, 2);
        one.interval(Kind::Leaf, Tick(9), Tick(10), NO_INDEX, 4);
        zero.interval(Kind::Leaf, Tick(5), Tick(7), NO_INDEX, 1);
        zero.interval(Kind::Leaf, Tick(7), Tick(8), NO_INDEX, 3);
        let merged = Recorder::merge_records([&one, &zero]);
        assert_eq!(merged.iter().map(|record| record.id).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(Recorder::merge_totals([&one, &zero]).of(Kind::Leaf), Sum { count: 4, ticks: 5 });
    }
}
