//! From measurements to a table without inversions.

use super::{Row, Sample, Way};
use crate::{Algorithm, Kind};
use std::collections::BTreeMap;

/// What is best at one point so far.
#[derive(Clone, Debug)]
struct Best {
    way: Way,
    latency_ns: f64,
    reason: String,
}

type Points = BTreeMap<(Kind, u32, u64), Best>;

/// The fastest way at each measured point, such that, in the figures of the result, for each group size:
///
/// - more bytes of one operation take at least as long;
/// - a barrier takes at most as long as any operation that synchronises;
/// - a broadcast and a reduce take at most as long as an allreduce of as many bytes;
/// - an allreduce takes at most as long as a reduce and a broadcast of as many bytes that synchronise.
///
/// Eager algorithms come in last: what they take in a row of operations says how often, not how soon, so nothing is made
/// of them but what they are.
///
/// Each repair replaces a way by one that is at least as good and can be executed: an algorithm that did better with
/// more bytes, a dearer operation, or two cheaper ones.
pub(super) fn repair(samples: &[Sample]) -> Vec<Row> {
    let (eager, others): (Vec<&Sample>, Vec<&Sample>) = samples.iter().partition(|sample| sample.algorithm.eager);
    let mut points = fastest(others.into_iter());
    // Each pass lowers figures to other figures of the table, so it ends; a few passes are enough.
    while fewer_bytes(&mut points) | whole_from_parts(&mut points) | part_as_whole(&mut points) {}
    for (point, best) in fastest(eager.into_iter()) {
        let why = format!("nobody waits for the others in {}", best.way.name(point.0));
        if !lower(&mut points, point, &best, best.way, why) {
            points.entry(point).or_insert(best);
        }
    }
    while fewer_bytes(&mut points) | part_as_whole(&mut points) {}
    points
        .into_iter()
        .map(|((kind, size_max, bytes_max), best)| Row {
            kind,
            size_max,
            bytes_max,
            way: best.way,
            latency_ns: Some(best.latency_ns),
            reason: best.reason,
        })
        .collect()
}

fn fastest<'a>(samples: impl Iterator<Item = &'a Sample>) -> Points {
    let mut by_point: BTreeMap<(Kind, u32, u64), Vec<(f64, Algorithm)>> = BTreeMap::new();
    for sample in samples.filter(|sample| sample.latency_ns.is_finite() && sample.latency_ns > 0.0) {
        let point = by_point.entry((sample.kind, sample.size, sample.bytes)).or_default();
        point.push((sample.latency_ns, sample.algorithm));
    }
    by_point
        .into_iter()
        .filter_map(|(point, mut all)| {
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let &(latency_ns, algorithm) = all.first()?;
            let second = all.iter().find(|(_, other)| *other != algorithm);
            let reason = match second {
                None => "the only one measured".to_owned(),
                Some((ns, other)) => format!("fastest of {}; {} took {ns:.0} ns", all.len(), other.name(point.0)),
            };
            Some((point, Best { way: Way::Direct(algorithm), latency_ns, reason }))
        })
        .collect()
}

/// Replaces what is slower than `other`, which does at least as much.
fn lower(points: &mut Points, point: (Kind, u32, u64), other: &Best, way: Way, why: String) -> bool {
    match points.get_mut(&point) {
        Some(best) if best.latency_ns > other.latency_ns => {
            let reason = format!(
                "{why}, which takes {:.0} ns; {} took {:.0}",
                other.latency_ns,
                best.way.name(point.0),
                best.latency_ns
            );
            *best = Best { way, latency_ns: other.latency_ns, reason };
            true
        }
        _ => false,
    }
}

/// What is quick with more bytes is not slower with fewer.
fn fewer_bytes(points: &mut Points) -> bool {
    let mut changed = false;
    let known: Vec<_> = points.keys().copied().collect();
    for pair in known.windows(2).rev() {
        let [fewer, more] = [pair[0], pair[1]];
        if (fewer.0, fewer.1) == (more.0, more.1) {
            let other = points[&more].clone();
            changed |= lower(points, fewer, &other, other.way, format!("as with {} bytes", more.2));
        }
    }
    changed
}

/// An allreduce is not slower than a reduce and a broadcast.
fn whole_from_parts(points: &mut Points) -> bool {
    let mut changed = false;
    let known: Vec<_> = points.keys().copied().filter(|point| point.0 == Kind::Allreduce).collect();
    for point in known {
        let part = |kind| points.get(&(kind, point.1, point.2));
        if let (Some(up), Some(down)) = (part(Kind::Reduce), part(Kind::Broadcast))
            && let (Way::Direct(a), Way::Direct(b)) = (up.way, down.way)
        {
            let both = Best { latency_ns: up.latency_ns + down.latency_ns, ..up.clone() };
            let way = Way::ReduceBroadcast(a, b);
            changed |= lower(points, point, &both, way, "a reduce and then a broadcast".into());
        }
    }
    changed
}

/// A part of an operation is not slower than the whole.
fn part_as_whole(points: &mut Points) -> bool {
    let mut changed = false;
    let known: Vec<_> = points.keys().copied().collect();
    for &point in &known {
        let other = points[&point].clone();
        let Way::Direct(algorithm) = other.way else { continue };
        let (kind, size, bytes) = point;
        if kind == Kind::Allreduce {
            for part in [Kind::Broadcast, Kind::Reduce] {
                let why = format!("as an allreduce by {}", algorithm.name(kind));
                changed |= lower(points, (part, size, bytes), &other, Way::Allreduce(algorithm), why);
            }
        }
        // An operation on no bytes is the barrier of the same shape.
        let still = Algorithm { optimised: false, ..algorithm };
        if kind != Kind::Barrier && !algorithm.eager && still.performs(Kind::Barrier).is_ok() {
            let why = format!("part of {} of {bytes} bytes", algorithm.name(kind));
            changed |= lower(points, (Kind::Barrier, size, 0), &other, Way::Direct(still), why);
        }
    }
    changed
}
