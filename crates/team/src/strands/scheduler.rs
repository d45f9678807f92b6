//! Runs of strands under a policy.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;
use multigrain_schedule::jobs::Dispatch;
use multigrain_schedule::policy::{Machine, Policy, PolicyError};
use multigrain_schedule::strands::LinesOptions;
use multigrain_trace::{ClockInfo, Trace};
use thiserror::Error;

use crate::panic::{WorkerPanic, panic_message};
use crate::sync::{Mutex, Ordering, lock};
use crate::team::{Team, TeamOptions};

use super::host::Host;
use super::log;
use super::share::Thrown;
use super::state::Shared;
use super::statistics::Statistics;
use super::strand::{Stopped, Strand, TaskThrew};

/// Which threads execute strands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// The workers themselves, when they have no task: no processor is set aside, and a task that no other worker can
    /// help with is a plain call.
    Workers,
    /// So many threads of their own, as on a machine whose workers cannot run the program: every task goes to a
    /// worker, and a strand is switched out while it is there.
    Own(usize),
}

/// How a scheduler is made.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerOptions {
    /// Who gets how many workers.
    pub policy: Policy,
    /// How many workers, 1 to 256.
    pub workers: usize,
    /// Which threads execute strands.
    pub hosts: Hosts,
    /// How many strands are in progress at most; `None` for as many as the policy's paper would have started processes
    /// ([`Policy::strands_max`]). The others wait, and cost nothing but their closure.
    pub strands_max: Option<usize>,
    /// How a task that waits gets to a worker that is done: by the queue the worker takes it itself, by the mailbox a host
    /// hands it over when it has seen that the worker is done.
    pub dispatch: Dispatch,
    /// Whether tasks for which off-loading does not pay are executed by the host ([`multigrain_schedule::policy::Granularity`]);
    /// without it, whatever could be off-loaded is.
    pub throttle: bool,
    /// Whether every decision and every task is written down: [`Outcome::trace`]. Costs some 50 ns a task, and 64 MiB of memory
    /// a thread at most.
    pub trace: bool,
    /// Bytes of a strand's stack, not counting the guard page below it. Only pages that were touched take memory. A strand
    /// that overflows its stack ends the process with a segmentation fault at the guard page; memory is never overwritten.
    pub stack_bytes: usize,
    /// Whether threads are bound to processors: as [`TeamOptions`].
    pub bind: bool,
    /// How long a thread that has nothing to do spins before it sleeps.
    pub spin: crate::SpinLimit,
}

/// 1 ms. A helper that sleeps is missing in the loops of the next 50 us, and each task that its strand therefore executes
/// alone lets it sleep on; so it stays awake for the longest of the tasks measured here (0.6 ms, trees of proteins).
const SPIN_NS: u64 = 1_000_000;

impl Default for SchedulerOptions {
    /// `marginal` on all processors of this process, which are also the hosts; stacks of 2 MiB, as threads have; threads that
    /// spin for a millisecond.
    fn default() -> SchedulerOptions {
        let team = TeamOptions::default();
        SchedulerOptions {
            policy: Policy::Marginal,
            workers: team.workers,
            hosts: Hosts::Workers,
            strands_max: None,
            dispatch: Dispatch::Queue,
            throttle: true,
            trace: false,
            stack_bytes: 2 << 20,
            bind: team.bind,
            spin: crate::SpinLimit::from_ns(SPIN_NS),
        }
    }
}

/// Why there is no scheduler.
#[derive(Debug, Error)]
pub enum SchedulerError {
    /// The policy cannot be had on so many workers.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// No hosts, or more than can be told apart.
    #[error("strands need 1 to 256 hosts to execute them; {hosts} were asked for")]
    Hosts {
        /// Hosts asked for.
        hosts: usize,
    },
    /// The system refused a thread.
    #[error("a thread could not be started: {0}; ask for fewer workers or hosts")]
    Thread(#[from] io::Error),
}

/// Why a run ended before its time. The first reason, if there are several.
#[derive(Debug, Error)]
pub enum RunError {
    /// A strand panicked outside of its tasks.
    #[error("strand {strand} panicked: {message}")]
    Strand {
        /// Its place in the list of strands.
        strand: usize,
        /// The text of the panic.
        message: String,
    },
    /// A task panicked.
    #[error("task {task} of strand {strand} panicked: {message}")]
    Task {
        /// The name of the task's kind.
        task: &'static str,
        /// The strand that off-loaded it.
        strand: usize,
        /// The text of the panic.
        message: String,
    },
    /// There was no memory for a strand's stack.
    #[error(
        "no memory for the stack of strand {strand}, {stack_bytes} bytes: {source}; ask for less, or for fewer strands at once"
    )]
    Stack {
        /// The strand.
        strand: usize,
        /// Bytes asked for.
        stack_bytes: usize,
        /// What the system said.
        source: io::Error,
    },
    /// A thread of the scheduler itself panicked: a defect of this crate.
    #[error("the scheduler failed: {0}")]
    Scheduler(#[from] WorkerPanic),
}

/// What a run gave.
#[derive(Debug)]
pub struct Outcome<R> {
    /// The strands' results, in the order of the strands.
    pub results: Vec<R>,
    /// What was done for them.
    pub statistics: Statistics,
    /// Decisions with their reasons, and who computed what when, if it was asked for.
    pub trace: Option<Trace>,
}

/// Threads that execute strands and their tasks under a policy.
#[derive(Debug)]
pub struct Scheduler {
    options: SchedulerOptions,
    team: Team,
}

impl Scheduler {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`SchedulerError`].
    pub fn new(options: SchedulerOptions) -> Result<Scheduler, SchedulerError> {
        let workers = u32::try_from(options.workers).unwrap_or(u32::MAX);
        Machine::new(options.policy, workers)?;
        let threads = match options.hosts {
            Hosts::Workers => options.workers,
            Hosts::Own(hosts) if (1..=256).contains(&hosts) => options.workers + hosts,
            Hosts::Own(hosts) => return Err(SchedulerError::Hosts { hosts }),
        };
        let team = Team::new(TeamOptions { workers: threads, bind: options.bind, spin: options.spin })?;
        Ok(Scheduler { options, team })
    }

    /// How it was made.
    pub fn options(&self) -> &SchedulerOptions {
        &self.options
    }

    /// Executes the strands; returns their results, in their order, when all have ended. Strands begin in the order of
    /// the list.
    ///
    /// It cannot deadlock by itself: strands wait for nothing but their own tasks, a task waits for nothing, and a
    /// policy starts every task once enough workers are idle, which they are when all that runs has ended.
    ///
    /// # Errors
    /// [`RunError`] if a strand or a task panicked. The other strands are then unwound at their next off-load, and those
    /// that had not begun are dropped.
    pub fn run<R, F>(&self, strands: Vec<F>) -> Result<Outcome<R>, RunError>
    where
        R: Send,
        F: FnOnce(&Strand<'_>) -> R + Send,
    {
        let options = &self.options;
        let lines = LinesOptions {
            policy: options.policy,
            workers: options.workers as u32,
            own_hosts: match options.hosts {
                Hosts::Workers => None,
                Hosts::Own(hosts) => Some(hosts as u32),
            },
            strands: strands.len() as u32,
            strands_max: options.strands_max,
            throttle: options.throttle,
            dispatch: options.dispatch,
        };
        let Ok(shared) = Shared::new(lines, self.team.workers(), self.team.spin()) else {
            unreachable!("checked when the scheduler was made")
        };
        let bodies: Vec<Mutex<Option<F>>> = strands.into_iter().map(|strand| Mutex::new(Some(strand))).collect();
        let results: Vec<Mutex<Option<R>>> = bodies.iter().map(|_| Mutex::new(None)).collect();
        let failure = Mutex::new(None);
        let statistics = Mutex::new(Statistics::default());
        let logs = Mutex::new(Vec::new());
        let info = options.trace.then(ClockInfo::measured);
        let begin = multigrain_trace::now().0;
        let fail = |error: RunError| {
            lock(&failure).get_or_insert(error);
            shared.stopping.store(true, Ordering::Relaxed);
        };
        self.team.run(|| {
            self.team.fork(0..self.team.workers(), &|thread| {
                let host = Host::new(&shared, thread, options.workers, options.trace);
                host.serve(&mut |number, place, stack| {
                    let index = number as usize;
                    let stack = stack.map_or_else(|| DefaultStack::new(options.stack_bytes), Ok);
                    let refused = |source| RunError::Stack { strand: index, stack_bytes: options.stack_bytes, source };
                    let stack = stack.map_err(|source| fail(refused(source))).ok()?;
                    let body = lock(&bodies[index]).take();
                    let (host, fail, result) = (&host, &fail, &results[index]);
                    let entry = move |switch: &super::host::Switch, ()| {
                        let strand = Strand { host, switch, number, place };
                        let Some(body) = body else { unreachable!("a strand begins once") };
                        if host.shared.stopping.load(Ordering::Relaxed) {
                            return;
                        }
                        let begun = multigrain_trace::now().0;
                        let ended = catch_unwind(AssertUnwindSafe(|| body(&strand)));
                        if let Some(log) = &host.log {
                            log.borrow_mut().ended([begun, multigrain_trace::now().0], thread, number);
                        }
                        match ended {
                            Ok(value) => *lock(result) = Some(value),
                            Err(thrown) => report(thrown, index, host.doing.take(), fail),
                        }
                    };
                    // SAFETY: what the closure borrows outlives `serve`, which returns only when all strands have ended.
                    Some(unsafe { Coroutine::with_stack_unchecked(stack, entry) })
                });
                lock(&statistics).add(&host.counts.borrow());
                if let Some(log) = host.log {
                    lock(&logs).push((thread, log.into_inner()));
                }
            })
        })?;
        let unlocked = |mutex: Mutex<_>| mutex.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(error) = unlocked(failure) {
            return Err(error);
        }
        let results = results.into_iter().map(|result| {
            let result = result.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
            result.unwrap_or_else(|| unreachable!("every strand of a run that did not fail has a result"))
        });
        let results = results.collect();
        let statistics = statistics.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let trace = info.map(|info| {
            let mut logs = logs.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
            logs.sort_by_key(|(thread, _)| *thread);
            let logs = logs.into_iter().map(|(_, log)| log).collect();
            let times = [begin, multigrain_trace::now().0];
            log::trace(logs, &lines, info, times)
        });
        Ok(Outcome { results, statistics, trace })
    }
}

/// Makes an error of what unwound a strand.
fn report(thrown: Thrown, strand: usize, doing: Option<&'static str>, fail: &dyn Fn(RunError)) {
    if thrown.is::<Stopped>() {
        return;
    }
    let thrown = match thrown.downcast::<TaskThrew>() {
        Ok(threw) => {
            let TaskThrew { task, thrown } = *threw;
            return fail(RunError::Task { task, strand, message: panic_message(thrown) });
        }
        Err(thrown) => thrown,
    };
    let message = panic_message(thrown);
    fail(match doing {
        Some(task) => RunError::Task { task, strand, message },
        None => RunError::Strand { strand, message },
    });
}
