//! The trace file: what was written is read back, and no bytes make the reader panic or take unbounded memory.

use multigrain_trace::{Kind, Record, Trace, TraceError};
use proptest::collection::vec;
use proptest::prelude::*;

fn record() -> impl Strategy<Value = Record> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<u16>(), 0..Kind::COUNT).prop_map(
        |(start, end, id, worker, index, kind)| Record { start, end, id, worker, index, kind: Kind::ALL[kind] },
    )
}

fn trace() -> impl Strategy<Value = Trace> {
    (1.0..1e10_f64, any::<[u64; 2]>(), any::<u32>(), vec(".{0,12}", 0..5), vec(".{0,12}", 0..5), vec(record(), 0..40))
        .prop_map(|(ticks_per_second, [start, end], workers, edges, tasks, records)| Trace {
            ticks_per_second,
            start,
            end,
            workers,
            edges,
            tasks,
            records,
        })
}

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(trace in trace()) {
        prop_assert_eq!(Trace::read(&mut written(&trace).as_slice()).unwrap(), trace);
    }

    #[test]
    fn every_cut_is_noticed(trace in trace(), cut in any::<proptest::sample::Index>()) {
        let bytes = written(&trace);
        let cut = cut.index(bytes.len());
        let truncated = matches!(Trace::read(&mut &bytes[..cut]), Err(TraceError::Truncated { .. }));
        prop_assert!(truncated);
    }

    #[test]
    fn a_changed_byte_gives_a_trace_or_an_error(trace in trace(), at in any::<proptest::sample::Index>(), to in any::<u8>()) {
        let mut bytes = written(&trace);
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(read) = Trace::read(&mut bytes.as_slice()) {
            let _ = read.breakdown();
        }
    }

    #[test]
    fn random_bytes_behind_the_magic_never_panic(tail in vec(any::<u8>(), 0..200)) {
        let mut bytes = b"MGTRACE\x01".to_vec();
        bytes.extend(tail);
        let _ = Trace::read(&mut bytes.as_slice());
    }
}

#[test]
fn other_files_are_told_apart() {
    assert!(matches!(Trace::read(&mut &b"\x93NUMPY\x01\x00"[..]), Err(TraceError::NotATrace { .. })));
    assert!(matches!(Trace::read(&mut &b"MGTRACE\x09"[..]), Err(TraceError::Version { found: 9 })));
}

#[test]
fn a_lying_count_takes_no_memory() {
    let empty =
        Trace { ticks_per_second: 1e9, start: 0, end: 0, workers: 1, edges: vec![], tasks: vec![], records: vec![] };
    let mut bytes = written(&empty);
    let count = bytes.len() - 8;
    bytes[count..].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(Trace::read(&mut bytes.as_slice()), Err(TraceError::Truncated { part: "the records" })));
}

#[test]
fn a_saved_trace_is_loaded_with_its_breakdown() {
    let path = std::env::temp_dir().join(format!("multigrain-trace-{}.trace", std::process::id()));
    let record = |kind, start, end, index| Record { start, end, id: 0, worker: 0, index, kind };
    let trace = Trace {
        ticks_per_second: 10.0,
        start: 100,
        end: 120,
        workers: 1,
        edges: vec!["disk".into()],
        tasks: vec!["sgemm".into()],
        records: vec![record(Kind::Wait, 100, 105, 0), record(Kind::Leaf, 105, 115, 0)],
    };
    trace.save(&path).unwrap();
    let loaded = Trace::load(&path);
    std::fs::remove_file(&path).unwrap();
    let breakdown = loaded.unwrap().breakdown();
    assert_eq!((breakdown.wall_seconds, breakdown.leaf_seconds, breakdown.overhead_seconds), (2.0, 1.0, 0.5));
    assert_eq!(breakdown.wait_seconds, [("disk".to_string(), 0.5)]);
}

#[test]
fn a_trace_that_cannot_be_saved_leaves_nothing_behind() {
    let folder = std::env::temp_dir().join(format!("multigrain-trace-folder-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("run.trace")).unwrap();
    let trace =
        Trace { ticks_per_second: 1.0, start: 0, end: 0, workers: 1, edges: vec![], tasks: vec![], records: vec![] };
    // A folder has the name, so the last step, the renaming, fails.
    let saved = trace.save(&folder.join("run.trace"));
    let left = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(saved, Err(TraceError::Io(_))));
    assert_eq!(left, 1);
}
