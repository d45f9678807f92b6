//! What a machine with contexts is like, and what it is to do.

use crate::{Class, Fair, Host, Scheduler, Time};
use multigrain_machine as described;
use multigrain_machine::{ContextScheduler, MemoryId, ThreadScheduler};
use multigrain_schedule::contexts;
use multigrain_schedule::contexts::{Release, Slices};
use std::fmt;
use std::str::FromStr;

/// Processors with contexts, and the host of their control threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Processors.
    pub processors: usize,
    /// The host.
    pub host: Host,
    /// Interrupts of its timer a second; ten of them are a tick.
    pub interrupts_per_second: u32,
    /// What becomes of a processor that is given up.
    pub scheduler: ContextScheduler,
    /// What things take.
    pub costs: Costs,
}

/// What threads do on the host, and how long it takes there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Making a thread and a context for it, and loading its program.
    pub spawn: Time,
    /// Waking up and looking for a processor: half of it before the list of processors is locked.
    pub look: Time,
    /// Binding a context to a processor and taking it away, half of it each.
    pub switch: Time,
    /// How far each time of these is from the mean at most, as a share of it: they are spread evenly around it.
    pub spread: f64,
}

/// How contexts share processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Each keeps its processor to its end; control threads are real time, of one priority.
    Fifo,
    /// All take turns, as the machine's scheduler of contexts lets them.
    Normal,
    /// All take turns; a processor goes to who has waited longest, as in Linux 2.6.25, whatever the machine's scheduler.
    HandOff,
    /// As `Normal`, with control threads that are real time and take turns: SCHED_RR.
    RealTime,
    /// The tasks of a program have processors together or not at all.
    Gang,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 5] = [Policy::Fifo, Policy::Normal, Policy::HandOff, Policy::RealTime, Policy::Gang];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Fifo => "fifo",
            Policy::Normal => "normal",
            Policy::HandOff => "hand-off",
            Policy::RealTime => "real-time",
            Policy::Gang => "gang",
        }
    }

    pub(super) fn release(self, scheduler: ContextScheduler) -> Release {
        match (self, scheduler) {
            (Policy::HandOff, _) => Release::Bind,
            (Policy::Gang, _) => Release::Gang,
            (Policy::Fifo | Policy::Normal | Policy::RealTime, ContextScheduler::Spufs2624) => Release::Free,
            (Policy::Fifo | Policy::Normal | Policy::RealTime, ContextScheduler::Spufs2625) => Release::Bind,
        }
    }

    /// What its contexts are, and its control threads.
    pub(super) fn classes(self, nice: i8) -> (contexts::Class, Class) {
        match self {
            Policy::Fifo => (contexts::Class::fifo(1), Class::RealTime { priority: 1, turns: false }),
            Policy::RealTime => (contexts::Class::round_robin(1), Class::RealTime { priority: 1, turns: true }),
            Policy::Normal | Policy::HandOff | Policy::Gang => (contexts::Class::normal(nice), Class::Normal { nice }),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;
    fn from_str(text: &str) -> Result<Policy, String> {
        let names: Vec<&str> = Policy::ALL.into_iter().map(Policy::name).collect();
        let found = Policy::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| format!("\"{text}\" is no policy; policies: {}", names.join(", ")))
    }
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Computes for so long, as long as it has a processor.
    Loop(Time),
    /// Computes frames together with all others of its program, each an equal part; who is done with its part keeps its processor and
    /// waits until the host has taken the whole frame.
    Frames {
        /// Frames.
        count: u32,
        /// Time of a frame on one processor.
        frame: Time,
        /// Time of the host for each.
        host: Time,
    },
}

/// Programs to be executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Tasks of all programs together.
    pub tasks: usize,
    /// Programs: each makes its share of the tasks.
    pub programs: usize,
    /// What each task does.
    pub work: Work,
    /// How they share processors.
    pub policy: Policy,
    /// Nice level of the control threads.
    pub nice: i8,
    /// A busy loop of each control thread whenever it looks for a processor.
    pub spin: Time,
    /// Whether the time that a context has a processor counts as if its control thread had run.
    pub charged: bool,
    /// Another thread of the host, that nobody waits for: it computes for so long at the beginning of every ten milliseconds.
    pub background: Time,
    /// Of the times that things take.
    pub seed: u64,
}

impl Load {
    /// One program of so many tasks that compute for so long, without anything else.
    pub fn loops(tasks: usize, time: Time, policy: Policy) -> Load {
        Load {
            tasks,
            programs: 1,
            work: Work::Loop(time),
            policy,
            nice: 0,
            spin: Time::ZERO,
            charged: false,
            background: Time::ZERO,
            seed: 1,
        }
    }
}

/// Why a load cannot be executed on a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A machine whose processors are not shared by contexts, or whose host is not described.
    #[error(
        "machine \"{machine}\" has no processors with contexts, or no host for their threads; give its file [memory.contexts] and \
         [memory.host], or take one that has them: cell, ps3"
    )]
    NoContexts {
        /// Its name.
        machine: String,
    },
    /// Nothing to run.
    #[error(
        "{tasks} tasks of {programs} programs; each program needs one task at least, and there are {TASKS_MAX} at most"
    )]
    Tasks {
        /// Tasks.
        tasks: usize,
        /// Programs.
        programs: usize,
    },
    /// A gang that never fits.
    #[error("a gang of {members} tasks does not fit on {processors} processors; divide the tasks among more programs")]
    Gang {
        /// Members of the largest.
        members: usize,
        /// Processors.
        processors: usize,
    },
}

/// More tasks than are worth a simulation.
const TASKS_MAX: usize = 100_000;

impl Machine {
    /// The first memory of a described machine whose processors are shared by contexts, with its host.
    ///
    /// # Errors
    /// [`Problem::NoContexts`].
    pub fn of(machine: &described::Machine) -> Result<Machine, Problem> {
        let with = |id: MemoryId| Some((id, machine.memory(id).contexts.as_ref()?, machine.host(id)?));
        let none = || Problem::NoContexts { machine: machine.name.clone() };
        let (memory, contexts, host) = machine.ids().find_map(with).ok_or_else(none)?;
        // What is below one host.
        let mut processors = 1;
        let mut at = Some(memory);
        while let Some(id) = at.filter(|id| machine.memory(*id).host.is_none()) {
            processors *= machine.memory(id).count;
            at = machine.memory(id).parent;
        }
        let (cores, threads) = (host.cores as usize, host.threads_per_core as usize);
        let scheduler = match host.scheduler {
            ThreadScheduler::Linux2624 => Scheduler::Fair(Fair::linux_2_6_24(cores * threads)),
        };
        Ok(Machine {
            processors,
            host: Host { cores, speeds: vec![1.0; threads], switch: Time::ZERO, scheduler },
            interrupts_per_second: host.interrupts_per_second,
            scheduler: contexts.scheduler,
            costs: Costs {
                spawn: Time::from_ns(contexts.spawn_ns),
                look: Time::from_ns(contexts.look_ns),
                switch: Time::from_ns(contexts.switch_ns),
                spread: contexts.spread,
            },
        })
    }

    pub(super) fn check(&self, load: &Load) -> Result<(), Problem> {
        let Load { tasks, programs, .. } = *load;
        if programs == 0 || tasks < programs || tasks > TASKS_MAX {
            return Err(Problem::Tasks { tasks, programs });
        }
        let members = tasks.div_ceil(programs);
        if load.policy == Policy::Gang && members > self.processors {
            return Err(Problem::Gang { members, processors: self.processors });
        }
        Ok(())
    }

    /// The time between two interrupts of the timer.
    pub(super) fn interrupt(&self) -> Time {
        Time::from_ps(1_000_000_000_000 / u64::from(self.interrupts_per_second))
    }

    pub(super) fn slices(&self) -> Slices {
        Slices::Linux { interrupts_per_second: self.interrupts_per_second }
    }

    /// What becomes of processors under a policy.
    pub(super) fn release(&self, policy: Policy) -> Release {
        policy.release(self.scheduler)
    }

    /// The same machine with the host's fair scheduler changed, if it has that.
    #[must_use]
    pub fn with_fair(&self, change: impl FnOnce(&mut crate::Fair)) -> Machine {
        let mut machine = self.clone();
        if let Scheduler::Fair(fair) = &mut machine.host.scheduler {
            change(fair);
        }
        machine
    }
}
