//! Programs that off-load tasks to workers, in virtual time: an interpreter of the schedule room's policies.
//!
//! A program computes on a hardware thread of a host, off-loads a task, and so on. Which workers get the task, or whether
//! it waits, is decided by the very [`Machine`] that decides for threads. What is modelled beside it is what the host
//! and the workers cost: switches between programs, caches that others have used meanwhile, messages, loop teams.
//!
//! [`jobs`] does the same for independent jobs, which are handed out by a queue or by mailboxes.

pub mod jobs;
mod run;

use crate::Time;
use multigrain_schedule::jobs::Dispatch;
use multigrain_schedule::policy::{Policy, PolicyError, Shares};
pub use run::run;

/// A host with workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Cores of the host.
    pub cores: u32,
    /// Hardware threads of a core; programs are spread over all of them and stay where they are.
    pub threads_per_core: u32,
    /// Workers.
    pub workers: u32,
    /// Giving a hardware thread to another program.
    pub switch: Time,
    /// What a program loses for each other one that computed on its core since it did: caches are to be filled again.
    pub refill: Time,
    /// A message between host and worker, one way.
    pub message: Time,
    /// What it costs the master of a loop team to start one more worker.
    pub fork: Time,
    /// What it costs it to take in one more worker's part.
    pub join: Time,
    /// What a task with a loop that can be shared takes longer than one without, on however many workers.
    pub sharing: Time,
}

impl Machine {
    /// A machine on which nothing takes time but work.
    pub fn free(cores: u32, threads_per_core: u32, workers: u32) -> Machine {
        let [switch, refill, message, fork, join, sharing] = [Time::ZERO; 6];
        Machine { cores, threads_per_core, workers, switch, refill, message, fork, join, sharing }
    }
}

/// What a hardware thread does while a program's task is off-loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It turns to another program, which costs a switch: event-driven, by a scheduler of the program's own.
    Switches,
    /// The program keeps it, polling, until the operating system's time slice is over.
    Polls {
        /// The time slice.
        quantum: Time,
    },
}

/// What each program does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Program {
    /// Off-loads.
    pub tasks: u64,
    /// Time on the host before each, alone on its core.
    pub burst: Time,
    /// Mean time of a task on one worker.
    pub task: Time,
    /// How far tasks are from the mean, as a share of it: of every two, one is so much shorter and one so much longer, in
    /// random order.
    pub spread: f64,
    /// Share of a task's mean that is its loop: so much can be shared.
    pub loop_share: f64,
    /// Iterations of the loop.
    pub iterations: u32,
}

/// Programs to be run under a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// What each does.
    pub program: Program,
    /// How many there are. As many as the policy has in progress at once are begun, the others as these end.
    pub programs: u32,
    /// The policy.
    pub policy: Policy,
    /// How a task that waits gets to a worker that is done: by the queue the worker takes it itself, by the mailbox a
    /// hardware thread of the host hands it over, when it next turns from one program to another.
    pub dispatch: Dispatch,
    /// What hardware threads do meanwhile.
    pub waiting: Waiting,
    /// Of the lengths of tasks.
    pub seed: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// When the last program ended.
    pub end: Time,
    /// Tasks that were executed.
    pub tasks: u64,
    /// Time that the workers had tasks, all together.
    pub busy: Time,
    /// Workers of all tasks together.
    pub workers: u64,
    /// Switches between programs.
    pub switches: u64,
    /// What happened in the simulation.
    pub events: u64,
}

/// Why programs cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OffloadError {
    /// The policy does not suit the workers.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A machine without cores or hardware threads.
    #[error("a host has {cores} cores of {threads_per_core} hardware threads; it needs one of each at least")]
    NoHost {
        /// Its cores.
        cores: u32,
        /// Hardware threads of a core.
        threads_per_core: u32,
    },
    /// Tasks that would take less than no time.
    #[error("tasks are {spread} of their mean shorter or longer; it is 0 to 1")]
    Spread {
        /// What was asked for.
        spread: String,
    },
}

impl Machine {
    /// How long a task of so much work takes on a team, from its start to the message of its end: the master starts the
    /// others one by one, computes its own part, and takes in theirs one by one as they are ready.
    fn span(&self, program: &Program, length: f64, team: u32) -> Time {
        let work = program.task.seconds() * length;
        let (looped, iterations) = (work * program.loop_share, program.iterations.max(1));
        let alone = Time::from_seconds(work - looped);
        let sharing = if program.loop_share > 0.0 { self.sharing } else { Time::ZERO };
        let others = u64::from(team.saturating_sub(1));
        // Equal shares, and nobody takes what is another's: an SPE does not reach into another's store.
        let mut ends = Vec::new();
        Shares::new(team as usize).ends(iterations, &mut ends);
        let part = |index: u32| {
            let index = index as usize;
            let count = ends[index] - index.checked_sub(1).map_or(0, |before| ends[before]);
            Time::from_seconds(looped * f64::from(count) / f64::from(iterations))
        };
        let mut done = self.fork * others + part(0);
        for other in 1..team {
            let ready = self.fork * u64::from(other) + part(other);
            done = done.max(ready) + self.join;
        }
        alone + sharing + done
    }
}
