//! What a barrier of the crate hurdles costs: nanoseconds, in the protocol of `bench/README.md`.

use std::io::BufRead;
use std::time::Instant;

const BATCH: usize = 32;

fn main() {
    let (mut threads, mut calls, mut probe) = (2usize, 20_000usize, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).filter(|n| (1..=1 << 30).contains(n));
        match &*argument {
            "--probe" => probe = true,
            "--threads" | "--calls" | "--elements" => match (number(), &*argument) {
                (Some(n), "--threads") => threads = n,
                (Some(n), "--calls") => calls = n,
                (Some(_), _) => {}
                (None, _) => fail(&format!("{argument} wants a whole number of at least 1")),
            },
            "--work" if arguments.next().as_deref() == Some("barrier") => {}
            _ => fail("options are --threads N, --calls N, --work barrier, --probe"),
        }
    }
    println!(r#"{{"ready": true, "peer": "hurdles", "version": "hurdles 1"}}"#);
    if probe {
        return;
    }
    for line in std::io::stdin().lock().lines() {
        match line.as_deref() {
            Ok("run") => {
                let mut samples = repetition(threads, (calls / BATCH).max(1));
                samples.sort_by(f64::total_cmp);
                let (median, p99) = (samples[samples.len() / 2], samples[samples.len() * 99 / 100]);
                println!(r#"{{"peer": "hurdles", "version": "hurdles 1", "latency_ns": {median}, "p99_ns": {p99}}}"#);
            }
            Ok("quit") | Err(_) => return,
            Ok(_) => println!(r#"{{"error": "the requests are `run` and `quit`"}}"#),
        }
    }
}

fn fail(why: &str) -> ! {
    println!(r#"{{"error": "{why}"}}"#);
    std::process::exit(2)
}

/// Nanoseconds a barrier, a figure for each batch after some that do not count.
fn repetition(threads: usize, batches: usize) -> Vec<f64> {
    let barrier = hurdles::Barrier::new(threads);
    let participant = |mut barrier: hurdles::Barrier| {
        let mut samples = Vec::with_capacity(batches);
        for batch in 0..batches + 8 {
            let begin = Instant::now();
            for _ in 0..BATCH {
                barrier.wait();
            }
            if batch >= 8 {
                samples.push(begin.elapsed().as_secs_f64() * 1e9 / BATCH as f64);
            }
        }
        samples
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let barrier = barrier.clone();
            scope.spawn(move || participant(barrier));
        }
        participant(barrier.clone())
    })
}
