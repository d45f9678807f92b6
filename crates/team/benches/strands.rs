//! What a switch, an off-load and a shared loop cost, and what they gain on searches in miniature. Every row is the median
//! of several interleaved runs. Peers stand in `multigrain bench strands`.
//!
//! `cargo bench -p multigrain-team --bench strands`

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use multigrain_team::SpinLimit;
use multigrain_team::strands::{Hosts, Scheduler, SchedulerOptions, Strand, TaskKind};

const KERNEL: TaskKind = TaskKind::new(0, "kernel");

fn scheduler(policy: &str, workers: usize, hosts: Hosts, throttle: bool) -> Scheduler {
    let options = SchedulerOptions {
        policy: policy.parse().unwrap_or_else(|error| panic!("{error}")),
        workers,
        hosts,
        throttle,
        strands_max: None,
        spin: SpinLimit::from_ns(200_000),
        ..SchedulerOptions::default()
    };
    Scheduler::new(options).unwrap_or_else(|error| panic!("{error}"))
}

fn seconds(scheduler: &Scheduler, strands: usize, body: impl Fn(&Strand<'_>) -> f64 + Sync) -> f64 {
    let begin = Instant::now();
    let body = &body;
    let outcome = scheduler.run((0..strands).map(|_| move |strand: &Strand<'_>| body(strand)).collect());
    black_box(outcome.unwrap_or_else(|error| panic!("{error}")).results);
    begin.elapsed().as_secs_f64()
}

/// Nanoseconds a switch: strands of one host that do nothing but give way.
fn switch() -> f64 {
    const ROUNDS: u32 = 20_000;
    let options = SchedulerOptions { strands_max: Some(4), ..*scheduler("edtlp", 1, Hosts::Workers, true).options() };
    let scheduler = Scheduler::new(options).unwrap_or_else(|error| panic!("{error}"));
    let body = |strand: &Strand<'_>| {
        (0..ROUNDS).for_each(|_| strand.give_way());
        0.0
    };
    seconds(&scheduler, 4, body) * 1e9 / (4.0 * f64::from(ROUNDS))
}

/// Nanoseconds an off-load of nothing to another thread and back.
fn offload() -> f64 {
    const ROUNDS: u32 = 20_000;
    let scheduler = scheduler("edtlp", 1, Hosts::Own(1), false);
    let body = |strand: &Strand<'_>| {
        (0..ROUNDS).for_each(|_| strand.offload_call(KERNEL, || ()));
        0.0
    };
    seconds(&scheduler, 1, body) * 1e9 / f64::from(ROUNDS)
}

/// Nanoseconds a loop of two empty chunks, one for each of two workers.
fn fork_join() -> f64 {
    const ROUNDS: u32 = 20_000;
    let scheduler = scheduler("llp:2", 2, Hosts::Workers, false);
    let body = |strand: &Strand<'_>| {
        for _ in 0..ROUNDS {
            strand.offload(KERNEL, 2, 1, (), |range, ()| range.start as f64, |a, b| a + b);
        }
        0.0
    };
    seconds(&scheduler, 1, body) * 1e9 / f64::from(ROUNDS)
}

/// Iterations of a search: some 20 ms, so that many are left in peace by whatever else the machine does.
const ITERATIONS: usize = 8_000_000;

/// A kernel of about so long on one processor, with a result; some 4 ns an iteration.
fn kernel(range: Range<usize>) -> f64 {
    range.fold(1.0, |x: f64, i| x * 0.999 + (i as f64).sqrt())
}

/// Searches in miniature: kernels of `iterations`, between them a tenth of that on the strand's own.
fn searches(scheduler: &Scheduler, strands: usize, iterations: usize) -> f64 {
    let rounds = ITERATIONS / iterations;
    seconds(scheduler, strands, |strand| {
        let mut x = 0.0;
        for _ in 0..rounds {
            let sum = strand.offload(KERNEL, iterations, iterations.div_ceil(32), (), |r, ()| kernel(r), |a, b| a + b);
            x += sum.unwrap_or(0.0) + kernel(0..iterations / 20);
        }
        x
    })
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// What is reached when the machine does nothing else: the first decile.
fn low(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 10]
}

fn main() {
    println!("| what | ns |\n|---|---|");
    for (name, row) in
        [("switch", switch as fn() -> f64), ("off-load and back", offload), ("loop of two workers", fork_join)]
    {
        let mut samples: Vec<f64> = (0..21).map(|_| row()).collect();
        println!("| {name} | {:.0} (least {:.0}) |", median(&mut samples), samples[0]);
    }
    println!("\ntime on two workers / time of one search on one worker; one of ten runs is quicker than this");
    let policies = ["edtlp", "llp:2", "mgps", "marginal"];
    let on_two: Vec<Scheduler> = policies.iter().map(|policy| scheduler(policy, 2, Hosts::Workers, true)).collect();
    let one = scheduler("edtlp", 1, Hosts::Workers, true);
    for iterations in [1_000, 4_000, 16_000] {
        for strands in 1..=4 {
            let mut times = vec![Vec::new(); policies.len() + 1];
            for _ in 0..25 {
                times[0].push(searches(&one, 1, iterations));
                for (policy, times) in on_two.iter().zip(&mut times[1..]) {
                    times.push(searches(policy, strands, iterations));
                }
            }
            let base = low(&mut times[0]);
            let us = base * 1e6 / (ITERATIONS / iterations) as f64;
            let figures: Vec<String> = policies
                .iter()
                .zip(&mut times[1..])
                .map(|(p, times)| format!("{p} {:.3}", low(times) / base))
                .collect();
            println!("{us:>5.1} us, {strands} searches: {}", figures.join(", "));
        }
    }
}
