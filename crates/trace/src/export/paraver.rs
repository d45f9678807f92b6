//! Paraver's three files. One application: its first task has a thread for each worker, its second one for each edge, and the last,
//! where the operating system was observed, has one for each worker again, which shows what that did with it.
//! What a worker does are its states; which task, which edge, which transfer and what a policy decided are events;
//! transfers are communications between the thread of the edge and that of the worker that issued them. Times are in nanoseconds.

use std::io;

use super::{Nanoseconds, Out, lanes};
use crate::analysis::Timeline;
use crate::record::{Activity, Flow, Idleness, Kind, Record, Taken};

/// States: number, label, colour.
const STATES: [(u32, &str, &str); 12] = [
    (0, "Edge at rest", "{117,195,255}"),
    (1, "Leaf", "{0,0,255}"),
    (2, "Waiting for a transfer", "{255,0,0}"),
    (3, "Idle", "{255,255,174}"),
    (4, "Runtime", "{179,0,0}"),
    (5, "Journal", "{0,255,0}"),
    (6, "Waking up", "{255,144,26}"),
    (7, "Edge moving bytes", "{0,100,0}"),
    (8, "On a processor", "{205,231,205}"),
    (9, "Set aside by the operating system", "{179,38,30}"),
    (10, "Waiting by itself", "{185,179,201}"),
    (11, "Woken, not yet running", "{232,163,61}"),
];

const TASK: u32 = 42_000_001;
const CALL: u32 = 42_000_002;
const EDGE: u32 = 42_000_003;
const TRANSFER: u32 = 42_000_004;
const DECISION: u32 = 42_000_005;
const GIVEN: u32 = 42_000_006;

fn state(record: &Record) -> u32 {
    match record.kind {
        Kind::Leaf => 1,
        Kind::Wait => 2,
        Kind::Idle if Idleness::of(record.detail) == Idleness::Start => 6,
        Kind::Idle => 3,
        _ if Activity::of(record.detail) == Activity::Journal => 5,
        _ => 4,
    }
}

/// A line of the `.prv` file, small enough to sort a million of them.
#[derive(Clone, Copy)]
enum Line {
    /// Thread, end, state.
    State(u32, u32, u64, u32),
    /// Worker, the record whose beginning it is.
    Begin(u32, usize),
    /// Worker, the record whose end it is, if nothing begins at once.
    End(u32, usize),
    /// Worker, the record of a decision.
    Decided(u32, usize),
    /// A transfer.
    Communication(usize),
}

/// The trace itself.
pub(super) fn write_prv(timeline: &Timeline<'_>, out: Out<'_>) -> io::Result<()> {
    let trace = timeline.trace;
    let ns = Nanoseconds::of(trace);
    let end = ns.at(trace.stop());
    let (workers, edges) = (trace.workers().max(1), trace.header.edges.len());
    let date = date(trace.header.clock.unix_ns);
    let is_observed = trace.end.observed.by.is_some();
    let mut tasks = vec![format!("{workers}:1")];
    tasks.extend((edges > 0).then(|| format!("{edges}:1")));
    tasks.extend(is_observed.then(|| format!("{workers}:1")));
    writeln!(out, "#Paraver ({date}):{end}_ns:1({workers}):1:{}({})", tasks.len(), tasks.join(","))?;

    let mut lines: Vec<(u64, Line)> = Vec::new();
    for (worker, lane) in timeline.lanes.iter().enumerate() {
        let thread = worker as u32 + 1;
        let mut reached = 0;
        let mut states = |lines: &mut Vec<(u64, Line)>, from: u64, to: u64, state: u32| {
            if from > reached {
                lines.push((reached, Line::State(1, thread, from, 4)));
            }
            if to > from {
                lines.push((from, Line::State(1, thread, to, state)));
            }
            reached = reached.max(to);
        };
        // What is shorter than a nanosecond has no length in this format.
        let lane: Vec<_> = lane.iter().filter(|span| ns.at(span.start) < ns.at(span.end)).collect();
        for (i, span) in lane.iter().enumerate() {
            let (from, to) = (ns.at(span.start), ns.at(span.end));
            states(&mut lines, from, to, state(timeline.record(span)));
            lines.push((from, Line::Begin(thread, span.record)));
            if lane.get(i + 1).is_none_or(|next| ns.at(next.start) > to) {
                lines.push((to, Line::End(thread, span.record)));
            }
        }
        states(&mut lines, end, end, 4);
    }
    for edge in 0..edges {
        let thread = edge as u32 + 1;
        let mut reached = 0;
        let moved = timeline.busy(edge as u16).map_or(&[][..], |busy| busy.intervals());
        for &(from, to) in moved {
            let (from, to) = (ns.at(from), ns.at(to));
            if from > reached {
                lines.push((reached, Line::State(2, thread, from, 0)));
            }
            if to > from {
                lines.push((from, Line::State(2, thread, to, 7)));
            }
            reached = reached.max(to);
        }
        if end > reached {
            lines.push((reached, Line::State(2, thread, end, 0)));
        }
    }
    let kernel = lanes::kernel(timeline);
    for (worker, lane) in kernel.iter().enumerate().filter(|_| is_observed) {
        let (task, thread, mut reached) = (tasks.len() as u32, worker as u32 + 1, 0);
        for &(record, from, to) in lane {
            let (from, to, record) = (ns.at(from), ns.at(to), &trace.records[record]);
            if from > reached {
                lines.push((reached, Line::State(task, thread, from, 8)));
            }
            if to > from {
                let state = match (record.kind, Taken::of(record.detail)) {
                    (Kind::Ready, _) => 11,
                    (_, Taken::Preempted) => 9,
                    _ => 10,
                };
                lines.push((from, Line::State(task, thread, to, state)));
            }
            reached = reached.max(to);
        }
        if end > reached {
            lines.push((reached, Line::State(task, thread, end, 8)));
        }
    }
    for (index, record) in trace.records.iter().enumerate().filter(|(_, record)| record.kind == Kind::Decision) {
        let time = ns.at(record.start.clamp(trace.start(), trace.stop()));
        lines.push((time, Line::Decided(record.worker + 1, index)));
    }
    let known = timeline.moved.iter().enumerate().filter(|(_, moved)| usize::from(moved.edge) < edges);
    lines.extend(known.map(|(index, moved)| (ns.at(moved.issued), Line::Communication(index))));
    // States before events before communications; what ends before what begins.
    lines.sort_by_key(|(time, line)| match *line {
        Line::State(task, thread, ..) => (*time, 0, task, thread, 0),
        Line::End(thread, _) => (*time, 1, 1, thread, 0),
        Line::Begin(thread, _) => (*time, 1, 1, thread, 1),
        Line::Decided(thread, _) => (*time, 1, 1, thread, 2),
        Line::Communication(_) => (*time, 2, 0, 0, 0),
    });
    let mut rest = lines.as_slice();
    while let [(time, line), behind @ ..] = rest {
        rest = behind;
        match *line {
            Line::State(task, thread, until, state) => {
                writeln!(out, "1:{}:1:{task}:{thread}:{time}:{until}:{state}", cpu(task, thread))?;
            }
            Line::Begin(thread, record) | Line::End(thread, record) | Line::Decided(thread, record) => {
                let mut events = Events::default();
                events.add(&trace.records[record], matches!(line, Line::Begin(..)));
                // Events of one thread at one time share a line; the later value of a type is the one that holds.
                while let [
                    (t, Line::Begin(other, record) | Line::End(other, record) | Line::Decided(other, record)),
                    ..,
                ] = rest
                    && (t, *other) == (time, thread)
                {
                    events.add(&trace.records[*record], matches!(rest[0].1, Line::Begin(..)));
                    rest = &rest[1..];
                }
                write!(out, "2:{thread}:1:1:{thread}:{time}")?;
                for (kind, value) in events.0 {
                    write!(out, ":{kind}:{value}")?;
                }
                writeln!(out)?;
            }
            Line::Communication(index) => {
                let moved = &timeline.moved[index];
                let worker = (1, moved.worker + 1);
                let edge = (2, u32::from(moved.edge) + 1);
                let (from, to) = if moved.flow == Flow::Down { (edge, worker) } else { (worker, edge) };
                let bytes = trace.slots.get(moved.slot as usize).map_or(0, |slot| slot.bytes);
                let (started, ended) = (ns.at(moved.started), ns.at(moved.ended));
                writeln!(
                    out,
                    "3:{}:1:{}:{}:{time}:{started}:{}:1:{}:{}:{ended}:{ended}:{bytes}:{}",
                    cpu(from.0, from.1),
                    from.0,
                    from.1,
                    cpu(to.0, to.1),
                    to.0,
                    to.1,
                    moved.number
                )?;
            }
        }
    }
    Ok(())
}

/// The processor of a thread: a worker's own, none for an edge.
fn cpu(task: u32, thread: u32) -> u32 {
    if task == 1 { thread } else { 0 }
}

/// The values that one thread's events take at one time.
#[derive(Default)]
struct Events(Vec<(u32, u64)>);

impl Events {
    fn add(&mut self, record: &Record, begins: bool) {
        let value = |value: u64| if begins { value + 1 } else { 0 };
        match record.kind {
            Kind::Leaf => {
                self.set(TASK, value(u64::from(record.index)));
                self.set(CALL, value(u64::from(record.number)));
            }
            Kind::Wait => {
                self.set(EDGE, value(u64::from(record.index)));
                self.set(TRANSFER, value(u64::from(record.number)));
            }
            // A moment: it says nothing about what the worker does.
            Kind::Decision => {
                self.set(DECISION, u64::from(record.detail) + 1);
                self.set(GIVEN, u64::from(record.decided().workers) + 1);
            }
            // The others have no values of their own: whatever was before is over.
            _ => [TASK, EDGE].into_iter().for_each(|kind| self.set(kind, 0)),
        }
        if begins {
            // What did not begin has ended.
            match record.kind {
                Kind::Leaf => self.set(EDGE, 0),
                Kind::Wait => self.set(TASK, 0),
                _ => {}
            }
        }
    }

    fn set(&mut self, kind: u32, value: u64) {
        match self.0.iter_mut().find(|(k, _)| *k == kind) {
            Some(event) => event.1 = value,
            None => self.0.push((kind, value)),
        }
    }
}

/// What the numbers of the trace mean.
pub(super) fn write_pcf(timeline: &Timeline<'_>, out: Out<'_>) -> io::Result<()> {
    let header = &timeline.trace.header;
    writeln!(out, "DEFAULT_OPTIONS\n")?;
    writeln!(out, "LEVEL               THREAD")?;
    writeln!(out, "UNITS               NANOSEC")?;
    writeln!(out, "LOOK_BACK           100")?;
    writeln!(out, "SPEED               1")?;
    writeln!(out, "FLAG_ICONS          ENABLED")?;
    writeln!(out, "NUM_OF_STATE_COLORS 1000")?;
    writeln!(out, "YMAX_SCALE          37\n\n")?;
    writeln!(out, "DEFAULT_SEMANTIC\n")?;
    writeln!(out, "THREAD_FUNC         State As Is\n\n")?;
    writeln!(out, "STATES")?;
    for (number, label, _) in STATES {
        writeln!(out, "{number:<4} {label}")?;
    }
    writeln!(out, "\n\nSTATES_COLOR")?;
    for (number, _, colour) in STATES {
        writeln!(out, "{number:<4} {colour}")?;
    }
    let mut table = |number: u32, label: &str, names: &mut dyn Iterator<Item = String>| -> io::Result<()> {
        writeln!(out, "\n\nEVENT_TYPE\n9    {number}    {label}")?;
        let mut values = names.zip(1..).peekable();
        if values.peek().is_some() {
            writeln!(out, "VALUES\n0      none")?;
        }
        values.try_for_each(|(name, value)| writeln!(out, "{value:<6} {}", one_line(&name)))
    };
    table(TASK, "Task", &mut header.tasks.iter().cloned())?;
    table(CALL, "Call, counted from 1", &mut std::iter::empty())?;
    table(EDGE, "Edge that is waited for", &mut header.edges.iter().map(|edge| edge.name.clone()))?;
    table(TRANSFER, "Transfer that is waited for, counted from 1", &mut std::iter::empty())?;
    if !timeline.trace.records.iter().any(|record| record.kind == Kind::Decision) {
        return Ok(());
    }
    table(DECISION, "Reason of a decision", &mut header.reasons.iter().cloned())?;
    let given = |count: u32| if count == 0 { "waits".to_owned() } else { format!("{count} workers") };
    table(GIVEN, "Workers that a task is given", &mut (0..=header.workers.len() as u32).map(given))
}

/// What the rows are called.
pub(super) fn write_row(timeline: &Timeline<'_>, out: Out<'_>) -> io::Result<()> {
    let (header, is_observed) = (&timeline.trace.header, timeline.trace.end.observed.by.is_some());
    let workers: Vec<String> = match header.workers.is_empty() {
        true => vec!["worker 0".into()],
        false => header.workers.clone(),
    };
    let edges = header.edges.iter().map(|edge| edge.name.clone());
    let kernel = workers.iter().map(|worker| format!("{worker}, kernel")).filter(|_| is_observed);
    let threads: Vec<String> = workers.iter().cloned().chain(edges).chain(kernel).collect();
    let mut tasks = vec!["workers".to_owned()];
    tasks.extend((!header.edges.is_empty()).then(|| "edges".to_owned()));
    tasks.extend(is_observed.then(|| "kernel".to_owned()));
    let node = if header.machine.is_empty() { "node".into() } else { header.machine.clone() };
    for (level, names) in [("CPU", workers), ("NODE", vec![node]), ("TASK", tasks), ("THREAD", threads)] {
        writeln!(out, "LEVEL {level} SIZE {}", names.len())?;
        for name in names {
            writeln!(out, "{}", one_line(&name))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn one_line(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if name.trim().is_empty() { "-".into() } else { name }
}

/// Day, month, year, hour and minute, UTC, as Paraver writes them. Days to a date as in Howard Hinnant's
/// "chrono-compatible low-level date algorithms", `civil_from_days`.
fn date(unix_ns: u64) -> String {
    let minutes = unix_ns / 60_000_000_000;
    let days = minutes / (24 * 60) + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{day:02}/{month:02}/{year:04} at {:02}:{:02}", minutes / 60 % 24, minutes % 60)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        assert_eq!(super::date(0), "01/01/1970 at 00:00");
        assert_eq!(super::date(951_827_696 * 1_000_000_000), "29/02/2000 at 12:34");
        assert_eq!(super::date(1_735_689_599 * 1_000_000_000), "31/12/2024 at 23:59");
    }
}
