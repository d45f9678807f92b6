//! The application: the same bytes on every machine, right products, refusals in plain words.

use multigrain::MachineChoice;
use multigrain::app::Application;
use multigrain::prelude::*;
use multigrain::rooms::plan::check::{check, edge_rules};
use multigrain::rooms::plan::testing::Rng;
use multigrain::rooms::plan::{Body, Plan};
use multigrain::testing;
use multigrain_sgemm::app::Args;
use multigrain_sgemm::task::Product;
use multigrain_simd::Isa;

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

#[test]
fn every_machine_gives_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let args = |seed| {
        let (m, n, k) = *Rng::new(seed).pick(&SHAPES).unwrap();
        Args { m: Some(m), n: Some(n), k: Some(k), seed, ..Args::default() }
    };
    let ran = testing::on_random_machines(0..60, 16, directory.path(), args, |seed, args, checked| {
        let elements = args.m.unwrap() * args.n.unwrap();
        assert!(checked.holds() && checked.elements == elements, "seed {seed}: {checked:?}");
    });
    assert!(ran > 30, "only {ran} of 60 cases fit");
}

/// Calls of a plan and of those in it, each plan counted once.
fn listed(plan: &Plan, seen: &mut Vec<*const Plan>) -> usize {
    if seen.contains(&std::ptr::from_ref(plan)) {
        return 0;
    }
    seen.push(plan);
    let inner = plan.classes.iter().map(|class| match &class.body {
        Body::Inner(inner) => listed(inner, seen),
        Body::Leaf { .. } => 0,
    });
    plan.calls.len() + inner.sum::<usize>()
}

/// The local stores' rules ask where rows begin, and each block of the memory above has a plan for them: all of these together
/// have to find room beside the blocks.
#[test]
fn files_are_planned_for_strict_local_stores_whatever_their_size() {
    let [little, whole] = [Some(8 << 20), None];
    for (n, memory_bytes, times) in
        [(4096, little, 2.3), (10_000, whole, 1.3), (20_000, whole, 1.7), (100_000, whole, 3.0)]
    {
        let machine = MachineChoice::Given(Box::new(Machine::named("disk+ps3").unwrap()));
        let runtime = Runtime::new(Options { machine, memory_bytes, ..Options::default() }).unwrap();
        let app = Args { n: Some(n), ..Args::default() }.prepare(&runtime).unwrap();
        let planned = runtime.plan(&app.job).unwrap();
        check(&planned.plan, &edge_rules(&planned.machine)).unwrap_or_else(|error| panic!("{n}: {error}"));
        let edge = &planned.edges[0];
        let moved = (edge.traffic.bytes_down + edge.traffic.bytes_up) as f64;
        assert!(moved < times * edge.lower_bound_bytes as f64, "{n}: {moved} of {}", edge.lower_bound_bytes);
    }
}

#[test]
fn plans_of_any_size_are_short() {
    // n, the memory, and how many times the bound's bytes may cross: from what fits many times to what hardly does.
    for (n, memory, times) in [(60_000, 16 << 20, 2.0), (60_000, 128 << 20, 1.5), (1_000_000, 16 << 30, 1.2)] {
        let options = Options { memory_bytes: Some(memory), ..Options::default() };
        let runtime = Runtime::new(options).unwrap();
        let app = Args { n: Some(n), ..Args::default() }.prepare(&runtime).unwrap();
        let planned = runtime.plan(&app.job).unwrap();
        let calls = listed(&planned.plan, &mut Vec::new());
        assert!(calls < 40_000, "{n} in {memory} bytes: {calls} calls");
        let edge = &planned.edges[0];
        let moved = (edge.traffic.bytes_down + edge.traffic.bytes_up) as f64;
        assert!(moved < times * edge.lower_bound_bytes as f64, "{n} in {memory} bytes: {moved} {edge:?}");
        assert!(planned.plan.is_in_parts(), "{n} in {memory} bytes: {}", planned.plan);
    }
}

/// A panel of all of few k stays where a tile of C would, and so less goes by: the bound is less, too.
#[test]
fn no_plan_moves_less_than_the_bound() {
    // m, n, k, the memory, and the elements of A and B that go by: twice each once, then by a tile of C and by a panel.
    for ([m, n, k], memory, streamed) in [
        ([6028, 61_872, 178], 4_063_232, 6028 * 178 + 61_872 * 178),
        ([3001, 2503, 2099], 16 << 20, 3001 * 2099 + 2503 * 2099),
        ([4096, 4096, 4096], 4 << 20, 2 * (1 << 36) / (1 << 10)),
        ([8192, 8192, 1024], 8 << 20, (1 << 36) * (1 << 10) / (1 << 21)),
    ] {
        let machine = MachineChoice::Given(Box::new(Machine::named("disk").unwrap()));
        let options = Options { machine, memory_bytes: Some(memory), ..Options::default() };
        let runtime = Runtime::new(options).unwrap();
        let app = Args { m: Some(m), n: Some(n), k: Some(k), ..Args::default() }.prepare(&runtime).unwrap();
        let edge = &runtime.plan(&app.job).unwrap().edges[0];
        let moved = edge.traffic.bytes_down + edge.traffic.bytes_up;
        assert_eq!(edge.lower_bound_bytes, 4 * (streamed + m * n), "{m} x {n} x {k}: {edge:?}");
        assert!(moved >= edge.lower_bound_bytes, "{m} x {n} x {k}: {edge:?}");
    }
}

#[test]
fn a_product_in_parts_has_the_bytes_of_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (m, n, k) = (150, 131, 700);
    let mut results = Vec::new();
    for (number, listed_max) in [None, Some(16), Some(3)].into_iter().enumerate() {
        let disk = testing::machine(1, 16, directory.path()).unwrap();
        let machine = multigrain::MachineChoice::Given(Box::new(disk));
        let options =
            Options { machine, disk_buffer_bytes: Some(testing::TEST_BUFFER_BYTES), listed_max, ..Options::default() };
        let runtime = Runtime::new(options).unwrap();
        let output = directory.path().join(format!("{number}.npy"));
        let args = Args { m: Some(m), n: Some(n), k: Some(k), output: Some(output.clone()), ..Args::default() };
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        assert_eq!(outcome.plan.is_in_parts(), listed_max.is_some(), "{}", outcome.plan);
        assert!((app.check)(&outcome, 1).unwrap().holds());
        results.push(std::fs::read(output).unwrap());
    }
    assert!(results.iter().all(|result| *result == results[0]));
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
        let [whole, split] = testing::whole_and_split(&job, 1 + seed as usize % 3, seed).unwrap();
        assert!(whole == split, "seed {seed}, {m} x {n} x {k}");
    }
}

#[test]
fn files_are_multiplied_and_one_wrong_element_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (m, n, k) = (31, 23, 300);
    let path = |name: &str| directory.path().join(name);
    testing::write_npy(&path("A.npy"), &[m, k], &testing::numbers(5, m * k)).unwrap();
    testing::write_npy(&path("B.npy"), &[k, n], &testing::numbers(6, k * n)).unwrap();
    let runtime = testing::runtime_with_disk(1, 16, directory.path()).unwrap();
    let args = Args { a: Some(path("A.npy")), b: Some(path("B.npy")), output: Some(path("C.npy")), ..Args::default() };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let (a, b) = (testing::numbers(5, m * k), testing::numbers(6, k * n));
    let c = testing::read_npy(&path("C.npy")).unwrap();
    for (i, j) in [(0, 0), (30, 22), (7, 11)] {
        let wanted: f64 = (0..k).map(|l| f64::from(a[(i * k + l) as usize]) * f64::from(b[(l * n + j) as usize])).sum();
        let found = f64::from(c[(i * n + j) as usize]);
        assert!((found - wanted).abs() < 1e-4, "C[{i}][{j}] is {found}, not {wanted}");
    }
    assert!((app.check)(&outcome, 1).unwrap().holds());
}

/// m, n and k: one group of columns and more than one, one span of k and many.
const CHECKED: [(u64, u64, u64); 5] = [(31, 23, 300), (1, 40, 1), (9, 1500, 77), (5, 6, 60_000), (40, 1, 513)];

/// What little more than the roundings of a row can make of one element: from the partial sums of all columns.
fn just_above(a: &[f32], b: &[f32], (row, n, k): (u64, u64, u64)) -> f64 {
    let columns = n.min(1024) as usize;
    let (mut squares, mut sums) = (0.0, vec![0.0f64; columns]);
    for first in (0..k as usize).step_by(256) {
        let mut chain = vec![0.0f64; columns];
        for l in first..(first + 256).min(k as usize) {
            for (j, chain) in chain.iter_mut().enumerate() {
                *chain += f64::from(a[row as usize * k as usize + l]) * f64::from(b[l * n as usize + j]);
                squares += *chain * *chain;
            }
        }
        for (sum, chain) in sums.iter_mut().zip(chain) {
            *sum += chain;
            squares += *sum * *sum;
        }
    }
    // A weight is at least a half, and the sum of squares is estimated.
    6.0 * 32.0 / 16_777_216.0 * f64::sqrt(squares)
}

#[test]
fn the_check_finds_one_altered_element_and_blocks_that_are_lost_or_swapped() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = testing::runtime_with_disk(1, 64, directory.path()).unwrap();
    let path = |name: &str| directory.path().join(name);
    for (seed, (m, n, k)) in (1..).zip(CHECKED) {
        let (a, b) = (testing::numbers(seed, m * k), testing::numbers(seed + 50, k * n));
        testing::write_npy(&path("A.npy"), &[m, k], &a).unwrap();
        testing::write_npy(&path("B.npy"), &[k, n], &b).unwrap();
        let output = Some(path(&format!("C{seed}.npy")));
        let args = Args { a: Some(path("A.npy")), b: Some(path("B.npy")), output, ..Args::default() };
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        let row = m / 2;
        let little = just_above(&a, &b, (row, n, k));
        // One product that is lost, of average size, is more than that for any k.
        assert!(little < 0.25, "{m} x {n} x {k}: {little}");
        for draw in 0..if k < 10_000 { 3 } else { 1 } {
            testing::alterations(args.output.as_ref().unwrap(), Some((row * n, little)), seed + draw, || {
                let checked = (app.check)(&outcome, 7 * seed + draw).unwrap();
                assert!(!checked.holds() || checked.elements == m * n, "{checked:?}");
                assert!(checked.holds() != checked.wrong.is_some(), "{checked:?}");
                checked.holds()
            });
        }
    }
}

#[test]
fn a_right_product_passes_whatever_is_multiplied() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    let path = |name: &str| directory.path().join(name);
    let (m, n, k) = (40, 70, 3000);
    type Numbers = fn(u64) -> f32;
    let kinds: [(&str, Numbers); 7] = [
        ("equal", |_| 0.1),
        ("positive", |i| (i as f32 * 0.618_034).fract()),
        ("of every size", |i| generate::f32_at(3, i) * 10f32.powi((i % 60) as i32 - 30)),
        ("with zeros", |i| if i.is_multiple_of(3) { 0.0 } else { generate::f32_at(3, i) }),
        ("subnormal", |i| generate::f32_at(3, i) * 1e-30),
        ("too large", |i| generate::f32_at(3, i) * 1e20),
        ("no numbers", |i| if i % 5000 == 7 { f32::NAN } else { generate::f32_at(3, i) }),
    ];
    for (what, numbers) in kinds {
        testing::write_npy(&path("A.npy"), &[m, k], &(0..m * k).map(numbers).collect::<Vec<_>>()).unwrap();
        let b: Vec<f32> = (m * k..m * k + k * n).map(numbers).collect();
        testing::write_npy(&path("B.npy"), &[k, n], &b).unwrap();
        let args = Args { a: Some(path("A.npy")), b: Some(path("B.npy")), ..Args::default() };
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        for seed in 0..12 {
            let checked = (app.check)(&outcome, seed).unwrap();
            assert!(checked.holds(), "{what}, seed {seed}: {checked:?}");
            match what {
                "of every size" | "too large" | "no numbers" => {
                    assert!(checked.elements < m * n && checked.covered.contains("not judged"), "{what}: {checked:?}");
                    assert_eq!(checked.uncovered.is_some(), checked.elements == 0, "{what}: {checked:?}");
                }
                _ => assert!(checked.elements == m * n && checked.uncovered.is_none(), "{what}: {checked:?}"),
            }
        }
    }
}

/// One such number makes a row or a column of the result none, and hides nothing of the others: more rows are wrong here than
/// could be computed again.
#[test]
fn the_check_finds_what_is_wrong_beside_numbers_that_are_not_finite() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = testing::runtime_with_disk(1, 64, directory.path()).unwrap();
    let path = |name: &str| directory.path().join(name);
    let (m, n, k) = (300usize, 1024usize, 8192usize);
    let mut a = testing::numbers(5, (m * k) as u64);
    let mut b = testing::numbers(6, (k * n) as u64);
    (a[3 * k + 5], b[n + 7]) = (f32::INFINITY, f32::NAN);
    testing::write_npy(&path("A.npy"), &[m as u64, k as u64], &a).unwrap();
    testing::write_npy(&path("B.npy"), &[k as u64, n as u64], &b).unwrap();
    let args = Args { a: Some(path("A.npy")), b: Some(path("B.npy")), output: Some(path("C.npy")), ..Args::default() };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let checked = (app.check)(&outcome, 1).unwrap();
    assert!(checked.holds() && checked.uncovered.is_none(), "{checked:?}");
    assert_eq!(checked.elements, ((m - 1) * (n - 1)) as u64, "{checked:?}");
    let right = std::fs::read(path("C.npy")).unwrap();
    let begin = right.len() - 4 * m * n;
    let alter = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
        let mut altered = right.clone();
        for (i, j) in rows.flat_map(|i| columns.clone().map(move |j| (i, j))) {
            altered[begin + 4 * (i * n + j)..][..4].copy_from_slice(&12345f32.to_le_bytes());
        }
        std::fs::write(path("altered.npy"), altered).unwrap();
        // In place: the result is looked at where it was written.
        std::fs::copy(path("altered.npy"), path("C.npy")).unwrap();
        let checked = (app.check)(&outcome, 1).unwrap();
        assert!(!checked.holds() && checked.wrong.is_some(), "{checked:?}");
    };
    alter(8..m, 8..n);
    alter(9..10, 7..8);
    alter(3..4, 100..101);
}

#[test]
fn shapes_that_do_not_multiply_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    testing::write_npy(&path("A.npy"), &[4, 5], &testing::numbers(1, 20)).unwrap();
    testing::write_npy(&path("B.npy"), &[6, 2], &testing::numbers(1, 12)).unwrap();
    let runtime = testing::runtime_with_disk(1, 16, directory.path()).unwrap();
    let args = Args { a: Some(path("A.npy")), b: Some(path("B.npy")), ..Args::default() };
    let message = testing::refusal(&runtime, &args);
    assert!(message.contains("4 x 5") && message.contains("6 x 2"), "{message}");
}

#[test]
fn blocks_that_do_not_multiply_are_refused_by_the_program() {
    for ([am, ak], [bk, bn], [cm, cn]) in
        [([8, 8], [4, 8], [8, 8]), ([8, 8], [8, 4], [8, 8]), ([4, 8], [8, 8], [8, 8]), ([8, 8], [8, 8], [8, 4])]
    {
        let mut program = Program::new();
        let task = program.task(Product::new(Isa::detect()));
        let a = program.array::<f32, 2>("a", [am, ak], Role::Input).unwrap();
        let b = program.array::<f32, 2>("b", [bk, bn], Role::Input).unwrap();
        let c = program.array::<f32, 2>("c", [cm, cn], Role::Output).unwrap();
        let error = program.call(task, (a.all(), b.all(), c.all()), Scalars::new()).unwrap_err();
        assert!(error.to_string().contains("axis"), "{am} x {ak} by {bk} x {bn} into {cm} x {cn}: {error}");
    }
}
