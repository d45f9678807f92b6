//! What forking, handing over and claiming cost, beside `std::sync::Barrier` and a spin barrier written by hand, in
//! the same run. Every row is the median of several interleaved runs.
//!
//! `cargo bench -p multigrain-team`

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use multigrain_team::{Abort, ChainQueue, Padded, SpinLimit, Steps, Team, TeamOptions};

/// Many short runs: on a machine that does other things too most of them are left in peace.
const RUNS: usize = 201;
const ROUNDS: u64 = 2_000;
/// Blocked threads take microseconds a round.
const SLOW_ROUNDS: u64 = 50;
const CHAINS: u32 = 50_000;

fn ns_each(rounds: u64, body: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    body();
    begin.elapsed().as_secs_f64() * 1e9 / rounds as f64
}

fn fork_join(team: &Team, rounds: u64) -> f64 {
    let workers = team.workers();
    team.run(|| {
        ns_each(rounds, || {
            for _ in 0..rounds {
                let _ = team.fork(0..workers, &|worker| {
                    black_box(worker);
                });
            }
        })
    })
}

/// What the hardware's coherence allows: two counters, one line there and one back.
fn spin_barrier(team: &Team) -> f64 {
    let (go, done) = (Padded(AtomicU64::new(0)), Padded(AtomicU64::new(0)));
    let mut ns = 0.0;
    let ns_out = std::sync::Mutex::new(&mut ns);
    let _ = team.run(|| {
        team.fork(0..2, &|worker| {
            if worker == 0 {
                let took = ns_each(ROUNDS, || {
                    for round in 1..=ROUNDS {
                        go.store(round, Ordering::Release);
                        while done.load(Ordering::Acquire) < round {
                            spin_loop();
                        }
                    }
                });
                if let Ok(mut ns) = ns_out.lock() {
                    **ns = took;
                }
            } else {
                for round in 1..=ROUNDS {
                    while go.load(Ordering::Acquire) < round {
                        spin_loop();
                    }
                    done.store(round, Ordering::Release);
                }
            }
        })
    });
    ns
}

/// One hand-over: half of a ping and a pong.
fn hand_over(team: &Team, spin: SpinLimit, rounds: u64) -> f64 {
    let steps = [Steps::new(spin), Steps::new(spin)];
    let abort = Abort::new();
    team.run(|| {
        ns_each(2 * rounds, || {
            let _ = team.fork(0..2, &|worker| {
                for round in 1..=rounds {
                    if worker == 0 {
                        steps[0].signal();
                    }
                    let _ = steps[1 - worker].wait_for(round, &abort);
                    if worker == 1 {
                        steps[1].signal();
                    }
                }
            });
        })
    })
}

fn signal_alone() -> f64 {
    let steps = Steps::default();
    ns_each(ROUNDS, || {
        for _ in 0..ROUNDS {
            black_box(&steps).signal();
        }
    })
}

fn std_barrier(team: &Team) -> f64 {
    let barrier = Barrier::new(2);
    team.run(|| {
        ns_each(SLOW_ROUNDS, || {
            let _ = team.fork(0..2, &|_| {
                for _ in 0..SLOW_ROUNDS {
                    barrier.wait();
                }
            });
        })
    })
}

/// Claims by both workers of lists of the given lengths, in time of one worker.
fn claims(team: &Team, lengths: &[u32]) -> f64 {
    let queue = ChainQueue::new(lengths);
    let claimed = AtomicUsize::new(0);
    let all: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    team.run(|| {
        ns_each(all / 2, || {
            let _ = team.fork(0..2, &|worker| {
                let mut mine = 0;
                while let Some(chain) = queue.claim(worker) {
                    black_box(chain);
                    mine += 1;
                }
                claimed.fetch_add(mine, Ordering::Relaxed);
            });
        })
    })
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    let make = |spin| match Team::new(TeamOptions { workers: 2, bind: true, spin }) {
        Ok(team) => team,
        Err(error) => {
            eprintln!("no team of two workers: {error}");
            std::process::exit(1);
        }
    };
    // Long enough that nothing parks while this is measured, however busy the machine.
    let spinning = SpinLimit::from_ns(2_000_000);
    let (team, parking) = (make(spinning), make(SpinLimit::from_polls(0)));
    let one = team.run(|| 0..1);
    type Row<'a> = (&'a str, Box<dyn Fn() -> f64 + 'a>);
    let rows: [Row<'_>; 11] = [
        ("spin barrier by hand, there and back", Box::new(|| spin_barrier(&team))),
        ("fork and join, 2 workers, spinning", Box::new(|| fork_join(&team, ROUNDS))),
        ("fork and join, 2 workers, parking", Box::new(|| fork_join(&parking, SLOW_ROUNDS))),
        (
            "fork and join, 1 worker",
            Box::new(|| {
                team.run(|| {
                    ns_each(ROUNDS, || {
                        for _ in 0..ROUNDS {
                            let _ = team.fork(one.clone(), &|worker| {
                                black_box(worker);
                            });
                        }
                    })
                })
            }),
        ),
        ("hand-over by Steps, spinning", Box::new(|| hand_over(&team, spinning, ROUNDS))),
        ("hand-over by Steps, parking", Box::new(|| hand_over(&team, SpinLimit::from_polls(0), SLOW_ROUNDS))),
        ("signal, nobody waiting", Box::new(signal_alone)),
        ("claim from the own list", Box::new(|| claims(&team, &[CHAINS, CHAINS]))),
        ("claim, both workers from one list", Box::new(|| claims(&team, &[2 * CHAINS, 0]))),
        ("std::sync::Barrier, 2 threads", Box::new(|| std_barrier(&team))),
        (
            "std::thread::scope, 1 thread",
            Box::new(|| {
                ns_each(20, || {
                    for _ in 0..20 {
                        std::thread::scope(|scope| {
                            scope.spawn(|| black_box(1));
                        });
                    }
                })
            }),
        ),
    ];
    let mut samples = vec![Vec::new(); rows.len()];
    for _ in 0..RUNS {
        for (row, samples) in rows.iter().zip(&mut samples) {
            samples.push((row.1)());
        }
    }
    println!("2 workers, bound: {}; medians of {RUNS} runs", team.bound());
    for ((name, _), samples) in rows.iter().zip(&mut samples) {
        let median_ns = median(samples);
        println!("{name:<40} {median_ns:>10.1} ns   least {:>10.1} ns", samples[0]);
    }
}
