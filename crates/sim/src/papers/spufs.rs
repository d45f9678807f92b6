//! More tasks than SPEs under Linux 2.6.24, after Merino-Vidal, Gelado and Navarro, in virtual time.
//!
//! Every task of an SPE has a control thread on the PPE, which binds it to an SPE that is free, and else waits in a queue.
//! For tasks that share their SPEs in time, a thread of the kernel looks at them at every tick. A task whose time is up
//! loses its SPE to the first that waits, but not directly: the SPE becomes free, and both control threads are woken. The
//! one to which the PPE's scheduler gives a hardware thread first has the SPE; the other goes to the end of the queue.
//!
//! Source of the algorithm: arch/powerpc/platforms/cell/spufs/sched.c and kernel/sched_fair.c at v2.6.24.

use super::published::{Row, lines, number, usage};
use crate::{Fair, Host, HostId, Scheduler, Simulation, ThreadId, Time, WEIGHT_USUAL};
use std::collections::VecDeque;

/// SPEs of a PlayStation 3 under Linux.
const SPES: usize = 6;
/// Hardware threads of the PPE.
const THREADS: usize = 2;
/// Seconds of a task of 500 million iterations that has an SPE for itself: table I, first row (fit).
const FIT_TASK_SECONDS: f64 = 15.57;
/// The share of the run that binding six tasks takes: table I, first row (fit).
const FIT_SWITCH_SHARE: f64 = 0.001e-2;
/// Ten ticks of the Cell's usual 250 a second.
const TICK: Time = Time::from_ps(40_000_000_000);
/// Slice of a task of usual priority, in such ticks.
const SLICE_TICKS: u32 = 2;
/// Weight of the kernel's thread, of nice -5.
const WEIGHT_KERNEL: u32 = 3121;

/// What threads do on the PPE, and how long it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Making a thread and a task for it, and loading its program.
    pub spawn: Time,
    /// Looking for a free SPE, entering the queue or leaving it.
    pub look: Time,
    /// Binding a task to an SPE, and taking it away.
    pub switch: Time,
}

impl Default for Costs {
    /// The switch as fitted; the others, 1 ms and 5 us, are assumed.
    fn default() -> Costs {
        Costs {
            spawn: Time::from_seconds(1e-3),
            look: Time::from_seconds(5e-6),
            switch: Time::from_seconds(FIT_SWITCH_SHARE * FIT_TASK_SECONDS / SPES as f64),
        }
    }
}

/// How tasks share SPEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each keeps its SPE to its end.
    Fifo,
    /// All take turns; an SPE that is taken away is free for whoever comes first.
    Normal,
    /// As in Linux 2.6.25: whoever waited longest is given the SPE by the kernel's thread.
    Bound,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the first step to the end of the last task.
    pub wall: Time,
    /// How often a task was bound to an SPE.
    pub switches: u64,
    /// When each task had its first SPE.
    pub first: Vec<Time>,
}

#[derive(Clone, Copy)]
enum Event {
    /// The program has made one more task.
    Spawned,
    /// A control thread has done what it was doing.
    Control(usize),
    /// A task has done its work, if its count is still this.
    Ended(usize, u64),
    /// The kernel's timer.
    Tick,
    /// The kernel's thread has done what it was doing.
    Kernel,
}

/// What a control thread is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Looks for a free SPE.
    Looks,
    /// Binds its task to this SPE.
    Binds(usize),
    /// Asleep: its task waits in the queue, or has an SPE.
    Sleeps,
    /// Gives the SPE back.
    Leaves,
}

struct Task {
    thread: ThreadId,
    doing: Doing,
    /// Its SPE, while it runs or has ended there.
    spe: Option<usize>,
    left: Time,
    since: Time,
    slice: u32,
    /// Counts how often it was bound.
    count: u64,
    first: Option<Time>,
    ended: bool,
}

struct Model {
    sim: Simulation<Event>,
    sharing: Sharing,
    costs: Costs,
    work: Time,
    host: HostId,
    main: ThreadId,
    kernel: ThreadId,
    tasks: Vec<Task>,
    spawn: usize,
    /// For each SPE its task; one that is being bound has it already.
    spes: Vec<Option<usize>>,
    waiting: VecDeque<usize>,
    /// Tasks whose time is up, each with the one that is to have its SPE; the first is being dealt with.
    expired: VecDeque<(usize, usize)>,
    kernel_awake: bool,
    ticking: bool,
    switches: u64,
}

/// Runs `tasks` of `iterations` each, as loop-bench does, with the scheduler of the PPE as given.
pub fn simulate(sharing: Sharing, tasks: usize, iterations: f64, fair: Fair, costs: Costs) -> Outcome {
    let mut sim = Simulation::new();
    let host =
        sim.host(Host { cores: 1, speeds: vec![1.0; THREADS], switch: Time::ZERO, scheduler: Scheduler::Fair(fair) });
    let (main, kernel) = (sim.thread(host, WEIGHT_USUAL), sim.thread(host, WEIGHT_KERNEL));
    let mut model = Model {
        sim,
        sharing,
        costs,
        work: Time::from_seconds(FIT_TASK_SECONDS * iterations / 500e6),
        host,
        main,
        kernel,
        tasks: Vec::new(),
        spawn: tasks,
        spes: vec![None; SPES],
        waiting: VecDeque::new(),
        expired: VecDeque::new(),
        kernel_awake: false,
        ticking: false,
        switches: 0,
    };
    model.sim.compute(main, costs.spawn, Event::Spawned);
    let mut wall = Time::ZERO;
    while let Some(event) = model.sim.next() {
        match event {
            Event::Spawned => model.spawned(),
            Event::Control(task) => {
                model.control(task);
                wall = model.sim.now();
            }
            Event::Ended(task, count) => model.ended(task, count),
            Event::Tick => model.tick(),
            Event::Kernel => model.kernel(),
        }
    }
    let first = model.tasks.iter().map(|task| task.first.unwrap_or(wall)).collect();
    Outcome { wall, switches: model.switches, first }
}

impl Model {
    fn spawned(&mut self) {
        let thread = self.sim.thread(self.host, WEIGHT_USUAL);
        let number = self.tasks.len();
        self.tasks.push(Task {
            thread,
            doing: Doing::Looks,
            spe: None,
            left: self.work,
            since: Time::ZERO,
            slice: SLICE_TICKS,
            count: 0,
            first: None,
            ended: false,
        });
        self.sim.compute(thread, self.costs.look, Event::Control(number));
        if self.tasks.len() < self.spawn {
            self.sim.compute(self.main, self.costs.spawn, Event::Spawned);
        }
    }

    /// Wakes a control thread that sleeps.
    fn wake(&mut self, number: usize, doing: Doing) {
        let task = &mut self.tasks[number];
        task.doing = doing;
        let burst = if let Doing::Binds(_) = doing { self.costs.switch } else { self.costs.look };
        self.sim.compute(task.thread, burst, Event::Control(number));
    }

    fn control(&mut self, number: usize) {
        let now = self.sim.now();
        match self.tasks[number].doing {
            Doing::Looks => match self.spes.iter().position(Option::is_none) {
                Some(spe) => {
                    self.spes[spe] = Some(number);
                    self.wake(number, Doing::Binds(spe));
                }
                None => {
                    self.tasks[number].doing = Doing::Sleeps;
                    self.waiting.push_back(number);
                    if self.sharing != Sharing::Fifo && !std::mem::replace(&mut self.ticking, true) {
                        self.sim.after(TICK, Event::Tick);
                    }
                }
            },
            Doing::Binds(spe) => self.bound(number, spe),
            Doing::Leaves => {
                let task = &mut self.tasks[number];
                task.doing = Doing::Sleeps;
                if let Some(spe) = task.spe.take() {
                    self.spes[spe] = None;
                }
                if let Some(next) = self.waiting.pop_front() {
                    self.wake(next, Doing::Looks);
                }
            }
            Doing::Sleeps => debug_assert!(false, "a thread that sleeps does nothing at {now}"),
        }
    }

    /// A task has an SPE.
    fn bound(&mut self, number: usize, spe: usize) {
        let now = self.sim.now();
        self.switches += 1;
        self.spes[spe] = Some(number);
        let task = &mut self.tasks[number];
        task.doing = Doing::Sleeps;
        (task.spe, task.since, task.slice) = (Some(spe), now, SLICE_TICKS);
        task.count += 1;
        task.first.get_or_insert(now);
        self.sim.after(task.left, Event::Ended(number, task.count));
    }

    fn ended(&mut self, number: usize, count: u64) {
        let task = &mut self.tasks[number];
        if task.count == count && task.spe.is_some() {
            task.ended = true;
            self.wake(number, Doing::Leaves);
        }
    }

    /// The timer goes on as long as tasks wait, and wakes the kernel's thread if it sleeps.
    fn tick(&mut self) {
        self.ticking = !self.waiting.is_empty();
        if !self.ticking {
            return;
        }
        self.sim.after(TICK, Event::Tick);
        if !std::mem::replace(&mut self.kernel_awake, true) {
            self.sim.compute(self.kernel, self.costs.look, Event::Kernel);
        }
    }

    fn kernel(&mut self) {
        match self.expired.pop_front() {
            Some((old, new)) => self.taken_away(old, new),
            None => {
                for spe in 0..SPES {
                    let Some(number) = self.spes[spe] else { continue };
                    let task = &mut self.tasks[number];
                    if task.ended || task.spe.is_none() {
                        continue;
                    }
                    task.slice -= 1;
                    if task.slice > 0 {
                        continue;
                    }
                    task.slice = SLICE_TICKS;
                    if let Some(next) = self.waiting.pop_front() {
                        self.expired.push_back((number, next));
                    }
                }
            }
        }
        if self.expired.is_empty() {
            self.kernel_awake = false;
        } else {
            self.sim.compute(self.kernel, self.costs.switch, Event::Kernel);
        }
    }

    /// A task has lost its SPE, which was to be for another.
    fn taken_away(&mut self, old: usize, new: usize) {
        let now = self.sim.now();
        let task = &mut self.tasks[old];
        let freed = if task.ended { None } else { task.spe.take() };
        let Some(spe) = freed else {
            // It has ended meanwhile, and gives its SPE back itself.
            return self.wake(new, Doing::Looks);
        };
        // Its end is out of date now.
        task.count += 1;
        task.left = task.left - (now - task.since);
        self.spes[spe] = None;
        if self.sharing == Sharing::Bound {
            // The kernel's thread has waited for both halves of the switch.
            self.bound(new, spe);
            self.tasks[old].doing = Doing::Sleeps;
            self.waiting.push_back(old);
            return;
        }
        self.wake(new, Doing::Looks);
        self.wake(old, Doing::Looks);
    }
}

/// The published figures and the simulated ones.
pub fn rows() -> Vec<Row> {
    let row = |row: String, unit, published, simulated, usage, note: Option<&str>| Row {
        table: "Merino-Vidal et al., table I".into(),
        row,
        unit,
        published,
        simulated: Some(simulated),
        usage,
        follows: true,
        note: note.map(str::to_owned),
    };
    let fair = Fair::linux_2_6_24(THREADS);
    let mut rows = Vec::new();
    for fields in lines(include_str!("spufs.csv")) {
        let &[policy, tasks, seconds, switches, used] = &fields[..] else { continue };
        let sharing = if policy == "fifo" { Sharing::Fifo } else { Sharing::Normal };
        let outcome = simulate(sharing, number(tasks) as usize, 500e6, fair, Costs::default());
        let name = format!("{policy}, {tasks} tasks");
        let starved = (policy, tasks) == ("normal", "12");
        rows.push(row(format!("{name}: time"), "s", number(seconds), outcome.wall.seconds(), usage(used), None));
        let published = number(switches);
        let simulated = outcome.switches as f64;
        rows.push(row(format!("{name}: switches"), "switches", published, simulated, usage(used), None));
        if starved {
            let last = outcome.first.iter().max().copied().unwrap_or_default();
            let note = "the text: \"until after the 26th second\"";
            let name = format!("{name}: starved task begins");
            rows.push(row(name, "s", 26.0, last.seconds(), usage(used), Some(note)));
        }
    }
    rows
}
