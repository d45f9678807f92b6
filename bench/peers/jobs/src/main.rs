//! What crossbeam-channel and rayon take for independent jobs whose source and results are on one thread: nanoseconds a job,
//! in the protocol of `bench/README.md`. The jobs are those of `multigrain bench dispatch`.

use crossbeam_channel::{TryRecvError, TrySendError, bounded};
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::hint::black_box;
use std::io::BufRead;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Jobs in flight, as in the bench.
const ROOM: u64 = 8192;

/// What every worker of a job needs.
struct Work {
    input: Vec<u64>,
    jobs: u64,
    threads: usize,
    batch: u64,
}

/// The stream of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) at one place.
fn mixed(counter: u64) -> u64 {
    let z = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// One job: the input combined with a stream of its own into `output`; its result is the sum of that, or its number.
fn execute(input: &[u64], output: &mut Vec<u64>, job: u64) -> u64 {
    if input.is_empty() {
        return black_box(job);
    }
    let first = job.wrapping_mul(input.len() as u64);
    output.clear();
    output.extend(input.iter().zip(first..).map(|(word, counter)| word ^ mixed(counter)));
    black_box(&mut *output).iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Two bounded channels of batches of jobs. The calling thread sends, takes in
/// results, and executes jobs itself while it can do neither.
fn batches(work: &Work, size: u64) -> u64 {
    let room = (ROOM / size).max(2 * work.threads as u64);
    let (jobs, to_do) = bounded::<Range<u64>>(room as usize);
    let (found, results) = bounded::<Vec<u64>>(room as usize);
    let run = |batch: Range<u64>, output: &mut Vec<u64>| -> Vec<u64> {
        batch.map(|job| execute(&work.input, output, job)).collect()
    };
    let (mut sum, mut sent, mut in_flight, mut seen) = (0_u64, 0, 0, 0);
    std::thread::scope(|scope| {
        for _ in 1..work.threads {
            let (to_do, found, run) = (to_do.clone(), found.clone(), &run);
            scope.spawn(move || {
                let mut output = Vec::new();
                for batch in to_do {
                    let _ = found.send(run(batch, &mut output));
                }
            });
        }
        let mut output = Vec::new();
        let mut take_in = |results: Vec<u64>, in_flight: &mut u64| {
            seen += results.len() as u64;
            *in_flight -= 1;
            sum = results.into_iter().fold(sum, u64::wrapping_add);
            seen
        };
        let mut done = 0;
        while done < work.jobs {
            while let Ok(batch) = results.try_recv() {
                done = take_in(batch, &mut in_flight);
            }
            let next = sent..(sent + size).min(work.jobs);
            if !next.is_empty() && in_flight < room && jobs.try_send(next.clone()).is_ok() {
                (sent, in_flight) = (next.end, in_flight + 1);
                continue;
            }
            match to_do.try_recv() {
                Ok(batch) => done = take_in(run(batch, &mut output), &mut in_flight),
                Err(TryRecvError::Empty) if done < work.jobs => {
                    if let Ok(batch) = results.recv() {
                        done = take_in(batch, &mut in_flight);
                    }
                }
                Err(_) => break,
            }
        }
        drop(jobs);
    });
    sum
}

/// Two bounded channels of jobs, one by one; otherwise as [`batches`].
fn channel(work: &Work) -> u64 {
    let (jobs, to_do) = bounded::<u64>(ROOM as usize);
    let (found, results) = bounded::<u64>(ROOM as usize);
    let (mut sum, mut sent, mut seen) = (0_u64, 0, 0);
    std::thread::scope(|scope| {
        for _ in 1..work.threads {
            let (to_do, found) = (to_do.clone(), found.clone());
            scope.spawn(move || {
                let mut output = Vec::new();
                for job in to_do {
                    let _ = found.send(execute(&work.input, &mut output, job));
                }
            });
        }
        let mut output = Vec::new();
        while seen < work.jobs {
            while let Ok(result) = results.try_recv() {
                (sum, seen) = (sum.wrapping_add(result), seen + 1);
            }
            let room = sent < work.jobs && sent - seen < ROOM;
            match if room { jobs.try_send(sent) } else { Err(TrySendError::Full(0)) } {
                Ok(()) => sent += 1,
                Err(_) => match to_do.try_recv() {
                    Ok(job) => (sum, seen) = (sum.wrapping_add(execute(&work.input, &mut output, job)), seen + 1),
                    Err(TryRecvError::Empty) if seen < work.jobs => {
                        if let Ok(result) = results.recv() {
                            (sum, seen) = (sum.wrapping_add(result), seen + 1);
                        }
                    }
                    Err(_) => break,
                },
            }
        }
        drop(jobs);
    });
    sum
}

/// One bounded channel to workers who keep their sums: nothing comes back, which is less than the others do.
fn one_way(work: &Work) -> u64 {
    let (jobs, to_do) = bounded::<u64>(ROOM as usize);
    let sum = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 1..work.threads.max(2) {
            let (to_do, sum) = (to_do.clone(), &sum);
            scope.spawn(move || {
                let mut output = Vec::new();
                let own = to_do.iter().fold(0_u64, |own, job| own.wrapping_add(execute(&work.input, &mut output, job)));
                sum.fetch_add(own, Ordering::Relaxed);
            });
        }
        for job in 0..work.jobs {
            let _ = jobs.send(job);
        }
        drop(jobs);
    });
    sum.into_inner()
}

/// rayon's bridge from an iterator on whichever thread to all of the pool.
fn bridge(work: &Work) -> u64 {
    let add = |(sum, mut output): (u64, Vec<u64>), job| {
        (sum.wrapping_add(execute(&work.input, &mut output, job)), output)
    };
    let all = (0..work.jobs).par_bridge().fold(|| (0_u64, Vec::new()), add);
    all.map(|(sum, _)| sum).reduce(|| 0, u64::wrapping_add)
}

/// A task for each job.
fn spawn(work: &Work) -> u64 {
    let sum = AtomicU64::new(0);
    rayon::scope(|scope| {
        for job in 0..work.jobs {
            let sum = &sum;
            scope.spawn(move |_| {
                sum.fetch_add(execute(&work.input, &mut Vec::new(), job), Ordering::Relaxed);
            });
        }
    });
    sum.into_inner()
}

fn main() {
    let (mut threads, mut jobs, mut bytes, mut batch) = (2_usize, 100_000, 0, 1);
    let (mut probe, mut name) = (false, "channel".to_owned());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || match arguments.next().and_then(|text| text.parse::<u64>().ok()) {
            Some(number) => number,
            None => fail(&format!("{argument} wants a whole number")),
        };
        match &*argument {
            "--probe" => probe = true,
            "--threads" => threads = number().clamp(1, 4096) as usize,
            "--jobs" => jobs = number().max(1),
            "--bytes" => bytes = number() as usize,
            "--batch" => batch = number().max(1),
            "--work" => name = arguments.next().unwrap_or_default(),
            _ => fail("options are --threads N, --jobs N, --bytes N, --batch N, --work channel | batches | one-way | bridge | spawn, --probe"),
        }
    }
    let (peer, run): (_, fn(&Work) -> u64) = match &*name {
        "channel" => ("crossbeam-channel", channel),
        "batches" => ("crossbeam-channel", |work| batches(work, work.batch)),
        "one-way" => ("crossbeam-channel", one_way),
        "bridge" => ("rayon", bridge),
        "spawn" => ("rayon", spawn),
        _ => fail("--work is channel, batches, one-way, bridge or spawn"),
    };
    let pool = match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool,
        Err(error) => fail(&error.to_string()),
    };
    let work = Work { input: (0..bytes as u64 / 8).map(mixed).collect(), jobs, threads, batch };
    let run = || if peer == "rayon" { pool.install(|| run(&work)) } else { run(&work) };
    if !probe {
        let expected =
            (0..jobs).fold(0_u64, |sum, job| sum.wrapping_add(execute(&work.input, &mut Vec::new(), job)));
        if run() != expected {
            fail("the sum of the results is wrong");
        }
    }
    println!(r#"{{"ready": true, "peer": "{peer}", "version": "{peer}"}}"#);
    if probe {
        return;
    }
    for line in std::io::stdin().lock().lines() {
        match line.as_deref() {
            Ok("run") => {
                let begin = Instant::now();
                black_box(run());
                let latency_ns = begin.elapsed().as_secs_f64() * 1e9 / jobs as f64;
                println!(r#"{{"peer": "{peer}", "version": "{peer}", "latency_ns": {latency_ns}}}"#);
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
