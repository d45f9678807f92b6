//! Random traces: any records at all, and runs that could have been.

use multigrain_trace::{
    ArrayInfo, ClockInfo, EdgeInfo, End, Flow, Header, Idleness, KernelInfo, KernelSource, Kind, NO_SUBJECT, Observed,
    Other, PlanInfo, Record, SlotInfo, StrandsInfo, Taken, Totals, Trace, Use,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Names for so many workers and edges, one task, one plan with three arrays.
pub(crate) fn header(workers: usize, edges: usize) -> Header {
    let array = |name: &str| ArrayInfo { name: name.into(), element: "float32".into(), shape: vec![64, 64] };
    Header {
        program: "sgemm".into(),
        machine: "test".into(),
        clock: ClockInfo { name: "virtual".into(), ticks_per_second: 1e9, tick: 0, unix_ns: 0 },
        workers: (0..workers).map(|w| format!("worker {w}")).collect(),
        edges: (0..edges)
            .map(|e| EdgeInfo {
                name: format!("edge {e}"),
                driver: "disk".into(),
                children: 1,
                capacity_bytes: 1 << 20,
                read_bytes_per_second: Some(1e9),
                write_bytes_per_second: Some(1e9),
                latency_ns: Some(100.0),
            })
            .collect(),
        tasks: vec!["sgemm".into()],
        plans: vec![PlanInfo { edge: 0, arrays: ["A", "B", "C"].map(array).to_vec(), calls: 8 }],
        reasons: vec!["alone".into()],
        strands: Some(StrandsInfo { policy: "edtlp".into(), workers: 2, strands: 3, ..StrandsInfo::default() }),
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    (0..Kind::COUNT).prop_map(|kind| Kind::ALL[kind])
}

/// Any record of one of so many workers.
pub(crate) fn any_record(workers: u32) -> impl Strategy<Value = Record> {
    (any::<[u64; 2]>(), any::<[u32; 2]>(), 0..workers, any::<u16>(), kind(), any::<u8>()).prop_map(
        |([start, end], [number, subject], worker, index, kind, detail)| Record {
            start,
            end,
            number,
            subject,
            worker,
            index,
            kind,
            detail,
        },
    )
}

fn slot() -> impl Strategy<Value = SlotInfo> {
    (any::<[u32; 3]>(), any::<[u64; 2]>(), vec(any::<(u64, u64)>(), 0..5)).prop_map(
        |([plan, child, array], [offset_bytes, bytes], sides)| {
            let (start, len) = sides.into_iter().unzip();
            SlotInfo { plan, child, array, offset_bytes, bytes, start, len }
        },
    )
}

/// A trace of anything that the format holds, in the order in which it is read.
pub(crate) fn any_trace() -> impl Strategy<Value = Trace> {
    let uses = vec(any::<(u32, u32)>().prop_map(|(slot, call)| Use { slot, call }), 0..6);
    let names = (vec(".{0,12}", 1..4), vec(".{0,12}", 0..4), 1.0..1e10_f64);
    let end = (any::<[u64; 3]>(), any::<u64>());
    (names, vec(slot(), 0..5), uses, end, any::<bool>()).prop_flat_map(|(names, slots, mut uses, end, with_sums)| {
        let (workers, tasks, rate) = names;
        uses.sort_unstable();
        vec(any_record(workers.len() as u32), 0..40).prop_map(move |mut records| {
            records.sort_by_key(|r| (r.start, r.worker, u64::MAX - r.end));
            let ([start, elapsed_ns, dropped], later) = end;
            let mut header = Header { tasks: tasks.clone(), workers: workers.clone(), ..header(0, 2) };
            (header.clock.tick, header.clock.ticks_per_second) = (start, rate);
            let kernel = KernelInfo { source: KernelSource::Processors, refused: vec![tasks.concat()] };
            let others = tasks.iter().map(|name| Other { thread: dropped as u32, name: name.clone(), own: with_sums });
            let by = with_sums.then_some(kernel);
            let observed = Observed { by, others: others.collect(), lost: dropped, clock_error_ns: elapsed_ns };
            let mut totals = Vec::new();
            if with_sums {
                totals = vec![Totals::new(2); workers.len()];
                for record in &records {
                    totals[record.worker as usize].add_record(record);
                }
            }
            let end = End { start, tick: start.saturating_add(later), elapsed_ns, dropped, totals, observed };
            Trace { header, slots: slots.clone(), uses: uses.clone(), end, records }
        })
    })
}

/// What one worker does next in a run that could have been.
#[derive(Clone, Copy, Debug)]
enum Step {
    Leaf(u64),
    /// Issues a transfer that takes so long, of which so much is in a queue.
    Issue(u64, u64),
    /// Waits for its oldest transfer that is not awaited yet.
    Await,
    Gap(u64),
    Overhead(u64),
    /// Waits for the worker, as far as that has come, and so much longer.
    Signal(usize, u64),
}

fn step(workers: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..1000_u64).prop_map(Step::Leaf),
        (1..800_u64, 0..300_u64).prop_map(|(ticks, queue)| Step::Issue(ticks, queue.min(ticks))),
        Just(Step::Await),
        (1..60_u64).prop_map(Step::Gap),
        (1..30_u64).prop_map(Step::Overhead),
        (0..workers, 0..20_u64).prop_map(|(other, late)| Step::Signal(other, late)),
    ]
}

/// A run that could have been: each worker's activities follow each other, waits end with their transfers, idle times
/// with the worker that they depend on.
pub(crate) fn run() -> impl Strategy<Value = Trace> {
    (1..4_usize, 0..1000_u64).prop_flat_map(|(workers, start)| {
        let steps = vec((0..workers, step(workers)), 0..60);
        (steps, 0..50_u64).prop_map(move |(steps, tail)| simulate(workers, start, &steps, tail))
    })
}

fn simulate(workers: usize, start: u64, steps: &[(usize, Step)], tail: u64) -> Trace {
    let mut now = vec![start; workers];
    let mut issued = vec![0_u32; workers];
    let mut open: Vec<Vec<(u32, u64)>> = vec![Vec::new(); workers];
    let mut records = Vec::new();
    let mut slots = Vec::new();
    let mut calls = 0;
    for &(worker, step) in steps {
        let t = now[worker];
        let mut push = |kind, start, end, number, subject, detail| {
            records.push(Record { start, end, number, subject, worker: worker as u32, index: 0, kind, detail });
        };
        match step {
            Step::Leaf(ticks) => {
                push(Kind::Leaf, t, t + ticks, calls, 0, 0);
                calls += 1;
                now[worker] += ticks;
            }
            Step::Issue(ticks, queue) => {
                let (number, slot) = (issued[worker], slots.len() as u32);
                let bytes = ticks * 100;
                let (start, len) = (vec![0, u64::from(slot)], vec![64, 1]);
                slots.push(SlotInfo { plan: 0, child: 0, array: slot % 3, offset_bytes: 0, bytes, start, len });
                let flow = if slot % 4 == 3 { Flow::Up } else { Flow::Down };
                if queue > 0 {
                    push(Kind::Queue, t, t + queue, number, slot, flow as u8);
                }
                push(Kind::Transfer, t, t + ticks, number, slot, flow as u8);
                open[worker].push((number, t + ticks));
                issued[worker] += 1;
            }
            Step::Await => {
                if !open[worker].is_empty() {
                    let (number, done) = open[worker].remove(0);
                    push(Kind::Wait, t, t.max(done) + 1, number, worker as u32, 0);
                    now[worker] = t.max(done) + 1;
                }
            }
            Step::Gap(ticks) => now[worker] += ticks,
            Step::Overhead(ticks) => {
                push(Kind::Overhead, t, t + ticks, 0, NO_SUBJECT, 1);
                now[worker] += ticks;
            }
            Step::Signal(other, late) => {
                let until = t.max(now[other]) + late;
                push(Kind::Idle, t, until, 0, other as u32, Idleness::Join as u8);
                now[worker] = until;
            }
        }
    }
    let tick = now.iter().max().copied().unwrap_or(start) + tail;
    let mut header = header(workers, 1);
    header.plans[0].calls = calls;
    records.sort_by_key(|r: &Record| (r.start, r.worker, u64::MAX - r.end));
    let uses = (0..slots.len() as u32).map(|slot| Use { slot, call: slot }).collect();
    Trace { header, slots, uses, end: End { start, tick, ..End::default() }, records }
}

/// A run of two workers beside another program, observed: worker 0 is set aside for 300 ticks of its first leaf, for which
/// worker 1 waits; then it waits for a transfer that has ended 250 ticks before it gets a processor.
pub(crate) fn observed() -> Trace {
    let record = |worker, kind, start, end, number, subject, detail| {
        let index = if kind == Kind::Faults || kind == Kind::Away { multigrain_trace::NO_INDEX } else { 0 };
        Record { start, end, number, subject, worker, index, kind, detail }
    };
    let records = vec![
        record(0, Kind::Leaf, 0, 600, 0, 0, 0),
        record(1, Kind::Leaf, 0, 200, 1, 0, 0),
        record(0, Kind::Away, 200, 500, 1, 0, Taken::Preempted as u8),
        record(1, Kind::Idle, 200, 600, 0, 0, Idleness::Join as u8),
        record(0, Kind::Leaf, 600, 1000, 2, 0, 0),
        record(1, Kind::Leaf, 600, 2000, 3, 0, 0),
        record(0, Kind::Faults, 600, 900, 12, NO_SUBJECT, 0),
        record(0, Kind::Wait, 1000, 1400, 0, 0, 0),
        record(0, Kind::Transfer, 1000, 1150, 0, 0, Flow::Down as u8),
        record(0, Kind::Away, 1000, 1400, 1, 2, Taken::Blocked as u8),
        record(0, Kind::Ready, 1150, 1400, 1, 0, 0),
        record(0, Kind::Migration, 1400, 1400, 0, 1, 0),
        record(0, Kind::Leaf, 1400, 2000, 4, 0, 0),
    ];
    let other = |thread, name: &str, own| Other { thread, name: name.to_owned(), own };
    let others = vec![other(77, "sh", false), other(5, "disk-0", true), other(0, "idle", false)];
    let by = Some(KernelInfo { source: KernelSource::ProcessorsAndWakings, refused: Vec::new() });
    let observed = Observed { by, others, lost: 0, clock_error_ns: 40 };
    Trace { header: header(2, 1), records, end: End { tick: 2000, observed, ..End::default() }, ..Trace::default() }
}
