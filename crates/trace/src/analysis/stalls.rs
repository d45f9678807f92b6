//! The longest times in which a worker could not go on.

use std::collections::HashMap;

use super::aside;
use super::cause::{Explanation, StallTransfer, explain};
use super::timeline::Timeline;
use crate::header::Header;
use crate::record::{Idleness, Kind};

/// A time in which one or several workers could not go on, all for the same reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// First tick, of the worker that waited longest.
    pub start: u64,
    /// Last tick.
    pub end: u64,
    /// Who stood still, the one that waited longest first; who did for less than a tenth of that is left out.
    pub workers: Vec<u32>,
    /// Ticks of all of them together.
    pub lost: u64,
    /// The edge.
    pub edge: u16,
    /// Why, for an idle time; `None` for a wait for a transfer.
    pub idleness: Option<Idleness>,
    /// Whether it waited for nothing but its processor, in the middle of its work.
    pub aside: bool,
    /// What was waited for, if it was a transfer and the trace has it.
    pub transfer: Option<StallTransfer>,
    /// What it came from, and what would have avoided it.
    pub explanation: Explanation,
}

impl Stall {
    /// Who stood still, in words.
    pub fn who(&self, header: &Header) -> String {
        match self.workers.as_slice() {
            [] => String::new(),
            [one] => header.worker(*one),
            [first, second] => format!("{}, {}", header.worker(*first), header.worker(*second)),
            [first, rest @ ..] => format!("{} and {} more", header.worker(*first), rest.len()),
        }
    }

    /// What was waited for, in words.
    pub fn what(&self) -> String {
        match (&self.transfer, self.idleness) {
            (Some(transfer), _) => {
                let block = transfer.block.as_deref().unwrap_or("a block");
                format!("the {} of {block} (transfer {})", transfer.moved.flow.name(), transfer.moved.number)
            }
            (None, Some(idleness)) => idleness.name().to_owned(),
            (None, None) if self.aside => "its processor, in the middle of its work".to_owned(),
            (None, None) => "a transfer that the trace does not have".to_owned(),
        }
    }
}

/// What stalls of several workers have in common: their end, kind, detail, index, subject and number.
type Reason = (u64, Kind, u8, u16, u32, u32);
/// One worker's part in a stall: its start, the worker, the record.
type Member = (u64, u32, usize);

/// The longest `most` stalls, longest first.
pub(super) fn longest(timeline: &Timeline<'_>, most: usize) -> Vec<Stall> {
    // Those that end together for one reason are one stall.
    let mut groups: HashMap<Reason, Vec<Member>> = HashMap::new();
    for (worker, lane) in timeline.lanes.iter().enumerate() {
        for span in lane {
            let record = timeline.record(span);
            if matches!(record.kind, Kind::Wait | Kind::Idle) {
                let key = (span.end, record.kind, record.detail, record.index, record.subject, record.number);
                groups.entry(key).or_default().push((span.start, worker as u32, span.record));
            }
        }
    }
    for (index, start, end) in aside::times(timeline.trace) {
        let record = &timeline.trace.records[index];
        for (start, end) in working(timeline, record.worker, start, end) {
            let key = (end, record.kind, record.detail, record.index, record.worker, record.number);
            groups.entry(key).or_default().push((start, record.worker, index));
        }
    }
    let mut stalls: Vec<(u64, u64, Vec<Member>)> = groups
        .into_iter()
        .map(|((end, ..), mut members)| {
            members.sort_unstable();
            (end - members[0].0, end, members)
        })
        .collect();
    stalls.sort_unstable_by_key(|(ticks, end, members)| (u64::MAX - ticks, *end, members[0].1));
    stalls.truncate(most);
    stalls.into_iter().map(|(_, end, members)| stall(timeline, end, &members)).collect()
}

/// The parts of an interval in which its worker neither waited nor was idle, which are stalls already.
fn working(timeline: &Timeline<'_>, worker: u32, start: u64, end: u64) -> Vec<(u64, u64)> {
    let (first, last) = (timeline.trace.start(), timeline.trace.stop());
    let (mut reached, end) = (start.clamp(first, last), end.clamp(first, last));
    let lane = &timeline.lanes[worker as usize];
    let behind = lane.partition_point(|span| span.end <= reached);
    let mut parts = Vec::new();
    for span in lane[behind..].iter().take_while(|span| span.start < end) {
        if matches!(timeline.record(span).kind, Kind::Wait | Kind::Idle) {
            parts.push((reached, span.start));
            reached = reached.max(span.end);
        }
    }
    parts.push((reached, end));
    parts.retain(|(start, end)| start < end);
    parts
}

fn stall(timeline: &Timeline<'_>, end: u64, members: &[Member]) -> Stall {
    let (start, worker, index) = members[0];
    let record = timeline.trace.records[index];
    let moved = (record.kind == Kind::Wait).then(|| timeline.awaited(&record)).flatten().copied();
    let transfer = moved.map(|moved| StallTransfer {
        moved,
        block: timeline.trace.block_name(moved.slot),
        bytes: timeline.trace.slots.get(moved.slot as usize).map_or(0, |slot| slot.bytes),
    });
    Stall {
        start,
        end,
        workers: members.iter().filter(|(t, ..)| (end - t) / 10 >= (end - start) / 100).map(|m| m.1).collect(),
        lost: members.iter().map(|(start, ..)| end - start).fold(0, u64::saturating_add),
        edge: if record.kind == Kind::Away { timeline.edge_at(worker, start) } else { record.index },
        aside: record.kind == Kind::Away,
        idleness: (record.kind == Kind::Idle).then(|| Idleness::of(record.detail)),
        explanation: explain(timeline, &record, worker, (start, end), transfer.as_ref()),
        transfer,
    }
}
