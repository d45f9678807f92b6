//! What fits has a plan; who only plans runs nothing.

use crate::support;

use multigrain::rooms::plan::testing::{random_program, random_steps};
use multigrain::rooms::program::Role;
use multigrain::{Error, Job, MachineChoice, Options, Runtime, Settings, Source};
use support::disk_machine;

/// A random program on a disk above so little memory that about half of them fit.
fn random(seed: u64, only_plans: bool) -> (Runtime, Job, tempfile::TempDir) {
    let program = if seed.is_multiple_of(4) { random_steps(seed) } else { random_program(seed) };
    let directory = support::directory();
    let mut job = Job::new("random", program);
    for array in 0..job.arrays().len() {
        if matches!(job.arrays()[array].role, Role::Input | Role::InOut) {
            job = job.with_source(array, Source::Generated { seed });
        }
    }
    let local_bytes = seed.is_multiple_of(3).then_some(4 << (seed % 13));
    let machine = disk_machine(directory.path(), 16 << (seed % 11), 1 + seed as usize % 3, local_bytes);
    let machine = MachineChoice::Given(Box::new(machine));
    let disk_buffer_bytes = Some(support::BUFFER_BYTES);
    let runtime = Runtime::new(Options { machine, only_plans, disk_buffer_bytes, ..Options::default() }).unwrap();
    (runtime, job, directory)
}

#[test]
fn what_fits_is_planned() {
    let (mut fit, mut searched, mut refused) = (0, 0, 0);
    for seed in 0..100 {
        let (runtime, job, _directory) = random(seed, true);
        let (fits, planned) = (runtime.fits(&job), runtime.plan(&job));
        match (&fits, &planned) {
            (Ok(()), Err(error)) => panic!("seed {seed} fits, and has no plan: {error}"),
            (Ok(()), Ok(_)) => fit += 1,
            (Err(_), Ok(_)) => searched += 1,
            (Err(_), Err(_)) => refused += 1,
        }
    }
    // It is seldom that a search alone finds what fits.
    assert!(
        fit > 20 && refused > 20 && searched <= 5,
        "{fit} fit, {refused} are refused, {searched} fit with a search: that proves too little"
    );
}

#[test]
fn who_only_plans_runs_nothing() {
    let seed = (0..).find(|&seed| random(seed, true).0.fits(&random(seed, true).1).is_ok()).unwrap();
    let (runtime, job, directory) = random(seed, true);
    let refused = |error: &Error| error.to_string().contains("only plans");
    assert!(runtime.run(&job, Settings::default()).is_err_and(|error| refused(&error)));
    assert!(runtime.prepare(&job).is_err_and(|error| refused(&error)));
    assert_eq!(directory.path().read_dir().unwrap().count(), 0, "something is left behind");
    let (runtime, job, _directory) = random(seed, false);
    runtime.run(&job, Settings::default()).unwrap();
}
