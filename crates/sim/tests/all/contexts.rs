//! More contexts than processors: by hand, by what must hold for any load, and against what is published.

use multigrain_machine::{ContextScheduler, Machine as Described};
use multigrain_sim::contexts::{Costs, Did, Load, Machine, Outcome, Policy, Problem, Work, run, trace};
use multigrain_sim::papers::spufs::{cures, figure_3, figures, julia, loop_bench, machine, rows, spread};
use multigrain_sim::papers::{Use, errors};
use multigrain_sim::{Fair, Host, Scheduler, Time};
use multigrain_trace::{Analysis, Trace};
use proptest::prelude::*;

fn ms(ms: f64) -> Time {
    Time::from_seconds(ms * 1e-3)
}

/// Processors whose control threads take no time.
fn ideal(processors: usize) -> Machine {
    Machine {
        processors,
        host: Host {
            cores: 1,
            speeds: vec![1.0, 1.0],
            switch: Time::ZERO,
            scheduler: Scheduler::Fair(Fair::linux_2_6_24(2)),
        },
        interrupts_per_second: 250,
        scheduler: ContextScheduler::Spufs2624,
        costs: Costs { spawn: Time::ZERO, look: Time::ZERO, switch: Time::ZERO, spread: 0.0 },
    }
}

fn ends(outcome: &Outcome) -> Vec<Time> {
    outcome.tasks.iter().map(|task| task.end).collect()
}

#[test]
fn two_tasks_on_one_processor_by_hand() {
    // Slices are two ticks of 40 ms. 200 ms each: 0-80, 160-240, 320-360, and 80-160, 240-320, 360-400.
    let handed = run(&ideal(1), &Load::loops(2, ms(200.0), Policy::HandOff)).unwrap();
    assert_eq!(ends(&handed), [ms(360.0), ms(400.0)]);
    assert_eq!((handed.switches, handed.tasks[1].first, handed.tasks[1].starved), (6, ms(80.0), ms(80.0)));
    let first = run(&ideal(1), &Load::loops(2, ms(200.0), Policy::Fifo)).unwrap();
    assert_eq!((ends(&first), first.switches), (vec![ms(200.0), ms(400.0)], 2));
    assert!((first.fairness() - 0.9).abs() < 1e-9, "shares are 1 and 1/2: 2.25 / (2 x 1.25)");
    // Two gangs of one are turns, too.
    let gangs = run(&ideal(1), &Load { programs: 2, ..Load::loops(2, ms(200.0), Policy::Gang) }).unwrap();
    assert_eq!(ends(&gangs), [ms(360.0), ms(400.0)]);
    // What the kernel of 2.6.25 does with normal tasks is the hand-off.
    let later = Machine { scheduler: ContextScheduler::Spufs2625, ..ideal(1) };
    assert_eq!(run(&later, &Load::loops(2, ms(200.0), Policy::Normal)).unwrap(), handed);
}

#[test]
fn frames_wait_for_their_slowest_part_with_processors_held() {
    // Two tasks of 10 ms a frame on one processor: the second has it when the first's slice of 80 ms is over.
    let work = Work::Frames { count: 2, frame: ms(20.0), host: ms(1.0) };
    let load = Load { work, ..Load::loops(2, Time::ZERO, Policy::HandOff) };
    let outcome = run(&ideal(1), &load).unwrap();
    // First frame at 91 ms; the second task goes on at once and is done at 101; the first has the processor at 160 and is done at 170.
    assert_eq!(outcome.wall, ms(171.0));
    let together = run(&ideal(2), &load).unwrap();
    assert_eq!(together.wall, ms(22.0));
}

fn policies() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![Policy::Fifo, Policy::Normal, Policy::HandOff, Policy::RealTime, Policy::Gang])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_load_ends_with_all_its_work_done(
        policy in policies(),
        processors in 1..7usize,
        tasks in 1..14usize,
        programs in 1..4usize,
        work_ms in 1..600u64,
        costs_us in (0..3000u64, 0..60u64, 0..60u64),
        seed in any::<u64>(),
        charged in any::<bool>(),
    ) {
        let (spawn, look, switch) = costs_us;
        let us = |us: u64| Time::from_ps(us * 1_000_000);
        let costs = Costs { spawn: us(spawn), look: us(look), switch: us(switch), spread: 0.3 };
        let machine = Machine { costs, ..ideal(processors) };
        let programs = programs.min(tasks);
        let work = us(1000 * work_ms);
        let load = Load { programs, seed, charged, ..Load::loops(tasks, work, policy) };
        let outcome = match run(&machine, &load) {
            Err(Problem::Gang { members, .. }) => { prop_assert!(members > processors); return Ok(()); }
            outcome => outcome.unwrap(),
        };
        for task in &outcome.tasks {
            prop_assert_eq!(task.ran, work);
            prop_assert!(task.end >= task.first + work && task.end <= outcome.wall);
        }
        // One context on a processor at a time, and one processor for a context.
        let mut ran: Vec<_> = outcome.intervals.iter().filter_map(|i| match i.what {
            Did::Ran(processor) => Some((processor, i.from, i.to, i.task)),
            Did::Waited | Did::Controlled => None,
        }).collect();
        ran.sort_by_key(|(processor, from, ..)| (*processor, *from));
        prop_assert!(ran.windows(2).all(|w| w[0].0 != w[1].0 || w[0].2 <= w[1].1));
        ran.sort_by_key(|(_, from, _, task)| (*task, *from));
        prop_assert!(ran.windows(2).all(|w| w[0].3 != w[1].3 || w[0].2 <= w[1].1));
        prop_assert_eq!(run(&machine, &load).unwrap(), outcome);
    }
}

#[test]
fn published_times_and_switches_are_predicted() {
    let rows = rows().unwrap();
    assert_eq!(rows.len(), 15);
    for row in &rows {
        let error = row.error().unwrap().abs();
        let bar = match &*row.row {
            // Printed with one digit, of which 0.001 % is fitted; the last row is of a program whose frames are not known.
            row if row.ends_with("switching") => 0.8,
            "Julia's set, 12 tasks" => 0.5,
            _ => 0.1,
        };
        assert!(error <= if row.usage == Use::Fit { 0.01 } else { bar }, "{}: {:.1} %", row.row, 100.0 * error);
    }
    let times = |row: &&multigrain_sim::papers::Row| row.usage == Use::Predict && row.unit == "s";
    let (median, _) = errors(rows.iter().filter(times)).unwrap();
    assert!(median <= 0.03, "median {:.1} %", 100.0 * median);
}

#[test]
fn the_last_task_starves_whatever_is_assumed() {
    let machine = machine().unwrap();
    for seed in 1..=6 {
        let outcome = run(&machine, &Load { seed, ..loop_bench(12, 500e6, Policy::Normal) }).unwrap();
        let starved = outcome.tasks.iter().map(|task| task.starved).enumerate().max_by_key(|(_, starved)| *starved);
        assert_eq!(starved.unwrap().0, 11, "seed {seed}");
    }
    for variation in spread().unwrap() {
        // Where waking up takes longer than taking an SPE away, threads come together in another order.
        let holds = !variation.name.starts_with("look 20");
        let starves = (20.0..32.0).contains(&variation.figures.last_start);
        assert_eq!(starves, holds, "{}: {:?}", variation.name, variation.figures);
        assert!(
            !holds || (variation.figures.wall / 42.86 - 1.0).abs() < 0.1,
            "{}: {:?}",
            variation.name,
            variation.figures
        );
    }
}

#[test]
fn cures_act_as_published_but_for_one() {
    let cures = cures().unwrap();
    let none = cures[0].figures;
    for cure in &cures[1..] {
        let (name, figures) = (&*cure.name, cure.figures);
        let least = match name {
            // Published as a cure; here the last task keeps what it is ahead.
            "with APPROX_AVG" => {
                assert!((figures.wall / none.wall - 1.0).abs() < 0.05, "{figures:?}");
                continue;
            }
            "latency divided by 40" => 13.0,
            _ => 1.0,
        };
        assert!(figures.last_start < least && figures.wall < 0.9 * none.wall, "{name}: {figures:?}");
    }
    // Direct hand-off: within 2 % of first come, first served, and everybody progresses.
    let first = figures(&machine().unwrap(), &loop_bench(12, 500e6, Policy::Fifo)).unwrap();
    let handed = cures.last().unwrap().figures;
    assert!(handed.wall < 1.02 * first.wall && handed.last_start < 0.2, "{handed:?} {first:?}");
}

#[test]
fn figure_3_has_its_stairs_and_its_line() {
    let [fifo, normal] = [Policy::Fifo, Policy::Normal].map(|policy| move |tasks| figure_3(tasks, policy).unwrap());
    for tasks in [1, 6, 7, 12, 36] {
        let stairs = 31.14 * (tasks as f64 / 6.0).ceil();
        assert!((fifo(tasks) / stairs - 1.0).abs() < 0.01, "{tasks}");
    }
    let over = |tasks| normal(tasks) / fifo(tasks);
    // "11 and 12 SPU tasks have significantly more overhead .. when compared to .. 29 and 30."
    assert!(over(11) > over(29) && over(12) > over(30) + 0.1, "{} {} {} {}", over(11), over(12), over(29), over(30));
    assert!(normal(36) < 1.2 * fifo(36) && normal(7) < fifo(7));
}

#[test]
fn who_comes_when_others_are_done_finds_a_processor() {
    // The first is done before the second is made, and nobody waits when it leaves.
    let machine = Machine { costs: Costs { spawn: ms(10.0), ..ideal(1).costs }, ..ideal(1) };
    for policy in Policy::ALL {
        let programs = if policy == Policy::Gang { 3 } else { 1 };
        let outcome = run(&machine, &Load { programs, ..Load::loops(3, ms(2.0), policy) }).unwrap();
        assert!(outcome.tasks.iter().all(|task| task.ran == ms(2.0)), "{policy}: {outcome:?}");
    }
}

#[test]
fn julias_set_is_ruined() {
    let machine = machine().unwrap();
    let seconds = |tasks, policy| run(&machine, &julia(tasks, 300, policy)).unwrap().wall.seconds();
    assert!(seconds(12, Policy::Normal) > 20.0 * seconds(6, Policy::Normal));
    assert!(seconds(12, Policy::HandOff) < 3.0 * seconds(6, Policy::HandOff));
}

#[test]
fn a_trace_of_it_is_read_and_analysed() {
    let ps3 = Described::shipped("ps3").unwrap();
    let load = loop_bench(8, 20e6, Policy::Normal);
    let outcome = run(&Machine::of(&ps3).unwrap(), &load).unwrap();
    let written = trace(&ps3, &load, &outcome);
    let mut bytes = Vec::new();
    written.write(&mut bytes).unwrap();
    let read = Trace::read(&mut &bytes[..]).unwrap();
    assert_eq!(read, written);
    let seconds = |worker: u32| -> f64 {
        let of = read.records.iter().filter(|record| record.worker == worker);
        of.map(|record| read.seconds(record.end - record.start)).sum()
    };
    // Lanes have no gaps.
    for lane in 0..16 {
        assert!((seconds(lane) - outcome.wall.seconds()).abs() < 1e-9, "{}", read.header.worker(lane));
    }
    let _ = Analysis::of(&read, 5);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let machine = machine().unwrap();
    let refused = |load: Load| run(&machine, &load).unwrap_err().to_string();
    assert!(refused(Load::loops(0, ms(1.0), Policy::Normal)).contains("0 tasks"));
    assert!(refused(Load { programs: 0, ..Load::loops(1, ms(1.0), Policy::Normal) }).contains("0 programs"));
    assert!(refused(Load::loops(7, ms(1.0), Policy::Gang)).contains("a gang of 7 tasks does not fit on 6"));
    let xeon = Described::shipped("xeon").unwrap();
    assert!(Machine::of(&xeon).unwrap_err().to_string().contains("ps3"));
    assert!("fair".parse::<Policy>().unwrap_err().contains("hand-off"));
}
