//! What an interval costs in each mode, beside a bare read of the clock. Medians of several runs, interleaved.

use std::hint::black_box;
use std::time::Instant;

use multigrain_trace::{Mode, Recorder, now};

const INTERVALS: u64 = 2_000_000;
const RUNS: usize = 9;

fn per_interval_ns(mut body: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    for i in 0..INTERVALS {
        body(i);
    }
    begin.elapsed().as_secs_f64() * 1e9 / INTERVALS as f64
}

fn recorded_ns(mode: Mode) -> f64 {
    let mut recorder = Recorder::new(black_box(mode), 0, 3);
    let mut t = recorder.start();
    per_interval_ns(|i| {
        t = if i % 2 == 0 { recorder.leaf(t, i) } else { recorder.wait(t, 1, i) };
        black_box(&mut recorder);
    })
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    let _ = now();
    let mut samples = vec![Vec::new(); 4];
    for _ in 0..RUNS {
        samples[0].push(per_interval_ns(|_| {
            black_box(now());
        }));
        samples[1].push(recorded_ns(Mode::Off));
        samples[2].push(recorded_ns(Mode::Totals));
        samples[3].push(recorded_ns(Mode::Full));
    }
    for (name, samples) in ["a read of the clock", "off", "totals", "full"].iter().zip(samples) {
        println!("{name:<20} {:>7.2} ns", median(samples));
    }
}
