//! A random program on a random machine with a disk, whose inputs are given and whose results go to files.

use super::{BUFFER_BYTES, Setup, directory, run};
use multigrain::rooms::machine::Machine;
use multigrain::rooms::plan::testing::{
    Rng, random_bytes, random_machine, random_mapping, random_program, random_steps,
};
use multigrain::rooms::program::{Program, Role};
use multigrain::rooms::store::BackendChoice;
use multigrain::rooms::store::faults::Count;
use multigrain::{Error, Job, Mapping, Sink, Source};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) type Failure = Box<dyn std::error::Error>;

pub(crate) struct RandomCase {
    pub(crate) job: Job,
    /// Results that go to files.
    pub(crate) sinks: Vec<(usize, PathBuf)>,
    /// Bytes of the main memory for blocks.
    pub(crate) dram_bytes: u64,
    pub(crate) rng: Rng,
    /// All arrays after sequential execution.
    expected: Vec<Vec<u8>>,
    machine: Machine,
    mapping: Mapping,
    directory: tempfile::TempDir,
    /// Where arrays without a file of their own lie: beside the results, or elsewhere.
    scratch: PathBuf,
}

impl RandomCase {
    /// `None` where the seed's machine has no disk, or its program no result.
    pub(crate) fn new(seed: u64, salt: u64) -> Result<Option<RandomCase>, Failure> {
        let machine = random_machine(seed);
        let steps = seed.is_multiple_of(4);
        let program: Program = if steps { random_steps(seed) } else { random_program(seed) };
        let root = machine.memory(machine.root()).name.clone();
        let is_result = |&i: &usize| matches!(program.arrays()[i].role, Role::Output | Role::InOut);
        let results: Vec<usize> = (0..program.arrays().len()).filter(is_result).collect();
        if root != "disk" || results.is_empty() {
            return Ok(None);
        }
        let directory = directory();
        let dram_bytes = machine.memory(machine.find("dram").ok_or("no dram")?).capacity_bytes;
        let scratch = match seed % 3 {
            0 => directory.path().to_owned(),
            _ => directory.path().join("scratch"),
        };
        std::fs::create_dir_all(&scratch)?;
        let machine = machine.with(&root, |m| m.path = Some(scratch.clone()))?;
        let mapping = if steps { Mapping::default() } else { random_mapping(seed, &machine) };
        let bytes = random_bytes(&program, seed);
        let mut rng = Rng::new(seed ^ salt);
        let mut job = Job::new("random", program.clone());
        let mut sinks = Vec::new();
        for (i, decl) in program.arrays().iter().enumerate() {
            if matches!(decl.role, Role::Input | Role::InOut) {
                job = job.with_source(i, Source::Bytes(bytes[i].clone()));
            }
            // Now and then a result goes nowhere; one always goes to a file.
            if results.contains(&i) && (results[0] == i || rng.percent(80)) {
                let path = directory.path().join(format!("{i}.bin"));
                job = job.with_sink(i, Sink::Raw(path.clone()));
                sinks.push((i, path));
            }
        }
        let mut expected = bytes;
        program.run_sequential(&mut expected)?;
        Ok(Some(RandomCase { job, sinks, dram_bytes, rng, expected, machine, mapping, directory, scratch }))
    }

    /// Runtimes with so many bytes for blocks.
    pub(crate) fn setup(&self, dram_bytes: u64) -> Result<Setup, Failure> {
        let machine = self.machine.with_capacity("dram", dram_bytes + BUFFER_BYTES)?;
        Ok(Setup { machine, mapping: self.mapping.clone(), backend: BackendChoice::Auto })
    }

    /// Whether the results are those of sequential execution.
    pub(crate) fn compare(&self, what: &str) -> Result<(), Failure> {
        for (i, path) in &self.sinks {
            let found = std::fs::read(path)?;
            if found != self.expected[*i] {
                let at = found.iter().zip(&self.expected[*i]).position(|(f, e)| f != e);
                return Err(format!("{what}: array {} differs at {at:?}", self.job.arrays()[*i].name).into());
            }
        }
        Ok(())
    }

    /// The files that are there.
    pub(crate) fn left(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut left = Vec::new();
        for folder in [self.directory.path(), &self.scratch] {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                if path != self.scratch && !left.contains(&path) {
                    left.push(path);
                }
            }
        }
        Ok(left)
    }

    /// Refuses what is left beside the results.
    pub(crate) fn nothing_else_is_left(&self, what: &str) -> Result<(), Failure> {
        match self.left()?.iter().find(|path| !self.sinks.iter().any(|(_, sink)| sink == *path)) {
            Some(path) => Err(format!("{what}: left {}", path.display()).into()),
            None => Ok(()),
        }
    }

    pub(crate) fn clear(&self) -> Result<(), Failure> {
        Ok(self.left()?.iter().try_for_each(std::fs::remove_file)?)
    }
}

/// Some attempts, by `attempt`, that are interrupted at a random operation, and a run that continues to the end, so many
/// times. `attempt` is told how often the run was interrupted before, the case's number of operations, and the interval of
/// its journal; it says what it did. `None` when the case proves nothing: no plan. Else whether some run continued.
pub(crate) fn interrupted(
    case: &mut RandomCase,
    times: u64,
    interval: Option<Duration>,
    mut attempt: impl FnMut(&mut RandomCase, &Setup, u64, u64) -> Result<String, Failure>,
) -> Result<Option<bool>, Failure> {
    let setup = case.setup(case.dram_bytes)?;
    let count = Arc::new(Count::new());
    match run(&setup.runtime(Some(count.clone())), &case.job, false, interval) {
        Ok(_) => case.compare("undisturbed")?,
        Err(Error::Plan(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    case.clear()?;
    let mut continued = false;
    for _ in 0..times {
        let mut what = String::new();
        for before in 0..case.rng.range(1, 3) {
            what += &attempt(case, &setup, before, count.operations())?;
        }
        let outcome = run(&setup.runtime(None), &case.job, true, interval).map_err(|e| format!("{what}{e}"))?;
        continued |= outcome.resumed;
        case.compare(&what)?;
        case.nothing_else_is_left(&what)?;
        case.clear()?;
    }
    Ok(Some(continued))
}

/// [`cases`] of which a third continue at least, where there are enough to tell.
pub(crate) fn many_interrupted(otherwise: usize, one: impl Fn(u64) -> Result<Option<bool>, Failure> + Sync) {
    let (found, seeds) = cases(otherwise, one);
    let (ran, continued) = (found.len(), found.iter().filter(|continued| **continued).count());
    eprintln!("{seeds}, {continued} continued");
    assert!(ran < 50 || continued * 3 > ran, "only {continued} of {ran} cases continued: the proof is too weak");
}

/// Of so many seeds one has to prove something, at least.
const SEEDS_A_CASE: u64 = 10;

/// Tries seeds on all processors until so many cases have proved something: `one` says what a seed's did, or nothing. The first seed
/// and the number come from the environment, where they are given. Says what they did, and which seeds.
pub(crate) fn cases<T: Send>(
    otherwise: usize,
    one: impl Fn(u64) -> Result<Option<T>, Failure> + Sync,
) -> (Vec<T>, String) {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let first = number("MULTIGRAIN_SEED").unwrap_or(1);
    let cases = number("MULTIGRAIN_CASES").map_or(otherwise, |cases| cases as usize);
    let (next, proved, failed) = (AtomicU64::new(first), Mutex::new(Vec::new()), AtomicBool::new(false));
    let search = || {
        while !failed.load(Ordering::Relaxed) && proved.lock().unwrap().len() < cases {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            assert!(seed - first < SEEDS_A_CASE * (cases as u64 + 1), "seeds prove too little");
            match one(seed) {
                Ok(None) if cases == 1 => break,
                Ok(found) => proved.lock().unwrap().extend(found),
                Err(e) => {
                    failed.store(true, Ordering::Relaxed);
                    panic!("seed {seed} (MULTIGRAIN_SEED={seed} MULTIGRAIN_CASES=1 repeats it): {e}");
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(cases);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(search))));
    let proved = proved.into_inner().unwrap();
    let seeds = format!("{} cases with seeds {first} to {}", proved.len(), next.into_inner() - 1);
    (proved, seeds)
}
