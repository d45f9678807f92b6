//! The Perfetto export obeys the rules of the Trace Event Format, whatever the trace.

use crate::support;

use multigrain_trace::export::{Format, write};
use multigrain_trace::{Kind, Trace};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use support::traces;

fn exported(trace: &Trace) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    assert_eq!(write(trace, Format::Perfetto, &path).unwrap(), std::slice::from_ref(&path));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A number of microseconds as nanoseconds.
fn ns(value: &Value) -> u64 {
    (value.as_f64().expect("a number") * 1000.0).round() as u64
}

/// What the format says of events: complete ones of a thread nest, flows begin and end within slices and go forward in
/// time, every process and thread that is used has a name.
fn check(document: &Value) -> Result<usize, TestCaseError> {
    let events = document["traceEvents"].as_array().expect("events");
    let mut named = HashSet::new();
    let mut moments = HashSet::new();
    let mut slices: HashMap<(u64, u64), Vec<(u64, u64)>> = HashMap::new();
    let mut flows: HashMap<u64, Vec<(&str, u64, u64, u64)>> = HashMap::new();
    for event in events {
        let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("{key} of {event}"));
        let thread = (number("pid"), number("tid"));
        prop_assert!(event["name"].is_string());
        match event["ph"].as_str().expect("a phase") {
            "M" => {
                let what = &event["args"];
                prop_assert!(what["name"].is_string() || what["sort_index"].is_u64());
                named.insert((event["name"].as_str().unwrap().to_owned(), thread));
            }
            "X" => {
                prop_assert!(event["cat"].is_string() && event["args"].is_object());
                let start = ns(&event["ts"]);
                slices.entry(thread).or_default().push((start, start + ns(&event["dur"])));
            }
            "i" => {
                prop_assert!(event["s"] == "t");
                prop_assert!(
                    event["cat"] == "kernel" || event["cat"] == "decision" && event["args"]["workers"].is_u64()
                );
                prop_assert!(event["ts"].is_number());
                moments.insert(thread);
            }
            phase @ ("s" | "f") => {
                prop_assert_eq!(phase == "f", event["bp"] == "e");
                flows.entry(number("id")).or_default().push((phase, thread.0, thread.1, ns(&event["ts"])));
            }
            other => panic!("phase {other}"),
        }
    }
    for thread in moments {
        prop_assert!(named.contains(&("thread_name".to_owned(), thread)), "{thread:?}");
    }
    for (thread, slices) in &slices {
        prop_assert!(named.contains(&("process_name".to_owned(), (thread.0, 0))), "{thread:?}");
        prop_assert!(named.contains(&("thread_name".to_owned(), *thread)), "{thread:?}");
        let mut sorted = slices.clone();
        sorted.sort_by_key(|&(start, end)| (start, u64::MAX - end));
        let mut open: Vec<u64> = Vec::new();
        for (start, end) in sorted {
            while open.last().is_some_and(|outer| *outer <= start + (start >> 50)) {
                open.pop();
            }
            // Transfers beyond the last row share it; no random run has so many.
            // Numbers of more than 53 bits are rounded when they are read, by browsers too.
            let rounded = end >> 50;
            prop_assert!(open.last().is_none_or(|outer| end <= outer + rounded), "{thread:?} {start} {end} {open:?}");
            open.push(end);
        }
    }
    for ends in flows.values() {
        prop_assert!(ends.len() == 2 && ends[0].0 == "s" && ends[1].0 == "f", "{ends:?}");
        prop_assert!(ends[0].3 <= ends[1].3 + (ends[1].3 >> 50), "{ends:?}");
        for &(_, pid, tid, at) in ends {
            let inside =
                slices[&(pid, tid)].iter().any(|&(start, end)| start <= at + (at >> 50) && at <= end + (end >> 50));
            prop_assert!(inside, "{pid} {tid} {at}");
        }
    }
    Ok(flows.len())
}

proptest! {
    #[test]
    fn a_run_obeys_the_rules(trace in traces::run()) {
        let document = exported(&trace);
        let flows = check(&document)?;
        // Every wait in which its transfer ended has its arrow.
        let analysis = multigrain_trace::analysis::Timeline::new(&trace);
        let waits = trace.records.iter().filter(|r| r.kind == Kind::Wait);
        let expected = waits
            .filter(|wait| analysis.awaited(wait).is_some_and(|m| m.ended > wait.start && m.ended > m.issued))
            .count();
        prop_assert_eq!(flows, expected);
        let leaves = |e: &&Value| e["cat"] == "leaf";
        let events = document["traceEvents"].as_array().unwrap();
        let told: u64 = events.iter().filter(leaves).map(|e| ns(&e["dur"])).sum();
        let found: u64 = trace.records.iter().filter(|r| r.kind == Kind::Leaf).map(|r| r.ticks()).sum();
        prop_assert_eq!(told, found);
    }

    #[test]
    fn anything_obeys_the_rules(trace in traces::any_trace()) {
        let document = exported(&trace);
        check(&document)?;
        // Every decision is there, with its reason in words.
        let events = document["traceEvents"].as_array().unwrap();
        let told = events.iter().filter(|e| e["cat"] == "decision").map(|e| e["name"].as_str().unwrap().to_owned());
        let decisions = trace.records.iter().filter(|r| r.kind == Kind::Decision);
        prop_assert_eq!(told.collect::<Vec<_>>(), decisions.map(|r| trace.header.reason(r.detail)).collect::<Vec<_>>());
    }
}

/// What the operating system did with a worker stands below it, in words.
#[test]
fn a_worker_has_a_kernel_lane_below_it() {
    let document = exported(&traces::observed());
    check(&document).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let lane = events.iter().find(|e| e["args"]["name"] == "worker 0, kernel").expect("a lane");
    let on = |phase: &str| {
        let those = events.iter().filter(|e| e["ph"] == phase && e["tid"] == lane["tid"] && e["pid"] == lane["pid"]);
        those.map(|e| (e["name"].as_str().unwrap().to_owned(), ns(&e["ts"]))).collect::<Vec<_>>()
    };
    let slices = [
        ("set aside for sh (77)", 200),
        ("waits by itself", 1000),
        ("woken by disk-0 of this program, not running yet", 1150),
    ];
    assert_eq!(on("X"), slices.map(|(name, at)| (name.to_owned(), at)));
    let moments = [("12 pages given memory", 600), ("moved from processor 1 to 0", 1400)];
    assert_eq!(on("i"), moments.map(|(name, at)| (name.to_owned(), at)));
    let place = |tid: &serde_json::Value| {
        let sorted = events.iter().find(|e| e["name"] == "thread_sort_index" && e["tid"] == *tid);
        sorted.unwrap()["args"]["sort_index"].as_u64().unwrap()
    };
    assert_eq!(place(&lane["tid"]), place(&serde_json::json!(1)) + 1);
}
