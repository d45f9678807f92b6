//! The Paraver export read back by a reader of its own, after the grammar of Paraver's trace format.

use crate::support;

use multigrain_trace::analysis::Timeline;
use multigrain_trace::export::{Format, write};
use multigrain_trace::{Analysis, Trace};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use support::traces;

/// Application, task, thread; all from 1.
type Thread = (u64, u64, u64);

/// Time, (type, value)s.
type Event = (u64, Vec<(u64, u64)>);
/// Sender, logical and physical send, receiver, logical and physical receive, size.
type Communication = (Thread, [u64; 2], Thread, [u64; 2], u64);

#[derive(Default)]
struct Prv {
    length_ns: u64,
    cpus: Vec<u64>,
    /// Threads of each task of each application.
    applications: Vec<Vec<u64>>,
    /// Thread: begin, end, state.
    states: HashMap<Thread, Vec<(u64, u64, u64)>>,
    events: HashMap<Thread, Vec<Event>>,
    communications: Vec<Communication>,
}

fn numbers(text: &str, separator: char) -> Result<Vec<u64>, String> {
    text.split(separator).map(|n| n.parse::<u64>().map_err(|e| format!("{n:?} in {text:?}: {e}"))).collect()
}

/// `n(inside)` at the start of a text, and what follows.
fn counted(text: &str) -> Result<(u64, &str, &str), String> {
    let bad = || format!("no count with brackets in {text:?}");
    let (count, rest) = text.split_once('(').ok_or_else(bad)?;
    let (inside, rest) = rest.split_once(')').ok_or_else(bad)?;
    Ok((count.parse().map_err(|_| bad())?, inside, rest))
}

impl Prv {
    /// `#Paraver (dd/mm/yyyy at hh:mm):FTIME_ns:nNodes(cpu1,..):nAppl:nTasks(threads:node,..)..[,nComms]`
    fn header(line: &str) -> Result<Prv, String> {
        let rest = line.strip_prefix("#Paraver (").ok_or("no #Paraver")?;
        let (date, rest) = rest.split_once("):").ok_or("no date")?;
        let shape: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        if shape != "00/00/0000 at 00:00" {
            return Err(format!("date {date:?}"));
        }
        let (time, rest) = rest.split_once(':').ok_or("no end of the time")?;
        let length_ns = time.strip_suffix("_ns").and_then(|t| t.parse().ok()).ok_or(format!("time {time:?}"))?;
        let (nodes, cpus, rest) = counted(rest)?;
        let cpus = numbers(cpus, ',')?;
        if cpus.len() as u64 != nodes {
            return Err(format!("{nodes} nodes with processors {cpus:?}"));
        }
        let rest = rest.strip_prefix(':').ok_or("no applications")?;
        let (count, mut rest) = rest.split_once(':').ok_or("no tasks")?;
        let mut applications = Vec::new();
        for _ in 0..count.parse::<u64>().map_err(|e| e.to_string())? {
            let (tasks, list, behind) = counted(rest)?;
            let mut threads = Vec::new();
            for task in list.split(',') {
                let pair = numbers(task, ':')?;
                let [count, node] = pair[..] else { return Err(format!("task {task:?}")) };
                if node == 0 || node > nodes || count == 0 {
                    return Err(format!("task {task:?} of {nodes} nodes"));
                }
                threads.push(count);
            }
            if threads.len() as u64 != tasks {
                return Err(format!("{tasks} tasks are {threads:?}"));
            }
            applications.push(threads);
            rest = behind.strip_prefix(':').unwrap_or(behind);
        }
        if !rest.is_empty() {
            return Err(format!("what is {rest:?}"));
        }
        Ok(Prv { length_ns, cpus, applications, ..Prv::default() })
    }

    fn thread(&self, fields: &[u64]) -> Result<Thread, String> {
        let [cpu, application, task, thread] = fields[..] else { return Err(format!("thread {fields:?}")) };
        let known = application >= 1
            && task >= 1
            && thread >= 1
            && self
                .applications
                .get(application as usize - 1)
                .and_then(|tasks| tasks.get(task as usize - 1))
                .is_some_and(|threads| thread <= *threads);
        if !known || cpu > self.cpus.iter().sum() {
            return Err(format!("processor {cpu}, thread {application}:{task}:{thread} are not in the header"));
        }
        Ok((application, task, thread))
    }

    fn read(text: &str) -> Result<Prv, String> {
        let mut lines = text.lines();
        let mut prv = Prv::header(lines.next().ok_or("empty")?)?;
        let mut last = 0;
        let mut event_lines = HashSet::new();
        for line in lines {
            let fields = numbers(line, ':')?;
            let at = |i: usize| fields.get(i).copied().ok_or(format!("short: {line}"));
            let time = at(5)?;
            if time < last || time > prv.length_ns {
                return Err(format!("{line}: time after {last}, run of {}", prv.length_ns));
            }
            last = time;
            let thread = prv.thread(&fields[1..5])?;
            match (fields[0], fields.len()) {
                (1, 8) => {
                    let (begin, end) = (time, fields[6]);
                    let states = prv.states.entry(thread).or_default();
                    let free = states.last().is_none_or(|&(_, end, _)| end <= begin);
                    if end <= begin || end > prv.length_ns || !free {
                        return Err(format!("{line}: after {:?}", states.last()));
                    }
                    states.push((begin, end, fields[7]));
                }
                (2, length) if length >= 8 && length % 2 == 0 => {
                    if !event_lines.insert((thread, time)) {
                        return Err(format!("{line}: a second line of events at this time"));
                    }
                    let pairs: Vec<_> = fields[6..].chunks(2).map(|pair| (pair[0], pair[1])).collect();
                    let kinds: HashSet<u64> = pairs.iter().map(|(kind, _)| *kind).collect();
                    if kinds.len() != pairs.len() {
                        return Err(format!("{line}: a type twice"));
                    }
                    prv.events.entry(thread).or_default().push((time, pairs));
                }
                (3, 15) => {
                    let receiver = prv.thread(&fields[7..11])?;
                    let (send, receive) = ([fields[5], fields[6]], [fields[11], fields[12]]);
                    if send[1] < send[0] || receive[1] < send[1] || receive[1] > prv.length_ns {
                        return Err(format!("{line}: received before it was sent"));
                    }
                    prv.communications.push((thread, send, receiver, receive, fields[13]));
                }
                _ => return Err(format!("what is {line:?}")),
            }
        }
        Ok(prv)
    }
}

/// Sections of a `.pcf`: labels of states, and of event types with their values.
#[derive(Default)]
struct Pcf {
    states: HashSet<u64>,
    colours: HashSet<u64>,
    types: HashMap<u64, HashSet<u64>>,
}

impl Pcf {
    fn read(text: &str) -> Result<Pcf, String> {
        let mut pcf = Pcf::default();
        let mut section = "";
        let mut current = 0;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or("");
            let number = first.parse::<u64>().ok();
            match (section, number) {
                (_, None)
                    if ["DEFAULT_OPTIONS", "DEFAULT_SEMANTIC", "STATES", "STATES_COLOR", "EVENT_TYPE", "VALUES"]
                        .contains(&first) =>
                {
                    section = first;
                }
                ("DEFAULT_OPTIONS" | "DEFAULT_SEMANTIC", None) if words.next().is_some() => {}
                ("STATES", Some(n)) if words.next().is_some() => {
                    pcf.states.insert(n);
                }
                ("STATES_COLOR", Some(n)) => {
                    let colour = words.next().and_then(|c| c.strip_prefix('{')?.strip_suffix('}')).ok_or(line)?;
                    let parts = numbers(colour, ',')?;
                    if parts.len() != 3 || parts.iter().any(|p| *p > 255) {
                        return Err(format!("colour in {line:?}"));
                    }
                    pcf.colours.insert(n);
                }
                ("EVENT_TYPE", Some(_)) => {
                    current = words.next().and_then(|w| w.parse().ok()).ok_or(format!("no type in {line:?}"))?;
                    words.next().ok_or(format!("no label in {line:?}"))?;
                    pcf.types.insert(current, HashSet::new());
                }
                ("VALUES", Some(n)) if words.next().is_some() => {
                    pcf.types.get_mut(&current).ok_or("values without a type")?.insert(n);
                }
                _ => return Err(format!("what is {line:?} in {section}")),
            }
        }
        Ok(pcf)
    }
}

fn row_sizes(text: &str) -> Result<HashMap<String, u64>, String> {
    let mut sizes = HashMap::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let ["LEVEL", level, "SIZE", size] = words[..] else { return Err(format!("what is {line:?}")) };
        let size: u64 = size.parse().map_err(|_| line.to_owned())?;
        for _ in 0..size {
            lines.next().filter(|name| !name.is_empty()).ok_or(format!("too few names for {level}"))?;
        }
        sizes.insert(level.to_owned(), size);
    }
    Ok(sizes)
}

fn exported(trace: &Trace) -> (Prv, Pcf, HashMap<String, u64>) {
    let folder = tempfile::tempdir().unwrap();
    let files = write(trace, Format::Paraver, &folder.path().join("run.prv")).unwrap();
    let names: Vec<_> = files.iter().map(|f| f.extension().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["prv", "pcf", "row"]);
    let text = |i: usize| std::fs::read_to_string(&files[i]).unwrap();
    let prv = Prv::read(&text(0)).unwrap_or_else(|e| panic!("{e}\n{}", text(0)));
    let pcf = Pcf::read(&text(1)).unwrap_or_else(|e| panic!("{e}\n{}", text(1)));
    let row = row_sizes(&text(2)).unwrap_or_else(|e| panic!("{e}\n{}", text(2)));
    (prv, pcf, row)
}

fn check(trace: &Trace) -> Result<Prv, TestCaseError> {
    let (prv, pcf, row) = exported(trace);
    prop_assert_eq!(row["CPU"], prv.cpus.iter().sum::<u64>());
    prop_assert_eq!(row["NODE"], prv.cpus.len() as u64);
    prop_assert_eq!(row["TASK"], prv.applications.iter().map(|tasks| tasks.len() as u64).sum::<u64>());
    prop_assert_eq!(row["THREAD"], prv.applications.iter().flatten().sum::<u64>());
    for (thread, states) in &prv.states {
        // Without gaps from the first nanosecond to the last.
        let covered: u64 = states.iter().map(|(begin, end, _)| end - begin).sum();
        prop_assert_eq!(covered, prv.length_ns, "{:?}", thread);
        for (.., state) in states {
            prop_assert!(pcf.states.contains(state) && pcf.colours.contains(state), "state {state}");
        }
    }
    for (kind, value) in prv.events.values().flatten().flat_map(|(_, pairs)| pairs) {
        let values = pcf.types.get(kind);
        prop_assert!(values.is_some(), "type {kind}");
        let _ = value;
    }
    Ok(prv)
}

proptest! {
    #[test]
    fn a_run_is_read_back(trace in traces::run()) {
        let prv = check(&trace)?;
        let (_, pcf, _) = exported(&trace);
        let analysis = Analysis::of(&trace, 1);
        // A tick is a nanosecond here, so nothing is rounded.
        for (worker, times) in analysis.workers.iter().enumerate() {
            let states = prv.states.get(&(1, 1, worker as u64 + 1)).map_or(&[][..], Vec::as_slice);
            let of = |wanted: u64| states.iter().filter(|s| s.2 == wanted).map(|s| s.1 - s.0).sum::<u64>();
            prop_assert_eq!(of(1), times.leaf);
            prop_assert_eq!(of(2), times.waited());
        }
        prop_assert_eq!(prv.communications.len(), Timeline::new(&trace).moved.len());
        let sizes: u64 = prv.communications.iter().map(|c| c.4).sum();
        prop_assert_eq!(sizes, trace.slots.iter().map(|slot| slot.bytes).sum::<u64>());
        for pairs in prv.events.values().flatten().map(|(_, pairs)| pairs) {
            for (kind, value) in pairs {
                let values = &pcf.types[kind];
                prop_assert!(values.is_empty() || values.contains(value), "{kind} {value}");
            }
        }
    }

    #[test]
    fn anything_is_read_back(trace in traces::any_trace()) {
        check(&trace)?;
    }
}

#[test]
fn the_reader_refuses_what_breaks_the_grammar() {
    let head = "#Paraver (01/02/2024 at 03:04):100_ns:1(2):1:1(2:1)\n";
    assert!(Prv::read(head).is_ok());
    for bad in [
        "1:1:1:1:1:10:10:1",                    // no length
        "1:1:1:1:3:10:20:1",                    // no such thread
        "1:3:1:1:1:10:20:1",                    // no such processor
        "1:1:1:1:1:10:101:1",                   // beyond the end
        "1:1:1:1:1:10:20:1\n1:1:1:1:1:15:30:1", // overlap
        "1:1:1:1:1:10:20:1\n1:1:1:1:2:5:30:1",  // not sorted
        "2:1:1:1:1:10:5",                       // half an event
        "2:1:1:1:1:10:5:1\n2:1:1:1:1:10:6:1",   // two lines of one moment
        "3:1:1:1:1:10:20:2:1:1:2:15:15:8:0",    // received before it was sent
        "4:1:1:1:1:10:20:1",
    ] {
        assert!(Prv::read(&format!("{head}{bad}\n")).is_err(), "{bad}");
    }
    for bad in
        ["#Paraver (1/2/2024 at 03:04):100_ns:1(2):1:1(2:1)", "#Paraver (01/02/2024 at 03:04):100_ns:2(2):1:1(2:1)"]
    {
        assert!(Prv::read(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_last_task_shows_what_the_operating_system_did() {
    let trace = traces::observed();
    let prv = check(&trace).unwrap();
    assert_eq!(prv.applications, [[2, 1, 2]]);
    let lane = [(0, 200, 8), (200, 500, 9), (500, 1000, 8), (1000, 1150, 10), (1150, 1400, 11), (1400, 2000, 8)];
    assert_eq!(prv.states[&(1, 3, 1)], lane);
    assert_eq!(prv.states[&(1, 3, 2)], [(0, 2000, 8)]);
}
