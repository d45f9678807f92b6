//! Hosts: hardware threads that share cores, and an operating system that shares them among threads.
//!
//! A thread sleeps until it is given a burst of work, waits for a hardware thread, executes the burst, perhaps in several
//! parts, and sleeps again unless it is given the next burst at that very instant. The hardware threads of a core slow
//! each other down: the speed of each depends on how many of them are busy.

mod class;
mod fair;
mod placement;
mod scheduler;

use crate::time::Time;
pub use class::Class;
use fair::Pick;
pub use fair::{Fair, Features};
use scheduler::RunQueue;
pub use scheduler::Scheduler;

/// A host of a [`crate::Simulation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub(crate) u32);

/// A thread of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId {
    pub(crate) host: HostId,
    pub(crate) index: u32,
}

/// What a host is like.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Cores.
    pub cores: usize,
    /// How fast a hardware thread is while 1, 2, .. hardware threads of its core are busy, as a share of what it is
    /// alone: `[1.0]` for cores without hardware threads, `[1.0, 0.6]` for two that are faster together than one by a
    /// fifth.
    pub speeds: Vec<f64>,
    /// What it costs to give a hardware thread to another thread than it had last.
    pub switch: Time,
    /// How hardware threads are shared.
    pub scheduler: Scheduler,
}

/// What a host did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostUse {
    /// How often a hardware thread was given to another thread than it had last.
    pub switches: u64,
    /// Time that took.
    pub switching: Time,
    /// Time for which threads had hardware threads, of all hardware threads together.
    pub running: Time,
}

/// A timer of a host: which, and for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub(crate) host: HostId,
    cpu: u32,
    /// The count of the hardware thread when the timer was set; another count means that it is out of date.
    count: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The switch to a thread is over.
    Switched,
    /// The burst ends.
    End,
    /// The scheduler looks.
    Tick,
    /// An idle hardware thread looks for work elsewhere.
    Balance,
}

struct Thread<E> {
    /// Work left of the burst, in picoseconds alone; infinite while it spins.
    left: f64,
    /// What the end of the burst means; `None` between bursts.
    done: Option<E>,
    /// What it spins for has happened.
    stop: bool,
    ran: Time,
    /// Whether it has a hardware thread or waits for one.
    awake: bool,
}

/// How a thread came to want a hardware thread.
#[derive(Clone, Copy)]
pub(crate) enum Cause {
    /// Something happened that it waited for.
    Event,
    /// Another thread of the host woke it.
    Woken(u32),
    /// Another thread of the host made it.
    Made(u32),
}

#[derive(Default)]
struct Cpu {
    current: Option<u32>,
    last: Option<u32>,
    /// Whether the switch to the current thread is under way.
    switching: bool,
    /// Work per time, and since when that is not accounted for.
    rate: f64,
    since: Time,
    /// Counts starts of bursts and changes of rate.
    count: u64,
    /// Counts threads that it was given, and ticks.
    turn: u64,
    /// A new timer of the scheduler is wanted.
    tick_wanted: bool,
    /// A timer is set for when it looks for work elsewhere.
    balances: bool,
}

pub(crate) struct HostState<E> {
    host: Host,
    cpus: Vec<Cpu>,
    threads: Vec<Thread<E>>,
    /// Threads that were given a burst since this was looked at, and why.
    fresh: Vec<(u32, Cause)>,
    queue: RunQueue,
    used: HostUse,
}

impl<E> HostState<E> {
    pub(crate) fn new(host: Host) -> HostState<E> {
        assert!(host.cores > 0 && !host.speeds.is_empty(), "a host without hardware threads");
        assert!(host.speeds.iter().all(|s| *s > 0.0 && s.is_finite()), "a hardware thread that does not run");
        let cpus = host.cores * host.speeds.len();
        HostState {
            queue: RunQueue::new(&host.scheduler, cpus),
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            threads: Vec::new(),
            fresh: Vec::new(),
            host,
            used: HostUse::default(),
        }
    }

    pub(crate) fn thread(&mut self, class: Class) -> u32 {
        self.threads.push(Thread { left: 0.0, done: None, stop: false, ran: Time::ZERO, awake: false });
        self.queue.add(class);
        (self.threads.len() - 1) as u32
    }

    /// The thread's next burst; without work, it spins.
    pub(crate) fn burst(&mut self, index: u32, cause: Cause, work: Option<Time>, done: E) {
        let thread = &mut self.threads[index as usize];
        assert!(thread.done.is_none(), "thread {index} has not finished its last burst");
        thread.left = work.map_or(f64::INFINITY, |work| work.ps() as f64);
        thread.done = Some(done);
        thread.stop = false;
        self.fresh.push((index, cause));
    }

    /// A sleeping thread counts as if it had run for so much longer.
    pub(crate) fn charge_for(&mut self, index: u32, time: Time) {
        self.queue.charge(index, time);
    }

    pub(crate) fn end_spin(&mut self, index: u32) {
        self.threads[index as usize].stop = true;
    }

    pub(crate) fn used(&self, now: Time) -> HostUse {
        let under_way: Time = self.cpus.iter().filter(|c| c.runs()).map(|c| now - c.since).sum();
        HostUse { running: self.used.running + under_way, ..self.used }
    }

    pub(crate) fn thread_time(&self, index: u32, now: Time) -> Time {
        let cpu = self.cpus.iter().find(|c| c.current == Some(index) && c.runs());
        self.threads[index as usize].ran + cpu.map_or(Time::ZERO, |c| now - c.since)
    }

    /// Brings a hardware thread's accounts up to the present.
    fn charge(&mut self, cpu: usize, now: Time) {
        let at = &mut self.cpus[cpu];
        let time = now - at.since;
        at.since = now;
        if let (Some(index), false) = (at.current, at.switching) {
            let thread = &mut self.threads[index as usize];
            thread.left = (thread.left - time.ps() as f64 * at.rate).max(0.0);
            thread.ran += time;
            self.used.running += time;
            self.queue.ran(cpu, index, time, now);
        }
    }

    /// Something that was planned for this host happens; gives the event that is due.
    pub(crate) fn ring(&mut self, timer: Timer, now: Time) -> Option<E> {
        let index = timer.cpu as usize;
        let cpu = &mut self.cpus[index];
        if timer.what == What::Balance {
            cpu.balances = false;
            if cpu.current.is_none() {
                self.queue.balance(index);
            }
            return None;
        }
        let count = if timer.what == What::Tick { cpu.turn } else { cpu.count };
        if count != timer.count {
            return None;
        }
        match timer.what {
            What::Switched => {
                cpu.switching = false;
                cpu.since = now;
                cpu.rate = 0.0;
                None
            }
            What::End => {
                self.charge(index, now);
                let cpu = &mut self.cpus[index];
                cpu.count += 1;
                cpu.rate = 0.0;
                self.threads[cpu.current? as usize].done.take()
            }
            What::Balance => None,
            What::Tick => {
                self.charge(index, now);
                let current = self.cpus[index].current?;
                self.cpus[index].tick_wanted = true;
                // A burst that ends at this instant is not cut.
                if self.threads[current as usize].left > 0.0 && self.queue.tick(index, current) {
                    self.preempt(index);
                }
                None
            }
        }
    }

    /// Takes a hardware thread from the thread that has it, which goes on waiting for one.
    fn preempt(&mut self, cpu: usize) {
        let at = &mut self.cpus[cpu];
        at.count += 1;
        at.turn += 1;
        at.rate = 0.0;
        at.tick_wanted = false;
        // A switch that is not over is lost.
        at.switching = false;
        if let Some(index) = at.current.take() {
            self.queue.put_back(cpu, index);
        }
    }

    /// Gives hardware threads to threads, until nothing changes any more; timers to be set.
    pub(crate) fn settle(&mut self, now: Time, host: HostId) -> Vec<(Time, Timer)> {
        let mut timers = Vec::new();
        // Who wakes another still has its hardware thread meanwhile.
        for (index, cause) in std::mem::take(&mut self.fresh) {
            if std::mem::replace(&mut self.threads[index as usize].awake, true) {
                continue;
            }
            for cpu in 0..self.cpus.len() {
                self.charge(cpu, now);
            }
            let of = |thread: u32| self.cpus.iter().position(|cpu| cpu.current == Some(thread));
            let undecided = match cause {
                Cause::Event => self.queue.wake(index, None),
                Cause::Woken(by) => self.queue.wake(index, of(by)),
                Cause::Made(by) => match of(by) {
                    Some(parent) => self.queue.fork(index, parent),
                    None => self.queue.wake(index, None),
                },
            };
            if let Some(cpu) = undecided
                && self.cpus[cpu].current.is_some_and(|current| self.threads[current as usize].done.is_some())
            {
                self.preempt(cpu);
            }
        }
        for cpu in 0..self.cpus.len() {
            // Threads that have finished and were given nothing else sleep.
            if let Some(index) = self.cpus[cpu].current
                && self.threads[index as usize].done.is_none()
            {
                self.charge(cpu, now);
                let at = &mut self.cpus[cpu];
                (at.current, at.tick_wanted, at.rate) = (None, false, 0.0);
                at.turn += 1;
                at.count += 1;
                self.threads[index as usize].awake = false;
                self.queue.sleeps(cpu, index, now);
            }
        }
        while let Some(Pick { cpu, thread: index }) = self.next_assignment(now) {
            let at = &mut self.cpus[cpu];
            at.current = Some(index);
            at.turn += 1;
            at.count += 1;
            at.since = now;
            at.rate = 0.0;
            at.tick_wanted = true;
            at.switching = at.last != Some(index) && self.host.switch > Time::ZERO;
            if at.last != Some(index) {
                self.used.switches += 1;
                self.used.switching += self.host.switch;
            }
            if at.switching {
                let timer = Timer { host, cpu: cpu as u32, count: at.count, what: What::Switched };
                timers.push((now + self.host.switch, timer));
            }
            at.last = Some(index);
        }
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].current.is_none()
                && !self.cpus[cpu].balances
                && let Some(wait) = self.queue.balance_after(cpu)
            {
                self.cpus[cpu].balances = true;
                timers.push((now + wait, Timer { host, cpu: cpu as u32, count: 0, what: What::Balance }));
            }
        }
        self.set_rates(now, host, &mut timers);
        timers
    }

    /// The next idle hardware thread for which there is something to do: one of the core with the least to do.
    fn next_assignment(&mut self, now: Time) -> Option<Pick> {
        let siblings = self.host.speeds.len();
        let mut idle: Vec<(usize, usize)> = (0..self.cpus.len())
            .filter(|c| self.cpus[*c].current.is_none())
            .map(|c| (self.busy(c / siblings), c))
            .collect();
        idle.sort_unstable();
        if idle.is_empty() {
            return None;
        }
        let last: Vec<Option<u32>> = self.cpus.iter().map(|c| c.last).collect();
        self.queue.pick(&idle, &last, now)
    }

    fn busy(&self, core: usize) -> usize {
        let siblings = self.host.speeds.len();
        self.cpus[core * siblings..(core + 1) * siblings].iter().filter(|c| c.current.is_some()).count()
    }

    fn set_rates(&mut self, now: Time, host: HostId, timers: &mut Vec<(Time, Timer)>) {
        let siblings = self.host.speeds.len();
        for cpu in 0..self.cpus.len() {
            let Some(index) = self.cpus[cpu].current else { continue };
            if std::mem::take(&mut self.cpus[cpu].tick_wanted)
                && let Some(wait) = self.queue.tick_after()
            {
                let at = &mut self.cpus[cpu];
                at.turn += 1;
                timers.push((now + wait, Timer { host, cpu: cpu as u32, count: at.turn, what: What::Tick }));
            }
            if self.cpus[cpu].switching {
                continue;
            }
            let rate = self.host.speeds[self.busy(cpu / siblings) - 1];
            let thread = &self.threads[index as usize];
            let stops = thread.stop && thread.left.is_infinite();
            if self.cpus[cpu].rate != rate || stops {
                self.charge(cpu, now);
                let thread = &mut self.threads[index as usize];
                if stops {
                    thread.left = 0.0;
                }
                let at = &mut self.cpus[cpu];
                at.rate = rate;
                at.count += 1;
                if thread.left.is_finite() {
                    let end = now + Time::from_ps((thread.left / rate).ceil() as u64);
                    timers.push((end, Timer { host, cpu: cpu as u32, count: at.count, what: What::End }));
                }
            }
        }
    }
}

impl Cpu {
    fn runs(&self) -> bool {
        self.current.is_some() && !self.switching
    }
}
