//! The threads themselves.

use std::io;
use std::ops::Range;

use crate::bind::{self, Bound};
use crate::fork::{self, Crew, Members};
use crate::mailbox::{Mailbox, Post};
use crate::panic::{WorkerPanic, catches_panics};
use crate::place::{self, Place, Placed};
use crate::spin::SpinLimit;
use crate::sync::{Arc, AtomicUsize, Builder, JoinHandle, Mutex, Ordering, lock};

/// How a team is made.
#[derive(Clone, Copy, Debug)]
pub struct TeamOptions {
    /// How many workers, the calling thread included. Zero is taken as one.
    pub workers: usize,
    /// Whether each worker is bound to one processor. Nothing is bound if there are more workers than processors.
    pub bind: bool,
    /// How long waits spin before they park. If there are more workers than processors, at most [`SpinLimit::SHORT`].
    pub spin: SpinLimit,
}

impl Default for TeamOptions {
    /// A worker for each processor that this process may use, each bound to it.
    fn default() -> TeamOptions {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        TeamOptions { workers, bind: true, spin: SpinLimit::default() }
    }
}

/// A group of worker threads. Worker 0 is whichever thread uses the team; the others are the team's own and sleep
/// while there is nothing to do. Dropping the team ends them.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// The processor of worker 0 during [`Team::run`].
    processor: Option<usize>,
    /// How many workers have a processor each.
    at_once: usize,
    /// Held by the one thread outside the team that uses it.
    entry: Mutex<()>,
}

// Panics of jobs are caught before they could leave the team in between two states.
impl std::panic::UnwindSafe for Team {}
impl std::panic::RefUnwindSafe for Team {}

#[derive(Debug)]
struct Shared {
    mailboxes: Box<[Mailbox]>,
    spin: SpinLimit,
    /// How many of the team's own threads are bound.
    bound: AtomicUsize,
}

impl Shared {
    fn crew(&self) -> Crew<'_> {
        Crew { mailboxes: &self.mailboxes, spin: self.spin, team: std::ptr::from_ref(self).addr() }
    }
}

impl Team {
    /// Starts the threads of a team: one less than it has workers.
    ///
    /// # Errors
    /// If the system refuses a thread; those already started are ended.
    pub fn new(options: TeamOptions) -> io::Result<Team> {
        let workers = options.workers.max(1);
        let processors = bind::allowed();
        // This counts what the mask allows and what a quota of a control group leaves of it.
        let oversubscribed = std::thread::available_parallelism().is_ok_and(|at_once| workers > at_once.get());
        let spin = match oversubscribed {
            true => SpinLimit::from_polls(options.spin.polls().min(SpinLimit::SHORT.polls())),
            false => options.spin,
        };
        let processor_of = |worker: usize| processors.get(worker).copied().filter(|_| options.bind && !oversubscribed);
        let shared = Arc::new(Shared {
            mailboxes: (0..workers).map(|_| Mailbox::new()).collect(),
            spin,
            bound: AtomicUsize::new(0),
        });
        // Of a quota nothing is known but how much it leaves in a while, which more workers use up sooner, and no worse.
        let at_once = if processors.is_empty() { workers } else { workers.min(processors.len()) };
        let mut team = Team { shared, threads: Vec::new(), processor: processor_of(0), at_once, entry: Mutex::new(()) };
        for worker in 1..workers {
            let (shared, processor) = (Arc::clone(&team.shared), processor_of(worker));
            let thread = Builder::new().name(format!("worker-{worker}")).spawn(move || {
                catches_panics();
                if processor.is_some_and(bind::to) {
                    shared.bound.fetch_add(1, Ordering::Relaxed);
                }
                // SAFETY: this thread is the only one started for this worker.
                unsafe { fork::serve(shared.crew(), worker) };
            })?;
            team.threads.push(thread);
        }
        if team.processor.is_some() {
            // Every thread has been bound, or not, when it takes its first job.
            let _ = team.fork(0..workers, &|_| {});
        }
        Ok(team)
    }

    /// How many workers the team has, worker 0 included.
    pub fn workers(&self) -> usize {
        self.shared.mailboxes.len()
    }

    /// How many of its workers have a processor each: more get no more done in a time, and take processors from each other.
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// How long the waits of this team spin; for [`crate::Steps`] that its workers use.
    pub fn spin(&self) -> SpinLimit {
        self.shared.spin
    }

    /// Whether the system has bound each of the team's own threads to a processor. (Worker 0 is bound during
    /// [`Team::run`].)
    pub fn bound(&self) -> bool {
        self.processor.is_some() && self.shared.bound.load(Ordering::Relaxed) == self.threads.len()
    }

    /// The number that the operating system has for each worker's thread, for whoever observes them from outside: worker 0 is the
    /// calling thread, which leads all. 0 where the system tells none.
    pub fn threads(&self) -> Vec<u32> {
        let threads: Vec<Mutex<u32>> = (0..self.workers()).map(|_| Mutex::new(0)).collect();
        // Nothing in it can panic.
        let _ = self.fork(0..self.workers(), &|worker| *lock(&threads[worker]) = bind::thread());
        threads.iter().map(|thread| *lock(thread)).collect()
    }

    /// Whether the calling thread acts as one of the team's workers now.
    pub fn is_here(&self) -> bool {
        place::current().team == self.shared.crew().team
    }

    /// Makes the calling thread worker 0 while `body` runs, bound to worker 0's processor if the team is bound;
    /// afterwards the thread has its former mask. Forks inside `body` need no lock. Several threads that call this at
    /// once take turns. Inside a job of this same team it just calls `body`.
    pub fn run<R>(&self, body: impl FnOnce() -> R) -> R {
        if self.is_here() {
            return body();
        }
        let _turn = lock(&self.entry);
        let _bound = self.processor.map(Bound::to);
        let _placed = Placed::new(self.place(0..self.workers()));
        body()
    }

    /// Calls `job(worker)` once on each worker of `range`, the caller being the first, and returns when all are done.
    ///
    /// On its worker each job may fork again over the workers that it leads, which after this fork is only itself;
    /// [`Team::fork_groups`] gives each job more. A thread that is not in the team acts as worker `range.start`; if
    /// several do at once they take turns, so a job must not wait for a thread outside that uses the same team.
    ///
    /// # Errors
    /// [`WorkerPanic`] if a job panicked: the first, if several did. The others have finished all the same.
    ///
    /// # Panics
    /// If the caller does not lead `range`: a worker's range begins with itself and stays within what it leads.
    #[inline]
    pub fn fork<F: Fn(usize) + Sync>(&self, range: Range<usize>, job: &F) -> Result<(), WorkerPanic> {
        self.fork_members(range.clone(), Members::Each(range), job)
    }

    /// Calls `job(i)` on the first worker of each `groups[i]`, the caller being the first worker of the first group,
    /// and returns when all are done. Inside, job `i` leads `groups[i]`, whose other workers are idle: so child `i` of
    /// a memory gets the workers below it.
    ///
    /// # Errors
    /// As [`Team::fork`].
    ///
    /// # Panics
    /// If the groups are not in ascending order, overlap, contain an empty one, or are not led by the caller.
    pub fn fork_groups<F: Fn(usize) + Sync>(&self, groups: &[Range<usize>], job: &F) -> Result<(), WorkerPanic> {
        let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return Ok(()) };
        let separate = groups.windows(2).all(|pair| pair[0].end <= pair[1].start);
        assert!(
            separate && groups.iter().all(|group| !group.is_empty()),
            "groups {groups:?} are not disjoint, ascending and without empty ones"
        );
        self.fork_members(first.start..last.end, Members::Groups(groups), job)
    }

    #[inline]
    fn fork_members<F: Fn(usize) + Sync>(
        &self,
        range: Range<usize>,
        members: Members<'_>,
        job: &F,
    ) -> Result<(), WorkerPanic> {
        if range.is_empty() {
            return Ok(());
        }
        let crew = self.shared.crew();
        let place = place::current();
        if place.team == crew.team {
            assert!(
                range.start == place.worker && range.end <= place.lead_end,
                "worker {} leads workers {}..{} and cannot fork over {range:?}",
                place.worker,
                place.worker,
                place.lead_end
            );
            // SAFETY: just checked: the members are within what this thread leads, and it is the first.
            return unsafe { fork::fork(crew, members, job) };
        }
        assert!(range.end <= self.workers(), "a team of {} workers cannot fork over {range:?}", self.workers());
        let _turn = lock(&self.entry);
        // SAFETY: the turn makes this thread the only one outside the team that leads its workers, all of which are
        // idle between turns.
        unsafe { fork::fork(crew, members, job) }
    }

    /// The workers that the calling thread leads; all, if it is not in the team.
    pub(crate) fn led(&self) -> Range<usize> {
        let place = place::current();
        if place.team == self.shared.crew().team { place.worker..place.lead_end } else { 0..self.workers() }
    }

    /// Calls `job(worker)` once on each worker that the calling thread leads but its own, which does `own` meanwhile;
    /// returns what that gave, and the first panic of the others, when all are done.
    pub(crate) fn fork_beside<F: Fn(usize) + Sync, R>(
        &self,
        job: &F,
        own: impl FnOnce() -> R,
    ) -> (R, Result<(), WorkerPanic>) {
        // SAFETY: `run` has made this thread one of the team, if it was not: it leads these workers and is the first.
        self.run(|| unsafe { fork::fork_beside(self.shared.crew(), self.led(), job, own) })
    }

    fn place(&self, led: Range<usize>) -> Place {
        Place { team: self.shared.crew().team, worker: led.start, lead_end: led.end }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for worker in 1..=self.threads.len() {
            // SAFETY: nobody else uses the team any more, and every fork has waited for its end, so the worker is idle
            // and led by this thread.
            unsafe { self.shared.mailboxes[worker].post(Post::stop()) };
        }
        for thread in self.threads.drain(..) {
            // A worker's thread catches the panics of jobs; should it have died all the same, there is no one to tell.
            let _ = thread.join();
        }
    }
}
