//! The interpreter.

use super::{Load, Machine, OffloadError, Outcome, Waiting};
use crate::{Class, Host, HostId, Random, Scheduler, Simulation, ThreadId, Time};
use multigrain_schedule::jobs::Dispatch;
use multigrain_schedule::policy::{self, Arrival, Decision, Departure};

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A program has computed on the host: it off-loads.
    Computed { process: u32 },
    /// A polling program has seen the end of its task.
    Seen { process: u32 },
    /// The workers of a task are done.
    Done { task: u64 },
    /// The host knows that a program's task is done.
    Told { process: u32 },
    /// A hardware thread has turned to a program whose task is done.
    Turned { process: u32 },
    /// The policy's timer.
    Tick,
}

/// A program in progress, on a thread of the host.
struct Process {
    thread: ThreadId,
    core: u32,
    /// The strand, and its tasks still to be off-loaded.
    strand: u32,
    left: u64,
    /// Whether its last task was a longer one.
    longer: bool,
    /// When it computed last, in bursts of its core.
    last_burst: u64,
}

struct Running {
    task: u64,
    process: u32,
    start: Time,
    team: u32,
}

struct Run<'a> {
    machine: &'a Machine,
    load: &'a Load,
    sim: Simulation<Event>,
    policy: policy::Machine,
    decisions: Vec<Decision>,
    hosts: Vec<HostId>,
    processes: Vec<Process>,
    /// For each core, how many bursts there were.
    bursts: Vec<u64>,
    random: Random,
    /// Programs that have not begun.
    waiting: u32,
    in_progress: u32,
    next_task: u64,
    running: Vec<Running>,
    /// Tasks that are done and lie in their workers' mailboxes: number, span and team.
    mailboxes: Vec<(u64, Time, u32)>,
    /// Of tasks that have arrived: their processes and lengths.
    arrived: Vec<(u64, u32, f64)>,
    outcome: Outcome,
}

/// Runs programs under a policy.
///
/// # Errors
/// [`OffloadError`].
pub fn run(machine: &Machine, load: &Load) -> Result<Outcome, OffloadError> {
    let Machine { cores, threads_per_core, .. } = *machine;
    if cores == 0 || threads_per_core == 0 {
        return Err(OffloadError::NoHost { cores, threads_per_core });
    }
    if !(0.0..=1.0).contains(&load.program.spread) {
        return Err(OffloadError::Spread { spread: load.program.spread.to_string() });
    }
    let mut sim = Simulation::new();
    // Programs stay on their hardware threads, so each of these is a host of its own.
    let scheduler = match load.waiting {
        Waiting::Switches => Scheduler::Fifo,
        Waiting::Polls { quantum } => Scheduler::RoundRobin { quantum },
    };
    let host = Host { cores: 1, speeds: vec![1.0], switch: machine.switch, scheduler };
    let hosts: Vec<HostId> = (0..cores * threads_per_core).map(|_| sim.host(host.clone())).collect();
    let outcome = Outcome { end: Time::ZERO, tasks: 0, busy: Time::ZERO, workers: 0, switches: 0, events: 0 };
    let mut run = Run {
        machine,
        load,
        sim,
        policy: policy::Machine::new(load.policy, machine.workers)?,
        decisions: Vec::new(),
        hosts,
        processes: Vec::new(),
        bursts: vec![0; cores as usize],
        random: Random::new(load.seed),
        waiting: load.programs,
        in_progress: 0,
        next_task: 0,
        running: Vec::new(),
        mailboxes: Vec::new(),
        arrived: Vec::new(),
        outcome,
    };
    run.begin_programs();
    run.tick();
    while let Some(event) = run.sim.next() {
        run.handle(event);
    }
    run.outcome.events = run.sim.events();
    run.outcome.switches = run.hosts.iter().map(|host| run.sim.host_use(*host).switches).sum();
    Ok(run.outcome)
}

impl Run<'_> {
    fn begin_programs(&mut self) {
        while self.waiting > 0 && self.policy.may_begin() {
            let index = self.processes.len();
            let place = index % self.hosts.len();
            // Round the cores first, as an operating system spreads programs.
            let cores = self.machine.cores as usize;
            let (core, thread) = (place % cores, place / cores);
            let host = self.hosts[core * self.machine.threads_per_core as usize + thread];
            let thread = self.sim.thread(host, Class::default());
            self.processes.push(Process {
                thread,
                core: core as u32,
                strand: 0,
                left: 0,
                longer: false,
                last_burst: 0,
            });
            self.begin_program(index as u32);
        }
    }

    /// The next program, on a process that has none.
    fn begin_program(&mut self, process: u32) {
        self.policy.strand_begins();
        self.in_progress += 1;
        let at = &mut self.processes[process as usize];
        at.strand = self.load.programs - self.waiting;
        at.left = self.load.program.tasks;
        self.waiting -= 1;
        self.burst(process);
    }

    /// A program computes on the host, up to its next off-load.
    fn burst(&mut self, process: u32) {
        let core = self.processes[process as usize].core;
        let since = self.processes[process as usize].last_burst;
        let others = self.processes.iter().filter(|p| p.core == core && p.last_burst > since).count() as u64;
        self.bursts[core as usize] += 1;
        let at = &mut self.processes[process as usize];
        at.last_burst = self.bursts[core as usize];
        let work = self.load.program.burst + self.machine.refill * others;
        self.sim.compute(at.thread, work, Event::Computed { process });
    }

    fn handle(&mut self, event: Event) {
        // Whoever has the host to itself for a moment looks into the mailboxes first.
        if let Event::Computed { .. } | Event::Seen { .. } | Event::Turned { .. } = event {
            self.depart_all();
        }
        match event {
            Event::Computed { process } => {
                if let Waiting::Polls { .. } = self.load.waiting {
                    self.sim.spin(self.processes[process as usize].thread, Event::Seen { process });
                }
                self.arrive(process);
            }
            Event::Done { task } => self.done(task),
            Event::Told { process } => {
                let thread = self.processes[process as usize].thread;
                match (self.load.waiting, self.load.dispatch) {
                    (Waiting::Polls { .. }, _) => self.sim.end_spin(thread),
                    (Waiting::Switches, Dispatch::Queue) => self.next_burst(process),
                    (Waiting::Switches, Dispatch::Mailbox) => {
                        self.sim.compute(thread, Time::ZERO, Event::Turned { process });
                    }
                }
            }
            Event::Seen { process } | Event::Turned { process } => self.next_burst(process),
            Event::Tick => {
                let now_ns = self.now_ns();
                self.policy.tick(now_ns);
                self.tick();
            }
        }
    }

    fn now_ns(&self) -> u64 {
        self.sim.now().ps() / 1000
    }

    /// Plans the policy's next tick while there are programs.
    fn tick(&mut self) {
        if self.in_progress > 0
            && let Some(at_ns) = self.policy.next_tick_ns()
        {
            let at_ns = at_ns.max(self.now_ns() + 1);
            self.sim.at(Time::from_ps(at_ns.saturating_mul(1000)), Event::Tick);
        }
    }

    fn arrive(&mut self, process: u32) {
        let task = self.next_task;
        self.next_task += 1;
        let length = self.length(process);
        self.arrived.push((task, process, length));
        let iterations = if self.load.program.loop_share > 0.0 { self.load.program.iterations } else { 1 };
        let strand = self.processes[process as usize].strand;
        let arrival = Arrival { task, strand, kind: 0, iterations, near: None };
        let now_ns = self.now_ns();
        self.policy.arrive(now_ns, arrival, &mut self.decisions);
        self.start_tasks();
    }

    /// The length of a program's next task, as a share of the mean.
    fn length(&mut self, process: u32) -> f64 {
        let at = &mut self.processes[process as usize];
        at.longer = match at.left % 2 {
            0 => self.random.bits().is_multiple_of(2),
            _ => !at.longer,
        };
        if at.longer { 1.0 + self.load.program.spread } else { 1.0 - self.load.program.spread }
    }

    /// Does what the policy has decided.
    fn start_tasks(&mut self) {
        let mut decisions = std::mem::take(&mut self.decisions);
        for decision in decisions.drain(..) {
            let Decision::Start(start) = decision else { continue };
            let Some(found) = self.arrived.iter().position(|(task, ..)| *task == start.task) else { continue };
            let (task, process, length) = self.arrived.swap_remove(found);
            let team = start.workers.len();
            let span = self.machine.message + self.machine.span(&self.load.program, length, team);
            self.running.push(Running { task, process, start: self.sim.now(), team });
            self.sim.after(span, Event::Done { task });
        }
        self.decisions = decisions;
    }

    fn done(&mut self, task: u64) {
        let Some(found) = self.running.iter().position(|running| running.task == task) else { return };
        let Running { process, start, team, .. } = self.running.swap_remove(found);
        let span = self.sim.now() - start;
        self.outcome.tasks += 1;
        self.outcome.workers += u64::from(team);
        self.outcome.busy += span * u64::from(team);
        self.mailboxes.push((task, span, team));
        if self.load.dispatch == Dispatch::Queue {
            self.depart_all();
        }
        self.sim.after(self.machine.message, Event::Told { process });
    }

    /// The policy learns of all tasks that are done.
    fn depart_all(&mut self) {
        for (task, span, team) in std::mem::take(&mut self.mailboxes) {
            let span_ns = span.ps() / 1000;
            let departure = Departure { task, span_ns, busy_ns: span_ns * u64::from(team) };
            self.policy.depart(self.now_ns(), departure, &mut self.decisions);
            self.start_tasks();
        }
    }

    /// A program goes on after its task, or ends, and another takes its place.
    fn next_burst(&mut self, process: u32) {
        let at = &mut self.processes[process as usize];
        at.left -= 1;
        if at.left > 0 {
            return self.burst(process);
        }
        self.policy.strand_ends();
        self.in_progress -= 1;
        self.outcome.end = self.sim.now();
        if self.waiting > 0 {
            self.begin_program(process);
        }
    }
}
