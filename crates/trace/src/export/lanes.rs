//! Laying out what may overlap.

use crate::analysis::{Moved, Timeline};
use crate::record::{Kind, Record, Taken};
use crate::units;

/// For each edge, the rows in which its transfers can be drawn without overlap: each an index into the timeline's
/// transfers, in order. At most `rows_max`; what finds no free row shares the last.
pub(super) fn transfers(timeline: &Timeline<'_>, rows_max: usize) -> Vec<Vec<Vec<usize>>> {
    let mut edges: Vec<Vec<Vec<usize>>> = vec![Vec::new(); timeline.trace.header.edges.len()];
    let mut order: Vec<usize> = (0..timeline.moved.len()).collect();
    order.sort_by_key(|&i| (timeline.moved[i].issued, timeline.moved[i].ended));
    for index in order {
        let moved: &Moved = &timeline.moved[index];
        let Some(rows) = edges.get_mut(usize::from(moved.edge)) else { continue };
        let free = |row: &Vec<usize>| row.last().is_none_or(|&last| timeline.moved[last].ended <= moved.issued);
        match rows.iter().position(free) {
            Some(row) => rows[row].push(index),
            None if rows.len() < rows_max => rows.push(vec![index]),
            None => {
                if let Some(row) = rows.last_mut() {
                    row.push(index);
                }
            }
        }
    }
    edges
}

/// For each worker when the operating system did not let it run, up to when it had been woken, and from then on: record,
/// start, end, in order and without overlap. Nothing where it was not observed.
pub(super) fn kernel(timeline: &Timeline<'_>) -> Vec<Vec<(usize, u64, u64)>> {
    let trace = timeline.trace;
    let mut lanes: Vec<Vec<(usize, u64, u64)>> = vec![Vec::new(); trace.workers()];
    for (index, record) in trace.records.iter().enumerate() {
        let (start, end) =
            (record.start.clamp(trace.start(), trace.stop()), record.end.clamp(trace.start(), trace.stop()));
        let lane = &mut lanes[record.worker as usize];
        match record.kind {
            // It ends what it lies in.
            Kind::Ready => {
                if let Some(around) = lane.last_mut().filter(|(_, _, until)| *until > start) {
                    around.2 = start.max(around.1);
                }
            }
            Kind::Away => {}
            _ => continue,
        }
        lane.pop_if(|(_, from, until)| from >= until);
        let start = lane.last().map_or(start, |(_, _, until)| start.max(*until));
        if start < end {
            lane.push((index, start, end));
        }
    }
    lanes
}

/// Whether a record is a moment, or a sum, of a worker's kernel lane.
pub(super) fn is_of_kernel(record: &Record) -> bool {
    matches!(record.kind, Kind::Migration | Kind::Faults | Kind::Held | Kind::Request)
}

/// What a record of a kernel lane tells, in words.
pub(super) fn told(timeline: &Timeline<'_>, record: &Record) -> String {
    let name = |other: u32| timeline.trace.end.observed.name(Some(other));
    match (record.kind, Taken::of(record.detail)) {
        (Kind::Away, Taken::Preempted) => format!("set aside for {}", name(record.subject)),
        (Kind::Away, Taken::Blocked) => "waits by itself".to_owned(),
        (Kind::Away, Taken::Unseen) => "not running".to_owned(),
        (Kind::Ready, _) if record.detail == 1 => {
            format!("woken by an interrupt of {}, not running yet", name(record.number))
        }
        (Kind::Ready, _) => format!("woken by {}, not running yet", name(record.number)),
        (Kind::Migration, _) => format!("moved from processor {} to {}", record.subject, record.number),
        (Kind::Faults, _) if record.detail == 1 => format!("{} pages read from a disk", record.number),
        (Kind::Faults, _) => format!("{} pages given memory", record.number),
        (Kind::Held, _) => {
            format!("could have run for {} us and did not, set aside {} times", record.subject, record.number)
        }
        _ => {
            let what = if record.detail == 1 { "written" } else { "read" };
            let (took, bytes) = (timeline.trace.seconds(record.ticks()), u64::from(record.number) * 512);
            format!("{} {what} for {} in {}", units::bytes(bytes), name(record.subject), units::time(took))
        }
    }
}

/// What a worker did and in what, properly nested, outer first: record, start, end. Ends are cut where a record sticks
/// out of the one around it, as no recorder writes them.
pub(super) fn nested(timeline: &Timeline<'_>) -> Vec<Vec<(usize, u64, u64)>> {
    let trace = timeline.trace;
    let mut lanes: Vec<Vec<(usize, u64, u64)>> = timeline
        .lanes
        .iter()
        .map(|lane| lane.iter().map(|span| (span.record, span.start, span.end)).collect())
        .collect();
    for (index, record) in trace.records.iter().enumerate() {
        if matches!(record.kind, Kind::Scope | Kind::Call) {
            let (start, end) =
                (record.start.clamp(trace.start(), trace.stop()), record.end.clamp(trace.start(), trace.stop()));
            if start < end {
                lanes[record.worker as usize].push((index, start, end));
            }
        }
    }
    // What contains comes first: calls contain scopes, scopes contain what a worker did.
    let rank = |index: usize| match trace.records[index].kind {
        Kind::Call => 0,
        Kind::Scope => 1,
        _ => 2,
    };
    for lane in &mut lanes {
        lane.sort_by_key(|&(index, start, end)| (start, u64::MAX - end, rank(index)));
        let mut open: Vec<u64> = Vec::new();
        for (_, start, end) in lane.iter_mut() {
            while open.last().is_some_and(|outer| outer <= start) {
                open.pop();
            }
            *end = open.last().map_or(*end, |outer| (*end).min(*outer));
            open.push(*end);
        }
    }
    lanes
}
