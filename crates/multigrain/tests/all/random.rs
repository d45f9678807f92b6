//! Random programs on random machines: the plan passes the independent checker, and the run gives the very bytes that
//! sequential execution gives.

use crate::support;

use multigrain::rooms::plan::testing::{random_bytes, random_mapping, random_program, random_steps};
use multigrain::rooms::program::Role;
use multigrain::{Job, Mapping, Source, testing};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::random::{Failure, cases};

/// `None` where it does not fit.
fn one(seed: u64) -> Result<Option<()>, Failure> {
    let steps = seed.is_multiple_of(4);
    let program = if steps { random_steps(seed) } else { random_program(seed) };
    let directory = tempfile::tempdir()?;
    let bytes = random_bytes(&program, seed);
    let mut job = Job::new("random", program);
    for (i, (role, content)) in job.arrays().to_vec().iter().map(|a| a.role).zip(bytes).enumerate() {
        if matches!(role, Role::Input | Role::InOut) {
            job = job.with_source(i, Source::Bytes(content));
        }
    }
    let machine = testing::machine(seed, 1, directory.path())?;
    let mapping = if steps { Mapping::default() } else { random_mapping(seed, &machine) };
    let runtime = testing::runtime_with(machine.clone(), mapping)?;
    if testing::run_and_compare(&runtime, &job)?.is_some() {
        return Ok(Some(()));
    }
    // The mapping may ask for too much.
    Ok(testing::run_and_compare(&testing::runtime(machine)?, &job)?.map(|_| ()))
}

#[test]
fn runs_equal_sequential_execution() {
    let tried = AtomicUsize::new(0);
    let (fit, seeds) = cases(190, |seed| {
        tried.fetch_add(1, Ordering::Relaxed);
        one(seed)
    });
    let (fit, tried) = (fit.len(), tried.into_inner());
    assert!(fit < 100 || fit * 10 > tried * 9, "{seeds}, of {tried}: the generator proves too little");
}
