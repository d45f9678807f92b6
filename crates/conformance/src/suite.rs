//! The suite: a function for each thing that a driver promises.

use crate::disturbed::{Disturbance, Disturbed, INJECTED};
use crate::machines::machine;
use multigrain::MachineChoice;
use multigrain::driver::{Driver, Site};
use multigrain::prelude::*;
use multigrain::rooms::plan::testing::{Rng, random_bytes, random_program};
use multigrain::testing::{TEST_BUFFER_BYTES, run_and_compare};
use std::sync::Arc;

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The first seed.
    pub seed: u64,
    /// Programs that have to run undisturbed.
    pub programs: u64,
    /// Programs of which each transfer in turn fails.
    pub failing: u64,
    /// Transfers of one program that fail in turn, at most; where it has more, these are spread over them.
    pub transfers: u64,
}

impl Extent {
    /// A second or so.
    pub const SMALL: Extent = Extent { seed: 1, programs: 6, failing: 1, transfers: 6 };
    /// Some seconds: for a driver's own tests.
    pub const USUAL: Extent = Extent { seed: 1, programs: 24, failing: 3, transfers: 16 };

    /// As the environment has it: `MULTIGRAIN_SEED` and `MULTIGRAIN_CASES`, the number of programs, where they are given.
    #[must_use]
    pub fn from_environment(self) -> Extent {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        Extent {
            seed: number("MULTIGRAIN_SEED").unwrap_or(self.seed),
            programs: number("MULTIGRAIN_CASES").unwrap_or(self.programs),
            ..self
        }
    }
}

/// Everything. Whatever is wrong is a panic that names the seed.
///
/// # Panics
/// Where the driver does not hold what it promises.
pub fn all(driver: &Arc<dyn Driver>, extent: &Extent) {
    reservations(driver, extent);
    blocks(driver, extent);
    orders(driver, extent);
    faults(driver, extent);
}

/// A case: a program with its content, and a runtime on a machine of the driver.
struct Case {
    job: Job,
    runtime: Runtime,
    machine: Machine,
    seed: u64,
    _directory: tempfile::TempDir,
}

impl Case {
    /// `None` where the machine is too small for the program.
    fn of(driver: &Arc<dyn Driver>, seed: u64) -> Option<Case> {
        let directory = tempfile::tempdir().expect("a scratch folder");
        let scale = 1 + seed % 7;
        let machine = machine(driver, seed, scale, directory.path()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let program = random_program(seed);
        if program.calls().is_empty() {
            return None;
        }
        let content = random_bytes(&program, seed);
        let given: Vec<(usize, Vec<u8>)> = content
            .into_iter()
            .enumerate()
            .filter(|(i, _)| matches!(program.arrays()[*i].role, Role::Input | Role::InOut))
            .collect();
        let mut job = Job::new("conformance", program);
        for (array, bytes) in given {
            job = job.with_source(array, Source::Bytes(bytes));
        }
        let runtime = runtime(&machine, driver, seed);
        Some(Case { job, runtime, machine, seed, _directory: directory })
    }

    /// Runs and compares; whether the machine was large enough.
    fn runs(&self) -> bool {
        match run_and_compare(&self.runtime, &self.job) {
            Ok(outcome) => outcome.is_some(),
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    /// The same with a layer around the driver.
    fn disturbed(&self, driver: &Arc<dyn Driver>, what: Disturbance) -> (Runtime, Arc<Disturbed>) {
        let disturbed = Arc::new(Disturbed::new(Arc::clone(driver), what));
        let as_driver: Arc<dyn Driver> = disturbed.clone();
        (runtime(&self.machine, &as_driver, self.seed), disturbed)
    }
}

fn runtime(machine: &Machine, driver: &Arc<dyn Driver>, seed: u64) -> Runtime {
    let options = Options {
        machine: MachineChoice::Given(Box::new(machine.clone())),
        disk_buffer_bytes: Some(TEST_BUFFER_BYTES),
        drivers: vec![Arc::clone(driver)],
        // Some plans are in parts.
        listed_max: [None, None, Some(5)][seed as usize % 3],
        ..Options::default()
    };
    Runtime::new(options).unwrap_or_else(|e| panic!("seed {seed}: {e}"))
}

/// The cases that fit, from the extent's seed on.
fn cases(driver: &Arc<dyn Driver>, seed: u64, count: u64) -> impl Iterator<Item = Case> {
    (seed..seed.saturating_add(20 * count + 20))
        .filter_map(|seed| Case::of(driver, seed))
        .filter(Case::runs)
        .take(count as usize)
}

/// Memories have what was asked for, lie apart and stay where they are.
///
/// # Panics
/// Where they do not.
pub fn reservations(driver: &Arc<dyn Driver>, extent: &Extent) {
    let directory = tempfile::tempdir().expect("a scratch folder");
    let mut rng = Rng::new(extent.seed);
    for seed in extent.seed..extent.seed + 10 {
        let machine = machine(driver, seed, 4, directory.path()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let memory = &machine.memories()[1];
        let edge = memory.edge.as_ref().expect("it is below the root");
        let bytes = rng.range(1, memory.capacity_bytes);
        let reserve = |index| {
            let found = driver.reserve(&Site { memory, edge, index, bytes });
            found.unwrap_or_else(|e| panic!("seed {seed}: {bytes} of {} bytes are refused: {e}", memory.capacity_bytes))
        };
        let children: Vec<_> = (0..memory.count).map(reserve).collect();
        assert!(children.iter().all(|child| child.is_none() == edge.driver.views), "seed {seed}: views need no memory");
        let children: Vec<_> = children.into_iter().flatten().collect();
        let spans: Vec<_> = children.iter().map(|child| child.span()).collect();
        for (number, span) in spans.iter().enumerate() {
            assert!(span.len_bytes >= bytes, "seed {seed}: {} bytes instead of {bytes}", span.len_bytes);
            assert_eq!(span.start.addr() % 4096, 0, "seed {seed}: the memory begins at {:?}", span.start);
            let range = |i: usize| spans[i].start.addr()..spans[i].start.addr() + spans[i].len_bytes as usize;
            let apart = |i: usize| range(i).end <= range(number).start || range(number).end <= range(i).start;
            assert!((0..number).all(apart), "seed {seed}: two memories overlap");
        }
        let again = children.iter().map(|child| child.span().start);
        assert!(again.eq(spans.iter().map(|span| span.start)), "seed {seed}: a memory has moved");
    }
}

/// Random programs on random capacities give the bytes of sequential execution, and again with the memories kept from the run
/// before.
///
/// # Panics
/// Where they do not, or where hardly any fits.
pub fn blocks(driver: &Arc<dyn Driver>, extent: &Extent) {
    let mut ran = 0;
    for case in cases(driver, extent.seed, extent.programs) {
        assert!(case.runs(), "seed {}: what fitted does not fit again", case.seed);
        ran += 1;
    }
    assert_eq!(ran, extent.programs, "from seed {} on, hardly any program fits", extent.seed);
}

/// The same where transfers come late, and in other orders.
///
/// # Panics
/// Where results differ.
pub fn orders(driver: &Arc<dyn Driver>, extent: &Extent) {
    for case in cases(driver, extent.seed, extent.programs.div_ceil(2)) {
        for what in [Disturbance::Late, Disturbance::OutOfOrder(case.seed), Disturbance::OutOfOrder(!case.seed)] {
            let (runtime, _) = case.disturbed(driver, what);
            let ran = run_and_compare(&runtime, &case.job);
            assert!(matches!(ran, Ok(Some(_))), "seed {}, {what:?}: {:?}", case.seed, ran.map(|_| ()));
        }
    }
}

/// A transfer that fails, whichever it is, ends the run with an error that says so; the runtime is as good as before.
///
/// # Panics
/// Where a fault is lost, or something is left of it.
pub fn faults(driver: &Arc<dyn Driver>, extent: &Extent) {
    let mut failed = 0;
    for case in cases(driver, extent.seed, extent.failing) {
        let (runtime, counting) = case.disturbed(driver, Disturbance::None);
        run_and_compare(&runtime, &case.job).unwrap_or_else(|e| panic!("seed {}: {e}", case.seed));
        let transfers = counting.issued();
        let step = transfers.div_ceil(extent.transfers.max(1)).max(1) as usize;
        for number in (0..transfers).step_by(step) {
            for what in [Disturbance::IssueFails(number), Disturbance::WaitFails(number)] {
                let (runtime, _) = case.disturbed(driver, what);
                let error = match runtime.run(&case.job, Settings::default()) {
                    Err(error) => error,
                    Ok(_) => panic!("seed {}, {what:?} of {transfers}: the fault is lost", case.seed),
                };
                assert_eq!(error.exit_status(), 1, "seed {}, {what:?}: {error}", case.seed);
                let text = error.to_string();
                assert!(text.contains(INJECTED) && text.contains("block"), "seed {}, {what:?}: {text}", case.seed);
                // It was one transfer that failed: the next run has the whole memory and no trace of the last.
                let again = run_and_compare(&runtime, &case.job);
                assert!(matches!(again, Ok(Some(_))), "seed {}, after {what:?}: {:?}", case.seed, again.map(|_| ()));
                failed += 1;
            }
        }
    }
    let moves = !driver.facts().views;
    assert!(!moves || failed > 0, "from seed {} on, no program moves anything", extent.seed);
}
