//! A run as a trace: for each task a lane of its context and one of its control thread, after figure 4 of Merino-Vidal et al.

use super::{Did, Load, Outcome};
use crate::Time;
use multigrain_machine as described;
use multigrain_trace::{ClockInfo, End, Header, Idleness, Kind, PlanInfo, Record, Trace};

/// Ticks of virtual time in a second: picoseconds.
const TICKS_PER_SECOND: f64 = 1e12;
/// The header's task of a control thread; before it stand the processors.
const CONTROL: &str = "on the host";

/// The trace of a run. A context's leaf is named after the processor that it had; it idles for want of one (`start`), or because it
/// has nothing to do (`spare`).
pub fn trace(machine: &described::Machine, load: &Load, outcome: &Outcome) -> Trace {
    let tasks = load.tasks as u32;
    let processors = outcome.intervals.iter().filter_map(|interval| match interval.what {
        Did::Ran(processor) => Some(processor + 1),
        Did::Waited | Did::Controlled => None,
    });
    let processors = processors.max().unwrap_or(0);
    let names = (0..processors).map(|processor| format!("on processor {processor}"));
    let lanes = |kind: &str| (1..=tasks).map(|task| format!("{kind} {task}")).collect::<Vec<_>>();
    let header = Header {
        program: format!("loops, {}", load.policy),
        machine: machine.name.clone(),
        clock: ClockInfo { name: "virtual".into(), ticks_per_second: TICKS_PER_SECOND, tick: 0, unix_ns: 0 },
        workers: [lanes("context"), lanes("thread")].concat(),
        tasks: names.chain([CONTROL.to_owned()]).collect(),
        plans: vec![PlanInfo { edge: 0, arrays: Vec::new(), calls: tasks }],
        ..Header::default()
    };
    let mut records: Vec<Record> = outcome
        .intervals
        .iter()
        .map(|interval| {
            let (context, thread) = (interval.task, tasks + interval.task);
            let (worker, kind, index, detail) = match interval.what {
                Did::Ran(processor) => (context, Kind::Leaf, processor, 0),
                Did::Waited => (context, Kind::Idle, 0, Idleness::Start as u8),
                Did::Controlled => (thread, Kind::Leaf, processors, 0),
            };
            let (subject, number) = if kind == Kind::Leaf { (0, interval.task) } else { (worker, 0) };
            record(interval.from, interval.to, worker, kind, (index as u16, subject, number, detail))
        })
        .collect();
    records.sort_by_key(|record| (record.worker, record.start, record.end));
    let gaps = gaps(&records, 2 * tasks, outcome.wall);
    records.extend(gaps);
    records.sort_by_key(|record| (record.start, record.worker, u64::MAX - record.end));
    let end = End { tick: outcome.wall.ps(), ..End::default() };
    Trace { header, slots: Vec::new(), uses: Vec::new(), end, records }
}

type Fields = (u16, u32, u32, u8);

fn record(from: Time, to: Time, worker: u32, kind: Kind, (index, subject, number, detail): Fields) -> Record {
    Record { start: from.ps(), end: to.ps(), number, subject, worker, index, kind, detail }
}

/// Where a lane has nothing, it has nothing to do. The records are in order of workers, then starts.
fn gaps(records: &[Record], workers: u32, wall: Time) -> Vec<Record> {
    let mut gaps = Vec::new();
    let mut of = records.iter().peekable();
    for worker in 0..workers {
        let mut last = 0;
        let mut gap = |from: u64, to: u64| {
            if to > from {
                let fields = (0, worker, 0, Idleness::Spare as u8);
                gaps.push(record(Time::from_ps(from), Time::from_ps(to), worker, Kind::Idle, fields));
            }
        };
        while let Some(record) = of.next_if(|record| record.worker == worker) {
            gap(last, record.start);
            last = last.max(record.end);
        }
        gap(last, wall.ps());
    }
    gaps
}
