//! Who does what next: control threads, the kernel's thread, programs, and what contexts do meanwhile.

use super::machine::{Load, Machine, Policy, Work};
use super::{Did, Interval, Outcome, Task};
use crate::{Class, Random, Simulation, ThreadId, Time};
use multigrain_schedule::contexts::{Contexts, Entered, Handed, Release};
use std::collections::VecDeque;

#[derive(Clone, Copy)]
enum Event {
    /// A program has made one more task.
    Spawned(usize),
    /// A thread has done what it was doing.
    Done(Who),
    /// A context has done its work, or its part of a frame, if its count is still this.
    Ended(usize, u64),
    /// The kernel's timer, if its count is still this.
    Tick(u64),
    /// The host has taken a frame of a program.
    Frame(usize),
    /// The other thread begins, or has done its part.
    Others,
    OthersDone,
}

/// A thread that may hold the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Kernel,
    Control(usize),
}

/// What a thread is doing, or does when it has the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Sleeps,
    /// Woke up, and is about to lock the list for what it does then.
    Comes(Then),
    /// Sleeps until the lock is given back.
    Blocked(Then),
    /// Has the lock and looks.
    Does(Then),
    /// Has the lock and binds or takes away; what follows is in `Thread::handed`.
    Switches,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// A control thread looks for a processor.
    Look,
    /// It binds its context to the one that it has found.
    Bind(usize),
    /// It has nothing to do any more.
    Leave,
    /// The kernel's thread looks at this processor and the following.
    Tick(usize),
}

struct Thread {
    id: ThreadId,
    doing: Doing,
    /// The burst under way, for the record.
    burst: Time,
    /// What it is handing over.
    handed: VecDeque<Handed>,
    /// What it goes on with after that.
    after: Option<Then>,
}

impl Thread {
    fn new(id: ThreadId) -> Thread {
        Thread { id, doing: Doing::Sleeps, burst: Time::ZERO, handed: VecDeque::new(), after: None }
    }
}

struct Context {
    program: usize,
    left: Time,
    /// Since when it runs, and on what.
    since: Option<(Time, usize)>,
    /// Since when it waits.
    waits: Time,
    count: u64,
    /// Has done its part of the frame.
    parted: bool,
    done: bool,
    /// Until when its control thread is recorded.
    recorded: Time,
    task: Task,
}

struct Program {
    main: ThreadId,
    /// Tasks that it has made, and those that it makes.
    made: usize,
    tasks: Vec<usize>,
    /// Tasks that are not yet done with the frame, and frames left.
    parts: usize,
    frames: u32,
}

pub(super) struct Model<'a> {
    machine: &'a Machine,
    load: &'a Load,
    sim: Simulation<Event>,
    contexts: Contexts,
    threads: Vec<Thread>,
    kernel: Thread,
    tasks: Vec<Context>,
    programs: Vec<Program>,
    holder: Option<Who>,
    sleepers: VecDeque<Who>,
    timer: u64,
    armed: bool,
    others: Option<ThreadId>,
    random: Random,
    left: usize,
    outcome: Outcome,
}

/// How often the other thread of the host computes.
const PERIOD: Time = Time::from_ps(10_000_000_000);
/// The nice level of a thread of the kernel.
const KERNEL: Class = Class::Normal { nice: -5 };

impl<'a> Model<'a> {
    pub(super) fn new(machine: &'a Machine, load: &'a Load) -> Model<'a> {
        let mut sim = Simulation::new();
        let host = sim.host(machine.host.clone());
        let mut contexts = Contexts::new(machine.processors, machine.release(load.policy), machine.slices());
        let (class, thread) = load.policy.classes(load.nice);
        let kernel = Thread::new(sim.thread(host, KERNEL));
        let mut programs: Vec<Program> = (0..load.programs)
            .map(|_| Program { main: sim.thread(host, Class::default()), made: 0, tasks: vec![], parts: 0, frames: 0 })
            .collect();
        let (mut threads, mut tasks) = (Vec::new(), Vec::new());
        for number in 0..load.tasks {
            let program = number % load.programs;
            programs[program].tasks.push(number);
            contexts.add(class, program as u32);
            threads.push(Thread::new(sim.thread(host, thread)));
            tasks.push(Context {
                program,
                left: Time::ZERO,
                since: None,
                waits: Time::ZERO,
                count: 0,
                parted: false,
                done: false,
                recorded: Time::ZERO,
                task: Task::default(),
            });
        }
        for (program, of) in programs.iter_mut().enumerate() {
            of.parts = of.tasks.len();
            of.frames = if let Work::Frames { count, .. } = load.work { count } else { 0 };
            sim.compute(of.main, machine.costs.spawn, Event::Spawned(program));
        }
        let others = (load.background > Time::ZERO).then(|| sim.thread(host, Class::default()));
        if others.is_some() {
            sim.at(Time::ZERO, Event::Others);
        }
        let outcome = Outcome {
            wall: Time::ZERO,
            switches: 0,
            switching: Time::ZERO,
            tasks: Vec::new(),
            host: Time::ZERO,
            intervals: Vec::new(),
        };
        let left = load.tasks;
        let random = Random::new(load.seed);
        let (holder, sleepers) = (None, VecDeque::new());
        let (timer, armed) = (0, false);
        Model {
            machine,
            load,
            sim,
            contexts,
            threads,
            kernel,
            tasks,
            programs,
            holder,
            sleepers,
            timer,
            armed,
            others,
            random,
            left,
            outcome,
        }
    }

    pub(super) fn run(mut self) -> Outcome {
        while self.left > 0
            && let Some(event) = self.sim.next()
        {
            match event {
                Event::Spawned(program) => self.spawned(program),
                Event::Done(who) => self.done(who),
                Event::Ended(task, count) => self.ended(task, count),
                Event::Tick(count) => self.tick(count),
                Event::Frame(program) => self.frame(program),
                Event::Others => {
                    if let Some(others) = self.others {
                        self.sim.compute(others, self.load.background, Event::OthersDone);
                    }
                }
                Event::OthersDone => {
                    let next = Time::from_ps((self.sim.now().ps() / PERIOD.ps() + 1) * PERIOD.ps());
                    self.sim.at(next, Event::Others);
                }
            }
        }
        self.outcome.wall = self.sim.now();
        let threads = self.threads.iter().map(|thread| thread.id).chain([self.kernel.id]);
        self.outcome.host = threads.map(|thread| self.sim.thread_time(thread)).sum();
        self.outcome.tasks = self.tasks.iter().map(|context| context.task).collect();
        self.outcome
    }

    fn thread(&mut self, who: Who) -> &mut Thread {
        match who {
            Who::Kernel => &mut self.kernel,
            Who::Control(task) => &mut self.threads[task],
        }
    }

    /// A time as it comes out once.
    fn drawn(&mut self, mean: Time) -> Time {
        let off = self.machine.costs.spread * (2.0 * self.random.uniform() - 1.0);
        Time::from_ps((mean.ps() as f64 * (1.0 + off)).round() as u64)
    }

    /// A thread goes on with a burst.
    fn goes_on(&mut self, who: Who, doing: Doing, mean: Time) {
        let burst = self.drawn(mean);
        let thread = self.thread(who);
        (thread.doing, thread.burst) = (doing, burst);
        let id = thread.id;
        self.sim.compute(id, burst, Event::Done(who));
    }

    /// A thread that sleeps is woken, by another or by an event.
    fn wakes(&mut self, by: Option<Who>, who: Who, doing: Doing, mean: Time) {
        let burst = self.drawn(mean);
        let by = by.map(|by| self.thread(by).id);
        let thread = self.thread(who);
        (thread.doing, thread.burst) = (doing, burst);
        let id = thread.id;
        match by {
            Some(by) => self.sim.wake(by, id, burst, Event::Done(who)),
            None => self.sim.compute(id, burst, Event::Done(who)),
        }
    }

    fn half_look(&self) -> Time {
        Time::from_ps(self.machine.costs.look.ps() / 2)
    }

    fn half_switch(&self) -> Time {
        Time::from_ps(self.machine.costs.switch.ps() / 2)
    }

    /// What a control thread does before it looks for a processor.
    fn before_look(&self) -> Time {
        self.half_look() + self.load.spin
    }

    fn spawned(&mut self, program: usize) {
        let of = &mut self.programs[program];
        let (main, task) = (of.main, of.tasks[of.made]);
        of.made += 1;
        let more = of.made < of.tasks.len();
        self.contexts.start(task as u32);
        let now = self.sim.now();
        let context = &mut self.tasks[task];
        (context.waits, context.recorded) = (now, now);
        context.left = match self.load.work {
            Work::Loop(time) => time,
            Work::Frames { frame, .. } => Time::from_ps(frame.ps() / self.programs[program].tasks.len() as u64),
        };
        let burst = self.drawn(self.before_look());
        let thread = &mut self.threads[task];
        (thread.doing, thread.burst) = (Doing::Comes(Then::Look), burst);
        let id = thread.id;
        self.sim.fork(main, id, burst, Event::Done(Who::Control(task)));
        if more {
            self.sim.compute(main, self.machine.costs.spawn, Event::Spawned(program));
        }
    }

    fn record(&mut self, who: Who) {
        let Who::Control(task) = who else { return };
        let now = self.sim.now();
        let context = &mut self.tasks[task];
        let from = (now - self.threads[task].burst).max(context.recorded);
        context.recorded = now;
        self.interval(task, Did::Controlled, from, now);
    }

    fn interval(&mut self, task: usize, what: Did, from: Time, to: Time) {
        if to > from {
            self.outcome.intervals.push(Interval { task: task as u32, what, from, to });
        }
    }

    /// A thread's burst is over.
    fn done(&mut self, who: Who) {
        self.record(who);
        match self.thread(who).doing {
            Doing::Sleeps | Doing::Blocked(_) => debug_assert!(false, "a thread that sleeps does nothing"),
            Doing::Comes(then) => self.locks(who, then),
            Doing::Does(Then::Look) => self.looked(who),
            Doing::Does(Then::Leave) => self.leaves(who),
            Doing::Does(Then::Tick(processor)) => self.looks_at(who, processor),
            Doing::Does(Then::Bind(processor)) => self.binds(who, processor),
            Doing::Switches => self.switched(who),
        }
    }

    /// A thread that runs takes the lock, or sleeps until it is given back.
    fn locks(&mut self, who: Who, then: Then) {
        if self.holder.is_some() {
            if !self.sleepers.contains(&who) {
                self.sleepers.push_back(who);
            }
            self.thread(who).doing = Doing::Blocked(then);
            return;
        }
        self.sleepers.retain(|sleeper| *sleeper != who);
        self.holder = Some(who);
        let burst = match then {
            Then::Look | Then::Leave => self.half_look(),
            Then::Bind(_) => self.half_switch(),
            Then::Tick(_) => Time::ZERO,
        };
        self.goes_on(who, Doing::Does(then), burst);
    }

    fn unlocks(&mut self, who: Who) {
        debug_assert!(self.holder == Some(who), "who gives back the lock has it");
        self.holder = None;
        if let Some(&first) = self.sleepers.front()
            && let Doing::Blocked(then) = self.thread(first).doing
        {
            self.wakes(Some(who), first, Doing::Comes(then), self.half_look());
        }
    }

    /// A control thread has looked for a processor.
    fn looked(&mut self, who: Who) {
        let Who::Control(task) = who else { return };
        let entered = self.contexts.enter(task as u32);
        match entered {
            Entered::Bound(processor) => {
                self.unlocks(who);
                self.locks(who, Then::Bind(processor));
            }
            Entered::Took { processor, victim } => {
                // The lock is given back between both, but nobody else can have the processor.
                let last = Some(victim);
                self.stops(victim as usize);
                self.hands(who, vec![Handed { processor, last, next: Some(task as u32) }], None);
            }
            Entered::Waits => {
                let filled = self.contexts.fill();
                self.arms();
                if filled.is_empty() {
                    self.thread(who).doing = Doing::Sleeps;
                    self.unlocks(who);
                } else {
                    self.hands(who, filled, None);
                }
            }
        }
    }

    fn binds(&mut self, who: Who, processor: usize) {
        let Who::Control(task) = who else { return };
        self.bound(task, processor);
        self.thread(who).doing = Doing::Sleeps;
        self.unlocks(who);
    }

    /// A context has a processor and goes on.
    fn bound(&mut self, task: usize, processor: usize) {
        let now = self.sim.now();
        self.outcome.switches += 1;
        self.outcome.switching += self.half_switch();
        let context = &mut self.tasks[task];
        let waited = now - context.waits;
        if context.task.first == Time::ZERO {
            context.task.first = now;
        }
        context.task.starved = context.task.starved.max(waited);
        context.since = Some((now, processor));
        let from = context.waits;
        self.interval(task, Did::Waited, from, now);
        self.computes(task);
    }

    /// A context that has a processor works on what is left.
    fn computes(&mut self, task: usize) {
        let context = &mut self.tasks[task];
        context.count += 1;
        if !context.parted && !context.done {
            self.sim.after(context.left, Event::Ended(task, context.count));
        }
    }

    /// A context loses its processor.
    fn stops(&mut self, task: usize) {
        let now = self.sim.now();
        let context = &mut self.tasks[task];
        let Some((since, processor)) = context.since.take() else { return };
        context.count += 1;
        let ran = now - since;
        if !context.parted {
            context.left = context.left - ran;
        }
        if context.done {
            return;
        }
        context.task.ran += ran;
        context.waits = now;
        self.interval(task, Did::Ran(processor as u32), since, now);
        if self.load.charged {
            let id = self.threads[task].id;
            self.sim.charge(id, ran);
        }
    }

    fn ended(&mut self, task: usize, count: u64) {
        let now = self.sim.now();
        let context = &mut self.tasks[task];
        if context.count != count {
            return;
        }
        let Some((since, processor)) = context.since else { return };
        if let Work::Frames { host, .. } = self.load.work {
            // It keeps its processor, and its time there goes on; what is left is nothing until the next frame.
            (context.parted, context.left) = (true, Time::ZERO);
            let program = context.program;
            let of = &mut self.programs[program];
            of.parts -= 1;
            if of.parts == 0 {
                let main = of.main;
                self.sim.compute(main, host, Event::Frame(program));
            }
            return;
        }
        (context.done, context.left) = (true, Time::ZERO);
        context.task.ran += now - since;
        context.task.end = now;
        self.interval(task, Did::Ran(processor as u32), since, now);
        let half = self.half_look();
        self.wakes(None, Who::Control(task), Doing::Comes(Then::Leave), half);
    }

    /// The host has a frame: the next begins, or the program ends.
    fn frame(&mut self, program: usize) {
        let now = self.sim.now();
        let Work::Frames { frame, .. } = self.load.work else { return };
        let of = &mut self.programs[program];
        of.frames = of.frames.saturating_sub(1);
        of.parts = of.tasks.len();
        let (last, tasks) = (of.frames == 0, of.tasks.clone());
        let part = Time::from_ps(frame.ps() / tasks.len() as u64);
        for task in tasks {
            let context = &mut self.tasks[task];
            (context.parted, context.left) = (false, part);
            let Some((since, processor)) = context.since else { continue };
            // The account begins anew, so that what has been waited for is no work.
            context.since = Some((now, processor));
            context.task.ran += now - since;
            self.interval(task, Did::Ran(processor as u32), since, now);
            if !last {
                self.computes(task);
            }
        }
        if last {
            for task in self.programs[program].tasks.clone() {
                let context = &mut self.tasks[task];
                (context.done, context.task.end) = (true, now);
                context.count += 1;
                self.left -= 1;
            }
        }
    }

    /// A control thread has nothing to do any more, and throws its context away.
    fn leaves(&mut self, who: Who) {
        let Who::Control(task) = who else { return };
        let handed = self.contexts.destroy(task as u32);
        self.disarms();
        self.hands(who, handed, None);
    }

    /// The timer's next interrupt: so many whole ones after the last.
    fn arms(&mut self) {
        if self.load.policy != Policy::Fifo && self.contexts.waiting() > 0 && !self.armed {
            self.armed = true;
            self.rings();
        }
    }

    fn rings(&mut self) {
        self.timer += 1;
        let interrupt = self.machine.interrupt().ps();
        let next = Time::from_ps((self.sim.now().ps() / interrupt + 10) * interrupt);
        self.sim.at(next, Event::Tick(self.timer));
    }

    fn disarms(&mut self) {
        if self.armed && self.contexts.waiting() == 0 {
            self.armed = false;
            self.timer += 1;
        }
    }

    fn tick(&mut self, count: u64) {
        if count != self.timer || !self.armed {
            return;
        }
        self.rings();
        // Ticks that come while it is busy are one.
        if self.kernel.doing == Doing::Sleeps {
            let half = self.half_look();
            self.wakes(None, Who::Kernel, Doing::Comes(Then::Tick(0)), half);
        }
    }

    /// The kernel's thread looks at the processors from this one on.
    fn looks_at(&mut self, who: Who, from: usize) {
        for processor in from..self.contexts.processors() {
            let handed = self.contexts.tick(processor);
            self.disarms();
            self.arms();
            if !handed.is_empty() {
                return self.hands(who, handed, Some(Then::Tick(processor + 1)));
            }
        }
        self.thread(who).doing = Doing::Sleeps;
        self.unlocks(who);
    }

    /// A thread that has the lock hands processors over, one after the other, and then goes on.
    fn hands(&mut self, who: Who, handed: Vec<Handed>, after: Option<Then>) {
        let thread = self.thread(who);
        thread.handed = handed.into();
        thread.after = after;
        self.next_hand(who);
    }

    fn next_hand(&mut self, who: Who) {
        let Some(&handed) = self.thread(who).handed.front() else {
            return match self.thread(who).after.take() {
                Some(Then::Tick(from)) => self.looks_at(who, from),
                _ => self.rests(who),
            };
        };
        let switch = self.half_switch();
        let mut burst = Time::ZERO;
        if let Some(last) = handed.last {
            self.stops(last as usize);
            self.outcome.switching += switch;
            burst += switch;
        }
        if handed.next.is_some_and(|next| self.gets(handed.processor, next)) {
            burst += switch;
        }
        self.goes_on(who, Doing::Switches, burst);
    }

    /// A control thread gives back the lock and sleeps, or is at its end.
    fn rests(&mut self, who: Who) {
        self.thread(who).doing = Doing::Sleeps;
        self.unlocks(who);
        if let Who::Control(task) = who
            && self.tasks[task].done
        {
            self.left -= 1;
        }
    }

    /// Whether a context has a processor by now, and is only to be bound.
    fn gets(&self, processor: usize, context: u32) -> bool {
        self.contexts.on(processor) == Some(context)
    }

    fn switched(&mut self, who: Who) {
        let Some(handed) = self.thread(who).handed.pop_front() else { return };
        let free = self.machine.release(self.load.policy) == Release::Free;
        if let Some(next) = handed.next {
            if self.gets(handed.processor, next) {
                self.bound(next as usize, handed.processor);
            } else if free {
                let burst = self.before_look();
                self.wakes(Some(who), Who::Control(next as usize), Doing::Comes(Then::Look), burst);
            }
        }
        if let Some(last) = handed.last.filter(|last| free && !self.tasks[*last as usize].done) {
            let burst = self.before_look();
            self.wakes(Some(who), Who::Control(last as usize), Doing::Comes(Then::Look), burst);
        }
        self.next_hand(who);
    }
}
