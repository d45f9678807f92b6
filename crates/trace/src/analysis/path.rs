//! The critical path: walking back from the end of the run, at each moment to what had to happen for it.
//!
//! Within a worker, what came before. From a wait, if the transfer ended in it: the transfer, its time in the queue,
//! and then the worker that issued it. From an idle time: the worker that it depended on. So the parts follow each
//! other without a gap or an overlap, and their lengths add up to the length of the run.

use std::collections::BTreeMap;

use super::timeline::{Span, Timeline};
use crate::header::Header;
use crate::record::{Activity, Idleness, Kind, Record};

/// What a step of the critical path was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepKind {
    /// A leaf of this task.
    Leaf(u16),
    /// Bytes moved on this edge.
    Transfer(u16),
    /// A transfer waited on this edge for others.
    Queue(u16),
    /// A wait on this edge that no transfer in the trace explains.
    Wait(u16),
    /// Workers handed work to each other, or came together, in the plans of this edge.
    Handover(u16),
    /// Completed work was made durable.
    Journal,
    /// The runtime, in the plans of this edge.
    Runtime(u16),
}

impl StepKind {
    /// In words.
    pub fn name(self, header: &Header) -> String {
        match self {
            StepKind::Leaf(task) => format!("leaves of {}", header.task(task)),
            StepKind::Transfer(edge) => format!("transfers on {}", header.edge(edge)),
            StepKind::Queue(edge) => format!("transfers behind others on {}", header.edge(edge)),
            StepKind::Wait(edge) => format!("waits on {}", header.edge(edge)),
            StepKind::Handover(edge) => format!("handing over, {}", header.edge(edge)),
            StepKind::Journal => "journal".to_owned(),
            StepKind::Runtime(edge) => format!("runtime, {}", header.edge(edge)),
        }
    }
}

/// One part of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// First tick.
    pub start: u64,
    /// Last tick, after the first; the next step's first.
    pub end: u64,
    /// Who did it, or issued the transfer.
    pub worker: u32,
    /// What it was.
    pub kind: StepKind,
    /// The record behind it, if there is one.
    pub record: Option<usize>,
}

/// The chain of events that made the run as long as it was, from its first tick to its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// In the order of time.
    pub steps: Vec<Step>,
}

impl Path {
    /// The path of a run.
    pub fn of(timeline: &Timeline<'_>) -> Path {
        let mut walk = Walk::new(timeline);
        while walk.t > timeline.trace.start() {
            walk.back();
        }
        walk.steps.reverse();
        Path { steps: walk.steps }
    }

    /// Its length in ticks.
    pub fn ticks(&self) -> u64 {
        self.steps.iter().map(|step| step.end - step.start).sum()
    }

    /// Ticks by kind, the most first.
    pub fn shares(&self) -> Vec<(StepKind, u64)> {
        let mut sums: BTreeMap<StepKind, u64> = BTreeMap::new();
        for step in &self.steps {
            *sums.entry(step.kind).or_default() += step.end - step.start;
        }
        let mut shares: Vec<_> = sums.into_iter().collect();
        shares.sort_by_key(|(_, ticks)| u64::MAX - ticks);
        shares
    }
}

struct Walk<'t, 'a> {
    timeline: &'t Timeline<'a>,
    /// Everything after this is explained.
    t: u64,
    worker: u32,
    /// Changes of the worker since time last went back.
    jumps: usize,
    steps: Vec<Step>,
}

impl<'t, 'a> Walk<'t, 'a> {
    fn new(timeline: &'t Timeline<'a>) -> Walk<'t, 'a> {
        let ends = timeline.lanes.iter().map(|lane| lane.last().map_or(0, |span| span.end));
        let last = ends.enumerate().max_by_key(|&(worker, end)| (end, usize::MAX - worker));
        let worker = last.map_or(0, |(worker, _)| worker as u32);
        Walk { timeline, t: timeline.trace.stop(), worker, jumps: 0, steps: Vec::new() }
    }

    /// Explains the time back to `to`.
    fn step(&mut self, to: u64, kind: StepKind, record: Option<usize>) {
        let to = to.max(self.timeline.trace.start());
        if to < self.t {
            self.jumps = 0;
            match self.steps.last_mut() {
                // Nothing is gained from two parts of one thing.
                Some(last) if record.is_some() && (last.kind, last.record) == (kind, record) => last.start = to,
                _ => self.steps.push(Step { start: to, end: self.t, worker: self.worker, kind, record }),
            }
            self.t = to;
        }
    }

    fn back(&mut self) {
        let timeline = self.timeline;
        let Some(span) = timeline.before(self.worker, self.t) else {
            let edge = timeline.edge_at(self.worker, self.t - 1);
            return self.step(0, StepKind::Runtime(edge), None);
        };
        if span.end < self.t {
            let edge = timeline.edge_at(self.worker, self.t - 1);
            return self.step(span.end, StepKind::Runtime(edge), None);
        }
        let record = timeline.record(span);
        let here = Some(span.record);
        match record.kind {
            Kind::Leaf => self.step(span.start, StepKind::Leaf(record.index), here),
            Kind::Wait => self.wait(span, record),
            Kind::Idle => self.idle(span, record),
            _ if Activity::of(record.detail) == Activity::Journal => self.step(span.start, StepKind::Journal, here),
            _ => self.step(span.start, StepKind::Runtime(record.index), here),
        }
    }

    fn wait(&mut self, span: &Span, record: &Record) {
        let edge = record.index;
        match self.timeline.awaited(record) {
            None => self.step(span.start, StepKind::Wait(edge), Some(span.record)),
            // It was over before: the wait was no more than the question.
            Some(moved) if moved.ended <= span.start || moved.issued >= self.t => {
                self.step(span.start, StepKind::Runtime(edge), Some(span.record));
            }
            Some(moved) => {
                self.step(moved.ended, StepKind::Handover(edge), Some(span.record));
                self.step(moved.started, StepKind::Transfer(edge), Some(span.record));
                self.step(moved.issued, StepKind::Queue(edge), Some(span.record));
                self.worker = moved.worker;
            }
        }
    }

    fn idle(&mut self, span: &Span, record: &Record) {
        let (edge, other) = (record.index, record.subject);
        let cause = Idleness::of(record.detail);
        let known = (other as usize) < self.timeline.lanes.len() && other != self.worker;
        if !known {
            return self.step(span.start, StepKind::Handover(edge), Some(span.record));
        }
        let since = match cause {
            Idleness::Start => Some(span.start),
            Idleness::Signal => self.timeline.signal(other, edge, record.number, span.start, self.t),
            Idleness::Join | Idleness::Spare => None,
        };
        match since {
            Some(since) if since < self.t => {
                self.step(since, StepKind::Handover(edge), Some(span.record));
                self.worker = other;
            }
            _ if self.jumps < self.timeline.lanes.len() => {
                self.jumps += 1;
                self.worker = other;
            }
            // Everybody waits for somebody else: no recorder writes that.
            _ => self.step(span.start, StepKind::Handover(edge), Some(span.record)),
        }
    }
}
