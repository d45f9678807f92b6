//! Laying out what may overlap.

use crate::analysis::{Moved, Timeline};
use crate::record::Kind;

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
