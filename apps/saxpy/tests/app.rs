//! The application: the same bytes on every machine, files that stay as they were, refusals in plain words.

use multigrain::app::Application;
use multigrain::prelude::*;
use multigrain::rooms::plan::testing::Rng;
use multigrain::testing;
use multigrain_saxpy::app::Args;
use multigrain_saxpy::task::Saxpy;
use multigrain_simd::Isa;
use std::path::Path;

const LENGTHS: [u64; 8] = [1, 2, 17, 64, 257, 1021, 4096, 5003];

/// The first machine on from `seed` that has a disk, in `directory`, and memory for blocks.
fn with_disk(seed: u64, directory: &Path) -> Runtime {
    let mut seeds = seed..;
    let machine = seeds.find_map(|seed| {
        let machine = testing::machine(seed, 1, directory).unwrap();
        machine.memory(machine.root()).path.is_some().then_some(machine)
    });
    testing::runtime(machine.unwrap()).unwrap()
}

fn numbers(seed: u64, n: u64) -> Vec<f32> {
    (0..n).map(|i| generate::f32_at(seed, i)).collect()
}

fn files(directory: &Path, n: u64) -> Args {
    let (x, y) = (directory.join("x.npy"), directory.join("y.npy"));
    testing::write_npy(&x, &[n], &numbers(5, n)).unwrap();
    testing::write_npy(&y, &[n], &numbers(6, n)).unwrap();
    Args { x: Some(x), y: Some(y), output: Some(directory.join("out.npy")), ..Args::default() }
}

fn refusal(runtime: &Runtime, args: &Args) -> String {
    let Err(error) = args.prepare(runtime) else { panic!("{args:?} was accepted") };
    assert_eq!(error.exit_status(), 2);
    error.to_string()
}

#[test]
fn every_machine_gives_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let mut ran = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let n = *rng.pick(&LENGTHS).unwrap();
        let args = Args { n: Some(n), seed, alpha: rng.range(0, 9) as f32 - 4.5, ..Args::default() };
        let runtime = testing::runtime(testing::machine(seed, 1, directory.path()).unwrap()).unwrap();
        let app = args.prepare(&runtime).unwrap();
        if let Some(outcome) =
            testing::run_and_compare(&runtime, &app.job).unwrap_or_else(|e| panic!("seed {seed}: {e}"))
        {
            let checked = (app.check)(&outcome).unwrap();
            assert!(checked.holds() && checked.elements == n, "seed {seed}: {checked:?}");
            ran += 1;
        }
    }
    assert!(ran > 30, "only {ran} of 60 cases fit");
}

#[test]
fn blocks_of_blocks_equal_the_whole() {
    for seed in 0..200 {
        let n = *Rng::new(seed).pick(&LENGTHS).unwrap();
        let mut program = Program::new();
        let task = program.task(Saxpy::new(Isa::detect()));
        let x = program.array::<f32, 1>("x", [n], Role::Input).unwrap();
        let y = program.array::<f32, 1>("y", [n], Role::Input).unwrap();
        let out = program.array::<f32, 1>("out", [n], Role::Output).unwrap();
        program.call(task, (x.all(), y.all(), out.all()), Scalars::new().with_f32(0.7)).unwrap();
        let job = Job::new("saxpy", program).with_source(0, Source::Generated { seed });
        let job = job.with_source(1, Source::Generated { seed: seed + 1 });
        let (mut whole, mut split) = (testing::initial_bytes(&job), testing::initial_bytes(&job));
        job.program.run_sequential(&mut whole).unwrap();
        testing::run_split(&job.program, &mut split, 1 + seed as usize % 3, seed);
        assert!(whole == split, "seed {seed}, n {n}");
    }
}

#[test]
fn from_files_only_the_output_is_written_and_one_wrong_element_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let n = 3001;
    let args = Args { alpha: 2.5, ..files(directory.path(), n) };
    let runtime = with_disk(1, directory.path());
    let before = std::fs::read(directory.path().join("y.npy")).unwrap();
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let wanted: Vec<f32> = numbers(5, n).into_iter().zip(numbers(6, n)).map(|(x, y)| 2.5f32.mul_add(x, y)).collect();
    let out = directory.path().join("out.npy");
    assert_eq!(testing::read_npy(&out).unwrap(), wanted);
    assert_eq!(std::fs::read(directory.path().join("y.npy")).unwrap(), before);
    assert!((app.check)(&outcome).unwrap().holds());
    testing::damage_npy(&out, n - 1).unwrap();
    let checked = (app.check)(&outcome).unwrap();
    assert!(!checked.holds(), "{checked:?}");
}

#[test]
fn bare_files_take_their_length_from_the_option() {
    let directory = tempfile::tempdir().unwrap();
    let n = 100;
    let (x, y) = (directory.path().join("x.bin"), directory.path().join("y.bin"));
    for (path, seed) in [(&x, 1), (&y, 2)] {
        let bytes: Vec<u8> = numbers(seed, n).iter().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(path, bytes).unwrap();
    }
    let runtime = with_disk(7, directory.path());
    let out = directory.path().join("out.npy");
    let args = Args { x: Some(x), y: Some(y), output: Some(out.clone()), ..Args::default() };
    let message = refusal(&runtime, &args);
    assert!(message.contains("x.bin") && message.contains("sizes"), "{message}");
    let app = Args { n: Some(n), ..args }.prepare(&runtime).unwrap();
    runtime.run(&app.job, Settings::default()).unwrap();
    assert_eq!(testing::read_npy(&out).unwrap()[99], 2.0f32.mul_add(numbers(1, n)[99], numbers(2, n)[99]));
}

#[test]
fn wrong_requests_are_refused_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = with_disk(3, directory.path());
    let args = files(directory.path(), 10);
    let other = directory.path().join("other.npy");

    testing::write_npy(&other, &[11], &numbers(1, 11)).unwrap();
    let message = refusal(&runtime, &Args { y: Some(other.clone()), ..args.clone() });
    assert!(message.contains("10") && message.contains("11"), "{message}");

    testing::write_npy(&other, &[2, 5], &numbers(1, 10)).unwrap();
    let message = refusal(&runtime, &Args { y: Some(other.clone()), ..args.clone() });
    assert!(message.contains("other.npy has 2 dimensions"), "{message}");

    let message = refusal(&runtime, &Args { x: Some(directory.path().join("none.npy")), ..args.clone() });
    assert!(message.contains("none.npy"), "{message}");

    let message = refusal(&runtime, &Args { y: None, ..args });
    assert!(message.contains("neither"), "{message}");

    let message = refusal(&runtime, &Args { n: Some(0), ..Args::default() });
    assert!(message.contains("length zero"), "{message}");
}
