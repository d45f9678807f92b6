//! What an interval costs in each mode, beside a bare read of the clock. Medians of several runs, interleaved.
//!
//! Times are those of the thread that records, as the scheduler counts them: what others do on this computer changes
//! them little. Between bursts of 16384 records there is a pause, in which the thread that writes the file catches up.

use std::hint::black_box;
use std::time::Duration;

use multigrain_trace::{End, Header, Mode, Recorder, Spill, now};
use rustix::time::{ClockId, clock_gettime};

const BURSTS: u32 = 40;
const BURST: u32 = 16 * 1024;
const RUNS: usize = 9;

fn thread_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn per_interval_ns(mut body: impl FnMut(u32)) -> f64 {
    let mut spent = Vec::new();
    for burst in 0..BURSTS {
        std::thread::sleep(Duration::from_millis(1));
        let begin = thread_ns();
        for i in 0..BURST {
            body(burst * BURST + i);
        }
        spent.push((thread_ns() - begin) / f64::from(BURST));
    }
    median(spent)
}

fn recorded_ns(mut recorder: Recorder) -> f64 {
    black_box(&mut recorder);
    let mut t = recorder.start();
    per_interval_ns(|i| {
        t = if i % 2 == 0 { recorder.leaf(t, 0, 0, i) } else { recorder.wait(t, 1, 0, i) };
        black_box(&mut recorder);
    })
}

/// As `recorded_ns`, and how many of the records were dropped.
fn spilled_ns(path: &std::path::Path) -> (f64, u64) {
    let spill = Spill::create(path).expect("a file");
    spill.begin(&Header { workers: vec!["worker 0".into()], ..Header::default() }, &[], &[]).expect("a header");
    let ns = recorded_ns(Recorder::spilling(0, 3, spill.clone()));
    spill.end(&End::default());
    spill.publish().expect("a trace");
    let written = std::fs::metadata(path).map_or(0, |m| m.len());
    (ns, u64::from(BURSTS * BURST).saturating_sub(written / 32))
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    let path = std::env::temp_dir().join(format!("multigrain-record-{}.trace", std::process::id()));
    let _ = now();
    let mut samples = vec![Vec::new(); 5];
    let mut dropped = 0;
    for _ in 0..RUNS {
        samples[0].push(per_interval_ns(|_| {
            black_box(now());
        }));
        samples[1].push(recorded_ns(Recorder::new(black_box(Mode::Off), 0, 3)));
        samples[2].push(recorded_ns(Recorder::new(black_box(Mode::Totals), 0, 3)));
        samples[3].push(recorded_ns(Recorder::new(black_box(Mode::Full), 0, 3)));
        let (ns, lost) = spilled_ns(&path);
        samples[4].push(ns);
        dropped += lost;
    }
    let _ = std::fs::remove_file(path);
    let names = ["a read of the clock", "off", "totals", "full, in memory", "full, to a file"];
    for (name, samples) in names.iter().zip(samples) {
        println!("{name:<20} {:>7.2} ns", median(samples));
    }
    println!("dropped              {dropped} of {}", RUNS * (BURSTS * BURST) as usize);
}
