//! Observing this process on this computer, by whichever source that allows.

#![cfg(target_os = "linux")]

use multigrain_kernel::{Sink, Watch};
use multigrain_trace::{KernelSource, Kind, Record, Taken};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A sink that keeps everything.
fn kept() -> (Arc<Mutex<Vec<Record>>>, Sink) {
    let all: Arc<Mutex<Vec<Record>>> = Arc::default();
    let into = Arc::clone(&all);
    let sink: Sink = Box::new(move |full| {
        into.lock().unwrap().extend(full);
        Vec::with_capacity(16)
    });
    (all, sink)
}

fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

#[test]
fn a_thread_that_sleeps_is_seen_to_wait_by_itself() {
    const SLEEPS: u64 = 40;
    let (records, sink) = kept();
    let begin = multigrain_trace::now().0;
    let watch = Watch::begin(vec![this_thread()], sink).unwrap();
    for _ in 0..SLEEPS {
        std::thread::sleep(Duration::from_millis(1));
    }
    let observed = watch.end();
    let info = observed.by.unwrap();
    let end = multigrain_trace::now().0;
    let records = records.lock().unwrap();
    let waited: u64 = match info.source {
        KernelSource::Sums => records.iter().filter(|r| r.kind == Kind::Held).map(|r| u64::from(r.index)).sum(),
        _ => {
            let away = records.iter().filter(|r| r.kind == Kind::Away && Taken::of(r.detail) == Taken::Blocked);
            away.count() as u64
        }
    };
    assert!(waited >= SLEEPS || observed.lost > 0, "{waited} of {SLEEPS} by {info:?}: {records:?}");
    // One clock: what was seen lies where it happened.
    let slack = (multigrain_trace::ticks_per_second() * 1e-3) as u64;
    for record in &*records {
        assert!(record.worker == 0 && record.start <= record.end);
        assert!(record.start + slack >= begin && record.end <= end + slack, "{begin} {record:?} {end}");
    }
    assert!(info.source == KernelSource::ProcessorsAndWakings || !info.refused.is_empty());
}

/// Pages that are touched for the first time are counted.
#[test]
fn touched_pages_are_counted() {
    let (records, sink) = kept();
    let watch = Watch::begin(vec![this_thread()], sink).unwrap();
    let pages = 4096;
    let mut memory = vec![0_u8; pages * 4096];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&memory);
    watch.end();
    let records = records.lock().unwrap();
    let faults: u64 = records.iter().filter(|r| r.kind == Kind::Faults).map(|r| u64::from(r.number)).sum();
    // Pages may be larger than 4 KiB, up to 2 MiB.
    assert!(faults >= pages as u64 / 512, "{faults}");
}

#[test]
fn one_that_is_dropped_ends() {
    let (_, sink) = kept();
    drop(Watch::begin(vec![this_thread()], sink).unwrap());
}
