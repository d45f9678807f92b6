//! What a worker holds: an interval goes in when it ends.
//!
//! Intervals that follow one another share a tick: every recording method returns the end that it read, to be used
//! as the start of the next interval, so an interval costs one read of the clock.

use std::sync::Arc;

use crate::clock::{Clock, Tick};
use crate::record::{Flow, Idleness, Kind, Record, sort};
use crate::spill::{CHUNK_RECORDS, Spill};
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

/// Records that a recorder without a file keeps at most, in bytes: 256 MiB.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// The events of one worker. Owned by its thread: no locks, no sharing (but once every 4096 records, when a chunk is
/// handed to a [`Spill`]).
#[derive(Debug)]
pub struct Recorder {
    mode: Mode,
    clock: Clock,
    worker: u32,
    totals: Totals,
    /// The chunk being filled; its capacity is never exceeded.
    current: Vec<Record>,
    full: Vec<Vec<Record>>,
    spill: Option<Arc<Spill>>,
    transfers: u32,
    left: Tick,
    dropped: u64,
    chunks_max: usize,
}

impl Recorder {
    /// A recorder for `worker` on a machine with `edges` edges. In [`Mode::Full`] the records stay in memory: at most
    /// 256 MiB of them, later ones are counted and dropped.
    pub fn new(mode: Mode, worker: u32, edges: usize) -> Recorder {
        let clock = match mode {
            Mode::Off => Clock { counter: false },
            Mode::Totals | Mode::Full => Clock::get(),
        };
        let current = if mode == Mode::Full { Vec::with_capacity(CHUNK_RECORDS) } else { Vec::new() };
        let chunks_max = MEMORY_BYTES_MAX / (CHUNK_RECORDS * size_of::<Record>());
        Recorder {
            mode,
            clock,
            worker,
            totals: Totals::new(edges),
            current,
            full: Vec::new(),
            spill: None,
            transfers: 0,
            left: Tick::default(),
            dropped: 0,
            chunks_max,
        }
    }

    /// A recorder that hands its records, chunk by chunk, to a file.
    pub fn spilling(worker: u32, edges: usize, spill: Arc<Spill>) -> Recorder {
        Recorder { spill: Some(spill), ..Recorder::new(Mode::Full, worker, edges) }
    }

    /// A recorder that keeps nothing.
    pub fn off() -> Recorder {
        Recorder::new(Mode::Off, 0, 0)
    }

    /// How much this recorder keeps.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether records are kept, and not only sums.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.mode == Mode::Full
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

    /// Ends an interval of leaf work: `call` of `plan`, of a task (an index into the names of the header). Returns its
    /// end.
    #[inline]
    pub fn leaf(&mut self, since: Tick, task: u16, plan: u32, call: u32) -> Tick {
        self.end(Kind::Leaf, since, task, plan, call, 0)
    }

    /// Ends an interval of waiting for a transfer on `edge` that `issuer` has issued. Returns its end.
    #[inline]
    pub fn wait(&mut self, since: Tick, edge: u16, issuer: u32, transfer: u32) -> Tick {
        self.end(Kind::Wait, since, edge, issuer, transfer, 0)
    }

    /// Ends an interval in which the worker had nothing to do in the plan of `edge`, because of `other`. Returns its
    /// end.
    #[inline]
    pub fn idle(&mut self, since: Tick, edge: u16, cause: Idleness, other: u32, number: u32) -> Tick {
        self.end(Kind::Idle, since, edge, other, number, cause as u8)
    }

    /// The number of the next transfer that this worker issues.
    #[inline]
    pub fn next_transfer(&mut self) -> u32 {
        let number = self.transfers;
        self.transfers = number.wrapping_add(1);
        number
    }

    /// Remembers when this worker left its part of a plan, for the record of how long it waited for the others.
    #[inline]
    pub fn left(&mut self, at: Tick) {
        self.left = at;
    }

    /// When this worker last left its part of a plan.
    #[inline]
    pub fn has_left(&self) -> Tick {
        self.left
    }

    /// Records a transfer of the block in `slot` that was under way from `issued` to `completed`, and moved its first
    /// byte at `started`.
    #[inline]
    pub fn transfer(&mut self, times: [Tick; 3], edge: u16, transfer: u32, slot: u32, flow: Flow) {
        let [issued, started, completed] = times;
        let started = started.clamp(issued, completed.max(issued));
        if started > issued {
            self.interval(Kind::Queue, issued, started, edge, slot, transfer, flow as u8);
        }
        self.interval(Kind::Transfer, issued, completed.max(issued), edge, slot, transfer, flow as u8);
    }

    /// Ends an interval now. Returns its end.
    #[inline]
    pub fn end(&mut self, kind: Kind, since: Tick, index: u16, subject: u32, number: u32, detail: u8) -> Tick {
        if self.mode == Mode::Off {
            return Tick::default();
        }
        let end = self.clock.now();
        self.keep(kind, since, end, index, subject, number, detail);
        end
    }

    /// Records an interval whose ends are both known: what the simulator does, with ticks of virtual time.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub fn interval(&mut self, kind: Kind, start: Tick, end: Tick, index: u16, subject: u32, number: u32, detail: u8) {
        if self.mode != Mode::Off {
            self.keep(kind, start, end, index, subject, number, detail);
        }
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn keep(&mut self, kind: Kind, start: Tick, end: Tick, index: u16, subject: u32, number: u32, detail: u8) {
        self.totals.add(kind, index, end.since(start));
        if self.mode == Mode::Full {
            if self.current.len() == self.current.capacity() {
                self.next_chunk();
            }
            let worker = self.worker;
            self.current.push(Record { start: start.0, end: end.0, number, subject, worker, index, kind, detail });
        }
    }

    #[cold]
    #[inline(never)]
    fn next_chunk(&mut self) {
        if let Some(spill) = &self.spill {
            self.current = spill.exchange(std::mem::take(&mut self.current));
        } else if self.full.len() < self.chunks_max {
            let filled = std::mem::replace(&mut self.current, Vec::with_capacity(CHUNK_RECORDS));
            self.full.push(filled);
        } else {
            self.dropped += self.current.len() as u64;
            self.current.clear();
        }
    }

    /// Hands what is left to the file, if there is one. To be called when the run is over.
    pub fn flush(&mut self) {
        if let Some(spill) = &self.spill {
            spill.put(std::mem::take(&mut self.current));
        }
    }

    /// The sums so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Records that were not kept because there was no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Every record so far that is in memory, in the order in which the intervals ended. Empty unless the mode is
    /// [`Mode::Full`].
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
        sort(&mut all);
        all
    }
}

impl Spill {
    /// A recorder for what a worker does with the results once the run is over; `None` before that, and for a worker
    /// that the run did not have. To be given back to [`add`](Self::add).
    pub fn recorder(self: &Arc<Self>, worker: usize) -> Option<Recorder> {
        Some(Recorder::spilling(worker as u32, self.edges(worker)?, Arc::clone(self)))
    }

    /// Takes what a worker did after the run: its records, and its sums. The trace now ends at this moment.
    pub fn add(&self, mut recorder: Recorder) {
        recorder.flush();
        self.extend(recorder.worker() as usize, recorder.totals(), recorder.dropped());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{NO_INDEX, NO_SUBJECT};
    use crate::totals::Sum;

    fn leaf(recorder: &mut Recorder, start: u64, end: u64, number: u32) {
        recorder.interval(Kind::Leaf, Tick(start), Tick(end), NO_INDEX, NO_SUBJECT, number, 0);
    }

    #[test]
    fn off_keeps_nothing_and_reads_no_clock() {
        let mut recorder = Recorder::off();
        let t = recorder.start();
        assert_eq!(t, Tick::default());
        assert_eq!(recorder.leaf(t, 0, 0, 1), Tick::default());
        recorder.transfer([Tick(1), Tick(1), Tick(2)], 0, 0, 0, Flow::Up);
        assert_eq!(recorder.totals().of(Kind::Leaf), Sum::default());
        assert_eq!(recorder.totals().of(Kind::Transfer), Sum::default());
        assert_eq!(recorder.records().count(), 0);
    }

    #[test]
    fn totals_keeps_sums_and_no_records() {
        let mut recorder = Recorder::new(Mode::Totals, 3, 1);
        for _ in 0..5 {
            recorder.interval(Kind::Wait, Tick(10), Tick(14), 0, 0, 0, 0);
        }
        assert_eq!(recorder.totals().at(Kind::Wait, 0), Sum { count: 5, ticks: 20 });
        assert_eq!(recorder.records().count(), 0);
    }

    #[test]
    fn adjacent_intervals_share_a_tick() {
        let mut recorder = Recorder::new(Mode::Full, 0, 1);
        let t = recorder.start();
        let t = recorder.wait(t, 0, 0, 1);
        recorder.leaf(t, 2, 4, 9);
        let records: Vec<_> = recorder.records().copied().collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].end, records[1].start);
        assert_eq!((records[1].index, records[1].subject, records[1].number), (2, 4, 9));
    }

    #[test]
    fn a_transfer_that_had_to_queue_says_how_long() {
        let mut recorder = Recorder::new(Mode::Full, 0, 1);
        recorder.transfer([Tick(5), Tick(7), Tick(9)], 0, 1, 2, Flow::Up);
        recorder.transfer([Tick(9), Tick(9), Tick(9)], 0, 2, 3, Flow::Down);
        recorder.transfer([Tick(9), Tick(0), Tick(0)], 0, 3, 3, Flow::Down); // times that nobody took
        let found: Vec<_> = recorder.records().map(|r| (r.kind, r.start, r.end, r.detail)).collect();
        let expected = [(Kind::Queue, 5, 7, 1), (Kind::Transfer, 5, 9, 1), (Kind::Transfer, 9, 9, 0)];
        assert_eq!(found[..3], expected);
        assert_eq!(found[3], expected[2]);
    }

    #[test]
    fn full_goes_on_in_further_chunks_and_keeps_the_order() {
        let mut recorder = Recorder::new(Mode::Full, 7, 0);
        let n = 2 * CHUNK_RECORDS as u32 + 5;
        for i in 0..n {
            leaf(&mut recorder, u64::from(i), u64::from(i) + 1, i);
        }
        assert!(recorder.records().map(|record| record.number).eq(0..n));
        assert!(recorder.records().all(|record| record.worker == 7));
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let mut recorder = Recorder::new(Mode::Full, 0, 0);
        recorder.chunks_max = 1;
        for i in 0..3 * CHUNK_RECORDS as u32 {
            leaf(&mut recorder, 0, 1, i);
        }
        assert_eq!(recorder.records().count() as u64 + recorder.dropped(), 3 * CHUNK_RECORDS as u64);
        assert_eq!(recorder.dropped(), CHUNK_RECORDS as u64);
        assert_eq!(recorder.totals().of(Kind::Leaf).count, 3 * CHUNK_RECORDS as u64);
    }

    #[test]
    fn merged_records_are_in_the_order_of_their_starts() {
        let mut one = Recorder::new(Mode::Full, 1, 0);
        let mut zero = Recorder::new(Mode::Full, 0, 0);
        leaf(&mut one, 5, 6, 2);
        leaf(&mut one, 9, 10, 4);
        leaf(&mut zero, 5, 7, 1);
        leaf(&mut zero, 7, 8, 3);
        let merged = Recorder::merge_records([&one, &zero]);
        assert_eq!(merged.iter().map(|record| record.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(Recorder::merge_totals([&one, &zero]).of(Kind::Leaf), Sum { count: 4, ticks: 5 });
    }
}
