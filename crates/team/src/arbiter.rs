//! Programs that know of each other share the processors instead of getting in each other's way: the states, the races, and what is proved
//! are in ARBITER.md.
//!
//! Each process has a seat in a table, a file in memory, which says how many cores it could use. Who has which core follows from the seats and
//! the time ([`multigrain_schedule::cores`]), so every process knows it, and one thread of each, the *agent*, binds its own process's workers to
//! the cores that it has at the moment. Nobody touches another's threads, and nobody waits for another process.

#[cfg(all(target_os = "linux", not(any(loom, miri))))]
mod agent;
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
mod life;
#[cfg(all(test, loom))]
mod model;
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
mod table;
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
mod told;
#[cfg(not(all(target_os = "linux", not(any(loom, miri)))))]
#[path = "arbiter/untold.rs"]
mod told;
#[cfg(any(all(target_os = "linux", not(any(loom, miri))), all(test, loom)))]
mod wants;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::bind::{self, Mask};
use told::Told;

/// The threads of a team, for who binds them.
#[derive(Debug)]
pub(crate) struct Threads {
    /// The number that the system has for each; 0 for one that has not begun, and for the leader outside of a run.
    numbers: Box<[AtomicU32]>,
    /// Whether each has a processor of its own while there are enough.
    bind: bool,
    /// The processors that who made the team may use.
    allowed: Vec<usize>,
}

impl Threads {
    /// Those of a team that is being made.
    pub(crate) fn new(workers: usize, bind: bool) -> Arc<Threads> {
        let numbers = (0..workers).map(|_| AtomicU32::new(0)).collect();
        let threads = Arc::new(Threads { numbers, bind, allowed: bind::allowed() });
        let mut cores = here().cores();
        cores.teams.retain(|team| team.strong_count() > 0);
        cores.teams.push(Arc::downgrade(&threads));
        threads
    }

    /// The calling thread is this worker, until the team ends; whether it was bound to a processor of its own.
    pub(crate) fn is(&self, worker: usize) -> bool {
        let cores = here().cores();
        self.numbers[worker].store(bind::thread(), Ordering::Relaxed);
        let has = if self.shares(&cores) { &cores.has } else { &self.allowed };
        match self.bind || has.len() < self.allowed.len() {
            true => bind::among(self.of(worker, has)) && self.bind,
            false => false,
        }
    }

    /// The calling thread is about to end, and its number to be another's.
    pub(crate) fn is_no_more(&self, worker: usize) {
        let _cores = here().cores();
        self.numbers[worker].store(0, Ordering::Relaxed);
    }

    /// Whether it has what its process has: what was made where other processors are allowed keeps to those.
    fn shares(&self, cores: &Cores) -> bool {
        self.allowed == cores.allowed
    }

    /// What a worker has of these cores.
    fn of<'a>(&self, worker: usize, cores: &'a [usize]) -> &'a [usize] {
        match cores.len() {
            0 => cores,
            count if self.bind => &cores[worker % count..][..1],
            _ => cores,
        }
    }
}

/// Makes the calling thread a team's worker 0 until it is dropped: bound as the others are, and its process's demand told.
#[derive(Debug)]
pub(crate) struct Leading<'a> {
    threads: &'a Threads,
    before: Option<Mask>,
}

impl Leading<'_> {
    pub(crate) fn new(threads: &Threads) -> Leading<'_> {
        let here = here();
        here.told.begins(here, threads.numbers.len() as u32);
        let before = bind::current();
        // Without the former mask there would be no way back, so nothing is bound.
        if before.is_some() {
            threads.is(0);
        }
        Leading { threads, before }
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        let cores = here().cores();
        self.threads.numbers[0].store(0, Ordering::Relaxed);
        if let Some(mask) = &self.before {
            bind::restore(mask);
        }
        drop(cores);
        here().told.ends(self.threads.numbers.len() as u32);
    }
}

/// Why this process does not share its processors with others that would, if it does not: what was found and what to do. None as long as no
/// run has begun, and where it was not asked to (`MULTIGRAIN_WEIGHT`).
pub fn unshared() -> Option<String> {
    HERE.get().and_then(|here| here.told.refusal())
}

/// What there is of it in this process.
#[derive(Debug)]
struct Here {
    cores: Mutex<Cores>,
    told: Told,
}

/// Locked while threads are bound, since leaders come and go.
#[derive(Debug)]
struct Cores {
    /// Those that this process may use, and those of them that it has now.
    allowed: Vec<usize>,
    has: Vec<usize>,
    teams: Vec<Weak<Threads>>,
}

#[cfg(all(target_os = "linux", not(any(loom, miri))))]
impl Cores {
    /// From now on these are the cores of this process.
    fn have(&mut self, has: Vec<usize>) {
        if has != self.has {
            self.has = has;
            for threads in self.teams.iter().filter_map(Weak::upgrade).filter(|threads| threads.shares(self)) {
                for (worker, number) in threads.numbers.iter().enumerate() {
                    let number = number.load(Ordering::Relaxed);
                    if number != 0 {
                        // Where the system refuses it, the system's scheduler shares.
                        let _ = bind::other_among(number, threads.of(worker, &self.has));
                    }
                }
            }
        }
    }

    /// The numbers of all threads of teams.
    fn threads(&self) -> Vec<u32> {
        let mut all = Vec::new();
        for threads in self.teams.iter().filter_map(Weak::upgrade) {
            all.extend(
                threads.numbers.iter().map(|number| number.load(Ordering::Relaxed)).filter(|&number| number != 0),
            );
        }
        all
    }
}

static HERE: OnceLock<Here> = OnceLock::new();

fn here() -> &'static Here {
    HERE.get_or_init(|| {
        let allowed = bind::allowed();
        Here { cores: Mutex::new(Cores { has: allowed.clone(), allowed, teams: Vec::new() }), told: Told::new() }
    })
}

impl Here {
    fn cores(&self) -> MutexGuard<'_, Cores> {
        locked(&self.cores)
    }
}

/// Nobody panics while it holds one of these.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
