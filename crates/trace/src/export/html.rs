//! One page with the trace in it: no other file, no network. The page's own code is in `html/`.
//!
//! A page stays usable because what it holds is bounded: the longest spans of all are kept one by one, shorter ones
//! between them are summed up by kind over stretches of time.

use std::io;

use serde_json::{Value, json};

use super::{Nanoseconds, Out, lanes};
use crate::analysis::{Analysis, Step, Timeline};
use crate::record::{Activity, Flow, Idleness, Kind, Taken};

/// Spans that are kept one by one.
const SPANS_MAX: usize = 150_000;
/// Over at least this part of the run shorter spans are summed up.
const STRETCHES: u64 = 20_000;
/// Steps of the critical path that are drawn.
const STEPS_MAX: usize = 20_000;
/// Rows for the overlapping transfers of one edge.
const ROWS_MAX: usize = 12;
/// Decisions that are drawn: those of each worker that differ from its last one before.
const DECISIONS_MAX: usize = 20_000;
/// Stalls in the list.
const STALLS_MAX: usize = 25;

/// Kinds in the numbers of the page.
const LEAF: u8 = 0;
const WAIT: u8 = 1;
const IDLE: u8 = 2;
const RUNTIME: u8 = 3;
const JOURNAL: u8 = 4;
const FETCH: u8 = 5;
const STORE: u8 = 6;
const QUEUE: u8 = 7;
const ASIDE: u8 = 8;
const ASLEEP: u8 = 9;
const WOKEN: u8 = 10;
const MANY: u8 = 11;

/// A span of the page: times in nanoseconds, a kind, the task or edge, the number, the label (an index).
#[derive(Clone, Copy)]
struct Shape {
    start: u64,
    end: u64,
    kind: u8,
    index: i64,
    number: u64,
    label: i64,
}

/// Texts, each once.
#[derive(Default)]
struct Labels {
    texts: Vec<String>,
    known: std::collections::HashMap<String, i64>,
}

impl Labels {
    fn add(&mut self, text: String) -> i64 {
        let next = self.texts.len() as i64;
        let number = *self.known.entry(text.clone()).or_insert(next);
        if number == next {
            self.texts.push(text);
        }
        number
    }
}

/// Writes the page.
pub(super) fn write(timeline: &Timeline<'_>, out: Out<'_>) -> io::Result<()> {
    let title = format!("Multigrain: {}", timeline.trace.header.program);
    let data = data(timeline).to_string();
    let template = include_str!("html/page.html");
    let mut rest = template;
    // Nothing that is put in may be taken for a place to put something in, nor end the element that it is in.
    while let Some((before, behind)) = rest.split_once('@') {
        let Some((name, after)) = behind.split_once('@') else { break };
        out.write_all(before.as_bytes())?;
        match name {
            "TITLE" => out.write_all(escaped(&title).as_bytes())?,
            "STYLE" => out.write_all(include_str!("html/style.css").as_bytes())?,
            "SCRIPT" => out.write_all(include_str!("html/view.js").as_bytes())?,
            "DATA" => out.write_all(data.replace('<', "\\u003c").as_bytes())?,
            _ => write!(out, "@{name}@")?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn data(timeline: &Timeline<'_>) -> Value {
    let trace = timeline.trace;
    let header = &trace.header;
    let ns = Nanoseconds::of(trace);
    let length = |ticks: u64| ns.length(ticks);
    let analysis = Analysis::of(trace, STALLS_MAX);
    let mut labels = Labels::default();
    let mut drawn = worker_lanes(timeline, &ns, &mut labels);
    let is_observed = trace.end.observed.by.is_some();
    let each = if is_observed { 2 } else { 1 };
    if is_observed {
        let kernel = kernel_lanes(timeline, &ns, &mut labels);
        drawn = drawn.into_iter().zip(kernel).flat_map(|(worker, below)| [worker, below]).collect();
    }
    let workers = drawn.len();
    drawn.extend(edge_lanes(timeline, &ns, &mut labels));
    let decisions = decisions(timeline, &ns, &mut labels);
    let short = threshold(drawn.iter().map(|(.., shapes)| shapes.as_slice()), SPANS_MAX);
    let wall = ns.at(trace.stop());
    let lanes: Vec<Value> = drawn
        .iter()
        .enumerate()
        .map(|(i, (name, number, shapes))| {
            let whose = if i < workers { "worker" } else { "edge" };
            let mut lane = lane(shapes, short, (wall / STRETCHES).max(1));
            if i < workers && i % each > 0 {
                lane["kernel"] = json!(true);
            }
            lane["name"] = json!(name);
            lane[whose] = json!(number);
            lane
        })
        .collect();
    let worker = |(number, times): (usize, &crate::analysis::WorkerTimes)| {
        let idle = times.idle.iter().sum::<u64>();
        let parts = [times.leaf, times.waited(), idle, times.journal, times.runtime].map(length);
        json!({ "name": header.worker(number as u32), "parts": parts })
    };
    json!({
        "program": header.program,
        "machine": header.machine,
        "wall_ns": wall,
        "records": trace.records.len(),
        "dropped": trace.end.dropped,
        "advice": analysis.advice(trace),
        "drawn_together_ns": short,
        "tasks": header.tasks,
        "labels": labels.texts,
        "lanes": lanes,
        "decisions": decisions,
        "workers": analysis.workers.iter().enumerate().map(worker).collect::<Vec<_>>(),
        "edges": analysis.edges.iter().map(|edge| json!({
            "name": edge.name,
            "busy_ns": length(edge.busy),
            "bytes_down": edge.bytes_down,
            "bytes_up": edge.bytes_up,
            "transfers": edge.transfers,
            "waited_ns": length(edge.waited),
            "overhead_ns": length(edge.overhead),
        })).collect::<Vec<_>>(),
        "shares": analysis.path.shares().into_iter().map(|(kind, ticks)| json!({
            "what": kind.name(header),
            "ns": length(ticks),
        })).collect::<Vec<_>>(),
        "path": path(&analysis.path.steps, &ns),
        "stalls": analysis.stalls.iter().map(|stall| json!({
            "start": ns.at(stall.start),
            "length": ns.at(stall.end) - ns.at(stall.start),
            "workers": stall.workers,
            "who": stall.who(header),
            "edge": header.edge(stall.edge),
            "what": stall.what(),
            "cause": stall.explanation.cause.name(),
            "shown": stall.explanation.shown,
            "remedy": stall.explanation.remedy,
        })).collect::<Vec<_>>(),
    })
}

/// What a policy decided, where that changed: time, worker, label of the reason, workers given, strand.
fn decisions(timeline: &Timeline<'_>, ns: &Nanoseconds, labels: &mut Labels) -> Vec<[i64; 5]> {
    let trace = timeline.trace;
    let mut last: Vec<Option<(u8, u32)>> = vec![None; timeline.lanes.len()];
    let mut drawn = Vec::new();
    for record in trace.records.iter().filter(|record| record.kind == Kind::Decision) {
        let decided = record.decided();
        let now = Some((record.detail, decided.workers));
        let Some(last) = last.get_mut(record.worker as usize).filter(|last| **last != now) else { continue };
        *last = now;
        let time = ns.at(record.start.clamp(trace.start(), trace.stop()));
        let label = labels.add(trace.header.reason(record.detail));
        drawn.push([time as i64, record.worker.into(), label, decided.workers.into(), decided.strand.into()]);
        if drawn.len() == DECISIONS_MAX {
            break;
        }
    }
    drawn
}

type Lane = (String, usize, Vec<Shape>);

fn worker_lanes(timeline: &Timeline<'_>, ns: &Nanoseconds, labels: &mut Labels) -> Vec<Lane> {
    let trace = timeline.trace;
    let edge = |index: u16| if usize::from(index) < trace.header.edges.len() { i64::from(index) } else { -1 };
    let lanes = timeline.lanes.iter().enumerate();
    lanes
        .map(|(worker, lane)| {
            let shape = |span: &crate::analysis::Span| {
                let record = timeline.record(span);
                let (kind, label) = match record.kind {
                    Kind::Leaf => (LEAF, -1),
                    Kind::Wait => {
                        let block = timeline.awaited(record).and_then(|moved| trace.block_name(moved.slot));
                        (WAIT, block.map_or(-1, |block| labels.add(block)))
                    }
                    Kind::Idle => (IDLE, labels.add(Idleness::of(record.detail).name().to_owned())),
                    _ if Activity::of(record.detail) == Activity::Journal => (JOURNAL, -1),
                    _ => (RUNTIME, -1),
                };
                let index = if kind == LEAF { i64::from(record.index) } else { edge(record.index) };
                let (start, end) = (ns.at(span.start), ns.at(span.end));
                Shape { start, end, kind, index, number: u64::from(record.number), label }
            };
            (trace.header.worker(worker as u32), worker, lane.iter().map(shape).collect())
        })
        .collect()
}

/// For each worker what the operating system did with it.
fn kernel_lanes(timeline: &Timeline<'_>, ns: &Nanoseconds, labels: &mut Labels) -> Vec<Lane> {
    let trace = timeline.trace;
    let mut out = Vec::new();
    for (worker, lane) in lanes::kernel(timeline).into_iter().enumerate() {
        let mut shapes: Vec<Shape> = Vec::with_capacity(lane.len());
        for (index, start, end) in lane {
            let record = &trace.records[index];
            let kind = match (record.kind, Taken::of(record.detail)) {
                (Kind::Ready, _) => WOKEN,
                (_, Taken::Preempted) => ASIDE,
                _ => ASLEEP,
            };
            let (start, end) = (ns.at(start), ns.at(end));
            let label = labels.add(lanes::told(timeline, record));
            shapes.push(Shape { start, end, kind, index: -1, number: u64::from(record.number), label });
        }
        out.push((format!("{}, kernel", trace.header.worker(worker as u32)), worker, shapes));
    }
    out
}

fn edge_lanes(timeline: &Timeline<'_>, ns: &Nanoseconds, labels: &mut Labels) -> Vec<Lane> {
    let trace = timeline.trace;
    let mut out = Vec::new();
    for (edge, rows) in lanes::transfers(timeline, ROWS_MAX).into_iter().enumerate() {
        for (number, row) in rows.into_iter().enumerate() {
            let mut shapes: Vec<Shape> = Vec::with_capacity(row.len());
            for moved in row.iter().map(|&index| &timeline.moved[index]) {
                let label = trace.block_name(moved.slot).map_or(-1, |block| labels.add(block));
                // Transfers that found no free row overlap what is in the last one: what is left of them is drawn.
                let reached = shapes.last().map_or(0, |last| last.end);
                let mut part = |from: u64, to: u64, kind: u8| {
                    let start = ns.at(from).max(reached);
                    if ns.at(to) > start {
                        let number = u64::from(moved.number);
                        shapes.push(Shape { start, end: ns.at(to), kind, index: edge as i64, number, label });
                    }
                };
                part(moved.issued, moved.started, QUEUE);
                part(moved.started, moved.ended, if moved.flow == Flow::Down { FETCH } else { STORE });
            }
            let name = &trace.header.edges[edge].name;
            let name = if number == 0 { name.clone() } else { format!("{name}, {}", number + 1) };
            out.push((name, edge, shapes));
        }
    }
    out
}

/// The length below which spans are summed up, so that at most `most` are not; 0 if all can be kept.
fn threshold<'a>(lanes: impl Iterator<Item = &'a [Shape]>, most: usize) -> u64 {
    let mut lengths: Vec<u64> = lanes.flatten().map(|shape| shape.end - shape.start).collect();
    if lengths.len() <= most {
        return 0;
    }
    let cut = lengths.len() - most;
    *lengths.select_nth_unstable(cut - 1).1 + 1
}

/// A lane as columns: starts as differences, lengths, kinds, indices, numbers, labels, and sums for those that stand
/// for many.
fn lane(shapes: &[Shape], short: u64, stretch: u64) -> Value {
    let mut columns: [Vec<i64>; 6] = Default::default();
    let mut sums: Vec<[u64; MANY as usize + 1]> = Vec::new();
    let mut reached = 0;
    let mut push = |shape: Shape| {
        let row = [
            (shape.start - reached) as i64,
            (shape.end - shape.start) as i64,
            i64::from(shape.kind),
            shape.index,
            shape.number as i64,
            shape.label,
        ];
        reached = shape.start;
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    };
    let mut open: Option<Shape> = None;
    for shape in shapes {
        if shape.end - shape.start >= short {
            open.take().into_iter().for_each(&mut push);
            push(*shape);
            continue;
        }
        let mut many = match open.take() {
            Some(many) if many.end - many.start < stretch => many,
            before => {
                before.into_iter().for_each(&mut push);
                sums.push([0; MANY as usize + 1]);
                Shape { kind: MANY, index: sums.len() as i64 - 1, number: 0, label: -1, ..*shape }
            }
        };
        let sum = &mut sums[many.index as usize];
        sum[0] += 1;
        sum[usize::from(shape.kind) + 1] += shape.end - shape.start;
        many.end = shape.end;
        open = Some(many);
    }
    open.into_iter().for_each(&mut push);
    let [s, d, k, x, n, l] = columns;
    json!({ "s": s, "d": d, "k": k, "x": x, "n": n, "l": l, "g": sums })
}

/// The critical path as start, length, worker; neighbours on one worker are one, and short ones are left out where there
/// are too many.
fn path(steps: &[Step], ns: &Nanoseconds) -> Vec<[u64; 3]> {
    let mut path: Vec<[u64; 3]> = Vec::new();
    for step in steps {
        let (start, end) = (ns.at(step.start), ns.at(step.end));
        match path.last_mut() {
            Some([from, length, worker]) if *worker == u64::from(step.worker) && *from + *length == start => {
                *length = end - *from;
            }
            _ => path.push([start, end - start, u64::from(step.worker)]),
        }
    }
    if path.len() > STEPS_MAX {
        let mut lengths: Vec<u64> = path.iter().map(|step| step[1]).collect();
        let least = *lengths.select_nth_unstable(path.len() - STEPS_MAX).1;
        path.retain(|step| step[1] >= least);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::StepKind;

    fn shape(start: u64, end: u64, kind: u8) -> Shape {
        Shape { start, end, kind, index: 0, number: 1, label: -1 }
    }

    #[test]
    fn short_spans_are_summed_up_and_none_is_lost() {
        let mut shapes = vec![shape(0, 100, LEAF)];
        shapes.extend((0..50).map(|i| shape(100 + 10 * i, 105 + 10 * i, if i % 2 == 0 { LEAF } else { WAIT })));
        shapes.push(shape(700, 900, WAIT));
        assert_eq!(threshold([shapes.as_slice()].into_iter(), 52), 0);
        let short = threshold([shapes.as_slice()].into_iter(), 2);
        assert_eq!(short, 6);
        let lane = lane(&shapes, short, 200);
        let kinds: Vec<u64> = lane["k"].as_array().unwrap().iter().map(|k| k.as_u64().unwrap()).collect();
        assert_eq!(kinds, [0, MANY.into(), MANY.into(), MANY.into(), 1]);
        let counts: u64 = lane["g"].as_array().unwrap().iter().map(|g| g[0].as_u64().unwrap()).sum();
        let leaf: u64 = lane["g"].as_array().unwrap().iter().map(|g| g[1].as_u64().unwrap()).sum();
        assert_eq!((counts, leaf), (50, 125));
        let starts: u64 = lane["s"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).sum();
        assert_eq!(starts, 700);
    }

    #[test]
    fn a_long_path_keeps_its_longest_parts() {
        let ns = Nanoseconds { start: 0, per_tick: 1.0 };
        let mut steps = Vec::new();
        let mut t = 0;
        for i in 0..50_000_u32 {
            let length = 1 + u64::from(i % 7);
            steps.push(Step { start: t, end: t + length, worker: i % 2, kind: StepKind::Leaf(0), record: None });
            t += length;
        }
        let kept = path(&steps, &ns);
        assert!(kept.len() >= STEPS_MAX && kept.len() < 50_000);
        assert!(kept.iter().all(|step| step[1] >= 4));
    }
}
