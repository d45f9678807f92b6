//! The records, sorted for questions: what did this worker do then, when did that transfer move, was the edge busy.

use std::collections::HashMap;

use super::aside::{self, Aside};
use crate::file::Trace;
use crate::record::{Flow, Kind, NO_INDEX, Record};

/// A part of a worker's time with one activity. Those of one worker do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First tick.
    pub start: u64,
    /// Last tick, after the first.
    pub end: u64,
    /// The record, an index.
    pub record: usize,
}

impl Span {
    /// Its length.
    pub fn ticks(&self) -> u64 {
        self.end - self.start
    }
}

/// A transfer with all its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// When it was handed to the edge.
    pub issued: u64,
    /// When its first byte could move.
    pub started: u64,
    /// When its last byte had moved.
    pub ended: u64,
    /// The edge.
    pub edge: u16,
    /// Which way.
    pub flow: Flow,
    /// Whose block; an index that may be none.
    pub slot: u32,
    /// The worker that issued it.
    pub worker: u32,
    /// Which of that worker's transfers.
    pub number: u32,
}

/// When an edge moved anything: disjoint intervals in order, with the sum of those before each.
#[derive(Clone, Debug, Default)]
pub struct EdgeBusy {
    intervals: Vec<(u64, u64)>,
    before: Vec<u64>,
}

impl EdgeBusy {
    fn new(mut moved: Vec<(u64, u64)>) -> EdgeBusy {
        moved.sort_unstable();
        let mut intervals: Vec<(u64, u64)> = Vec::new();
        for (start, end) in moved.into_iter().filter(|(start, end)| start < end) {
            match intervals.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => intervals.push((start, end)),
            }
        }
        let mut sum = 0;
        let so_far = |(start, end): &(u64, u64)| {
            sum += end - start;
            sum - (end - start)
        };
        let before = intervals.iter().map(so_far).collect();
        EdgeBusy { intervals, before }
    }

    fn until(&self, t: u64) -> u64 {
        let index = self.intervals.partition_point(|(start, _)| *start < t);
        let Some(last) = index.checked_sub(1) else { return 0 };
        let (start, end) = self.intervals[last];
        self.before[last] + end.min(t) - start
    }

    /// The intervals.
    pub fn intervals(&self) -> &[(u64, u64)] {
        &self.intervals
    }

    /// Ticks between `start` and `end` in which something moved.
    pub fn between(&self, start: u64, end: u64) -> u64 {
        if end <= start { 0 } else { self.until(end) - self.until(start) }
    }
}

/// A trace, sorted for questions.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// For each worker what it did, in order.
    pub lanes: Vec<Vec<Span>>,
    /// For each worker, in order, the edge of the innermost plan that it served: start, end, edge.
    pub scopes: Vec<Vec<(u64, u64, u16)>>,
    /// Transfers in the order of issue.
    pub moved: Vec<Moved>,
    by_name: HashMap<(u32, u32), usize>,
    busy: Vec<EdgeBusy>,
    /// For each worker, in order, when it could have run and others did.
    pub aside: Vec<Vec<Aside>>,
    /// Signals of each worker in order: tick, edge, number.
    signals: Vec<Vec<(u64, u16, u32)>>,
}

impl<'a> Timeline<'a> {
    /// Sorts a trace. Records beyond the run's ends are cut; where activities of a worker overlap, as no recorder makes
    /// them, the one that began first counts.
    pub fn new(trace: &'a Trace) -> Timeline<'a> {
        let (first, last) = (trace.start(), trace.stop());
        let workers = trace.workers();
        let mut lanes: Vec<Vec<Span>> = vec![Vec::new(); workers];
        let mut nested: Vec<Vec<(u64, u64, u16)>> = vec![Vec::new(); workers];
        let mut signals = vec![Vec::new(); workers];
        let mut moved = Vec::new();
        let mut by_name = HashMap::new();
        for (index, record) in trace.records.iter().enumerate() {
            let worker = record.worker as usize;
            let (start, end) = (record.start.clamp(first, last), record.end.clamp(first, last));
            match record.kind {
                kind if kind.is_activity() => {
                    let start = lanes[worker].last().map_or(start, |span| start.max(span.end));
                    if start < end {
                        lanes[worker].push(Span { start, end, record: index });
                    }
                }
                Kind::Scope => nested[worker].push((start, end.max(start), record.index)),
                Kind::Signal => signals[worker].push((start, record.index, record.number)),
                Kind::Transfer => {
                    by_name.insert((record.worker, record.number), moved.len());
                    moved.push(transfer(record, start, end.max(start)));
                }
                _ => {}
            }
        }
        for record in trace.records.iter().filter(|r| r.kind == Kind::Queue) {
            if let Some(&index) = by_name.get(&(record.worker, record.number)) {
                let transfer: &mut Moved = &mut moved[index];
                transfer.started = record.end.clamp(transfer.issued, transfer.ended);
            }
        }
        let seen = moved.iter().filter(|m| m.edge != NO_INDEX).map(|m| edge_number(m.edge) + 1).max();
        let edges = trace.header.edges.len().max(seen.unwrap_or(0));
        let mut intervals = vec![Vec::new(); edges];
        for transfer in &moved {
            if let Some(edge) = intervals.get_mut(edge_number(transfer.edge)) {
                edge.push((transfer.started, transfer.ended));
            }
        }
        Timeline {
            trace,
            lanes,
            scopes: nested.iter().map(|scopes| innermost(scopes)).collect(),
            moved,
            by_name,
            busy: intervals.into_iter().map(EdgeBusy::new).collect(),
            aside: aside::of(trace),
            signals,
        }
    }

    /// How many of the ticks between two moments a worker could have run and others did, and who did longest, if anybody is known.
    pub fn set_aside(&self, worker: u32, from: u64, to: u64) -> (u64, Option<u32>) {
        let all = self.aside.get(worker as usize).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|aside| aside.end <= from);
        aside::longest(all[first..].iter().take_while(|aside| aside.start < to), from, to)
    }

    /// The record of a span.
    pub fn record(&self, span: &Span) -> &Record {
        &self.trace.records[span.record]
    }

    /// The last thing that a worker began before `t`.
    pub fn before(&self, worker: u32, t: u64) -> Option<&Span> {
        let lane = self.lanes.get(worker as usize)?;
        lane.partition_point(|span| span.start < t).checked_sub(1).map(|index| &lane[index])
    }

    /// A transfer by the worker that issued it and its number.
    pub fn transfer(&self, worker: u32, number: u32) -> Option<&Moved> {
        self.by_name.get(&(worker, number)).map(|index| &self.moved[*index])
    }

    /// The transfer that a wait was for.
    pub fn awaited(&self, wait: &Record) -> Option<&Moved> {
        self.transfer(wait.subject, wait.number)
    }

    /// When an edge moved anything.
    pub fn busy(&self, edge: u16) -> Option<&EdgeBusy> {
        self.busy.get(edge_number(edge))
    }

    /// When a worker gave the signal, or a later one, that another waited for from `since` to `until`.
    pub fn signal(&self, worker: u32, edge: u16, number: u32, since: u64, until: u64) -> Option<u64> {
        let given = self.signals.get(worker as usize)?;
        let from = given.partition_point(|(t, ..)| *t <= since);
        let mut later = given[from..].iter().take_while(|(t, ..)| *t <= until);
        later.find(|(_, e, n)| *e == edge && *n >= number).map(|(t, ..)| *t)
    }

    /// The edge of the innermost plan that a worker served at `t`; the root edge outside of all.
    pub fn edge_at(&self, worker: u32, t: u64) -> u16 {
        let scopes = self.scopes.get(worker as usize).map_or(&[][..], Vec::as_slice);
        let index = scopes.partition_point(|(start, ..)| *start <= t);
        index.checked_sub(1).map(|i| scopes[i]).filter(|(_, end, _)| t < *end).map_or(0, |(.., edge)| edge)
    }
}

/// An edge as an index; "none" is beyond any.
fn edge_number(edge: u16) -> usize {
    if edge == NO_INDEX { usize::MAX } else { usize::from(edge) }
}

fn transfer(record: &Record, issued: u64, ended: u64) -> Moved {
    Moved {
        issued,
        started: issued,
        ended,
        edge: record.index,
        flow: Flow::of(record.detail),
        slot: record.subject,
        worker: record.worker,
        number: record.number,
    }
}

/// Nested intervals (sorted by start, the longer first) as disjoint ones: for each moment the innermost.
fn innermost(nested: &[(u64, u64, u16)]) -> Vec<(u64, u64, u16)> {
    let mut out: Vec<(u64, u64, u16)> = Vec::new();
    let mut open: Vec<(u64, u16)> = Vec::new();
    let mut reached = 0;
    let mut emit = |from: &mut u64, to: u64, edge: u16| {
        if to > *from {
            out.push((*from, to, edge));
        }
        *from = (*from).max(to);
    };
    for &(start, end, edge) in nested {
        while let Some(&(outer_end, outer)) = open.last()
            && outer_end <= start
        {
            emit(&mut reached, outer_end, outer);
            open.pop();
        }
        let outer = open.last().copied();
        if let Some((_, outer)) = outer {
            emit(&mut reached, start, outer);
        }
        reached = reached.max(start);
        open.push((outer.map_or(end, |(outer_end, _)| end.min(outer_end)), edge));
    }
    while let Some((end, edge)) = open.pop() {
        emit(&mut reached, end, edge);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_of_nested_intervals() {
        let nested = [(0, 100, 0), (10, 40, 1), (20, 30, 2), (50, 60, 1), (120, 130, 0)];
        let expected =
            [(0, 10, 0), (10, 20, 1), (20, 30, 2), (30, 40, 1), (40, 50, 0), (50, 60, 1), (60, 100, 0), (120, 130, 0)];
        assert_eq!(innermost(&nested), expected);
        assert_eq!(innermost(&[]), []);
    }

    #[test]
    fn an_edge_is_busy_once_however_many_transfers_it_moves() {
        let busy = EdgeBusy::new(vec![(10, 20), (15, 30), (50, 60), (60, 61), (5, 5)]);
        assert_eq!(busy.between(0, 100), 31);
        assert_eq!(busy.between(12, 55), 23);
        assert_eq!(busy.between(30, 50), 0);
        assert_eq!(busy.between(55, 12), 0);
    }
}
