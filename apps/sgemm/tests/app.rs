//! The application: the same bytes on every machine, right products, refusals in plain words.

use multigrain::app::Application;
use multigrain::prelude::*;
use multigrain::rooms::plan::testing::Rng;
use multigrain::testing;
use multigrain_sgemm::app::Args;
use multigrain_sgemm::task::Product;
use multigrain_simd::Isa;
use std::path::Path;

/// m, n and k: thin, prime, and with more than one span of k.
const SHAPES: [(u64, u64, u64); 9] = [
    (1, 1, 1),
    (1, 300, 1),
    (7, 11, 13),
    (33, 1, 257),
    (40, 24, 512),
    (3, 5, 1031),
    (64, 64, 64),
    (17, 101, 300),
    (101, 3, 255),
];

fn numbers(seed: u64, n: u64) -> Vec<f32> {
    (0..n).map(|i| generate::f32_at(seed, i)).collect()
}

fn with_disk(directory: &Path) -> Runtime {
    let mut machines = (1..).map(|seed| testing::machine(seed, 16, directory).unwrap());
    let machine = machines.find(|m| m.memory(m.root()).path.is_some());
    testing::runtime(machine.unwrap()).unwrap()
}

#[test]
fn every_machine_gives_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let mut ran = 0;
    for seed in 0..60 {
        let (m, n, k) = *Rng::new(seed).pick(&SHAPES).unwrap();
        let args = Args { m: Some(m), n: Some(n), k: Some(k), seed, ..Args::default() };
        let runtime = testing::runtime(testing::machine(seed, 16, directory.path()).unwrap()).unwrap();
        let app = args.prepare(&runtime).unwrap();
        let outcome = testing::run_and_compare(&runtime, &app.job).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        if let Some(outcome) = outcome {
            let checked = (app.check)(&outcome).unwrap();
            assert!(checked.holds() && checked.elements == m * n, "seed {seed}: {checked:?}");
            ran += 1;
        }
    }
    assert!(ran > 30, "only {ran} of 60 cases fit");
}

#[test]
fn blocks_of_blocks_equal_the_whole() {
    for seed in 0..200 {
        let (m, n, k) = *Rng::new(seed).pick(&SHAPES).unwrap();
        let mut program = Program::new();
        let task = program.task(Product::new(Isa::detect()));
        let a = program.array::<f32, 2>("A", [m, k], Role::Input).unwrap();
        let b = program.array::<f32, 2>("B", [k, n], Role::Input).unwrap();
        let c = program.array::<f32, 2>("C", [m, n], Role::Output).unwrap();
        program.call(task, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
        let job = Job::new("sgemm", program)
            .with_source(0, Source::Generated { seed })
            .with_source(1, Source::Generated { seed: seed + 1 });
        let (mut whole, mut split) = (testing::initial_bytes(&job), testing::initial_bytes(&job));
        job.program.run_sequential(&mut whole).unwrap();
        testing::run_split(&job.program, &mut split, 1 + seed as usize % 3, seed);
        assert!(whole == split, "seed {seed}, {m} x {n} x {k}");
    }
}

#[test]
fn files_are_multiplied_and_one_wrong_element_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (m, n, k) = (31, 23, 300);
    let path = |name: &str| directory.path().join(name);
    testing::write_npy(&path("A.npy"), &[m, k], &numbers(5, m * k)).unwrap();
    testing::write_npy(&path("B.npy"), &[k, n], &numbers(6, k * n)).unwrap();
    let runtime = with_disk(directory.path());
    let args = Args { a: Some(path("A.npy")), b: Some(path("B.npy")), output: Some(path("C.npy")), ..Args::default() };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let (a, b) = (numbers(5, m * k), numbers(6, k * n));
    let c = testing::read_npy(&path("C.npy")).unwrap();
    for (i, j) in [(0, 0), (30, 22), (7, 11)] {
        let wanted: f64 = (0..k).map(|l| f64::from(a[(i * k + l) as usize]) * f64::from(b[(l * n + j) as usize])).sum();
        let found = f64::from(c[(i * n + j) as usize]);
        assert!((found - wanted).abs() < 1e-4, "C[{i}][{j}] is {found}, not {wanted}");
    }
    assert!((app.check)(&outcome).unwrap().holds());
    testing::damage_npy(&path("C.npy"), 17).unwrap();
    assert!(!(app.check)(&outcome).unwrap().holds());
}

#[test]
fn shapes_that_do_not_multiply_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    testing::write_npy(&path("A.npy"), &[4, 5], &numbers(1, 20)).unwrap();
    testing::write_npy(&path("B.npy"), &[6, 2], &numbers(1, 12)).unwrap();
    let runtime = with_disk(directory.path());
    let args = Args { a: Some(path("A.npy")), b: Some(path("B.npy")), ..Args::default() };
    let Err(error) = args.prepare(&runtime) else { panic!("accepted") };
    let message = error.to_string();
    assert_eq!(error.exit_status(), 2);
    assert!(message.contains("4 x 5") && message.contains("6 x 2"), "{message}");
}
