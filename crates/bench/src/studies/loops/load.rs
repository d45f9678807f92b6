//! One program of tasks: what is asked for, and one turn of it under a policy.

use crate::harness::Bench;
use crate::harness::how::{Policy, Told, Work};
use multigrain::Abort;
use multigrain::readable_bytes;
use multigrain::rooms::machine::approximate_time;
use multigrain::rooms::team::contexts::{Contexts, Did, Sharing, Turn, look, run};
use multigrain_console::Failure;
use multigrain_sgemm::kernel;
use multigrain_simd::Isa;
use serde_json::{Value, json};
use std::collections::TryReserveError;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Shorter slices are mostly switches.
const SLICE_LEAST: Duration = Duration::from_micros(50);
/// A page.
const FOOTPRINT_LEAST: u64 = 4 << 10;
/// Pages of a footprint that are gone through between two looks: about a microsecond.
const CHUNK: usize = 4;

/// Tasks that only compute.
pub(super) struct Load<'a> {
    pub(super) tasks: usize,
    pub(super) workers: usize,
    pub(super) length: Duration,
    pub(super) slice: Duration,
    pub(super) footprint: u64,
    work: Work,
    told: Told,
    /// Chunks of each task, as many as were measured to take its length.
    pub(super) chunks: u64,
    abort: &'a Abort,
}

/// One turn.
pub(super) struct Done {
    pub(super) wall: f64,
    pub(super) tasks: Vec<Task>,
    pub(super) did: Vec<Did>,
}

/// What a task saw of its turn, in seconds since all began.
pub(super) struct Task {
    pub(super) end: f64,
    /// How long it had a processor, by the system's account.
    pub(super) ran: f64,
    /// Its waits that were longer than a tenth of a slice, in order.
    pub(super) waits: Vec<(f64, f64)>,
    /// How often its thread was switched, by the system's account.
    pub(super) switches: u64,
}

impl Task {
    /// The longest wait, that for the first turn among them.
    pub(super) fn starved(&self) -> f64 {
        self.waits.iter().map(|(from, to)| to - from).fold(0.0, f64::max)
    }

    pub(super) fn first(&self) -> f64 {
        self.waits.first().filter(|(from, _)| *from == 0.0).map_or(0.0, |(_, to)| *to)
    }

    /// When it had a processor: all between its waits.
    pub(super) fn turns(&self) -> Vec<(f64, f64)> {
        let mut turns = Vec::with_capacity(self.waits.len() + 1);
        let mut from = 0.0;
        for (waits, goes_on) in &self.waits {
            turns.extend((*waits > from).then_some((from, *waits)));
            from = *goes_on;
        }
        turns.push((from, self.end));
        turns
    }
}

impl Done {
    /// Jain's index of the shares that tasks had of processors until their ends: 1 if all had the same, 1/n if one had all.
    pub(super) fn fairness(&self) -> f64 {
        let shares: Vec<f64> = self.tasks.iter().map(|task| task.ran / task.end).collect();
        let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
        sum * sum / (shares.len() as f64 * squares)
    }

    pub(super) fn starved(&self) -> f64 {
        self.tasks.iter().map(Task::starved).fold(0.0, f64::max)
    }

    pub(super) fn turns(&self) -> u64 {
        self.did.iter().map(|did| did.bound).sum()
    }

    pub(super) fn switches(&self) -> u64 {
        self.tasks.iter().map(|task| task.switches).sum()
    }
}

impl<'a> Load<'a> {
    /// What the bench is asked for.
    ///
    /// # Errors
    /// What makes no sense together.
    pub(super) fn new(bench: &'a Bench<'_>) -> Result<Load<'a>, Failure> {
        let (asked, workers) = (&bench.args.loops, bench.threads());
        let refuse = |why: String| Err(Failure::Request(why));
        let (tasks, footprint) = (asked.tasks as usize, asked.footprint);
        // Small sizes only show that everything works.
        let (length, slice) = match bench.args.quick {
            true => (asked.length.min(Duration::from_millis(20)), asked.slice.min(Duration::from_millis(1))),
            false => (asked.length, asked.slice),
        };
        let time = |of: Duration| time(of.as_secs_f64());
        if tasks <= workers {
            return refuse(format!(
                "{tasks} tasks on {workers} workers never wait for each other; ask for more tasks (--tasks {}) or fewer workers",
                4 * workers
            ));
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        if workers > processors {
            return refuse(format!(
                "{workers} workers, but this process may use {processors} processors; ask for no more (--workers {processors})"
            ));
        }
        if slice < SLICE_LEAST {
            return refuse(format!(
                "a slice of {} is mostly switching; ask for {} at least (--slice)",
                time(slice),
                time(SLICE_LEAST)
            ));
        }
        if slice >= length {
            return refuse(format!(
                "with slices of {} a task of {} has one turn only; ask for shorter slices (--slice) or longer tasks (--length)",
                time(slice),
                time(length)
            ));
        }
        let memory = bench.runtime(workers, None)?.memory_bytes()?;
        let programs = u64::from(asked.programs);
        let most = memory / (tasks as u64 * programs).max(1);
        if footprint < FOOTPRINT_LEAST || footprint > most {
            return refuse(format!(
                "{} for each of {} tasks: a task needs {} at least, and there is room for {} each (--footprint, --tasks)",
                readable_bytes(footprint),
                tasks as u64 * programs,
                readable_bytes(FOOTPRINT_LEAST),
                readable_bytes(most)
            ));
        }
        let (work, told, abort) = (asked.work, asked.told, &*bench.abort);
        let mut load = Load { tasks, workers, length, slice, footprint, work, told, chunks: 0, abort };
        load.chunks = asked.chunks.map_or_else(|| load.measured(), Ok)?;
        Ok(load)
    }

    /// What was asked for, for programs.
    pub(super) fn object(&self) -> Value {
        json!({
            "tasks": self.tasks,
            "workers": self.workers,
            "length_seconds": self.length.as_secs_f64(),
            "slice_seconds": self.slice.as_secs_f64(),
            "footprint_bytes": self.footprint,
        })
    }

    /// In a line, for people.
    pub(super) fn title(&self) -> String {
        let (length, slice) = (time(self.length.as_secs_f64()), time(self.slice.as_secs_f64()));
        let footprint = readable_bytes(self.footprint);
        format!("{} tasks of {length} and {footprint} on {} workers, slices of {slice}", self.tasks, self.workers)
    }

    /// How long a task waits between its turns if all have equal ones, and each its whole slice.
    pub(super) fn ideal_wait(&self) -> f64 {
        self.slice.as_secs_f64() * (self.tasks - self.workers) as f64 / self.workers as f64
    }

    /// Chunks that take a task's length, from the quickest of some runs of one task alone.
    fn measured(&self) -> Result<u64, Failure> {
        let mut quickest = f64::INFINITY;
        let mut chunks = 1u64;
        let alone = Load { tasks: 1, workers: 1, abort: self.abort, ..*self };
        let enough = self.length.as_secs_f64().min(0.05);
        for _ in 0..40 {
            // The whole turn also takes what the task works on and gives it back.
            let ran = Load { chunks, ..alone }.turn(Policy(Sharing::Fifo))?.tasks[0].ran;
            if ran < enough {
                chunks = chunks.saturating_mul(2);
                continue;
            }
            quickest = quickest.min(ran / chunks as f64);
            if ran > 4.0 * enough {
                break;
            }
            chunks += chunks / 8;
        }
        let length = self.length.as_secs_f64();
        if quickest > length {
            let [least, length] = [quickest, length].map(time);
            return Err(Failure::Request(format!(
                "one piece of work on {} takes {least}, and a task {length}; ask for longer tasks (--length) or a smaller --footprint",
                readable_bytes(self.footprint)
            )));
        }
        Ok((length / quickest) as u64)
    }

    /// All tasks once, under a policy.
    ///
    /// # Errors
    /// The system has no threads or memory for them, or the run was interrupted.
    pub(super) fn turn(&self, policy: Policy) -> Result<Done, Failure> {
        let turn = match self.told {
            Told::Timer => Turn::Timer(self.slice),
            Told::Clock => Turn::Clock(self.slice),
        };
        let shared = Contexts { processors: self.workers, sharing: policy.0, turn };
        let stores: Result<Vec<Store>, _> = (0..self.tasks).map(|_| Store::new(self.work, self.footprint)).collect();
        let stores = stores.map_err(|e| Failure::Run(format!("no memory for what tasks work on: {e}")))?;
        let begun = Instant::now();
        let outcome = run(&shared, stores.into_iter().map(|store| move || self.task(store, begun)).collect());
        let outcome = outcome.map_err(|e| Failure::Run(e.to_string()))?;
        let wall = begun.elapsed().as_secs_f64();
        if self.abort.is_raised() {
            return Err(multigrain::Error::Interrupted { resume: false }.into());
        }
        Ok(Done { wall, tasks: outcome.results, did: outcome.did })
    }

    /// What a task does: its chunks, with a look behind each, and what it sees of its waits.
    fn task(&self, mut store: Store, begun: Instant) -> Task {
        let set_aside = self.slice.as_secs_f64() / 10.0;
        let before = switches();
        let mut waits = Vec::new();
        let mut last = 0.0;
        for chunk in 0..self.chunks {
            let now = begun.elapsed().as_secs_f64();
            if now - last > set_aside {
                waits.push((last, now));
            }
            last = now;
            if self.abort.is_raised() {
                break;
            }
            store.chunk(chunk);
            look();
        }
        let end = begun.elapsed().as_secs_f64();
        if end - last > set_aside {
            waits.push((last, end));
        }
        black_box(&store);
        let ran = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let ran = ran.tv_sec as f64 + ran.tv_nsec as f64 * 1e-9;
        Task { end, ran, waits, switches: switches().saturating_sub(before) }
    }

    /// Seconds to save a footprint and to restore another: both are copied, from memory that nobody has touched since.
    pub(super) fn saving(&self) -> Result<f64, Failure> {
        let bytes = self.footprint as usize;
        // Enough of them that no cache keeps the first until it is copied again.
        let count = ((64 << 20) / bytes).clamp(2, 256);
        let mut kept: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; bytes]).collect();
        let mut store = vec![0u8; bytes];
        let mut taken = Vec::new();
        for turn in 0..2 * count {
            let (save, restore) = (turn % count, (turn + 1) % count);
            let begun = Instant::now();
            kept[save].copy_from_slice(&store);
            store.copy_from_slice(&kept[restore]);
            black_box(&mut store);
            taken.push(begun.elapsed().as_secs_f64());
        }
        crate::harness::row::median(&taken).ok_or_else(|| Failure::Run("nothing was measured".into()))
    }
}

/// Seconds, for people.
pub(super) fn time(seconds: f64) -> String {
    approximate_time(seconds * 1e9)
}

/// How often the system has switched the calling thread; 0 where it does not say.
fn switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let counts = status.lines().filter(|line| line.contains("_ctxt_switches:"));
    counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum()
}

/// Tasks that run at once have no line of a cache, and nothing that is fetched ahead, in common.
#[derive(Clone)]
#[repr(align(4096))]
struct Page([f32; 1024]);

/// What a task works on.
enum Store {
    Sweep(Vec<Page>),
    /// A, B and C of so many rows and columns, and room for packing.
    Sgemm {
        n: usize,
        matrices: [Vec<f32>; 3],
        scratch: Vec<f32>,
    },
}

impl Store {
    fn new(work: Work, footprint: u64) -> Result<Store, TryReserveError> {
        let filled = |elements: usize| -> Result<Vec<f32>, TryReserveError> {
            let mut of = Vec::new();
            of.try_reserve_exact(elements)?;
            of.extend((0..elements).map(|i| 1.0 + (i % 7) as f32 * 0.01));
            Ok(of)
        };
        match work {
            Work::Sweep => {
                let (mut array, pages) = (Vec::new(), footprint as usize / size_of::<Page>());
                array.try_reserve_exact(pages)?;
                array.resize(pages, Page([1.0; 1024]));
                Ok(Store::Sweep(array))
            }
            Work::Sgemm => {
                let n = (footprint as f64 / (3 * size_of::<f32>()) as f64).sqrt() as usize;
                let scratch = filled(kernel::scratch_elements(Isa::detect(), n, n, n, None))?;
                Ok(Store::Sgemm { n, matrices: [filled(n * n)?, filled(n * n)?, filled(n * n)?], scratch })
            }
        }
    }

    fn chunk(&mut self, chunk: u64) {
        match self {
            Store::Sweep(array) => {
                let parts = array.len().div_ceil(CHUNK);
                let part = chunk as usize % parts;
                let pages = part * array.len() / parts..(part + 1) * array.len() / parts;
                array[pages].iter_mut().flat_map(|page| &mut page.0).for_each(|x| *x = *x * 0.999 + 0.001);
            }
            Store::Sgemm { n, matrices: [a, b, c], scratch } => {
                // Shapes and pitches are those of the arrays.
                let _ = kernel::sgemm_checked(Isa::detect(), true, (*n, *n, *n), (a, *n), (b, *n), (c, *n), scratch);
            }
        }
    }
}
