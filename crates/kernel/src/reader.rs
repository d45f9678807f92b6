//! The thread that reads: rings and sums in, records out.

use crate::clock::{self, Clocks};
use crate::events::Event;
use crate::lanes::{Lanes, Seen, Subject};
use crate::names::Names;
use crate::sink::Sink;
use crate::sources::Source;
use crate::sums::Sums;
use multigrain_trace::{KernelInfo, KernelSource, Kind, NO_INDEX, NO_SUBJECT, Observed, Record, Tick};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::{AsFd, OwnedFd};

/// How often it reads when no ring is half full.
const INTERVAL_NS: i64 = 20_000_000;
/// An event has reached its ring so long after its time, at the latest: rings of several processors are read one after the other.
const LATE_NS: u64 = 1_000_000;

/// Nanoseconds of the clock that events have.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicRaw);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn both() -> (clock::Moment, u64) {
    clock::read(|| multigrain_trace::now().0, now_ns)
}

/// Everything that the thread has.
pub(crate) struct Reader {
    source: Source,
    threads: Vec<u32>,
    sink: Sink,
    clocks: Clocks,
    lanes: Lanes,
    names: Names,
    /// Events that are later than some that may still come.
    pending: Vec<Event>,
    seen: Vec<Seen>,
    /// When each worker's last time without a processor ended, on both clocks.
    ends: Vec<(u64, u64)>,
    /// What `/proc` said last of each thread.
    sums: Vec<Sums>,
    chunk: Vec<Record>,
}

impl Reader {
    pub(crate) fn new(source: Source, threads: Vec<u32>, mut sink: Sink) -> Reader {
        let (moment, width) = both();
        let (clocks, lanes) =
            (Clocks::new((moment, width), multigrain_trace::ticks_per_second()), Lanes::new(&threads, moment.ns));
        let chunk = sink(Vec::new());
        let mut reader = Reader {
            source,
            sums: Vec::new(),
            sink,
            clocks,
            lanes,
            names: Names::default(),
            pending: Vec::new(),
            seen: Vec::new(),
            ends: vec![(0, 0); threads.len()],
            chunk,
            threads,
        };
        reader.sums = (0..reader.threads.len()).map(|worker| reader.read_sums(worker, Sums::default())).collect();
        reader
    }

    /// Reads until somebody writes to `stop`.
    pub(crate) fn serve(mut self, stop: &OwnedFd) -> Observed {
        loop {
            let stopped = self.wait(stop);
            self.read(stopped);
            if stopped {
                break;
            }
        }
        let end = self.clocks.last().ns;
        self.lanes.end(end, &mut self.seen);
        self.hand_on();
        if !self.chunk.is_empty() {
            (self.sink)(std::mem::take(&mut self.chunk));
        }
        let per_tick = 1e9 / multigrain_trace::ticks_per_second();
        Observed {
            by: Some(KernelInfo { source: self.source.kind, refused: self.source.refused }),
            others: self.names.into_others(),
            lost: self.lanes.lost(),
            clock_error_ns: (self.clocks.error_ticks() as f64 * per_tick).ceil() as u64,
        }
    }

    /// Waits until a ring is half full, it is time, or it is to stop; whether that is so.
    fn wait(&self, stop: &OwnedFd) -> bool {
        let ask = |file| PollFd::from_borrowed_fd(file, PollFlags::IN);
        let mut files = vec![ask(stop.as_fd())];
        files.extend(self.source.rings.iter().map(|ring| ask(ring.as_fd())));
        let interval = Timespec { tv_sec: 0, tv_nsec: INTERVAL_NS };
        // A signal that comes meanwhile makes it read early, which harms nobody.
        let _ = poll(&mut files, Some(&interval));
        !files[0].revents().is_empty()
    }

    /// Takes what there is; all of it if it is the last time.
    fn read(&mut self, all: bool) {
        let horizon = if all { u64::MAX } else { now_ns().saturating_sub(LATE_NS) };
        for ring in &mut self.source.rings {
            ring.read(&self.source.tracepoints, &mut self.pending);
        }
        let last = self.clocks.last();
        self.clocks.took(both());
        self.pending.sort_by_key(Event::at);
        let ripe = self.pending.partition_point(|event| event.at() <= horizon);
        for event in self.pending.drain(..ripe) {
            self.lanes.take(event, &mut self.seen);
        }
        self.hand_on();
        for worker in 0..self.threads.len() {
            self.take_sums(worker, last.tick);
        }
    }

    /// Makes records of what was seen.
    fn hand_on(&mut self) {
        for seen in std::mem::take(&mut self.seen) {
            let (number, subject) = (self.number(seen.number), self.number(seen.subject));
            let (mut start, end) = (self.clocks.tick(seen.start), self.clocks.tick(seen.end));
            let Seen { worker, kind, index, detail, .. } = seen;
            if kind == Kind::Away {
                // Where the time goes on its parts touch, though the clocks may have been read again in between.
                let before = std::mem::replace(&mut self.ends[worker as usize], (seen.end, end.max(start)));
                start = if before.0 == seen.start { before.1 } else { start };
            }
            self.push(Record { start, end: end.max(start), number, subject, worker, index, kind, detail });
        }
    }

    fn number(&mut self, subject: Subject) -> u32 {
        match subject {
            Subject::Nothing => NO_SUBJECT,
            Subject::Thread(thread) => self.names.index(thread),
            Subject::Number(number) => number,
        }
    }

    fn push(&mut self, record: Record) {
        if self.chunk.len() == self.chunk.capacity() {
            let full = std::mem::take(&mut self.chunk);
            self.chunk = (self.sink)(full);
        }
        // Whoever takes them may have no room for more.
        if self.chunk.capacity() > 0 {
            self.chunk.push(record);
        }
    }

    fn read_sums(&self, worker: usize, before: Sums) -> Sums {
        let mut sums = before;
        let file = |name: &str| std::fs::read_to_string(format!("/proc/self/task/{}/{name}", self.threads[worker]));
        // What cannot be read stays as it was.
        let _ = file("stat").ok().and_then(|text| sums.read_stat(&text));
        if self.source.kind == KernelSource::Sums {
            let _ = file("schedstat").ok().and_then(|text| sums.read_schedstat(&text));
            let _ = file("status").ok().and_then(|text| sums.read_status(&text));
        }
        sums
    }

    /// What happened to a worker between two readings of `/proc`.
    fn take_sums(&mut self, worker: usize, since: u64) {
        let before = self.sums[worker];
        let now = self.read_sums(worker, before);
        self.sums[worker] = now;
        // Somebody has let the threads use more processors since.
        if !self.source.processors.is_empty() && !self.source.processors.contains(&now.processor) {
            self.lanes.unseen(worker);
        }
        let (between, Tick(until)) = (now.since(&before), multigrain_trace::now());
        let record = |kind, number: u64, subject, index, detail| Record {
            start: since,
            end: until.max(since),
            number: u32::try_from(number).unwrap_or(u32::MAX),
            subject,
            worker: worker as u32,
            index,
            kind,
            detail,
        };
        for (count, detail) in [(between.minor_faults, 0), (between.major_faults, 1)] {
            if count > 0 {
                self.push(record(Kind::Faults, count, NO_SUBJECT, NO_INDEX, detail));
            }
        }
        if self.source.kind != KernelSource::Sums {
            return;
        }
        if between.voluntary > 0 || between.involuntary > 0 || between.delay_ns > 0 {
            let delay_us = u32::try_from(between.delay_ns / 1000).unwrap_or(u32::MAX);
            let voluntary = u16::try_from(between.voluntary).unwrap_or(u16::MAX);
            self.push(record(Kind::Held, between.involuntary, delay_us, voluntary, 0));
        }
        if now.processor != before.processor {
            let moved = record(Kind::Migration, u64::from(now.processor), before.processor, NO_INDEX, 0);
            self.push(Record { start: moved.end, ..moved });
        }
    }
}
