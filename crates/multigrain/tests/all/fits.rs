//! What fits has a plan; who only plans runs nothing.

use crate::support;

use multigrain::rooms::plan::testing::{Scale, random_program, random_steps};
use multigrain::rooms::program::{Program, Role, Scalars};
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

/// Where nothing is copied each call of a program is one of its plan.
#[test]
fn more_calls_than_memory_has_room_for_are_refused_at_once() {
    let calls = 5000;
    let mut program = Program::new();
    let task = program.task(Scale::<f32, 2>::default());
    let x = program.array::<f32, 2>("x", [4, 4], Role::InOut).unwrap();
    let a = program.array::<f32, 2>("a", [4, 4], Role::Input).unwrap();
    (0..calls).for_each(|_| program.call(task, (x.all(), a.all()), Scalars::new()).unwrap());
    let generated = Source::Generated { seed: 1 };
    let job = Job::new("many", program).with_source(0, generated.clone()).with_source(1, generated);
    let within = |memory_bytes| {
        let machine = MachineChoice::Given(Box::new(support::memory_machine(2, None)));
        let options = Options { machine, only_plans: true, memory_bytes: Some(memory_bytes), ..Options::default() };
        Runtime::new(options).unwrap().fits(&job)
    };
    let mut refused = within(1 << 20).unwrap_err();
    assert!(refused.to_string().contains(&format!("its plan of {calls} calls or more")), "{refused}");
    // Work is cut for both cores, which is known when it is planned.
    let mut enough = 1 << 20;
    for _ in 0..2 {
        let more = refused.enough().unwrap().1.bytes();
        assert!(more > enough);
        enough = more;
        match within(enough) {
            Ok(()) => return,
            Err(error) => refused = error,
        }
    }
    panic!("{refused}");
}
