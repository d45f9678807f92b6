//! The application: the same bytes on every machine, files that stay as they were, refusals in plain words.

use multigrain::app::Application;
use multigrain::jobs::{Team, TeamOptions};
use multigrain::prelude::*;
use multigrain::rooms::plan::testing::Rng;
use multigrain::testing;
use multigrain_saxpy::app::Args;
use multigrain_saxpy::task::Saxpy;
use multigrain_simd::Isa;
use std::path::Path;

const LENGTHS: [u64; 8] = [1, 2, 17, 64, 257, 1021, 4096, 5003];

fn files(directory: &Path, n: u64) -> Args {
    let (x, y) = (directory.join("x.npy"), directory.join("y.npy"));
    testing::write_npy(&x, &[n], &testing::numbers(5, n)).unwrap();
    testing::write_npy(&y, &[n], &testing::numbers(6, n)).unwrap();
    Args { x: Some(x), y: Some(y), output: Some(directory.join("out.npy")), ..Args::default() }
}

#[test]
fn every_machine_gives_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let args = |seed| {
        let mut rng = Rng::new(seed);
        let n = *rng.pick(&LENGTHS).unwrap();
        Args { n: Some(n), seed, alpha: rng.range(0, 9) as f32 - 4.5, ..Args::default() }
    };
    let ran = testing::on_random_machines(0..60, 1, directory.path(), args, |seed, args, checked| {
        assert!(checked.holds() && Some(checked.elements) == args.n, "seed {seed}: {checked:?}");
    });
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
        let [whole, split] = testing::whole_and_split(&job, 1 + seed as usize % 3, seed).unwrap();
        assert!(whole == split, "seed {seed}, n {n}");
    }
}

#[test]
fn from_files_only_the_output_is_written_and_one_wrong_element_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let n = 3001;
    let args = Args { alpha: 2.5, ..files(directory.path(), n) };
    let runtime = testing::runtime_with_disk(1, 1, directory.path()).unwrap();
    let before = std::fs::read(directory.path().join("y.npy")).unwrap();
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let wanted: Vec<f32> =
        testing::numbers(5, n).into_iter().zip(testing::numbers(6, n)).map(|(x, y)| 2.5f32.mul_add(x, y)).collect();
    let out = directory.path().join("out.npy");
    assert_eq!(testing::read_npy(&out).unwrap(), wanted);
    assert_eq!(std::fs::read(directory.path().join("y.npy")).unwrap(), before);
    let largest = (0..n).max_by(|&a, &b| wanted[a as usize].abs().total_cmp(&wanted[b as usize].abs())).unwrap();
    for seed in 0..4 {
        let last_bit = f64::from(wanted[largest as usize].abs()) / 8_388_608.0;
        testing::alterations(&out, Some((largest, last_bit)), seed, || (app.check)(&outcome, seed).unwrap().holds());
    }
}

#[test]
fn sums_that_overflow_or_are_none_are_not_called_right() {
    let directory = tempfile::tempdir().unwrap();
    let x = [f32::MAX, f32::NAN, f32::INFINITY, 1e-45, 1e-40];
    let y = [f32::MIN, 1.0, f32::INFINITY, 1e-45, -1e-39];
    let runtime = Runtime::new(Options::default()).unwrap();
    for (count, finite) in [(5, 2), (3, 0)] {
        let args = Args { output: None, alpha: -1.5, ..files(directory.path(), count) };
        for (path, values) in [(&args.x, x), (&args.y, y)] {
            testing::write_npy(path.as_ref().unwrap(), &[count], &values[..count as usize]).unwrap();
        }
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        let checked = (app.check)(&outcome, 0).unwrap();
        assert!(checked.holds() && checked.elements == finite, "{checked:?}");
        assert!(
            checked.covered.contains("not judged, being NaN or infinite as their inputs may make them: 3"),
            "{checked:?}"
        );
        assert_eq!(checked.uncovered.is_some(), finite == 0, "{checked:?}");
    }
}

#[test]
fn bare_files_take_their_length_from_the_option() {
    let directory = tempfile::tempdir().unwrap();
    let n = 100;
    let (x, y) = (directory.path().join("x.bin"), directory.path().join("y.bin"));
    for (path, seed) in [(&x, 1), (&y, 2)] {
        let bytes: Vec<u8> = testing::numbers(seed, n).iter().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(path, bytes).unwrap();
    }
    let runtime = testing::runtime_with_disk(7, 1, directory.path()).unwrap();
    let out = directory.path().join("out.npy");
    let args = Args { x: Some(x), y: Some(y), output: Some(out.clone()), ..Args::default() };
    let message = testing::refusal(&runtime, &args);
    assert!(message.contains("x.bin") && message.contains("sizes"), "{message}");
    let app = Args { n: Some(n), ..args }.prepare(&runtime).unwrap();
    runtime.run(&app.job, Settings::default()).unwrap();
    assert_eq!(
        testing::read_npy(&out).unwrap()[99],
        2.0f32.mul_add(testing::numbers(1, n)[99], testing::numbers(2, n)[99])
    );
}

#[test]
fn wrong_requests_are_refused_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = testing::runtime_with_disk(3, 1, directory.path()).unwrap();
    let args = files(directory.path(), 10);
    let other = directory.path().join("other.npy");

    testing::write_npy(&other, &[11], &testing::numbers(1, 11)).unwrap();
    let message = testing::refusal(&runtime, &Args { y: Some(other.clone()), ..args.clone() });
    assert!(message.contains("10") && message.contains("11"), "{message}");

    testing::write_npy(&other, &[2, 5], &testing::numbers(1, 10)).unwrap();
    let message = testing::refusal(&runtime, &Args { y: Some(other.clone()), ..args.clone() });
    assert!(message.contains("other.npy has 2 dimensions"), "{message}");

    let message = testing::refusal(&runtime, &Args { x: Some(directory.path().join("none.npy")), ..args.clone() });
    assert!(message.contains("none.npy"), "{message}");

    let message = testing::refusal(&runtime, &Args { y: None, ..args });
    assert!(message.contains("neither"), "{message}");

    let message = testing::refusal(&runtime, &Args { n: Some(0), ..Args::default() });
    assert!(message.contains("length zero"), "{message}");
}

/// Workers that would only take processors from others leave the work to them.
#[test]
fn no_more_workers_compute_than_there_are_processors() {
    let options = TeamOptions { workers: 4 * TeamOptions::default().workers, ..TeamOptions::default() };
    let processors = Team::new(options).unwrap().at_once();
    let runtime = Runtime::new(Options { threads: Some(options.workers), ..Options::default() }).unwrap();
    let app = Args { n: Some(1 << 20), ..Args::default() }.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings { full_trace: true, ..Settings::default() }).unwrap();
    let records = &outcome.trace.as_ref().unwrap().records;
    let leaves = records.iter().filter(|record| record.kind == multigrain::rooms::trace::Kind::Leaf);
    let workers: Vec<usize> = leaves.map(|leaf| leaf.worker as usize).collect();
    assert!(workers.len() > processors && workers.iter().all(|&worker| worker < processors), "{workers:?}");
    assert!((app.check)(&outcome, 1).unwrap().holds());
}
