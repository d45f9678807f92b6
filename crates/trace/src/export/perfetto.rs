//! The Trace Event Format of Chrome's tracing: complete events, flows and metadata, times in microseconds.
//!
//! Workers are the threads of one process, each edge is a process of its own with as many rows as transfers overlap. A
//! flow leads from a transfer to the wait that it ended. Decisions of a policy are instants of the thread that decided. What the
//! operating system did with a worker is a thread below the worker's.

use std::collections::HashMap;
use std::fmt;
use std::io;

use serde_json::{Value, json};

use super::lanes;
use super::{Nanoseconds, Out};
use crate::analysis::Timeline;
use crate::record::{Activity, Idleness, Kind, Record};

const WORKERS: u32 = 1;
const FIRST_EDGE: u32 = 2;
/// Rows of one edge: more overlap than any queue allows would be unreadable.
const ROWS_MAX: usize = 64;

/// Nanoseconds as microseconds with all their digits.
struct Us(u64);

impl fmt::Display for Us {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A worker's wait: the worker, from when to when.
type Waited = (usize, u64, u64);

struct Writer<'a, 'b> {
    out: Out<'a>,
    first: bool,
    ns: &'b Nanoseconds,
}

impl Writer<'_, '_> {
    fn event(&mut self, event: fmt::Arguments<'_>) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        self.out.write_all(comma.as_bytes())?;
        self.out.write_fmt(event)
    }

    fn name(&mut self, what: &str, pid: u32, tid: u32, name: &str) -> io::Result<()> {
        let name = Value::from(name);
        self.event(format_args!(r#"{{"ph":"M","name":"{what}","pid":{pid},"tid":{tid},"args":{{"name":{name}}}}}"#))
    }

    /// The place of a worker's thread among the others.
    fn sort(&mut self, tid: u32, place: u32) -> io::Result<()> {
        self.event(format_args!(
            r#"{{"ph":"M","name":"thread_sort_index","pid":{WORKERS},"tid":{tid},"args":{{"sort_index":{place}}}}}"#
        ))
    }

    fn slice(&mut self, pid: u32, tid: u32, times: (u64, u64), what: (&str, &str), args: &Value) -> io::Result<()> {
        let (name, category) = what;
        let (start, end) = (self.ns.at(times.0), self.ns.at(times.1));
        let (start, length, name) = (Us(start), Us(end - start), Value::from(name));
        self.event(format_args!(
            r#"{{"ph":"X","name":{name},"cat":"{category}","pid":{pid},"tid":{tid},"ts":{start},"dur":{length},"args":{args}}}"#
        ))
    }
}

/// Writes the whole trace.
pub(super) fn write(timeline: &Timeline<'_>, out: Out<'_>) -> io::Result<()> {
    let trace = timeline.trace;
    let ns = Nanoseconds::of(trace);
    let other = json!({
        "program": trace.header.program,
        "machine": trace.header.machine,
        "clock": trace.header.clock.name,
        "dropped_records": trace.end.dropped,
    });
    write!(out, r#"{{"displayTimeUnit":"ns","otherData":{other},"traceEvents":["#)?;
    let mut writer = Writer { out, first: true, ns: &ns };
    let program = if trace.header.program.is_empty() { "run" } else { &trace.header.program };
    writer.name("process_name", WORKERS, 0, program)?;
    // Behind the workers' own threads, below each by its place.
    let kernel = trace.workers() as u32 + 1;
    for worker in 0..trace.workers() as u32 {
        writer.name("thread_name", WORKERS, worker + 1, &trace.header.worker(worker))?;
        if trace.end.observed.by.is_some() {
            writer.name(
                "thread_name",
                WORKERS,
                kernel + worker,
                &format!("{}, kernel", trace.header.worker(worker)),
            )?;
            writer.sort(worker + 1, 2 * worker)?;
            writer.sort(kernel + worker, 2 * worker + 1)?;
        }
    }
    if trace.end.observed.by.is_some() {
        for (worker, lane) in lanes::kernel(timeline).iter().enumerate() {
            for &(index, start, end) in lane {
                let record = &trace.records[index];
                let args = json!({ "processor": (record.kind == Kind::Away).then_some(record.number) });
                let name = lanes::told(timeline, record);
                writer.slice(WORKERS, kernel + worker as u32, (start, end), (&name, record.kind.name()), &args)?;
            }
        }
        for record in trace.records.iter().filter(|record| lanes::is_of_kernel(record)) {
            let (name, tid) = (Value::from(lanes::told(timeline, record)), kernel + record.worker);
            let ts = Us(ns.at(record.start.clamp(trace.start(), trace.stop())));
            writer.event(format_args!(
                r#"{{"ph":"i","s":"t","name":{name},"cat":"kernel","pid":{WORKERS},"tid":{tid},"ts":{ts}}}"#
            ))?;
        }
    }
    for (worker, lane) in lanes::nested(timeline).iter().enumerate() {
        for &(index, start, end) in lane {
            let record = &trace.records[index];
            let (name, args) = described(timeline, record);
            writer.slice(WORKERS, worker as u32 + 1, (start, end), (&name, record.kind.name()), &args)?;
        }
    }
    for record in trace.records.iter().filter(|record| record.kind == Kind::Decision) {
        let (name, time, tid) = (Value::from(trace.header.reason(record.detail)), record.start, record.worker + 1);
        let decided = record.decided();
        let args = json!({
            "kind": trace.header.task(record.index),
            "task": record.number,
            "strand": decided.strand,
            "workers": decided.workers,
        });
        let ts = Us(ns.at(time.clamp(trace.start(), trace.stop())));
        writer.event(format_args!(
            r#"{{"ph":"i","s":"t","name":{name},"cat":"decision","pid":{WORKERS},"tid":{tid},"ts":{ts},"args":{args}}}"#
        ))?;
    }
    // Waits by the transfer that they were for.
    let mut waits: HashMap<(u32, u32), Vec<Waited>> = HashMap::new();
    for (worker, lane) in timeline.lanes.iter().enumerate() {
        for span in lane {
            let record = timeline.record(span);
            if record.kind == Kind::Wait {
                waits.entry((record.subject, record.number)).or_default().push((worker, span.start, span.end));
            }
        }
    }
    let mut flow = 0_u64;
    for (edge, rows) in lanes::transfers(timeline, ROWS_MAX).iter().enumerate() {
        let pid = FIRST_EDGE + edge as u32;
        writer.name("process_name", pid, 0, &trace.header.edges[edge].name)?;
        for (row, transfers) in rows.iter().enumerate() {
            let tid = row as u32 + 1;
            writer.name("thread_name", pid, tid, &format!("transfers {tid}"))?;
            for moved in transfers.iter().map(|&index| &timeline.moved[index]) {
                let block = trace.block_name(moved.slot).unwrap_or_else(|| "block".into());
                let bytes = trace.slots.get(moved.slot as usize).map(|slot| slot.bytes);
                let args = json!({
                    "transfer": moved.number,
                    "worker": moved.worker,
                    "bytes": bytes,
                    "queued_us": (ns.at(moved.started) - ns.at(moved.issued)) as f64 / 1e3,
                });
                let name = format!("{} {block}", moved.flow.name());
                writer.slice(pid, tid, (moved.issued, moved.ended), (&name, "transfer"), &args)?;
                let ended = waits.get(&(moved.worker, moved.number)).map_or(&[][..], Vec::as_slice);
                for &(worker, start, end) in ended {
                    // An arrow begins within the transfer and ends within the wait, not before it began.
                    let middle = moved.started + (moved.ended - moved.started) / 2;
                    let arrival = start.max(middle);
                    if moved.ended > moved.issued && moved.ended > start && arrival < end {
                        let (from, to) = (Us(ns.at(middle)), Us(ns.at(arrival)));
                        let thread = worker + 1;
                        writer.event(format_args!(
                            r#"{{"ph":"s","name":"ends","cat":"flow","id":{flow},"pid":{pid},"tid":{tid},"ts":{from}}}"#
                        ))?;
                        writer.event(format_args!(
                            r#"{{"ph":"f","bp":"e","name":"ends","cat":"flow","id":{flow},"pid":{WORKERS},"tid":{thread},"ts":{to}}}"#
                        ))?;
                        flow += 1;
                    }
                }
            }
        }
    }
    writer.out.write_all(b"\n]}\n")
}

/// The name of a slice, and its details.
fn described(timeline: &Timeline<'_>, record: &Record) -> (String, Value) {
    let header = &timeline.trace.header;
    match record.kind {
        Kind::Leaf => {
            let args = match &header.strands {
                None => json!({ "call": record.number, "plan": record.subject }),
                Some(_) => json!({ "task": record.number, "chunks": record.subject }),
            };
            (header.task(record.index), args)
        }
        Kind::Call => {
            (format!("call of {}", header.task(record.index)), json!({ "call": record.number, "plan": record.subject }))
        }
        Kind::Scope => (format!("plan of {}", header.edge(record.index)), json!({ "plan": record.subject })),
        Kind::Wait => {
            let moved = timeline.awaited(record);
            let block = moved.and_then(|moved| timeline.trace.block_name(moved.slot));
            let args = json!({ "transfer": record.number, "issued_by": record.subject, "block": block });
            (format!("wait on {}", header.edge(record.index)), args)
        }
        Kind::Idle => {
            let other = (record.subject as usize) < timeline.lanes.len();
            let args =
                json!({ "worker": other.then(|| header.worker(record.subject)), "edge": header.edge(record.index) });
            (format!("idle, waiting for {}", Idleness::of(record.detail).name()), args)
        }
        _ => (Activity::of(record.detail).name().to_owned(), json!({ "edge": header.edge(record.index) })),
    }
}
