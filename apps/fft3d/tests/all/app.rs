//! The application: the same bytes on every machine, right transforms, refusals in plain words.

use multigrain::app::Application;
use multigrain::prelude::*;
use multigrain::rooms::plan::testing::Rng;
use multigrain::rooms::store::npy;
use multigrain::testing;
use multigrain_fft3d::app::Args;
use multigrain_fft3d::task::{InPlace, Into, Setup, direction};
use multigrain_simd::Isa;
use std::path::{Path, PathBuf};

/// One element, flat, thin, mixed factors, rows that are transformed one by one.
const SHAPES: [[u64; 3]; 15] = [
    [1, 1, 1],
    [1, 1, 70],
    [1, 48, 1],
    [64, 1, 1],
    [3, 5, 7],
    [8, 8, 8],
    [2, 9, 256],
    [16, 12, 20],
    [25, 4, 18],
    [6, 16, 32],
    [5, 1, 128],
    [32, 6, 10],
    [13, 4, 11],
    [1, 101, 1],
    [6, 17, 22],
];

fn generated(shape: [u64; 3], seed: u64, inverse: bool) -> Args {
    Args { shape: shape.to_vec(), seed, inverse, ..Args::default() }
}

fn write_volume(path: &Path, shape: &[u64], seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; 8 * shape.iter().product::<u64>() as usize];
    generate::fill(ElementType::C64, seed, 0, &mut bytes);
    let mut content = npy::write(ElementType::C64, shape).unwrap();
    content.extend(&bytes);
    std::fs::write(path, content).unwrap();
    bytes
}

fn read_volume(path: &Path) -> Vec<f32> {
    let content = std::fs::read(path).unwrap();
    let header = npy::parse(&content).unwrap();
    assert_eq!(header.element, ElementType::C64);
    floats(&content[header.data_offset_bytes as usize..])
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[test]
fn every_machine_gives_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let args = |seed| generated(*Rng::new(seed).pick(&SHAPES).unwrap(), seed, seed % 3 == 0);
    let ran = testing::on_random_machines(0..80, 64, directory.path(), args, |seed, args, checked| {
        assert!(checked.holds() && checked.elements > 0, "seed {seed}, {:?}: {checked:?}", args.shape);
    });
    assert!(ran > 40, "only {ran} of 80 cases fit");
}

/// A program that leaves its input as it was.
fn into(shape: [u64; 3], seed: u64, isa: Isa, inverse: bool) -> Job {
    let mut program = Program::new();
    let task = program.task(Into::new(&Setup::new(isa, shape).unwrap()));
    let from = program.array::<Complex32, 3>("in", shape, Role::Input).unwrap();
    let to = program.array::<Complex32, 3>("out", shape, Role::Output).unwrap();
    program.call(task, (from.all(), to.all()), direction(inverse)).unwrap();
    Job::new("fft3d", program).with_source(0, Source::Generated { seed })
}

/// A program that transforms in place.
fn in_place(shape: [u64; 3], isa: Isa, inverse: bool) -> Program {
    let mut program = Program::new();
    let task = program.task(InPlace::new(&Setup::new(isa, shape).unwrap()));
    let data = program.array::<Complex32, 3>("data", shape, Role::InOut).unwrap();
    program.call(task, (data.all(),), direction(inverse)).unwrap();
    program
}

#[test]
fn transforms_from_one_array_into_another_give_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let mut ran = 0;
    for seed in 100..160 {
        let shape = *Rng::new(seed).pick(&SHAPES).unwrap();
        let runtime = testing::runtime(testing::machine(seed, 64, directory.path()).unwrap()).unwrap();
        let job = into(shape, seed, Isa::detect(), false);
        let outcome = testing::run_and_compare(&runtime, &job).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        ran += usize::from(outcome.is_some());
    }
    assert!(ran > 25, "only {ran} of 60 cases fit");
}

#[test]
fn blocks_of_blocks_and_stages_equal_the_whole_with_every_instruction_set() {
    for seed in 0..120 {
        let shape = *Rng::new(seed).pick(&SHAPES).unwrap();
        let (inverse, depth) = (seed % 2 == 0, 1 + seed as usize % 3);
        let isas: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| isa.is_supported()).collect();
        let isa = isas[seed as usize % isas.len()];
        let job = into(shape, seed, isas[0], inverse);
        let (mut whole, mut split) = (testing::initial_bytes(&job), testing::initial_bytes(&job));
        job.program().run_sequential(&mut whole).unwrap();
        testing::run_split(into(shape, seed, isa, inverse).program(), &mut split, depth, seed);
        assert!(whole == split, "seed {seed}, {shape:?}, {isa}");
        let mut bytes = vec![split.swap_remove(0)];
        testing::run_split(&in_place(shape, isa, inverse), &mut bytes, depth, seed);
        assert!(whole[1] == bytes[0], "seed {seed}, {shape:?}, {isa}, in place");
    }
}

fn transform(shape: [u64; 3], data: &[f32], inverse: bool) -> Vec<f32> {
    let mut bytes = vec![data.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()];
    in_place(shape, Isa::detect(), inverse).run_sequential(&mut bytes).unwrap();
    floats(&bytes[0])
}

fn numbers(shape: [u64; 3], seed: u64) -> Vec<f32> {
    (0..2 * shape.iter().product::<u64>()).map(|i| generate::f32_at(seed, i)).collect()
}

/// NaN if one is NaN.
fn largest(values: impl Iterator<Item = f32>) -> f32 {
    values.map(f32::abs).fold(0.0, |most, x| if x.is_nan() || x > most { x } else { most })
}

#[test]
fn the_inverse_gives_back_what_was_there() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let data = numbers(shape, seed as u64);
        let back = transform(shape, &transform(shape, &data, false), true);
        let error = largest(data.iter().zip(&back).map(|(a, b)| a - b));
        assert!(error < 2e-6, "{shape:?}: {error}");
    }
}

#[test]
fn the_transform_is_linear() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let (a, b) = (numbers(shape, seed as u64), numbers(shape, 1000 + seed as u64));
        let both: Vec<f32> = a.iter().zip(&b).map(|(a, b)| 0.5 * a + 2.0 * b).collect();
        let (a, b, both) = (transform(shape, &a, false), transform(shape, &b, false), transform(shape, &both, false));
        let scale = largest(both.iter().copied());
        let error = largest(both.iter().zip(a.iter().zip(&b)).map(|(both, (a, b))| both - (0.5 * a + 2.0 * b)));
        assert!(error < 3e-6 * scale, "{shape:?}: {error} of {scale}");
    }
}

#[test]
fn files_are_transformed_within_little_memory_and_a_wrong_element_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("in.npy"), directory.path().join("out.npy"));
    let shape = [24, 10, 36];
    let bytes = write_volume(&from, &shape, 9);
    let runtime = testing::runtime_with_disk(1, 64, directory.path()).unwrap();
    for inverse in [false, true] {
        let args = Args { input: Some(from.clone()), output: Some(to.clone()), inverse, ..Args::default() };
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        assert!(read_volume(&to) == transform(shape, &floats(&bytes), inverse));
        let checked = (app.check)(&outcome, 1).unwrap();
        assert!(checked.holds(), "{checked:?}");
        assert!(std::fs::read(&from).unwrap().ends_with(&bytes), "the input was changed");
        for seed in 0..3 {
            testing::alterations(&to, None, seed, || {
                let checked = (app.check)(&outcome, seed).unwrap();
                assert!(checked.elements == 24 * 10 * 36 && checked.holds() != checked.wrong.is_some(), "{checked:?}");
                checked.holds()
            });
        }
    }
}

#[test]
fn the_check_of_right_transforms_holds_whatever_they_are_of() {
    let kinds: [fn(u64) -> f32; 6] = [
        |_| 0.3,
        |i| if i == 0 { 1.0 } else { 0.0 },
        |i| generate::f32_at(3, i) * 10f32.powi((i % 40) as i32 - 20),
        |i| generate::f32_at(3, i) * 1e-38,
        |i| generate::f32_at(3, i) * 1e38,
        |i| if i == 77 { f32::NAN } else { generate::f32_at(3, i) },
    ];
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    for (kind, numbers) in kinds.into_iter().enumerate() {
        for shape in [[12, 9, 22], [1, 1, 4096], [1009, 1, 1], [5, 64, 3]] {
            let path = directory.path().join("in.npy");
            let count = shape.iter().product::<u64>();
            let mut content = npy::write(ElementType::C64, &shape).unwrap();
            content.extend((0..2 * count).flat_map(|i| numbers(i).to_le_bytes()));
            std::fs::write(&path, content).unwrap();
            for inverse in [false, true] {
                let app = Args { input: Some(path.clone()), inverse, ..Args::default() }.prepare(&runtime).unwrap();
                let outcome = runtime.run(&app.job, Settings::default()).unwrap();
                for seed in 0..6 {
                    let checked = (app.check)(&outcome, seed).unwrap();
                    // One number that is none makes all results such; large ones may overflow.
                    let judged = match kind {
                        5 => checked.elements == 0 && checked.uncovered.is_some(),
                        4 => checked.elements <= count,
                        _ => checked.elements == count && checked.uncovered.is_none(),
                    };
                    assert!(checked.holds() && judged, "kind {kind}, {shape:?}, seed {seed}: {checked:?}");
                }
            }
        }
    }
}

#[test]
fn what_fits_in_little_fits_in_more() {
    // Refused once: short lists that all failed in the end, and lists that are long only together.
    for (n, kib) in [(512, 350), (512, 360), (512, 400), (512, 405), (200, 380), (200, 400), (200, 420)] {
        let options = Options { memory_bytes: Some(kib << 10), threads: Some(2), ..Options::default() };
        let runtime = Runtime::new(options).unwrap();
        let app = generated([n; 3], 1, false).prepare(&runtime).unwrap();
        let planned = runtime.plan(&app.job);
        assert!(planned.is_ok(), "{n} in {kib} KiB: {}", planned.err().unwrap());
    }
}

fn refusal(args: Args) -> String {
    let runtime = Runtime::new(Options::default()).unwrap();
    testing::refusal(&runtime, &args)
}

#[test]
fn what_cannot_be_transformed_is_refused_in_plain_words() {
    let message = refusal(generated([16, 8, u64::MAX], 1, false));
    assert!(message.contains("2^63"), "{message}");
    let message = refusal(generated([1, 1, (1 << 40) + 15], 1, false));
    assert!(message.contains("tables") && message.contains("memory") && message.contains("at least"), "{message}");
    let message = refusal(generated([0, 8, 8], 1, false));
    assert!(message.contains("length zero"), "{message}");
    let message = refusal(generated([1 << 30, 1 << 30, 1 << 30], 1, false));
    assert!(message.contains("2^63"), "{message}");
    let message = refusal(Args { shape: vec![8, 8], ..Args::default() });
    assert!(message.contains("2 lengths"), "{message}");

    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, write: &dyn Fn(&Path)| -> PathBuf {
        let path = directory.path().join(name);
        write(&path);
        path
    };
    let input = |path: PathBuf| Args { input: Some(path), ..Args::default() };
    let message = refusal(input(file("flat.npy", &|path| drop(write_volume(path, &[8, 8], 1)))));
    assert!(message.contains("flat.npy has 2 dimensions, 3 are needed"), "{message}");
    let message = refusal(input(file("real.npy", &|path| testing::write_npy(path, &[2, 2, 2], &[0.0; 8]).unwrap())));
    assert!(message.contains("float32") && message.contains("complex64"), "{message}");
    let message = refusal(input(file("empty.npy", &|path| drop(write_volume(path, &[4, 0, 4], 1)))));
    assert!(message.contains("length zero"), "{message}");
    let path = file("right.npy", &|path| drop(write_volume(path, &[4, 6, 5], 1)));
    let message = refusal(Args { shape: vec![4, 6, 7], ..input(path.clone()) });
    assert!(message.contains("right.npy is 4 x 6 x 5, 4 x 6 x 7 was asked for"), "{message}");
    let message = refusal(Args { n: Some(5), ..input(path.clone()) });
    assert!(message.contains("5 x 5 x 5 was asked for"), "{message}");
    let app = Args { shape: vec![4, 6, 5], ..input(path) };
    app.prepare(&Runtime::new(Options::default()).unwrap()).unwrap();
}

#[test]
fn the_plan_says_how_often_the_volume_crosses_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.npy");
    // 2 MiB in planes of 32 KiB.
    write_volume(&path, &[64, 64, 64], 1);
    let bytes = 8 * 64 * 64 * 64;
    for (memory_bytes, passes) in [(8 << 20, 1), (1 << 20, 2), (310 << 10, 3)] {
        let runtime = Runtime::new(Options {
            machine: multigrain::MachineChoice::Given(Box::new(Machine::named("disk").unwrap())),
            memory_bytes: Some(memory_bytes),
            threads: Some(1),
            disk_buffer_bytes: Some(testing::TEST_BUFFER_BYTES),
            ..Options::default()
        });
        let runtime = runtime.unwrap();
        let app = Args { input: Some(path.clone()), ..Args::default() }.prepare(&runtime).unwrap();
        let planned = runtime.plan(&app.job).unwrap();
        let edge = &planned.edges[0];
        let text = planned.plan.to_string();
        assert_eq!((edge.traffic.bytes_down, edge.traffic.bytes_up), (passes * bytes, passes * bytes), "{text}");
        assert!(2 * passes * bytes >= edge.lower_bound_bytes, "{text}");
        match passes {
            1 => assert!(!text.contains("passes over"), "{text}"),
            _ => assert!(text.contains(&format!("{passes} passes over")), "{text}"),
        }
    }
}
