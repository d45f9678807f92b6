//! Hosts, servers and disks against what can be worked out by hand.

use multigrain_sim::{Class, Disk, Fair, Host, Scheduler, Simulation, ThreadId, Time};

fn ms(ms: f64) -> Time {
    Time::from_seconds(ms * 1e-3)
}

/// Two hardware threads on one core, as a PPE has, each as fast as alone unless `speeds` says otherwise.
fn ppe(speeds: &[f64], switch: Time, scheduler: Scheduler) -> Host {
    Host { cores: 1, speeds: speeds.to_vec(), switch, scheduler }
}

/// When each of `processes` that compute `work` in one burst has ended, and what the host did.
fn ends(host: Host, processes: u32, work: Time) -> (Vec<Time>, multigrain_sim::HostUse) {
    let mut sim = Simulation::new();
    let host = sim.host(host);
    for process in 0..processes {
        let thread = sim.thread(host, Class::default());
        sim.compute(thread, work, process);
    }
    let mut ends = vec![Time::ZERO; processes as usize];
    while let Some(process) = sim.next() {
        ends[process as usize] = sim.now();
    }
    (ends, sim.host_use(host))
}

#[test]
fn two_hardware_threads_serve_m_processes_in_turn() {
    let quantum = Scheduler::RoundRobin { quantum: ms(10.0) };
    for m in 1..=9u64 {
        let (all, used) = ends(ppe(&[1.0, 1.0], Time::ZERO, quantum.clone()), m as u32, ms(100.0));
        // Both are busy until less than a turn before the end, when one of an odd number is alone with its last turn.
        let last = all.into_iter().max().unwrap();
        let both = ms(50.0) * m.max(2);
        assert!(last >= both && last <= both + ms(10.0), "{m}: {last}");
        assert_eq!(used.running, ms(100.0) * m, "{m} processes");
    }
    // Four: turns of 10 ms, two by two, so the first two end after 190 ms and the others after 200.
    let (all, used) = ends(ppe(&[1.0, 1.0], Time::ZERO, quantum), 4, ms(100.0));
    assert_eq!(all, [ms(190.0), ms(190.0), ms(200.0), ms(200.0)]);
    assert_eq!(used.switches, 40);
}

#[test]
fn first_come_first_served_runs_pairs() {
    let (all, used) = ends(ppe(&[1.0, 1.0], Time::ZERO, Scheduler::Fifo), 5, ms(100.0));
    assert_eq!(all, [ms(100.0), ms(100.0), ms(200.0), ms(200.0), ms(300.0)]);
    assert_eq!(used.switches, 5);
}

#[test]
fn hardware_threads_of_a_core_slow_each_other_down() {
    // Two share the core at 0.6 each until the first is done; then the other has it alone.
    let mut sim = Simulation::new();
    let host = sim.host(ppe(&[1.0, 0.6], Time::ZERO, Scheduler::Fifo));
    let threads: Vec<ThreadId> = (0..2).map(|_| sim.thread(host, Class::default())).collect();
    sim.compute(threads[0], ms(60.0), 0);
    sim.compute(threads[1], ms(100.0), 1);
    assert_eq!((sim.next(), sim.now()), (Some(0), ms(100.0)));
    assert_eq!((sim.next(), sim.now()), (Some(1), ms(140.0)));
    assert_eq!((sim.thread_time(threads[0]), sim.thread_time(threads[1])), (ms(100.0), ms(140.0)));
    // On two cores they do not meet.
    let mut sim = Simulation::new();
    let host = sim.host(Host { cores: 2, ..ppe(&[1.0, 0.6], Time::ZERO, Scheduler::Fifo) });
    for process in 0..2 {
        let thread = sim.thread(host, Class::default());
        sim.compute(thread, ms(60.0), process);
    }
    assert_eq!((sim.next(), sim.next(), sim.now()), (Some(0), Some(1), ms(60.0)));
}

#[test]
fn a_thread_that_goes_on_at_once_keeps_its_processor() {
    // Two threads on one hardware thread, each with bursts back to back: nobody is switched before the first is done.
    let mut sim = Simulation::new();
    let host = sim.host(ppe(&[1.0], Time::from_ns(1500.0), Scheduler::Fifo));
    let threads: Vec<ThreadId> = (0..2).map(|_| sim.thread(host, Class::default())).collect();
    for (process, thread) in threads.iter().enumerate() {
        sim.compute(*thread, ms(1.0), (process, 1));
    }
    let mut order = Vec::new();
    while let Some((process, burst)) = sim.next() {
        order.push((process, burst));
        if burst < 3 {
            sim.compute(threads[process], ms(1.0), (process, burst + 1));
        }
    }
    assert_eq!(order, [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]);
    assert_eq!(sim.now(), ms(6.0) + Time::from_ns(3000.0));
    // With a nap between bursts the other one gets it, for the price of a switch each time.
    let mut sim = Simulation::new();
    let host = sim.host(ppe(&[1.0], Time::from_ns(1500.0), Scheduler::Fifo));
    let threads: Vec<ThreadId> = (0..2).map(|_| sim.thread(host, Class::default())).collect();
    for (process, thread) in threads.iter().enumerate() {
        sim.compute(*thread, ms(1.0), (process, 1, false));
    }
    let mut order = Vec::new();
    while let Some((process, burst, slept)) = sim.next() {
        if slept {
            sim.compute(threads[process], ms(1.0), (process, burst + 1, false));
        } else {
            order.push((process, burst));
            if burst < 3 {
                sim.after(Time::from_ns(1.0), (process, burst, true));
            }
        }
    }
    assert_eq!(order, [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)]);
    assert_eq!((sim.now(), sim.host_use(host).switches), (ms(6.0) + Time::from_ns(9000.0), 6));
}

#[test]
fn who_spins_holds_its_processor() {
    // Thread 0 waits for 25 ms with its processor held; thread 1 needs 10 ms and gets them in turns of 10 ms.
    for (scheduler, expected) in [
        (Scheduler::Fifo, [ms(25.0), ms(35.0)]),
        // 0 has the first turn, 1 has the second and is done, 0 sees at 25 what happened meanwhile.
        (Scheduler::RoundRobin { quantum: ms(10.0) }, [ms(25.0), ms(20.0)]),
    ] {
        let mut sim = Simulation::new();
        let host = sim.host(ppe(&[1.0], Time::ZERO, scheduler));
        let threads: Vec<ThreadId> = (0..2).map(|_| sim.thread(host, Class::default())).collect();
        sim.spin(threads[0], 0);
        sim.compute(threads[1], ms(10.0), 1);
        sim.at(ms(25.0), 9);
        let mut ends = [Time::ZERO; 2];
        while let Some(event) = sim.next() {
            if event == 9 {
                sim.end_spin(threads[0]);
            } else {
                ends[event] = sim.now();
            }
        }
        assert_eq!(ends, expected);
    }
    // What happens while a spinner has no processor is seen when it gets one.
    let mut sim = Simulation::new();
    let host = sim.host(ppe(&[1.0], Time::ZERO, Scheduler::RoundRobin { quantum: ms(10.0) }));
    let threads: Vec<ThreadId> = (0..2).map(|_| sim.thread(host, Class::default())).collect();
    sim.spin(threads[0], 0);
    sim.compute(threads[1], ms(30.0), 1);
    sim.at(ms(12.0), 9);
    assert_eq!(sim.next(), Some(9));
    sim.end_spin(threads[0]);
    assert_eq!((sim.next(), sim.now()), (Some(0), ms(20.0)));
    assert_eq!((sim.next(), sim.now()), (Some(1), ms(40.0)));
}

#[test]
fn servers_and_disks_serve_in_order() {
    let mut sim = Simulation::new();
    let server = sim.server();
    sim.serve(server, ms(1.0), 0);
    sim.serve(server, ms(2.0), 1);
    let disk =
        sim.disk(Disk { read_bytes_per_second: 40e6, write_bytes_per_second: 20e6, seek: ms(12.7), request: ms(0.1) });
    // Two reads in a row, one elsewhere, one write behind it: two seeks, the first of them not at the beginning.
    sim.access(disk, 0, 4_000_000, false, 2);
    sim.access(disk, 4_000_000, 4_000_000, false, 3);
    sim.access(disk, 0, 4_000_000, false, 4);
    sim.access(disk, 4_000_000, 2_000_000, true, 5);
    let mut ends = Vec::new();
    while let Some(event) = sim.next() {
        ends.push((event, sim.now()));
    }
    let expected = [(0, 1.0), (1, 3.0), (2, 100.1), (3, 200.2), (4, 313.0), (5, 413.1)];
    assert_eq!(ends, expected.map(|(event, end)| (event, ms(end))));
    assert_eq!(sim.busy(server), ms(3.0));
}

/// Cores with the fair scheduler as it is on one: 20, 4 and 10 ms.
fn fair(cpus: usize) -> Host {
    let fair = Fair::linux_2_6_24(1);
    Host { cores: cpus, speeds: vec![1.0], switch: Time::ZERO, scheduler: Scheduler::Fair(fair) }
}

#[test]
fn the_fair_scheduler_gives_time_by_weight() {
    // Two that compute for ever, one of nice -3, which weighs 1991 of 1024: after a while it has had as much of the time.
    let mut sim = Simulation::new();
    let host = sim.host(fair(1));
    let threads = [sim.thread(host, Class::default()), sim.thread(host, Class::Normal { nice: -3 })];
    for thread in threads {
        sim.compute(thread, ms(1e6), 0);
    }
    sim.at(ms(6000.0), 1);
    assert_eq!(sim.next(), Some(1));
    let had = threads.map(|thread| sim.thread_time(thread).seconds());
    assert!((had[1] / had[0] - 1991.0 / 1024.0).abs() < 0.02, "{had:?}");
    assert!((had[0] + had[1] - 6.0).abs() < 1e-9);
    // Three of one weight: slices of a third of 20 ms end at the next tick of 4 ms, so turns are of 8 ms.
    let (all, used) = ends(fair(1), 3, ms(80.0));
    assert!(all.iter().all(|end| *end > ms(200.0) && *end <= ms(240.0)), "{all:?}");
    assert!(used.running == ms(240.0) && (29..=30).contains(&used.switches), "{used:?}");
}

#[test]
fn who_slept_takes_the_processor_from_who_computed() {
    let mut sim = Simulation::new();
    let host = sim.host(fair(1));
    let threads = [sim.thread(host, Class::default()), sim.thread(host, Class::default())];
    // The second has its turn and sleeps; the first computes on for 100 ms, then the second wakes and runs at once.
    sim.compute(threads[1], ms(1.0), 1);
    sim.at(ms(101.0), 2);
    assert_eq!((sim.next(), sim.now()), (Some(1), ms(1.0)));
    sim.compute(threads[0], ms(1000.0), 0);
    assert_eq!((sim.next(), sim.now()), (Some(2), ms(101.0)));
    sim.compute(threads[1], ms(1.0), 1);
    assert_eq!((sim.next(), sim.now()), (Some(1), ms(102.0)));
    // It has the processor until it has caught up; then the other has a turn before it is done.
    sim.at(ms(103.0), 2);
    assert_eq!(sim.next(), Some(2));
    sim.compute(threads[1], ms(30.0), 1);
    sim.next();
    assert!(sim.now() > ms(133.0), "{}", sim.now());
}

#[test]
fn idle_hardware_threads_take_work_from_others() {
    // Four on two: two each; when both of one queue are done, it takes one of the other's.
    let (all, used) = ends(fair(2), 4, ms(100.0));
    let last = all.into_iter().max().unwrap();
    assert!(last >= ms(200.0) && last < ms(210.0), "{last}");
    assert_eq!(used.running, ms(400.0));
    // Three: the odd one is passed on, so that none of the two hardware threads idles long.
    let (all, _) = ends(fair(2), 3, ms(100.0));
    let last = all.into_iter().max().unwrap();
    assert!(last >= ms(150.0) && last <= ms(201.0), "{last}");
    // The published constants: two hardware threads double those of one.
    assert_eq!(Fair::linux_2_6_24(2).latency, ms(40.0));
    assert_eq!(Fair::linux_2_6_24(1).wakeup_granularity, ms(10.0));
}
