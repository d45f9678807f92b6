//! The fair scheduler of Linux 2.6.24 against small cases by hand and against the algorithm written as plainly as can be.

use multigrain_sim::{Class, Fair, Host, Scheduler, Simulation, Time};
use proptest::prelude::*;

fn ms(ms: f64) -> Time {
    Time::from_seconds(ms * 1e-3)
}

fn host(threads: usize, fair: Fair) -> Host {
    Host { cores: 1, speeds: vec![1.0; threads], switch: Time::ZERO, scheduler: Scheduler::Fair(fair) }
}

/// When parent and child end, of which the parent computes 1 ms, makes the child, which computes 1 ms, and computes 5 ms more.
fn forked(threads: usize, fair: Fair) -> [Time; 2] {
    let mut sim = Simulation::new();
    let host = sim.host(host(threads, fair));
    let [parent, child] = [0, 1].map(|_| sim.thread(host, Class::default()));
    sim.compute(parent, ms(1.0), 0);
    let mut ends = [Time::ZERO; 2];
    let mut made = false;
    while let Some(event) = sim.next() {
        if event == 0 && !made {
            made = true;
            sim.fork(parent, child, ms(1.0), 1);
            sim.compute(parent, ms(5.0), 0);
        } else {
            ends[event] = sim.now();
        }
    }
    ends
}

#[test]
fn a_child_runs_first_beside_its_parent_and_at_once_on_an_idle_sibling() {
    let one = Fair::linux_2_6_24(1);
    // The child begins 10 ms behind (20 ms for two), and is given the parent's place for it.
    assert_eq!(forked(1, one), [ms(7.0), ms(2.0)]);
    assert_eq!(forked(1, Fair { child_runs_first: false, ..one }), [ms(6.0), ms(7.0)]);
    assert_eq!(forked(2, Fair::linux_2_6_24(2)), [ms(6.0), ms(2.0)]);
}

#[test]
fn real_time_runs_before_all_others_and_takes_turns_if_it_is_to() {
    for (turns, ends) in [(false, [550.0, 150.0, 300.0]), (true, [550.0, 250.0, 300.0])] {
        let mut sim = Simulation::new();
        let host = sim.host(host(1, Fair::linux_2_6_24(1)));
        let normal = sim.thread(host, Class::Normal { nice: -20 });
        sim.compute(normal, ms(250.0), 0);
        for task in 1..3 {
            let thread = sim.thread(host, Class::RealTime { priority: 10, turns });
            sim.compute(thread, ms(150.0), task);
        }
        let mut found = [0.0; 3];
        while let Some(task) = sim.next() {
            found[task] = sim.now().seconds() * 1e3;
        }
        assert_eq!(found, ends, "{turns}");
    }
    // Higher priority interrupts lower, which goes on before its equals.
    let mut sim = Simulation::new();
    let host = sim.host(host(1, Fair::linux_2_6_24(1)));
    let thread = |sim: &mut Simulation<u32>, priority| sim.thread(host, Class::RealTime { priority, turns: false });
    let threads = [10, 10, 20].map(|priority| thread(&mut sim, priority));
    sim.compute(threads[0], ms(10.0), 0);
    sim.compute(threads[1], ms(10.0), 1);
    sim.at(ms(5.0), 9);
    let mut ends = Vec::new();
    while let Some(event) = sim.next() {
        match event {
            9 => sim.compute(threads[2], ms(10.0), 2),
            _ => ends.push((event, sim.now())),
        }
    }
    assert_eq!(ends, [(2, ms(15.0)), (0, ms(20.0)), (1, ms(30.0))]);
}

/// Nice levels share a hardware thread by their weights: 3121 and 1024 for -5 and 0.
#[test]
fn nice_levels_are_shares() {
    let mut sim = Simulation::new();
    let host = sim.host(host(1, Fair::linux_2_6_24(1)));
    let threads = [-5, 0].map(|nice| sim.thread(host, Class::Normal { nice }));
    for thread in threads {
        sim.compute(thread, ms(1e6), 0);
    }
    sim.at(ms(20_000.0), 1);
    assert_eq!(sim.next(), Some(1));
    let had = threads.map(|thread| sim.thread_time(thread).seconds());
    assert!((had[0] / had[1] - 3121.0 / 1024.0).abs() < 0.03, "{had:?}");
}

/// Each task's bursts and the sleeps after them, nanoseconds.
type Tasks = Vec<Vec<(u64, u64)>>;

/// Tasks of nice 0 on one hardware thread: ends of bursts, with times in picoseconds.
fn plain(tasks: &Tasks, fair: &Fair) -> Vec<(usize, u64)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Is {
        Sleeps(u64),
        Waits(u64),
        Runs,
        Gone,
    }
    let (latency, tick) = (fair.latency.ps() as i64, fair.tick.ps());
    let period = |n: i64| if n > 5 { latency * n / 5 } else { latency };
    let slice = |n: i64| (i128::from(period(n)) * 1024 / i128::from(1024 * n)) as i64;
    let (mut is, mut virtual_ps) = (vec![Is::Gone; tasks.len()], vec![0i64; tasks.len()]);
    let (mut at, mut left) = (vec![0; tasks.len()], vec![0u64; tasks.len()]);
    let (mut least, mut came) = (0i64, 0);
    for task in 0..tasks.len() {
        // All are new at the beginning, one after the other.
        let debit = if fair.features.start_debit { slice(task as i64 + 1) } else { 0 };
        let average = if fair.features.approx_avg && task > 0 { slice(task as i64) / 2 } else { 0 };
        (virtual_ps[task], is[task], left[task]) = (average + debit, Is::Waits(came), tasks[task][0].0 * 1000);
        came += 1;
    }
    let (mut now, mut ran, mut ticks, mut ends) = (0u64, 0u64, u64::MAX, Vec::new());
    loop {
        let runnable = |is: &[Is]| is.iter().filter(|is| matches!(is, Is::Waits(_) | Is::Runs)).count() as i64;
        let first = |is: &[Is], virtual_ps: &[i64]| {
            let waits =
                |task: usize| if let Is::Waits(came) = is[task] { Some((virtual_ps[task], came, task)) } else { None };
            (0..is.len()).filter_map(waits).min()
        };
        let mut current = is.iter().position(|is| *is == Is::Runs);
        if current.is_none()
            && let Some((.., task)) = first(&is, &virtual_ps)
        {
            (is[task], ran, ticks) = (Is::Runs, 0, now + tick);
            current = Some(task);
        }
        let wakes =
            (0..is.len()).filter_map(|t| if let Is::Sleeps(until) = is[t] { Some((until, t)) } else { None }).min();
        let end = current.map(|task| now + left[task]);
        let next = [wakes.map(|(until, _)| until), end, current.map(|_| ticks)].into_iter().flatten().min();
        let Some(next) = next else { return ends };
        if let Some(task) = current {
            let time = next - now;
            left[task] -= time;
            ran += time;
            virtual_ps[task] += time as i64;
            let behind = first(&is, &virtual_ps).map_or(virtual_ps[task], |(first, ..)| first.min(virtual_ps[task]));
            least = least.max(behind);
        }
        now = next;
        if end == Some(now) {
            let task = current.unwrap();
            ends.push((task, now));
            let (_, sleep) = tasks[task][at[task]];
            at[task] += 1;
            is[task] = if at[task] < tasks[task].len() { Is::Sleeps(now + sleep * 1000) } else { Is::Gone };
        } else if let Some((_, task)) = wakes.filter(|(until, _)| *until == now) {
            let mut place = least;
            if fair.features.approx_avg && runnable(&is) > 0 {
                place += slice(runnable(&is)) / 2;
            }
            if fair.features.new_fair_sleepers {
                place -= latency;
            }
            virtual_ps[task] = virtual_ps[task].max(place);
            (is[task], left[task]) = (Is::Waits(came), tasks[task][at[task]].0 * 1000);
            came += 1;
            if let Some(current) = current
                && fair.features.wakeup_preempt
                && virtual_ps[task] + (fair.wakeup_granularity.ps() as i64) < virtual_ps[current]
            {
                is[current] = Is::Waits(came);
                came += 1;
            }
        } else {
            ticks = now + tick;
            let n = runnable(&is);
            if n > 1 && ran as i64 > period(n) / n {
                is[current.unwrap()] = Is::Waits(came);
                came += 1;
            }
        }
    }
}

/// The same tasks in the simulator.
fn simulated(tasks: &Tasks, fair: Fair) -> Vec<(usize, u64)> {
    let mut sim = Simulation::new();
    let host = sim.host(host(1, fair));
    let threads: Vec<_> = tasks.iter().map(|_| sim.thread(host, Class::default())).collect();
    for (task, bursts) in tasks.iter().enumerate() {
        sim.compute(threads[task], Time::from_ps(bursts[0].0 * 1000), (task, 0, true));
    }
    let mut ends = Vec::new();
    while let Some((task, at, burst)) = sim.next() {
        if burst {
            ends.push((task, sim.now().ps()));
            if at + 1 < tasks[task].len() {
                sim.after(Time::from_ps(tasks[task][at].1 * 1000), (task, at + 1, false));
            }
        } else {
            sim.compute(threads[task], Time::from_ps(tasks[task][at].0 * 1000), (task, at, true));
        }
    }
    ends
}

proptest! {
    #[test]
    fn random_tasks_run_as_the_plain_algorithm_says(
        // Odd and long numbers, so that no two things happen at one moment.
        tasks in prop::collection::vec(prop::collection::vec((1..60_000_000u64, 1..90_000_000u64), 1..8), 1..9),
        sleepers in any::<bool>(),
        preempt in any::<bool>(),
        debit in any::<bool>(),
        average in any::<bool>(),
    ) {
        let mut fair = Fair::linux_2_6_24(1);
        fair.features.new_fair_sleepers = sleepers;
        // Without preemption ticks look even where one thread is alone, which changes nothing.
        fair.features.wakeup_preempt = preempt;
        fair.features.start_debit = debit;
        fair.features.approx_avg = average;
        prop_assert_eq!(simulated(&tasks, fair), plain(&tasks, &fair));
    }

    /// On several hardware threads all work is done, none is lost, and none idles long while another has threads that wait.
    #[test]
    fn nothing_is_lost_on_several_hardware_threads(
        tasks in prop::collection::vec(prop::collection::vec((1..20_000_000u64, 1..30_000_000u64), 1..6), 1..12),
        threads in 1..4usize,
        idle in any::<bool>(),
    ) {
        let mut sim = Simulation::new();
        let fair = Fair { wakes_idle: idle, ..Fair::linux_2_6_24(threads) };
        let host = sim.host(host(threads, fair));
        let ids: Vec<_> = tasks.iter().map(|_| sim.thread(host, Class::default())).collect();
        for (task, bursts) in tasks.iter().enumerate() {
            sim.compute(ids[task], Time::from_ps(bursts[0].0 * 1000), (task, 0, true));
        }
        while let Some((task, at, burst)) = sim.next() {
            if !burst {
                sim.compute(ids[task], Time::from_ps(tasks[task][at].0 * 1000), (task, at, true));
            } else if at + 1 < tasks[task].len() {
                sim.after(Time::from_ps(tasks[task][at].1 * 1000), (task, at + 1, false));
            }
        }
        let mut work = 0;
        for (task, bursts) in tasks.iter().enumerate() {
            let of: u64 = bursts.iter().map(|(burst, _)| burst * 1000).sum();
            prop_assert_eq!(sim.thread_time(ids[task]).ps(), of);
            work += of;
        }
        prop_assert_eq!(sim.host_use(host).running.ps(), work);
        let slept = tasks.iter().map(|bursts| bursts.iter().map(|(_, sleep)| sleep * 1000).sum::<u64>()).max().unwrap_or(0);
        let longest = tasks.iter().map(|bursts| bursts.iter().map(|(burst, _)| burst * 1000).sum::<u64>()).max().unwrap_or(0);
        prop_assert!(sim.now().ps() <= work / threads as u64 + slept + longest + 4_000_000_000 * tasks.len() as u64);
    }
}
