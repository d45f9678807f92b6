//! Where the time of each worker and of each edge went.

use super::timeline::Timeline;
use crate::record::{Activity, Flow, Idleness, Kind, NO_INDEX};

/// The time of one worker, in ticks. All parts together are the wall time of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerTimes {
    /// In leaf variants.
    pub leaf: u64,
    /// Waiting for transfers, by edge; the last is for waits at no known edge.
    pub wait: Vec<u64>,
    /// With nothing to do, by cause as in [`Idleness::ALL`].
    pub idle: [u64; Idleness::ALL.len()],
    /// Making completed blocks durable.
    pub journal: u64,
    /// In the runtime otherwise: whatever has no other name.
    pub runtime: u64,
    /// What the breakdown of a run calls overhead (idle, journal and runtime), by the edge whose plan was served; the
    /// last is for none.
    pub overhead: Vec<u64>,
    /// How many leaves.
    pub leaves: u64,
}

impl WorkerTimes {
    /// Everything.
    pub fn total(&self) -> u64 {
        self.leaf + self.waited() + self.overhead_total()
    }

    /// Waiting at all edges.
    pub fn waited(&self) -> u64 {
        self.wait.iter().sum()
    }

    /// What is neither leaf work nor waiting.
    pub fn overhead_total(&self) -> u64 {
        self.idle.iter().sum::<u64>() + self.journal + self.runtime
    }
}

/// What an edge did, and what the workers paid for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeShare {
    /// Its name.
    pub name: String,
    /// Ticks in which it moved anything.
    pub busy: u64,
    /// Bytes from parent to child.
    pub bytes_down: u64,
    /// Bytes from child to parent.
    pub bytes_up: u64,
    /// Transfers.
    pub transfers: u64,
    /// Worker time spent waiting, in ticks.
    pub waited: u64,
    /// Worker time of overhead in the plans of this edge, in ticks.
    pub overhead: u64,
}

/// For each worker.
pub(super) fn of(timeline: &Timeline<'_>) -> Vec<WorkerTimes> {
    (0..timeline.lanes.len()).map(|worker| times(timeline, worker)).collect()
}

fn times(timeline: &Timeline<'_>, worker: usize) -> WorkerTimes {
    let trace = timeline.trace;
    let edges = trace.header.edges.len();
    let column = |edge: u16| usize::from(edge).min(edges);
    let mut times = WorkerTimes {
        leaf: 0,
        wait: vec![0; edges + 1],
        idle: [0; Idleness::ALL.len()],
        journal: 0,
        runtime: 0,
        overhead: vec![0; edges + 1],
        leaves: 0,
    };
    let mut reached = trace.start();
    let mut scope = 0;
    for span in &timeline.lanes[worker] {
        gap(timeline, worker, (reached, span.start), &mut scope, &mut times);
        reached = span.end;
        let record = timeline.record(span);
        match record.kind {
            Kind::Leaf => {
                times.leaf += span.ticks();
                times.leaves += 1;
            }
            Kind::Wait => times.wait[column(record.index)] += span.ticks(),
            Kind::Idle => {
                times.idle[Idleness::of(record.detail) as usize] += span.ticks();
                times.overhead[column(record.index)] += span.ticks();
            }
            _ => {
                let journal = Activity::of(record.detail) == Activity::Journal;
                *if journal { &mut times.journal } else { &mut times.runtime } += span.ticks();
                times.overhead[column(record.index)] += span.ticks();
            }
        }
    }
    gap(timeline, worker, (reached, trace.stop()), &mut scope, &mut times);
    times
}

/// Time without a record is the runtime's, in the innermost plan that the worker served.
fn gap(timeline: &Timeline<'_>, worker: usize, (from, to): (u64, u64), scope: &mut usize, times: &mut WorkerTimes) {
    if from >= to {
        return;
    }
    times.runtime += to - from;
    let scopes = &timeline.scopes[worker];
    let mut rest = to - from;
    while *scope < scopes.len() && scopes[*scope].1 <= from {
        *scope += 1;
    }
    let inside = scopes[*scope..].iter().take_while(|(start, ..)| *start < to);
    let none = times.overhead.len() - 1;
    for &(start, end, edge) in inside {
        let part = end.min(to).saturating_sub(start.max(from));
        times.overhead[if edge == NO_INDEX { none } else { usize::from(edge).min(none) }] += part;
        rest -= part;
    }
    times.overhead[0] += rest;
}

/// For each edge of the header.
pub(super) fn edges(timeline: &Timeline<'_>) -> Vec<EdgeShare> {
    let trace = timeline.trace;
    let workers = of(timeline);
    let share = |(edge, info): (usize, &crate::EdgeInfo)| EdgeShare {
        name: info.name.clone(),
        busy: timeline.busy(edge as u16).map_or(0, |busy| busy.between(trace.start(), trace.stop())),
        waited: workers.iter().map(|w| w.wait[edge]).fold(0, u64::saturating_add),
        overhead: workers.iter().map(|w| w.overhead[edge]).fold(0, u64::saturating_add),
        ..EdgeShare::default()
    };
    let mut shares: Vec<EdgeShare> = trace.header.edges.iter().enumerate().map(share).collect();
    for moved in &timeline.moved {
        if let Some(share) = shares.get_mut(usize::from(moved.edge)) {
            let bytes = trace.slots.get(moved.slot as usize).map_or(0, |slot| slot.bytes);
            let total = match moved.flow {
                Flow::Down => &mut share.bytes_down,
                Flow::Up => &mut share.bytes_up,
            };
            *total = total.saturating_add(bytes);
            share.transfers += 1;
        }
    }
    shares
}
