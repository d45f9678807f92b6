//! Random programs on random machines: the plan passes the independent checker, and the run gives the very bytes that
//! sequential execution gives.

use multigrain::rooms::plan::testing::{random_bytes, random_mapping, random_program, random_steps};
use multigrain::rooms::program::Role;
use multigrain::{Job, Mapping, Source, testing};

fn one(seed: u64) -> Result<bool, Box<dyn std::error::Error>> {
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
        return Ok(true);
    }
    // The mapping may ask for too much.
    Ok(testing::run_and_compare(&testing::runtime(machine)?, &job)?.is_some())
}

#[test]
fn runs_equal_sequential_execution() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let first = number("MULTIGRAIN_SEED").unwrap_or(1);
    let count = number("MULTIGRAIN_CASES").unwrap_or(200);
    let mut ran = 0;
    for seed in first..first + count {
        match one(seed) {
            Ok(fits) => ran += u64::from(fits),
            Err(e) => panic!("seed {seed} (MULTIGRAIN_SEED={seed} MULTIGRAIN_CASES=1 repeats it): {e}"),
        }
    }
    assert!(count < 100 || ran * 10 > count * 9, "only {ran} of {count} cases fit: the generator proves too little");
}
