//! What is computed from a trace: for random runs, the parts add up; for small runs made by hand, the answer is known.

use crate::support;

use multigrain_trace::analysis::{Cause, StepKind};
use multigrain_trace::{
    Analysis, End, Flow, Idleness, KernelInfo, KernelSource, Kind, NO_SUBJECT, Other, Record, SlotInfo, Taken, Trace,
    Use,
};
use proptest::prelude::*;
use support::traces;

/// Whatever the records, the parts of each worker's time and of the path add up to the wall time.
fn parts_add_up(trace: &Trace) -> Result<(), TestCaseError> {
    let analysis = Analysis::of(trace, 10);
    let wall = trace.stop() - trace.start();
    for worker in &analysis.workers {
        prop_assert_eq!(worker.total(), wall);
        prop_assert_eq!(worker.overhead.iter().sum::<u64>(), worker.overhead_total());
    }
    prop_assert_eq!(analysis.path.ticks(), wall);
    let mut reached = trace.start();
    for step in &analysis.path.steps {
        prop_assert_eq!(step.start, reached);
        prop_assert!(step.end > step.start);
        reached = step.end;
    }
    prop_assert_eq!(analysis.path.shares().iter().map(|(_, ticks)| ticks).sum::<u64>(), wall);
    for pair in analysis.stalls.windows(2) {
        prop_assert!(pair[0].end - pair[0].start >= pair[1].end - pair[1].start);
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_parts_of_a_run_add_up(trace in traces::run()) {
        parts_add_up(&trace)?;
        // In a run that could have been, activities do not overlap: the breakdown of the sums is that of the lanes.
        let analysis = Analysis::of(&trace, 10);
        let breakdown = trace.breakdown();
        let leaf: u64 = analysis.workers.iter().map(|w| w.leaf).sum();
        let waited: u64 = analysis.workers.iter().map(|w| w.waited()).sum();
        let overhead: u64 = analysis.workers.iter().map(|w| w.overhead_total()).sum();
        let near = |seconds: f64, ticks: u64| (seconds - trace.seconds(ticks)).abs() < 1e-12 + 1e-9 * seconds;
        prop_assert!(near(breakdown.leaf_seconds, leaf));
        prop_assert!(near(breakdown.waited_seconds(), waited));
        prop_assert!(near(breakdown.overhead_seconds, overhead));
        // No stall is longer than the run, and the longest is the first.
        for stall in &analysis.stalls {
            prop_assert!(stall.end - stall.start <= trace.stop() - trace.start());
            prop_assert!(!stall.explanation.shown.is_empty() && !stall.explanation.remedy.is_empty());
        }
    }

    #[test]
    fn the_parts_of_anything_add_up(trace in traces::any_trace()) {
        parts_add_up(&trace)?;
    }
}

fn record(worker: u32, kind: Kind, start: u64, end: u64, number: u32, subject: u32, detail: u8) -> Record {
    Record { start, end, number, subject, worker, index: 0, kind, detail }
}

fn trace(workers: usize, mut records: Vec<Record>, end: u64) -> Trace {
    records.sort_by_key(|r| (r.start, r.worker, u64::MAX - r.end));
    Trace { header: traces::header(workers, 1), records, end: End { tick: end, ..End::default() }, ..Trace::default() }
}

fn slot(offset_bytes: u64, bytes: u64, array: u32) -> SlotInfo {
    SlotInfo { plan: 0, child: 0, array, offset_bytes, bytes, start: vec![0, 0], len: vec![64, 64] }
}

/// Fetch, compute, fetch into the same place, compute.
fn two_fetches_into_one_place() -> Trace {
    let down = Flow::Down as u8;
    let mut trace = trace(
        1,
        vec![
            record(0, Kind::Transfer, 0, 100, 0, 0, down),
            record(0, Kind::Wait, 2, 100, 0, 0, 0),
            record(0, Kind::Leaf, 100, 1000, 0, 0, 0),
            record(0, Kind::Transfer, 1000, 1400, 1, 1, down),
            record(0, Kind::Queue, 1000, 1100, 1, 1, down),
            record(0, Kind::Wait, 1010, 1402, 1, 0, 0),
            record(0, Kind::Leaf, 1402, 2000, 1, 0, 0),
        ],
        2010,
    );
    trace.slots = vec![slot(0, 1 << 20, 0), slot(0, 1 << 20, 1)];
    trace.uses = vec![Use { slot: 0, call: 0 }, Use { slot: 1, call: 1 }];
    trace
}

#[test]
fn the_path_goes_through_the_transfer_that_was_waited_for() {
    let analysis = Analysis::of(&two_fetches_into_one_place(), 10);
    let steps: Vec<_> = analysis.path.steps.iter().map(|s| (s.start, s.end, s.kind)).collect();
    let expected = [
        (0, 100, StepKind::Transfer(0)),
        (100, 1000, StepKind::Leaf(0)),
        (1000, 1100, StepKind::Queue(0)),
        (1100, 1400, StepKind::Transfer(0)),
        (1400, 1402, StepKind::Handover(0)),
        (1402, 2000, StepKind::Leaf(0)),
        (2000, 2010, StepKind::Runtime(0)),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn a_place_in_use_is_named_with_its_holder() {
    let analysis = Analysis::of(&two_fetches_into_one_place(), 10);
    let stall = &analysis.stalls[0];
    assert_eq!((stall.start, stall.end, stall.workers.as_slice()), (1010, 1402, &[0][..]));
    let transfer = stall.transfer.as_ref().unwrap();
    assert_eq!((transfer.block.as_deref(), transfer.bytes), (Some("B [0..64, 0..64]"), 1 << 20));
    assert_eq!(stall.explanation.cause, Cause::SlotBusy);
    assert!(stall.explanation.shown.contains("A [0..64, 0..64] for call 0 of sgemm"), "{:?}", stall.explanation);
    assert!(stall.explanation.remedy.contains("1.00 MiB more memory"), "{:?}", stall.explanation);
    assert_eq!(analysis.stalls[1].explanation.cause, Cause::StartUp);
}

#[test]
fn a_place_that_was_free_means_the_fetch_came_late() {
    let mut trace = two_fetches_into_one_place();
    trace.slots[1].offset_bytes = 1 << 20;
    let explanation = &Analysis::of(&trace, 10).stalls[0].explanation;
    assert_eq!(explanation.cause, Cause::LateIssue, "{explanation:?}");
    assert!(explanation.shown.contains("never in use"), "{explanation:?}");
}

#[test]
fn an_edge_that_never_rests_is_the_limit() {
    let down = Flow::Down as u8;
    let mut records = vec![record(0, Kind::Wait, 0, 100, 0, 0, 0)];
    for i in 0..5_u64 {
        // Each is issued long before, and moves when the one before it has moved.
        records.push(record(0, Kind::Transfer, 0, 100 * (i + 1), i as u32, i as u32, down));
        records.push(record(0, Kind::Queue, 0, 100 * i, i as u32, i as u32, down));
        records.push(record(0, Kind::Leaf, 100 * (i + 1), 100 * (i + 1) + 20, i as u32, 0, 0));
        if i > 0 {
            records.push(record(0, Kind::Wait, 100 * i + 20, 100 * (i + 1), i as u32, 0, 0));
        }
    }
    let mut trace = trace(1, records, 520);
    trace.slots = (0..5).map(|i| slot(i << 20, 1 << 20, 0)).collect();
    let analysis = Analysis::of(&trace, 3);
    assert_eq!(analysis.stalls.len(), 3);
    let explanation = &analysis.stalls[1].explanation;
    assert_eq!(explanation.cause, Cause::Bandwidth, "{explanation:?}");
    assert!(explanation.shown.contains("busy for 100 %"), "{explanation:?}");
    assert_eq!(analysis.edges[0].busy, 500);
    // All but the last leaf is the disk's time.
    assert_eq!(analysis.path.shares()[0], (StepKind::Queue(0), 400));
}

#[test]
fn the_slower_worker_is_named() {
    let trace = trace(
        2,
        vec![
            record(0, Kind::Leaf, 0, 1000, 3, 0, 0),
            record(1, Kind::Idle, 0, 50, 0, 0, Idleness::Start as u8),
            record(1, Kind::Leaf, 50, 200, 4, 0, 0),
            record(1, Kind::Idle, 200, 1001, 0, 0, Idleness::Join as u8),
            record(0, Kind::Idle, 1000, 1001, 0, 0, Idleness::Join as u8),
        ],
        1001,
    );
    let analysis = Analysis::of(&trace, 10);
    let stall = &analysis.stalls[0];
    assert_eq!((stall.workers.as_slice(), stall.lost), (&[1][..], 802));
    assert_eq!(stall.explanation.cause, Cause::Imbalance);
    assert!(stall.explanation.shown.contains("worker 0 still computed"), "{:?}", stall.explanation);
    let steps: Vec<_> = analysis.path.steps.iter().map(|s| (s.start, s.end, s.worker, s.kind)).collect();
    assert_eq!(steps, [(0, 1000, 0, StepKind::Leaf(0)), (1000, 1001, 0, StepKind::Handover(0))]);
    let times = &analysis.workers[1];
    assert_eq!((times.leaf, times.idle, times.runtime), (150, [0, 50, 801, 0], 0));
}

#[test]
fn a_signal_leads_to_the_worker_that_gave_it() {
    let trace = trace(
        2,
        vec![
            record(0, Kind::Leaf, 0, 500, 0, 0, 0),
            record(0, Kind::Signal, 505, 505, 1, 0, 0),
            record(0, Kind::Leaf, 506, 600, 1, 0, 0),
            record(1, Kind::Idle, 10, 510, 1, 0, Idleness::Signal as u8),
            record(1, Kind::Leaf, 510, 900, 2, 0, 0),
        ],
        900,
    );
    let steps: Vec<_> = Analysis::of(&trace, 1).path.steps.iter().map(|s| (s.start, s.end, s.worker, s.kind)).collect();
    let expected = [
        (0, 500, 0, StepKind::Leaf(0)),
        (500, 505, 0, StepKind::Runtime(0)),
        (505, 510, 1, StepKind::Handover(0)),
        (510, 900, 1, StepKind::Leaf(0)),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn small_leaves_are_told_with_their_price() {
    let leaves = |length: u64| (0..100).map(|i| record(0, Kind::Leaf, 100 * i, 100 * i + length, 0, 0, 0)).collect();
    let small = trace(1, leaves(60), 10_000);
    let advice = Analysis::of(&small, 1).advice(&small).unwrap();
    assert!(advice.contains("leaf of 60 ns") && advice.contains("took 40 ns, 40 %"), "{advice}");
    let large = trace(1, leaves(96), 10_000);
    assert_eq!(Analysis::of(&large, 1).advice(&large), None);
}

#[test]
fn overhead_belongs_to_the_plan_that_was_served() {
    let mut inner = [record(0, Kind::Scope, 100, 300, 0, 1, 0), record(0, Kind::Leaf, 150, 250, 0, 1, 0)];
    inner[0].index = 1;
    let mut records = vec![record(0, Kind::Scope, 0, 400, 0, 0, 0)];
    records.extend(inner);
    let mut trace = trace(1, records, 420);
    trace.header = traces::header(1, 2);
    let times = &Analysis::of(&trace, 1).workers[0];
    assert_eq!((times.leaf, times.overhead.as_slice()), (100, &[220, 100, 0][..]));
}

#[test]
fn a_wait_without_its_transfer_is_told() {
    let trace = trace(1, vec![record(0, Kind::Wait, 5, 50, 9, NO_SUBJECT, 0)], 60);
    let analysis = Analysis::of(&trace, 1);
    assert_eq!(analysis.stalls[0].explanation.cause, Cause::Unknown);
    assert_eq!(analysis.path.shares()[0], (StepKind::Wait(0), 45));
}

#[test]
fn a_worker_that_was_set_aside_is_told_from_one_that_waited() {
    let trace = traces::observed();
    let analysis = Analysis::of(&trace, 10);
    let [first, second] = &analysis.kernel[..] else { panic!("two workers: {:?}", analysis.kernel) };
    assert_eq!((first.aside, first.longest, first.by.as_slice()), (550, 300, &[(Some(0), 550)][..]));
    assert_eq!((first.preempted, first.blocked, first.migrations), (1, 1, 1));
    assert_eq!((first.minor_faults, first.major_faults), (12, 0));
    assert_eq!((second.aside, second.preempted, second.blocked), (0, 0, 0));

    let told: Vec<_> = analysis.stalls.iter().map(|s| (s.start, s.end, s.workers[0], s.aside)).collect();
    assert_eq!(told, [(200, 600, 1, false), (1000, 1400, 0, false), (200, 500, 0, true)]);
    for (stall, ticks) in analysis.stalls.iter().zip(["300 ns", "250 ns", "300 ns"]) {
        let explanation = &stall.explanation;
        assert_eq!(explanation.cause, Cause::SetAside, "{explanation:?}");
        assert!(explanation.shown.contains("sh (77)") && explanation.shown.contains(ticks), "{explanation:?}");
    }
    assert!(analysis.stalls[0].explanation.shown.contains("worker 0"), "{:?}", analysis.stalls[0]);
    assert!(analysis.stalls[2].what().contains("its processor"));

    // The same, woken late only because nobody had the processor before: it waited for its transfer.
    let mut woken = trace.clone();
    woken.records.iter_mut().filter(|r| r.kind == Kind::Ready).for_each(|r| r.subject = 2);
    assert_ne!(Analysis::of(&woken, 10).stalls[1].explanation.cause, Cause::SetAside);
    // And where nobody looked, nothing is told.
    let mut unseen = trace;
    unseen.records.retain(|r| !matches!(r.kind, Kind::Away | Kind::Ready));
    unseen.end.observed.by = None;
    let analysis = Analysis::of(&unseen, 10);
    assert!(analysis.kernel.is_empty() && analysis.stalls.iter().all(|s| s.explanation.cause != Cause::SetAside));
}

/// One time, in which one after another had the processor: it counts once, and each has its part.
#[test]
fn times_that_touch_are_one_with_several_who_ran() {
    let mut trace = traces::observed();
    trace.end.observed.others.push(Other { thread: 88, name: "cc".into(), own: false });
    let away = trace.records.iter().position(|r| r.kind == Kind::Away).unwrap();
    trace.records[away].end = 280;
    let mut second = Record { start: 280, end: 420, subject: 3, ..trace.records[away] };
    trace.records.insert(away + 2, second);
    (second.start, second.end, second.subject) = (420, 500, NO_SUBJECT);
    trace.records.insert(away + 3, second);
    let analysis = Analysis::of(&trace, 10);
    let first = &analysis.kernel[0];
    assert_eq!((first.aside, first.longest, first.preempted), (550, 300, 1));
    assert_eq!(first.by, [(Some(0), 330), (Some(3), 140), (None, 80)]);
    let told: Vec<_> = analysis.stalls.iter().map(|s| (s.start, s.end, s.workers[0], s.aside)).collect();
    assert_eq!(told, [(200, 600, 1, false), (1000, 1400, 0, false), (200, 500, 0, true)]);
    assert!(analysis.stalls[2].explanation.shown.contains("for 300 ns of it"), "{:?}", analysis.stalls[2]);
    assert!(analysis.stalls[2].explanation.shown.contains("cc (88)"), "{:?}", analysis.stalls[2]);
}

/// A leaf in whose middle its worker waited by itself is not one that took long to compute.
#[test]
fn a_worker_that_stood_still_within_a_leaf_is_told() {
    let mut trace = traces::observed();
    let away = trace.records.iter_mut().find(|r| r.kind == Kind::Away).unwrap();
    (away.detail, away.subject) = (Taken::Blocked as u8, 2);
    let explanation = &Analysis::of(&trace, 1).stalls[0].explanation;
    assert_eq!(explanation.cause, Cause::Stopped, "{explanation:?}");
    assert!(explanation.shown.contains("worker 0") && explanation.shown.contains("300 ns"), "{explanation:?}");
    // Most of the wait was not that.
    trace.records.iter_mut().find(|r| r.kind == Kind::Away).unwrap().end = 300;
    assert_eq!(Analysis::of(&trace, 1).stalls[0].explanation.cause, Cause::Imbalance);
}

/// A thread that had no processor for long is seen to when it has one again: what it could not have had since the reading
/// before was before that.
#[test]
fn sums_that_are_longer_than_their_interval_reach_back() {
    let held = |start, end, delay_us| record(0, Kind::Held, start, end, 0, delay_us, 0);
    let times = |all: &[Record]| {
        let mut trace = trace(1, all.to_vec(), 100_000);
        trace.end.observed.by = Some(KernelInfo { source: KernelSource::Sums, refused: Vec::new() });
        let times = &Analysis::of(&trace, 1).kernel[0];
        // Where within an interval is not known, so neither is what was longest.
        assert_eq!(times.longest, 0);
        let timeline = multigrain_trace::analysis::Timeline::new(&trace);
        (times.aside, timeline.set_aside(0, 0, 20_000).0, timeline.set_aside(0, 60_000, 100_000).0)
    };
    assert_eq!(times(&[held(80_000, 100_000, 70)]), (70_000, 0, 40_000));
    // What lies before has its own.
    assert_eq!(times(&[held(0, 20_000, 10), held(80_000, 100_000, 70)]), (80_000, 10_000, 40_000));
    assert_eq!(times(&[held(20_000, 40_000, 20), held(40_000, 60_000, 30)]), (50_000, 10_000, 0));
    // More than there was.
    assert_eq!(times(&[held(0, 20_000, 60)]).0, 20_000);
}

#[test]
fn of_sums_a_part_counts_by_its_time() {
    // Of 8 us it could have run for 4 and did not, and was set aside three times.
    let mut held = record(0, Kind::Held, 0, 8000, 3, 4, 0);
    held.index = 2;
    let mut trace = trace(1, vec![record(0, Kind::Leaf, 0, 10_000, 0, 0, 0), held], 10_000);
    trace.end.observed.by = Some(KernelInfo { source: KernelSource::Sums, refused: Vec::new() });
    let times = &Analysis::of(&trace, 1).kernel[0];
    assert_eq!((times.aside, times.longest, times.by.as_slice()), (4000, 0, &[(None, 4000)][..]));
    assert_eq!((times.preempted, times.blocked), (3, 2));
    let timeline = multigrain_trace::analysis::Timeline::new(&trace);
    assert_eq!(timeline.set_aside(0, 2000, 4000), (1000, None));
    assert_eq!(timeline.set_aside(0, 8000, 9000), (0, None));
}
