//! The application: the same bytes on every machine and however blocks are cut, pictures in and out, refusals in plain
//! words.

use multigrain::app::Application;
use multigrain::prelude::*;
use multigrain::rooms::plan::testing::Rng;
use multigrain::rooms::plan::{Body, Plan};
use multigrain::testing;
use multigrain_conv2d::app::Args;
use multigrain_conv2d::border::Border;
use multigrain_conv2d::kernel::{self, Filling};
use multigrain_conv2d::picture::{self, Picture, SAMPLES_MAX};
use multigrain_conv2d::task::Conv2d;
use multigrain_simd::Isa;
use std::path::{Path, PathBuf};

const SHAPES: [(u64, u64); 9] = [(1, 1), (1, 97), (101, 1), (2, 3), (37, 41), (64, 64), (23, 130), (128, 17), (5, 5)];
const BORDERS: [Border; 4] = [Border::Zero, Border::Nearest, Border::Reflect, Border::Wrap];
/// Some larger than some of the arrays.
const KERNELS: [&str; 6] = ["box:1", "gaussian:3", "sharpen:5", "edge", "gaussian:9", "box:15"];

#[test]
fn every_machine_gives_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let args = |seed| {
        let mut rng = Rng::new(seed);
        let (m, n) = *rng.pick(&SHAPES).unwrap();
        let kernel = rng.pick(&KERNELS).unwrap().to_string();
        let border = *rng.pick(&BORDERS).unwrap();
        Args { m: Some(m), n: Some(n), seed, kernel, border, ..Args::default() }
    };
    let ran = testing::on_random_machines(0..60, 8, directory.path(), args, |seed, args, checked| {
        let elements = args.m.unwrap() * args.n.unwrap();
        assert!(checked.holds() && checked.elements == elements, "seed {seed}: {checked:?}");
    });
    assert!(ran > 30, "only {ran} of 60 cases fit");
}

#[test]
fn blocks_of_blocks_equal_the_whole() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let (m, n) = *rng.pick(&SHAPES).unwrap();
        let (kh, kw) = (2 * rng.range(0, 6) + 1, 2 * rng.range(0, 6) + 1);
        let mut program = Program::new();
        let task = program.task(Conv2d::new(Isa::detect()));
        let input = program.array::<f32, 2>("in", [m, n], Role::Input).unwrap();
        let weights = program.array::<f32, 2>("weights", [kh, kw], Role::Input).unwrap();
        let out = program.array::<f32, 2>("out", [m, n], Role::Output).unwrap();
        let scalars = Filling::default().scalars(Scalars::new());
        program.call(task, (input.all(), weights.all(), out.all()), scalars).unwrap();
        let job = Job::new("conv2d", program).with_source(0, Source::Generated { seed });
        let job = job.with_source(1, Source::Generated { seed: seed + 1 });
        let [whole, split] = testing::whole_and_split(&job, 1 + seed as usize % 4, seed).unwrap();
        assert!(whole == split, "seed {seed}, {m} x {n} with {kh} x {kw}");
    }
}

/// Of a long array that is padded each part was planned by itself: a plan of a million calls took minutes.
#[test]
fn parts_of_long_arrays_are_planned_once() {
    fn kinds(plan: &Plan) -> usize {
        let below = |body: &Body| if let Body::Inner(plan) = body { kinds(plan) } else { 0 };
        plan.classes.len() + plan.classes.iter().map(|class| below(&class.body)).sum::<usize>()
    }
    let machine = multigrain::MachineChoice::Given(Box::new(Machine::named("disk").unwrap()));
    let runtime = Runtime::new(Options { machine, memory_bytes: Some(1 << 20), ..Options::default() }).unwrap();
    for border in BORDERS {
        let args = Args { m: Some(300_017), n: Some(3), kernel: "gaussian:31".to_owned(), border, ..Args::default() };
        let planned = runtime.plan(&args.prepare(&runtime).unwrap().job).unwrap();
        let found = kinds(&planned.plan);
        assert!(found < 100, "{border:?}: {found}");
    }
}

/// A file of weights, of more rows than columns, and an array.
fn files(directory: &Path, m: u64, n: u64) -> Args {
    let (image, weights) = (directory.join("image.npy"), directory.join("weights.npy"));
    testing::write_npy(&image, &[m, n], &testing::numbers(5, m * n)).unwrap();
    testing::write_npy(&weights, &[7, 3], &testing::numbers(6, 21)).unwrap();
    let kernel = weights.to_str().unwrap().to_owned();
    Args { image: Some(image), kernel, output: Some(directory.join("out.npy")), ..Args::default() }
}

/// The convolution as it is defined, in double precision.
fn convolution(input: &[f32], (m, n): (u64, u64), weights: &[f32], (kh, kw): (i64, i64), border: Border) -> Vec<f64> {
    let at = |y: i64, x: i64| {
        let place = border.source(y, m).zip(border.source(x, n));
        place.map_or(0.0, |(y, x)| f64::from(input[(y * n + x) as usize]))
    };
    let of = |y: i64, x: i64| {
        let taps = (0..kh).flat_map(|i| (0..kw).map(move |j| (i, j)));
        taps.map(|(i, j)| f64::from(weights[(i * kw + j) as usize]) * at(y + kh / 2 - i, x + kw / 2 - j)).sum()
    };
    (0..m as i64).flat_map(|y| (0..n as i64).map(move |x| (y, x))).map(|(y, x)| of(y, x)).collect()
}

#[test]
fn files_are_convolved_whatever_the_border_and_one_wrong_element_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (m, n) = (61, 83);
    let runtime = testing::runtime_with_disk(1, 8, directory.path()).unwrap();
    for border in BORDERS {
        for correlate in [false, true] {
            let args = Args { border, correlate, ..files(directory.path(), m, n) };
            let app = args.prepare(&runtime).unwrap();
            let outcome = runtime.run(&app.job, Settings::default()).unwrap();
            let out = directory.path().join("out.npy");
            let mut weights = testing::numbers(6, 21);
            if correlate {
                weights.reverse();
            }
            let wanted = convolution(&testing::numbers(5, m * n), (m, n), &weights, (7, 3), border);
            for (found, wanted) in testing::read_npy(&out).unwrap().into_iter().zip(wanted) {
                assert!((f64::from(found) - wanted).abs() < 1e-5, "{border:?}: {found} for {wanted}");
            }
            // 16 deviations of 21 roundings in each of 83 elements, estimated from above, by weights of a half at least.
            let little = 16.0 / 16_777_216.0 * 300.0;
            testing::alterations(&out, Some((30 * n + 40, little)), u64::from(correlate), || {
                let checked = (app.check)(&outcome, 3).unwrap();
                assert!(checked.holds() != checked.wrong.is_some(), "{checked:?}");
                checked.holds()
            });
            std::fs::remove_file(&out).unwrap();
        }
    }
}

#[test]
fn scipys_numbers_are_ours() {
    // scipy.signal.convolve2d(a, w, "same") of a = [[1, 2, 3], [4, 5, 6]] and w = [[0, 1, 0], [2, 3, 5], [0, 7, 0]], by hand.
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    testing::write_npy(&path("a.npy"), &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    testing::write_npy(&path("w.npy"), &[3, 3], &[0.0, 1.0, 0.0, 2.0, 3.0, 5.0, 0.0, 7.0, 0.0]).unwrap();
    let kernel = path("w.npy").to_str().unwrap().to_owned();
    let runtime = Runtime::new(Options::default()).unwrap();
    for (border, correlate, wanted) in [
        (Border::Zero, false, [11.0, 22.0, 25.0, 29.0, 61.0, 64.0]),
        (Border::Zero, true, [41.0, 58.0, 55.0, 38.0, 55.0, 31.0]),
        (Border::Reflect, false, [23.0, 36.0, 52.0, 53.0, 66.0, 82.0]),
    ] {
        let (image, output) = (Some(path("a.npy")), Some(path("out.npy")));
        let args = Args { image, output, kernel: kernel.clone(), border, correlate, ..Args::default() };
        let app = args.prepare(&runtime).unwrap();
        runtime.run(&app.job, Settings::default()).unwrap();
        assert_eq!(testing::read_npy(&path("out.npy")).unwrap(), wanted, "{border:?}, {correlate}");
    }
}

/// What scipy.signal.convolve2d and correlate2d (1.17, mode="same") make of [[1, 2, 3], [4, 5, 6]] with weights 1, 2, 3, ...
/// of these shapes.
#[test]
fn weights_of_even_sizes_have_scipys_middle() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    testing::write_npy(&path("a.npy"), &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    for (shape, border, correlate, wanted) in [
        ([1, 2], Border::Zero, false, [1.0, 4.0, 7.0, 4.0, 13.0, 16.0]),
        ([1, 2], Border::Zero, true, [5.0, 8.0, 3.0, 14.0, 17.0, 6.0]),
        ([2, 1], Border::Zero, false, [1.0, 2.0, 3.0, 6.0, 9.0, 12.0]),
        ([2, 1], Border::Reflect, true, [9.0, 12.0, 15.0, 12.0, 15.0, 18.0]),
        ([2, 2], Border::Reflect, false, [10.0, 14.0, 24.0, 19.0, 23.0, 33.0]),
        ([2, 2], Border::Wrap, true, [37.0, 47.0, 39.0, 25.0, 35.0, 27.0]),
        ([3, 4], Border::Zero, false, [29.0, 62.0, 83.0, 77.0, 146.0, 167.0]),
        ([3, 4], Border::Zero, true, [211.0, 190.0, 133.0, 127.0, 106.0, 69.0]),
        ([3, 4], Border::Wrap, false, [315.0, 330.0, 291.0, 237.0, 252.0, 213.0]),
    ] {
        let weights: Vec<f32> = (1..=shape[0] * shape[1]).map(|i| i as f32).collect();
        testing::write_npy(&path("w.npy"), &shape, &weights).unwrap();
        let (image, output) = (Some(path("a.npy")), Some(path("out.npy")));
        let kernel = path("w.npy").to_str().unwrap().to_owned();
        let args = Args { image, output, kernel, border, correlate, ..Args::default() };
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        assert_eq!(testing::read_npy(&path("out.npy")).unwrap(), wanted, "{shape:?}, {border:?}, {correlate}");
        assert!((app.check)(&outcome, 1).unwrap().holds());
        assert_eq!(app.shape[2..4], [("kernel rows", shape[0]), ("kernel columns", shape[1])]);
    }
}

/// Weights of even sizes are filled up to odd ones: what counts for nothing meets no infinity.
#[test]
fn an_infinity_spreads_as_far_as_there_are_weights() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (size, middle) = (11, 5);
    let image = (0..size * size).map(|i| if i == middle * size + middle { f32::INFINITY } else { 1.0 });
    testing::write_npy(&path("a.npy"), &[size, size], &image.collect::<Vec<_>>()).unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    for ((rows, cols), (border, correlate)) in [(1, 2), (2, 1), (2, 4), (4, 3), (3, 3)]
        .into_iter()
        .flat_map(|shape| BORDERS.iter().flat_map(move |&border| [false, true].map(|turned| (shape, (border, turned)))))
    {
        let weights: Vec<f32> = (1..=rows * cols).map(|i| i as f32).collect();
        testing::write_npy(&path("w.npy"), &[rows, cols], &weights).unwrap();
        let kernel = path("w.npy").to_str().unwrap().to_owned();
        let (image, output) = (Some(path("a.npy")), Some(path("out.npy")));
        let args = Args { image, output, kernel, border, correlate, ..Args::default() };
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        let found = testing::read_npy(&path("out.npy")).unwrap();
        for (i, value) in found.iter().enumerate() {
            // The former of two in the middle is the middle one, so that there is one more behind it; turned around, before it.
            let meets = |at: usize, len: u64| {
                let (before, behind) = ((len as i64 - 1) / 2, len as i64 / 2);
                let (before, behind) = if correlate { (before, behind) } else { (behind, before) };
                (-before..=behind).contains(&(middle as i64 - at as i64))
            };
            let reached = meets(i / size as usize, rows) && meets(i % size as usize, cols);
            assert_eq!(value.is_infinite(), reached, "{rows} x {cols}, {border:?}, {correlate}: {i} is {value}");
            assert!(!value.is_nan());
        }
        assert!((app.check)(&outcome, 1).unwrap().holds(), "{rows} x {cols}, {border:?}, {correlate}");
    }
}

#[test]
fn right_results_pass_the_check_whatever_is_filtered() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    let (m, n) = (40, 700);
    let kinds: [fn(u64) -> f32; 5] = [
        |_| 0.1,
        |i| generate::f32_at(3, i) * 10f32.powi((i % 50) as i32 - 25),
        |i| generate::f32_at(3, i) * 1e-38,
        |i| generate::f32_at(3, i) * 1e38,
        |i| if i == 777 { f32::NAN } else { generate::f32_at(3, i) },
    ];
    for (kind, numbers) in kinds.into_iter().enumerate() {
        let image = directory.path().join("image.npy");
        testing::write_npy(&image, &[m, n], &(0..m * n).map(numbers).collect::<Vec<_>>()).unwrap();
        for (kernel, border) in KERNELS.iter().zip(BORDERS.iter().cycle()) {
            let args =
                Args { image: Some(image.clone()), kernel: kernel.to_string(), border: *border, ..Args::default() };
            let app = args.prepare(&runtime).unwrap();
            let outcome = runtime.run(&app.job, Settings::default()).unwrap();
            for seed in 0..3 {
                let checked = (app.check)(&outcome, seed).unwrap();
                let judged = match kind {
                    3 => checked.elements <= m * n,
                    4 => checked.elements < m * n && checked.covered.contains("not judged"),
                    _ => checked.elements == m * n,
                };
                assert!(checked.holds() && judged, "kind {kind}, {kernel}, seed {seed}: {checked:?}");
                assert_eq!(checked.uncovered.is_some(), checked.elements == 0, "{checked:?}");
            }
        }
    }
}

fn sample(planes: usize, alpha: bool) -> Picture {
    let (rows, cols) = (40, 33);
    let plane = |p: usize| (0..rows * cols).map(|i| ((i * 7 + p * 31) % 256) as f32 / 255.0).collect();
    Picture { rows, cols, planes: (0..planes).map(plane).collect(), alpha: alpha.then(|| plane(9)) }
}

fn png_files(directory: &Path, picture: &Picture) -> (PathBuf, PathBuf) {
    let (image, out) = (directory.join("image.png"), directory.join("out.PNG"));
    picture::write(&image, picture).unwrap();
    (image, out)
}

#[test]
fn a_picture_becomes_a_picture_on_any_machine() {
    let directory = tempfile::tempdir().unwrap();
    for (seed, (planes, alpha)) in (0..).zip([(1, false), (3, false), (3, true), (1, true)]) {
        let picture = sample(planes, alpha);
        let (image, out) = png_files(directory.path(), &picture);
        let args =
            Args { image: Some(image), output: Some(out.clone()), kernel: "gaussian:5".into(), ..Args::default() };
        let runtime = testing::runtime_with_disk(100 * seed, 4, directory.path()).unwrap();
        let app = args.prepare(&runtime).unwrap();
        let outcome = testing::run_and_compare(&runtime, &app.job).unwrap().expect("it fits");
        assert!((app.check)(&outcome, 1).unwrap().holds());
        assert!(!out.exists());
        (app.after.expect("a picture is written"))(&outcome).unwrap();
        let found = picture::read(&out, SAMPLES_MAX).unwrap();
        assert_eq!((found.rows, found.cols, found.planes.len()), (40, 33, planes));
        assert_eq!(found.alpha, picture.alpha, "opacity is kept");
        let weights = multigrain_conv2d::kernel::weights::Weights::gaussian(5, 1.1);
        for (found, plane) in found.planes.iter().zip(&picture.planes) {
            let wanted = kernel::reference(plane, 40, 33, &weights.values, 5, 5);
            for (&found, wanted) in found.iter().zip(wanted) {
                // Half a step of 8 bits, and a little for single precision.
                assert!((f64::from(found) - wanted).abs() < 0.501 / 255.0, "{found} for {wanted}");
            }
        }
        std::fs::remove_file(&out).unwrap();
    }
}

#[test]
fn a_picture_that_memory_does_not_hold_becomes_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (rows, cols) = (400, 300);
    let plane = |p: usize| (0..rows * cols).map(|i| ((i * 7 + p * 31) % 256) as f32 / 255.0).collect();
    let picture = Picture { rows, cols, planes: (0..3).map(plane).collect(), alpha: Some(plane(9)) };
    let (image, out) = png_files(directory.path(), &picture);
    let args = Args { image: Some(image), output: Some(out.clone()), border: Border::Nearest, ..Args::default() };
    let mut made = Vec::new();
    // 1.4 MiB of samples.
    for memory_bytes in [1 << 20, 1 << 30] {
        let runtime = Runtime::new(Options { memory_bytes: Some(memory_bytes), ..Options::default() }).unwrap();
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        assert!((app.check)(&outcome, 1).unwrap().holds());
        (app.after.expect("a picture is written"))(&outcome).unwrap();
        made.push(std::fs::read(&out).unwrap());
    }
    assert!(made[0] == made[1]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "no scratch file stays");
}

/// Runs with so much memory, and writes the picture; of a run that is refused, what is said to be enough.
fn written(args: &Args, memory_bytes: u64) -> Result<(), u64> {
    let runtime = Runtime::new(Options { memory_bytes: Some(memory_bytes), ..Options::default() }).unwrap();
    let ran = args.prepare(&runtime).and_then(|app| {
        let planned = runtime.plan(&app.job).map(drop);
        let ran = runtime.run(&app.job, Settings::default());
        assert_eq!(planned.is_ok(), ran.is_ok(), "at {memory_bytes}");
        ran.map(|outcome| (app, outcome))
    });
    match ran {
        Ok((app, outcome)) => {
            runtime.forget();
            let row_bytes = picture::writing_bytes(app.shape[1].1, 1, false, 1);
            assert!(row_bytes <= outcome.work_bytes(), "{row_bytes} of {} at {memory_bytes}", outcome.work_bytes());
            (app.after.expect("a picture is written"))(&outcome).unwrap();
            Ok(())
        }
        Err(mut error) => {
            let words = error.to_string();
            assert!(error.exit_status() == 2 && words.contains("out.PNG after the run"), "{words}");
            let (_, enough) = error.enough().unwrap_or_else(|| panic!("{words}"));
            Err(enough.bytes())
        }
    }
}

/// A row takes 12 bytes a column, and of those there are 1 MiB and what a process takes for itself.
#[test]
fn a_picture_whose_rows_have_no_room_is_refused_before_the_run_and_what_is_enough_is_enough() {
    let directory = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for cols in [300_000, 420_000, 430_000, 900_000] {
        let picture = Picture { rows: 3, cols, planes: vec![vec![0.5; 3 * cols]], alpha: None };
        let (image, out) = png_files(directory.path(), &picture);
        let args = Args { image: Some(image), output: Some(out), kernel: "box:3".into(), ..Args::default() };
        if let Err(enough) = written(&args, 1 << 20) {
            refused += 1;
            written(&args, enough).unwrap_or_else(|more| panic!("{cols}: {more} after {enough}"));
            assert!(enough < 2 * picture::writing_bytes(cols as u64, 1, false, 1), "{cols}: {enough}");
        }
    }
    assert!((1..4).contains(&refused), "{refused}");
}

#[test]
fn a_gray_picture_becomes_an_array_and_an_array_a_picture() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = testing::runtime_with_disk(9, 4, directory.path()).unwrap();
    let picture = sample(1, false);
    let (image, out) = png_files(directory.path(), &picture);
    let array = directory.path().join("array.npy");
    let kernel = "box:1".to_owned();
    let args = Args { image: Some(image), output: Some(array.clone()), kernel: kernel.clone(), ..Args::default() };
    let app = args.prepare(&runtime).unwrap();
    assert!(app.after.is_none());
    runtime.run(&app.job, Settings::default()).unwrap();
    assert_eq!(testing::read_npy(&array).unwrap(), picture.planes[0]);

    let args = Args { image: Some(array), output: Some(out.clone()), kernel, ..Args::default() };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    (app.after.expect("a picture is written"))(&outcome).unwrap();
    assert_eq!(picture::read(&out, SAMPLES_MAX).unwrap(), picture);
}

#[test]
fn a_picture_that_cannot_be_written_fails_the_run_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = testing::runtime_with_disk(9, 4, directory.path()).unwrap();
    let results = directory.path().join("results");
    std::fs::create_dir(&results).unwrap();
    let args = Args { output: Some(results.join("out.png")), n: Some(8), ..Args::default() };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    std::fs::remove_dir_all(&results).unwrap();
    let error = (app.after.expect("a picture is written"))(&outcome).unwrap_err();
    assert_eq!(error.exit_status(), 1);
    assert!(error.to_string().contains("out.png"), "{error}");
}

#[test]
fn wrong_requests_are_refused_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = testing::runtime_with_disk(3, 4, directory.path()).unwrap();
    let args = files(directory.path(), 4, 10);
    let other = directory.path().join("other.npy");
    let text = other.to_str().unwrap().to_owned();

    for (shape, part) in [(&[0, 5][..], "are taken"), (&[20], "dimensions"), (&[1, 1003], "are taken")] {
        let count = shape.iter().product();
        testing::write_npy(&other, shape, &testing::numbers(1, count)).unwrap();
        let message = testing::refusal(&runtime, &Args { kernel: text.clone(), ..args.clone() });
        assert!(message.contains("other.npy") && message.contains(part), "{message}");
    }
    testing::write_npy(&other, &[3, 3], &testing::numbers(1, 8)).unwrap();
    let message = testing::refusal(&runtime, &Args { kernel: text.clone(), ..args.clone() });
    assert!(message.contains("36 bytes, there are 32"), "{message}");
    std::fs::write(&other, "not an array").unwrap();
    let message = testing::refusal(&runtime, &Args { kernel: text, ..args.clone() });
    assert!(message.contains("other.npy"), "{message}");
    let message = testing::refusal(&runtime, &Args { kernel: "gaussian:8".into(), ..args.clone() });
    assert!(message.contains("gaussian:8") && message.contains("odd"), "{message}");

    testing::write_npy(&other, &[40], &testing::numbers(1, 40)).unwrap();
    let message = testing::refusal(&runtime, &Args { image: Some(other), ..args.clone() });
    assert!(message.contains("other.npy has 1 dimensions"), "{message}");

    let png = directory.path().join("image.png");
    std::fs::write(&png, "not a picture").unwrap();
    let message = testing::refusal(&runtime, &Args { image: Some(png.clone()), ..args.clone() });
    assert!(message.contains("image.png") && message.contains("PNG"), "{message}");

    picture::write(&png, &sample(3, false)).unwrap();
    let message = testing::refusal(&runtime, &Args { image: Some(png.clone()), ..args.clone() });
    assert!(message.contains("3 planes") && message.contains("out.npy"), "{message}");
    picture::write(&png, &sample(1, true)).unwrap();
    let message = testing::refusal(&runtime, &Args { image: Some(png), ..args.clone() });
    assert!(message.contains("2 planes"), "{message}");

    let output = Some(directory.path().join("none/out.png"));
    let message = testing::refusal(&runtime, &Args { output, ..args.clone() });
    assert!(message.contains("no directory"), "{message}");
    let output = Some(directory.path().join("out.jpg"));
    let message = testing::refusal(&runtime, &Args { output, ..args.clone() });
    assert!(message.contains("out.jpg") && message.contains(".npy"), "{message}");
    let message = testing::refusal(&runtime, &Args { n: Some(5), ..args });
    assert!(message.contains("--n 5") && message.contains("4 x 10"), "{message}");
}

#[test]
fn a_picture_is_not_replaced_by_its_result() {
    let directory = tempfile::tempdir().unwrap();
    let picture = Picture { rows: 3, cols: 2, planes: vec![vec![0.5; 6]], alpha: None };
    let (image, _) = png_files(directory.path(), &picture);
    let before = std::fs::read(&image).unwrap();
    let same = directory.path().join(".").join("image.png");
    let args = Args { image: Some(image.clone()), output: Some(same), ..Args::default() };
    let runtime = Runtime::new(Options::default()).unwrap();
    let app = args.prepare(&runtime).unwrap();
    let Err(error) = runtime.run(&app.job, Settings::default()) else { panic!("the picture was replaced") };
    assert!(error.exit_status() == 2 && error.to_string().contains("would replace the input"), "{error}");
    assert_eq!(std::fs::read(&image).unwrap(), before);
}
