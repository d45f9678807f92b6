//! What rayon costs for work that does nothing: nanoseconds a call, in the protocol of `bench/README.md`.

use std::hint::{black_box, spin_loop};
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const BATCH: usize = 32;

fn main() {
    let (mut threads, mut calls, mut probe, mut work) = (2usize, 20_000usize, false, "broadcast".to_owned());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).filter(|n| (1..=1 << 30).contains(n));
        match &*argument {
            "--probe" => probe = true,
            "--threads" | "--calls" => match (number(), &*argument) {
                (Some(n), "--threads") => threads = n,
                (Some(n), _) => calls = n,
                (None, _) => fail(&format!("{argument} wants a whole number of at least 1")),
            },
            "--work" => work = arguments.next().unwrap_or_default(),
            _ => fail("options are --threads N, --calls N, --work broadcast | stolen-join | install, --probe"),
        }
    }
    // Who off-loads is a thread of its own; the pool has the others.
    let workers = if work == "install" { threads.saturating_sub(1).max(1) } else { threads };
    let pool = match rayon::ThreadPoolBuilder::new().num_threads(workers).build() {
        Ok(pool) => pool,
        Err(error) => fail(&error.to_string()),
    };
    let operation: Box<dyn Fn() + Sync> = match &*work {
        "broadcast" => Box::new(|| {
            rayon::broadcast(|context| black_box(context.index()));
        }),
        // The second closure is taken by another thread, since the first waits for that.
        "stolen-join" => Box::new(|| {
            let taken = AtomicBool::new(false);
            let wait = || while !taken.load(Ordering::Acquire) {
                spin_loop();
            };
            rayon::join(wait, || taken.store(true, Ordering::Release));
        }),
        "install" => Box::new(|| pool.install(|| black_box(()))),
        _ => fail("--work is broadcast, stolen-join or install"),
    };
    println!(r#"{{"ready": true, "peer": "rayon", "version": "rayon 1"}}"#);
    if probe {
        return;
    }
    let batches = (calls / BATCH).max(1);
    for line in std::io::stdin().lock().lines() {
        match line.as_deref() {
            Ok("run") => {
                let mut samples =
                    if work == "install" { repetition(&operation, batches) } else { pool.install(|| repetition(&operation, batches)) };
                samples.sort_by(f64::total_cmp);
                let (median, p99) = (samples[samples.len() / 2], samples[samples.len() * 99 / 100]);
                println!(r#"{{"peer": "rayon", "version": "rayon 1", "latency_ns": {median}, "p99_ns": {p99}}}"#);
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

/// Nanoseconds an operation, a figure for each batch after some that do not count.
fn repetition(operation: &(dyn Fn() + Sync), batches: usize) -> Vec<f64> {
    let mut samples = Vec::with_capacity(batches);
    for batch in 0..batches + 8 {
        let begin = Instant::now();
        (0..BATCH).for_each(|_| operation());
        if batch >= 8 {
            samples.push(begin.elapsed().as_secs_f64() * 1e9 / BATCH as f64);
        }
    }
    samples
}
