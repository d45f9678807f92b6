//! The trace file: what was written is read back, and no bytes make the reader panic or take unbounded memory.

use crate::support;

use multigrain_trace::{
    End, Header, Kind, NO_SUBJECT, Part, Record, Recorder, Shift, Spill, Tick, Totals, Trace, TraceError,
};
use proptest::prelude::*;
use support::traces;

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    bytes
}

fn read(mut bytes: &[u8]) -> Result<Trace, TraceError> {
    Trace::read(&mut bytes)
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(trace in traces::any_trace()) {
        prop_assert_eq!(read(&written(&trace)).unwrap(), trace);
    }

    #[test]
    fn every_cut_is_noticed(trace in traces::any_trace(), cut in any::<proptest::sample::Index>()) {
        let bytes = written(&trace);
        let cut = cut.index(bytes.len());
        let truncated = matches!(read(&bytes[..cut]), Err(TraceError::Truncated { .. }));
        prop_assert!(truncated);
    }

    #[test]
    fn every_changed_byte_is_noticed(
        trace in traces::any_trace(),
        at in any::<proptest::sample::Index>(),
        change in 1..=255_u8,
    ) {
        let mut bytes = written(&trace);
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(read(&bytes).is_err(), "byte {at}");
    }

    #[test]
    fn random_bytes_behind_the_magic_never_panic(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = b"MGTRACE\x03".to_vec();
        bytes.extend(tail);
        let _ = read(&bytes);
    }

    /// Sections whose sums are right and whose content is anything: what the check sum does not catch.
    #[test]
    fn random_sections_never_panic(
        sections in proptest::collection::vec(
            (0..8_usize, proptest::collection::vec(any::<u8>(), 0..120)), 0..6
        ),
    ) {
        let header = serde_json::to_vec(&traces::header(2, 2)).unwrap();
        let mut bytes = b"MGTRACE\x03".to_vec();
        support::section(&mut bytes, b"HEAD", &header);
        for (tag, payload) in sections {
            let tags = [b"HEAD", b"SLOT", b"USES", b"RECS", b"KRNL", b"SUMS", b"DONE", b"????"];
            support::section(&mut bytes, tags[tag], &payload);
        }
        let _ = read(&bytes);
    }
}

#[test]
fn other_files_are_told_apart() {
    assert!(matches!(read(b"\x93NUMPY\x01\x00"), Err(TraceError::NotATrace { .. })));
    assert!(matches!(read(b"MGTRACE\x09"), Err(TraceError::Version { found: 9 })));
    assert!(matches!(read(b""), Err(TraceError::Truncated { .. })));
}

#[test]
fn a_lying_length_takes_no_memory() {
    for length in [1_u64 << 20, 63 << 20, u64::MAX] {
        let mut bytes = b"MGTRACE\x02HEAD".to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.extend(b"{}");
        let error = read(&bytes).unwrap_err();
        let expected = if length > 64 << 20 { "at most" } else { "cut off" };
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn nonsense_is_refused_by_name() {
    let mut header = traces::header(1, 1);
    header.clock.ticks_per_second = 0.0;
    let mut bytes = Vec::new();
    Trace { header, ..Trace::default() }.write(&mut bytes).unwrap();
    let error = read(&bytes).unwrap_err().to_string();
    assert!(error.contains("ticks in a second") && error.contains("the header"), "{error}");

    let record = Record { start: 0, end: 1, number: 0, subject: 0, worker: 7, index: 0, kind: Kind::Leaf, detail: 0 };
    let trace = Trace { header: traces::header(2, 1), records: vec![record], ..Trace::default() };
    let error = read(&written(&trace)).unwrap_err().to_string();
    assert!(error.contains("worker 7") && error.contains("one of 2"), "{error}");
}

#[test]
fn a_saved_trace_is_loaded_with_its_breakdown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.trace");
    let record =
        |kind, start, end| Record { start, end, number: 0, subject: NO_SUBJECT, worker: 0, index: 0, kind, detail: 0 };
    let mut header = traces::header(1, 1);
    header.clock.ticks_per_second = 10.0;
    let records = vec![record(Kind::Wait, 100, 105), record(Kind::Leaf, 105, 115)];
    let trace = Trace { header, records, end: End { start: 100, tick: 120, ..End::default() }, ..Trace::default() };
    trace.save(&path).unwrap();
    let breakdown = Trace::load(&path).unwrap().breakdown();
    assert_eq!((breakdown.wall_seconds, breakdown.leaf_seconds, breakdown.overhead_seconds), (2.0, 1.0, 0.5));
    assert_eq!(breakdown.wait_seconds, [("edge 0".to_string(), 0.5)]);
}

#[test]
fn a_trace_that_cannot_be_saved_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("run.trace")).unwrap();
    // A folder has the name, so the last step, the renaming, fails.
    let saved = Trace::default().save(&folder.path().join("run.trace"));
    assert!(matches!(saved, Err(TraceError::Create { .. })));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Two workers, each with far more records than their chunks hold.
fn spill_records(path: &std::path::Path, each: u32) -> (Header, std::sync::Arc<Spill>) {
    let spill = Spill::create(path).unwrap();
    let header = traces::header(2, 1);
    spill.begin(&header, &[], &[]).unwrap();
    let totals = std::thread::scope(|scope| {
        let worker = |number: u32| {
            let spill = spill.clone();
            scope.spawn(move || {
                let mut recorder = Recorder::spilling(number, 1, spill);
                for i in 0..each {
                    let t = Tick(u64::from(i) * 10);
                    recorder.interval(Kind::Leaf, t, Tick(t.0 + 4), 0, 0, i, 0);
                }
                recorder.flush();
                recorder.totals().clone()
            })
        };
        [worker(0), worker(1)].map(|thread| thread.join().unwrap()).to_vec()
    });
    spill.end(&End { start: 0, tick: u64::from(each) * 10, elapsed_ns: 0, dropped: 3, totals, ..End::default() });
    (header, spill)
}

#[test]
fn records_go_to_the_file_as_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.trace");
    let each = 300_000;
    let (header, spill) = spill_records(&path, each);
    assert!(!path.exists(), "it appears when it is published");
    spill.publish().unwrap();
    drop(spill);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let trace = Trace::load(&path).unwrap();
    assert_eq!(trace.header, header);
    // Everything was written or counted: the workers never wait for the file.
    assert_eq!(trace.records.len() as u64 + trace.end.dropped, 2 * u64::from(each) + 3);
    // What was dropped is in the sums all the same.
    let leaf_seconds = 2.0 * f64::from(each) * 4.0 / trace.ticks_per_second();
    assert!((trace.breakdown().leaf_seconds / leaf_seconds - 1.0).abs() < 1e-9);
}

/// Two processes of two workers each, the second with a clock that is ahead by 1000 ticks and twice as fast.
#[test]
fn what_several_have_recorded_is_one_trace_by_the_first_ones_clock() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["run.trace", "run.trace.rank-1"].map(|name| folder.path().join(name));
    let sums = |own: std::ops::Range<usize>, ticks: u64| {
        let of = |worker: usize| {
            let mut totals = Totals::new(1);
            if own.contains(&worker) {
                totals.add(Kind::Idle, 0, ticks);
            }
            totals
        };
        (0..4).map(of).collect::<Vec<_>>()
    };
    let record = |start, end, worker, subject, kind| Record {
        start,
        end,
        number: 7,
        subject,
        worker,
        index: 0,
        kind,
        detail: 0,
    };
    let spill = |path: &std::path::Path, records: Vec<Record>, end: End| {
        let spill = Spill::create(path).unwrap();
        spill.begin(&traces::header(4, 1), &[], &[]).unwrap();
        spill.put(records);
        spill.end(&end);
        spill
    };
    let first = spill(
        &paths[0],
        vec![record(500, 600, 1, 0, Kind::Idle)],
        End { start: 500, tick: 700, elapsed_ns: 200, dropped: 1, totals: sums(0..2, 100), ..End::default() },
    );
    let second = spill(
        &paths[1],
        vec![
            record(1800, 2000, 1, 0, Kind::Idle),
            record(2000, 2400, 0, NO_SUBJECT, Kind::Wait),
            record(2400, 2600, 0, 9, Kind::Leaf),
        ],
        End { start: 1800, tick: 2600, elapsed_ns: 800, dropped: 2, totals: sums(2..4, 200), ..End::default() },
    );
    second.publish().unwrap();
    let part = |path: &std::path::Path| Part {
        path: path.to_owned(),
        first_worker: 2,
        shift: Shift { from: 1000, to: 0, rate: 0.5 },
    };
    first.join(part(&paths[1]));
    first.publish().unwrap();
    drop(first);
    assert!(!paths[1].exists(), "a part is not left");
    let trace = Trace::load(&paths[0]).unwrap();
    let expected = [
        record(400, 500, 3, 2, Kind::Idle),
        record(500, 600, 1, 0, Kind::Idle),
        record(500, 700, 2, NO_SUBJECT, Kind::Wait),
        record(700, 800, 2, 9, Kind::Leaf),
    ];
    assert_eq!(trace.records, expected);
    let end = End { start: 400, tick: 800, elapsed_ns: 400, dropped: 3, totals: sums(0..4, 100), ..End::default() };
    assert_eq!(trace.end, end);

    // What is not there is named, and no trace appears.
    let alone = spill(&folder.path().join("other.trace"), Vec::new(), End { totals: sums(0..2, 1), ..End::default() });
    alone.join(part(&paths[1]));
    let error = alone.publish().unwrap_err().to_string();
    assert!(error.contains("run.trace.rank-1") && error.contains("all ranks reach"), "{error}");
    drop(alone);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn work_after_the_run_lengthens_the_trace_and_its_sums_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.trace");
    let spill = Spill::create(&path).unwrap();
    let mut header = traces::header(2, 1);
    header.tasks.push("later".into());
    spill.begin(&header, &[], &[]).unwrap();
    assert_eq!((spill.task("later"), spill.task("never")), (Some(1), None));
    assert!(spill.recorder(0).is_none(), "the run is not over");
    let (first, totals) = (multigrain_trace::now(), vec![Totals::new(1), Totals::new(1)]);
    let last = multigrain_trace::now();
    spill.end(&End {
        start: first.0,
        tick: last.0,
        elapsed_ns: last.since(first),
        dropped: 0,
        totals,
        ..End::default()
    });
    assert!(spill.recorder(2).is_none(), "the run had two workers");
    for worker in [1, 0, 1] {
        let mut recorder = spill.recorder(worker).unwrap();
        let since = recorder.start();
        recorder.leaf(since, 1, NO_SUBJECT, 7);
        spill.add(recorder);
    }
    spill.publish().unwrap();
    let trace = Trace::load(&path).unwrap();
    assert_eq!(trace.records.iter().map(|r| (r.worker, r.index)).filter(|r| *r == (1, 1)).count(), 2);
    assert!(
        trace.records.iter().all(|r| r.start >= last.0 && r.end <= trace.end.tick),
        "after the run, within the trace"
    );
    let breakdown = trace.breakdown();
    let leaves: u64 = trace.records.iter().map(Record::ticks).sum();
    assert!((breakdown.leaf_seconds - leaves as f64 / trace.ticks_per_second()).abs() < 1e-12);
    let parts = breakdown.leaf_seconds + breakdown.waited_seconds() + breakdown.overhead_seconds;
    assert!((parts / breakdown.worker_seconds() - 1.0).abs() < 1e-9, "{breakdown:?}");
}

#[test]
fn an_unpublished_trace_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (_, spill) = spill_records(&folder.path().join("run.trace"), 10);
    drop(spill);
    let unfinished = Spill::create(&folder.path().join("other.trace")).unwrap();
    assert!(unfinished.publish().is_err());
    drop(unfinished);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(matches!(Spill::create(&folder.path().join("no/such.trace")), Err(TraceError::Create { .. })));
}

/// A process that may write files of 512 bytes stands for a full file system: the test is executed again in one.
#[test]
fn a_full_file_system_is_told_at_the_end() {
    const INSIDE: &str = "MULTIGRAIN_TEST_WITHOUT_ROOM";
    if std::env::var_os(INSIDE).is_none() {
        let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact file::a_full_file_system_is_told_at_the_end";
        let this = std::env::current_exe().unwrap();
        let ran = std::process::Command::new("sh").args(["-c", script]).arg(this).env(INSIDE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, spill) = spill_records(&folder.path().join("run.trace"), 10_000);
    let error = spill.publish().unwrap_err().to_string();
    assert!(error.contains("run.trace") && error.contains("too large"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Traces of the versions before have the same bytes but for their number, and nothing of the operating system or of strands.
#[test]
fn traces_of_the_versions_before_are_read() {
    let mut trace = traces::observed();
    trace.records.retain(|record| (record.kind as usize) < Kind::SUMMED);
    trace.end.observed = multigrain_trace::Observed::default();
    trace.end.totals = vec![Totals::new(1); 2];
    let mut bytes = written(&trace);
    assert_eq!(bytes[7], 4);
    for version in [3, 2] {
        bytes[7] = version;
        assert_eq!(read(&bytes).unwrap(), trace);
    }
    bytes[7] = 1;
    assert!(matches!(read(&bytes), Err(TraceError::Version { found: 1 })));
}
