//! The application: the same bytes on every machine, right sums, refusals in plain words.

use multigrain::MachineChoice;
use multigrain::app::Application;
use multigrain::prelude::*;
use multigrain::rooms::plan::testing::Rng;
use multigrain::testing;
use multigrain_sgemv::app::Args;
use multigrain_sgemv::task::Product;
use multigrain_simd::Isa;
use std::path::Path;

/// Rows and columns: thin, prime, and with more than one span of columns.
const SHAPES: [(u64, u64); 10] =
    [(1, 1), (1, 5000), (513, 1), (7, 4099), (101, 103), (3, 2048), (5, 2049), (64, 64), (12, 6144), (300, 31)];

fn files(directory: &Path, m: u64, n: u64) -> Args {
    let (a, x) = (directory.join("A.npy"), directory.join("x.npy"));
    testing::write_npy(&a, &[m, n], &testing::numbers(5, m * n)).unwrap();
    testing::write_npy(&x, &[n], &testing::numbers(6, n)).unwrap();
    Args { a: Some(a), x: Some(x), output: Some(directory.join("y.npy")), ..Args::default() }
}

#[test]
fn every_machine_gives_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let args = |seed| {
        let (m, n) = *Rng::new(seed).pick(&SHAPES).unwrap();
        Args { m: Some(m), n: Some(n), seed, ..Args::default() }
    };
    let ran = testing::on_random_machines(0..60, 8, directory.path(), args, |seed, args, checked| {
        assert!(checked.holds() && Some(checked.elements) == args.m, "seed {seed}: {checked:?}");
    });
    assert!(ran > 30, "only {ran} of 60 cases fit");
}

#[test]
fn blocks_of_blocks_equal_the_whole() {
    for seed in 0..200 {
        let (m, n) = *Rng::new(seed).pick(&SHAPES).unwrap();
        let mut program = Program::new();
        let task = program.task(Product::new(Isa::detect()));
        let a = program.array::<f32, 2>("A", [m, n], Role::Input).unwrap();
        let x = program.array::<f32, 1>("x", [n], Role::Input).unwrap();
        let y = program.array::<f32, 1>("y", [m], Role::Output).unwrap();
        program.call(task, (a.all(), x.all(), y.all()), Scalars::new()).unwrap();
        let job = Job::new("sgemv", program).with_source(0, Source::Generated { seed });
        let job = job.with_source(1, Source::Generated { seed: seed + 1 });
        let [whole, split] = testing::whole_and_split(&job, 1 + seed as usize % 3, seed).unwrap();
        assert!(whole == split, "seed {seed}, {m} x {n}");
    }
}

#[test]
fn files_are_multiplied_and_one_wrong_element_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (m, n) = (37, 4097);
    let args = files(directory.path(), m, n);
    let runtime = testing::runtime_with_disk(1, 8, directory.path()).unwrap();
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let (a, x) = (testing::numbers(5, m * n), testing::numbers(6, n));
    let out = directory.path().join("y.npy");
    for (y, row) in testing::read_npy(&out).unwrap().into_iter().zip(a.chunks_exact(n as usize)) {
        let wanted: f64 = row.iter().zip(&x).map(|(&a, &x)| f64::from(a) * f64::from(x)).sum();
        assert!((f64::from(y) - wanted).abs() < 1e-3, "{y} for {wanted}");
    }
    for seed in 0..4 {
        // Some 32 deviations of the roundings of a sum of 4097 products.
        let little = 32.0 / 16_777_216.0 * 200.0;
        testing::alterations(&out, Some((17, little)), seed, || (app.check)(&outcome, seed).unwrap().holds());
    }
}

/// Blocks of rows of an odd length begin anywhere in a page of their file; in the memory they begin where the strict stores
/// below take them to.
#[test]
fn odd_rows_of_files_reach_strict_local_stores() {
    let directory = tempfile::tempdir().unwrap();
    for n in [2049, 2051, 4097] {
        let args = files(directory.path(), 1001, n);
        let machine = MachineChoice::Given(Box::new(Machine::named("disk+ps3").unwrap()));
        let options = Options { machine, memory_bytes: Some(3 << 20), threads: Some(2), ..Options::default() };
        let plain = testing::runtime_with_disk(1, 8, directory.path()).unwrap();
        let [found, wanted] = [Runtime::new(options).unwrap(), plain].map(|runtime| {
            let app = args.prepare(&runtime).unwrap();
            runtime.run(&app.job, Settings::default()).unwrap();
            std::fs::read(directory.path().join("y.npy")).unwrap()
        });
        assert!(found == wanted, "rows of {n}");
    }
}

#[test]
fn a_right_product_passes_whatever_is_multiplied() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    let (m, n) = (9, 70_001);
    let kinds: [fn(u64) -> f32; 5] = [
        |_| 0.1,
        |i| generate::f32_at(3, i) * 10f32.powi((i % 60) as i32 - 30),
        |i| generate::f32_at(3, i) * 1e-30,
        |i| generate::f32_at(3, i) * 1e20,
        |i| if i % 100_000 == 7 { f32::NAN } else { generate::f32_at(3, i) },
    ];
    for (kind, numbers) in kinds.into_iter().enumerate() {
        let args = files(directory.path(), m, n);
        let [a, x] = [m * n, n].map(|count| (0..count).map(numbers).collect::<Vec<_>>());
        testing::write_npy(args.a.as_ref().unwrap(), &[m, n], &a).unwrap();
        testing::write_npy(args.x.as_ref().unwrap(), &[n], &x).unwrap();
        let app = Args { output: None, ..args }.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        let checked = (app.check)(&outcome, 0).unwrap();
        assert!(checked.holds(), "kind {kind}: {checked:?}");
        // What may overflow on its way, or is NaN, is no number to be compared with.
        let size = |row: &[f32]| row.iter().zip(&x).map(|(&a, &x)| (f64::from(a) * f64::from(x)).abs()).sum::<f64>();
        let judged = a.chunks_exact(n as usize).filter(|row| size(row) <= f64::from(f32::MAX)).count() as u64;
        assert_eq!((checked.elements, checked.uncovered.is_some()), (judged, judged == 0), "kind {kind}: {checked:?}");
        assert_eq!(judged == m, kind % 2 == 0 && kind < 4, "kind {kind}: {judged} judged");
    }
}

#[test]
fn wrong_requests_are_refused_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = testing::runtime_with_disk(3, 8, directory.path()).unwrap();
    let args = files(directory.path(), 4, 10);
    let other = directory.path().join("other.npy");

    testing::write_npy(&other, &[11], &testing::numbers(1, 11)).unwrap();
    let message = testing::refusal(&runtime, &Args { x: Some(other.clone()), ..args.clone() });
    assert!(message.contains("4 x 10") && message.contains("11"), "{message}");

    testing::write_npy(&other, &[10, 1], &testing::numbers(1, 10)).unwrap();
    let message = testing::refusal(&runtime, &Args { x: Some(other.clone()), ..args.clone() });
    assert!(message.contains("other.npy has 2 dimensions"), "{message}");

    testing::write_npy(&other, &[40], &testing::numbers(1, 40)).unwrap();
    let message = testing::refusal(&runtime, &Args { a: Some(other.clone()), ..args.clone() });
    assert!(message.contains("other.npy has 1 dimensions"), "{message}");

    let bare = directory.path().join("A.bin");
    std::fs::write(&bare, [0; 16]).unwrap();
    let message = testing::refusal(&runtime, &Args { a: Some(bare.clone()), ..args.clone() });
    assert!(message.contains("A.bin") && message.contains("sizes"), "{message}");
    let message = testing::refusal(&runtime, &Args { a: Some(bare), m: Some(4), n: Some(10), ..args.clone() });
    assert!(message.contains("A.bin"), "{message}");

    let message = testing::refusal(&runtime, &Args { x: None, ..args });
    assert!(message.contains("neither"), "{message}");
}
